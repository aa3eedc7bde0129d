"""Replicates: what else may have been so, given what was measured, drawn again and again.

A replicate is the model's distribution, moved at random as far as the model says that its answers may err, for a normal
distribution with the same 95 % intervals. All of it is asked of the model in its own words, weighted counts, so every
kind of model has replicates, and they differ as `count` says.

* *Size*: moved as the count of everyone errs.
* *Margins*, of each attribute and the class: leaves are divided in two, and again, each time where about half of the
  people lie on either side. A part's share of its parent has a beta distribution, with the model's share for its mean
  and, for its variance, that of the contrast, the part's people less their share of the parent's. Nothing becomes
  negative, and sums of many leaves err as little as their own answers do.
* *Pairs* of attributes, or of one and the class: the first few of these divisions, with mean 0 and variance 1 among all
  people, are directions h. A cell of both gets N p_a p_b times the sum of c h_a h_b more people, c being normal: h_a
  and h_b get correlated by c more, and margins stay. Of what three attributes do together nothing is changed.

Moving multiplies weights, of cells or of records that were drawn from the model; then they are raked to the replicate's
margins. This is post-processing of public numbers, so any generator of random numbers will do.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.models.intervals import ALONE, CLASS, Z95, half_widths
from sfumato.models.model import LEVEL, Answers, Model, Nonnegative, Query
from sfumato.models.regions import draw_cells
from sfumato.schema.attributes import Numeric

MOST_SPLITS = 255
"""So many divisions of an attribute's leaves are moved, those of most people; finer ones stay as they were fitted."""
PIECES = 32
"""Into so many pieces an attribute's leaves are divided for what it has to do with another,"""
DIRECTIONS = 7
"""and so many divisions are directions in which it may,"""
LEAST_VARIANCE = 0.004
"""if their variance is so much; rarer values, of half a percent of people, move with their margin alone."""
MOST_MOVED = 1.5
"""All correlations that a replicate moves have squares that sum to this, at most: with it, one of five records drawn is
kept, with much more hardly any. Where many attributes are drawn together, fewer directions of each are moved."""
LEAST = 1e-9
"""A share that is divided by is no less;"""
TINY = 1e-60
"""one that raking makes smaller than this is left to vanish."""
MOST_RATIO = 1e3
"""Cells with fewer than a thousandth of the people whom independence would have are moved as if they had so many."""
FEWEST = 1.0
"""Beta distributions of fewer people in all would put all of them on one side."""
AT_ONCE = 1024
"""So many questions are asked of a model at a time."""
OVERSAMPLED = 4
"""For each record wanted so many are drawn, of which those are kept that a replicate has,"""
FEWEST_DRAWN = 20_000
"""and this many at least; if they are worth fewer than are wanted, more are drawn, but not more than"""
MOST_OVERSAMPLED = 8
"""for each record wanted."""
MARGIN = 1.5
"""More are drawn than seem to be needed."""
CLOSE = 1e-4
"""Raking ends when no margin is missed by more than this share of all people,"""
MOST_SWEEPS = 200
"""or after so many sweeps. Pairs"""
PAIR_SWEEPS = 10
"""need fewer, since they may contradict each other and margins come last;"""
TABLE_SWEEPS = 20
"""and so do tables of pairs, which hardly lose their margins when people are moved."""
MOST_DEGREES = 1e5
"""With more degrees of freedom Student's t is normal."""
FARTHEST = 40.0
"""Beyond so many standard deviations its tails are looked at for few degrees of freedom alone."""
STEPS = 20_000

Columns = Mapping[int, Integers]
"""Leaf codes of records or cells by the number of the attribute; of classes, as that of CLASS."""


