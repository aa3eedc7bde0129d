"""How well a classifier does that has learnt from the release: an entropy decision tree on the generalized records.

As in the papers: the tree is trained on groups weighted by their counts and tested on raw rows generalized by the
same cuts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from sfumato.attributes import Categorical
from sfumato.release.projection import Nonnegative, nonnegative
from sfumato.release.release import Release

Codes = Mapping[str, NDArray[np.unsignedinteger]]
Indices = NDArray[np.int64]

PRUNING = 1e-4
"""Cost-complexity pruning: a split must lower the weighted entropy of the whole table by this many bits."""


def accuracy(release: Release, test: Codes, how: Nonnegative = "projection") -> float:
    """Give the share of coded test rows whose class a tree trained on the release's groups predicts."""
    counts = nonnegative(release.counts.counts, how)
    groups, classes = np.nonzero(counts)
    target = np.asarray(test[str(release.schema.target)])
    if len(groups) == 0:
        return float((target == 0).mean())
    tree = DecisionTreeClassifier(criterion="entropy", ccp_alpha=PRUNING, random_state=0)
    tree.fit(_features(release, _parts_of_groups(release, groups)), classes, sample_weight=counts[groups, classes])
    predicted = tree.predict(_features(release, _parts_of_rows(release, test)))
    return float((predicted == target).mean())


def _parts_of_groups(release: Release, groups: Indices) -> dict[int, Indices]:
    grid = release.partition
    return {attribute: grid.parts_at(attribute, groups) for attribute in grid.split_attributes}


def _parts_of_rows(release: Release, rows: Codes) -> dict[int, Indices]:
    grid, names = release.partition, list(release.schema.predictors)
    return {attribute: grid.part_of(attribute)[rows[names[attribute]]] for attribute in grid.split_attributes}


def _features(release: Release, parts: Mapping[int, Indices]) -> NDArray[np.float32]:
    """Write numeric parts as their rank and categorical ones as indicators."""
    columns = list(release.schema.predictors.values())
    blocks = [
        np.eye(release.partition.parts[attribute], dtype=np.float32)[part]
        if isinstance(columns[attribute], Categorical)
        else part[:, None].astype(np.float32)
        for attribute, part in parts.items()
    ]
    size = len(next(iter(parts.values()))) if parts else 0
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((size, 1), np.float32)
