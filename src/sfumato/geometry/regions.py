"""What grids, trees and boxes have in common (`Regions`), and `Boxes`, which may overlap.

However many regions there are, few ranges of one attribute occur among them. So whatever is costly (a name, the share
that a query asks for) is done once per range and then looked up for the regions by number: see `Sides`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers, row_keys
from sfumato.errors import ReleaseError
from sfumato.exact import read_fraction
from sfumato.schema.attributes import Categorical, Numeric, label_leaves


@dataclass(frozen=True, eq=False)
class Sides:
    """The ranges of one attribute that occur among the regions, and which of them each region has."""

    ranges: Integers
    """distinct ranges x 2: `[lo, hi)` of places in `order`"""
    number: Callable[[Integers], Integers]
    """from regions to rows of `ranges`"""
    order: Integers
    """the attribute's leaves: in the order of their codes, or group after group"""

    @classmethod
    def of_boxes(cls, ranges: NDArray[np.integer], leaves: int) -> Sides:
        """The distinct ranges of boxes (boxes x 2) along an attribute with this many leaves.

        >>> jobs = Sides.of_boxes(np.array([[0, 4], [0, 2], [2, 4]]), 4)
        >>> jobs.ranges.tolist(), jobs.number(np.arange(3)).tolist()
        ([[0, 2], [0, 4], [2, 4]], [1, 0, 2])
        """
        base = leaves + 1
        keys, numbers = np.unique(ranges[:, 0] * np.int64(base) + ranges[:, 1], return_inverse=True)
        return cls(np.stack(np.divmod(keys, base), axis=1), numbers.__getitem__, np.arange(leaves))

    def of(self, regions: Integers) -> Integers:
        """The range of each of these regions: regions x 2."""
        return self.ranges[self.number(regions)]

    def label(self, column: Categorical | Numeric, lo: int, hi: int) -> str:
        """Name the leaves of a range."""
        return label_leaves(column, self.order[lo:hi].tolist())

    def names(self, column: Categorical | Numeric) -> list[str]:
        """Name every distinct range once."""
        return [self.label(column, lo, hi) for lo, hi in self.ranges.tolist()]


class Regions(Protocol):
    """Boxes of leaf codes that a release can have counts of."""

    kind: ClassVar[str]
    """the name of its kind in files"""
    disjoint: ClassVar[bool]
    """whether everyone lies in exactly one region"""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of leaves of each attribute."""

    @property
    def regions(self) -> int:
        """The number of regions."""

    @property
    def split_attributes(self) -> tuple[int, ...]:
        """The attributes that tell regions apart."""

    @property
    def ranges(self) -> Integers:
        """The ranges of every region, of places in the order of `sides`: regions x attributes x 2."""

    @property
    def region_nodes(self) -> Integers | None:
        """The numbers of the regions among the nodes of a tree; None if there are no other nodes."""

    @property
    def sampling(self) -> Fraction:
        """The probability with which each record was drawn to be counted."""

    def sides(self, attribute: int) -> Sides:
        """The ranges of one attribute among the regions."""

    def regions_of(self, columns: Sequence[Codes]) -> Integers:
        """The region that holds each coded row, where regions are disjoint."""

    def nodes_at(self, places: Integers) -> Integers | None:
        """The nodes that counts are of; None if they are of all regions. Refuse places that do not exist or repeat."""

    def plain(self) -> dict[str, Any]:
        """Plain values for a file, without the shape, which is the schema's."""

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Self:
        """Read plain values back, refusing those that make no regions."""


def refuse_some(places: Integers, number: int) -> None:
    """Refuse places other than 0, 1, ... up to this number."""
    if len(places) != number or not np.array_equal(places, np.arange(len(places))):
        raise ValueError("there must be a count for every region")


