"""One distribution fitted to all that was measured: masses of regions by class, and weights of the leaves inside them.

A cell of a region r has the region's mass times, for each attribute, the weight of its leaf over the weights of all
leaves in the region's range. Three things are known and must agree:

* *Margins* of all attributes and the class. One-way answers are theirs, and the regions' own sums along an attribute
  are one more measurement of them.
* *Regions'* counts. What they add to margins is how attributes hang together. So their departures from independent
  margins are taken, shrunk as far as noise made them (empirical Bayes), and put on top of independence.
* *The size* of the table, which every measurement that counts everyone tells: their mean by inverse variance.

Raking brings all in line: in turn, each attribute's leaves are multiplied by what is lacking, in all regions alike. The
family above is closed under that, and what regions say of two attributes together is kept but for what margins correct.
Post-processing of released numbers, so floats are allowed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.regions import Sides
from sfumato.models.intervals import GAMMA, PAIR, TRIPLE
from sfumato.models.margins import AnyMargin, Estimator
from sfumato.models.merged import Beside, MergedEstimator

LEAST_SHARE = 1e-6
"""No leaf, part or cell has less than this share of what an even spread would give it: nothing is ruled out."""
CLOSE = 1e-6
"""Raking ends when no attribute misses its margin by more than this share of all people in all,"""
STALLED = 0.999
"""or when SWEEPS of them hardly bring it nearer: measurements that contradict each other cannot all be met."""
SWEEPS = 10
MOST_SWEEPS = 400
POWERS = np.arange(-4.0, 1.6, 0.25)
"""How much departures vary before noise: what is typical, or what they vary with noise, times these powers of 10."""
FAMILIAR = 0.7
"""The standard deviation of that power, where it is known what is typical."""
MOST_CELLS = 1 << 20
"""Of larger grids only pairs are looked at and not triples, and they are raked to margins alone."""
PAIR_SWEEPS = 40
PAIRS_CLOSE = 1e-4
"""Two-way tables are met when none is missed by more than this share of all people in all."""
TYPICAL = {2: 2 * PAIR**2, 3: 2 * TRIPLE**2}
"""How much pairs and triples of attributes vary around independence, typically: t_2 of scale S is about as far from 0
as a normal distribution of variance 2 S^2, its tails apart."""


Parts = tuple[Integers, Floats, Floats]
"""What regions count of parts of an attribute: the part of each leaf, people in each part, and variances."""


@dataclass(frozen=True)
class Size:
    """The estimated number of people and its variance."""

    value: float
    variance: float

    @classmethod
    def of(cls, totals: Iterable[tuple[float, float]]) -> Size:
        """Take the mean of totals, each with its variance, by inverse variance.

        >>> Size.of([(90.0, 1.0), (100.0, 4.0)])
        Size(value=92.0, variance=0.8)
        """
        each = list(totals)
        weights = np.array([1 / variance for _, variance in each])
        value = float(weights @ [total for total, _ in each] / weights.sum())
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
    estimators: Mapping[int, Estimator | MergedEstimator]
    """of attributes that have a margin"""

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        measured: Mapping[int, AnyMargin],
        parts: Mapping[int, Parts],
        classes: Sequence[tuple[Floats, float]],
        size: Size,
        besides: Mapping[int, Size],
    ) -> Margins:
        """Estimate people from margins, what regions count in parts of attributes, and counts of classes (each with the
        variance of one class), all of which must sum to the size. What is known of the size besides an attribute's own
        margin tells how far that may err: nothing is believed twice.
        """

        def known(at: int, total: float, variance: float) -> Beside:
            everyone = Beside.everyone(shape[at], total, variance)
            return everyone.with_parts(*parts[at]) if at in parts else everyone

        certain = LEAST_SHARE * size.value
        people = tuple(
            _scaled(measured[at].people(known(at, size.value, certain)), size.value)
            if at in measured
            else np.full(leaves, size.value / leaves)
            for at, leaves in enumerate(shape)
        )
        precision = sum(1 / variance for _, variance in classes)
        mean = np.sum([counts / variance for counts, variance in classes], axis=0) / precision
        counted = mean + (size.value - float(np.sum(mean))) / len(mean)
        estimators = {
            at: margin.estimator(known(at, besides[at].value, besides[at].variance)) for at, margin in measured.items()
        }
        return cls(size, people, _scaled(counted, size.value), 1 / precision, estimators)

    def errors(self, attribute: int, weights: Floats) -> Floats:
        """Give the variance of weighted sums of an attribute's leaves (queries x leaves)."""
        if attribute not in self.estimators:
            return np.zeros(len(weights))
        return self.estimators[attribute].variances(weights)

    def untold(self, attribute: int, weights: Floats) -> Floats:
        """Give how far weighted sums of an attribute's leaves may be off by what its margin merged, as scales."""
        if attribute not in self.estimators:
            return np.zeros(len(weights))
        return self.estimators[attribute].untold(weights)

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


