"""Trees: boxes within boxes, where every region is split in its own way.

A `Tree` keeps every box that was ever split, because counts bought on the way still inform the ends. Nodes are numbered
as they appear, so a node keeps its number when others are split, and whoever knows on which nodes rows stood one level
ago needs a single step to move them on. The ends are disjoint and cover the domain by construction: a privacy proof
depends on that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Codes, Integers, integers, read_only
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import depths_of
from sfumato.geometry.regions import Sides, whole_numbers
from sfumato.geometry.walk import Children, Nodes, Walk

ROOT = 0
"""The number of the root."""

Given = NDArray[Any]
"""Numbers of any type, not yet checked."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A moment in the growth of a tree: how many nodes it had, and the moment before."""

    nodes: int
    before: Stage | None = None


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in the order in which they appeared: the root, then children, side by side and after their parent.

    >>> tree = Tree.whole((4, 47)).refine([0], [1], [0, 22, 47], [0, 3]).refine([2], [0], [0, 2, 4], [0, 3])
    >>> tree.ends.tolist(), tree.regions
    ([1, 3, 4], 3)
    >>> tree.boxes[4].tolist()
    [[2, 4], [22, 47]]
    """

    kind: ClassVar[str] = "tree"
    disjoint: ClassVar[bool] = True

    shape: tuple[int, ...]
    parents: Nodes
    """each node's parent; NONE for the root"""
    attributes: Nodes
    """the attribute along which a node was cut out of its parent; NONE for the root"""
    lows: Nodes
    """where the node's range of that attribute begins"""
    highs: Nodes
    """where the node's range of that attribute ends"""
    newest: Nodes = field(init=False, repr=False)
    """the boxes of the last nodes, kept by `refine` because growth asks for them next"""
    stage: Stage = field(init=False, repr=False)
    """the moment of its growth; only `refine` makes a tree that has another's stage before its own"""

    def __post_init__(self) -> None:
        """Copy the nodes, and refuse those that are not children side by side that fill their parents.

        The new tree's stage has no moment before it.
        """
        given = (self.parents, self.attributes, self.lows, self.highs)
        object.__setattr__(self, "shape", integers(self.shape))
        kept = [np.array(one, np.int32) for one in given]
        self._keep(kept, np.empty((0, len(self.shape), 2), np.int32))
        fits = all(np.array_equal(one, other) for one, other in zip(given, kept, strict=True))
        if not (fits and self._is_one_table() and self._families_fill_their_parents()):
            raise ValueError("the children of every node must follow one another and fill it along one attribute")
        object.__setattr__(self, "stage", Stage(len(self)))

    def _keep(self, nodes: Sequence[Nodes], newest: Nodes) -> None:
        """Lock arrays that were just made: privacy depends on their staying as they are."""
        names = ("parents", "attributes", "lows", "highs", "newest")
        for name, array in zip(names, (*nodes, newest), strict=True):
            object.__setattr__(self, name, read_only(array))

    def order_of(self, attribute: int) -> Integers:
        """The leaves of an attribute in the order in which boxes have ranges: that of their codes."""
        return np.arange(self.shape[attribute])

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Tree:
        """One region that holds everything."""
        none = np.array([NONE], np.int32)
        return cls(tuple(shape), none, none, none, none)

    @classmethod
    def of_nodes(cls, shape: Sequence[int], parents: Given, attributes: Given, ranges: Given) -> Tree:
        """Build a tree from its nodes and their ranges (nodes x 2)."""
        lows, highs = ranges.T
        return cls(tuple(shape), parents, attributes, lows, highs)

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.parents)

    @cached_property
    def ends(self) -> Integers:
        """The nodes without children, which are the regions, in their order."""
        return read_only(np.flatnonzero(self.split_by == NONE))

    @property
    def regions(self) -> int:
        """The number of regions."""
        return len(self.ends)

    @cached_property
    def split_attributes(self) -> tuple[int, ...]:
        """The attributes along which some node was split."""
        return tuple(np.unique(self.attributes[1:]).tolist())

    @cached_property
    def split_by(self) -> NDArray[np.int16]:
        """The attribute that each node's children divide; NONE for an end."""
        split_by = np.full(len(self), NONE, np.int16)
        split_by[self.parents[1:]] = self.attributes[1:]
        return read_only(split_by)

    @cached_property
    def depths(self) -> Integers:
        """How many specializations lead to each node."""
        return read_only(depths_of(self.parents))

    @cached_property
    def boxes(self) -> NDArray[np.int32]:
        """The ranges of every node: nodes x attributes x 2."""
        boxes = np.empty((len(self), len(self.shape), 2), np.int32)
        boxes[ROOT, :, 0], boxes[ROOT, :, 1] = 0, self.shape
        order = np.argsort(self.depths, kind="stable")
        for nodes in np.split(order, np.searchsorted(self.depths[order], np.arange(1, self.depths.max() + 1)))[1:]:
            boxes[nodes] = boxes[self.parents[nodes]]
            boxes[nodes, self.attributes[nodes], 0] = self.lows[nodes]
            boxes[nodes, self.attributes[nodes], 1] = self.highs[nodes]
        return read_only(boxes)

    def boxes_of(self, nodes: Integers) -> NDArray[np.int32]:
        """The ranges of some nodes, narrowed along the path to each: nodes x attributes x 2."""
        older = len(self) - len(self.newest)
        if (nodes >= older).all():
            return np.asarray(self.newest[nodes - older])
        boxes = np.empty((len(nodes), len(self.shape), 2), np.int32)
        boxes[:, :, 0], boxes[:, :, 1] = 0, self.shape
        rows, above = np.arange(len(nodes)), np.asarray(nodes)
        while len(rows := rows[above != ROOT]):
            above = above[above != ROOT]
            along = self.attributes[above]
            boxes[rows, along, 0] = np.maximum(boxes[rows, along, 0], self.lows[above])
            boxes[rows, along, 1] = np.minimum(boxes[rows, along, 1], self.highs[above])
            above = self.parents[above]
        return boxes

    def refines(self, stage: Stage) -> bool:
        """Whether this tree is at that moment or has grown from it."""
        moment: Stage | None = self.stage
        while moment is not None and moment is not stage:
            moment = moment.before
        return moment is not None

    def stages_since(self, stage: Stage) -> list[Stage]:
        """The moments after that one, the latest first."""
        stages, moment = [], self.stage
        while moment is not stage and moment.before is not None:
            stages.append(moment)
            moment = moment.before
        return stages

    def refine(
        self,
        nodes: Sequence[int] | Integers,
        attributes: Sequence[int] | Integers,
        borders: Sequence[int] | Integers,
        starts: Sequence[int] | Integers,
    ) -> Tree:
        """Split ends, given in increasing order.

        `nodes[i]` is split along `attributes[i]` at `borders[starts[i]:starts[i + 1]]`, outer borders included.
        """
        split, along = np.asarray(nodes, np.int64), np.asarray(attributes, np.int64)
        marks, first = np.asarray(borders, np.int64), np.asarray(starts, np.int64)
        one_each = split.ndim == marks.ndim == 1 and split.shape == along.shape
        if not (one_each and _runs_through(first, len(split), len(marks))):
            raise ValueError("ends must be split each along one attribute, by its own borders")
        children = np.diff(first) - 1
        lows, highs = np.delete(marks, first[1:] - 1), np.delete(marks, first[:-1])
        outer = np.stack([marks[first[:-1]], marks[first[1:] - 1]], axis=1)
        if not (
            (np.diff(split) > 0).all()
            and np.isin(split, self.ends).all()
            and (children >= 2).all()
            and (lows < highs).all()
            and ((along >= 0) & (along < len(self.shape))).all()
            and np.array_equal(outer, (boxes := self.boxes_of(split))[np.arange(len(split)), along])
        ):
            raise ValueError("ends must be split in increasing order, at borders that fill their ranges")
        new = (np.repeat(split, children), np.repeat(along, children), lows, highs)
        old = (self.parents, self.attributes, self.lows, self.highs)
        grown = [np.concatenate((one, more.astype(np.int32))) for one, more in zip(old, new, strict=True)]
        newest = np.repeat(boxes, children, axis=0)
        newest[np.arange(len(newest)), new[1]] = np.stack(new[2:], axis=1)
        return self._grown(grown, newest)

    def _grown(self, nodes: Sequence[Nodes], newest: Nodes) -> Tree:
        """The next moment of this tree, of nodes that need no check because `refine` made them."""
        finer = object.__new__(Tree)
        object.__setattr__(finer, "shape", self.shape)
        finer._keep(nodes, newest)
        object.__setattr__(finer, "stage", Stage(len(finer), self.stage))
        return finer

    def locate(self, columns: Sequence[Codes], rows: int) -> NDArray[np.int32]:
        """The end that holds each row.

        `rows` says how many there are, for a table without attributes has no column that would.
        """
        nodes, walk = np.zeros(rows, np.int32), self.walk(1)
        while walk.step(columns, nodes):
            pass
        return nodes

    def walk(self, known: int) -> Walk:
        """One step down, for rows on nodes all of whose children have numbers from `known` on."""
        found = self._walks.get(known)
        if found is None:
            children = Children.of(self.parents, self.lows, self.highs, known)
            found = self._walks[known] = Walk(self.split_by, children)
        return found

    @cached_property
    def _walks(self) -> dict[int, Walk]:
        return {}

    def sides(self, attribute: int) -> Sides:
        """The ranges of one attribute among the regions."""
        return Sides.of_boxes(self.boxes[self.ends, attribute], self.shape[attribute])

    @property
    def ranges(self) -> Integers:
        """The ranges of every region."""
        return self.boxes_of(self.ends).astype(np.int64)

    @property
    def region_nodes(self) -> Integers:
        """The ends, as numbers of nodes."""
        return self.ends

    @property
    def sampling(self) -> Fraction:
        """1: everyone is counted."""
        return Fraction(1)

    def nodes_at(self, places: Integers) -> Integers:
        """The nodes themselves; those that do not exist or come twice are refused."""
        if not ((places >= 0) & (places < len(self))).all() or len(np.unique(places)) < len(places):
            raise ValueError("counts must be of different nodes of the tree")
        return places

    def regions_of(self, columns: Sequence[Codes]) -> Integers:
        """The region that holds each coded row."""
        return np.searchsorted(self.ends, self.locate(columns, len(columns[0]) if columns else 0))

    def plain(self) -> dict[str, Any]:
        """The parent of each node below the root, the attribute along which it was cut out, and its range."""
        columns = {"parent": self.parents, "attribute": self.attributes, "low": self.lows, "high": self.highs}
        return {name: column[1:].tolist() for name, column in columns.items()}

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Tree:
        """Read the nodes below the root, refusing those that make no partition."""
        columns = [np.append(NONE, whole_numbers(plain[name])) for name in ("parent", "attribute", "low", "high")]
        return cls(shape, *columns)

    def _is_one_table(self) -> bool:
        """Whether there is a node, and every array has one number for each."""
        shapes = {one.shape for one in (self.parents, self.attributes, self.lows, self.highs)}
        return len(shapes) == 1 and self.parents.ndim == 1 and len(self.parents) > 0

    def _families_fill_their_parents(self) -> bool:
        """Whether the nodes have the form that `refine` keeps by construction."""
        parents, children = self.parents[1:], np.arange(1, len(self))
        if not (((parents >= 0) & (parents < children)).all() and self.parents[0] == NONE):
            return False
        if not ((self.attributes[1:] >= 0) & (self.attributes[1:] < len(self.shape))).all():
            return False
        first = np.diff(parents, prepend=NONE) != 0
        last = np.roll(first, -1)
        follows = (self.attributes[1:] == self.attributes[:-1]) & (self.lows[1:] == self.highs[:-1])
        outer = self.boxes[parents, self.attributes[1:]]
        return bool(
            len(np.unique(parents[first])) == first.sum()
            and not (first & last).any()
            and (first | follows).all()
            and (self.lows[1:] < self.highs[1:]).all()
            and (self.lows[1:][first] == outer[first, 0]).all()
            and (self.highs[1:][last] == outer[last, 1]).all()
        )


Partition = Grid | Tree
"""Disjoint regions that cover the domain."""


def _runs_through(starts: Integers, runs: int, end: int) -> bool:
    """Whether this many runs, none of them empty, follow one another from 0 to an end."""
    return starts.shape == (runs + 1,) and bool(starts[0] == 0 and starts[-1] == end and (np.diff(starts) > 0).all())