@dataclass(frozen=True, eq=False)
class Axis:
    """An attribute, or the class, divided in two again and again."""

    people: Floats
    """of each leaf, by the model"""
    splits: Integers
    """splits x 3: where a part begins, where it is divided, where it ends; parents go before their children"""

    @classmethod
    def of(cls, people: Floats) -> Axis:
        """Divide the parts of most people first, each where about half of its people lie on either side.

        >>> Axis.of(np.array([1.0, 1.0, 6.0, 2.0])).splits.tolist()
        [[0, 2, 4], [2, 3, 4], [0, 1, 2]]
        """
        positive = np.maximum(people, 0.0)
        positive = positive + LEAST * max(float(positive.sum()), 1.0)
        running = np.concatenate(([0.0], np.cumsum(positive)))
        waiting = [(-float(running[-1]), 0, len(people))]
        splits: list[tuple[int, int, int]] = []
        while waiting and len(splits) < MOST_SPLITS:
            _, low, high = heapq.heappop(waiting)
            if high - low < 2:
                continue
            middle = int(np.searchsorted(running, (running[low] + running[high]) / 2))
            nearest = min((middle - 1, middle), key=lambda at: abs(2 * running[at] - running[low] - running[high]))
            middle = min(max(nearest, low + 1), high - 1)
            splits.append((low, middle, high))
            for part in ((low, middle), (middle, high)):
                heapq.heappush(waiting, (-float(running[part[1]] - running[part[0]]), *part))
        return cls(positive, np.array(splits, np.int64).reshape(-1, 3))

    @property
    def shares(self) -> Floats:
        """The share of its parent that the first part of each split has."""
        return np.array([self.people[a:b].sum() / self.people[a:c].sum() for a, b, c in self.splits.tolist()])

    def contrasts(self) -> Floats:
        """Weigh leaves by: one in the first part, less its share in both. Splits x leaves, people sum to 0."""
        weights = np.zeros((len(self.splits), len(self.people)))
        for row, (low, middle, high), share in zip(weights, self.splits.tolist(), self.shares.tolist(), strict=True):
            row[low:middle], row[middle:high] = 1 - share, -share
        return weights

    def sums(self) -> Floats:
        """Weigh leaves by one where a split divides them: splits x leaves."""
        return np.asarray(self.contrasts() != 0, np.float64)

    def moved(self, doubt: AxisDoubt, size: float, rng: np.random.Generator) -> Floats:
        """Draw people of each leaf, of so many in all, as far from the model's as may be."""
        people: Floats = self.people * (size / self.people.sum())
        for (low, middle, high), error, follows, share in zip(
            self.splits.tolist(), doubt.errors.tolist(), doubt.follows.tolist(), self.shares.tolist(), strict=True
        ):
            parent, now = self.people[low:high].sum(), max(float(people[low:high].sum()), LEAST)
            expected = min(max(share + follows * (now - parent) / now, LEAST), 1 - LEAST)
            if error == 0:
                first = expected
            else:
                worth = max(expected * (1 - expected) * (now / error) ** 2 - 1, FEWEST)
                first = rng.beta(max(worth * expected, LEAST), max(worth * (1 - expected), LEAST))
            people[low:middle] *= now * first / max(people[low:middle].sum(), LEAST)
            people[middle:high] *= now * (1 - first) / max(people[middle:high].sum(), LEAST)
        return people


@dataclass(frozen=True, eq=False)
class AxisDoubt:
    """How far the splits of an axis may err."""

    errors: Floats
    """the standard deviations of contrasts, of what does not follow from the error of the parent"""
    follows: Floats
    """by how much a contrast is more, on average, for each person whom the parent has more"""

    @classmethod
    def of(cls, model: Model, at: int, axis: Axis) -> AxisDoubt:
        """Ask a model. Noise lies on leaves alike and not by their people, so contrasts c err with their parents p: by
        cov(c, p) = (var(c + p) - var(c) - var(p)) / 2.
        """
        contrasts, sums = axis.contrasts(), axis.sums()
        own, above, both = (_ask(model, [{at: one} for one in each]) for each in (contrasts, sums, contrasts + sums))
        together = (both.noise**2 - own.noise**2 - above.noise**2) / 2
        follows = np.where(above.noise > 0, together / np.where(above.noise > 0, above.noise, 1.0) ** 2, 0.0)
        follows = np.clip(follows, -1.0, 1.0)
        return cls(np.sqrt(np.maximum(own.stddevs**2 - (follows * above.noise) ** 2, 0.0)), follows)


