"""How much generalization hides, whatever the noise: measures of a partition on the true rows.

Both are the papers' and say nothing about counts; a release is to be judged by its answers, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.boxes import Regions
from sfumato.partition import Codes
from sfumato.release.regions import regions_of, sides_of


def discernibility(partition: Regions, columns: Sequence[Codes]) -> int:
    """Give the sum of squared group sizes: every row pays the number of rows that look like it (DiffMulti, eq. 4).

    >>> from sfumato.partition import Grid
    >>> discernibility(Grid(((0, 2, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    10
    """
    sizes = np.bincount(regions_of(partition, columns))
    return int((sizes**2).sum())


def certainty_penalty(partition: Regions, columns: Sequence[Codes]) -> float:
    """Give NCP, the average share of its domain that a generalized value covers: 0 if a leaf (DiffMulti, eq. 5 and 7).

    Numeric ranges are measured in cells of their grid. All attributes weigh the same, so it lies between 0 and 1; a
    table without rows or attributes pays nothing.

    >>> from sfumato.partition import Grid
    >>> certainty_penalty(Grid(((0, 2, 3, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    0.375
    """
    sizes = np.bincount(regions_of(partition, columns), minlength=partition.regions)
    penalties = [_penalties(partition, attribute) @ sizes for attribute in range(len(columns))]
    return float(np.sum(penalties) / max(len(columns) * sizes.sum(), 1))


def _penalties(partition: Regions, attribute: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    side = sides_of(partition, attribute)
    widths = np.diff(side.ranges, axis=1)[:, 0]
    penalties = np.where(widths == 1, 0.0, widths / partition.shape[attribute])
    return penalties[side.number(np.arange(partition.regions))]
