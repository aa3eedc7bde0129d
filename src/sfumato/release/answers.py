"""Range counts from a release, each with the deviation that the noise of the counts gives it.

An answer is a weighted sum of the regions' estimates, so the variance from their noise is known exactly, no matter how
many regions. What that does not cover, spreading people inside regions (and the noise of the margins by which they are
spread), is told beside it: how much of the answer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Grid, Indices
from sfumato.release.estimates import Estimates
from sfumato.release.regions import Sides
from sfumato.release.spread import Spread, sums_within
from sfumato.tree import Partition

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""
    aligned: bool
    """Whether the condition covers every region wholly or not at all, so that nothing is assumed."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval, and what it leaves out."""
        spread = f"; {self.assumed:,.0f} rests on spreading inside groups)"
        if not self.stddev:
            return f"{self.value:,.0f} (no noise{')' if self.aligned else spread}"
        return f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %{')' if self.aligned else ' for noise' + spread}"


@dataclass(frozen=True, eq=False)
class Cover:
    """How much of each range of an attribute a condition covers: its people, and whether wholly or not at all."""

    weights: Floats
    whole: Booleans
    untouched: Booleans

    @classmethod
    def of(cls, ranges: Indices, spread: Spread, leaves: Floats) -> Cover:
        """Weigh ranges by the covered shares of their leaves."""
        widths = ranges[:, 1] - ranges[:, 0]
        whole, untouched = (sums_within(leaves == share, ranges) == widths for share in (1.0, 0.0))
        return cls(spread.shares(ranges, leaves), whole, untouched)


def estimate(
    partition: Partition, sides: Sequence[Sides], estimates: Estimates, covers: Mapping[int, Cover], classes: Floats
) -> Estimate:
    """Weigh every region by the product of its ranges' covers, by restricted attribute, and every class by its own."""
    if isinstance(partition, Grid):
        return _of_grid(partition, estimates, covers, classes)
    return _of_regions(sides, estimates, covers, classes)


def _of_grid(grid: Grid, estimates: Estimates, covers: Mapping[int, Cover], classes: Floats) -> Estimate:
    """Sum out one attribute after the other, since the regions are all combinations of ranges."""
    attributes = sorted({*grid.split_attributes, *covers})
    everything = {at: np.ones(grid.parts[at]) for at in attributes}
    weights = everything | {at: cover.weights for at, cover in covers.items()}
    whole = everything | {at: cover.whole.astype(np.float64) for at, cover in covers.items()}
    value, resolved = (_contract(estimates.values, [*factors.values(), classes]) for factors in (weights, whole))
    variance = _contract(estimates.variances, [factor**2 for factor in weights.values()]) * float(classes @ classes)
    aligned = all((cover.whole | cover.untouched).all() for cover in covers.values())
    nobody = any(cover.untouched.all() for cover in covers.values())
    return _answer(value, resolved, variance, aligned or nobody)


def wholly_covered(sides: Sequence[Sides], regions: Indices, covers: Mapping[int, Cover]) -> Booleans:
    """Tell which regions a condition covers wholly."""
    whole = np.ones(len(regions), np.bool_)
    for attribute, cover in covers.items():
        whole &= cover.whole[sides[attribute].number(regions)]
    return whole


def _of_regions(sides: Sequence[Sides], estimates: Estimates, covers: Mapping[int, Cover], classes: Floats) -> Estimate:
    """Hand every region what its ranges have."""
    regions = np.arange(len(estimates.values))
    weights, untouched = np.ones(len(regions)), np.zeros(len(regions), np.bool_)
    for attribute, cover in covers.items():
        numbers = sides[attribute].number(regions)
        weights *= cover.weights[numbers]
        untouched |= cover.untouched[numbers]
    whole = wholly_covered(sides, regions, covers)
    counts = estimates.values @ classes
    variance = estimates.variance(weights) * float(classes @ classes)
    return _answer(float(weights @ counts), float(whole @ counts), variance, bool((whole | untouched).all()))


def _answer(value: float, resolved: float, variance: float, aligned: bool) -> Estimate:
    return Estimate(value, math.sqrt(variance), 0.0 if aligned else value - resolved, aligned)


def _contract(table: Floats, weights: Iterable[Floats]) -> float:
    """Weigh and sum a table axis by axis, outermost first; only the weights know its axes."""
    for one in weights:
        table = one @ table.reshape(len(one), -1)
    return float(table.sum())
