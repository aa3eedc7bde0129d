"""Match Point: whether rows that belong together still do, in clusters of the rows as they are and as a release shows
them.

A row is a point. A number goes from 0 to 1, and two categories are as far apart as the ends of a number. A generalized
value lies in the middle of the values that it may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import BisectingKMeans

from sfumato import Categorical, Predictor, Release, Schema, Sides
from sfumato.arrays import CodedRows, Floats, Integers
from sfumato.evaluate.learning import MOST_INDICATORS
from sfumato.evaluate.runs import one_thread

CLUSTERS = (2, 5)
"""How many clusters are made, one clustering for each number; the papers make 2."""
MOST_CLUSTERED = 10_000
"""The most rows that are clustered, drawn by lot."""
STARTS = 10
"""The number of starts of which each split is the best. With one start, two clusterings of the same rows of Adult match
no better than those of a table and its release; with ten they agree.
"""


@dataclass(frozen=True)
class Match:
    """How far two clusterings of the same rows agree."""

    clusters: int
    after: str
    """what was clustered the second time"""
    match_point: float


def match_point(before: Integers, after: Integers) -> float:
    """The share of ordered pairs of rows, each with itself included, that are together in both clusterings or in
    neither (DiffMulti, eq. 15).

    Pairs are counted through the contingency table n_ij of the two clusterings: together in the first are the sum of
    squared row totals, in the second of column totals, in both of its cells.

    >>> match_point(np.array([0, 0, 1]), np.array([0, 1, 1]))
    0.5555555555555556
    """
    rows = len(before)
    both = np.bincount(before * (int(after.max(initial=0)) + 1) + after)
    first, second, shared = (int((sizes**2).sum()) for sizes in (np.bincount(before), np.bincount(after), both))
    return (rows**2 - first - second + 2 * shared) / max(rows**2, 1)


def bisecting(points: Floats, clusters: int) -> Any:
    """Split the cluster with the largest inertia in two until there are enough, or no two different points are left."""
    distinct, rows = np.unique(points, axis=0, return_counts=True)
    model = BisectingKMeans(
        min(clusters, len(distinct)), n_init=STARTS, random_state=0, bisecting_strategy="biggest_inertia"
    )
    with one_thread():
        return model.fit(distinct, sample_weight=rows.astype(np.float64))


def labels(points: Floats, clusters: int) -> Integers:
    """The cluster of each point."""
    return np.asarray(bisecting(points, clusters).predict(points), np.int64)


def matches(release: Release, rows: CodedRows, drawn: CodedRows) -> list[Match]:
    """Compare the clusters of the rows as they are with two others: those of the rows as the release generalizes them,
    where each row has one group, and those of drawn records, which know nothing else of the rows.
    """
    raw, synthetic = (points_of(release.schema, records) for records in (rows, drawn))
    generalized = None if not release.disjoint else generalized_points(release, rows)
    found = []
    for clusters in CLUSTERS:
        before = labels(raw, clusters)
        if generalized is not None:
            found.append(Match(clusters, "generalized rows", match_point(before, labels(generalized, clusters))))
        by_drawn = np.asarray(bisecting(synthetic, clusters).predict(raw), np.int64)
        found.append(Match(clusters, "drawn records", match_point(before, by_drawn)))
    return found


def points_of(schema: Schema, rows: CodedRows) -> Floats:
    """The point of each coded row."""
    return np.concatenate([_leaf_points(column)[rows[name]] for name, column in schema.predictors.items()], axis=1)


def generalized_points(release: Release, rows: CodedRows) -> Floats:
    """The point of each coded row where the release's groups put it."""
    predictors = release.schema.predictors
    regions, group = np.unique(release.regions.regions_of([rows[name] for name in predictors]), return_inverse=True)
    middles = [
        _range_points(column, side)[side.number(regions)]
        for column, side in zip(predictors.values(), release.sides, strict=True)
    ]
    return np.concatenate(middles, axis=1)[group]


def _leaf_points(column: Predictor) -> Floats:
    if isinstance(column, Categorical) and column.leaves <= MOST_INDICATORS:
        return np.eye(column.leaves) / math.sqrt(2)
    return np.arange(column.leaves)[:, None] / max(column.leaves - 1, 1)


def _range_points(column: Predictor, side: Sides) -> Floats:
    """The middle of each range: the mean of its leaves."""
    points = _leaf_points(column)[side.order]
    before = np.concatenate([np.zeros((1, points.shape[1])), np.cumsum(points, axis=0)])
    lows, highs = side.ranges[:, 0], side.ranges[:, 1]
    return np.asarray((before[highs] - before[lows]) / (highs - lows)[:, None])
