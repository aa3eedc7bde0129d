"""Count blocks of coded rows: the one kernel, wherever the blocks lie.

A `Round` says in plain arrays what one pass does with every block: how rows step down a tree, in which cell each lies,
by which attributes cells are broken down, and which marginals are counted beside them. `Sums` are what some of the
blocks hold; sums of different blocks add up. So threads, processes and executors count alike, each some of the blocks,
and a round is one pass over all of them, whatever it asks.

Nothing is needed here but NumPy: this module travels to the executors of a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Codes, Integers
from sfumato.geometry.walk import Nodes, Walk

BLOCK = 1 << 16
"""So many rows are a block: their codes, and what is worked out from them, stay in the cache."""
ALIGNED = 8
"""Each array of a packed block begins at a multiple of this."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows side by side: a column of codes for each attribute, a class for each row."""

    columns: tuple[Codes, ...]
    classes: Codes
    weights: Integers | None = None
    """how many records each row stands for; one, if not given"""

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.classes)

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Block(...)"

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All that it holds."""
        return (*self.columns, self.classes, *(() if self.weights is None else (self.weights,)))

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return sum(array.nbytes for array in self.arrays)

    def packed(self) -> bytes:
        """Write it as bytes: how many rows, whether they have weights, and the arrays one after the other."""
        head = np.array([len(self), self.weights is not None], np.int64).tobytes()
        padded = (one.tobytes() + bytes(-one.nbytes % ALIGNED) for one in self.arrays)
        return head + b"".join(padded)


@dataclass(frozen=True)
class Layout:
    """The types of a table's columns and of its classes, by which packed blocks are read again."""

    columns: tuple[str, ...]
    classes: str

    @classmethod
    def of(cls, block: Block) -> Layout:
        """The layout of a block."""
        return cls(tuple(one.dtype.str for one in block.columns), block.classes.dtype.str)

    def unpacked(self, data: Any) -> Block:
        """Read a block from bytes, without copying them."""
        rows, weighted = np.frombuffer(data, np.int64, 2).tolist()
        at, found = 2 * np.dtype(np.int64).itemsize, []
        for kind in (*self.columns, self.classes, *(["<i8"] if weighted else [])):
            array = np.frombuffer(data, kind, rows, at)
            found.append(array)
            at += array.nbytes + -array.nbytes % ALIGNED
        weights = found.pop() if weighted else None
        return Block(tuple(found[:-1]), found[-1], weights)


@dataclass(frozen=True, eq=False)
class GridCells:
    """The regions of a grid by class, as cells: each attribute that is cut adds its part to a region's number."""

    tables: tuple[tuple[int, Integers], ...]
    """for each attribute that is cut, what each of its leaves adds"""
    number: int
    """how many cells there are"""

    def find(self, block: Block) -> Integers:
        """The cell of every row."""
        cells = block.classes.astype(np.int64)
        for attribute, table in self.tables:
            cells += table.take(block.columns[attribute])
        return cells


@dataclass(frozen=True, eq=False)
class TreeCells:
    """Some ends of a tree by class, as cells."""

    of_node: Integers
    """the first cell of each node; NONE for those that are not asked for"""
    number: int
    """how many cells there are"""
    whole: bool
    """all ends are asked for"""


class Steps(NamedTuple):
    """How rows come to the ends of a tree: from the node on which they stood, or from the root."""

    walk: Walk
    number: int
    """how many steps"""
    grown: bool
    """they start where they stood; else at the root"""


class ByLeaf(NamedTuple):
    """A breakdown of the cells by an attribute."""

    attribute: int
    leaves: int
    dense: bool
    """all cells are held, else only those that hold someone"""


@dataclass(frozen=True, eq=False)
class Round:
    """What one pass does with every block."""

    cells: GridCells | TreeCells
    by_leaf: tuple[ByLeaf, ...] = ()
    marginals: tuple[GridCells, ...] = ()
    steps: Steps | None = None
    """for trees alone"""

    @property
    def held(self) -> int:
        """How many numbers the dense sums have."""
        leaves = 1 + sum(one.leaves for one in self.by_leaf if one.dense)
        return self.cells.number * leaves + sum(one.number for one in self.marginals)

    def located(self, block: Block, stood: Nodes | None) -> Nodes | None:
        """The nodes on which rows stand after their steps; None where there is no tree. `stood` is changed."""
        if self.steps is None:
            return None
        nodes = np.zeros(len(block), np.int32) if stood is None or not self.steps.grown else stood
        for _ in range(self.steps.number):
            self.steps.walk.step(block.columns, nodes)
        return nodes


