"""How much generalization hides, whatever the noise: measures of groups and of how many rows are in each.

They say nothing about counts; a release is to be judged by its answers, too. The rows are the true ones; where groups
overlap, so that a row has no group, they are the published ones (`sizes_of`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Categorical
from sfumato.boxes import Boxes, Regions
from sfumato.partition import Codes, Indices
from sfumato.release.regions import Sides, regions_of, sides_of
from sfumato.release.release import Release
from sfumato.schema import Predictor

Floats = NDArray[np.float64]


def discernibility(partition: Regions, columns: Sequence[Codes]) -> int:
    """Give the discernibility of rows in their groups.

    >>> from sfumato.partition import Grid
    >>> discernibility(Grid(((0, 2, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    10
    """
    return discernibility_of(_sizes(partition, columns))


def certainty_penalty(partition: Regions, columns: Sequence[Codes]) -> float:
    """Give NCP of rows in their groups.

    >>> from sfumato.partition import Grid
    >>> certainty_penalty(Grid(((0, 2, 3, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    0.375
    """
    return certainty_penalty_of(partition, _sizes(partition, columns))


def sizes_of(release: Release, columns: Sequence[Codes], rows: int) -> Indices:
    """Count the true rows in each group; where groups overlap, the published ones. Without attributes all are alike."""
    if not columns:
        return np.array([rows])
    if isinstance(release.partition, Boxes):
        return np.asarray(release.counts.counts.sum(axis=1))
    return _sizes(release.partition, columns)


def _sizes(partition: Regions, columns: Sequence[Codes]) -> Indices:
    return np.bincount(regions_of(partition, columns), minlength=partition.regions)


def discernibility_of(sizes: Indices) -> int:
    """Give the sum of squared group sizes: every row pays the number of rows that look like it (DiffMulti, eq. 4)."""
    return int((sizes**2).sum())


def certainty_penalty_of(partition: Regions, sizes: Indices) -> float:
    """Give NCP, the average share of its domain that a generalized value covers: 0 if a leaf (DiffMulti, eq. 5 and 7).

    Numeric ranges are measured in cells of their grid. All attributes weigh the same, so it lies between 0 and 1; a
    table without rows or attributes pays nothing.
    """
    return _average(partition, sizes, [_penalties(sides_of(partition, at)) for at in range(len(partition.shape))])


def precision_of(columns: Sequence[Predictor], partition: Regions, sizes: Indices) -> float:
    """Give 1 - the average height to which values are generalized, each as a share of the way to the root (Sweeney).

    A table without rows or attributes is precise.
    """
    heights = [heights_of(column, sides_of(partition, at)) for at, column in enumerate(columns)]
    return 1.0 - _average(partition, sizes, heights)


def heights_of(column: Predictor, side: Sides) -> Floats:
    """Give the height of each range: 0 for a leaf, 1 for the root.

    A group of categories is as high as the lowest value of the taxonomy that holds all of it, in shares of the longest
    way from the root down through that value. Numbers have no taxonomy: an interval is as high as in one that halves
    the grid again and again, log(width) / log(leaves).
    """
    widths = np.diff(side.ranges, axis=1)[:, 0]
    if not isinstance(column, Categorical):
        return np.asarray(np.log(widths) / np.log(max(column.leaves, 2)))
    groups = [side.order[lo:hi] for lo, hi in side.ranges.tolist()]
    return np.array([0.0 if len(one) == 1 else _height(column, int(one.min()), int(one.max())) for one in groups])


def _height(column: Categorical, first: int, last: int) -> float:
    holding = [node for node in column.tree.nodes if node.lo <= first and last < node.hi]
    lowest = max(holding, key=lambda node: node.depth)
    return 1.0 - lowest.depth / max(node.depth for node in lowest.walk())


def _penalties(side: Sides) -> Floats:
    widths = np.diff(side.ranges, axis=1)[:, 0]
    return np.where(widths == 1, 0.0, widths / len(side.order))


def _average(partition: Regions, sizes: Indices, lost: Sequence[Floats]) -> float:
    """Average what each attribute's ranges lose over all rows and attributes."""
    held = np.flatnonzero(sizes)
    losses = [one[sides_of(partition, attribute).number(held)] @ sizes[held] for attribute, one in enumerate(lost)]
    return float(np.sum(losses) / max(len(lost) * sizes.sum(), 1))
