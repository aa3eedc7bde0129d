"""How people are spread over the leaves of an attribute: by a noisy margin, or evenly where there is none.

A margin is all that was measured of one attribute alone: levels of the halving of its leaves. Its people are those of
least squares over all levels, none of them negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import borders, families, height, parts
from sfumato.models.consistency import LeastSquares
from sfumato.privacy.measurements import Measurement, Question, variance_of

LEAST_VARIANCE = 1e-9
"""Noise of a rate so large that it is hardly ever anything but 0 still leaves its counts a finite say."""
MOST_COUNTED = 100_000
"""Of an attribute that regions cut into more parts times leaves, its margin tells better what each has."""
FEW = 1e-5
"""This share of an attribute's leaves may be cut at 0 in the end."""
CLOSE = 1e-6
"""Fewer people than this below 0 are rounding."""


@dataclass(frozen=True, eq=False)
class MarginLevel:
    """The noisy counts of all parts at one depth of an attribute's halving, with the same noise."""

    depth: int
    counts: Integers
    rate: Fraction


@dataclass(frozen=True, eq=False)
class Margin:
    """What was measured of the leaves of one attribute: levels of their halving, the coarsest first, the last one the
    leaves themselves.
    """

    leaves: int
    levels: tuple[MarginLevel, ...]

    def __post_init__(self) -> None:
        """Refuse levels that are not those of these leaves."""
        depths = [level.depth for level in self.levels]
        if depths != sorted({*depths, height(self.leaves)}) or depths[0] < 0 or depths[-1] > height(self.leaves):
            raise ValueError("levels must become finer and end with the leaves")
        if any(level.counts.shape != (parts(self.leaves, level.depth),) for level in self.levels):
            raise ValueError("a level must have a count for each of its parts")

    def variances_between(self, ends: Integers) -> Floats:
        """Find for every part between ends the least variance that its leaves have together, or groups inside it and
        other leaves.
        """
        leaf, begins, stops = variance_of(self.levels[-1].rate), ends[:-1], ends[1:]
        best = (stops - begins) * leaf
        for level in self.levels[:-1]:
            marks = np.asarray(borders(self.leaves, level.depth))
            first = np.searchsorted(marks, begins, side="left")
            groups = np.maximum(np.searchsorted(marks, stops, side="right") - 1 - first, 0)
            inside = marks[first + groups] - marks[first]
            best = np.minimum(best, groups * variance_of(level.rate) + (stops - begins - inside) * leaf)
        return np.asarray(best, np.float64)

    @classmethod
    def flat(cls, counts: Integers, rate: Fraction) -> Margin:
        """A margin of which only the leaves were measured."""
        return cls(len(counts), (MarginLevel(height(len(counts)), counts, rate),))


def depth_of(question: Question) -> int | None:
    """Tell of which depth of an attribute's halving a question asks all parts; None if it asks something else."""
    grid = question.regions
    if not isinstance(grid, Grid) or grid.orders or question.classes > 1 or len(grid.split_attributes) != 1:
        return None
    (attribute,) = grid.split_attributes
    leaves, cut = grid.shape[attribute], grid.cuts[attribute]
    depth = height(leaves) if len(cut) == leaves + 1 else (len(cut) - 2).bit_length()
    return depth if np.array_equal(borders(leaves, depth), cut) else None


def is_level(one: Measurement) -> bool:
    """Tell whether something measured is a level of a margin, all of it with the same noise."""
    return depth_of(one.question) is not None and len(one.noisy.rates) == 1


