"""Questions about a table in public terms: what to count, and the counts that answer them.

A `Tally` is one pass over the data; `Cells` is a reading of it in which every record counts once, and `Contrasts` one
in which it counts with whole weights, as many in all as are known beforehand. Shapes follow from the schema alone, so a
question can be described, checked and priced before anything is looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Integers, frozen, integers, read_only
from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.contrasts import Contrast, Halves, Waves
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.privacy.measurements import Question


@dataclass(frozen=True)
class Domain:
    """What a table can hold, as its schema says: the leaves of each attribute, and the number of classes."""

    shape: tuple[int, ...]
    classes: int


@dataclass(frozen=True, eq=False)
class Tally:
    """For every place asked for: its records by class and, for the named attributes, by leaf and class.

    A place is a region of a grid, or an end of a tree; a tally can be of only some ends of a tree. Beside the places it
    can ask for marginals of the whole table, such as all pairs of attributes at some coarsening, in the same pass.
    """

    partition: Partition
    classes: int
    attributes: tuple[int, ...] = ()
    nodes: Integers | None = None
    """the ends of a tree that are asked for, in increasing order; all regions if not given"""
    marginals: tuple[Grid, ...] = ()
    """grids of the whole table, whose regions are counted by class"""

    def __post_init__(self) -> None:
        """Refuse places that are not disjoint and attributes that do not exist; copy all, so that nothing changes."""
        if not isinstance(self.partition, Grid | Tree):
            raise PrivacyError("places must be regions of a partition: disjoint, and covering the domain", BLAME)
        object.__setattr__(self, "classes", operator.index(self.classes))
        object.__setattr__(self, "attributes", integers(self.attributes))
        if not all(0 <= attribute < len(self.partition.shape) for attribute in self.attributes):
            raise PrivacyError("a tally must be of the partition's own attributes", BLAME)
        object.__setattr__(self, "marginals", tuple(self.marginals))
        if not all(type(one) is Grid and one.shape == tuple(self.partition.shape) for one in self.marginals):
            raise PrivacyError("a marginal must be a grid of the partition's own attributes", BLAME)
        if self.nodes is not None:
            object.__setattr__(self, "nodes", frozen(self.nodes))
            if not (isinstance(self.partition, Tree) and self._are_ends(self.nodes, self.partition)):
                raise PrivacyError("places must be different ends of a tree", BLAME)

    @staticmethod
    def _are_ends(nodes: Integers, tree: Tree) -> bool:
        return nodes.ndim == 1 and bool((np.diff(nodes) > 0).all() and np.isin(nodes, tree.ends).all())

    @property
    def domain(self) -> Domain:
        """The domain that the counted table must have."""
        return Domain(tuple(self.partition.shape), self.classes)

    @cached_property
    def places(self) -> int:
        """The number of places asked for."""
        return self.partition.regions if self.nodes is None else len(self.nodes)

    @property
    def charges_everyone(self) -> bool:
        """Whether everyone pays for a round: on a tree only the ends that are asked do, and marginals count all."""
        return isinstance(self.partition, Grid)

    @cached_property
    def ends_asked(self) -> Integers | None:
        """The ends of a tree that are the places; None for a grid, whose regions are the places."""
        if isinstance(self.partition, Tree):
            return self.partition.ends if self.nodes is None else self.nodes
        return None

    @cached_property
    def place_of_node(self) -> NDArray[np.int32]:
        """The place that each node of a tree is; NONE for nodes that are not asked for."""
        assert isinstance(self.partition, Tree)
        assert self.ends_asked is not None
        places = np.full(len(self.partition), NONE, np.int32)
        places[self.ends_asked] = np.arange(self.places)
        return read_only(places)

    def leaves(self, attribute: int) -> int:
        """The number of leaves of an attribute."""
        return self.partition.shape[attribute]


@dataclass(frozen=True, eq=False)
class Cells:
    """A reading of a tally in which every record counts in at most one cell, so one record moves one count by 1.

    The cells are place x class, or places alone, or place x leaf of an attribute, whatever the class; with borders,
    place x range of leaves. Or they are the regions of a grid over the whole table, by class or not: a grid that cuts
    one attribute which the tally counts by leaf, or one that is as coarse as one of the tally's marginals, or coarser.
    Regions of a grid are disjoint, so this is one count more for each record, too, and another round.
    """

    tally: Tally
    by: Literal["class", "place"] | int = "class"
    borders: Integers | None = None
    """where ranges of leaves begin, and where the last ends; together they have every leaf once"""
    grid: Grid | None = None
    """the regions that are read in the place of the tally's own"""

    def __post_init__(self) -> None:
        """Refuse to read what the tally does not count, or a leaf twice; copy the borders, so that nothing changes."""
        if type(self.by) not in (int, str) or self.by not in ("class", "place", *self.tally.attributes):
            raise PrivacyError("cells must be by class, by place or of an attribute that the tally counts", BLAME)
        if self.borders is not None:
            object.__setattr__(self, "borders", frozen(self.borders))
            if not (isinstance(self.by, int) and self._divides(self.borders, self.tally.leaves(self.by))):
                raise PrivacyError("borders must divide an attribute's leaves into groups", BLAME)
        if self.grid is not None and (isinstance(self.by, int) or not self._is_counted(self.grid)):
            raise PrivacyError("a grid must be made up of what the tally counts of the whole table", BLAME)

    def _is_counted(self, grid: Grid) -> bool:
        """Tell whether a grid's regions can be added up from what the tally counts."""
        if type(grid) is not Grid or grid.shape != tuple(self.tally.partition.shape) or not self.tally.charges_everyone:
            return False
        return self._is_of_leaves(grid) or self._source(grid) is not None

    def _is_of_leaves(self, grid: Grid) -> bool:
        """Tell whether a grid cuts one attribute that the whole table is counted by, leaf by leaf."""
        cut = grid.split_attributes
        return self.tally.partition.regions == 1 and len(cut) == 1 and cut[0] in self.tally.attributes

    def _source(self, grid: Grid) -> int | None:
        """Find the marginal of the tally that refines a grid."""
        found = (number for number, one in enumerate(self.tally.marginals) if one.refines(grid))
        return next(found, None)

    @staticmethod
    def _divides(borders: Integers, leaves: int) -> bool:
        ends = borders.ndim == 1 and len(borders) > 1 and (borders[0], borders[-1]) == (0, leaves)
        return ends and bool((np.diff(borders) > 0).all())

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the answer, from the schema alone."""
        if self.grid is not None:
            return self.grid.regions, self.tally.classes if self.by == "class" else 1
        if self.borders is not None:
            return self.tally.places, len(self.borders) - 1
        if isinstance(self.by, int):
            return self.tally.places, self.tally.leaves(self.by)
        return self.tally.places, self.tally.classes if self.by == "class" else 1

    @property
    def reach(self) -> int:
        """By how much one record moves all counts together: 1."""
        return 1

    @cached_property
    def question(self) -> Question:
        """The cells as a release describes them; margins are of the whole table."""
        tally, classes = self.tally, self.tally.classes if self.by == "class" else 1
        if self.grid is not None:
            return Question(self.grid, None, classes)
        if not isinstance(self.by, int):
            return Question(tally.partition, tally.ends_asked, classes)
        if tally.partition.regions != 1:
            raise PrivacyError("a margin must be of the whole table", BLAME)
        borders = np.arange(tally.leaves(self.by) + 1) if self.borders is None else self.borders
        return Question(Grid.marginal(tally.partition.shape, {self.by: borders.tolist()}))

    def read(self, counts: Counts) -> Integers:
        """The cells of an engine's answer, zeros included."""
        if self.grid is not None:
            cells = self._regions(counts, self.grid)
            return cells if self.by == "class" else cells.sum(axis=1, keepdims=True)
        if isinstance(self.by, int):
            leaves = counts.by_leaf[self.by].dense(self.tally.places).sum(axis=2)
            return leaves if self.borders is None else np.add.reduceat(leaves, self.borders[:-1], axis=1)
        return counts.by_place if self.by == "class" else counts.by_place.sum(axis=1, keepdims=True)

    def _regions(self, counts: Counts, grid: Grid) -> Integers:
        """Add up the regions of a grid by class, from leaves or from finer regions."""
        if self._is_of_leaves(grid):
            (attribute,) = grid.split_attributes
            leaves = counts.by_leaf[attribute].dense(1)[0]
            return coarsened(leaves, [grid.part_of(attribute)], [grid.regions])
        source = self._source(grid)
        assert source is not None
        finer, attributes = self.tally.marginals[source], grid.split_attributes
        axes = finer.split_attributes
        table = counts.marginals[source].reshape(*(finer.parts[at] for at in axes), -1)
        groups = [grid.part_of(at)[finer.order_of(at)[list(finer.cuts[at][:-1])]] for at in axes]
        coarse = coarsened(table, groups, [grid.parts[at] for at in axes])
        kept = tuple(axis for axis, at in enumerate(axes) if at not in attributes)
        return np.asarray(coarse.sum(axis=kept).reshape(grid.regions, -1))


