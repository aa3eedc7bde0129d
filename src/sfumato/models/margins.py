"""How people are spread over the leaves of an attribute: by a noisy margin, or evenly where there is none.

A margin is all that was measured of one attribute alone: levels of the halving of its leaves, differences of halves, or
sums that leave something untold (`merged`). Its people are those of least squares, none of them negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.contrasts import Halves, Waves
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import borders, families, height, parts
from sfumato.models.halvings import HalvingSquares
from sfumato.models.merged import Beside, Merged
from sfumato.privacy.measurements import Measurement, Question, variance_of

LEAST_VARIANCE = 1e-9
"""Noise of a rate so large that it is hardly ever anything but 0 still leaves its counts a finite say."""
FEW = 1e-5
"""This share of an attribute's leaves may be cut at 0 in the end."""
CLOSE = 1e-6
"""Fewer people than this below 0 are rounding."""


@dataclass(frozen=True, eq=False)
class MarginLevel:
    """The noisy counts of all parts at one depth of an attribute's halving, or the noisy differences of their halves,
    with the same noise.
    """

    depth: int
    counts: Integers
    rate: Fraction


@dataclass(frozen=True, eq=False)
class Margin:
    """What was measured of the leaves of one attribute: levels of their halving, the coarsest first, the last one the
    leaves themselves; or the differences of halves at all depths, besides levels or instead of them.
    """

    leaves: int
    levels: tuple[MarginLevel, ...]
    halves: tuple[MarginLevel, ...] = ()

    def __post_init__(self) -> None:
        """Refuse levels that are not those of these leaves."""
        last = height(self.leaves)
        depths, divided = ([level.depth for level in each] for each in (self.levels, self.halves))
        complete = divided == [*range(last)] and last > 0
        if depths != sorted({*depths, *([] if complete else [last])}) or not all(0 <= one <= last for one in depths):
            raise ValueError("levels must become finer and end with the leaves")
        if divided != sorted({*divided}) or not all(0 <= one < last for one in divided):
            raise ValueError("halves must become finer")
        if any(level.counts.shape != (parts(self.leaves, level.depth),) for level in self.levels):
            raise ValueError("a level must have a count for each of its parts")
        if any(level.counts.shape != (Halves(self.leaves, level.depth).rows,) for level in self.halves):
            raise ValueError("halves must have a count for each part that has two")

    @classmethod
    def flat(cls, counts: Integers, rate: Fraction) -> Margin:
        """A margin of which only the leaves were measured."""
        return cls(len(counts), (MarginLevel(height(len(counts)), counts, rate),))

    @property
    def tells_total(self) -> bool:
        """Whether everyone is counted; differences alone say nothing of that."""
        return bool(self.levels)

    def people(self, beside: Beside) -> Floats:
        """Estimate the people of each leaf, none of them negative."""
        return people_of(self, beside)

    def estimator(self, beside: Beside) -> Estimator:
        """Give the estimator that knows how far noise may have moved sums of leaves."""
        return Estimator.of(self, beside)


AnyMargin = Margin | Merged


def depth_of(question: Question) -> int | None:
    """Tell of which depth of an attribute's halving a question asks all parts; None if it asks something else."""
    if not _of_one(question) or question.contrast is not None:
        return None
    grid, (attribute,) = question.regions, question.attributes
    assert isinstance(grid, Grid)
    leaves, cut = grid.shape[attribute], grid.cuts[attribute]
    depth = height(leaves) if len(cut) == leaves + 1 else (len(cut) - 2).bit_length()
    return depth if np.array_equal(borders(leaves, depth), cut) else None


def _of_one(question: Question) -> bool:
    """Tell whether a question is about ranges of the leaves of one attribute."""
    grid = question.regions
    return isinstance(grid, Grid) and not grid.orders and question.classes == 1 and len(grid.split_attributes) == 1


def is_of_margin(one: Measurement) -> bool:
    """Tell whether something measured is of one attribute alone, all of it with the same noise."""
    return _of_one(one.question) and len(one.noisy.rates) == 1


def margins_of(measurements: Iterable[Measurement]) -> dict[int, AnyMargin]:
    """Put together what was measured of each attribute."""
    found: dict[int, list[Measurement]] = {}
    for one in measurements:
        (attribute,) = one.question.attributes
        found.setdefault(attribute, []).append(one)
    return {at: _margin(at, every) for at, every in sorted(found.items())}