@dataclass(frozen=True, eq=False)
class Sums:
    """What a round found in some blocks: of the cells, of each breakdown, then of each marginal."""

    parts: list[DenseSum | SparseSum]

    @classmethod
    def none(cls, asked: Round) -> Sums:
        """Begin a round."""
        cells = asked.cells.number
        by_leaf = [(DenseSum if one.dense else SparseSum).none(cells * one.leaves) for one in asked.by_leaf]
        return cls([DenseSum.none(cells), *by_leaf, *(DenseSum.none(one.number) for one in asked.marginals)])

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Sums(...)"

    def include(self, other: Sums) -> None:
        """Add what was found in other blocks."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.include(theirs)  # type: ignore[arg-type]

    def cut(self, number: int) -> list[Sums]:
        """Cut into so many pieces, each of some of the cells, that can be added up apart."""
        return [Sums(list(pieces)) for pieces in zip(*(part.cut(number) for part in self.parts), strict=True)]

    @classmethod
    def joined(cls, pieces: Sequence[Sums]) -> Sums:
        """Put pieces together again, in their order."""
        return cls([type(parts[0]).joined(parts) for parts in zip(*(one.parts for one in pieces), strict=True)])


def count(asked: Round, block: Block, nodes: Nodes | None, sums: Sums) -> None:
    """Count a block, whose rows stand on these nodes of the round's tree, into some sums.

    With the leaf as the first digit of a number, place and class are the other, which is the same for all attributes.
    """
    cells, rows = _placed(asked.cells, block, nodes)
    weights = _taken(block.weights, rows)
    parts = iter(sums.parts)
    next(parts).add(cells, weights)
    for one in asked.by_leaf:
        by_leaf = np.multiply(_taken(block.columns[one.attribute], rows), asked.cells.number, dtype=np.int64)
        by_leaf += cells
        next(parts).add(by_leaf, weights)
    for marginal in asked.marginals:
        next(parts).add(marginal.find(block), block.weights)


def _placed(
    asked: GridCells | TreeCells, block: Block, nodes: Nodes | None
) -> tuple[Integers, NDArray[np.intp] | None]:
    """The cells of the rows that are asked for, and which rows those are; None for all."""
    if isinstance(asked, GridCells):
        return asked.find(block), None
    assert nodes is not None
    cells = asked.of_node.take(nodes)
    if asked.whole:
        cells += block.classes
        return cells, None
    rows = np.flatnonzero(cells != NONE)
    cells = cells.take(rows)
    cells += block.classes.take(rows)
    return cells, rows


def _taken(column: Any, rows: NDArray[np.intp] | None) -> Any:
    return column if column is None or rows is None else column.take(rows)


@dataclass(frozen=True, eq=False)
class DenseSum:
    """How many records each cell holds, in whole numbers of 64 bits."""

    counts: Integers

    def __repr__(self) -> str:
        """Say nothing of what is counted."""
        return "DenseSum(...)"

    @classmethod
    def none(cls, cells: int) -> DenseSum:
        """Begin with nothing."""
        return cls(np.zeros(cells, np.int64))

    def add(self, cells: Integers, weights: Integers | None) -> None:
        """Count rows in their cells, each once or as often as its weight says, touching a few cells for each row."""
        if weights is None and len(self.counts) <= 4 * len(cells):
            np.add(self.counts, np.bincount(cells, minlength=len(self.counts)), out=self.counts)
        else:
            np.add.at(self.counts, cells, 1 if weights is None else weights)

    def include(self, other: DenseSum) -> None:
        """Add what others hold."""
        np.add(self.counts, other.counts, out=self.counts)

    def cut(self, number: int) -> list[DenseSum]:
        """Cut into so many pieces."""
        return [DenseSum(piece) for piece in np.array_split(self.counts, number)]

    @classmethod
    def joined(cls, pieces: Sequence[DenseSum]) -> DenseSum:
        """Put pieces together again."""
        return cls(np.concatenate([one.counts for one in pieces]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the cells that hold someone, where those are few."""
        cells = np.flatnonzero(self.counts)
        if 2 * len(cells) < len(self.counts):
            return _spread, (len(self.counts), cells, self.counts[cells])
        return DenseSum, (self.counts,)


def _spread(number: int, cells: Integers, counts: Integers) -> DenseSum:
    whole = DenseSum.none(number)
    whole.counts[cells] = counts
    return whole


PENDING = 1 << 22
"""So many cells are kept before they are put together."""


