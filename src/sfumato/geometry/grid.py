"""Grids: partitions of the domain that are the cross product of one cut per attribute.

A `Grid` keeps the cuts, not the boxes, so that millions of regions cost nothing until they are counted. Its regions are
disjoint and cover the domain by construction: a privacy proof depends on that.

Groups of values that are not next to each other become ranges when the leaves are put in another order, group after
group. A grid may do so for each attribute; its ranges are then of places in that order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Codes, Integers, integers
from sfumato.geometry.regions import Sides, refuse_some, whole_numbers


@dataclass(frozen=True)
class Grid:
    """The cross product of cuts; a cut is the increasing borders `0 = b0 < b1 < ... < bk = leaves` of its parts.

    >>> jobs_by_age = Grid.whole((4, 47)).refine(0, (2,)).refine(1, (22,))
    >>> jobs_by_age.parts, jobs_by_age.regions
    ((2, 2), 4)
    >>> jobs_by_age.boxes(1, 3).tolist()
    [[[0, 2], [22, 47]], [[2, 4], [0, 22]]]
    """

    kind: ClassVar[str] = "grid"
    disjoint: ClassVar[bool] = True

    cuts: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[int, ...] | None, ...] = ()
    """the order of each attribute's leaves in which its parts are ranges; None, or none at all: that of the codes"""

    def __post_init__(self) -> None:
        """Refuse cuts that make no partition; keep Python's integers, which neither wrap around nor change."""
        object.__setattr__(self, "cuts", tuple(map(integers, self.cuts)))
        object.__setattr__(self, "orders", tuple(None if order is None else integers(order) for order in self.orders))
        for cut in {*self.cuts}:
            if len(cut) < 2 or cut[0] != 0 or any(left >= right for left, right in itertools.pairwise(cut)):
                raise ValueError("a cut must be increasing borders from 0 to the number of leaves")
        if self.orders and len(self.orders) != len(self.cuts):
            raise ValueError("there must be an order, or None, for each attribute")
        for order, leaves in zip(self.orders, self.shape, strict=False):
            if order is not None and sorted(order) != list(range(leaves)):
                raise ValueError("an order must name every leaf once")
        if all(order is None for order in self.orders):
            object.__setattr__(self, "orders", ())

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Grid:
        """One region that holds everything."""
        return cls(_uncut(tuple(shape)))

    @classmethod
    def finest(cls, shape: Sequence[int]) -> Grid:
        """Every cell a region of its own."""
        return cls(tuple(tuple(range(leaves + 1)) for leaves in shape))

    @classmethod
    def marginal(cls, shape: Sequence[int], cuts: Mapping[int, Sequence[int]]) -> Grid:
        """Cut a few attributes at borders, outer ones included, and leave all others whole."""
        return cls(tuple(tuple(cuts.get(at, whole)) for at, whole in enumerate(_uncut(tuple(shape)))))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of leaves of each attribute."""
        return tuple(map(itemgetter(-1), self.cuts))

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of parts of each attribute."""
        return tuple(len(cut) - 1 for cut in self.cuts)

    @property
    def regions(self) -> int:
        """The number of regions."""
        return math.prod(len(self.cuts[attribute]) - 1 for attribute in self.split_attributes)

    @cached_property
    def split_attributes(self) -> tuple[int, ...]:
        """The attributes that have more than one part, which alone tell regions apart."""
        return tuple(attribute for attribute, cut in enumerate(self.cuts) if len(cut) > 2)

    @property
    def unresolved(self) -> tuple[int, ...]:
        """The attributes whose parts are not all single leaves."""
        return tuple(
            index for index, (parts, leaves) in enumerate(zip(self.parts, self.shape, strict=True)) if parts < leaves
        )

    def refine(self, attribute: int, borders: Sequence[int]) -> Grid:
        """The grid with more borders in one attribute's cut."""
        cut = tuple(sorted({*self.cuts[attribute], *borders}))
        if cut[-1] != self.cuts[attribute][-1]:
            raise ValueError("borders must lie inside the attribute's leaves")
        return Grid((*self.cuts[:attribute], cut, *self.cuts[attribute + 1 :]), self.orders)

    def refines(self, other: Grid) -> bool:
        """Tell whether every part lies inside one part of another grid.

        >>> fine = Grid(((0, 1, 2, 4), (0, 3)))
        >>> fine.refines(Grid(((0, 2, 4), (0, 3)))), Grid(((0, 2, 4), (0, 3))).refines(fine)
        (True, False)
        """
        if self.shape != other.shape or not {*other.split_attributes} <= {*self.split_attributes}:
            return False
        for at in other.split_attributes:
            coarse = other.part_of(at)[self.order_of(at)]
            starts = np.asarray(self.cuts[at][:-1])
            if not np.array_equal(np.repeat(coarse[starts], np.diff(self.cuts[at])), coarse):
                return False
        return True

    @classmethod
    def grouped(cls, shape: Sequence[int], groups: Mapping[int, Integers]) -> Grid:
        """Put the leaves of a few attributes into groups, by the group of each leaf, and leave all others whole.

        >>> Grid.grouped((3, 4), {1: np.array([0, 1, 0, 1])})
        Grid(cuts=((0, 3), (0, 2, 4)), orders=(None, (0, 2, 1, 3)))
        """
        orders = {at: np.argsort(group, kind="stable") for at, group in groups.items()}
        cuts = {at: np.concatenate(([0], np.cumsum(np.bincount(group)))).tolist() for at, group in groups.items()}
        kept = {at: tuple(one.tolist()) for at, one in orders.items() if not np.array_equal(one, np.arange(len(one)))}
        return replace(cls.marginal(shape, cuts), orders=tuple(kept.get(at) for at in range(len(shape))))

    @classmethod
    def of_groups(cls, groups: Sequence[Sequence[Sequence[int]]]) -> Grid:
        """The grid whose parts are groups of leaves, for each attribute.

        >>> Grid.of_groups([[[0, 1], [2]], [[0, 2], [1, 3]]])
        Grid(cuts=((0, 2, 3), (0, 2, 4)), orders=(None, (0, 2, 1, 3)))
        """
        flat = [tuple(itertools.chain.from_iterable(parts)) for parts in groups]
        cuts = tuple((0, *itertools.accumulate(map(len, parts))) for parts in groups)
        return cls(cuts, tuple(None if order == tuple(sorted(order)) else order for order in flat))

    def order_of(self, attribute: int) -> Integers:
        """The leaves of an attribute in the order in which its parts are ranges."""
        order = self.orders[attribute] if self.orders else None
        return np.arange(self.shape[attribute]) if order is None else np.asarray(order, np.int64)

    def part_of(self, attribute: int) -> Integers:
        """The part that holds each leaf of an attribute."""
        cut = self.cuts[attribute]
        parts = np.empty(cut[-1], np.int64)
        parts[self.order_of(attribute)] = np.repeat(np.arange(len(cut) - 1), np.diff(cut))
        return parts

    def locate(self, columns: Sequence[Codes], rows: int) -> Integers:
        """The region of each row: the parts of its codes are the digits of the region's number.

        `rows` says how many there are, for a table without attributes has no column that would.
        """
        region = np.zeros(rows, np.int64)
        for attribute in self.split_attributes:
            region *= self.parts[attribute]
            region += self.part_of(attribute)[columns[attribute]]
        return region

    def parts_at(self, attribute: int, regions: Integers) -> Integers:
        """The part of an attribute that each of these regions has: one digit of its number."""
        return regions // math.prod(self.parts[attribute + 1 :]) % self.parts[attribute]

    def boxes(self, start: int, stop: int) -> Integers:
        """The ranges of regions `start` to `stop`: regions x attributes x 2."""
        return self.boxes_of(np.arange(start, stop))

    def boxes_of(self, regions: Integers) -> Integers:
        """The ranges of some regions: regions x attributes x 2."""
        boxes = np.empty((len(regions), len(self.cuts), 2), np.int64)
        for attribute, cut in enumerate(self.cuts):
            borders, part = np.asarray(cut), self.parts_at(attribute, regions)
            boxes[:, attribute, 0], boxes[:, attribute, 1] = borders[part], borders[part + 1]
        return boxes

    def sides(self, attribute: int) -> Sides:
        """The ranges of one attribute among the regions: its parts."""
        cut = np.asarray(self.cuts[attribute], np.int64)
        ranges = np.stack([cut[:-1], cut[1:]], axis=1)
        return Sides(ranges, partial(self.parts_at, attribute), self.order_of(attribute))

    @property
    def ranges(self) -> Integers:
        """The ranges of every region."""
        return self.boxes(0, self.regions)

    @property
    def region_nodes(self) -> None:
        """None: a grid has no nodes above its regions."""

    @property
    def sampling(self) -> Fraction:
        """1: everyone is counted."""
        return Fraction(1)

    def nodes_at(self, places: Integers) -> None:
        """Refuse places that are not all regions."""
        refuse_some(places, self.regions)

    def regions_of(self, columns: Sequence[Codes]) -> Integers:
        """The region that holds each coded row."""
        return self.locate(columns, len(columns[0]) if columns else 0)

    def plain(self) -> dict[str, Any]:
        """Cuts and, where leaves are in another order, orders; both by the number of the attribute."""
        cut = {str(at): list(self.cuts[at]) for at in self.split_attributes}
        orders = {str(at): list(order) for at, order in enumerate(self.orders) if order is not None}
        return {"cuts": cut} | ({"orders": orders} if orders else {})

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Grid:
        """Read cuts and orders; an attribute that is not named is whole."""
        cuts = {int(at): tuple(whole_numbers(cut).tolist()) for at, cut in plain["cuts"].items()}
        orders = {int(at): tuple(whole_numbers(order).tolist()) for at, order in plain.get("orders", {}).items()}
        if not {*cuts, *orders} <= {*range(len(shape))}:
            raise ValueError("cuts and orders must be of attributes that there are")
        grid = cls.marginal(shape, cuts)
        if any(grid.cuts[at][-1] != shape[at] for at in cuts):
            raise ValueError("cuts must end with the leaves of their attributes")
        return replace(grid, orders=tuple(orders.get(at) for at in range(len(shape)))) if orders else grid


@lru_cache(maxsize=8)
def _uncut(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Give the cuts of attributes that are whole, which all marginals of a table share."""
    return tuple((0, leaves) for leaves in shape)