@dataclass(frozen=True, eq=False)
class Directions:
    """The first splits of an axis as functions of its leaves, with mean 0 and variance 1 among all people."""

    pieces: Integers
    """the piece of each leaf: on its leaves the functions do not change"""
    values: Floats
    """functions x pieces"""
    asked: Floats
    """functions x leaves: the splits, which are 1 in the first part, 0 in the second, and elsewhere the share of it"""
    shares: Floats
    """the mean of what is asked"""
    spans: Floats
    """by how much what is found for it must be multiplied"""

    @classmethod
    def of(cls, axis: Axis, *, ordered: bool) -> Directions:
        """Take the splits that tell most people apart.

        Where leaves have an order, people who have more of one attribute mostly have more, or less, of another all
        along. So the first direction is then the rank r, as a normal score, and not the first split h; and as h is
        correlated with it by k, what h has to do with anything is k times what r has.
        """
        contrasts, shares = axis.contrasts(), axis.shares
        everyone = axis.people / axis.people.sum()
        variances = contrasts**2 @ everyone
        first = np.argsort(-variances, kind="stable")[:DIRECTIONS]
        first = first[variances[first] >= LEAST_VARIANCE]
        spans = 1 / np.sqrt(variances[first])
        functions = spans[:, None] * contrasts[first]
        asked = contrasts[first] + shares[first, None]
        borders = np.unique(axis.splits[: PIECES - 1])
        pieces = np.searchsorted(borders[1:-1], np.arange(len(everyone)), side="right")
        if ordered and len(first):
            held = np.bincount(pieces, everyone)
            middles = np.clip(np.cumsum(held) - held / 2, LEAST, 1 - LEAST)
            normal = [NormalDist().inv_cdf(rank) for rank in middles.tolist()]
            ranks = np.array(normal)[pieces]
            ranks = ranks - ranks @ everyone
            ranks /= np.sqrt(ranks**2 @ everyone)
            spans[0] /= abs(float(everyone @ (ranks * functions[0])))
            functions[0] = ranks
        starts = np.flatnonzero(np.diff(pieces, prepend=-1))
        return cls(pieces, functions[:, starts], asked, shares[first], spans)


