"""Random range-count queries, and how far a release's answers are from the truth.

A query restricts a few attributes, each to a contiguous range of its leaves; the error is relative with a floor under
the truth, so that near-empty ranges do not decide the average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.release.release import Release
from sfumato.schema import Schema

Codes = Mapping[str, NDArray[np.integer]]
Floats = NDArray[np.float64]

QUERIES = 1000
"""So many random range counts are asked of a release."""
SMALL, LARGE = 0.01, 0.1
"""A query is small if it holds less than this share of the rows, and large if it holds more than that."""
MOST_AT_ONCE = 2**24
"""So many weights of leaves are held at a time, whatever the grids."""
FLOOR = 0.001
"""The sanity bound: a truth below this share of the rows counts as this share."""


@dataclass(frozen=True)
class RangeQuery:
    """A conjunction of ranges of leaf codes, by attribute."""

    ranges: Mapping[str, tuple[int, int]]

    def weights(self, schema: Schema) -> dict[str, Floats]:
        """Write the ranges as weights of leaves; one of the class is of class values."""
        leaves = {name: np.arange(leaves_of(schema, name)) for name in self.ranges}
        return {
            name: ((leaves[name] >= lo) & (leaves[name] < hi)).astype(np.float64)
            for name, (lo, hi) in self.ranges.items()
        }

    def truth(self, rows: Codes) -> int:
        """Count the coded rows inside."""
        inside = np.ones(len(next(iter(rows.values()))), np.bool_)
        for name, (lo, hi) in self.ranges.items():
            inside &= (rows[name] >= lo) & (rows[name] < hi)
        return int(inside.sum())


def leaves_of(schema: Schema, name: str) -> int:
    """Give the number of leaves of an attribute, or of class values."""
    return len(schema.classes) if name == schema.target else schema.predictors[name].leaves


def random_queries(schema: Schema, count: int, seed: int, attributes: tuple[int, int] = (2, 4)) -> list[RangeQuery]:
    """Draw queries on a random number of random attributes, each range between two random borders of its leaves."""
    rng = np.random.default_rng(seed)
    names = [name for name, column in schema.predictors.items() if column.leaves > 1]
    queries = []
    for _ in range(count):
        size = min(int(rng.integers(attributes[0], attributes[1] + 1)), len(names))
        chosen = rng.choice(len(names), size, replace=False)
        queries.append(RangeQuery({names[one]: _range(schema.predictors[names[one]].leaves, rng) for one in chosen}))
    return queries


def _range(leaves: int, rng: np.random.Generator) -> tuple[int, int]:
    lo, hi = sorted(rng.choice(leaves + 1, 2, replace=False).tolist())
    return int(lo), int(hi)


def relative_errors(release: Release, queries: Sequence[RangeQuery], rows: Codes, size: int) -> Floats:
    """Ask a release, and give the error of each answer."""
    truths = np.array([query.truth(rows) for query in queries], np.float64)
    most = max(1, MOST_AT_ONCE // max(sum(release.schema.shape), 1))
    parts = [queries[start : start + most] for start in range(0, len(queries), most)]
    answers = np.concatenate(
        [np.zeros(0), *(release.count_many([one.weights(release.schema) for one in part]).values for part in parts)]
    )
    return floored_errors(answers, truths, size)


def floored_errors(answers: Floats, truths: Floats, rows: int) -> Floats:
    """Give |answer - truth| / max(truth, floor), the floor being a share of the rows."""
    return np.asarray(np.abs(answers - truths) / np.maximum(truths, FLOOR * rows))


@dataclass(frozen=True)
class QueryErrors:
    """The relative errors of queries of one size."""

    size: str
    queries: int
    mean: float
    median: float


def errors_by_size(release: Release, queries: Sequence[RangeQuery], rows: Codes, size: int) -> list[QueryErrors]:
    """Give the relative errors of all queries, of the small and of the large ones; a size that none has is left out."""
    errors = relative_errors(release, queries, rows, size)
    shares = np.array([query.truth(rows) for query in queries]) / max(size, 1)
    kinds = {"all": shares >= 0, "small (< 1 %)": shares < SMALL, "large (> 10 %)": shares > LARGE}
    return [
        QueryErrors(name, int(of.sum()), float(errors[of].mean()), float(np.median(errors[of])))
        for name, of in kinds.items()
        if of.any()
    ]
