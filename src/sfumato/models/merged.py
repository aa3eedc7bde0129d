"""Margins that leave something untold: people in bins of leaves, or along a few waves, and nothing finer.

Inside a bin people are taken to be spread evenly, and beyond the last wave nothing is taken to happen. An answer that
cuts through a bin rests on that, so it has an error of the model besides that of the noise.
Post-processing of released numbers, so floats are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.contrasts import Waves
from sfumato.models.consistency import threshold

MOST_COUNTED = 100_000
"""Of an attribute that regions cut into more parts times leaves, its margin tells better what each has."""
UNEVEN = 0.5
"""How unevenly a bin's people may lie in it: the share that lies in a part w of it is taken to vary by this times
sqrt(w (1 - w)), as in regions."""
EVEN = 0.1
"""And so unevenly it may lie even if all bins look alike."""
AS_T = 0.4555
"""A standard deviation of a normal error, as the scale of Student's t with two degrees of freedom that has the same
95 % interval."""


@dataclass(frozen=True, eq=False)
class Beside:
    """What was counted of an attribute besides its margin: everyone, and parts of it by regions."""

    total: float
    variance: float
    """of the total"""
    leaves: Floats
    """parts x leaves: 1 for those that are counted"""
    sums: Floats
    variances: Floats

    @classmethod
    def everyone(cls, leaves: int, total: float = 0.0, variance: float = np.inf) -> Beside:
        """A count of everyone, or nothing if its variance is infinite."""
        return cls(total, variance, np.zeros((0, leaves)), np.zeros(0), np.zeros(0))

    def with_parts(self, part_of: Integers, sums: Floats, variances: Floats) -> Beside:
        """Counts of parts, too, by the part of each leaf; none where they are so many that the margin knows better."""
        if len(sums) * len(part_of) > MOST_COUNTED:
            return self
        leaves = (np.arange(len(sums))[:, None] == part_of).astype(np.float64)
        return Beside(self.total, self.variance, leaves, sums, variances)


@dataclass(frozen=True, eq=False)
class Counted:
    """Noisy counts of an attribute's leaves, or of ranges of them where there are very many."""

    borders: Integers
    counts: Floats
    variance: float

    def untold(self, left: Floats) -> tuple[Floats, Floats]:
        """Of weights that an answer does not see: the variance that these counts tell, and the weights that they do
        not see either.
        """
        widths = np.diff(self.borders)
        means = np.add.reduceat(left, self.borders[:-1], axis=1) / widths
        square = (means @ self.counts) ** 2 + self.variance * (means**2).sum(axis=1)
        return np.asarray(square), left - np.repeat(means, widths, axis=1)


@dataclass(frozen=True, eq=False)
class Merged:
    """What was measured of an attribute by fewer numbers z than leaves, each with noise of its own.

    Parts are ranges of leaves, evenly filled; their people are `synthesis` z, and z is `analysis` times them.
    """

    borders: Integers
    """where parts begin, and where the last ends"""
    synthesis: Floats
    """parts x numbers"""
    analysis: Floats
    """numbers x parts"""
    numbers: Floats
    variances: Floats
    merged: float
    """how many parts stand together, on average, for one number"""
    counted: Counted | None = None
    """what was counted before it was merged, if that was so"""

    @classmethod
    def of_bins(cls, borders: Integers, counts: Integers, variances: Floats) -> Merged:
        """Bins that were counted: each is a part."""
        own = np.eye(len(counts))
        return cls(borders, own, own, counts.astype(np.float64), variances, 1.0)

    @classmethod
    def of_waves(cls, waves: Waves, sums: Integers, variance: float) -> Merged:
        """Waves that were measured: parts are the shortest vector that has these sums."""
        weights = waves.weights.astype(np.float64)
        parts = len(waves.borders) - 1
        return cls(
            waves.borders,
            np.asarray(np.linalg.pinv(weights), np.float64),
            weights,
            sums.astype(np.float64),
            np.full(len(sums), variance),
            parts / waves.kept,
        )

    @classmethod
    def of_counted(cls, counted: Counted) -> Merged:
        """Counts that were merged to bins afterwards (NoiseFirst: Xu et al. 2013)."""
        bins = best_bins(counted.counts, 2 * counted.variance)
        sums, own = np.add.reduceat(counted.counts, bins[:-1]), np.eye(len(bins) - 1)
        return cls(counted.borders[bins], own, own, sums, np.diff(bins) * counted.variance, 1.0, counted)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return int(self.borders[-1])

    @property
    def tells_total(self) -> bool:
        """Whether everyone is counted: in bins, or by the first wave."""
        return True

    def people(self, beside: Beside) -> Floats:
        """Estimate the people of each leaf, none of them negative: what is cut at 0 is taken off the others."""
        parts = self.estimator(beside).parts
        least = threshold(parts)
        return self.over_leaves(np.maximum(parts - least, 0.0) if parts.min() < 0 else parts)

    def estimator(self, beside: Beside) -> MergedEstimator:
        """Give the estimator that knows how far sums of leaves may be off."""
        return MergedEstimator(self, beside)

    @cached_property
    def widths(self) -> Integers:
        """The number of leaves of each part."""
        return np.diff(self.borders)

    def over_leaves(self, parts: Floats) -> Floats:
        """Spread the people of parts evenly over their leaves."""
        return np.repeat(parts / self.widths, self.widths)

    def by_part(self, weights: Floats) -> Floats:
        """Average weights of leaves over each part: queries x parts."""
        return np.asarray(np.add.reduceat(weights, self.borders[:-1], axis=1) / self.widths)


