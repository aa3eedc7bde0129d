"""Boxes of leaf codes that may overlap: the groups of records that were each generalized in their own way.

They are no partition: a person can lie in several, so one record more could move several counts. Tallies, and with them
the meter, refuse them; only releases without epsilon have such groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Codes, Integers, row_keys
from sfumato.errors import ReleaseError
from sfumato.exact import read_fraction
from sfumato.geometry.regions import Sides, refuse_some, whole_numbers


@dataclass(frozen=True, eq=False)
class Boxes:
    """Different boxes, disjoint or not, that need not cover the domain.

    >>> groups = Boxes((4, 47), np.array([[[0, 2], [3, 8]], [[0, 4], [5, 6]]]))
    >>> groups.regions, groups.split_attributes
    (2, (0, 1))
    """

    kind: ClassVar[str] = "boxes"
    disjoint: ClassVar[bool] = False

    shape: tuple[int, ...]
    ranges: Integers
    """boxes x attributes x 2: [lo, hi) of leaf codes"""
    sampling: Fraction = Fraction(1)
    """the probability with which each record of the table was drawn to be counted in them"""

    def __post_init__(self) -> None:
        """Refuse ranges that are none, and boxes that are there twice: equal records are one group."""
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
        """The attributes of which some box has less than all."""
        widths = self.ranges[:, :, 1] - self.ranges[:, :, 0]
        return tuple(np.flatnonzero((widths < np.asarray(self.shape)).any(axis=0)).tolist())

    def sides(self, attribute: int) -> Sides:
        """See the boxes from one attribute."""
        return Sides.of_boxes(self.ranges[:, attribute], self.shape[attribute])

    @property
    def region_nodes(self) -> None:
        """None: there is nothing above the boxes."""

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
        """Write the ends of all ranges, attribute by attribute, and the sampling rate."""
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
