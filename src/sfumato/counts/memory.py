"""Counting a table of codes in memory with NumPy: the engine for whatever fits.

Rows are visited in blocks that stay in the cache, once per tally, whatever the number of breakdowns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Counts, Integers, Tally
from sfumato.partition import Codes

BLOCK = 1 << 16


class MemoryEngine:
    """Coded columns, one or two bytes per value, and a class code per row."""

    def __init__(self, columns: Sequence[Codes], classes: Codes) -> None:
        """Hold the columns; `classes` has one code per row, all 0 for a table without a class."""
        self._columns = tuple(columns)
        self._classes = classes

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "MemoryEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count regions and breakdowns in one pass."""
        regions, classes = tally.partition.regions, tally.classes
        by_region = np.zeros(regions * classes, np.int64)
        by_leaf = {
            attribute: np.zeros(regions * tally.leaves(attribute) * classes, np.int64) for attribute in tally.attributes
        }
        for start in range(0, len(self._classes), BLOCK):
            rows = slice(start, start + BLOCK)
            block = [column[rows] for column in self._columns]
            label = self._classes[rows].astype(np.int64)
            region = tally.partition.locate(block)
            _add(by_region, region * classes + label)
            for attribute, cells in by_leaf.items():
                _add(cells, (region * tally.leaves(attribute) + block[attribute]) * classes + label)
        return Counts(
            by_region.reshape(regions, classes),
            {attribute: cells.reshape(regions, -1, classes) for attribute, cells in by_leaf.items()},
        )


def _add(counts: Integers, cells: NDArray[np.int64]) -> None:
    """Count the rows of a block into their cells, touching no more cells than the block can fill."""
    if len(counts) <= 4 * BLOCK:
        counts += np.bincount(cells, minlength=len(counts))
    else:
        np.add.at(counts, cells, 1)