def shrunk(departures: Floats, noise: Floats, scale: Floats, typical: float = 0.0) -> tuple[Floats, Floats]:
    """Shrink departures d with noise of variance n, before which they vary by tau s: to d tau s / (tau s + n).

    tau is one number for all of them, and not known: d has variance tau s + n, so what is seen makes some tau likelier
    than others, and the mean over all of them is taken. Beforehand a tau near the typical one is likelier, if there is
    such. What is left of the variance is the mean of tau s n / (tau s + n), and how far the means for different tau are
    apart.
    """
    centre = typical or (float((departures**2).mean()) + 1e-12) / (float(scale.mean()) + 1e-300)
    spans = [centre * 10.0**power * scale for power in POWERS]
    logs = np.array([-float((np.log(one + noise) + departures**2 / (one + noise)).sum()) / 2 for one in spans])
    logs -= (POWERS / FAMILIAR) ** 2 / 2 if typical else 0.0
    weights = np.exp(logs - logs.max())
    kept, square, left = (np.zeros(departures.shape) for _ in range(3))
    for span, weight in zip(spans, weights / weights.sum(), strict=True):
        part = span / (span + noise)
        kept, square, left = kept + weight * part, square + weight * part**2, left + weight * part * noise
    return departures * kept, left + departures**2 * np.maximum(square - kept**2, 0.0)


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
    """What the counts of a grid say beyond independent margins: a table of masses, and how far departures may err."""

    masses: Floats
    """an axis for each attribute that is cut, and for the class"""
    errors: Mapping[tuple[int, ...], Floats]
    """by two or three axes: the variance that is left of each departure, as if it were alone"""
    rest: float
    """the share of the noise that is left of what four axes and more say"""


def interactions_of(counts: Floats, variances: Floats, shares: Sequence[Floats], total: float) -> Interactions:
    """Shrink what noisy counts (an axis for each attribute and the class) depart from independence by.

    What they say of everyone and of single axes the margins have already heard: R, the counts less independence, is
    brought to sum to 0 along each axis, all cells moving alike, which is least squares. Its sums D over all axes but
    two are then the departures of pairs; spread over the other axes by their shares, and taken away, they leave those
    of triples, and these the rest. Each is shrunk by itself; none has a say in fewer axes than its own, so the margins
    stand, and if nothing were shrunk the counts would. A sum of m cells has m times their noise, of which (n - 1) / n
    is left along an axis of n parts that was brought to 0.
    """
    axes = range(counts.ndim)
    independent = np.full(counts.shape, total)
    for axis, share in enumerate(shares):
        independent = independent * _along(share, axis, counts.ndim)
    masses, rest, errors = independent, _centred(counts - independent), dict[tuple[int, ...], Floats]()
    pairs: dict[tuple[int, ...], Floats] = {}
    highest = min(3 if counts.size <= MOST_CELLS else 2, counts.ndim)
    for order in range(2, highest + 1):
        left = rest
        for chosen in itertools.combinations(axes, order):
            found = rest.sum(axis=_others(counts.ndim, chosen))
            noise, scale, freedom = _expected(variances, chosen, shares, total)
            moved, lasting = shrunk(found, noise, scale, TYPICAL[order])
            errors[chosen] = lasting / freedom
            masses, left = masses + _spread(moved, chosen, shares), left - _spread(found, chosen, shares)
            if order == 2 and moved.any():
                pairs[chosen] = _possible(moved, [shares[axis] for axis in chosen], total)
        rest = left
    lasts = 0.0
    if counts.ndim > highest:
        noise = variances * max(1 - _freedom(counts.shape, highest) / counts.size, LEAST_SHARE)
        moved, lasting = shrunk(rest, noise, (independent + LEAST_SHARE) ** GAMMA)
        masses, lasts = masses + moved, float(lasting.mean() / variances.mean())
    masses = np.maximum(masses, LEAST_SHARE * independent)
    if masses.size <= MOST_CELLS:
        masses = _raked_to_pairs(masses, pairs, total)
    return Interactions(masses, errors, lasts)