@dataclass(frozen=True, eq=False)
class MergedEstimator:
    """Estimates from the numbers of a margin, and from what was counted besides.

    z has variances V. Everyone and parts of the attribute are sums C z besides, measured as s with variances W: so the
    estimate is z + V C' (C V C' + W)^-1 (s - C z), and its covariance V - V C' (C V C' + W)^-1 C V.
    """

    margin: Merged
    beside: Beside

    @cached_property
    def _besides(self) -> tuple[Floats, Floats, Floats]:
        """Give C, s and W."""
        sums, beside = np.atleast_2d(self.beside.leaves), self.beside
        total = np.isfinite(beside.variance)
        rows = np.concatenate([np.ones((int(total), self.margin.leaves)), sums])
        counts = np.concatenate([[beside.total] if total else [], beside.sums])
        variances = np.concatenate([[beside.variance] if total else [], beside.variances])
        return np.asarray(self.margin.by_part(rows) @ self.margin.synthesis), counts, variances

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """Give the numbers' best estimates and their covariances."""
        numbers, own = self.margin.numbers, np.diag(self.margin.variances)
        sums, counts, variances = self._besides
        if not len(sums):
            return numbers, own
        gain = own @ sums.T @ np.linalg.inv(sums @ own @ sums.T + np.diag(variances))
        return np.asarray(numbers + gain @ (counts - sums @ numbers)), np.asarray(own - gain @ sums @ own)

    @cached_property
    def parts(self) -> Floats:
        """Estimate the people of each part."""
        return np.asarray(self.margin.synthesis @ self._solved[0])

    def variances(self, weights: Floats) -> Floats:
        """Give the variances of weighted sums of leaves by noise: queries x leaves."""
        reached = self.margin.by_part(weights) @ self.margin.synthesis
        return np.asarray(np.maximum(((reached @ self._solved[1]) * reached).sum(axis=1), 0.0))

    def untold(self, weights: Floats) -> Floats:
        """Give how far weighted sums may be off because of what was merged, as scales of Student's t.

        What an answer does not see of its weights is r, the weights less what the numbers tell of them; so it is off by
        the people weighted by r. Where leaves were counted, that is known up to their noise: r y, of variance
        v sum r^2; the answer does not add it, for it would undo the merging. Else people of a bin of w leaves may lie
        in it as unevenly as UNEVEN says, but hardly more so than one bin differs from the next: with x the people of a
        leaf, or that difference, the sum of r^2 x^2 w over leaves is the square of all of them times the variance of r.
        """
        margin = self.margin
        seen = margin.by_part(weights) @ margin.synthesis @ margin.analysis
        left = weights - np.repeat(seen, margin.widths, axis=1)
        told = np.zeros(len(weights))
        if margin.counted is not None:
            told, left = margin.counted.untold(left)
        people = margin.over_leaves(self._steps)
        together = np.repeat(margin.widths * margin.merged, margin.widths)
        return np.asarray(np.sqrt(AS_T**2 * told + UNEVEN**2 * (left**2 @ (people**2 * together))))

    @cached_property
    def _steps(self) -> Floats:
        """How many people of each part may lie unevenly: as many as it has, or differs by from its neighbours and by
        noise, and a tenth.
        """
        margin = self.margin
        leaves, reach = self.parts / margin.widths, max(round(margin.merged), 1)
        beyond = np.pad(leaves, reach, mode="edge")
        apart = np.maximum(np.abs(leaves - beyond[: -2 * reach]), np.abs(leaves - beyond[2 * reach :]))
        noise = np.maximum(((margin.synthesis @ self._solved[1]) * margin.synthesis).sum(axis=1), 0.0)
        people = np.abs(self.parts)
        return np.asarray(np.minimum(apart * margin.widths + EVEN * people, people) + np.sqrt(noise))


def best_bins(counts: Integers | Floats, price: float) -> Integers:
    """Find the bins of least squared deviation from their means plus a price for each of them: their borders.

    With noise of variance v on n counts and k bins, the squared error of the bins' means is expected to be the sum of
    squares minus (n - 2 k) v (Xu et al. 2013): a price of 2 v for each bin, and a number that is the same for all. One
    pass over the ends finds the best of all numbers of bins.

    >>> best_bins(np.array([9, 11, 10, 2, 1, 2]), 4.0).tolist()
    [0, 3, 6]
    """
    size = len(counts)
    running, squared = (np.concatenate(([0.0], np.cumsum(one.astype(np.float64)))) for one in (counts, counts**2))
    best, begins = np.zeros(size + 1), np.zeros(size + 1, np.int64)
    for end in range(1, size + 1):
        widths = end - np.arange(end)
        apart = squared[end] - squared[:end] - (running[end] - running[:end]) ** 2 / widths
        costs = best[:end] + apart + price
        begins[end] = int(costs.argmin())
        best[end] = costs[begins[end]]
    found = [size]
    while found[-1]:
        found.append(int(begins[found[-1]]))
    return np.array(found[::-1])