@dataclass(frozen=True, eq=False)
class Doubt:
    """How far a model may err, axis by axis and pair by pair: asked once, for all replicates."""

    model: Model
    size: float
    size_error: float
    axes: Mapping[int, Axis]
    margins: Mapping[int, AxisDoubt]
    directions: Mapping[int, Directions]
    pairs: Mapping[tuple[int, int], Floats]
    """directions x directions: the standard deviations of their correlations"""

    @classmethod
    def of(cls, model: Model) -> Doubt:
        """Ask a model."""
        axes = {at: Axis.of(model.marginal([at], by_class=False)[:, 0]) for at in range(len(model.schema.shape))}
        if len(model.schema.classes) > 1:
            axes[CLASS] = Axis.of(model.marginal([], by_class=True).ravel())
        axes = {at: axis for at, axis in axes.items() if len(axis.people) > 1}
        everyone = _ask(model, [{}])
        margins = {at: AxisDoubt.of(model, at, axis) for at, axis in axes.items()}
        size = max(float(everyone.values[0]), 1.0)
        ordered = {at for at, column in enumerate(model.schema.predictors.values()) if isinstance(column, Numeric)}
        directions = {at: Directions.of(axis, ordered=at in ordered) for at, axis in axes.items()}
        pairs = _correlations(model, directions, size)
        return cls(model, size, float(everyone.stddevs[0]), axes, margins, directions, pairs)

    def leaves(self, attribute: int) -> int:
        """Count the leaves of an attribute, or the classes."""
        return len(self.model.schema.classes) if attribute == CLASS else self.model.schema.shape[attribute]

    def replicate(self, attributes: Collection[int], rng: np.random.Generator) -> Replicate:
        """Draw what else may have been so of some attributes; the class is CLASS."""
        size = max(rng.normal(self.size, self.size_error), 0.0)
        people = {
            at: axis.moved(self.margins[at], max(size, 1.0), rng) for at, axis in self.axes.items() if at in attributes
        }
        shares = {at: one / one.sum() for at, one in people.items()}
        pairs = self._moved({pair: each for pair, each in self.pairs.items() if {*pair} <= {*attributes}})
        moves = {}
        for (a, b), errors in pairs.items():
            one, other = (self.directions[at].values[:number] for at, number in zip((a, b), errors.shape, strict=True))
            moves[a, b] = Moves(one.T @ rng.normal(0.0, errors) @ other, np.sqrt((one**2).T @ errors**2 @ other**2))
        return Replicate(self, size, shares, moves)

    def _moved(self, pairs: Mapping[tuple[int, int], Floats]) -> Mapping[tuple[int, int], Floats]:
        """Keep as many directions as can be moved together; if one of each is too many, move them less."""
        for number in range(DIRECTIONS, 0, -1):
            kept = {pair: errors[:number, :number] for pair, errors in pairs.items()}
            moved = sum(float((errors**2).sum()) for errors in kept.values())
            if moved <= MOST_MOVED:
                return kept
        return {pair: errors * math.sqrt(MOST_MOVED / moved) for pair, errors in kept.items()}


def _ask(model: Model, weights: Sequence[Mapping[int, Floats]]) -> Answers:
    """Ask for weighted counts, by attribute or class."""
    everyone = np.ones(len(model.schema.classes))
    queries = [
        Query("", {at: one for at, one in each.items() if at != CLASS}, each.get(CLASS, everyone)) for each in weights
    ]
    return Answers.joined([model.answer(queries[at : at + AT_ONCE]) for at in range(0, len(queries), AT_ONCE)])


def _correlations(model: Model, directions: Mapping[int, Directions], size: float) -> dict[tuple[int, int], Floats]:
    """Ask how far two directions may hang together otherwise than fitted.

    With a and b between 0 and 1, N E[a b] = N (p_a p_b + c s_a s_b): errors of c are those of the answer that margins
    have not made. Of these, the error of a's own sum counts as b's share says, or as the answer's share of a.
    """
    alone = {at: _ask(model, [{at: one} for one in each.asked]).noise for at, each in directions.items()}
    found = {}
    for a, b in itertools.combinations(directions, 2):
        one, other = directions[a], directions[b]
        both = _ask(model, [{a: x, b: y} for x in one.asked for y in other.asked])
        shape = (len(one.shares), len(other.shares))
        values, noise, untold = (each.reshape(shape) for each in (both.values, both.noise, both.untold))
        by_one, by_other = one.shares[:, None], other.shares[None]
        reach = np.maximum(by_other, np.minimum(np.abs(values) / (size * by_one), 1.0)) * alone[a][:, None]
        across = np.maximum(by_one, np.minimum(np.abs(values) / (size * by_other), 1.0)) * alone[b][None]
        own = np.sqrt(np.maximum(noise**2 - (reach**2 + across**2) / ALONE, 0.0))
        errors = half_widths(LEVEL, own.ravel(), untold.ravel()).reshape(shape) / Z95
        found[a, b] = errors * one.spans[:, None] * other.spans[None] / size
    return found


