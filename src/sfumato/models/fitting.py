"""One distribution fitted to all that was measured: masses of regions by class, and weights of the leaves inside them.

A cell of a region r has the region's mass times, for each attribute, the weight of its leaf over the weights of all
leaves in the region's range. Three things are known and must agree:

* *Margins* of all attributes and the class, the most precise of all. One-way answers are theirs.
* *Regions'* counts. What they say of single attributes the margins say better; what they add is how attributes hang
  together. So their departures from independent margins are taken, shrunk as far as noise made them (empirical Bayes),
  and put on top of independence.
* *The size* of the table, which every measurement that counts everyone tells: their mean by inverse variance.

Raking brings all in line: in turn, each attribute's leaves are multiplied by what is lacking, in all regions alike. The
family above is closed under that, and what regions say of two attributes together is kept but for what margins correct.
Post-processing of released numbers, so floats are allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.halving import families, height
from sfumato.geometry.regions import Sides
from sfumato.models.consistency import LeastSquares
from sfumato.models.margins import Margin, measurements_of, people_of
from sfumato.privacy.measurements import Measurement

GAMMA = 1.6
"""How far two parts of shares p and q may depart from independence: as N (p (1 - p) q (1 - q))^(GAMMA / 2). With 2 all
parts would depart by the same share of what is expected, with 1 by the most that their sizes allow."""
LEAST_SHARE = 1e-6
"""No leaf, part or cell has less than this share of what an even spread would give it: nothing is ruled out."""
CLOSE = 1e-6
"""Raking ends when no attribute misses its margin by more than this share of all people in all,"""
STALLED = 0.999
"""or when SWEEPS of them hardly bring it nearer: measurements that contradict each other cannot all be met."""
SWEEPS = 10
MOST_SWEEPS = 400
TAUS = np.concatenate([[0.0], 10.0 ** np.arange(-8.0, 1.1, 0.25)])
"""The shares of what departures could be that are tried."""
HIGHEST_ORDER = 3
"""Departures of so many attributes together are looked at; more add almost nothing."""
MOST_CELLS = 1 << 20
"""Larger grids are raked to margins alone, and not to pairs."""
PAIR_SWEEPS = 40


@dataclass(frozen=True)
class Size:
    """The estimated number of people and its variance."""

    value: float
    variance: float

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Size:
        """Take the mean of all totals by inverse variance; of a tree, that of its nodes is told by its root."""
        totals = [
            (float(one.counts.sum()), float(one.noisy.variances @ np.full(len(one.counts), one.counts.shape[1])))
            for one in measurements
            if one.question.nodes is None
        ]
        weights = np.array([1 / variance for _, variance in totals])
        value = float(weights @ [total for total, _ in totals] / weights.sum())
        return cls(max(value, 1.0), float(1 / weights.sum()))


@dataclass(frozen=True, eq=False)
class Margins:
    """How many people each leaf of each attribute and each class has, and how far noise may have moved sums of them."""

    size: Size
    people: tuple[Floats, ...]
    """by attribute, in the order of codes; each sums to the size"""
    classes: Floats
    class_variance: float
    """of each class's own count"""
    measured: Mapping[int, Margin]

    @classmethod
    def of(
        cls, shape: Sequence[int], measured: Mapping[int, Margin], classes: Sequence[Measurement], size: Size
    ) -> Margins:
        """Estimate people from margins, all of which must sum to the size."""
        people = tuple(
            _scaled(people_of(measured[at], size.value, size.variance), size.value)
            if at in measured
            else np.full(leaves, size.value / leaves)
            for at, leaves in enumerate(shape)
        )
        if not classes:
            return cls(size, people, np.array([size.value]), size.variance, measured)
        precision = sum(1 / float(one.noisy.variances[0]) for one in classes)
        mean = sum(one.counts[0] / float(one.noisy.variances[0]) for one in classes) / precision
        counted = np.asarray(mean + (size.value - float(np.sum(mean))) / len(mean), np.float64)
        return cls(size, people, _scaled(counted, size.value), 1 / precision, measured)

    @cached_property
    def _least_squares(self) -> dict[int, tuple[LeastSquares, Floats]]:
        """What the levels of each margin say by least squares, the size being one more measurement, of all."""
        found = {}
        for attribute, margin in self.measured.items():
            values, precision = measurements_of(margin, self.size.value, self.size.variance)
            passes = LeastSquares.of(families(margin.leaves), precision)
            found[attribute] = (passes, passes.values(values[:, None])[:, 0])
        return found

    def errors(self, attribute: int, weights: Floats, answers: Floats) -> Floats:
        """Bound the error of weighted sums of an attribute's leaves (queries x leaves), as variances.

        It is that of least squares, which is exact; but where the estimate was shrunk away from that, the distance may
        be error, too: its square counts up to nine times the variance.
        """
        if attribute not in self._least_squares:
            return np.zeros(len(weights))
        passes, values = self._least_squares[attribute]
        leaves = weights.shape[1]
        nodes = np.zeros((len(weights), len(values)))
        nodes[:, (1 << height(leaves)) - 1 :] = weights
        variance = passes.variance(nodes)
        moved = (answers - nodes @ values) ** 2
        return np.asarray(np.maximum(variance, np.minimum(moved, 9 * variance)))

    def class_errors(self, weights: Floats) -> Floats:
        """Bound the error of weighted sums of classes (queries x classes): their own counts', or the others' and the
        size's, whatever is less.
        """
        own = self.class_variance * (weights**2).sum(axis=1)
        others = self.class_variance * ((1 - weights) ** 2).sum(axis=1) + self.size.variance
        return np.asarray(np.minimum(own, others))


