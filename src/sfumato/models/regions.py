"""What models of regions have in common: people counted in regions, and spread over the leaves inside them.

What queries cover of regions is found first (`covering`); how regions then add up, and how far that may err, is for
each kind to say. Where margins were bought, regions are fitted together with them (`FittedModel`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Codes, Floats, Integers, row_keys
from sfumato.errors import BLAME, ReleaseError
from sfumato.geometry.regions import Regions, Sides
from sfumato.models.covering import PARTLY, WHOLE, Asked, Combinations, Overlap, Share, Sums, alike, settled
from sfumato.models.fitting import Fitted, Margins, Parts, Size
from sfumato.models.intervals import CLASS, Clause, Clauses
from sfumato.models.margins import AnyMargin, Spread, is_of_margin, margins_of, sums_within
from sfumato.models.merged import Beside
from sfumato.models.model import Answers, Groups, Model, Nonnegative, Query
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.schema.schema import Predictor, Schema

BYTES = 16
"""What a leaf or a range takes for each clause, about: weights, shares and states."""
MOST_AT_ONCE = 2**22
"""So many numbers of queries and regions are held at a time."""
MOST_HELD = 2**24
"""So many numbers on the way to cells are held at a time, or as many as there are cells."""
DECIMALS = 3
"""As many as estimates are shown with."""


@dataclass(frozen=True, eq=False)
class Errors:
    """How far answers may err."""

    noise: Floats
    """as variances"""
    model: Floats
    """as scales"""
    most: Floats
    """more than this cannot be"""


class RegionModel(Model):
    """People counted in regions, by class; inside a region they are spread by margins, or evenly."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse what would be paid for and left out."""
        super().__init__(schema, draft)
        unused = [one.label for one in draft.measurements if not self.uses(one)]
        if unused:
            raise ReleaseError(f"what was measured ({unused[0][:60]}) must be used, and no region knows of it", BLAME)
        try:
            self.margins: dict[int, AnyMargin] = margins_of(filter(self.is_margin, draft.measurements))
            """what was measured of single attributes"""
        except ValueError:
            problem = "margins must become finer from level to level, and end with the leaves"
            raise ReleaseError(problem, BLAME) from None

    @staticmethod
    def reads(question: Question) -> bool:
        """Read counts of the regions of grids."""
        return question.nodes is None and question.regions.disjoint

    def uses(self, one: Measurement) -> bool:
        """Use the regions' own counts, margins, and the size of the table."""
        size = one.question.is_marginal() and not one.question.attributes
        return size or is_of_margin(one) or self.is_own(one)

    @cached_property
    def own(self) -> tuple[Measurement, ...]:
        """What was measured of the structure's own regions, or of nodes above them, by class."""
        structure = self.draft.structure
        return tuple(
            one
            for one in self.draft.measurements
            if one.question.contrast is None
            and (one.question.regions is structure or one.question.regions == structure)
            and one.question.classes == len(self.schema.classes)
        )

    @cached_property
    def _own(self) -> frozenset[int]:
        return frozenset(map(id, self.own))

    def is_own(self, one: Measurement) -> bool:
        """Tell whether it was measured of the structure's own regions or nodes."""
        return id(one) in self._own

    def is_margin(self, one: Measurement) -> bool:
        """Tell whether it is of an attribute's margin."""
        return is_of_margin(one) and not self.is_own(one)

    @property
    def structure(self) -> Regions:
        """The regions."""
        return self.draft.structure

    @property
    @abstractmethod
    def counts(self) -> Noisy:
        """The counts of the regions as they were measured, the last time: regions x classes."""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """The best estimates of the regions' counts: regions x classes."""

    @property
    @abstractmethod
    def shown(self) -> NDArray[Any]:
        """The estimates as records show them."""

    @abstractmethod
    def people(self, how: Nonnegative) -> Integers:
        """Make non-negative whole numbers of people: regions x classes."""

    @abstractmethod
    def covering(self, regions: Booleans) -> tuple[Integers, Floats]:
        """Find the fewest boxes that make up some regions, and the estimates of each by class."""

    @abstractmethod
    def majorities(self) -> Integers:
        """Find each region's most frequent class."""

    def sums(self, overlaps: Mapping[int, Overlap], share: Share) -> Sums:
        """Weigh every region by the product of what is covered of its ranges; the share is what queries have of
        attributes that are not split.
        """
        sums = Sums.none(len(share.weights), self.values.shape[1])
        split = {at: overlap for at, overlap in overlaps.items() if len(overlap.shares) > 1}
        for attributes, every in alike({at: one.clause_of > 0 for at, one in split.items()}, len(share.weights)):
            found = self.combinations(attributes)
            for asking in self.blocks(every):
                clauses = {at: split[at].clause_of[asking] for at in attributes}
                shares = {at: split[at].shares.T[clauses[at]] for at in attributes}
                states = {at: split[at].states.T[clauses[at]] for at in attributes}
                weights = found.weigh(shares, share.weights[asking])
                sums.values[asking] = weights @ found.values
                sums.aligned[asking] = ~(found.join(states, share.states[asking]) == PARTLY).any(axis=1)
                sums.variances[asking] = self.own_variances(weights, found)
                sums.uneven[asking] = np.maximum(weights * (1 - weights), 0.0) @ found.squares
        return sums

    @cached_property
    def _combinations(self) -> dict[tuple[int, ...], Combinations]:
        return {}

    def combinations(self, attributes: tuple[int, ...]) -> Combinations:
        """Find the combinations of ranges that regions have of some attributes."""
        if attributes not in self._combinations:
            numbers, regions = [self.numbers[at] for at in attributes], self.structure.regions
            first, of = _grouped(numbers, [self.sides[at] for at in attributes], regions)
            values = [np.bincount(of, column, len(first)) for column in self.values.T]
            squares = np.bincount(of, self.values.sum(axis=1) ** 2, len(first)).astype(np.float64)
            ranges = {at: self.numbers[at][first] for at in attributes}
            self._combinations[attributes] = Combinations(of, ranges, np.stack(values, axis=1), squares)
        return self._combinations[attributes]

    def blocks(self, queries: Integers) -> list[Integers]:
        """Divide queries into blocks, each of which fits in memory together with all regions."""
        most = max(1, MOST_AT_ONCE // max(self.structure.regions, 1))
        return np.split(queries, np.arange(most, len(queries), most))

    @abstractmethod
    def own_variances(self, weights: Floats, found: Combinations) -> Floats:
        """Give the variances of weighted sums of the regions' own counts: queries x 1, or x classes."""

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges that regions have of each attribute."""
        return {attribute: side.ranges for attribute, side in enumerate(self.sides)}

    @property
    def groups(self) -> int:
        """The number of regions; of exact counts, those that hold someone."""
        return int(self.counts.counts.any(axis=1).sum()) if self.counts.is_exact else self.structure.regions

    @cached_property
    def sides(self) -> list[Sides]:
        """The ranges that the regions have of each attribute."""
        return [self.structure.sides(attribute) for attribute in range(len(self.schema.shape))]

    @cached_property
    def spreads(self) -> list[Spread]:
        """How people are spread over the leaves of each attribute, in the order of which regions have ranges."""
        people = [self._margin_people(at) if at in self.margins else None for at in range(len(self.schema.shape))]
        return [
            Spread.of(leaves, None if one is None else one[side.order])
            for leaves, one, side in zip(self.schema.shape, people, self.sides, strict=True)
        ]

    def _margin_people(self, attribute: int) -> Floats:
        """Estimate the people of leaves by their margin; if it does not tell how many there are, the regions do."""
        margin = self.margins[attribute]
        variance = np.inf if margin.tells_total else 1.0
        return margin.people(Beside.everyone(margin.leaves, float(self.values.sum()), variance))

    @cached_property
    def leaf_spreads(self) -> list[Spread]:
        """The same in the order of codes."""
        return [spread.reordered(np.argsort(side.order)) for spread, side in zip(self.spreads, self.sides, strict=True)]

    def bytes_for(self, query: Query) -> int:
        """Count the leaves and ranges of what the query restricts."""
        return sum(BYTES * (self.schema.shape[at] + len(self.ranges[at])) for at in query.weights)

    def answer(self, queries: Sequence[Query]) -> Answers:
        """Cover ranges, sum over regions, weigh classes; then see how far all of it may err."""
        asked = Asked.of(queries, [side.order for side in self.sides])
        overlaps = asked.overlaps(self.ranges, self.spreads)
        sums = self.sums(overlaps, settled(overlaps, len(queries)))
        values = (sums.values * asked.classes).sum(axis=1)
        errors = self.errors(values, sums, self._clauses(asked), asked.classes)
        most, scales = np.where(asked.plain, errors.most, np.inf), asked.scales * asked.someone
        untold = np.where(sums.aligned, 0.0, errors.model)
        texts = tuple(query.text for query in queries)
        return Answers(texts, values * asked.scales, np.sqrt(errors.noise) * scales, untold * scales, most, self.cause)

    def errors(self, values: Floats, sums: Sums, clauses: Clauses, classes: Floats) -> Errors:  # noqa: ARG002
        """Add up the noise of the regions' own counts, and what spreading evenly inside regions had to assume.

        The share of a region's people that lies in a part w of it is taken to vary by w (1 - w) / 4, region by region.
        """
        noise = (np.maximum(sums.variances, 0) * classes**2).sum(axis=1)
        model = np.hypot(np.sqrt(np.maximum(sums.uneven, 0.0)) / 2, clauses.model_error())
        return Errors(noise, model, np.full(len(noise), np.inf))

    def clause_errors(self, attribute: int, weights: Floats) -> Floats:  # noqa: ARG002
        """Tell the error of one-way answers that rest on a margin, as variances: weights of leaves, queries x leaves,
        or of classes.
        """
        return np.zeros(len(weights))

    def clause_untold(self, attribute: int, weights: Floats) -> Floats:  # noqa: ARG002
        """Tell how far one-way answers may be off by what a margin merged, as scales: weights are queries x leaves."""
        return np.zeros(len(weights))

    def _clauses(self, asked: Asked) -> Clauses:
        """See what queries restrict each attribute and the class to."""
        found: dict[int, Clause] = {}
        by_region, classes = np.maximum(self.values, 0.0), asked.classes
        masses, total = by_region.sum(axis=1), max(float(by_region.sum()), 1e-9)
        sides, squared = {at: side.ranges for at, side in enumerate(self.sides)}, asked.squared()
        first = asked.overlaps(sides, self.spreads)
        second = first if squared is asked else squared.overlaps(sides, self.spreads)
        for at, overlap in first.items():
            shares, restricting = overlap.shares[:, overlap.clause_of], overlap.clause_of > 0
            by_range = np.bincount(self.numbers[at], masses, len(shares)) / total
            share, square = by_range @ shares, second[at].shares[:, overlap.clause_of]
            variance = by_range @ square - share**2
            inside = np.clip(by_range @ (square - shares**2) / np.maximum(variance, 1e-12), 0.0, 1.0)
            error, untold = np.zeros(len(restricting)), np.zeros(len(restricting))
            weights = asked.weights[at][:, np.argsort(self.sides[at].order)]
            error[asked.numbers[at]] = self.clause_errors(at, weights)
            untold[asked.numbers[at]] = self.clause_untold(at, weights)
            found[at] = Clause(shares, restricting, share, np.maximum(variance, 0.0), inside, error, untold)
        restricting = (classes != 1).any(axis=1)
        if restricting.any():
            by_class = by_region.sum(axis=0) / total
            share = np.where(restricting, classes @ by_class, 1.0)
            error = self.clause_errors(CLASS, classes)
            variance = np.where(restricting, np.maximum(classes**2 @ by_class - share**2, 0.0), 0.0)
            found[CLASS] = Clause(classes.T, restricting, share, variance, 0 * share, error * restricting, 0 * share)
        return Clauses(found, len(classes), max(total, 1.0))

    @cached_property
    def numbers(self) -> list[Integers]:
        """The range that each region has of each attribute."""
        regions = np.arange(self.structure.regions)
        return [side.number(regions) for side in self.sides]

    def explain(self, query: Query) -> tuple[Mapping[str, Sequence[str]], Floats]:
        """List the fewest groups, inner nodes of a tree included."""
        regions, whole = np.arange(self.structure.regions), np.ones(self.structure.regions, np.bool_)
        ranges = {at: side.ranges for at, side in enumerate(self.sides)}
        asked = Asked.of([query], [side.order for side in self.sides])
        for at, overlap in asked.overlaps(ranges, self.spreads).items():
            whole &= overlap.states[self.sides[at].number(regions), 1] == WHOLE
        boxes, counts = self.covering(whole)
        columns = list(self.schema.predictors.items())
        named = {
            columns[at][0]: self._named(at, columns[at][1], boxes[:, at]) for at in self.structure.split_attributes
        }
        return named, np.asarray(counts @ query.classes)

    def _named(self, attribute: int, column: Predictor, ranges: Integers) -> list[str]:
        """Name the leaves of many ranges, few of which are different: every name is made once."""
        distinct = Sides.of_boxes(ranges, self.schema.shape[attribute])
        names = [self.sides[attribute].label(column, lo, hi) for lo, hi in distinct.ranges.tolist()]
        return [names[number] for number in distinct.number(np.arange(len(ranges))).tolist()]

    def marginal(self, attributes: Sequence[int], *, by_class: bool) -> Floats:
        """Spread the regions' people over the leaves of some attributes; all others are summed out first."""
        counts = self.values if by_class else self.values.sum(axis=1, keepdims=True)
        return self.cells(counts, attributes)

    def cells(self, counts: Floats, attributes: Sequence[int]) -> Floats:
        """Bring regions x classes to leaves x leaves ... x classes of some attributes."""
        return cells_of_boxes(
            counts, [self.sides[at] for at in attributes], [self.leaf_spreads[at] for at in attributes]
        )

    def generalized(self, how: Nonnegative) -> Groups:
        """Make a record of every region and class."""
        return Groups(self.sides, self.shown, self.people(how))

    def draw(self, size: int, rng: np.random.Generator, how: Nonnegative) -> tuple[Sequence[Integers], Integers]:
        """Draw regions and classes by their people, then each attribute's leaf by its spread inside the region."""
        cells = draw_cells(self.people(how), size, rng)
        regions, classes = np.divmod(cells, len(self.schema.classes))
        leaves = [
            side.order[spread.draw(side.of(regions), rng)]
            for side, spread in zip(self.sides, self.spreads, strict=True)
        ]
        return leaves, classes

    def classify(self, columns: Sequence[Codes]) -> Integers:
        """Take the most frequent class of each row's region."""
        return self.majorities()[self.structure.regions_of(columns)]


class FittedModel(RegionModel):
    """Regions whose counts are fitted together with margins, where these were bought; else they stand alone."""

    heavier: ClassVar[float]
    """departures have heavier tails than the normal distribution that shrinking takes them for: what is left of their
    variance is more by this factor, chosen on Adult and the table made up"""

    @cached_property
    def fitted(self) -> Fitted | None:
        """The distribution that agrees with all that was measured; None where margins were not bought."""
        margins = self.all_margins
        if margins is None:
            return None
        return Fitted(margins, self.sides, self.numbers, self.interacting())

    @cached_property
    def all_margins(self) -> Margins | None:
        """The margins of all attributes and the class, and what regions say of them; None if they were not bought."""
        needed = {at for at, leaves in enumerate(self.schema.shape) if leaves > 1}
        if self.draft.is_exact or not needed <= self.margins.keys():
            return None
        everyone = [one for one in self.draft.measurements if one.question.is_marginal() and not self.is_own(one)]
        classes = [(one.counts[0], float(one.noisy.variances[0])) for one in everyone if not one.question.attributes]
        if len(self.schema.classes) > 1 and not any(len(counts) > 1 for counts, _ in classes):
            return None
        own = self.class_counts
        totals = [(float(one.counts.sum()), float(one.noisy.variances.sum()) * one.counts.shape[1]) for one in everyone]
        totals.append((float(own[0].sum()), own[1] * len(own[0])))
        besides = {
            at: Size.of(
                total
                for total, attributes in zip(totals, [*(one.question.attributes for one in everyone), ()], strict=True)
                if attributes != (at,)
            )
            for at in self.margins
        }
        classes = [(counts, variance) for counts, variance in (*classes, own) if len(counts) == len(own[0])]
        return Margins.of(self.schema.shape, self.margins, self.part_sums(), classes, Size.of(totals), besides)

    @property
    @abstractmethod
    def class_counts(self) -> tuple[Floats, float]:
        """What the regions' own counts say of each class, and the variance of that."""

    @abstractmethod
    def part_sums(self) -> Mapping[int, Parts]:
        """What the regions' own counts say of parts of attributes."""

    @abstractmethod
    def interacting(self) -> Floats:
        """Put what the regions' counts say of attributes together on top of margins: masses of regions x classes."""

    @property
    @abstractmethod
    def measured(self) -> Floats:
        """The estimates of the regions' counts from their own measurements alone: regions x classes."""

    @cached_property
    def values(self) -> Floats:
        """The best estimates of the regions' counts: regions x classes."""
        return self.measured if self.fitted is None else self.fitted.masses

    @cached_property
    def spreads(self) -> list[Spread]:
        """The fitted weights of the leaves."""
        if self.fitted is None:
            return super().spreads
        return [Spread.of(len(weights), weights) for weights in self.fitted.weights]

    def clause_errors(self, attribute: int, weights: Floats) -> Floats:
        """Ask the margins."""
        if self.fitted is None:
            return super().clause_errors(attribute, weights)
        margins = self.fitted.margins
        return margins.class_errors(weights) if attribute == CLASS else margins.errors(attribute, weights)

    def clause_untold(self, attribute: int, weights: Floats) -> Floats:
        """Ask the margins."""
        return (
            super().clause_untold(attribute, weights)
            if self.fitted is None
            else self.fitted.margins.untold(attribute, weights)
        )

    def errors(self, values: Floats, sums: Sums, clauses: Clauses, classes: Floats) -> Errors:
        """Add up the noise of margins, of what regions add to them, and what is assumed inside regions."""
        if self.fitted is None:
            return super().errors(values, sums, clauses, classes)
        noise = clauses.margin_noise(values, self.fitted.margins.size.variance)
        noise = noise + np.where(clauses.several, self.heavier * self.region_noise(clauses, sums), 0.0)
        return Errors(noise, np.hypot(clauses.model_error(), clauses.margin_untold(values)), clauses.most())

    @abstractmethod
    def region_noise(self, clauses: Clauses, sums: Sums) -> Floats:
        """Bound what is left of the noise of the regions' counts in fitted answers, as variances."""


def draw_cells(weights: NDArray[np.integer | np.floating], size: int, rng: np.random.Generator) -> Integers:
    """Draw indices of cells in proportion to non-negative weights, or evenly when all are 0.

    With one random start and even steps through the running sum, a cell of which x are expected is drawn x times,
    rounded up or down: no chance is added to what the noise did, and neighbours together are as near to their sum.
    The order is shuffled, so that any part of the sample is a sample.

    >>> np.bincount(draw_cells(np.array([3, 0, 1]), 8, np.random.default_rng())).tolist()
    [6, 0, 2]
    """
    given = weights.ravel().astype(np.float64)
    running = np.cumsum(given if given.any() else np.ones_like(given))
    at = (np.arange(size) + rng.random()) * (running[-1] / max(size, 1))
    cells = np.searchsorted(running, at, side="right").astype(np.int64)
    return np.asarray(rng.permutation(np.minimum(cells, np.searchsorted(running, running[-1]))))


def cells_of_boxes(counts: Floats, sides: Sequence[Sides], spreads: Sequence[Spread]) -> Floats:
    """Bring regions of any kind x classes to leaves x leaves ... x classes of the attributes that the sides are of.

    >>> sides = Sides(np.array([[0, 2], [2, 4]]), np.array([0, 1]).__getitem__, np.arange(4))
    >>> cells_of_boxes(np.array([[6.0, 1.0], [2.0, 0.0]]), [sides], [Spread.of(4)]).tolist()
    [[3.0, 0.5], [3.0, 0.5], [1.0, 0.0], [1.0, 0.0]]
    """
    numbers = [side.number(np.arange(len(counts))) for side in sides]
    cells = _spread_last(counts, numbers, sides, spreads)
    return cells.reshape(*(len(spread.mass) for spread in spreads), counts.shape[1])


def _spread_last(
    counts: Floats, numbers: Sequence[Integers], sides: Sequence[Sides], spreads: Sequence[Spread]
) -> Floats:
    """Spread rows over the leaves of the last attribute, then of those before it; rows that have the same range of
    every attribute are one. What is spread already lies in the columns.

    Two halves of the rows are brought to cells one after the other where both together would take more memory than the
    cells themselves.
    """
    if not sides:
        return np.asarray(counts.sum(axis=0))
    counts, numbers = _joined(counts, numbers, sides)
    groups, group_of = _grouped(numbers[:-1], sides[:-1], len(counts))
    size = len(spreads[-1].mass) * counts.shape[1]
    if len(groups) > 1 and len(groups) * size > max(MOST_HELD, size * math.prod(len(one.mass) for one in spreads[:-1])):
        one, other = np.array_split(np.arange(len(counts)), 2)
        cells = _spread_last(counts[one], [number[one] for number in numbers], sides, spreads)
        cells += _spread_last(counts[other], [number[other] for number in numbers], sides, spreads)
        return cells
    spread = np.zeros((len(groups), len(spreads[-1].mass), counts.shape[1]))
    mass = sums_within(spreads[-1].mass, sides[-1].ranges)
    order = np.argsort(numbers[-1], kind="stable")
    starts = np.flatnonzero(np.diff(numbers[-1][order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        number = numbers[-1][rows[0]]
        first, end = sides[-1].ranges[number]
        shares = spreads[-1].mass[first:end] / mass[number]
        spread[group_of[rows], first:end] += shares[:, None] * counts[rows, None]
    kept = [one[groups] for one in numbers[:-1]]
    return _spread_last(spread.reshape(len(groups), -1), kept, sides[:-1], spreads[:-1])


def _joined(counts: Floats, numbers: Sequence[Integers], sides: Sequence[Sides]) -> tuple[Floats, list[Integers]]:
    """Add up the rows that have the same ranges, and put them in the order of these."""
    groups, group_of = _grouped(numbers, sides, len(counts))
    if len(groups) == len(counts):
        return counts[groups], [one[groups] for one in numbers]
    order = np.argsort(group_of, kind="stable")
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    return np.add.reduceat(counts[order], starts, axis=0), [one[groups] for one in numbers]


def _grouped(numbers: Sequence[Integers], sides: Sequence[Sides], rows: int) -> tuple[Integers, Integers]:
    """Give a row of each group of rows with the same ranges, and the group of each row; without sides all are one."""
    keys = row_keys(numbers, [len(side.ranges) for side in sides]) if sides else np.zeros(rows, np.int64)
    _, groups, group_of = np.unique(keys, return_index=True, return_inverse=True)
    return groups, group_of