@dataclass(frozen=True, eq=False)
class Moves:
    """By how much the cells of a pair of attributes get more people, as shares of those whom independence would have:
    pieces x pieces.
    """

    drawn: Floats
    spread: Floats
    """the standard deviations of what is drawn"""

    def factors(self, ratio: Floats) -> Floats:
        """Multiply cells that have a ratio less people than independence would have: by numbers of mean 1 with the same
        standard deviations s, which are not negative. Such are exp(t z - t^2 / 2), z being standard normal and
        t^2 = log(1 + s^2).
        """
        normal = self.drawn / np.maximum(self.spread, TINY)
        logs = np.log1p((np.minimum(ratio, MOST_RATIO) * self.spread) ** 2)
        return np.asarray(np.exp(np.sqrt(logs) * normal - logs / 2))


@dataclass(frozen=True, eq=False)
class Replicate:
    """A distribution that may have been: another size, other margins, other dependences of pairs."""

    doubt: Doubt
    size: float
    shares: Mapping[int, Floats]
    """by attribute and class: each leaf's share of people"""
    moves: Mapping[tuple[int, int], Moves]
    """of pairs of attributes"""

    def weighed(self, columns: Columns, weights: Floats) -> Floats:
        """Move the weights of records or cells: rake them to the replicate's pairs and margins of attributes."""
        known = {at: codes for at, codes in columns.items() if at in self.shares}
        weights = np.maximum(weights, 0.0)
        weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1 / max(len(weights), 1))
        margins = [_Wanted.of(codes, self.shares[at], weights) for at, codes in known.items()]
        weights = _raked(weights, margins, MOST_SWEEPS)
        pairs = [self._pair(pair, known, weights) for pair in self.moves if {*pair} <= known.keys()]
        weights = _raked(weights, [*pairs, *margins], PAIR_SWEEPS)
        return self.size * _raked(weights, margins, MOST_SWEEPS)

    def _pair(self, pair: tuple[int, int], columns: Columns, weights: Floats) -> _Wanted:
        """Move people in a pair's table of pieces, and give it its margins back."""
        one, other = (self.doubt.directions[at].pieces[columns[at]] for at in pair)
        moves = self.moves[pair]
        cells = one * moves.drawn.shape[1] + other
        before = np.bincount(cells, weights, moves.drawn.size).reshape(moves.drawn.shape)
        first, second = before.sum(axis=1), before.sum(axis=0)
        table = before * moves.factors(np.outer(first, second) / np.maximum(before, TINY))
        for _ in range(TABLE_SWEEPS):
            table = table * (first / np.maximum(table.sum(axis=1), LEAST))[:, None]
            table = table * (second / np.maximum(table.sum(axis=0), LEAST))[None]
        return _Wanted.of(cells, table.ravel(), weights)

    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw people: many of the model's, of whom those are kept that the replicate has.

        They are sorted before, so that of people who are alike as many are kept as their weights say, and the luck of
        the draw adds little to what replicates differ by.
        """
        drawn = max(OVERSAMPLED * size, FEWEST_DRAWN)
        while True:
            leaves, classes = self.doubt.model.draw(drawn, rng, how)
            columns = dict(enumerate(leaves)) | {CLASS: classes}
            weights = self.weighed(columns, np.ones(drawn))
            worth = float(weights.sum() ** 2 / max(float((weights**2).sum()), LEAST))
            if worth >= size or drawn >= MOST_OVERSAMPLED * size:
                alike = np.lexsort([columns[at] for at in self.shares]) if self.shares else np.arange(drawn)
                kept = alike[draw_cells(weights[alike], size, rng)]
                return [one[kept] for one in leaves], classes[kept]
            drawn = min(math.ceil(drawn * MARGIN * size / max(worth, 1.0)), MOST_OVERSAMPLED * size)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Which shares of people the cells of a table should have: of leaves, or of pairs of pieces."""

    cells: Integers
    """of each weight, its cell"""
    shares: Floats

    @classmethod
    def of(cls, cells: Integers, shares: Floats, weights: Floats) -> _Wanted:
        """Want people only where there is something to weigh."""
        there = np.where(np.bincount(cells, weights, len(shares)) > LEAST**2, shares, 0.0)
        return cls(cells, there / max(float(there.sum()), LEAST))


