"""What models of regions have in common: people counted in regions, and spread over the leaves inside them.

Many queries are answered at once. Few ranges of one attribute occur however many regions there are, and what a query
covers of a range is the difference of two running sums at its borders; so all of it is found before any region is
looked at. How regions then add up is for each kind to say.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Codes, Floats, Integers, row_keys
from sfumato.errors import BLAME, ReleaseError
from sfumato.geometry.regions import Regions, Sides
from sfumato.models.margins import Margin, Spread, is_level, margins_of, people_of, sums_within
from sfumato.models.model import Answers, Groups, Model, Nonnegative, Query
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.schema.schema import Predictor, Schema

States = NDArray[np.uint8]

WHOLE, PARTLY, UNTOUCHED = 0, 1, 2
"""How a query covers a range. Over several attributes the bits are joined: below `PARTLY` all is covered, from
`UNTOUCHED` on nothing is."""
BYTES = 16
"""What a leaf or a range takes for each clause, about: weights, shares and states."""
MOST_HELD = 2**24
"""So many numbers on the way to cells are held at a time, or as many as there are cells."""
DECIMALS = 3
"""As many as estimates are shown with."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """What queries cover of each range of one attribute; the first clause is of those that do not restrict it."""

    shares: Floats
    """ranges x clauses: the share of a range's people whom a clause covers"""
    states: States
    """ranges x clauses: how it covers them"""
    clause_of: Integers
    """the clause of each query"""

    @classmethod
    def of(cls, ranges: Integers, spread: Spread, clauses: Sequence[Floats], clause_of: Integers) -> Overlap:
        """Weigh ranges by the covered shares of their leaves."""
        borders, at = np.unique(ranges, return_inverse=True)
        lo, hi = at.reshape(ranges.shape).T
        weights = np.stack([np.ones(len(spread.mass)), *clauses], axis=1)
        within = _running(spread.mass[:, None] * weights, borders)
        shares = within[hi] - within[lo]
        shares /= shares[:, :1].copy()
        lacking, touched = (_running((weights != share).astype(np.int32), borders) for share in (1, 0))
        partly, untouched = lacking[hi] > lacking[lo], touched[hi] == touched[lo]
        np.copyto(shares, ~untouched, where=untouched | ~partly)
        return cls(shares, np.where(untouched, np.uint8(UNTOUCHED), partly.view(np.uint8)), clause_of)

    def over(self, ranges: Integers, asking: Integers) -> tuple[Floats, States]:
        """Look up what some queries cover of some ranges, and how: ranges x queries."""
        places = ranges[:, None] * self.shares.shape[1] + self.clause_of[asking]
        return self.shares.take(places), self.states.take(places)


def _running(leaves: NDArray[Any], borders: Integers) -> NDArray[Any]:
    """Sum numbers of leaves up to each border, from the first one on."""
    sums = np.zeros((len(borders), *leaves.shape[1:]), leaves.dtype)
    np.cumsum(np.add.reduceat(leaves[: borders[-1]], borders[:-1], axis=0), axis=0, out=sums[1:])
    return sums


def overlaps_of(
    ranges: Mapping[int, Integers], spreads: Sequence[Spread], queries: Sequence[Mapping[int, Floats]]
) -> dict[int, Overlap]:
    """Cover ranges of the attributes that any query restricts; queries are weights of leaves by attribute."""
    overlaps = {}
    for attribute in sorted({attribute for query in queries for attribute in query}):
        restricting = [number for number, query in enumerate(queries) if attribute in query]
        clause_of = np.zeros(len(queries), np.int64)
        clause_of[restricting] = np.arange(1, len(restricting) + 1)
        clauses = [queries[number][attribute] for number in restricting]
        overlaps[attribute] = Overlap.of(ranges[attribute], spreads[attribute], clauses, clause_of)
    return overlaps


@dataclass(frozen=True, eq=False)
class Share:
    """What queries have of a place as far as that is settled, and how they cover it."""

    weights: Floats
    states: States

    @classmethod
    def whole(cls, queries: int) -> Share:
        """Begin with all of it."""
        return cls(np.ones(queries), np.full(queries, WHOLE, np.uint8))

    def of(self, shares: Floats, states: States) -> Share:
        """Restrict it by what is covered of one attribute more."""
        return Share(self.weights * shares, self.states | states)

    def among(self, some: Integers) -> Share:
        """Keep that of some of the queries."""
        return Share(self.weights[some], self.states[some])


@dataclass(frozen=True, eq=False)
class Sums:
    """What queries find in regions."""

    values: Floats
    """queries x classes: people in what they cover"""
    resolved: Floats
    """queries x classes: people in the regions that they cover wholly"""
    variances: Floats
    """queries x classes, or queries x 1 where classes err alike: the variance of the value of one class"""
    aligned: Booleans
    """queries: whether they cover every region wholly or not at all"""

    @classmethod
    def none(cls, queries: int, classes: int) -> Sums:
        """Begin with nobody."""
        shape = (queries, classes)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((queries, 1)), np.ones(queries, np.bool_))


