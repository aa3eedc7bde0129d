"""A tree counted while rows stream by: one scan for all that a round asks, however many rows there are.

For engines that keep more rows than memory holds. A row is told by its number, under which the node on which it stood
is kept, so a tree that grew by a level costs it one step. Of every family one child is not counted but follows from
the level before (see `families`): the widest, as the tree says, so that a scan is planned before any row is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.blocks import Block, TreeRows, add_block
from sfumato.counts.families import Families
from sfumato.counts.sorted_cells import SortedCells
from sfumato.counts.tally import Breakdown, Counts, Integers, Tally
from sfumato.counts.threads import in_turns
from sfumato.partition import Codes
from sfumato.tree import Stage, Tree

Result = TypeVar("Result")

CELLS = 1 << 23
"""So many cells are counted in one scan; a round that has more takes several, and an attribute that has more is
sorted."""
OWN = 1 << 24
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
    """Rows that can be scanned, again and again, and counted on the leaves of a tree."""

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
        widths = (tree.highs - tree.lows)[tally.leaves_asked]
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

        shares = self._scanned(tally, families, count, OWN // max(sum(leaves) * cells, 1))
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
