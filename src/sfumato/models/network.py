"""A network of attributes: one distribution over the bins of all of them, fitted to margins and to measured pairs.

Every attribute has bins, and the class stands in every clique of a junction tree. Margins by class are told bin by bin,
pairs of attributes in groups of bins. Noise is kept out in two ways. Class rates of bins are shrunk to those of
everyone, as far as noise made them differ. And a pair changes what all the rest says of it only as far as its
departure is more than noise: the rest is the fitted distribution without the pair's own parameters, p exp(-theta)
over its cells, so no second fit is needed to know what would be expected without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.binning import Column
from sfumato.models.entropy import Entropy, Target
from sfumato.models.fitting import Size, shrunk
from sfumato.models.intervals import GAMMA
from sfumato.models.junction import Edge
from sfumato.privacy.measurements import Measurement, Question
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Schema

SLACK = 0.03
"""How far margins may be missed, in standard deviations of their noise, for each unit of their parameters;"""
PAIR_SLACK = 0.3
"""how far pairs may, which can contradict each other."""
CLOSE = 1e-5
"""A fit ends when no cell of a target is missed by more than this share of all people,"""
STEPS = 200
"""or after so many steps;"""
FEW_STEPS = 40
"""on the way to a better network so many are enough."""
SWEEPS = 100
"""A pair is brought in line with its margins in so many sweeps at most."""
FAINT = 0.1
"""A cell that noise makes negative has this part of the noise, or of a person."""
LEAST = 1e-9
MISFIT = ("a network's marginals must be made up of its bins, and are not", "Get the release again from its publisher.")


def columns_of(schema: Schema, measured: Iterable[Measurement]) -> tuple[Column, ...]:
    """Put together what was measured of each attribute alone: parts by class, and leaves."""
    classes, attributes = len(schema.classes), list(schema.predictors.values())
    found = [Column.unknown(leaves, classes) for leaves in schema.shape]
    alike: dict[tuple[int, int, tuple[int, ...]], list[Measurement]] = {}
    for one in measured:
        (at,) = one.question.attributes
        alike.setdefault((at, -one.question.classes, grid_of(one.question).cuts[at]), []).append(one)
    for (at, by, cut), several in sorted(alike.items(), key=lambda each: (each[0][0], each[0][1], len(each[0][2]))):
        counts, noise = _mean(several)
        column, part_of = attributes[at], grid_of(several[0].question).part_of(at)
        if -by == classes and not np.isfinite(found[at].variance):
            apart = tuple(column.apart.tolist()) if isinstance(column, Numeric) else ()
            found[at] = Column(isinstance(column, Numeric), part_of, counts, noise, apart=apart)
        elif len(cut) == schema.shape[at] + 1 and by == -1 and np.isfinite(found[at].variance):
            found[at] = replace(found[at], leaves=counts[part_of, 0], leaf_variance=noise)
        else:
            raise ReleaseError(*MISFIT)
    return tuple(found)


def _mean(several: Sequence[Measurement]) -> tuple[Floats, float]:
    """The mean of what was measured of the same cells, by inverse variance, and its variance."""
    weights = [1 / float(one.noisy.variances[0]) for one in several]
    total = sum(weights)
    return np.asarray(sum(weight * one.counts for weight, one in zip(weights, several, strict=True)) / total), 1 / total


def grid_of(question: Question) -> Grid:
    """The grid whose regions were counted."""
    if not isinstance(question.regions, Grid):
        raise ReleaseError(*MISFIT)
    return question.regions


@dataclass(frozen=True, eq=False)
class Pair:
    """A measured marginal of two attributes, by class or not, in groups of bins."""

    attributes: Edge
    groups: tuple[Integers, Integers]
    """the group of each bin"""
    counts: Floats
    """groups x groups x classes, or x 1"""
    variance: float

    @classmethod
    def of(cls, one: Measurement, bins: Sequence[Integers]) -> Pair:
        """Read a measurement; refuse groups that divide a bin."""
        grid, (a, b) = grid_of(one.question), one.question.attributes
        groups = (_of_bins(grid.part_of(a), bins[a]), _of_bins(grid.part_of(b), bins[b]))
        counts = one.counts.astype(np.float64).reshape(grid.parts[a], grid.parts[b], -1)
        return cls((a, b), groups, counts, float(one.noisy.variances[0]))

    @property
    def by_class(self) -> bool:
        """Whether it was counted by class."""
        return bool(self.counts.shape[2] > 1)


def _of_bins(group_of: Integers, bins: Integers) -> Integers:
    """The group of each bin, from those of leaves."""
    found = np.zeros(int(bins.max()) + 1, np.int64)
    found[bins] = group_of
    if not np.array_equal(found[bins], group_of):
        raise ReleaseError(*MISFIT)
    return found


@dataclass(eq=False)
class Network:
    """The distribution, and how it came about."""

    classes: int
    size: Size
    columns: tuple[Column, ...]
    bins: tuple[Integers, ...]
    """of each attribute, the bin of each leaf"""
    people: tuple[Floats, ...] = field(init=False)
    """of each attribute, people of each leaf by class, by its margin"""
    margins: tuple[Floats, ...] = field(init=False)
    """of each attribute, people of each bin by class, which the network keeps to"""
    entropy: Entropy = field(init=False)
    pairs: list[Pair] = field(default_factory=list, init=False)
    left: list[Floats] = field(default_factory=list, init=False)
    """of each pair, what is left of its noise: groups x groups, whatever the class"""

    def __post_init__(self) -> None:
        """Begin with attributes that are independent, given the class: that needs no fit."""
        self.people = tuple(one.people(self.size.value) for one in self.columns)
        sizes = [int(one.max()) + 1 for one in self.bins]
        self.class_number = len(sizes)
        classes = self.size.value * self.class_shares()
        self.margins = tuple(self._margin(at, classes) for at in range(len(sizes)))
        by_class = self.classes > 1
        logs = [np.log(margin / (classes if at else self.size.value)) for at, margin in enumerate(self.margins)]
        base: list[tuple[tuple[int, ...], Floats]] = [
            ((at, self.class_number), one) if by_class else ((at,), one[:, 0]) for at, one in enumerate(logs)
        ]
        always = (self.class_number,) if by_class else ()
        self.entropy = Entropy((*sizes, self.classes) if by_class else tuple(sizes), always, base)
        for at, margin in enumerate(self.margins):
            groups, noise = (np.arange(len(margin)), np.arange(self.classes)), self._noise(at)[:, None]
            if by_class:
                self.entropy.add(self._target((at, self.class_number), groups, margin, SLACK * np.sqrt(noise)))
            else:
                self.entropy.add(self._target((at,), groups[:1], margin[:, 0], SLACK * np.sqrt(noise[:, 0])))

    def class_shares(self) -> Floats:
        """The share of each class, by all margins together."""
        each = [one.counts.sum(axis=0) for one in self.columns]
        weights = [1 / (one.variance * one.parts) for one in self.columns]
        if not np.any(weights):
            return np.full(self.classes, 1 / self.classes)
        counted = np.sum([weight * counts for weight, counts in zip(weights, each, strict=True)], axis=0)
        counted = np.maximum(counted / np.sum(weights), 1.0)
        return np.asarray(counted / counted.sum())

    def _noise(self, at: int) -> Floats:
        """The variance of each class's count in the bins of an attribute."""
        column, bins = self.columns[at], self.bins[at]
        first = np.unique(column.part_of, return_index=True)[1]
        parts = np.bincount(bins[first], minlength=int(bins.max()) + 1)
        return np.asarray(parts * (column.variance if np.isfinite(column.variance) else 1.0))

    def _margin(self, at: int, classes: Floats) -> Floats:
        """The people of bins by class, as counted: class rates are shrunk, and classes have what all margins say."""
        column, bins, noise = self.columns[at], self.bins[at], self._noise(at)
        masses = np.zeros((len(noise), self.classes))
        np.add.at(masses, bins, self.people[at])
        counts = masses
        if np.isfinite(column.variance):
            counts = np.zeros_like(masses)
            first = np.unique(column.part_of, return_index=True)[1]
            np.add.at(counts, bins[first], column.counts)
            if column.leaves is not None:
                own, other = noise * self.classes, np.bincount(bins) * column.leaf_variance
                gap = np.bincount(bins, column.leaves, len(noise)) - counts.sum(axis=1)
                counts = counts + (gap * own / (own + other) / self.classes)[:, None]
            counts = shrunk_rates(counts, masses.sum(axis=1), noise) if self.classes > 1 else counts
            counts = counts + (classes - counts.sum(axis=0)) * (noise / noise.sum())[:, None]
        counts = np.maximum(counts, FAINT * np.sqrt(noise)[:, None])
        return np.asarray(counts * (classes / counts.sum(axis=0)))

    def _target(
        self, variables: tuple[int, ...], groups: tuple[Integers, ...], counts: Floats, slack: Floats | float
    ) -> Target:
        slacks = np.broadcast_to(slack, counts.shape) / self.size.value
        return Target(variables, groups, counts / self.size.value, slacks)

    def target_of(self, pair: Pair, counts: Floats) -> Target:
        """The target of a pair whose groups should have so many people."""
        variables, groups, slack = pair.attributes, pair.groups, PAIR_SLACK * math.sqrt(pair.variance)
        if not pair.by_class:
            return self._target(variables, groups, counts[..., 0], slack)
        return self._target((*variables, self.class_number), (*groups, np.arange(self.classes)), counts, slack)

    def sums(self, pair: Pair) -> tuple[Floats, Floats]:
        """What margins say of the groups of a pair's two attributes, by class or not."""
        found = []
        for at, groups in zip(pair.attributes, pair.groups, strict=True):
            sums = np.zeros((int(groups.max()) + 1, self.classes))
            np.add.at(sums, groups, self.margins[at])
            found.append(sums if pair.by_class else sums.sum(axis=1, keepdims=True))
        return found[0], found[1]

    def add(self, pair: Pair) -> float:
        """Take in a pair that was chosen for being told badly, shrunk to what is expected of it so far; tell how many
        people it moves.
        """
        raw = self.target_of(pair, pair.counts)
        expected = raked(self.size.value * self.entropy.told(raw).reshape(pair.counts.shape), *self.sums(pair))
        counts, left = self._shrunk(pair, expected)
        self.pairs.append(pair)
        self.left.append(left)
        self.entropy.add(self.target_of(pair, counts))
        return float(np.abs(counts - expected).sum())

    def _shrunk(self, pair: Pair, expected: Floats) -> tuple[Floats, Floats]:
        """Move what is expected of a pair as far as its counts say more than noise, and keep the margins."""
        counts, left = shrunk_pair(pair, expected, self.size.value)
        return raked(np.maximum(counts, FAINT * np.minimum(expected, 1.0)), *self.sums(pair)), left

    def fit(self, steps: int = FEW_STEPS) -> None:
        """Fit all that was taken in."""
        self.entropy.fit(CLOSE, steps)

    def reconsider(self) -> None:
        """Shrink every pair to what all the others say of it, and fit again."""
        first = len(self.columns)
        for number, pair in enumerate(self.pairs):
            target, own = self.entropy.targets[first + number], self.entropy.parameters[first + number]
            told = self.entropy.told(target) * np.exp(-np.clip(own, -30, 30))
            expected = raked(told.reshape(pair.counts.shape), *self.sums(pair))
            counts, self.left[number] = self._shrunk(pair, expected)
            self.entropy.targets[first + number] = self.target_of(pair, counts)
        self.fit(STEPS)

    def expected(self, pairs: Iterable[Edge]) -> Mapping[Edge, Floats]:
        """What the distribution says of pairs of attributes: bins x bins x classes."""
        every = self.entropy.tree.pairs(self.entropy.beliefs, (self.class_number,) if self.classes > 1 else ())
        return {pair: self.size.value * (every[pair] if self.classes > 1 else every[pair][..., None]) for pair in pairs}

    def within(self, at: int) -> Floats:
        """The share of its bin that each leaf has, by class: leaves x classes."""
        people = self.people[at] + LEAST
        sums = np.zeros((int(self.bins[at].max()) + 1, self.classes))
        np.add.at(sums, self.bins[at], people)
        return np.asarray(people / sums[self.bins[at]])


