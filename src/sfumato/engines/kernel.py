"""The parts of which counting in memory is made: rows in blocks and stretches, threads, and sorted cells.

Stretches of rows are shared among the cores; every thread has results of its own, to be added up. NumPy lets other
threads run while it copies, looks up and counts. `SortedCells` finds which of very many cells hold someone, and how
many, at a cost that does not grow with the number of cells.

`Families` spares counting: of the children of a place whose counts are known, the largest is the parent less the rest.
On a tree that grows level by level this spares more than half of the rows at every level. The counts are the same
integers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Codes, Integers
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Breakdown, Tally

Item = TypeVar("Item")
Result = TypeVar("Result")


def stretches(rows: int, size: int) -> list[slice]:
    """Cut rows into stretches of a size."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def cores() -> int:
    """Tell how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def in_shares(parts: Sequence[slice], work: Callable[[Sequence[slice]], Result], most: int) -> list[Result]:
    """Let at most so many threads do some of the parts each, and give what each found."""
    threads = max(1, min(cores(), most, len(parts)))
    if threads == 1:
        return [work(parts)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, [parts[thread::threads] for thread in range(threads)]))


def in_turns(items: Generator[Item, None, None], work: Callable[[Iterator[Item]], Result], most: int) -> list[Result]:
    """Let at most so many threads take the next of the items that come, in turns, and give what each found.

    If one of them fails, or the work is interrupted, nobody gets another item.
    """
    threads, turn = max(1, min(cores(), most)), Lock()

    def taken() -> Iterator[Item]:
        while True:
            with turn:
                item = next(items, None)
            if item is None:
                return
            yield item

    with ThreadPoolExecutor(threads) as pool:
        try:
            return [share.result() for share in [pool.submit(work, taken()) for _ in range(threads)]]
        finally:
            with turn:
                items.close()


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
    """The rows that stand on some ends of a tree."""

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
        assert tally.ends_asked is not None
        cell_of_node = np.full(len(tally.place_of_node), NONE, np.int64)
        cell_of_node[tally.ends_asked[counted]] = np.arange(len(counted)) * tally.classes
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


@dataclass(frozen=True, eq=False)
class Families:
    """The places of a tally: those to be counted, and those that follow from a parent and the counted siblings."""

    places: int
    counted: Integers
    derived: Integers
    """one child of each family"""
    parents: Integers
    """for each of these, the place of its parent in the earlier tally"""
    runs: Integers
    """where the siblings of one parent begin among the counted places"""
    families: Integers
    """which of these runs belong to the derived places, in their order"""

    @classmethod
    def none(cls, places: int) -> Families:
        """Nothing is known: everything must be counted."""
        nothing = np.empty(0, np.int64)
        return cls(places, np.arange(places), nothing, nothing, nothing, nothing)

    @classmethod
    def of(cls, tally: Tally, sizes: Integers, earlier: Tally) -> Families:
        """Find the children of places counted earlier, whose whole families are asked for; leave out the largest, by
        sizes that are theirs or are guessed: the counts are the same.

        Children of one parent have numbers side by side, so they are neighbours among the places.
        """
        tree, before = tally.partition, earlier.partition
        assert isinstance(tree, Tree)
        if not (isinstance(before, Tree) and tree.refines(before.stage) and tally.domain == earlier.domain):
            return cls.none(tally.places)
        parents = tree.parents[tally.ends_asked]
        starts = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
        asked, heads = np.diff(starts, append=len(parents)), parents[starts]
        known = np.full(len(tree) + 1, NONE)
        known[: len(before)] = earlier.place_of_node
        children = np.bincount(tree.parents[1:], minlength=len(tree) + 1)
        whole = (known[heads] != NONE) & (asked == children[heads]) & (heads != NONE)
        family = np.repeat(np.arange(len(starts)), asked)
        order = np.lexsort((-sizes, family))
        derived = order[starts[whole]] if len(starts) else np.empty(0, np.int64)
        counted = np.setdiff1d(np.arange(tally.places), derived, assume_unique=True)
        runs = np.flatnonzero(np.diff(family[counted], prepend=NONE))
        families = np.flatnonzero(whole[family[counted[runs]]]) if len(runs) else np.empty(0, np.int64)
        return cls(tally.places, counted, derived, known[heads[whole]], runs, families)

    def of_parents(self, earlier: Breakdown) -> Integers:
        """Give what was counted before in the parents of the derived places: parents x leaves x classes."""
        cells = earlier.take(self.parents)
        return cells.dense(len(self.parents)) if len(self.parents) else cells.counts[:, None]

    def completed(self, counts: Integers, parents: Integers | None) -> Integers:
        """Give the counts of all places from those of the counted, and from those that the parents had before."""
        full = np.empty((self.places, *counts.shape[1:]), np.int64)
        full[self.counted] = counts
        if len(self.derived):
            assert parents is not None
            siblings = np.add.reduceat(counts, self.runs, axis=0)[self.families]
            full[self.derived] = parents - siblings
        return full
