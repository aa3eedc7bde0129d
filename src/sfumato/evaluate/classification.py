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


def _parts_of_groups(release: Release, groups: Indices) -> list[Indices]:
    return [release.partition.parts_at(attribute, groups) for attribute in range(len(release.partition.cuts))]


def _parts_of_rows(release: Release, rows: Codes) -> list[Indices]:
    return [release.partition.part_of(index)[rows[name]] for index, name in enumerate(release.schema.predictors)]


def _features(release: Release, parts: list[Indices]) -> NDArray[np.float32]:
    """Write numeric parts as their rank and categorical ones as indicators; an undivided attribute is a constant."""
    blocks = [
        np.eye(number, dtype=np.float32)[part] if isinstance(column, Categorical) else part[:, None].astype(np.float32)
        for column, part, number in zip(release.schema.predictors.values(), parts, release.partition.parts, strict=True)
    ]
    return np.concatenate(blocks, axis=1)
