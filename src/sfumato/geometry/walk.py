"""Walk down a tree: move rows from the node on which they stand to the child that holds them.

A `Walk` is a tree in plain arrays of NumPy. It travels to the executors of a cluster, where nothing else of ours needs
to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Codes, Integers

LONGEST_ROW = 1 << 22
"""A row of `Children` up to this length is also kept leaf by leaf."""
BLOCK = 1 << 16
"""How many rows are moved at a time, so that their codes stay in the cache."""

Nodes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Walk:
    """One step down a tree, for rows all of whose steps lead to known children."""

    split_by: NDArray[np.int16]
    """the attribute that each node's children divide; NONE for an end"""
    children: Children

    def step(self, columns: Sequence[Codes], nodes: Nodes) -> bool:
        """Move rows that stand on a split node to the child that holds them, in place; return whether any moved."""
        moved = False
        for start in range(0, len(nodes), BLOCK):
            rows = slice(start, start + BLOCK)
            moved |= self._step([column[rows] for column in columns], nodes[rows])
        return moved

    def _step(self, columns: Sequence[Codes], nodes: Nodes) -> bool:
        """Move the rows of one block: read the code that decides about each, then look up its child."""
        along = self.split_by.take(nodes)
        rows = np.flatnonzero(along != NONE)
        if not len(rows):
            return False
        stood, along = nodes.take(rows), along.take(rows)
        codes = np.stack(columns).ravel().take(along * np.int64(len(nodes)) + rows)
        nodes[rows] = self.children.find(stood, codes)
        return True


@dataclass(frozen=True, eq=False)
class Children:
    """Finds the child of a node that holds a code.

    Children of one parent are side by side and fill it along one attribute. So all children, in their order, are a row
    of ranges: those of one parent are shifted to begin where those of the parent before end. A short row is kept leaf
    by leaf, and a child is looked up; in a long one it is searched for.
    """

    first: int
    """the number of the first child; the others follow"""
    shifts: Integers
    """for each node, where its children begin in the row, less the first leaf that they hold"""
    ends: Integers
    """where each child's range ends in the row"""
    by_leaf: Nodes | None
    """the child at each place of the row, if it is short"""

    @classmethod
    def of(cls, parents: Nodes, lows: Nodes, highs: Nodes, first: int) -> Children:
        """Lay out the nodes from number `first` on."""
        families, starts, widths = parents[first:], lows[first:], (highs - lows)[first:].astype(np.int64)
        ends = np.cumsum(widths)
        opens = np.flatnonzero(np.diff(families, prepend=-1))
        shifts = np.zeros(len(parents), np.int64)
        shifts[families[opens]] = (ends - widths)[opens] - starts[opens]
        if len(ends) and ends[-1] > LONGEST_ROW:
            return cls(first, shifts, ends, None)
        return cls(first, shifts, ends, np.repeat(np.arange(first, len(parents), dtype=np.int32), widths))

    def find(self, parents: Nodes, codes: NDArray[np.unsignedinteger]) -> Nodes:
        """The child of each parent that holds each code."""
        places = self.shifts.take(parents) + codes
        if self.by_leaf is not None:
            return self.by_leaf.take(places)
        return (np.searchsorted(self.ends, places, side="right") + self.first).astype(np.int32)
