"""Counting a table of codes in memory with NumPy: the engine for whatever fits.

Each column is read once per tally, in blocks that stay in the cache. Rows remember the node of the tree on which they
stood, so a tree that grew by a level costs them one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Breakdown, Counts, Integers, Tally
from sfumato.partition import Codes
from sfumato.tree import NONE, Stage, Tree

BLOCK = 1 << 16
SORTED_BLOCK = 1 << 20
DENSE = 1 << 18
"""Up to so many cells are counted as an array; more are found by sorting, whose cost does not grow with them."""

Rows = slice | NDArray[np.intp]
Block = tuple[Rows, Integers, Integers]
"""Some rows that are asked for, with their places and classes."""
Cells = tuple[Integers, Integers]
"""Cells that hold someone, in increasing order, and how many each holds."""


class MemoryEngine:
    """Coded columns, one or two bytes per value, and a class code per row."""

    def __init__(self, columns: Sequence[Codes], classes: Codes) -> None:
        """Hold the columns; `classes` has one code per row, all 0 for a table without a class."""
        self._columns = tuple(columns)
        self._classes = classes
        self._located: tuple[Stage, NDArray[np.int32]] | None = None

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "MemoryEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one pass."""
        sizes = {attribute: tally.places * tally.leaves(attribute) * tally.classes for attribute in tally.attributes}
        dense = {attribute: np.zeros(size, np.int64) for attribute, size in sizes.items() if size <= DENSE}
        by_place = np.zeros(tally.places * tally.classes, np.int64)
        for block in self._blocks(tally, BLOCK):
            _, places, labels = block
            _add(by_place, places * tally.classes + labels)
            for attribute, cells in dense.items():
                _add(cells, self._cells(tally, attribute, block))
        held = {attribute: _held(cells) for attribute, cells in dense.items()}
        held |= self._sorted(tally, {attribute: size for attribute, size in sizes.items() if size > DENSE})
        return Counts(
            by_place.reshape(tally.places, tally.classes),
            {attribute: _breakdown(tally, attribute, *held[attribute]) for attribute in tally.attributes},
        )

    def _blocks(self, tally: Tally, size: int) -> Iterator[Block]:
        """Give the rows that the tally asks for, block by block."""
        nodes = self._nodes(tally.partition) if isinstance(tally.partition, Tree) else None
        for start in range(0, len(self._classes), size):
            rows: Rows = slice(start, start + size)
            if nodes is None:
                columns = [column[rows] for column in self._columns]
                places = tally.partition.locate(columns, len(self._classes[rows]))
            else:
                places = tally.place_of_node[nodes[rows]]
                asked = np.flatnonzero(places != NONE)
                if len(asked) < len(places):
                    rows, places = asked + start, places[asked]
            yield rows, places.astype(np.int64, copy=False), self._classes[rows].astype(np.int64)

    def _cells(self, tally: Tally, attribute: int, block: Block) -> Integers:
        """Number the cells (place, leaf, class) of a block's rows."""
        rows, places, labels = block
        return (places * tally.leaves(attribute) + self._columns[attribute][rows]) * tally.classes + labels

    def _sorted(self, tally: Tally, sizes: Mapping[int, int]) -> dict[int, Cells]:
        """Give by attribute, of so many cells, those that hold someone, and how many each holds, by sorting."""
        pieces: dict[int, list[Cells]] = {attribute: [] for attribute in sizes}
        for block in self._blocks(tally, SORTED_BLOCK) if pieces else ():
            for attribute, found in pieces.items():
                kind = np.int32 if sizes[attribute] < 2**31 else np.int64
                cells = self._cells(tally, attribute, block).astype(kind, copy=False)
                found.append(np.unique(cells, return_counts=True))
        return {attribute: _summed(found) for attribute, found in pieces.items()}

    def _nodes(self, tree: Tree) -> NDArray[np.int32]:
        """Give the leaf that holds each row: from the root, or onwards from where the rows stood."""
        if self._located is None or not tree.refines(self._located[0]):
            self._located = (tree.stage, tree.locate(self._columns, len(self._classes)))
        stage, nodes = self._located
        if stage is not tree.stage:
            self._located = None
            for start in range(0, len(nodes), BLOCK):
                rows = slice(start, start + BLOCK)
                block = [column[rows] for column in self._columns]
                while tree.descend(block, nodes[rows], stage.nodes):
                    pass
            self._located = (tree.stage, nodes)
        return nodes


def _add(counts: Integers, cells: Integers) -> None:
    """Count the rows of a block into their cells, touching no more cells than the block can fill."""
    if len(counts) <= 4 * BLOCK:
        counts += np.bincount(cells, minlength=len(counts))
    else:
        np.add.at(counts, cells, 1)


def _held(cells: Integers) -> Cells:
    """Give the cells of an array that hold someone, and how many."""
    held = np.flatnonzero(cells)
    return held, cells[held]


def _summed(pieces: Sequence[Cells]) -> Cells:
    """Put the cells of blocks together; in several blocks they may appear several times, and their counts are added."""
    cells = np.concatenate([np.empty(0, np.int64), *(cells for cells, _ in pieces)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in pieces)])
    if len(pieces) <= 1:
        return cells, counts
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    first = np.flatnonzero(np.diff(cells, prepend=NONE))
    return cells[first], np.add.reduceat(counts[order], first) if len(first) else counts


def _breakdown(tally: Tally, attribute: int, cells: Integers, counts: Integers) -> Breakdown:
    """List cells (place, leaf, class) by place and leaf, with a column for each class."""
    keys, labels = np.divmod(cells.astype(np.int64, copy=False), tally.classes)
    first = np.diff(keys, prepend=NONE) != 0
    table = np.zeros((int(first.sum()), tally.classes), np.int64)
    table[np.cumsum(first) - 1, labels] = counts
    return Breakdown(tally.leaves(attribute), keys[first], table)
