"""From a tally to a round of the kernel, and from its sums to counts.

*What follows is not counted.* Of the children of a place whose counts are known, one is the parent less the rest. The
largest is left out; how large each is, is known before any row is looked at, from the parent's breakdown by the
attribute along which it was split. On a tree that grows level by level this spares more than half of the rows at every
level, in a single pass. The counts are the same integers.

*Dense or not.* Cells are counted in arrays as long as those are small. An attribute of so many leaves that they would
not be is counted by sorting, in the same pass; then every place is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import NONE, Integers
from sfumato.engines.kernel import ByLeaf, DenseSum, GridCells, Round, SparseSum, Steps, Sums, TreeCells
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Stage, Tree
from sfumato.privacy.tally import Breakdown, Counts, Tally

DENSE = 1 << 21
"""An attribute with more cells is not counted in an array."""
DENSE_IN_ALL = 1 << 23
"""So many cells of attributes are counted in arrays."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A tally that was answered, from which later answers may follow."""

    tally: Tally
    counts: Counts


@dataclass(frozen=True, eq=False)
class Asked:
    """A tally as a round, with what is needed to make counts of its sums."""

    tally: Tally
    families: Families
    earlier: Answer | None
    round: Round

    @classmethod
    def of(cls, tally: Tally, earlier: Answer | None, stage: Stage | None) -> Asked:
        """Plan a round, for rows that stand on the nodes that a tree had at some stage; at its root, if not given."""
        if isinstance(tally.partition, Grid):
            families, earlier = Families.none(tally.places), None
            cells: GridCells | TreeCells = _grid_cells(tally.partition, tally.classes)
            steps = None
        else:
            if earlier is not None and not set(tally.attributes) <= set(earlier.tally.attributes):
                earlier = None
            families = Families.none(tally.places) if earlier is None else Families.of(tally, earlier)
            if not all(one.dense for one in _by_leaf(tally, len(families.counted))):
                families = Families.none(tally.places)
            cells, steps = _tree_cells(tally, families.counted), _steps(tally.partition, stage)
        by_leaf = _by_leaf(tally, len(families.counted))
        marginals = tuple(_grid_cells(grid, tally.classes) for grid in tally.marginals)
        return cls(tally, families, earlier, Round(cells, by_leaf, marginals, steps))

    def counts(self, sums: Sums) -> Counts:
        """The answer, from the sums of all blocks."""
        tally, parts = self.tally, iter(sums.parts)
        by_place = _dense(next(parts)).reshape(len(self.families.counted), tally.classes)
        before = None if self.earlier is None else self.earlier.counts.by_place[self.families.parents]
        by_leaf = {one.attribute: self._breakdown(one, next(parts)) for one in self.round.by_leaf}
        marginals = tuple(_dense(next(parts)).reshape(-1, tally.classes) for _ in tally.marginals)
        return Counts(self.families.completed(by_place, before), by_leaf, marginals)

    def _breakdown(self, asked: ByLeaf, found: DenseSum | SparseSum) -> Breakdown:
        classes, counted = self.tally.classes, len(self.families.counted)
        if isinstance(found, SparseSum):
            cells, counts = found.found()
            leaves, places = np.divmod(cells, counted * classes)
            places, labels = np.divmod(places, classes)
            cells = (places * asked.leaves + leaves) * classes + labels
            order = np.argsort(cells)
            return Breakdown.of_cells(asked.leaves, classes, cells[order], counts[order])
        counts = found.counts.reshape(asked.leaves, counted, classes).swapaxes(0, 1)
        parents = None if self.earlier is None else self.families.of_parents(self.earlier, asked.attribute)
        return Breakdown.of_dense(self.families.completed(counts, parents))


def _dense(found: DenseSum | SparseSum) -> Integers:
    assert isinstance(found, DenseSum)
    return found.counts


def _by_leaf(tally: Tally, counted: int) -> tuple[ByLeaf, ...]:
    """The breakdowns of so many places: the first are dense, as long as there is room."""
    found, held = [], 0
    for attribute in tally.attributes:
        cells = counted * tally.classes * tally.leaves(attribute)
        dense = cells <= DENSE and held + cells <= DENSE_IN_ALL
        held += cells if dense else 0
        found.append(ByLeaf(attribute, tally.leaves(attribute), dense))
    return tuple(found)