def _raked(weights: Floats, wanted: Sequence[_Wanted], sweeps: int) -> Floats:
    """Multiply cells by what they lack, table after table, until nothing lacks: at most so many sweeps, where tables
    contradict each other.
    """
    for _ in range(sweeps):
        missed = 0.0
        for one in wanted:
            now = np.bincount(one.cells, weights, len(one.shares))
            missed = max(missed, float(np.abs(one.shares - now).sum()))
            weights = weights * (one.shares / np.maximum(now, TINY))[one.cells]
        if missed <= CLOSE:
            break
    return weights


@dataclass(frozen=True)
class Combined:
    """What estimates from several replicates say together."""

    estimate: float
    variance: float
    degrees: float
    """the degrees of freedom of Student's t that the error follows"""

    @classmethod
    def of(cls, estimates: ArrayLike, variances: ArrayLike | None = None) -> Combined:
        """Combine estimates by Rubin's rules: one from each replicate, each with its variance, or without.

        With m estimates of variance b, the truth is as far from their mean as another one would be: the variance of
        that is (1 + 1/m) b, estimated with m - 1 degrees of freedom. Variances, the squares of standard errors, say
        how far a table of this size is from the population that it was drawn from; their mean u is added, and known so
        well that the degrees of freedom become (m - 1) (1 + u / ((1 + 1/m) b))^2.

        >>> print(Combined.of([2.0, 3.0, 4.0], [0.5, 0.5, 0.5]))
        3.00 ± 3.85 (95 %)
        """
        each = _numbers("estimates", estimates)
        if len(each) < 2:
            raise ReleaseError(f"estimates ({len(each)}) must be at least two", "Give one from each replicate.")
        within = np.zeros(len(each)) if variances is None else _numbers("variances", variances)
        if len(within) != len(each) or (within < 0).any():
            raise ReleaseError(
                f"variances ({len(within)}) must be as many as estimates ({len(each)}), and none negative",
                "Give the square of each estimate's standard error, or none at all.",
            )
        between = (1 + 1 / len(each)) * float(each.var(ddof=1))
        variance = between + float(within.mean())
        known = variance * TINY < between
        degrees = (len(each) - 1) * (variance / between) ** 2 if known else math.inf
        return cls(float(each.mean()), variance, degrees)

    @property
    def stddev(self) -> float:
        """The standard error of the estimate."""
        return math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.between(LEVEL)

    def between(self, level: float) -> tuple[float, float]:
        """The interval that holds the truth with a probability."""
        half = student(level, self.degrees) * self.stddev
        return self.estimate - half, self.estimate + half

    def __str__(self) -> str:
        """Write the estimate and half the 95 % interval, to three digits of that."""
        half = (self.interval[1] - self.interval[0]) / 2
        digits = 2 if half == 0 else min(max(2 - math.floor(math.log10(half)), 0), 12)
        return f"{self.estimate:,.{digits}f} ± {half:,.{digits}f} (95 %)"


def student(level: float, degrees: float) -> float:
    """Find how far from 0 Student's t lies with a probability, at most.

    With t = sqrt(n) tan(x), x has a density proportional to cos(x)^(n - 1).

    >>> [round(student(0.95, degrees), 3) for degrees in (1, 2, 9, 1e9)]
    [12.706, 4.303, 2.262, 1.96]
    """
    n = min(degrees, MOST_DEGREES)
    angles = np.linspace(0.0, min(math.pi / 2, FARTHEST / math.sqrt(n)), STEPS + 1)
    middles = (angles[1:] + angles[:-1]) / 2
    running = np.concatenate(([0.0], np.cumsum(np.exp((n - 1) * np.log(np.cos(middles))))))
    return float(math.sqrt(n) * np.tan(np.interp(level, running / running[-1], angles)))


def _numbers(name: str, given: ArrayLike) -> Floats:
    """Read finite numbers, one for each replicate."""
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ReleaseError(f"{name} must be finite numbers, one for each replicate", "Give a list of numbers.")
    return found