def _margin(attribute: int, every: list[Measurement]) -> AnyMargin:
    """Make a margin of levels and halves; or one of the only thing measured, if that is neither."""
    first = every[0]
    leaves = first.question.regions.shape[attribute]
    levels = [(depth_of(one.question), one) for one in every]
    if len(every) == 1 and first.question.contrast is None and levels[0][0] != height(leaves):
        grid = first.question.regions
        assert isinstance(grid, Grid)
        return Merged.of_bins(np.asarray(grid.cuts[attribute]), first.counts[:, 0], first.noisy.variances)
    if len(every) == 1 and isinstance(first.question.contrast, Waves):
        return Merged.of_waves(first.question.contrast, first.counts[:, 0], float(first.noisy.variances[0]))
    if not all(depth is not None or isinstance(one.question.contrast, Halves) for depth, one in levels):
        raise ValueError("a margin must be of levels and halves, or of one other thing")
    return Margin(
        leaves,
        _sorted(_level(depth, one) for depth, one in levels if depth is not None),
        _sorted(
            _level(one.question.contrast.depth, one) for _, one in levels if isinstance(one.question.contrast, Halves)
        ),
    )


def _level(depth: int, one: Measurement) -> MarginLevel:
    return MarginLevel(depth, one.counts[:, 0], one.noisy.rates[0])


def _sorted(levels: Iterable[MarginLevel]) -> tuple[MarginLevel, ...]:
    return tuple(sorted(levels, key=lambda level: level.depth))


@dataclass(frozen=True, eq=False)
class Estimator:
    """Least squares over all levels of a margin, and over what was counted besides.

    The levels nest, and everyone is the root above them, so passes over them give estimates x and cov(x, p) for sums
    p = A x. Parts do not nest with levels; but they are few, so their counts s, of variances W, are brought in
    afterwards, by the formula that is exact for uncorrelated measurements: x + cov(x, p) (var(p) + W)^-1 (s - p).
    """

    alone: Floats
    """the estimates without the parts"""
    passes: HalvingSquares
    beside: Beside

    @classmethod
    def of(cls, margin: Margin, beside: Beside, held: Integers | None = None) -> Estimator:
        """Weigh measurements by precision; some leaves may be held at 0."""
        nodes = (1 << height(margin.leaves)) - 1 + margin.leaves
        measured, precision, differences, certain = (np.zeros(nodes) for _ in range(4))
        for level in margin.levels:
            place = slice((1 << level.depth) - 1, (1 << level.depth) - 1 + len(level.counts))
            measured[place] = level.counts
            precision[place] = 1 / max(variance_of(level.rate), LEAST_VARIANCE)
        for level in margin.halves:
            divided = families(margin.leaves)[level.depth]
            heads = divided.heads[divided.sizes == 2]
            differences[heads] = level.counts
            certain[heads] = 1 / max(variance_of(level.rate), LEAST_VARIANCE)
        if held is not None:
            leaves = held + nodes - margin.leaves
            measured[leaves], precision[leaves] = 0.0, 1 / LEAST_VARIANCE
        say = 1 / (1 + precision[0] * beside.variance) if precision[0] else 1.0
        if np.isfinite(beside.variance):
            measured[0] += say * (beside.total - measured[0])
            precision[0] += 1 / beside.variance
        passes = HalvingSquares(margin.leaves, precision, certain)
        return cls(passes.leaf_values(measured, differences), passes, beside)

    @cached_property
    def _covariances(self) -> tuple[Floats, Floats]:
        """Give cov(x, p), leaves x parts, and the inverse of var(p) + W; of sums that are certain, nothing is left."""
        found = self.passes.covariances(self.beside.leaves)
        together = self.beside.leaves @ found + np.diag(self.beside.variances)
        try:
            return found, np.asarray(np.linalg.inv(together), np.float64)
        except np.linalg.LinAlgError:
            return found, np.asarray(np.linalg.pinv(together, hermitian=True), np.float64)

    @cached_property
    def people(self) -> Floats:
        """Estimate the people of each leaf."""
        if not len(self.beside.sums):
            return self.alone
        found, inverse = self._covariances
        return np.asarray(self.alone + found @ (inverse @ (self.beside.sums - self.beside.leaves @ self.alone)))

    def variances(self, weights: Floats) -> Floats:
        """Give the variances of weighted sums of leaves: queries x leaves."""
        alone = (self.passes.covariances(weights) * weights.T).sum(axis=0)
        if len(self.beside.sums):
            found, inverse = self._covariances
            reached = weights @ found
            alone = alone - ((reached @ inverse) * reached).sum(axis=1)
        return np.asarray(np.maximum(alone, 0.0))

    def untold(self, weights: Floats) -> Floats:
        """Give how far weighted sums may be off besides: not at all, for every leaf is told."""
        return np.zeros(len(weights))


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
