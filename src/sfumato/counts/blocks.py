"""The rows of a table block by block, each with the cell that it counts in: how the memory engine walks a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Integers, Tally
from sfumato.partition import Codes, Grid
from sfumato.tree import NONE


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows that are asked for: those of a stretch of the table, or some of them."""

    stretch: slice
    asked: NDArray[np.intp] | None
    """which rows of the stretch; all, if not given"""
    cells: Integers
    """place and class of each, as one number"""

    def take(self, column: NDArray[Any]) -> NDArray[Any]:
        """Give what a column says of these rows."""
        rows = column[self.stretch]
        return rows if self.asked is None else rows.take(self.asked)


@dataclass(frozen=True, eq=False)
class GridRows:
    """Every row, in the region of a grid that holds it."""

    grid: Grid
    columns: Sequence[Codes]
    classes: Codes
    number: int
    """how many classes there are"""

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.grid.regions * self.number

    def block(self, stretch: slice) -> Block:
        """Give the rows of a stretch."""
        labels = self.classes[stretch]
        places = self.grid.locate([column[stretch] for column in self.columns], len(labels))
        places *= self.number
        places += labels
        return Block(stretch, None, places)


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows that stand on some leaves of a tree."""

    nodes: NDArray[np.int32]
    """the leaf on which each row stands"""
    classes: Codes
    cells: int
    cell_of_node: Integers
    """the first cell of each node; NONE for those that are not asked for"""
    whole: bool
    """all leaves are asked for"""

    @classmethod
    def of(cls, tally: Tally, counted: Integers, nodes: NDArray[np.int32], classes: Codes) -> TreeRows:
        """Take the rows in some places of a tally, numbered anew in their order."""
        assert tally.leaves_asked is not None
        cell_of_node = np.full(len(tally.place_of_node), NONE, np.int64)
        cell_of_node[tally.leaves_asked[counted]] = np.arange(len(counted)) * tally.classes
        whole = len(counted) == tally.partition.regions
        return cls(nodes, classes, len(counted) * tally.classes, cell_of_node, whole)

    def block(self, stretch: slice) -> Block:
        """Give the rows of a stretch that are asked for."""
        cells = self.cell_of_node.take(self.nodes[stretch])
        if self.whole:
            cells += self.classes[stretch]
            return Block(stretch, None, cells)
        asked = np.flatnonzero(cells != NONE)
        cells = cells.take(asked)
        cells += self.classes[stretch].take(asked)
        return Block(stretch, asked, cells)


def add_block(counts: Integers, block: Block, cells: int, column: Codes | None, weights: Integers | None) -> None:
    """Count the rows of a block by the leaf of a column, if there is one, and their cell, of which there are so many.

    With the leaf first, place and class are one number that is the same for all attributes.
    """
    into = block.cells
    if column is not None:
        into = np.multiply(block.take(column), cells, dtype=np.int64)
        into += block.cells
    _add(counts, into, None if weights is None else block.take(weights))


def _add(counts: Integers, cells: Integers, weights: Integers | None) -> None:
    """Count rows into their cells, in whole numbers, touching no more cells than a few for each row."""
    if weights is None and len(counts) <= 4 * len(cells):
        counts += np.bincount(cells, minlength=len(counts))
    else:
        np.add.at(counts, cells, 1 if weights is None else weights)