class RegionModel(Model):
    """People counted in regions, by class; inside a region they are spread by margins, or evenly."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse what would be paid for and left out."""
        super().__init__(schema, draft)
        unused = [one.label for one in draft.measurements if not self.uses(one)]
        if unused:
            raise ReleaseError(f"what was measured ({unused[0][:60]}) must be used, and no region knows of it", BLAME)
        try:
            self.margins: dict[int, Margin] = margins_of(filter(self.is_margin, draft.measurements))
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
        return size or is_level(one) or self.is_own(one)

    @cached_property
    def own(self) -> tuple[Measurement, ...]:
        """What was measured of the structure's own regions, or of nodes above them, by class."""
        structure = self.draft.structure
        return tuple(
            one
            for one in self.draft.measurements
            if (one.question.regions is structure or one.question.regions == structure)
            and one.question.classes == len(self.schema.classes)
        )

    @cached_property
    def _own(self) -> frozenset[int]:
        return frozenset(map(id, self.own))

    def is_own(self, one: Measurement) -> bool:
        """Tell whether it was measured of the structure's own regions or nodes."""
        return id(one) in self._own

    def is_margin(self, one: Measurement) -> bool:
        """Tell whether it is a level of an attribute's margin."""
        return is_level(one) and not self.is_own(one)

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
        """The best estimates of the regions' counts: regions x classes. Classes err alike and apart."""

    @property
    @abstractmethod
    def variances(self) -> Floats:
        """The variance of each region's estimate of one class."""

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

    @abstractmethod
    def sums(self, overlaps: Mapping[int, Overlap], share: Share) -> Sums:
        """Sum over the regions; the share is what queries have of attributes that are not split."""

    @cached_property
    @abstractmethod
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges of each attribute that must be covered to sum over the regions."""

    @property
    def groups(self) -> int:
        """The number of regions; of exact counts, those that hold someone."""
        return int(self.counts.counts.any(axis=1).sum()) if self.counts.is_exact else self.structure.regions

    @cached_property
    def sides(self) -> list[Sides]:
        """The ranges that the regions have of each attribute."""
        return [self.structure.sides(attribute) for attribute in range(len(self.schema.shape))]

    @cached_property
    def leaf_spreads(self) -> list[Spread]:
        """How people are spread over the leaves of each attribute, in the order of codes."""
        return [
            Spread.of(leaves, people_of(self.margins[attribute]) if attribute in self.margins else None)
            for attribute, leaves in enumerate(self.schema.shape)
        ]

    @cached_property
    def spreads(self) -> list[Spread]:
        """The same in the order of which regions have ranges."""
        return [spread.reordered(side.order) for spread, side in zip(self.leaf_spreads, self.sides, strict=True)]

    def bytes_for(self, query: Query) -> int:
        """Count the leaves and ranges of what the query restricts."""
        return sum(BYTES * (self.schema.shape[at] + len(self.ranges[at])) for at in query.weights)

    def answer(self, queries: Sequence[Query]) -> Answers:
        """Cover ranges, sum over regions, weigh classes."""
        overlaps = overlaps_of(self.ranges, self.spreads, [self._ordered(query) for query in queries])
        sums = self.sums(overlaps, _settled(overlaps, len(queries)))
        classes = np.stack([query.classes for query in queries])
        values, resolved = ((one * classes).sum(axis=1) for one in (sums.values, sums.resolved))
        variances = (np.maximum(sums.variances, 0) * classes**2).sum(axis=1)
        assumed = np.where(sums.aligned, 0.0, values - resolved)
        texts = tuple(query.text for query in queries)
        return Answers(texts, values, np.sqrt(variances), assumed, sums.aligned, self.cause)

    def _ordered(self, query: Query) -> dict[int, Floats]:
        return {at: weights[self.sides[at].order] for at, weights in query.weights.items()}

    def explain(self, query: Query) -> tuple[Mapping[str, Sequence[str]], Floats]:
        """List the fewest groups, inner nodes of a tree included."""
        regions, whole = np.arange(self.structure.regions), np.ones(self.structure.regions, np.bool_)
        ranges = {at: side.ranges for at, side in enumerate(self.sides)}
        for at, overlap in overlaps_of(ranges, self.spreads, [self._ordered(query)]).items():
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

    def margin_variances(self, attribute: int, borders: Integers) -> Floats | None:
        """Ask the attribute's margin, if one was bought."""
        margin = self.margins.get(attribute)
        return None if margin is None else margin.variances_between(borders)

    def classify(self, columns: Sequence[Codes]) -> Integers:
        """Take the most frequent class of each row's region."""
        return self.majorities()[self.structure.regions_of(columns)]


def _settled(overlaps: Mapping[int, Overlap], queries: int) -> Share:
    """Say what queries cover of attributes of which all regions have the same range."""
    share, everyone = Share.whole(queries), np.arange(queries)
    for overlap in overlaps.values():
        if len(overlap.shares) == 1:
            shares, states = overlap.over(np.zeros(1, np.int64), everyone)
            share = share.of(shares[0], states[0])
    return share


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