def coarsened(table: Integers, groups: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Add up a table along its first axes: entry p of axis i goes to entry `groups[i][p]` of `sizes[i]`.

    >>> coarsened(np.array([[1, 2], [3, 4], [5, 6]]), [np.array([0, 1, 0])], [2]).tolist()
    [[6, 8], [3, 4]]
    """
    for axis, (group, size) in enumerate(zip(groups, sizes, strict=True)):
        moved = np.moveaxis(table, axis, 0)
        added = np.zeros((size, *moved.shape[1:]), table.dtype)
        np.add.at(added, group, moved)
        table = np.moveaxis(added, 0, axis)
    return table


@dataclass(frozen=True, eq=False)
class Contrasts:
    """A reading of a tally in which the leaves of one attribute, of the whole table, are summed with whole weights.

    A record lies in one leaf, whose weights are public. Adding it moves contrast r by the leaf's weight in r, and so
    all contrasts together by the sum of its weights, signs left aside: by `reach` at most, whatever the table. Noise of
    rate spend / reach on every contrast makes the answer spend-private: between neighbours its probability changes by a
    factor of exp(rate x what all contrasts move) at most.
    """

    tally: Tally
    by: int
    contrast: Contrast

    def __post_init__(self) -> None:
        """Refuse an attribute that the tally does not count, other leaves than its own, and weights of other kinds."""
        if type(self.by) is not int or self.by not in self.tally.attributes:
            raise PrivacyError("contrasts must be of an attribute that the tally counts", BLAME)
        if type(self.contrast) not in (Halves, Waves) or self.contrast.leaves != self.tally.leaves(self.by):
            raise PrivacyError("contrasts must be our own, of the attribute's leaves", BLAME)
        if self.tally.partition.regions != 1:
            raise PrivacyError("contrasts must be of the whole table", BLAME)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the answer, from the schema alone."""
        return 1, self.contrast.rows

    @property
    def reach(self) -> int:
        """By how much one record moves all contrasts together, at most."""
        return self.contrast.reach

    @cached_property
    def question(self) -> Question:
        """The contrasts as a release describes them."""
        parts = {self.by: self.contrast.borders.tolist()}
        return Question(Grid.marginal(self.tally.partition.shape, parts), contrast=self.contrast)

    def read(self, counts: Counts) -> Integers:
        """The contrasts of an engine's answer."""
        leaves = leaves_of(counts, self.by)
        return self.contrast.of(np.add.reduceat(leaves, self.contrast.borders[:-1]))[None]


@dataclass(frozen=True, eq=False)
class Breakdown:
    """One attribute's records by place, leaf and class: only those leaves that hold someone, as most are empty.

    Keys increase, so that the records below a border are found by one search.
    """

    leaves: int
    """how many leaves the attribute has"""
    keys: Integers
    """`place * leaves + leaf`"""
    counts: Integers
    """keys x classes"""

    @classmethod
    def of_cells(cls, leaves: int, classes: int, cells: Integers, counts: Integers) -> Breakdown:
        """From the cells that hold someone, numbered by place, leaf and class, in increasing order."""
        keys, labels = np.divmod(cells, classes)
        first = np.diff(keys, prepend=NONE) != 0
        table = np.zeros((int(first.sum()), classes), np.int64)
        table[np.cumsum(first) - 1, labels] = counts
        return cls(leaves, keys[first], table)

    @classmethod
    def of_dense(cls, cells: Integers) -> Breakdown:
        """From all cells: places x leaves x classes."""
        leaves, classes = cells.shape[1:]
        flat = cells.reshape(-1, classes)
        keys = np.flatnonzero(flat @ np.ones(classes, np.int64))
        return cls(leaves, keys, flat[keys])

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return "Breakdown(...)"

    @cached_property
    def running(self) -> Integers:
        """The records of all keys before each key, and at last of all keys: (keys + 1) x classes."""
        running = np.zeros((len(self.keys) + 1, self.counts.shape[1]), np.int64)
        np.cumsum(self.counts, axis=0, out=running[1:])
        return running

    def position(self, places: Integers, borders: Integers) -> Integers:
        """The number of keys before a border of a place."""
        return np.asarray(np.searchsorted(self.keys, places * self.leaves + borders))

    def between(self, places: Integers, lows: Integers, highs: Integers) -> Integers:
        """The records of ranges of leaves: ranges x classes."""
        return np.asarray(self.running[self.position(places, highs)] - self.running[self.position(places, lows)])

    def ends(self, places: Integers) -> tuple[Integers, Integers]:
        """The first and the last leaf that hold someone, in places that hold someone."""
        first, after = (self.position(places, np.full_like(places, border)) for border in (0, self.leaves))
        return self.keys[first] % self.leaves, self.keys[after - 1] % self.leaves

    def dense(self, places: int) -> Integers:
        """All leaves, zeros included: places x leaves x classes."""
        cells = np.zeros((places * self.leaves, self.counts.shape[1]), np.int64)
        cells[self.keys] = self.counts
        return cells.reshape(places, self.leaves, -1)

    def take(self, places: Integers) -> Breakdown:
        """The breakdown of some places, numbered in this order."""
        begin, end = (self.position(places, np.full_like(places, border)) for border in (0, self.leaves))
        sizes = end - begin
        starts = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + np.repeat(begin - starts, sizes)
        keys = self.keys[rows] + np.repeat((np.arange(len(places)) - places) * self.leaves, sizes)
        return Breakdown(self.leaves, keys, self.counts[rows])


@dataclass(frozen=True, eq=False)
class Counts:
    """An engine's answer to a tally. It never leaves the meter; methods without epsilon get it from `ExactCounts`."""

    by_place: Integers
    """places x classes, zeros included"""
    by_leaf: dict[int, Breakdown]
    """by attribute"""
    marginals: tuple[Integers, ...] = ()
    """of each marginal: regions x classes, zeros included"""

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return "Counts(...)"


def leaves_of(counts: Counts, attribute: int) -> Integers:
    """The records of each leaf of an attribute, in the whole table."""
    return np.asarray(counts.by_leaf[attribute].dense(1)[0].sum(axis=1))


class CountEngine(Protocol):
    """Holds a table and counts it; it can do nothing else."""

    def tally(self, tally: Tally) -> Counts:
        """Count everything the tally asks for, exactly, in one pass."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """Every combination of parts and class that someone has, once.

    The meter never asks for it: a combination that is listed is one that someone has.
    """

    parts: tuple[Integers, ...]
    """by attribute, the part of its cut that each combination has"""
    classes: Integers
    counts: Integers

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return "Combinations(...)"


class ListingEngine(CountEngine, Protocol):
    """An engine that can also list what occurs."""

    def combinations(self, grid: Grid, classes: int) -> Combinations:
        """List the regions of a grid that hold someone, by class, in one pass."""
