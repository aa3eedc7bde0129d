"""How people are spread over the leaves of an attribute: by a noisy margin, or evenly where there is none.

A margin is all that was measured of one attribute alone: levels of the halving of its leaves. Its people are estimated
going down the halvings: a part's people are divided between its halves, so the total stands and nobody is negative.
What is known of a division is its least-squares estimate, given all levels, and the variance of that. What is supposed
of it beforehand is one of four things: all people are in the left half, or in the right; they lie evenly; or anyhow.
How often each is true is learnt, level by level, from the margin itself (empirical Bayes), so that long empty stretches
stay empty, noise on even stretches is levelled, and spikes stay.

Only proportions within a region's range are used, so margins agree with the regions by construction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import Level, borders, families, height, parts
from sfumato.models.consistency import LeastSquares
from sfumato.privacy.measurements import Measurement, Question, variance_of

LEAST_VARIANCE = 1e-9
"""Noise of a rate so large that it is hardly ever anything but 0 still leaves its counts a finite say."""
BEFOREHAND = 4.0
"""A level begins with the frequencies that the level above ended with, as if seen in so many divisions."""
ROUNDS = 10
"""So often the frequencies of a level are found again from what they make of its divisions."""
MOST_LOOKED_AT = 4096
"""So many divisions of a level, evenly spread, are enough to find frequencies from."""


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
class Divisions:
    """The parts of a level that are halved: the people to divide, and what the left half is estimated to have."""

    people: Floats
    even: Floats
    """the left half's share of the leaves"""
    left: Floats
    """the least-squares estimate of the left half's people, given those of the part"""
    variance: Floats

    def thinned(self) -> Divisions:
        """Keep as many as are needed to find frequencies from."""
        some = slice(None, None, -(-len(self.people) // MOST_LOOKED_AT))
        return Divisions(self.people[some], self.even[some], self.left[some], self.variance[some])


def people_of(margin: Margin, total: float = 0.0, variance: float = np.inf) -> Floats:
    """Estimate the people of each leaf: none is negative, and they sum to the estimated total (0 if that is negative).

    What is known of the total besides counts as one more measurement, of a variance.

    >>> from fractions import Fraction
    >>> people_of(Margin.flat(np.array([400, -3, 2, 1]), Fraction(1, 2))).round().tolist()
    [400.0, 0.0, 0.0, 0.0]
    """
    levels = families(margin.leaves)
    measured, precision = measurements_of(margin, total, variance)
    passes = LeastSquares.of(levels, precision)
    values = passes.values(measured[:, None])[:, 0]
    widths = _widths(margin.leaves, levels)
    people = np.maximum(values[:1], 0.0)
    frequencies = np.full(4, 1 / 4)
    for level in levels:
        halved = level.sizes == 2
        first = level.starts[halved]
        left, head = level.nodes[first], level.heads[halved]
        own = values[left] - passes.shares[left] * values[head]
        divisions = Divisions(
            people[halved],
            widths[left] / widths[head],
            own + passes.shares[left] * people[halved],
            passes.upward[left] * (1 - passes.shares[left]),
        )
        frequencies = learnt(divisions.thinned(), frequencies)
        below = people[level.family]
        below[first] = expected_left(divisions, frequencies)
        below[first + 1] -= below[first]
        people = below
    return people


def measurements_of(margin: Margin, total: float, variance: float) -> tuple[Floats, Floats]:
    """List what was measured of each node, the total at the root, and its precision, 0 where nothing was."""
    nodes = (1 << height(margin.leaves)) - 1 + margin.leaves
    measured, precision = np.zeros(nodes), np.zeros(nodes)
    measured[0], precision[0] = total, 1 / variance
    for level in margin.levels:
        place = slice((1 << level.depth) - 1, (1 << level.depth) - 1 + len(level.counts))
        measured[place] = level.counts
        precision[place] = 1 / max(variance_of(level.rate), LEAST_VARIANCE)
    return measured, precision


def _widths(leaves: int, levels: tuple[Level, ...]) -> Integers:
    """Count the leaves of each node."""
    widths = np.ones((1 << height(leaves)) - 1 + leaves, np.int64)
    for level in reversed(levels):
        widths[level.heads] = np.add.reduceat(widths[level.nodes], level.starts)
    return widths


def learnt(divisions: Divisions, before: Floats) -> Floats:
    """Find how often each of the four suppositions is true: expectation maximization, with what was thought before."""
    likely = likelihoods(divisions)
    frequencies = before
    for _ in range(ROUNDS):
        found = posterior(likely, frequencies).sum(axis=1) + BEFOREHAND * before
        frequencies = found / found.sum()
    return frequencies


def likelihoods(divisions: Divisions) -> Floats:
    """Give, up to a factor for each division, how likely its estimate is on each supposition: 4 x divisions.

    With n people, an even share w and noise of variance v (taken for normal, which sums of noises nearly are), the
    estimate has mean 0, n, n w or n w, and variance v; or v + w (1 - w) n^2 if people lie anyhow, which is the most
    that a share of mean w can vary.
    """
    n, middle, noise = divisions.people, divisions.people * divisions.even, divisions.variance
    means, variances = (0 * n, n, middle, middle), (noise, noise, noise, noise + _anyhow(divisions))
    logs = np.stack(
        [
            -((divisions.left - mean) ** 2) / (2 * variance) - np.log(variance) / 2
            for mean, variance in zip(means, variances, strict=True)
        ]
    )
    return np.asarray(np.exp(logs - logs.max(axis=0)))


def _anyhow(divisions: Divisions) -> Floats:
    return divisions.even * (1 - divisions.even) * divisions.people**2


def posterior(likely: Floats, frequencies: Floats) -> Floats:
    """Give the probability of each supposition for each division: 4 x divisions."""
    joint = likely * frequencies[:, None]
    return np.asarray(joint / joint.sum(axis=0))


def expected_left(divisions: Divisions, frequencies: Floats) -> Floats:
    """Give the people expected in the left halves, between none and all.

    If people lie anyhow, the mean between what is supposed and what is estimated, by inverse variance.
    """
    n, middle, anyhow = divisions.people, divisions.people * divisions.even, _anyhow(divisions)
    free = middle + (divisions.left - middle) * anyhow / (anyhow + divisions.variance)
    _, all_left, even, otherwise = posterior(likelihoods(divisions), frequencies)
    return np.asarray(np.clip(all_left * n + even * middle + otherwise * np.clip(free, 0.0, n), 0.0, n))


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