class SparseSum:
    """Which of very many cells hold someone, and how many: its cost does not grow with the number of cells."""

    def __init__(self, number: int, cells: Integers, counts: Integers) -> None:
        """Begin with some of so many cells, in increasing order."""
        self._number = number
        self._cells, self._counts = cells, counts
        self._pieces: list[tuple[Integers, Integers]] = []
        self._pending = 0

    @classmethod
    def none(cls, cells: int) -> SparseSum:
        """Begin with nothing."""
        return cls(cells, np.empty(0, np.int64), np.empty(0, np.int64))

    def add(self, cells: Integers, weights: Integers | None) -> None:
        """Count rows in their cells, each once or as often as its weight says."""
        self._take(*(np.unique(cells, return_counts=True) if weights is None else _summed(cells, weights)))

    def include(self, other: SparseSum) -> None:
        """Add what others hold."""
        self._take(*other.found())

    @property
    def held(self) -> int:
        """How many different cells were put together so far, at least."""
        return len(self._cells)

    def found(self) -> tuple[Integers, Integers]:
        """The cells that hold someone, in increasing order, and how many each holds."""
        self._put_together()
        return self._cells, self._counts

    def cut(self, number: int) -> list[SparseSum]:
        """Cut into so many pieces: the same cells are in the same piece of every sum."""
        cells, counts = self.found()
        borders = np.searchsorted(cells, [self._number * one // number for one in range(1, number)])
        pieces = zip(np.split(cells, borders), np.split(counts, borders), strict=True)
        return [SparseSum(self._number, *piece) for piece in pieces]

    @classmethod
    def joined(cls, pieces: Sequence[SparseSum]) -> SparseSum:
        """Put pieces together again."""
        cells, counts = zip(*(one.found() for one in pieces), strict=True)
        return cls(pieces[0]._number, np.concatenate(cells), np.concatenate(counts))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what was found."""
        return SparseSum, (self._number, *self.found())

    def _take(self, cells: Integers, counts: Integers) -> None:
        self._pieces.append((cells, counts))
        self._pending += len(cells)
        if self._pending > max(PENDING, len(self._cells)):
            self._put_together()

    def _put_together(self) -> None:
        if self._pieces:
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


WORTHWHILE = 4
"""Rows must become so many times fewer to be merged."""
SAMPLE = BLOCK
"""So many rows are tried first; a table of less than twice as many is counted quickly as it is."""


def merged(blocks: Iterable[Block], rows: int, sizes: Sequence[int], most: int) -> list[Block] | None:
    """Let one row, with a weight, stand for all that are alike; nothing, if more than so many rows would be left.

    `sizes` are the numbers of leaves of all attributes and of classes: the codes of a row are the digits of one number.
    """
    most = min(most, rows // WORTHWHILE)
    if rows < 2 * SAMPLE or math.prod(sizes) >= 2**63:
        return None
    found, first = SparseSum.none(math.prod(sizes)), None
    for block in blocks:
        numbers = _numbers(block, sizes)
        if first is None and len(np.unique(numbers)) * WORTHWHILE > len(numbers):
            return None
        first = first or block
        found.add(numbers, block.weights)
        if found.held > most:
            return None
    numbers, weights = found.found()
    if first is None or len(numbers) > most:
        return None
    return [
        _block(numbers[start : start + BLOCK], weights[start : start + BLOCK], sizes, first)
        for start in range(0, len(numbers), BLOCK)
    ]


def _numbers(block: Block, sizes: Sequence[int]) -> Integers:
    """Each row as one number, whose digits are its codes."""
    numbers = np.zeros(len(block), np.int64)
    for column, size in zip((*block.columns, block.classes), sizes, strict=True):
        numbers *= size
        numbers += column
    return numbers


def _block(numbers: Integers, weights: Integers, sizes: Sequence[int], like: Block) -> Block:
    """The digits of numbers, in the types of a block."""
    columns: list[Codes] = []
    for size, column in zip(reversed(sizes), reversed((*like.columns, like.classes)), strict=True):
        numbers, digits = np.divmod(numbers, size)
        columns.insert(0, digits.astype(column.dtype))
    return Block(tuple(columns[:-1]), columns[-1], weights)


def gathered(parts: Iterable[Sequence[Codes]]) -> Iterator[Block]:
    """Put coded rows, which come in parts of any length (the columns, then the classes), together to blocks."""
    held: list[list[Codes]] = []
    room = BLOCK
    for part in parts:
        for start in _starts(len(part[-1]), room):
            held.append([column[max(start, 0) : start + BLOCK] for column in part])
            room -= len(held[-1][-1])
            if not room:
                yield _joined(held)
                held, room = [], BLOCK
    if held:
        yield _joined(held)


def _starts(rows: int, room: int) -> range:
    """Where a part is cut, so that what comes first fills the room that is left; it begins before the part."""
    return range(room - BLOCK, rows, BLOCK)


def _joined(parts: Sequence[Sequence[Codes]]) -> Block:
    *columns, classes = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return Block(tuple(columns), classes)