def shrunk_rates(counts: Floats, masses: Floats, noise: Floats) -> Floats:
    """Shrink the class rates of bins to those of everyone, by how much they differ beyond noise.

    With rates r of variance v from noise around those of everyone, and t of their own variance, by moments, what is
    kept of r is t / (t + v).
    """
    shares = np.maximum(counts.sum(axis=0), 1.0)
    shares = shares / shares.sum()
    held = np.maximum(masses, np.sqrt(noise))
    totals = counts.sum(axis=1, keepdims=True)
    rates = (counts - totals * shares) / held[:, None]
    spread = noise[:, None] * ((1 - shares) ** 2 + (len(shares) - 1) * shares**2) / held[:, None] ** 2
    weights, own = 1 / spread, 0.0
    for _ in range(3):
        own = max(0.0, float((weights * (rates**2 - spread)).sum() / weights.sum()))
        weights = 1 / (spread + own) ** 2
    kept = (own / (own + spread)).mean(axis=1, keepdims=True)
    return np.asarray(totals * shares + kept * rates * held[:, None])


def shrunk_pair(pair: Pair, expected: Floats, size: float) -> tuple[Floats, Floats]:
    """Shrink what a pair's counts add to what is expected, in all and class by class; and what is left of the noise in
    all: groups x groups.

    Of single attributes margins say more: so departures are brought to sum to 0 along both, class by class, which is
    least squares and leaves (1 - 1/a) (1 - 1/b) of the noise of a x b groups.
    """
    classes = pair.counts.shape[2]
    rates = (expected + 1 / classes) / (expected.sum(axis=2, keepdims=True) + 1)
    apart = pair.counts - expected
    apart = apart - apart.mean(axis=0, keepdims=True)
    apart = apart - apart.mean(axis=1, keepdims=True)
    freedom = (1 - 1 / apart.shape[0]) * (1 - 1 / apart.shape[1])
    noise, together = pair.variance * freedom, apart.sum(axis=2)
    moved, left = shrunk(together, np.full(together.shape, classes * noise), _scale(expected.sum(axis=2), size))
    found = expected + rates * moved[:, :, None]
    if classes > 1:
        own = apart - rates * together[:, :, None]
        spread = noise * ((1 - rates) ** 2 + (classes - 1) * rates**2)
        found = found + shrunk(own, spread, _scale(expected, size))[0]
    return np.asarray(found), left / freedom


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bring a table of groups x groups x classes to its sums along both attributes, class by class."""
    table = np.maximum(table, LEAST)
    for _ in range(SWEEPS):
        table = table * (rows / table.sum(axis=1))[:, None]
        now = table.sum(axis=0)
        table = table * (columns / now)[None]
        if float(np.abs(now - columns).sum()) < CLOSE * float(columns.sum()):
            break
    return table


def _scale(expected: Floats, size: float) -> Floats:
    """How far cells may depart from what is expected, before it is known how far they do: as a power of their size."""
    return np.asarray(size**2 * (np.maximum(expected, 1.0) / size) ** GAMMA)