def margins_of(measurements: Iterable[Measurement]) -> dict[int, Margin]:
    """Put the levels of each attribute's margin together."""
    found: dict[int, list[MarginLevel]] = {}
    leaves: dict[int, int] = {}
    for one in measurements:
        depth = depth_of(one.question)
        assert depth is not None
        (attribute,) = one.question.attributes
        leaves[attribute] = one.question.regions.shape[attribute]
        found.setdefault(attribute, []).append(MarginLevel(depth, one.counts[:, 0], one.noisy.rates[0]))
    return {
        at: Margin(leaves[at], tuple(sorted(levels, key=lambda level: level.depth)))
        for at, levels in sorted(found.items())
    }


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
class Estimator:
    """Least squares over all levels of a margin, and over what was counted besides.

    The levels nest, and everyone is the root above them, so passes over them give estimates x and cov(x, p) for sums
    p = A x. Parts do not nest with levels; but they are few, so their counts s, of variances W, are brought in
    afterwards, by the formula that is exact for uncorrelated measurements: x + cov(x, p) (var(p) + W)^-1 (s - p).

    A sum is estimated from what was measured as c y, and y has variances D; so cov(x, p) is what the passes make of
    D c, as if that had been measured.
    """

    measured: Floats
    passes: LeastSquares
    beside: Beside

    @classmethod
    def of(cls, margin: Margin, beside: Beside, held: Integers | None = None) -> Estimator:
        """Weigh measurements by precision; some leaves may be held at 0."""
        nodes = (1 << height(margin.leaves)) - 1 + margin.leaves
        measured, precision = np.zeros(nodes), np.zeros(nodes)
        for level in margin.levels:
            place = slice((1 << level.depth) - 1, (1 << level.depth) - 1 + len(level.counts))
            measured[place] = level.counts
            precision[place] = 1 / max(variance_of(level.rate), LEAST_VARIANCE)
        if held is not None:
            leaves = held + nodes - margin.leaves
            measured[leaves], precision[leaves] = 0.0, 1 / LEAST_VARIANCE
        say = 1 / (1 + precision[0] * beside.variance) if precision[0] else 1.0
        if np.isfinite(beside.variance):
            measured[0] += say * (beside.total - measured[0])
            precision[0] += 1 / beside.variance
        return cls(measured, LeastSquares.of(families(margin.leaves), precision), beside)

    @cached_property
    def _covariances(self) -> tuple[Floats, Floats]:
        """Give cov(x, p), leaves x parts, and the inverse of var(p) + W."""
        parts, leaves = self.beside.leaves.shape
        which = np.zeros((parts, len(self.measured)))
        which[:, -leaves:] = self.beside.leaves
        precision = self.passes.precision
        spread = np.where(precision > 0, 1 / np.where(precision > 0, precision, 1.0), 0.0)
        found = self.passes.values(spread[:, None] * self.passes.coefficients(which).T)[-leaves:]
        together = self.beside.leaves @ found + np.diag(self.beside.variances)
        return found, np.asarray(np.linalg.inv(together), np.float64)

    @cached_property
    def people(self) -> Floats:
        """Estimate the people of each leaf."""
        parts, leaves = self.beside.leaves.shape
        alone = self.passes.values(self.measured[:, None])[-leaves:, 0]
        if not parts:
            return alone
        found, inverse = self._covariances
        return np.asarray(alone + found @ (inverse @ (self.beside.sums - self.beside.leaves @ alone)))

    def variances(self, weights: Floats) -> Floats:
        """Give the variances of weighted sums of leaves: queries x leaves."""
        nodes = np.zeros((len(weights), len(self.measured)))
        nodes[:, -weights.shape[1] :] = weights
        alone = self.passes.variance(nodes)
        if not len(self.beside.sums):
            return alone
        found, inverse = self._covariances
        reached = weights @ found
        return np.asarray(np.maximum(alone - ((reached @ inverse) * reached).sum(axis=1), 0.0))


def people_of(margin: Margin, beside: Beside | None = None) -> Floats:
    """Estimate the people of each leaf by least squares, none of them negative.

    Leaves whose estimate is negative are held at 0 and the rest is estimated again, until none is: what stands at the
    levels above is then shared among fewer leaves, so cutting at 0 invents nobody. Where nothing is negative it is the
    least-squares solution.

    >>> from fractions import Fraction
    >>> margin = Margin.flat(np.array([400, -3, 2, 1]), Fraction(1, 2))
    >>> people_of(margin).round().tolist()
    [400.0, 0.0, 2.0, 1.0]
    >>> people_of(margin, Beside.everyone(4, 400, 1e-6)).round().tolist()
    [399.0, 0.0, 1.0, 0.0]
    """
    known, held = beside or Beside.everyone(margin.leaves), np.zeros(margin.leaves, np.bool_)
    while True:
        people = Estimator.of(margin, known, np.flatnonzero(held)).people
        negative = (people < -CLOSE) & ~held
        if negative.sum() <= margin.leaves * FEW:
            return np.maximum(people, 0.0)
        held |= negative


FINENESS = 2.0**40
"""Into so many pieces a margin is divided. Sums of whole pieces are exact in 53 bits, and a share is off by 1e-12 of
the table at most."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The mass of an attribute's leaves in whole pieces; each has one at least, so no range is without."""

    mass: Floats

    @classmethod
    def of(cls, leaves: int, people: Floats | None = None) -> Spread:
        """Spread in proportion to the people of the leaves, or evenly; where there is nobody, evenly, too.

        >>> mass = Spread.of(4, np.array([9.0, 3.0, 0, 0])).mass
        >>> (mass[:2] / mass[:2].sum()).round(9).tolist(), bool(mass[2] == mass[3])
        ([0.75, 0.25], True)
        """
        if people is None:
            return cls(np.ones(leaves))
        return cls(np.rint(people * (FINENESS / max(people.sum(), 1.0))) + 1.0)

    def reordered(self, order: Integers) -> Spread:
        """Give the same mass in another order of the leaves."""
        return Spread(self.mass[order])

    def draw(self, ranges: Integers, rng: np.random.Generator) -> Integers:
        """Draw a leaf inside each range."""
        ends = np.cumsum(self.mass)
        first, last = ranges[:, 0], ranges[:, 1] - 1
        before = ends[first] - self.mass[first]
        at = before + rng.random(len(ranges)) * (ends[last] - before)
        return np.clip(np.searchsorted(ends, at, side="right"), first, last)


def sums_within(leaves: Floats, ranges: Integers) -> Floats:
    """Sum numbers of leaves over each range, as differences of running sums."""
    running = np.concatenate(([0.0], np.cumsum(leaves)))
    return np.asarray(running[ranges[:, 1]] - running[ranges[:, 0]])