def whole_numbers(given: Any) -> Integers:
    """Read a list of whole numbers that anyone may have written: nothing else is made room for, or taken for one.

    >>> whole_numbers([0, True])
    Traceback (most recent call last):
    ValueError: numbers must be a list of whole ones, of 64 bits at most
    """
    fit = type(given) is list and {*map(type, given)} <= {int}
    if not fit or max(map(abs, given), default=0) >= 2**63:
        raise ValueError("numbers must be a list of whole ones, of 64 bits at most")
    return np.array(given, np.int64)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Different boxes, disjoint or not, that need not cover the domain: groups of records generalized one by one.

    They are no partition: a person can lie in several, so one more record could move several counts. Tallies, and with
    them the meter, refuse them; only releases without epsilon have them.

    >>> groups = Boxes((4, 47), np.array([[[0, 2], [3, 8]], [[0, 4], [5, 6]]]))
    >>> groups.regions, groups.split_attributes
    (2, (0, 1))
    """

    kind: ClassVar[str] = "boxes"
    disjoint: ClassVar[bool] = False

    shape: tuple[int, ...]
    ranges: Integers
    """boxes x attributes x 2: `[lo, hi)` of leaf codes"""
    sampling: Fraction = Fraction(1)
    """the probability with which each record of the table was drawn to be counted"""

    def __post_init__(self) -> None:
        """Refuse ranges that are empty or outside the domain, and equal boxes: equal records are one group."""
        if not 0 < self.sampling <= 1:
            raise ValueError("a sampling rate must be greater than 0 and at most 1")
        if self.ranges.shape[1:] != (len(self.shape), 2):
            raise ValueError("boxes must have a range for each attribute")
        lows, highs = self.ranges[:, :, 0], self.ranges[:, :, 1]
        if not ((lows >= 0) & (lows < highs) & (highs <= np.asarray(self.shape))).all():
            raise ValueError("ranges must lie inside the attributes' leaves")
        ends = [self.ranges[:, attribute, side] for attribute in range(len(self.shape)) for side in (0, 1)]
        keys = row_keys(ends, [leaves + 1 for leaves in self.shape for _ in (0, 1)])
        if len(np.unique(keys)) < len(keys):
            raise ValueError("boxes must be different")

    @property
    def regions(self) -> int:
        """The number of boxes."""
        return len(self.ranges)

    @cached_property
    def split_attributes(self) -> tuple[int, ...]:
        """The attributes of which some box has less than the whole range."""
        widths = self.ranges[:, :, 1] - self.ranges[:, :, 0]
        return tuple(np.flatnonzero((widths < np.asarray(self.shape)).any(axis=0)).tolist())

    def sides(self, attribute: int) -> Sides:
        """The ranges of one attribute among the boxes."""
        return Sides.of_boxes(self.ranges[:, attribute], self.shape[attribute])

    @property
    def region_nodes(self) -> None:
        """None: there are no nodes above the boxes."""

    def nodes_at(self, places: Integers) -> None:
        """Refuse places that are not all boxes."""
        refuse_some(places, self.regions)

    def regions_of(self, columns: Sequence[Codes]) -> Integers:  # noqa: ARG002
        """Refuse: a row may lie in several boxes, or in none."""
        raise ReleaseError(
            "a person must lie in one group only, and the groups of this release overlap",
            "Draw records with sample, or see explain.",
        )

    def plain(self) -> dict[str, Any]:
        """The lows and highs of all ranges, attribute by attribute, and the sampling rate."""
        ends = {f"{name} {at}": self.ranges[:, at, end].tolist() for name, at, end in _ends(self.shape)}
        return {"ranges": ends, "sampling": str(self.sampling)}

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Boxes:
        """Read ranges and sampling rate."""
        sampling = read_fraction(plain["sampling"])
        ends = [whole_numbers(plain["ranges"][f"{name} {at}"]) for name, at, _ in _ends(shape)]
        if sampling is None:
            raise ValueError("boxes must have a sampling rate")
        return cls(shape, np.stack(ends, axis=1).reshape(-1, len(shape), 2), sampling)


def _ends(shape: tuple[int, ...]) -> list[tuple[str, int, int]]:
    return [(name, at, end) for at in range(len(shape)) for end, name in enumerate(("low", "high"))]
