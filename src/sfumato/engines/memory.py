"""Count a table of codes in memory with NumPy.

Columns are read in blocks that stay in the cache, by as many threads as there are cores, each with counts of its own.
Rows remember the node of the tree on which they stood, so a tree that grew by a level costs them one step; and what
follows from the counts of the level before is not counted again (see `Families`). Equal rows become one row with a
weight, where that pays: many tables shrink a lot. Counts stay what they were, whole numbers of 64 bits.

`MemoryListing` is the engine behind exact counts: it can also list what occurs. The engine behind the meter is another
class, which has no such verb to be asked by mistake.

`StreamedRows` counts a tree while rows stream by, for engines that keep more rows than memory holds: one scan for all
that a round asks. A row is told by its number, under which the node on which it stood is kept. Of every family one
child is not counted but follows from the level before: the widest, as the tree says, so that a scan is planned before
any row is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers, row_keys
from sfumato.engines.kernel import (
    Block,
    Families,
    GridRows,
    SortedCells,
    TreeRows,
    add_block,
    in_shares,
    in_turns,
    stretches,
)
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Stage, Tree
from sfumato.privacy.tally import Breakdown, Combinations, Counts, Domain, Tally

BLOCK = 1 << 16
SORTED_BLOCK = 1 << 20
"""Rows counted at a time into few cells, and into so many that they leave the cache anyway or are sorted."""
WIDE = 1 << 17
DENSE = 1 << 21
"""More cells than the first are many; more than the second are not counted as an array but found by sorting."""
OWN = 1 << 25
"""The threads may have so many cells of their own, in all."""


class MemoryEngine:
    """Coded columns, one or two bytes per value, and a class code per row."""

    def __init__(self, columns: Sequence[Codes], classes: Codes, weights: Integers | None = None) -> None:
        """Hold the columns; `classes` has one code per row, all 0 for a table without a class.

        With weights, a row stands for so many records.
        """
        self._columns = tuple(columns)
        self._classes = classes
        self._weights = weights
        self._located: tuple[Stage, NDArray[np.int32]] | None = None
        self._last: tuple[Tally, Counts] | None = None

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "MemoryEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count the places, then by leaf those of them that do not follow from what is known."""
        every = Families.none(tally.places)
        (by_place,) = self._dense(tally, every, (None,), BLOCK)
        by_place = by_place.reshape(tally.places, tally.classes)
        families, known = every, self._known(tally)
        if known is not None:
            families = Families.of(tally, by_place.sum(axis=1), known[0])
        sizes = {one: tally.places * tally.leaves(one) * tally.classes for one in tally.attributes}
        few = [one for one, size in sizes.items() if size <= WIDE]
        many = [one for one, size in sizes.items() if WIDE < size <= DENSE]
        by_leaf = {one: self._sorted(tally, one) for one, size in sizes.items() if size > DENSE}
        for attributes, block in ((few, BLOCK), (many, SORTED_BLOCK)):
            for one, cells in zip(attributes, self._dense(tally, families, attributes, block), strict=True):
                counted = cells.reshape(tally.leaves(one), len(families.counted), tally.classes).swapaxes(0, 1)
                parents = known and families.of_parents(known[1].by_leaf[one])
                by_leaf[one] = Breakdown.of_dense(families.completed(counted, parents))
        counts = Counts(by_place, by_leaf)
        if tally.attributes:
            self._last = (tally, counts)
        return counts

    def _known(self, tally: Tally) -> tuple[Tally, Counts] | None:
        """Give the last answer, if it may say something about this question."""
        if self._last is None or not isinstance(tally.partition, Tree):
            return None
        return self._last if set(tally.attributes) <= set(self._last[0].attributes) else None

    def _rows(self, tally: Tally, families: Families) -> GridRows | TreeRows:
        """Give the rows to be counted, in their places."""
        if isinstance(tally.partition, Tree):
            return TreeRows.of(tally, families.counted, self._nodes(tally.partition), self._classes)
        return GridRows(tally.partition, self._columns, self._classes, tally.classes)

    def _dense(
        self, tally: Tally, families: Families, attributes: Sequence[int | None], block_size: int
    ) -> list[Integers]:
        """Count leaves x counted places x classes of some attributes; of none, places x classes."""
        if not attributes:
            return []
        rows = self._rows(tally, families)
        sizes = [rows.cells * (1 if one is None else tally.leaves(one)) for one in attributes]

        def count(parts: Sequence[slice]) -> list[Integers]:
            counts = [np.zeros(size, np.int64) for size in sizes]
            for part in parts:
                block = rows.block(part)
                for one, into in zip(attributes, counts, strict=True):
                    column = None if one is None else self._columns[one]
                    add_block(into, block, rows.cells, column, self._weights)
            return counts

        parts = stretches(len(self._classes), block_size)
        shares = in_shares(parts, count, OWN // max(sum(sizes), 1))
        return [sum(found[1:], found[0]) for found in zip(*shares, strict=True)]

    def _sorted(self, tally: Tally, attribute: int) -> Breakdown:
        """Count places x leaves x classes of an attribute by sorting."""
        rows = self._rows(tally, Families.none(tally.places))
        leaves = tally.leaves(attribute)
        found = SortedCells()
        for part in stretches(len(self._classes), SORTED_BLOCK):
            block = rows.block(part)
            places, labels = np.divmod(block.cells, tally.classes)
            places *= leaves
            places += block.take(self._columns[attribute])
            places *= tally.classes
            places += labels
            found.add(places, None if self._weights is None else block.take(self._weights))
        return Breakdown.of_cells(leaves, tally.classes, *found.found())

    def _nodes(self, tree: Tree) -> NDArray[np.int32]:
        """Give the leaf that holds each row: from the root, or onwards from where the rows stood."""
        located, self._located = self._located, None
        if located is None or not tree.refines(located[0]):
            nodes, known, steps = np.zeros(len(self._classes), np.int32), 1, int(tree.depths.max())
        else:
            (stage, nodes), known = located, located[0].nodes
            steps = len(tree.stages_since(stage))

        def descend(parts: Sequence[slice]) -> None:
            for part in parts:
                block = [column[part] for column in self._columns]
                for _ in range(steps):
                    tree.descend(block, nodes[part], known)

        if steps:
            in_shares(stretches(len(nodes), BLOCK), descend, len(nodes))
        self._located = (tree.stage, nodes)
        return nodes


class MemoryListing(MemoryEngine):
    """Coded columns that can be listed."""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "MemoryListing(...)"

    def combinations(self, grid: Grid, classes: int) -> Combinations:
        """List what occurs, by sorting."""
        parts = [grid.part_of(attribute)[column] for attribute, column in enumerate(self._columns)]
        keys = row_keys([*parts, self._classes], [*grid.parts, classes])
        _, rows, counts = np.unique(keys, return_index=True, return_counts=True)
        return Combinations(tuple(part[rows] for part in parts), self._classes[rows].astype(np.int64), counts)


STRETCH = 1 << 20
WORTHWHILE = 4
"""Rows must become so many times fewer."""
SAMPLE = 1 << 16
"""So many rows are tried first; a table of less than twice as many is counted quickly as it is."""


def merged(columns: Sequence[Codes], classes: Codes, domain: Domain) -> tuple[Sequence[Codes], Codes, Integers | None]:
    """Give the different rows and how often each occurs; or the rows as they are, and nothing, if that is as good."""
    radices = (*domain.shape, domain.classes)
    if len(classes) < 2 * SAMPLE or math.prod(radices) >= 2**63:
        return columns, classes, None
    table = (*columns, classes)
    rows, found = len(classes), SortedCells()
    first = np.unique(_numbers(table, radices, slice(0, SAMPLE)))
    if len(first) * WORTHWHILE > SAMPLE:
        return columns, classes, None
    for stretch in stretches(rows, STRETCH):
        found.add(_numbers(table, radices, stretch), None)
        if found.held * WORTHWHILE > rows:
            return columns, classes, None
    numbers, weights = found.found()
    different = _codes(numbers, radices, table)
    return different[:-1], different[-1], weights


def _numbers(table: Sequence[Codes], radices: Sequence[int], stretch: slice) -> Integers:
    """Give each row as one number, whose digits are its codes."""
    numbers = np.zeros(len(table[-1][stretch]), np.int64)
    for column, radix in zip(table, radices, strict=True):
        numbers *= radix
        numbers += column[stretch]
    return numbers


def _codes(numbers: Integers, radices: Sequence[int], table: Sequence[Codes]) -> list[Codes]:
    """Give the digits of numbers, as columns of the types that they came from."""
    columns: list[Codes] = []
    for radix, column in zip(reversed(radices), reversed(table), strict=True):
        numbers, digits = np.divmod(numbers, radix)
        columns.insert(0, digits.astype(column.dtype))
    return columns


Result = TypeVar("Result")

CELLS = 1 << 23
"""So many cells are counted in one scan; a round that has more takes several, and an attribute that has more is
sorted."""
OWN_STREAMED = 1 << 24
"""The threads may have so many cells of their own, in all."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows side by side, from a number on."""

    start: int
    columns: Sequence[Codes]
    classes: Codes
    weights: Integers | None
    """how many records each stands for; one, if not given"""


class Standing(Protocol):
    """Where the nodes on which rows stand are kept, in the order of the rows."""

    def read(self, start: int, rows: int) -> NDArray[np.int32]:
        """Give those of some rows."""

    def write(self, start: int, nodes: NDArray[np.int32]) -> None:
        """Keep those of some rows."""


class StreamedRows:
    """Rows that can be scanned, again and again, and counted on the ends of a tree."""

    def __init__(self, scan: Callable[[], Generator[Batch, None, None]], standing: Standing) -> None:
        """Take a way to scan all rows, and a place for their nodes."""
        self._scan = scan
        self._standing = standing
        self._stage: Stage | None = None
        """the moment of a tree at which the nodes were kept"""
        self._last: tuple[Tally, Counts] | None = None

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "StreamedRows(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count the places and, by leaf, those of them that do not follow from what is known."""
        families, earlier = self._families(tally)
        sizes = {one: len(families.counted) * tally.leaves(one) * tally.classes for one in tally.attributes}
        by_leaf = {one: self._sorted(tally, one) for one, size in sizes.items() if size > CELLS}
        for share in _shares({one: size for one, size in sizes.items() if size <= CELLS}):
            by_place, *counted = self._dense(tally, families, share)
            for one, cells in zip(share, counted, strict=True):
                parents = None if earlier is None else families.of_parents(earlier.by_leaf[one])
                by_leaf[one] = Breakdown.of_dense(families.completed(cells.swapaxes(0, 1), parents))
        before = None if earlier is None else earlier.by_place[families.parents]
        counts = Counts(families.completed(by_place[0], before), by_leaf)
        if tally.attributes or self._last is None:
            self._last = (tally, counts)
        return counts

    def _families(self, tally: Tally) -> tuple[Families, Counts | None]:
        """Tell which places must be counted, and give the answer from which the others follow."""
        tree = tally.partition
        assert isinstance(tree, Tree)
        if self._last is None or not set(tally.attributes) <= set(self._last[0].attributes):
            return Families.none(tally.places), None
        earlier, answer = self._last
        widths = (tree.highs - tree.lows)[tally.ends_asked]
        return Families.of(tally, widths, earlier), answer

    def _dense(self, tally: Tally, families: Families, attributes: Sequence[int]) -> list[Integers]:
        """Count leaves x counted places x classes in one scan: of one leaf that holds everyone, then of attributes."""
        cells = len(families.counted) * tally.classes
        leaves = [1, *(tally.leaves(one) for one in attributes)]

        def count(batches: Iterable[tuple[Batch, Block]]) -> list[Integers]:
            counts = [np.zeros(one * cells, np.int64) for one in leaves]
            for batch, block in batches:
                for column, into in zip((None, *(batch.columns[one] for one in attributes)), counts, strict=True):
                    add_block(into, block, cells, column, batch.weights)
            return counts

        shares = self._scanned(tally, families, count, OWN_STREAMED // max(sum(leaves) * cells, 1))
        return [
            sum(found[1:], found[0]).reshape(size, len(families.counted), tally.classes)
            for size, found in zip(leaves, zip(*shares, strict=True), strict=True)
        ]

    def _sorted(self, tally: Tally, attribute: int) -> Breakdown:
        """Count places x leaves x classes of an attribute by sorting, in a scan of its own."""
        found, leaves = SortedCells(), tally.leaves(attribute)

        def count(batches: Iterable[tuple[Batch, Block]]) -> None:
            for batch, block in batches:
                places, labels = np.divmod(block.cells, tally.classes)
                cells = (places * leaves + block.take(batch.columns[attribute])) * tally.classes + labels
                found.add(cells, None if batch.weights is None else block.take(batch.weights))

        self._scanned(tally, Families.none(tally.places), count, 1)
        return Breakdown.of_cells(leaves, tally.classes, *found.found())

    def _scanned(
        self, tally: Tally, families: Families, work: Callable[[Iterable[tuple[Batch, Block]]], Result], most: int
    ) -> list[Result]:
        """Let threads work on the rows in the counted places; all rows step to their leaves on the way.

        Until the scan has come to its end, some rows have stepped and others have not: none is known to stand anywhere.
        """
        tree, stage = tally.partition, self._stage
        assert isinstance(tree, Tree)
        grown = stage is not None and tree.refines(stage)
        known = stage.nodes if grown and stage is not None else 1
        steps = len(tree.stages_since(stage)) if grown and stage is not None else int(tree.depths.max())
        if steps:
            self._stage = None

        def located(batches: Iterable[Batch]) -> Iterator[tuple[Batch, Block]]:
            for batch in batches:
                rows = len(batch.classes)
                nodes = self._standing.read(batch.start, rows) if grown else np.zeros(rows, np.int32)
                for _ in range(steps):
                    tree.descend(batch.columns, nodes, known)
                if steps:
                    self._standing.write(batch.start, nodes)
                yield batch, TreeRows.of(tally, families.counted, nodes, batch.classes).block(slice(0, rows))

        found = in_turns(self._scan(), lambda batches: work(located(batches)), most)
        if steps:
            self._stage = tree.stage
        return found


def _shares(sizes: dict[int, int]) -> list[list[int]]:
    """Put attributes together, in their order, as long as their cells are few enough; there is a first share always."""
    shares: list[list[int]] = [[]]
    filled = 0
    for one, size in sizes.items():
        if filled + size > CELLS:
            shares.append([])
            filled = 0
        shares[-1].append(one)
        filled += size
    return shares
