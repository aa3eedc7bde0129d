"""How many people an attribute's leaves have, judged by a noisy margin: all of its levels at once, detail only where
it is more than noise.

Post-processing of released numbers, so floats are allowed. It goes down the halvings of the leaves: a part's people are
divided between its halves, so the total stands and nobody is negative. What is known of a division is its least-squares
estimate, given all levels, and the variance of that. What is supposed of it beforehand is one of four things: all
people are in the left half, or in the right; they lie evenly; or anyhow. How often each is true is learnt, level by
level, from the margin itself (empirical Bayes), so that long empty stretches stay empty, noise on even stretches is
levelled, and spikes stay.

How a region's people are spread over the leaves inside it.

Without margins evenly, as the papers do; with them in proportion to the people that the margin tells of, restricted to
the region's range. Only proportions within a range are used, so margins agree with the regions by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.halving import Level, families, height
from sfumato.models.consistency import LeastSquares
from sfumato.privacy.measurements import Margin, variance_of

LEAST_VARIANCE = 1e-9
"""Noise of a rate so large that it is hardly ever anything but 0 still leaves its counts a finite say."""
BEFOREHAND = 4.0
"""A level begins with the frequencies that the level above ended with, as if seen in so many divisions."""
ROUNDS = 10
"""So often the frequencies of a level are found again from what they make of its divisions."""
MOST_LOOKED_AT = 4096
"""So many divisions of a level, evenly spread, are enough to find frequencies from."""


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


def people_of(margin: Margin) -> Floats:
    """Estimate the people of each leaf: none is negative, and they sum to the estimated total (0 if that is negative).

    >>> from fractions import Fraction
    >>> people_of(Margin.flat(np.array([400, -3, 2, 1]), Fraction(1, 2))).round().tolist()
    [400.0, 0.0, 0.0, 0.0]
    """
    levels = families(margin.leaves)
    measured, precision = _measurements(margin)
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


def _measurements(margin: Margin) -> tuple[Floats, Floats]:
    """Give what was measured of each node, and its precision, 0 for nodes of levels that were not."""
    nodes = (1 << height(margin.leaves)) - 1 + margin.leaves
    measured, precision = np.zeros(nodes), np.zeros(nodes)
    for groups in margin.levels:
        place = slice((1 << groups.depth) - 1, (1 << groups.depth) - 1 + len(groups.counts))
        measured[place] = groups.counts
        precision[place] = 1 / max(variance_of(groups.rate), LEAST_VARIANCE)
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
