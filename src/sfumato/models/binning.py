"""What margins say of one attribute: how many people each leaf has, by class, and which leaves are told apart at all.

A margin was measured of parts of an attribute, by class, and perhaps of its leaves, whatever the class. Two things make
noisy counts better: neighbours on a grid that noise does not tell apart share what they have (*blocks*), and counts of
people are not negative and mostly small (`posterior`). Leaves are then put into *bins*, each of which holds several
times the noise: what attributes have to do with each other is told of bins, and inside a bin the margin spreads people.

All of this is post-processing of noisy numbers, by rules that know nothing of the table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers

PENALTY = 4.0
"""A new block must explain this many variances of noise for each class."""
LARGEST_BLOCKS = 4096
"""Of more places, blocks are looked for in pieces of so many."""
HEAVY = 5
"""A bin holds at least so many standard deviations of the noise of one count,"""
MOST_BINS = 16
"""and where a grid is long, about one part in so many of all people;"""
MOST_VALUES = 32
"""of values without an order so many are told apart at most, the others are one bin."""
GRID = 300
"""So many sizes of a count are weighed against each other,"""
AT_ONCE = 1 << 12
"""for so many counts at a time."""
LEAST = 1e-9
"""No share is smaller, so that nothing is ruled out."""
TRIES = 20
"""Totals are met in so many corrections."""


@dataclass(frozen=True, eq=False)
class Column:
    """What was measured of an attribute."""

    ordered: bool
    """whether leaves next to each other are alike"""
    part_of: Integers
    """the part of each leaf"""
    counts: Floats
    """parts x classes"""
    variance: float
    """of each of them"""
    leaves: Floats | None = None
    """counts of leaves, whatever the class"""
    leaf_variance: float = 0.0
    apart: tuple[int, ...] = ()
    """leaves that are not like their neighbours, for all their order"""

    @classmethod
    def unknown(cls, leaves: int, classes: int) -> Column:
        """An attribute of which nothing was measured: all leaves are one part."""
        return cls(False, np.zeros(leaves, np.int64), np.zeros((1, classes)), np.inf)

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.counts)

    def totals(self) -> list[tuple[float, float]]:
        """What each measurement says of everyone, with its variance."""
        found = [(float(self.counts.sum()), self.variance * self.counts.size)]
        if self.leaves is not None:
            found.append((float(self.leaves.sum()), self.leaf_variance * len(self.leaves)))
        return [one for one in found if np.isfinite(one[1])]

    @cached_property
    def cuts(self) -> Integers:
        """Where blocks of parts begin, and where the last ends; without an order every part is one."""
        if not self.ordered or self.parts == 1:
            return np.arange(self.parts + 1)
        return blocks(self.counts, self.variance)

    def people(self, size: float) -> Floats:
        """Estimate the people of each leaf by class, of so many in all: leaves x classes."""
        parts = self.part_people(size)
        return np.asarray(parts[self.part_of] * self._within(parts.sum(axis=1))[:, None])

    def part_people(self, size: float) -> Floats:
        """Estimate the people of each part by class."""
        if not np.isfinite(self.variance):
            return np.full(self.counts.shape, size / self.counts.size)
        widths = np.diff(self.cuts)
        sums = np.add.reduceat(self.counts, self.cuts[:-1], axis=0)
        deviations = np.sqrt(self.variance * widths)[:, None] * np.ones(sums.shape[1])
        found = posterior(sums.ravel(), deviations.ravel(), size).reshape(sums.shape)
        return np.asarray(np.repeat(found / widths[:, None], widths, axis=0))

    def _within(self, masses: Floats) -> Floats:
        """The share of its part that each leaf has."""
        widths = np.bincount(self.part_of, minlength=self.parts)
        even = 1 / widths[self.part_of]
        if self.leaves is None:
            return even
        shares = even.copy()
        order = np.argsort(self.part_of, kind="stable")
        ends = np.cumsum(widths)
        for part in np.flatnonzero(widths > 1).tolist():
            own = order[ends[part] - widths[part] : ends[part]]
            counts, total = self.leaves[own], max(float(masses[part]), 1.0)
            cuts = blocks(counts[:, None], self.leaf_variance) if self.ordered else np.arange(len(own) + 1)
            if len(cuts) > 2:
                runs = np.diff(cuts)
                sums = np.add.reduceat(counts, cuts[:-1])
                found = posterior(sums, np.sqrt(self.leaf_variance * runs), total)
                dense = np.repeat(found / runs, runs) + LEAST
                shares[own] = dense / dense.sum()
        return shares

    def bins(self, size: float, heavy: float = HEAVY) -> Integers:
        """Put leaves into bins that hold so many standard deviations of noise: the bin of each leaf."""
        masses = self.part_people(size).sum(axis=1)
        floor = heavy * np.sqrt(self.variance) if np.isfinite(self.variance) else np.inf
        if not self.ordered:
            return value_bins(masses, floor)[self.part_of]
        alone = {*self.part_of[list(self.apart)].tolist()}
        return ordered_bins(masses, self.cuts, floor, alone)[self.part_of]

    def errors(self, weights: Floats, size_variance: float) -> Floats:
        """The variance of weighted sums of leaves (queries x leaves), whatever the class, by least squares.

        Leaves have noise of variance f, parts one of p (for all classes together), everyone one of s. With n leaves of
        a part, of weights that sum to w, their covariance is f (I - 1 1' f / (p + n f)), and taking everyone in
        subtracts from w' C w the square of w' C 1 over s + 1' C 1.
        """
        widths = np.bincount(self.part_of, minlength=self.parts).astype(np.float64)
        per_part = self.variance * self.counts.shape[1]
        if not np.isfinite(per_part):
            return np.zeros(len(weights))
        sums = np.zeros((len(weights), self.parts))
        np.add.at(sums.T, self.part_of, weights.T)
        if self.leaves is None:
            means = sums / widths
            within = (means**2 * per_part).sum(axis=1)
            left = np.full(self.parts, per_part) / widths
        else:
            f = self.leaf_variance
            within = f * ((weights**2).sum(axis=1) - (sums**2 * (f / (per_part + widths * f))).sum(axis=1))
            left = f * per_part / (per_part + widths * f)
        together = sums @ left
        return np.asarray(np.maximum(within - together**2 / (size_variance + float(widths @ left)), 0.0))


def blocks(table: Floats, variance: float) -> Integers:
    """Cut rows into runs that noise does not tell apart: the least squares of steps, each of which must pay.

    With best(j) the least cost of rows before j, best(j) = min over i < j of best(i) + the squared deviations of rows i
    to j from their mean + a penalty.

    >>> blocks(np.array([[5.0], [6.0], [40.0], [41.0], [5.0]]), 1.0).tolist()
    [0, 2, 4, 5]
    """
    if len(table) > LARGEST_BLOCKS:
        half = len(table) // 2
        return np.concatenate([blocks(table[:half], variance), half + blocks(table[half:], variance)[1:]])
    rows, columns = table.shape
    sums = np.concatenate([np.zeros((1, columns)), np.cumsum(table, axis=0)])
    squares = np.concatenate(([0.0], np.cumsum((table**2).sum(axis=1))))
    best, before = np.zeros(rows + 1), np.zeros(rows + 1, np.int64)
    for end in range(1, rows + 1):
        means = ((sums[end] - sums[:end]) ** 2).sum(axis=1) / np.arange(end, 0, -1)
        costs = best[:end] + squares[end] - squares[:end] - means
        before[end] = int(np.argmin(costs))
        best[end] = costs[before[end]] + PENALTY * variance * columns
    cuts = [rows]
    while cuts[-1]:
        cuts.append(int(before[cuts[-1]]))
    return np.array(cuts[::-1])


def posterior(counts: Floats, deviations: Floats, total: float) -> Floats:
    """Estimate numbers of people from noisy counts: their mean, if a number x is taken for as likely as 1 / (x + 1).

    What they then lack of the total, each gets in proportion to how little is known of it.
    """
    sizes = np.concatenate(([0.0], np.expm1(np.linspace(np.log1p(0.5), np.log1p(1.2 * total + 1), GRID))))
    weights = np.gradient(sizes) / (sizes + 1)
    means, spreads = np.empty(len(counts)), np.empty(len(counts))
    for start in range(0, len(counts), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        logs = -0.5 * ((counts[some, None] - sizes) / deviations[some, None]) ** 2
        likely = np.exp(logs - logs.max(axis=1, keepdims=True)) * weights
        likely /= likely.sum(axis=1, keepdims=True)
        means[some] = likely @ sizes
        spreads[some] = np.maximum(likely @ sizes**2 - means[some] ** 2, LEAST)
    for _ in range(TRIES):
        lacking = total - float(means.sum())
        moving = np.where((means > 0) | (lacking > 0), spreads, 0.0)
        if abs(lacking) < LEAST * total or not moving.any():
            break
        means = np.maximum(means + lacking * moving / moving.sum(), 0.0)
    means = means + LEAST * max(total, 1.0)
    return np.asarray(means * (total / means.sum()))


def ordered_bins(masses: Floats, cuts: Integers, floor: float, alone: Collection[int] = ()) -> Integers:
    """Put parts of a grid into bins: one ends where a block ends, if it holds enough, and anywhere if it holds much;
    what stands alone is a bin of its own.

    >>> ordered_bins(np.array([90.0, 1, 2, 3, 4, 50, 3, 4]), np.array([0, 1, 5, 6, 8]), 8.0).tolist()
    [0, 1, 1, 1, 1, 2, 2, 2]
    """
    enough, borders = max(floor, float(masses.sum()) / MOST_BINS), {*cuts.tolist()}
    starts, held = [0], 0.0

    def close() -> None:
        """Let a bin that holds too little go with the one before."""
        if held < floor and len(starts) > 1 and not {starts[-1], starts[-1] - 1} & {*alone}:
            starts.pop()

    for part, mass in enumerate(masses.tolist()):
        full = (held >= floor and part in borders) or held + mass / 2 >= enough
        if part and (full or {part, part - 1} & {*alone}):
            close()
            starts.append(part)
            held = 0.0
        held += mass
    close()
    found = np.zeros(len(masses), np.int64)
    found[starts[1:]] = 1
    return np.cumsum(found)


def value_bins(masses: Floats, floor: float) -> Integers:
    """Let each value that holds enough be a bin of its own, up to so many; the others are one, or go with the smallest.

    >>> value_bins(np.array([90.0, 1, 2, 60, 4]), 5.0).tolist()
    [0, 2, 2, 1, 2]
    """
    largest = np.argsort(-masses, kind="stable")[: MOST_VALUES - 1]
    alone = np.sort(largest[masses[largest] >= floor])
    found = np.full(len(masses), len(alone))
    found[alone] = np.arange(len(alone))
    rest = found == len(alone)
    if len(alone) and rest.any() and float(masses[rest].sum()) < floor / 2:
        found[rest] = int(np.argmin(masses[alone]))
    return np.unique(found, return_inverse=True)[1]


def level(masses: Floats, groups: int) -> Integers:
    """Put bins that stand in an order into so many groups of about the same mass.

    >>> level(np.array([5.0, 1, 1, 1, 5, 1]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    if groups >= len(masses):
        return np.arange(len(masses))
    middles = (np.cumsum(masses) - masses / 2) / max(float(masses.sum()), LEAST)
    wanted = np.minimum((middles * groups).astype(np.int64), groups - 1)
    return np.cumsum(np.diff(wanted, prepend=wanted[0]) > 0)