def _scaled(people: Floats, total: float) -> Floats:
    """Make people positive and sum to a total."""
    positive = np.maximum(people, 0.0) + LEAST_SHARE * total / len(people)
    return np.asarray(positive * (total / positive.sum()))


def shrunk(departures: Floats, noise: Floats, scale: Floats) -> tuple[Floats, Floats, float]:
    """Shrink departures d with noise of variance n, before which they vary by tau s: to d tau s / (tau s + n).

    tau is that of the largest marginal likelihood, in which d has variance tau s + n: one number for all of them, or 0
    if noise alone explains them. What is left of the variance is tau s n / (tau s + n).
    """
    losses = [float((np.log(tau * scale + noise) + departures**2 / (tau * scale + noise)).sum()) for tau in TAUS]
    tau = float(TAUS[int(np.argmin(losses))])
    kept = tau * scale / (tau * scale + noise)
    return departures * kept, kept * noise, tau


@dataclass(eq=False)
class Fitted:
    """The distribution: masses of regions x classes, and weights of leaves by attribute, in the order of the sides."""

    margins: Margins
    sides: Sequence[Sides]
    numbers: Sequence[Integers]
    """the range of each region, by attribute"""
    masses: Floats
    weights: list[Floats] = field(init=False)
    sweeps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Begin with the margins' people as weights, and rake."""
        self.weights = [people[side.order] for people, side in zip(self.margins.people, self.sides, strict=True)]
        self._rake()

    def within(self, attribute: int, leaves: Floats) -> Floats:
        """Sum numbers of leaves over each range of an attribute."""
        running, ranges = np.concatenate(([0.0], np.cumsum(leaves))), self.sides[attribute].ranges
        return np.asarray(running[ranges[:, 1]] - running[ranges[:, 0]])

    def mass_by_range(self, attribute: int) -> Floats:
        """Sum the regions that have each range of an attribute."""
        masses = self.masses.sum(axis=1)
        return np.bincount(self.numbers[attribute], masses, len(self.sides[attribute].ranges)).astype(np.float64)

    def one_way(self, attribute: int) -> Floats:
        """Sum the people of each leaf of an attribute, in the order of its side."""
        ranges, weights = self.sides[attribute].ranges, self.weights[attribute]
        density = self.mass_by_range(attribute) / self.within(attribute, weights)
        steps = np.zeros(len(weights) + 1)
        np.add.at(steps, ranges[:, 0], density)
        np.add.at(steps, ranges[:, 1], -density)
        return np.asarray(np.maximum(np.cumsum(steps[:-1]), 0.0) * weights)

    def _rake(self) -> None:
        """Sweep over attributes and classes until all agree with their margins."""
        missed: list[float] = []
        total = self.margins.size.value
        while len(missed) < MOST_SWEEPS:
            worst = self._rake_classes()
            for attribute, side in enumerate(self.sides):
                worst = max(worst, self._rake_attribute(attribute, self.margins.people[attribute][side.order]))
            missed.append(worst / total)
            stalled = len(missed) > SWEEPS and missed[-1] > STALLED * missed[-1 - SWEEPS]
            if missed[-1] < CLOSE or stalled:
                break
        self.sweeps = len(missed)

    def _rake_classes(self) -> float:
        if self.masses.shape[1] < 2:
            return 0.0
        now = np.maximum(self.masses.sum(axis=0), LEAST_SHARE)
        self.masses *= self.margins.classes / now
        return float(np.abs(self.margins.classes - now).sum())

    def _rake_attribute(self, attribute: int, wanted: Floats) -> float:
        """Multiply an attribute's leaves by what is lacking: their weights, and masses by what their ranges gain."""
        now = self.one_way(attribute)
        factors = np.clip(wanted / np.maximum(now, LEAST_SHARE * wanted), 1e-3, 1e3)
        before = self.within(attribute, self.weights[attribute])
        raked = self.weights[attribute] * factors
        self.weights[attribute] = np.maximum(raked, LEAST_SHARE * raked.sum() / len(raked) * 1e-3)
        gained = self.within(attribute, self.weights[attribute]) / before
        self.masses *= gained[self.numbers[attribute], None]
        return float(np.abs(wanted - now).sum())


