"""Groups of a grid that were counted twice: as groups, and cell by cell in a histogram of the whole domain.

Both are unbiased, so a group's people are their mean by inverse variance. A group's people are spread over its cells by
margins, x_c people expected in cell c. A cell's own noisy count is far less certain than its group's, yet says
something: together they give the posterior mean of the cell's count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.consistency import nearest, whole
from sfumato.models.covering import Overlap, Share, Sums
from sfumato.models.grid import GridModel, cells_of_grid, over_leaves
from sfumato.models.intervals import Clauses
from sfumato.models.model import UNMEASURED, Nonnegative, refuse_unknown
from sfumato.models.regions import DECIMALS, Errors, draw_cells
from sfumato.modl.criterion import log_gamma
from sfumato.modl.grid import sum_parts
from sfumato.privacy.measurements import Draft, Measurement, Noisy, variance_of
from sfumato.schema.schema import Schema

LEAST_EXPECTED = 1e-6
"""Fewer people than this are expected nowhere: no cell is ruled out before it is looked at."""
SHAPES = (0.02, 100.0)
"""How far cells may depart from what is expected of them, as shapes of gamma distributions: wild, and hardly."""
EXPECTED_NODES = 64
COUNT_NODES = 192
"""The posterior is worked out for so many expectations and noisy counts; those between are interpolated."""
REACH = 32
"""Noise beyond so many times its scale has a probability below 1e-13."""
SMALL = 128
"""Counts below this are tried one by one."""
GROWTH = 1.02
"""Larger ones in such steps: the narrowest prior, of shape 100, is five times as wide."""
STEPS_PER_SCALE = 16
"""Around a noisy count, in so many steps for each time the noise's scale."""
ROUNDS = 8
SWEEPS = 100
"""So often cells are raked to groups and margins, at most,"""
CLOSE = 1e-4
"""or until no margin is missed by more than this share of all people in all."""


def refined(noisy: Integers, rate: Fraction, expected: Floats) -> Floats:
    """Give the posterior mean of each cell's count, from its noisy count at a rate and what its group expects of it."""
    guess = np.maximum(expected, LEAST_EXPECTED)
    table = Posterior.of(dispersion(noisy, rate, guess), float(rate), guess, noisy)
    return table.at(noisy, guess)


