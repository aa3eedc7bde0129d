"""Estimates of single cells: every combination of leaves of a few attributes, with the people that are seen there.

A cell's estimate is the sum over the regions of their estimates times the shares that the cell's leaves have of the
regions' ranges. It is summed attribute by attribute: regions that have the same range of the first one are brought to
cells of the others together, and only then spread over the leaves of that range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Indices
from sfumato.release.regions import Sides
from sfumato.release.spread import Spread, sums_within

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute of the cells: its ranges and which of them each region has, and the mass of its leaves."""

    ranges: Indices
    number: Indices
    mass: Floats
    range_mass: Floats

    @classmethod
    def of(cls, sides: Sides, spread: Spread, regions: int) -> Axis:
        """See an attribute's leaves as the release spreads people over them."""
        range_mass = sums_within(spread.mass, sides.ranges)
        return cls(sides.ranges, sides.number(np.arange(regions)), spread.mass, range_mass)

    def shares(self, number: int) -> Floats:
        """Give the shares that the leaves of a range have of its people."""
        first, end = self.ranges[number]
        return np.asarray(self.mass[first:end] / self.range_mass[number])


def cell_estimates(counts: Floats, axes: Sequence[Axis]) -> Floats:
    """Give the estimates of all cells from those of the regions: regions x classes to leaves x leaves ... x classes.

    It is fastest when attributes with few ranges come first.

    >>> sides = Sides(np.array([[0, 2], [2, 4]]), np.array([0, 1]).__getitem__, np.arange(4))
    >>> cell_estimates(np.array([[6.0, 1.0], [2.0, 0.0]]), [Axis.of(sides, Spread.of(4), 2)]).tolist()
    [[3.0, 0.5], [3.0, 0.5], [1.0, 0.0], [1.0, 0.0]]
    """
    return _estimates(counts, axes, np.arange(len(counts)))


def _estimates(counts: Floats, axes: Sequence[Axis], regions: Indices) -> Floats:
    """Bring some regions to cells."""
    if not axes:
        return np.asarray(counts[regions].sum(axis=0))
    axis, *others = axes
    cells = np.zeros((*(len(one.mass) for one in axes), counts.shape[1]))
    for number, members in _groups(axis.number[regions]):
        first, end = axis.ranges[number]
        cells[first:end] += np.multiply.outer(axis.shares(number), _estimates(counts, others, regions[members]))
    return cells


def _groups(numbers: Indices) -> Iterator[tuple[int, Indices]]:
    """Give each number that occurs, and where."""
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return zip(numbers[order[starts]].tolist(), np.split(order, starts[1:]), strict=True)