@dataclass(frozen=True, eq=False)
class Interactions:
    """What the counts of a grid say beyond independent margins: a table of masses, and how far pairs may err."""

    masses: Floats
    """an axis for each attribute that is cut, and for the class"""
    shares: tuple[Floats, ...]
    """of the parts of each axis, by the margins"""
    errors: Mapping[tuple[int, int], Floats]
    """by two axes: the variance that is left of each departure"""
    strength: float
    """the mean tau of pairs: how strongly attributes hang together here"""


def interactions_of(counts: Floats, variance: float, shares: Sequence[Floats], total: float) -> Interactions:
    """Shrink what noisy counts (an axis for each attribute and the class) depart from independence by.

    Summed over all axes but those in I, with what fewer of them say projected out, the departures of I are left: D =
    (1 - p 1') S along each axis of I, p being the margin's shares. Noise of a sum of m cells is m times theirs, and
    projecting along an axis of n parts multiplies it by (1 - p)^2 + (n - 1) p^2.
    """
    axes = range(counts.ndim)
    masses = np.full(counts.shape, total)
    for axis, share in enumerate(shares):
        masses = masses * _along(share, axis, counts.ndim)
    independent, errors, strengths = masses, {}, []
    pairs: dict[tuple[int, ...], Floats] = {}
    for order in range(2, min(HIGHEST_ORDER, counts.ndim) + 1):
        for chosen in itertools.combinations(axes, order):
            others = tuple(axis for axis in axes if axis not in chosen)
            found, left, tau = _departures(counts, variance, chosen, others, shares, total)
            if order == 2:
                errors[chosen[0], chosen[1]] = left
                strengths.append(tau)
            if tau:
                spread = np.expand_dims(found, others)
                for axis in others:
                    spread = spread * _along(shares[axis], axis, counts.ndim)
                masses = masses + spread
                if order == 2:
                    pairs[chosen] = _possible(found, [shares[axis] for axis in chosen], total)
    masses = np.maximum(masses, LEAST_SHARE * independent)
    if masses.size <= MOST_CELLS:
        masses = _raked_to_pairs(masses, pairs, total)
    return Interactions(masses, tuple(shares), errors, float(np.mean(strengths)) if strengths else 0.0)


def _along(share: Floats, axis: int, axes: int) -> Floats:
    return share.reshape([-1 if one == axis else 1 for one in range(axes)])


def _departures(
    counts: Floats,
    variance: float,
    chosen: tuple[int, ...],
    others: tuple[int, ...],
    shares: Sequence[Floats],
    total: float,
) -> tuple[Floats, Floats, float]:
    found = counts.sum(axis=others)
    noise = np.full(found.shape, variance * np.prod([counts.shape[axis] for axis in others]))
    scale = np.full(found.shape, total**2)
    for at, axis in enumerate(chosen):
        share = _along(shares[axis], at, len(chosen))
        found = found - found.sum(axis=at, keepdims=True) * share
        noise = noise * ((1 - share) ** 2 + (counts.shape[axis] - 1) * share**2)
        scale = scale * (share * (1 - share) + LEAST_SHARE) ** GAMMA
    return shrunk(found, noise, scale)


def _possible(departures: Floats, shares: Sequence[Floats], total: float) -> Floats:
    """Make a two-way table of independence and departures that has the margins' shares and no negative cell."""
    independent = total * np.outer(shares[0], shares[1])
    table = np.maximum(independent + departures, LEAST_SHARE * independent)
    for _ in range(PAIR_SWEEPS):
        table = table * (total * shares[0] / table.sum(axis=1))[:, None]
        table = table * (total * shares[1] / table.sum(axis=0))[None]
    return table


def _raked_to_pairs(masses: Floats, pairs: Mapping[tuple[int, ...], Floats], total: float) -> Floats:
    """Sweep over two-way tables; they need not be possible all together, so a few sweeps must do."""
    for _ in range(PAIR_SWEEPS):
        missed = 0.0
        for chosen, wanted in pairs.items():
            others = tuple(axis for axis in range(masses.ndim) if axis not in chosen)
            now = masses.sum(axis=others)
            missed = max(missed, float(np.abs(wanted - now).sum()) / total)
            masses = masses * np.expand_dims(wanted / np.maximum(now, LEAST_SHARE), others)
        if missed < 1e-4:
            break
    return masses