def dispersion(noisy: Integers, rate: Fraction, expected: Floats) -> float:
    """Estimate the shape a of the gamma distribution, of mean 1, by which cells depart from what is expected of them.

    Given x, a count is Poisson of mean x g with g from gamma(a), so it has variance x + x^2 / a; the noise adds v.
    So 1 / a is the mean of ((y - x)^2 - v - x) / x^2, weighted by the inverse of its variance, which is
    about 2 ((v + x + x^2 / a) / x^2)^2; a few rounds settle the a in it.
    """
    noise = variance_of(rate)
    beyond = (noisy - expected) ** 2 - noise - expected
    squared = expected**2
    inverse = 1.0
    for _ in range(ROUNDS):
        weights = (squared / (noise + expected + inverse * squared)) ** 2
        found = float((weights * beyond / squared).sum() / weights.sum())
        inverse = min(max(found, 1 / SHAPES[1]), 1 / SHAPES[0])
    return 1 / inverse


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior means of counts on a grid of expectations and noisy counts."""

    expected: Floats
    """increasing logarithms of expectations"""
    counts: Floats
    """increasing noisy counts from 0 on: below, the noise decides nothing, since it has the shape of exp(-rate k)"""
    means: Floats
    """expectations x counts: what to add to the noisy count"""

    @classmethod
    def of(cls, shape: float, rate: float, expected: Floats, noisy: Integers) -> Posterior:
        """Work out the table for what occurs."""
        logs = np.linspace(np.log(expected.min()), np.log(expected.max()) + 1e-9, EXPECTED_NODES)
        highest = max(float(noisy.max()), 1.0)
        counts = np.unique(np.concatenate([[0.0], np.geomspace(1.0, highest, COUNT_NODES).round()]))
        means = np.stack([_means(shape, rate, np.exp(logs), count) for count in counts], axis=1)
        return cls(logs, counts, means - counts)

    def at(self, noisy: Integers, expected: Floats) -> Floats:
        """Give the means of cells, interpolated between the nodes."""
        counts = np.maximum(noisy, 0).astype(np.float64)
        row, above = _between(self.expected, np.log(expected))
        column, right = _between(self.counts, counts)
        low = self.means[row, column] * (1 - right) + self.means[row, column + 1] * right
        high = self.means[row + 1, column] * (1 - right) + self.means[row + 1, column + 1] * right
        return np.maximum(counts + low * (1 - above) + high * above, 0.0)


def _between(nodes: Floats, at: Floats) -> tuple[Integers, Floats]:
    """Find the node before each place, and how far it is to the next."""
    before = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, len(nodes) - 2)
    return before, np.clip((at - nodes[before]) / (nodes[before + 1] - nodes[before]), 0.0, 1.0)


def _means(shape: float, rate: float, expected: Floats, count: float) -> Floats:
    """Give the posterior means for one noisy count: counts k weighted by the prior, which is negative binomial (a
    Poisson of a gamma), proportional to Gamma(k + a) / k! (x / (a + x))^k, and by the noise exp(-rate |count - k|).
    """
    most = float(expected.max())
    tried = _tried(count, REACH / rate, most + 8 * np.sqrt(most + most**2 / shape))
    ways = log_gamma(tried + shape + 1) - np.log(tried + shape) - log_gamma(tried + 1)
    prior = ways + tried * np.log(expected / (shape + expected))[:, None]
    logs = prior - rate * np.abs(tried - count)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True)) * np.gradient(tried)
    return np.asarray(weights @ tried / weights.sum(axis=1))


def _tried(count: float, noise: float, prior: float) -> Floats:
    """Give increasing counts that tell prior and noise: dense where either bends, and as far as both reach."""
    near = count + np.linspace(-noise, noise, 2 * REACH * STEPS_PER_SCALE + 1)
    steps = np.log((count + noise + prior) / SMALL) / np.log(GROWTH)
    far = SMALL * GROWTH ** np.arange(max(steps, 0.0) + 1)
    return np.unique(np.concatenate([np.arange(SMALL), far.round(), near[near >= SMALL].round()]))


def _all_but(axis: int, axes: int) -> tuple[int, ...]:
    return tuple(at for at in range(axes) if at != axis)


class CoclusterModel(GridModel):
    """The parts of a grid, by their own counts and by those of their cells."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse a release without a histogram of all cells, which was measured first."""
        super().__init__(schema, draft)
        if len(draft.measurements) < 2 or not self._is_histogram(draft.measurements[0]):
            raise ReleaseError(*UNMEASURED)
        self.histogram: Noisy = draft.measurements[0].noisy

    def _is_histogram(self, one: Measurement) -> bool:
        finest, classes = Grid.finest(self.schema.shape), len(self.schema.classes)
        alike = len(one.noisy.rates) == 1
        return alike and one.question.regions == finest and one.question.classes == classes

    def uses(self, one: Measurement) -> bool:
        """Use the histogram, too."""
        return self._is_histogram(one) or super().uses(one)

    def is_margin(self, one: Measurement) -> bool:
        """Leave out the histogram, which of a single attribute would be one."""
        return one is not self.draft.measurements[0] and super().is_margin(one)

    @cached_property
    def measured(self) -> Floats:
        """The mean of both counts, by inverse variance: m cells err m times as much as one."""
        say = self.variances / self.counts.variances
        return np.asarray(say[:, None] * self.counts.counts + (1 - say)[:, None] * self._sums)

    @cached_property
    def variances(self) -> Floats:
        """The variances of these means."""
        return np.asarray(1 / (1 / self.counts.variances + 1 / (self._cells * self.histogram.variances[0])))

    @cached_property
    def _sums(self) -> Integers:
        """The histogram's counts summed by region: regions x classes."""
        table = self.histogram.counts.reshape(*self.grid.shape, -1)
        for axis in range(len(self.grid.shape)):
            table = sum_parts(table, axis, self.grid.part_of(axis))
        return table.reshape(self.grid.regions, -1)

    @cached_property
    def _cells(self) -> Floats:
        """The number of cells of each region."""
        cells = np.ones(1)
        for cut in self.grid.cuts:
            cells = np.multiply.outer(cells, np.diff(cut)).ravel()
        return cells

    @property
    def total(self) -> int:
        """The estimated number of people, of whom cells hold no fewer than 0."""
        return max(round(float(self.values.sum())), 0)

    @property
    def shown(self) -> NDArray[Any]:
        """The estimates, rounded."""
        return np.asarray(np.round(self.values, DECIMALS))

    def people(self, how: Nonnegative) -> Integers:
        """Find the numbers nearest to the estimates, given their variances, that sum to the total; or clamp them."""
        refuse_unknown(how)
        if how == "clamp":
            return np.asarray(np.maximum(np.rint(self.values), 0), np.int64)
        everyone, total = np.zeros(self.values.size, np.int64), np.array([self.total])
        variances = np.repeat(self.variances, self.values.shape[1])
        wanted = nearest(self.values.ravel(), variances, everyone, total)
        return whole(wanted, everyone, total).reshape(self.values.shape)

    @cached_property
    def fitted_cells(self) -> Floats:
        """Expect people in every cell, by class: shape of the domain x classes.

        Groups' people are spread by margins, and each cell's own count is taken for what it is worth; then groups and
        margins get their people back, by raking.
        """
        (rate,) = self.histogram.rates
        people = self.values if self.fitted is not None else self.people("projection").astype(np.float64)
        guess = cells_of_grid(self.grid, people, dict(enumerate(self.leaf_spreads)))
        cells = refined(self.histogram.counts.reshape(guess.shape), rate, guess)
        for _ in range(SWEEPS):
            cells = cells * self._lacking(cells, people)
            missed = 0.0
            for axis, wanted in enumerate(self.fitted.margins.people if self.fitted is not None else ()):
                now = cells.sum(axis=_all_but(axis, cells.ndim))
                missed = max(missed, float(np.abs(wanted - now).sum()))
                cells = cells * np.expand_dims(wanted / np.maximum(now, LEAST_EXPECTED), _all_but(axis, cells.ndim))
            if missed <= CLOSE * cells.sum():
                break
        return cells

    def _lacking(self, cells: Floats, people: Floats) -> Floats:
        """Give every cell the factor by which its group lacks people."""
        sums = cells
        for axis in range(len(self.grid.shape)):
            sums = sum_parts(sums, axis, self.grid.part_of(axis))
        factors = np.divide(people.reshape(sums.shape), sums, out=np.zeros(sums.shape), where=sums > 0)
        return over_leaves(self.grid, factors, range(len(self.grid.shape)))

    @property
    def axes(self) -> tuple[int, ...]:
        """Answers are sums of single cells."""
        return self.grid.shape

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """Single leaves."""
        return {
            at: np.stack([np.arange(leaves), np.arange(1, leaves + 1)], axis=1)
            for at, leaves in enumerate(self.grid.shape)
        }

    @cached_property
    def table(self) -> Floats:
        """All cells, in the order in which groups have ranges, and the variance of one's own count."""
        cells = self.fitted_cells
        for axis, side in enumerate(self.sides):
            cells = cells.take(side.order, axis=axis)
        beside = np.zeros((*cells.shape[:-1], 2))
        beside[..., 1] = self.histogram.variances[0]
        return np.concatenate([beside, cells], axis=-1).reshape(-1, cells.shape[-1] + 2)

    def sums(self, overlaps: Mapping[int, Overlap], share: Share) -> Sums:
        """Sum cells, none of which was measured alone."""
        return replace(super().sums(overlaps, share), aligned=np.zeros(len(share.weights), np.bool_))

    def errors(self, values: Floats, sums: Sums, clauses: Clauses, classes: Floats) -> Errors:
        """Bound errors by those of the cells' own counts: of what groups do not tell, and of all of it."""
        direct = (sums.variances * classes**2).sum(axis=1)
        if self.fitted is None:
            return Errors(direct, np.zeros(len(direct)), np.full(len(direct), np.inf))
        found = super().errors(values, sums, clauses, classes)
        told = direct < found.model**2
        noise = np.minimum(found.noise + np.where(told, direct, 0.0), np.maximum(direct, found.noise))
        return Errors(noise, np.where(told, 0.0, found.model), found.most)

    def cells(self, counts: Floats, attributes: Sequence[int]) -> Floats:
        """Sum the cells over all other attributes; by class, if the counts are."""
        others = tuple(at for at in range(len(self.grid.shape)) if at not in attributes)
        summed = self.fitted_cells.sum(axis=others)
        return np.asarray(summed if counts.shape[1] == summed.shape[-1] else summed.sum(axis=-1, keepdims=True))

    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw single cells by the people expected in each."""
        refuse_unknown(how)
        cells = self.fitted_cells
        *leaves, classes = np.unravel_index(draw_cells(cells, size, rng), cells.shape)
        return leaves, classes
