"""What grids, trees and boxes have in common: regions, seen attribute by attribute.

Few ranges of one attribute occur however many regions there are, so whatever is costly (a name, a covered share) is
done once per range and then handed to the regions by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers
from sfumato.schema.attributes import Categorical, Numeric, label_leaves


@dataclass(frozen=True, eq=False)
class Sides:
    """The ranges of one attribute that occur among the regions, and the number of the one that each region has."""

    ranges: Integers
    """distinct ranges x 2: [lo, hi) of places in the order"""
    number: Callable[[Integers], Integers]
    """from regions to rows of `ranges`"""
    order: Integers
    """the attribute's leaves in the order of which these are ranges: of their codes, or group after group"""

    @classmethod
    def of_boxes(cls, ranges: NDArray[np.integer], leaves: int) -> Sides:
        """Find the distinct ranges of boxes (boxes x 2) along an attribute with so many leaves.

        >>> jobs = Sides.of_boxes(np.array([[0, 4], [0, 2], [2, 4]]), 4)
        >>> jobs.ranges.tolist(), jobs.number(np.arange(3)).tolist()
        ([[0, 2], [0, 4], [2, 4]], [1, 0, 2])
        """
        base = leaves + 1
        keys, numbers = np.unique(ranges[:, 0] * np.int64(base) + ranges[:, 1], return_inverse=True)
        return cls(np.stack(np.divmod(keys, base), axis=1), numbers.__getitem__, np.arange(leaves))

    def of(self, regions: Integers) -> Integers:
        """Look up the range of each region: regions x 2."""
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
    """what files call it"""
    disjoint: ClassVar[bool]
    """whether each person lies in one region, and everyone in some"""

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
        """The ranges of every region, in the order of which it has ranges: regions x attributes x 2."""

    @property
    def region_nodes(self) -> Integers | None:
        """The numbers by which the regions are known among the nodes of a tree; None if there are no other nodes."""

    @property
    def sampling(self) -> Fraction:
        """The probability with which each record was drawn to be counted."""

    def sides(self, attribute: int) -> Sides:
        """See the regions from one attribute."""

    def regions_of(self, columns: Sequence[Codes]) -> Integers:
        """Find the region that holds each coded row, where regions are disjoint."""

    def nodes_at(self, places: Integers) -> Integers | None:
        """Read which nodes counts are of, as a question has it: refuse places that there are not, or that come twice."""

    def plain(self) -> dict[str, Any]:
        """Write it in plain values, for a file; the shape is the schema's."""

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""


def refuse_some(places: Integers, number: int) -> None:
    """Refuse places that are not all of so many, in their order."""
    if len(places) != number or not np.array_equal(places, np.arange(len(places))):
        raise ValueError("there must be a count for every region")


def whole_numbers(given: Any) -> Integers:
    """Read whole numbers from a list that anyone may have written."""
    numbers = np.array(given)
    if numbers.size and numbers.dtype.kind != "i":
        raise ValueError("numbers must be whole, of 64 bits at most")
    return numbers.astype(np.int64)