def _centred(table: Floats) -> Floats:
    """Bring a table to sum to 0 along each axis alone, and all others together, all cells moving alike."""
    mean = float(table.mean())
    centred = table - mean
    for axis in range(table.ndim):
        by_part = table.mean(axis=_others(table.ndim, (axis,))) - mean
        centred = centred - _along(by_part, axis, table.ndim)
    return centred


def _expected(
    variances: Floats, chosen: tuple[int, ...], shares: Sequence[Floats], total: float
) -> tuple[Floats, Floats, float]:
    """Give the variance of the noise of departures, how far they may go, and the part of the noise that is theirs."""
    noise = variances.sum(axis=_others(variances.ndim, chosen))
    freedom = math.prod(1 - 1 / variances.shape[axis] for axis in chosen)
    scale = np.full(noise.shape, total**2)
    for at, axis in enumerate(chosen):
        share = _along(shares[axis], at, len(chosen))
        scale = scale * (share * (1 - share) + LEAST_SHARE) ** GAMMA
    return noise * freedom, scale, freedom


def _freedom(shape: Sequence[int], highest: int) -> int:
    """Count the numbers that departures of so many axes and fewer have, those that sum to 0 apart."""
    sets = (one for order in range(highest + 1) for one in itertools.combinations(shape, order))
    return sum(math.prod(parts - 1 for parts in one) for one in sets)


def _along(share: Floats, axis: int, axes: int) -> Floats:
    return share.reshape([-1 if one == axis else 1 for one in range(axes)])


def _others(axes: int, chosen: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(axes) if axis not in chosen)


def _spread(departures: Floats, chosen: tuple[int, ...], shares: Sequence[Floats]) -> Floats:
    """Spread departures of some axes over all the others, by their shares."""
    others = _others(len(shares), chosen)
    spread = np.expand_dims(departures, others)
    for axis in others:
        spread = spread * _along(shares[axis], axis, len(shares))
    return spread


def _possible(departures: Floats, shares: Sequence[Floats], total: float) -> Floats:
    """Make a two-way table of independence and departures that has the margins' shares and no negative cell."""
    independent = total * np.outer(shares[0], shares[1])
    table = np.maximum(independent + departures, LEAST_SHARE * independent)
    for _ in range(MOST_SWEEPS):
        table = table * (total * shares[0] / table.sum(axis=1))[:, None]
        now = table.sum(axis=0)
        table = table * (total * shares[1] / now)[None]
        if float(np.abs(now - total * shares[1]).sum()) < CLOSE * total:
            break
    return table


def _raked_to_pairs(masses: Floats, pairs: Mapping[tuple[int, ...], Floats], total: float) -> Floats:
    """Sweep over two-way tables until all are met; those that contradict each other never are, so sweeps are limited.

    What is left over is small beside their noise, and margins are met afterwards.
    """
    for _ in range(PAIR_SWEEPS):
        missed = 0.0
        for chosen, wanted in pairs.items():
            others = _others(masses.ndim, chosen)
            now = masses.sum(axis=others)
            missed = max(missed, float(np.abs(wanted - now).sum()) / total)
            masses = masses * np.expand_dims(wanted / np.maximum(now, LEAST_SHARE), others)
        if missed < PAIRS_CLOSE:
            break
    return masses
