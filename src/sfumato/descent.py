"""From a split box to the child that holds a code: one look into a table, or one search where that would be too long.

Apart from the tree because it is about finding, not about what a tree is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST_ROW = 1 << 22
"""Up to so many leaves of split nodes, the child that holds each is kept ready."""

Nodes = NDArray[np.int32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Children:
    """Children by parent and leaf. Those of one family are side by side and fill their parent along one attribute.

    So all of them, in their order, are a row of ranges: those of one parent shifted to begin where those of the parent
    before end. A short row is kept leaf by leaf; in a long one a place is searched for.
    """

    first: int
    """the number of the first child; the others follow"""
    shifts: Integers
    """for each node, where its children begin in the row, less the first leaf that they hold"""
    ends: Integers
    """where each child's range ends in the row"""
    by_leaf: Nodes | None

    @classmethod
    def of(cls, parents: Nodes, lows: Nodes, highs: Nodes, first: int) -> Children:
        """Lay out the nodes from a number on."""
        families, starts, widths = parents[first:], lows[first:], (highs - lows)[first:].astype(np.int64)
        ends = np.cumsum(widths)
        opens = np.flatnonzero(np.diff(families, prepend=-1))
        shifts = np.zeros(len(parents), np.int64)
        shifts[families[opens]] = (ends - widths)[opens] - starts[opens]
        if len(ends) and ends[-1] > LONGEST_ROW:
            return cls(first, shifts, ends, None)
        return cls(first, shifts, ends, np.repeat(np.arange(first, len(parents), dtype=np.int32), widths))

    def find(self, parents: Nodes, codes: NDArray[np.unsignedinteger]) -> Nodes:
        """Give the child of each parent that holds each code."""
        places = self.shifts.take(parents) + codes
        if self.by_leaf is not None:
            return self.by_leaf.take(places)
        return (np.searchsorted(self.ends, places, side="right") + self.first).astype(np.int32)
