"""Marginals: margins of all attributes, then the pairs that they tell worst, chosen one after the other. Ours.

1. *Size.* A hundredth of epsilon for the number of people; it decides how the rest is divided.
2. *Margins* of all attributes by class; of long ones parts, as fine as the noise allows, and the leaves besides.
3. *Rounds.* A network is fitted to all that is known. Of all pairs of attributes, in several granularities and by
   class or not, the one that the network tells worst is chosen, and measured. A round that brings little more than
   noise makes the next ones fewer and dearer. All of it is two passes over the data: margins, then all pairs at once.

Everything but the counts is public: bins follow from noisy margins, candidates from bins, what is expected from the
network. The choice is `Meter.select_marginal`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, get_args

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.geometry.grid import Grid
from sfumato.methods.margins import Purpose
from sfumato.methods.method import Method, number, one_of, parameter
from sfumato.models.binning import HEAVY, level
from sfumato.models.fitting import Size
from sfumato.models.network import Network, Pair, columns_of
from sfumato.privacy.budget import GRAIN, Schedule, payable
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.misfits import MOST, UNIT, Ladder, Misfits
from sfumato.privacy.scores import Selection
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Schema

SIZE = Fraction(1, 100)
"""The share of epsilon for a noisy size of the table."""
REST = "all that follows from the size"
"""The label of what margins and rounds share, once the size is known."""
MARGIN_WEIGHT = 1.7
"""How much more an error of margins counts than one of pairs: every answer rests on them."""
CLEAR = 2.5
"""Parts of a margin are so long that an average cell holds so many standard deviations of noise,"""
FEWEST_PARTS = 8
"""but there are so many at least,"""
MOST_PARTS = 256
"""and so many at most."""
NEARLY = 1.6
"""Where leaves are hardly more than that, they are the parts."""
VALUES = 5
"""Values without an order may have so many times more parts: they cannot lean on their neighbours."""
LEAVES = 0.3
"""What the leaves of a long attribute get, of what an attribute gets on average."""
SMALL = 9
"""A pair is worth measuring with so many cells, times the root of the classes,"""
TOLD = 0.05
"""if their noise adds up to no more than this share of everyone."""
MOST_ROUNDS = 1.25
"""There are so many rounds for each attribute, at most,"""
FEWEST_ROUNDS = 3
LIMIT_ROUNDS = 80
"""and never more than this."""
CHOOSING = 4.0
"""Choices get as much of a round as makes their noise as large as that of so many cells."""
LEAST_CHOOSING = 0.15
GROUPS = (2, 3, 4, 6, 8, 12, 16)
"""The numbers of groups that attributes are put into,"""
LOPSIDED = 1
"""those of the two of a pair at most so many steps apart."""
CLASS_FIRST = 3
"""With a class, so many rounds choose among pairs by class, where these can be seen above noise."""
LITTLE = 0.5
"""A round that moves fewer people than this part of its noise makes the next one twice as dear."""
DUST = 2 * GRAIN
"""Less than this is left alone."""
MOST_CLIQUE = 40_000
"""Pairs that would make a clique of more cells are not offered."""
MOST_PAIRS = 2_000
"""Of more pairs than this, those of attributes that tell most people apart are looked at."""


@dataclass(frozen=True, kw_only=True)
class Marginals(Method):
    """Counts of few attributes and synthetic records, by one distribution."""

    name: ClassVar[str] = "marginals"
    order: ClassVar[int] = 0
    summary: ClassVar[str] = (
        "measures margins and the pairs of attributes that they tell worst, and fits one distribution to all of it"
    )
    suits: ClassVar[str] = (
        "counts by a few attributes and synthetic records: margins by class and the pairs told worst, one distribution"
    )
    arithmetic: ClassVar[str] = (
        "a hundredth for the size; of the rest 0.6 (Adult at epsilon 1) or more for margins, the others for rounds of "
        "a choice and a pair"
    )
    unsuited: ClassVar[str] = (
        "where all that matters is telling the class (`diffmulti --for classification`), or exact boxes; on small "
        "domains (`laplace`)"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"heavy": 0, "rounds": 3},
        {},
        {"heavy": 0, "purpose": "counts", "selection": "exponential"},
        {"rounds": 0},
    )

    purpose: Purpose = parameter(
        "balanced",
        "What the release is for: counts, classification, or both (balanced). The first pairs are chosen by class, for "
        "counts none, for classification all.",
        read=one_of(get_args(Purpose)),
        option="for",
    )
    rounds: int = parameter(
        LIMIT_ROUNDS,
        "How many pairs are measured at most; the size of the table mostly calls for fewer.",
        read=number("Give for example 20.", least=0, most=1000),
    )
    heavy: int = parameter(
        HEAVY,
        "How many standard deviations of noise a bin of values holds at least; with 0, all values are told apart.",
        read=number("Give for example 5.", least=0, most=1000),
    )
    selection: Selection = parameter("permute-and-flip", "How pairs are chosen.", read=one_of(get_args(Selection)))

    @property
    def model(self) -> str:
        """The model of a network."""
        return "network"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Pay for the size; what the rest is spent on follows from it."""
        if not any(leaves > 1 for leaves in schema.shape):
            raise MethodError(
                f"{self.name} must have an attribute of two values or more besides the class",
                "Declare more attributes.",
            )
        return Schedule({"size": epsilon * SIZE, REST: epsilon * (1 - SIZE)}, REST)

    def expected_cells(self, schema: Schema) -> int:
        """Estimate the cells: of margins, and of as many pairs as there may be."""
        margins = sum(len(schema.classes) * min(leaves, MOST_PARTS) + leaves for leaves in schema.shape)
        return margins + LIMIT_ROUNDS * 256 * len(schema.classes)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure the size and the margins; then choose, measure and fit until the budget is spent."""
        every = tuple(range(len(schema.shape)))
        histograms = Tally(Grid.whole(schema.shape), len(schema.classes), every)
        size = meter.measure(Cells(histograms, "place"), schedule["size"], "size")
        division = Division.of(schema, max(int(size.counts[0, 0]), 1), meter.left, self.rounds)
        margins = division.buy_margins(meter, schema, histograms)
        totals = [(float(size.counts[0, 0]), float(size.noisy.variances[0]))]
        columns = columns_of(schema, margins)
        people = Size.of([*totals, *(total for column in columns for total in column.totals())])
        bins = tuple(column.bins(people.value, self.heavy) for column in columns)
        network = Network(len(schema.classes), people, columns, bins)
        rounds = Rounds(self, meter, schema, network, division)
        rounds.go()
        again = division.buy_margins(meter, schema, histograms, again=True)
        structure = Grid.grouped(schema.shape, dict(enumerate(bins)))
        return Draft(structure, (size, *margins, *rounds.measured, *again), self.model, tuple(rounds.steps))


@dataclass(frozen=True)
class Division:
    """How epsilon is divided among margins and rounds, from the noisy size and public facts.

    The noise of m cells, as the sum of its absolute values, is m over their epsilon. The sum of such terms is least if
    budgets are in proportion to the square roots of cells. There are as many pairs as can be measured in a few cells
    each, with noise of a small share of everyone; the cells that each may then have at that noise are theirs.
    """

    size: int
    parts: Mapping[int, int]
    """of attributes that are measured, the number of parts by class"""
    margins: Mapping[int, Fraction]
    """the epsilon of each margin by class,"""
    leaves: Mapping[int, Fraction]
    """and of the leaves, where parts are fewer"""
    rounds: int
    choosing: Fraction
    """the share of a round for its choice"""

    @classmethod
    def of(cls, schema: Schema, size: int, budget: Fraction, most: int) -> Division:
        """Divide a budget."""
        classes = len(schema.classes)
        lengths = {at: leaves for at, leaves in enumerate(schema.shape) if leaves > 1}
        ordered = {at for at, column in enumerate(schema.predictors.values()) if isinstance(column, Numeric)}
        small, whole = SMALL * math.sqrt(classes), float(budget)
        limit = min(math.ceil(MOST_ROUNDS * len(lengths)), most) if len(lengths) > 1 else 0
        bearable = TOLD * size * whole / 2
        rounds = min(max(bearable / small, FEWEST_ROUNDS), limit)
        pairs = rounds * math.sqrt(max(small, bearable / rounds)) if rounds else 0.0
        share, parts = 0.5, dict(lengths)
        for _ in range(30):
            clear = size * share * whole / len(lengths) / (math.sqrt(2) * classes * CLEAR)
            parts = {
                at: bearable_parts(leaves, clear * (1 if at in ordered else VALUES)) for at, leaves in lengths.items()
            }
            cells = MARGIN_WEIGHT * sum(math.sqrt(number * classes) for number in parts.values())
            share = cells / (cells + pairs)
        left = TOLD * size * whole * (1 - share)
        choosing = max(LEAST_CHOOSING, CHOOSING / max(small, 0.87 * left / rounds)) if rounds else 0.0
        if limit:
            rounds = round(min(max(left / (1 + choosing) / small, FEWEST_ROUNDS), limit))
        return cls._of_shares(
            size, lengths, parts, budget, Fraction(share).limit_denominator(1000), int(rounds), choosing
        )

    @classmethod
    def _of_shares(
        cls,
        size: int,
        lengths: Mapping[int, int],
        parts: Mapping[int, int],
        budget: Fraction,
        share: Fraction,
        rounds: int,
        choosing: float,
    ) -> Division:
        """Share what margins get by the cube roots of parts, so that none is too noisy."""
        long = [at for at, number in parts.items() if number < lengths[at]]
        weights = {at: Fraction(round(100 * number ** (1 / 3))) for at, number in parts.items()}
        extra = Fraction(LEAVES).limit_denominator(100) * sum(weights.values()) / len(weights)
        whole = sum(weights.values()) + extra * len(long)
        amount = budget * share if rounds else budget
        margins = {at: payable(amount * weight / whole) for at, weight in weights.items()}
        leaves = {at: payable(amount * extra / whole) for at in long}
        part = Fraction(choosing / (1 + choosing)).limit_denominator(1000)
        return cls(size, parts, margins, leaves, rounds, part)

    def buy_margins(
        self, meter: Meter, schema: Schema, histograms: Tally, *, again: bool = False
    ) -> tuple[Measurement, ...]:
        """Measure parts by class, and the leaves of attributes that have more; again, with all that rounds left."""
        names = list(schema.predictors)
        tail = f" by {schema.target}" if len(schema.classes) > 1 else ""
        asked = [
            (Cells(histograms, grid=in_parts(schema, at, self.parts[at])), spend, f"margin of {names[at]}{tail}")
            for at, spend in self.margins.items()
        ]
        for at, spend in self.leaves.items():
            cells = Cells(histograms, "place", grid=in_parts(schema, at, schema.shape[at]))
            asked.append((cells, spend, f"margin of the leaves of {names[at]}"))
        if not again:
            return tuple(meter.measure(*one) for one in asked)
        factor = meter.left / sum(spend for _, spend, _ in asked)
        spends = [payable(spend * factor) for _, spend, _ in asked]
        if min(spends) <= DUST:
            return ()
        return tuple(
            meter.measure(cells, spend, f"{label}, again")
            for (cells, _, label), spend in zip(asked, spends, strict=True)
        )


def bearable_parts(leaves: int, clear: float) -> int:
    """Into how many parts an attribute is cut if so many are clear of noise: into leaves where that is nearly so.

    >>> bearable_parts(74, 26.0), bearable_parts(30, 26.0), bearable_parts(100_000, 1e6)
    (26, 30, 256)
    """
    parts = int(max(FEWEST_PARTS, min(clear, MOST_PARTS)))
    return leaves if leaves <= NEARLY * parts else parts


def in_parts(schema: Schema, at: int, parts: int) -> Grid:
    """Cut an attribute into parts of about as many leaves each; those that are not like others stand alone."""
    leaves, column = schema.shape[at], list(schema.predictors.values())[at]
    alone = column.apart if isinstance(column, Numeric) else np.zeros(0, np.int64)
    even = np.arange(parts + 1) * leaves // parts
    return Grid.marginal(schema.shape, {at: np.unique(np.concatenate([even, alone, alone + 1])).tolist()})


@dataclass(eq=False)
class Rounds:
    """Choose what is told worst, measure it, fit; again and again."""

    method: Marginals
    meter: Meter
    schema: Schema
    network: Network
    division: Division
    measured: list[Measurement] = field(default_factory=list, init=False)
    steps: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Lay out the candidates: all pairs of attributes that have bins, in several granularities."""
        sizes = {at: int(bins.max()) + 1 for at, bins in enumerate(self.network.bins)}
        self.pairs = self._looked_at([at for at, size in sizes.items() if size > 1])
        self.ladders = {at: Ladder(self._levels(at)) for at in {at for pair in self.pairs for at in pair}}
        bins = self.network.bins
        marginals = tuple(Grid.grouped(self.schema.shape, {a: bins[a], b: bins[b]}) for a, b in self.pairs)
        self.tally = Tally(Grid.whole(self.schema.shape), len(self.schema.classes), (), None, marginals)
        self.every = self._candidates()
        self.offered = np.ones(len(self.every), np.bool_)

    def _masses(self, at: int) -> Floats:
        """The people of each bin of an attribute by class."""
        masses = np.zeros((int(self.network.bins[at].max()) + 1, self.network.classes))
        np.add.at(masses, self.network.bins[at], self.network.people[at])
        return masses

    def _looked_at(self, attributes: Sequence[int]) -> list[tuple[int, int]]:
        """List pairs; where they are too many, those of attributes that tell most people apart."""
        pairs = list(itertools.combinations(attributes, 2))
        shares = {at: self._masses(at).sum(axis=1) / self.network.size.value for at in attributes}
        apart = {at: 1 - float((share**2).sum()) for at, share in shares.items()}
        first = sorted(pairs, key=lambda pair: -apart[pair[0]] * apart[pair[1]])[:MOST_PAIRS]
        return sorted(first)

    def _levels(self, at: int) -> tuple[Integers, ...]:
        """Put an attribute's bins into groups of neighbours: on a grid, or by their rate of the last class."""
        masses = self._masses(at)
        total = masses.sum(axis=1)
        if isinstance(list(self.schema.predictors.values())[at], Numeric):
            order = np.arange(len(total))
        else:
            order = np.argsort(masses[:, -1] / total if self.network.classes == 2 else -total, kind="stable")
        found: list[Integers] = []
        for groups in GROUPS:
            group = np.empty(len(total), np.int64)
            group[order] = level(total[order], groups)
            found.append(group)
        return tuple(found)

    def _candidates(self) -> Integers:
        """Pairs x levels x levels x by class or not; of levels with the same groups one."""
        found = []
        kinds = (1, 0) if self.network.classes > 1 else (0,)
        for marginal, (a, b) in enumerate(self.pairs):
            seen: set[tuple[int, int]] = set()
            sizes = [[int(level.max()) + 1 for level in self.ladders[at].levels] for at in (a, b)]
            for first, second in itertools.product(range(len(GROUPS)), repeat=2):
                size = (sizes[0][first], sizes[1][second])
                if abs(first - second) <= LOPSIDED and min(size) > 1 and size not in seen:
                    seen.add(size)
                    found += [(marginal, first, second, kind) for kind in kinds]
        return np.array(found, np.int64).reshape(-1, 4)

    def _cells(self, candidates: Integers) -> Integers:
        """The number of cells of candidates."""
        groups = {at: np.array([int(one.max()) + 1 for one in ladder.levels]) for at, ladder in self.ladders.items()}
        pairs = np.array(self.pairs)[candidates[:, 0]]
        first = np.array([groups[at][number] for at, number in zip(pairs[:, 0], candidates[:, 1], strict=True)])
        second = np.array([groups[at][number] for at, number in zip(pairs[:, 1], candidates[:, 2], strict=True)])
        return np.asarray(first * second * np.where(candidates[:, 3] == 1, self.network.classes, 1))

    def go(self) -> None:
        """Spend what is left, round by round."""
        if not (self.division.rounds and len(self.every)):
            return
        share = payable(self.meter.left / self.division.rounds)
        while self.meter.left > DUST and self.offered.any():
            if self.meter.left < share * Fraction(3, 2):
                share = payable(self.meter.left)
            gained, noise = self._round(len(self.measured) + 1, share)
            if gained < LITTLE * noise:
                share, self.offered = payable(2 * share), np.ones(len(self.every), np.bool_)

    def _round(self, number: int, share: Fraction) -> tuple[float, float]:
        """Choose, measure, fit; tell how many people moved, and what the noise sums up to."""
        choosing = payable(share * self.division.choosing)
        spend = payable(share - choosing)
        candidates = self.every[self._eligible(float(spend), number)]
        at = self._choose(candidates, choosing, float(spend), number)
        marginal, first, second, by_class = candidates[at].tolist()
        a, b = self.pairs[marginal]
        self.offered &= ~(self.every == candidates[at]).all(axis=1)
        groups = {
            one: self.ladders[one].levels[level][self.network.bins[one]] for one, level in ((a, first), (b, second))
        }
        cells = Cells(self.tally, "class" if by_class else "place", grid=Grid.grouped(self.schema.shape, groups))
        names = list(self.schema.predictors)
        what = f"{names[a]} and {names[b]}" + (f" by {self.schema.target}" if by_class else "")
        self.measured.append(self.meter.measure(cells, spend, f"pair {number}"))
        gained = self.network.add(Pair.of(self.measured[-1], self.network.bins))
        self.network.fit()
        self.steps.append(f"pair {number}: {what}, {self.measured[-1].counts.size:,} cells")
        return gained, self.measured[-1].counts.size / float(spend)

    def _eligible(self, spend: float, number: int) -> Integers:
        """The candidates that keep cliques small; in the first rounds those by class, where noise allows."""
        fits = np.array([self.network.entropy.tree_with(pair).largest <= MOST_CLIQUE for pair in self.pairs])
        offered = self.offered & fits[self.every[:, 0]]
        classes = self.network.classes
        clear = SMALL * classes / spend <= self.division.size / 4
        first = {"counts": 0, "balanced": CLASS_FIRST, "classification": LIMIT_ROUNDS}[self.method.purpose]
        if classes > 1 and number <= first and clear:
            by_class = offered & (self.every[:, 3] == 1)
            offered = by_class if by_class.any() else offered
        return np.flatnonzero(offered if offered.any() else self.offered)

    def _choose(self, candidates: Integers, choosing: Fraction, spend: float, number: int) -> int:
        expected = self.network.expected(self.pairs)
        steps = [_steps(expected[pair].reshape(-1, self.network.classes)) for pair in self.pairs]
        charges = _steps(self._cells(candidates) / spend)
        misfits = Misfits(self.tally, self.ladders, candidates, steps, charges)
        return self.meter.select_marginal(misfits, choosing, f"choice {number}", self.method.selection)


def _steps(numbers: Floats) -> Integers:
    """Round numbers to whole steps of a misfit."""
    return np.asarray(np.rint(np.clip(numbers * UNIT.denominator, 0, MOST / 2)), np.int64)