def _grid_cells(grid: Grid, classes: int) -> GridCells:
    tables = tuple(
        (attribute, grid.part_of(attribute) * math.prod(grid.parts[attribute + 1 :]) * classes)
        for attribute in grid.split_attributes
    )
    return GridCells(tables, grid.regions * classes)


def _tree_cells(tally: Tally, counted: Integers) -> TreeCells:
    """The counted places of a tally, numbered anew in their order."""
    assert tally.ends_asked is not None
    of_node = np.full(len(tally.place_of_node), NONE, np.int64)
    of_node[tally.ends_asked[counted]] = np.arange(len(counted)) * tally.classes
    return TreeCells(of_node, len(counted) * tally.classes, len(counted) == tally.partition.regions)


def _steps(tree: Tree, stage: Stage | None) -> Steps:
    if stage is None or not tree.refines(stage):
        return Steps(tree.walk(1), int(tree.depths.max()), grown=False)
    return Steps(tree.walk(stage.nodes), len(tree.stages_since(stage)), grown=True)


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

    def __repr__(self) -> str:
        """Say nothing of what is counted."""
        return "Families(...)"

    @classmethod
    def none(cls, places: int) -> Families:
        """Nothing is known: everything must be counted."""
        nothing = np.empty(0, np.int64)
        return cls(places, np.arange(places), nothing, nothing, nothing, nothing)

    @classmethod
    def of(cls, tally: Tally, earlier: Answer) -> Families:
        """Find the children of places counted earlier, whose whole families are asked for; leave out the largest.

        Children of one parent have numbers side by side, so they are neighbours among the places.
        """
        tree, before = tally.partition, earlier.tally.partition
        assert isinstance(tree, Tree)
        if not (isinstance(before, Tree) and tree.refines(before.stage) and tally.domain == earlier.tally.domain):
            return cls.none(tally.places)
        parents = tree.parents[tally.ends_asked]
        starts = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
        asked, heads = np.diff(starts, append=len(parents)), parents[starts]
        known = np.full(len(tree) + 1, NONE)
        known[: len(before)] = earlier.tally.place_of_node
        children = np.bincount(tree.parents[1:], minlength=len(tree) + 1)
        whole = (known[heads] != NONE) & (asked == children[heads]) & (heads != NONE)
        family = np.repeat(np.arange(len(starts)), asked)
        order = np.lexsort((-_sizes(tally, known[parents], earlier.counts), family))
        derived = order[starts[whole]] if len(starts) else np.empty(0, np.int64)
        counted = np.setdiff1d(np.arange(tally.places), derived, assume_unique=True)
        runs = np.flatnonzero(np.diff(family[counted], prepend=NONE))
        families = np.flatnonzero(whole[family[counted[runs]]]) if len(runs) else np.empty(0, np.int64)
        return cls(tally.places, counted, derived, known[heads[whole]], runs, families)

    def of_parents(self, earlier: Answer, attribute: int) -> Integers:
        """What was counted before in the parents of the derived places: parents x leaves x classes."""
        cells = earlier.counts.by_leaf[attribute].take(self.parents)
        return cells.dense(len(self.parents)) if len(self.parents) else cells.counts[:, None]

    def completed(self, counts: Integers, parents: Integers | None) -> Integers:
        """The counts of all places from those of the counted, and from those that the parents had before."""
        full = np.empty((self.places, *counts.shape[1:]), np.int64)
        full[self.counted] = counts
        if len(self.derived):
            assert parents is not None
            siblings = np.add.reduceat(counts, self.runs, axis=0)[self.families]
            full[self.derived] = parents - siblings
        return full


def _sizes(tally: Tally, parents: Integers, known: Counts) -> Integers:
    """How many records lie in each place, where that follows from its parent's; else its width.

    A place is a range of its parent along one attribute, so all children of one parent are measured alike.
    """
    tree = tally.partition
    assert isinstance(tree, Tree)
    nodes = tally.ends_asked
    lows, highs = tree.lows[nodes].astype(np.int64), tree.highs[nodes].astype(np.int64)
    sizes, along = highs - lows, tree.attributes[nodes]
    for attribute, breakdown in known.by_leaf.items():
        these = np.flatnonzero((along == attribute) & (parents != NONE))
        sizes[these] = breakdown.between(parents[these], lows[these], highs[these]).sum(axis=1)
    return sizes
