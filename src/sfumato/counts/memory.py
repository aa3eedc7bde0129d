"""Counting a table of codes in memory with NumPy: the engine for whatever fits.

Columns are read in blocks that stay in the cache, by as many threads as there are cores, each with counts of its own.
Rows remember the node of the tree on which they stood, so a tree that grew by a level costs them one step; and what
follows from the counts of the level before is not counted again (see `families`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.blocks import GridRows, TreeRows, add_block
from sfumato.counts.families import Families
from sfumato.counts.sorted_cells import SortedCells
from sfumato.counts.tally import Breakdown, Counts, Integers, Tally
from sfumato.counts.threads import in_shares, stretches
from sfumato.partition import Codes
from sfumato.tree import Stage, Tree

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
