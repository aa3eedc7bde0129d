"""Counting by sorting: which of very many cells hold someone, and how many, at a cost that does not grow with them."""

from __future__ import annotations

import numpy as np

from sfumato.counts.tally import Integers

PENDING = 1 << 22
"""So many cells are kept before they are put together."""


class SortedCells:
    """Cells that were seen and how many records each holds; the same cell may be added again and again."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._cells = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._pieces: list[tuple[Integers, Integers]] = []
        self._pending = 0

    def add(self, cells: Integers, weights: Integers | None) -> None:
        """Count rows, each once or as often as its weight says, in their cells."""
        piece = np.unique(cells, return_counts=True) if weights is None else _summed(cells, weights)
        self._pieces.append(piece)
        self._pending += len(piece[0])
        if self._pending > max(PENDING, len(self._cells)):
            self._put_together()

    @property
    def held(self) -> int:
        """Tell how many different cells were put together so far, at least."""
        return len(self._cells)

    def found(self) -> tuple[Integers, Integers]:
        """Give the cells that hold someone, in increasing order, and how many each holds."""
        self._put_together()
        return self._cells, self._counts

    def _put_together(self) -> None:
        cells = np.concatenate([self._cells, *(cells for cells, _ in self._pieces)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._pieces)])
        self._pieces, self._pending = [], 0
        self._cells, self._counts = _summed(cells, counts)


def _summed(cells: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Add what belongs to the same cell."""
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[first], np.add.reduceat(counts[order], first) if len(first) else counts
