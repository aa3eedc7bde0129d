"""How well one can predict the class from a release: three ways to learn from it, all tested on raw rows.

The papers train an entropy decision tree on the generalized groups. Synthetic records allow what works on the table
itself, and the regions are a classifier already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sfumato.attributes import Categorical
from sfumato.partition import Indices
from sfumato.release.projection import Nonnegative
from sfumato.release.regions import Sides, regions_of
from sfumato.release.release import Release
from sfumato.schema import Schema

Codes = Mapping[str, NDArray[Any]]
Features = NDArray[np.float32]
GroupLearner = Literal["pruned tree", "ID3", "linear SVM"]

PRUNING = 1e-4
"""A split of groups must lower the weighted entropy of the whole table by this many bits."""
MOST_INDICATORS = 256
"""A category of an attribute with more leaves than this is its code: neighbours in the taxonomy are near each other."""


def accuracy(
    release: Release, test: Codes, how: Nonnegative = "projection", learner: GroupLearner = "pruned tree"
) -> float:
    """Give the share of coded test rows whose class is predicted by what learnt from the release's groups.

    As in the papers, the groups are weighted by their counts, and a test row looks like the group in which it falls.
    """
    people = release.estimates.people(how)
    groups, classes = np.nonzero(people)
    if len(groups) == 0:
        return _share_of_first_class(release, test)
    if len(np.unique(classes)) == 1:
        return _share_right(release, test, classes[:1])
    features = group_features(release)
    if learner == "linear SVM":
        features /= np.maximum(np.abs(features).max(axis=0), 1)
    model = _of_groups(learner).fit(features[groups], classes, sample_weight=people[groups, classes])
    held = regions_of(release.partition, [test[name] for name in release.schema.predictors])
    return _share_right(release, test, model.predict(features)[held])


def _of_groups(learner: GroupLearner) -> Any:
    if learner == "linear SVM":
        return LinearSVC(dual=False, random_state=0)
    return entropy_tree(PRUNING if learner == "pruned tree" else 0.0)


def accuracy_of_samples(release: Release, test: Codes, how: Nonnegative = "projection", seed: int = 0) -> float:
    """Give the share of coded test rows whose class a tree trained on synthetic records predicts."""
    drawn = release.sample_codes(seed=seed, how=how)
    classes = drawn[str(release.schema.target)]
    if len(classes) == 0:
        return _share_of_first_class(release, test)
    tree = entropy_tree(chance(release.schema, len(classes))).fit(record_features(release.schema, drawn), classes)
    return _share_right(release, test, tree.predict(record_features(release.schema, test)))


def accuracy_of_regions(release: Release, test: Codes) -> float:
    """Give the share of coded test rows whose class is the most frequent one in their region."""
    return _share_right(release, test, release.classify_codes(test))


def entropy_tree(pruning: float) -> DecisionTreeClassifier:
    """Make a tree that splits by entropy and is pruned where a split is worth less."""
    return DecisionTreeClassifier(criterion="entropy", ccp_alpha=pruning, random_state=0)


def chance(schema: Schema, rows: int) -> float:
    """Give the bits per row that a split of records must be worth: more than the best of m that mean nothing.

    Of a split that means nothing, twice the gain in nats is chi-square with one degree of freedom, which exceeds
    2 ln m with a probability of less than 1 / m: of m such splits one at most is expected to gain log2 m bits.
    Records of a region are drawn regardless of their class, so almost all splits mean nothing.
    """
    splits = sum(leaves - 1 for leaves in schema.shape)
    return math.log2(max(splits, 2)) / rows


def _share_right(release: Release, test: Codes, predicted: Indices) -> float:
    return float((predicted == np.asarray(test[str(release.schema.target)])).mean())


def _share_of_first_class(release: Release, test: Codes) -> float:
    return _share_right(release, test, np.zeros(1, np.int64))


def group_features(release: Release) -> Features:
    """Describe every region to a learner by its ranges; an undivided attribute is a constant."""
    regions = np.arange(release.partition.regions)
    blocks = [
        (_blocks_covered(side) if isinstance(column, Categorical) else side.ranges)[side.number(regions)]
        for column, side in zip(release.schema.predictors.values(), release.sides, strict=True)
    ]
    return np.concatenate(blocks, axis=1, dtype=np.float32)


def _blocks_covered(side: Sides) -> NDArray[np.float64]:
    """Give the share of each categorical range that lies in each block between neighbouring borders.

    The ranges of a grid are the blocks themselves: then these are indicators. In a tree, where Engineers may stand
    beside White-collars, they tell both what a range is and what it is part of.
    """
    borders = np.unique(side.ranges)
    lows, highs = side.ranges[:, :1], side.ranges[:, 1:]
    covered = np.clip(np.minimum(highs, borders[1:]) - np.maximum(lows, borders[:-1]), 0, None)
    return np.asarray(covered / (highs - lows))


def record_features(schema: Schema, rows: Mapping[str, NDArray[np.integer]]) -> Features:
    """Write records' numeric codes as they are and their categories as indicators, where there are not too many."""
    blocks = [
        np.eye(column.leaves, dtype=np.float32)[rows[name]]
        if isinstance(column, Categorical) and column.leaves <= MOST_INDICATORS
        else rows[name][:, None]
        for name, column in schema.predictors.items()
    ]
    return np.concatenate(blocks, axis=1, dtype=np.float32)
