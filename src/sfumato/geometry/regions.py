"""What grids, trees and boxes have in common: regions, seen attribute by attribute.

Few ranges of one attribute occur however many regions there are, so whatever is costly (a name, a covered share) is
done once per range and then handed to the regions by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

    def sides(self, attribute: int) -> Sides:
        """See the regions from one attribute."""

    def regions_of(self, columns: Sequence[Codes]) -> Integers:
        """Find the region that holds each coded row, where regions are disjoint."""

    def plain(self) -> dict[str, Any]:
        """Write it in plain values, for a file; the shape is the schema's."""

    @classmethod
    def of_plain(cls, shape: tuple[int, ...], plain: Mapping[str, Any]) -> Self:
        """Read it back, refusing what is none."""


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
