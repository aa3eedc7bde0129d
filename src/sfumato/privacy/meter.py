"""The only door to the data: a method asks, the meter writes the debit, then looks, then answers with noise.

The epsilon that a place is charged is the epsilon that scales its noise: it is one number. The debit is by how much a
round raises the most that any record was charged or, where a table is about persons of whom at most m records count, m
times that (docs/privacy.md, Persons). True counts and scores stay inside, also when something fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Protocol

import numpy as np

from sfumato.arrays import Integers, frozen, read_only
from sfumato.errors import BLAME, BudgetError, CountError, PrivacyError, guarded
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import FINEST_PART, GRAIN, Debit, grains_of
from sfumato.privacy.choices import Choices, score_choices
from sfumato.privacy.families import FAMILY_SCORES, Families
from sfumato.privacy.measurements import Measurement, Noisy, Question
from sfumato.privacy.mechanisms import CHOOSERS, Mechanisms
from sfumato.privacy.misfits import SENSITIVITY, SIDES, UNIT, Misfits
from sfumato.privacy.scores import SCORES, Score, Selection, sides
from sfumato.privacy.selection import Scored
from sfumato.privacy.shapes import SHAPES, Shape
from sfumato.privacy.tally import Cells, Contrasts, CountEngine, Counts, Domain, Tally, leaves_of

Spend = Fraction | Integers
"""What a round costs: one epsilon for everyone who is asked, or grains for each place (or group) of a tree."""


@dataclass(frozen=True, eq=False)
class Charges:
    """What everyone has paid and, once a tree was asked about, how many grains more each of its ends has paid.

    A round that asks some ends of a tree charges the records on those ends and nobody else (parallel composition);
    rounds that meet the same record add up (sequential composition). So what a record has paid is the sum along its
    path. Which rounds are asked, where and at what price depends on earlier answers only, hence between neighbouring
    tables the probability of a sequence of answers changes by at most exp(what the path of their one different record
    has paid): the most that any record has paid is what the publication has cost.
    """

    common: Fraction = Fraction(0)
    """what everyone has paid"""
    tree: Tree | None = None
    grains: Integers | None = None
    """by node of the tree; those of inner nodes do not matter"""

    @property
    def most(self) -> Fraction:
        """The most that any record has paid."""
        if self.tree is None or self.grains is None:
            return self.common
        return self.common + int(self.grains[self.tree.ends].max()) * GRAIN

    def after_everyone(self, spend: Fraction) -> Charges:
        """The charges after a round that asks everyone."""
        return Charges(self.common + spend, self.tree, self.grains)

    def after_places(self, tally: Tally, places: Integers, spends: Integers) -> Charges:
        """The charges after a round in which some places of a tree pay grains: `spends[i]` in `places[i]`."""
        known = self.grown_to(tally)
        assert known.grains is not None
        assert tally.ends_asked is not None
        grains = known.grains.copy()
        grains[tally.ends_asked[places]] += spends
        return Charges(known.common, known.tree, grains)

    def rest(self, tally: Tally, epsilon: Fraction) -> Integers:
        """How many grains of epsilon the places of a tree have left."""
        known = self.grown_to(tally)
        assert known.grains is not None
        assert tally.ends_asked is not None
        return np.asarray((epsilon - known.common) // GRAIN - known.grains[tally.ends_asked])

    def grown_to(self, tally: Tally) -> Charges:
        """The charges on the tally's tree: new nodes have paid what their parents had.

        If it does not refine the known tree, everyone is taken to have paid the most.
        """
        tree = tally.partition
        assert isinstance(tree, Tree)
        if self.tree is tree:
            return self
        if self.tree is None or self.grains is None or not tree.refines(self.tree.stage):
            return Charges(self.most, tree, np.zeros(len(tree), np.int64))
        grains = self.grains
        for stage in reversed(tree.stages_since(self.tree.stage)):
            grains = np.concatenate((grains, grains[tree.parents[len(grains) : stage.nodes]]))
        return Charges(self.common, tree, grains)


@dataclass(frozen=True, eq=False)
class Price:
    """What a round will cost: the charges after it, and what each place pays, as multiples of a unit."""

    charges: Charges
    unit: Fraction
    multiples: Integers

    @cached_property
    def rates(self) -> tuple[tuple[Fraction, ...], Integers]:
        """The different amounts, and which one each place pays."""
        different, index = np.unique(self.multiples, return_inverse=True)
        return tuple(self.unit * int(multiple) for multiple in different), read_only(index)

    def in_words(self, records: int) -> str:
        """What a debit says where places pay different amounts, for so many records; else nothing."""
        amounts, _ = self.rates
        if len(amounts) <= 1:
            return ""
        return f", epsilon {float(records * amounts[0]):.4g} to {float(records * amounts[-1]):.4g} by place"


class Payer(Protocol):
    """Where debits are written: when `pay` returns, the debit is durable."""

    @property
    def epsilon(self) -> Fraction:
        """The most that may be paid in all."""

    def pay(self, debit: Debit) -> None:
        """Write a debit, or refuse."""


class Meter:
    """Answers questions at a price. Nothing is free, not even how many rows there are."""

    def __init__(
        self,
        engine: CountEngine,
        payer: Payer,
        mechanisms: Mechanisms,
        domain: Domain,
        watch: Callable[[Debit], None] | None = None,
        refuse_unreadable: Callable[[Question], None] | None = None,
        records: int = 1,
    ) -> None:
        """Stand between a method and an engine on a table of this domain, in which a person has at most `records`.

        `watch` is told of each debit, to show progress. `refuse_unreadable` refuses a question that the release's model
        could not read, before it is paid for.
        """
        self._engine = engine
        self._payer = payer
        self._mechanisms = mechanisms
        self._domain = domain
        self._watch = watch
        self._refuse_unreadable = refuse_unreadable
        self._records = records
        self._debits: list[Debit] = []
        self._measured: list[Measurement] = []
        self._charges = Charges()
        self._last: tuple[Tally, Counts] | None = None
        self._busy = Lock()

    @property
    def debits(self) -> tuple[Debit, ...]:
        """What was paid so far."""
        return tuple(self._debits)

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """What was measured so far."""
        return tuple(self._measured)

    @property
    def left(self) -> Fraction:
        """What every record may still be charged: it depends on which questions were asked, never on the data."""
        return self._epsilon - self._charges.most

    @property
    def _epsilon(self) -> Fraction:
        """The most that a record may be charged in all: with all of its person's, no more than may be paid."""
        return self._payer.epsilon / self._records

    def measure(self, cells: Cells | Contrasts, spend: Spend, label: str) -> Measurement:
        """Count disjoint cells, or sum leaves with whole weights, with noise.

        One record is in at most one cell, so the counts of neighbouring tables differ by 1 in all: noise of rate
        `spend` makes the answer spend-private. Contrasts differ by their reach in all, so their rate is divided by it.
        """
        if type(cells) not in (Cells, Contrasts):
            raise PrivacyError("what is measured must be our own cells or contrasts", BLAME)
        with self._alone():
            tally, question = cells.tally, cells.question
            if self._refuse_unreadable:
                self._refuse_unreadable(question)
            price = self._price(tally, np.arange(tally.places), spend, label)
            mechanism = f"discrete Laplace{price.in_words(self._records)}"
            self._pay(price, Debit(label, mechanism, Fraction(0), Fraction(cells.reach), math.prod(cells.shape)))
            found = Measurement(label, question, guarded(lambda: self._noisy(cells, price), _unanswered))
            self._measured.append(found)
            return found

    def measure_with_rest(self, cells: Cells, label: str) -> Measurement:
        """Count disjoint cells of a tree; each end pays all that its records have left."""
        return self.measure(cells, self.rest(cells.tally), label)

    def rest(self, tally: Tally) -> Integers:
        """How many grains the places of a tree have left."""
        return self._charges.rest(tally, self._epsilon)

    def select(self, choices: Choices, score: Score, spend: Spend, label: str, selection: Selection) -> Candidates:
        """Choose one candidate per group; nothing else leaves.

        The proof is in `selection.permute_and_flip`.
        """
        if type(score) not in SCORES.values() or selection not in CHOOSERS:
            raise PrivacyError("a choice must be by one of our scores and mechanisms", BLAME)
        if type(choices) is not Choices or type(choices.candidates) is not Candidates:
            raise PrivacyError("what is chosen from must be our own choices and candidates", BLAME)
        if not score.fits(choices.tally.places, choices.tally.classes):
            raise PrivacyError("a score must fit the places and classes of the tally", BLAME)
        with self._alone():
            price = self._price(choices.tally, choices.places, spend, label)
            sensitivity = score.sensitivity(choices.tally.classes)
            mechanism = f"{selection} ({score.name}){price.in_words(self._records)}"
            self._pay(price, Debit(label, mechanism, Fraction(0), sensitivity, choices.number))
            rate = price.unit * score.unit / (sides(type(score), selection) * sensitivity)
            return guarded(lambda: self._chosen(choices, score, price, selection, rate), _unanswered)

    def select_marginal(self, candidates: Misfits, spend: Fraction, label: str, selection: Selection) -> int:
        """Choose the marginal that is told worst by what is expected of it; only its number leaves.

        The derivation is in `misfits`, the proof of the choice in `selection.permute_and_flip`.
        """
        if type(candidates) is not Misfits or selection not in CHOOSERS:
            raise PrivacyError("a marginal must be chosen from our own candidates, by one of our mechanisms", BLAME)
        with self._alone():
            tally = candidates.tally
            price = self._price(tally, np.arange(tally.places), spend, label)
            self._pay(price, Debit(label, f"{selection} (misfit)", Fraction(0), SENSITIVITY, len(candidates)))
            rate = price.unit * UNIT / (SIDES * SENSITIVITY)
            return guarded(lambda: self._worst(candidates, selection, rate), _unanswered)

    def select_shape(self, shape: Shape, spend: Fraction, label: str, selection: Selection) -> Integers:
        """Choose one candidate in each of a shape's groups, by the leaves of one attribute; nothing else leaves.

        A record lies in one leaf, and so in one group at most: all choices are paid with one debit. No shape is
        monotone, so the gap between two scores changes by two sensitivities at most.
        """
        if type(shape) not in SHAPES.values() or selection not in CHOOSERS:
            raise PrivacyError("a choice must be by one of our shapes and mechanisms", BLAME)
        with self._alone():
            price = self._price(shape.tally, np.arange(1), spend, label)
            rate = price.unit * shape.unit / (2 * shape.sensitivity)
            self._pay(
                price, Debit(label, f"{selection} ({shape.name})", Fraction(0), shape.sensitivity, shape.candidates)
            )

            def chosen() -> Integers:
                scored = shape.scored(leaves_of(self._look(shape.tally), shape.attribute))
                return self._mechanisms.choose(selection, scored, rate)

            return guarded(chosen, _unanswered)

    def select_family(self, candidates: Families, spend: Fraction, label: str, selection: Selection) -> int:
        """Choose the child and the parents that hang together most; only their number leaves.

        The derivations are in `families`, the proof of the choice in `selection.permute_and_flip`.
        """
        if type(candidates) is not Families or selection not in CHOOSERS:
            raise PrivacyError("a family must be chosen from our own candidates, by one of our mechanisms", BLAME)
        with self._alone():
            tally, score = candidates.tally, FAMILY_SCORES[candidates.score]
            price = self._price(tally, np.arange(tally.places), spend, label)
            self._pay(
                price, Debit(label, f"{selection} ({score.name})", Fraction(0), score.sensitivity, len(candidates))
            )
            rate = price.unit * score.unit / (SIDES * score.sensitivity)
            return guarded(lambda: self._worst(candidates, selection, rate), _unanswered)

    def lots(self, count: int) -> Integers:
        """Draw large uniform numbers, for what is decided by lot. They do not depend on the data."""
        with self._alone():
            return self._mechanisms.lots(count)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a round while another is under way, in another thread or inside it.

        Both would be priced by what was paid before either, and draw from one stream.
        """
        if not self._busy.acquire(blocking=False):
            raise PrivacyError("rounds must be asked one after the other", BLAME)
        try:
            yield
        finally:
            self._busy.release()

    def _price(self, tally: Tally, places: Integers, spend: Spend, label: str) -> Price:
        """What the places asked will pay: on a tree whole grains each, on a grid one amount for everyone.

        With a denominator up to 2^31 in a spend and 2^17 units in a score's sensitivity, a rate's denominator stays
        below 2^49, and what the samplers multiply it with (below 2^13, beyond any run of luck) keeps to 62 bits.
        """
        if type(tally) is not Tally or type(tally.partition) not in (Grid, Tree):
            raise PrivacyError("a question must be about our own grids and trees", BLAME)
        if type(spend) not in (Fraction, np.ndarray) or (isinstance(spend, np.ndarray) and spend.dtype.kind != "i"):
            raise PrivacyError("a price must be a fraction, or an array of whole grains", BLAME)
        if type(label) is not str or not label:
            raise PrivacyError("a round must have a name", BLAME)
        if tally.domain != self._domain:
            raise PrivacyError("a question must be about the table's own attributes and classes", BLAME)
        if not isinstance(tally.partition, Tree):
            if not isinstance(spend, Fraction):
                raise PrivacyError("only the ends of a tree may pay different amounts", BLAME)
            if not (0 < spend <= self.left and spend.denominator <= FINEST_PART):
                raise self._unpayable(label)
            return Price(self._charges.after_everyone(spend), spend, np.ones(len(places), np.int64))
        grains = np.full(len(places), grains_of(spend)) if isinstance(spend, Fraction) else frozen(spend)
        if grains.shape != places.shape:
            raise PrivacyError("every place that is asked must have a price", BLAME)
        if not ((grains > 0) & (grains <= self.rest(tally)[places])).all():
            raise self._unpayable(label)
        return Price(self._charges.after_places(tally, places, grains), GRAIN, grains)

    def _unpayable(self, label: str) -> BudgetError:
        return BudgetError(
            f"round {label} must cost more than 0 and at most the {self.left} left",
            f"This round looked at nothing. {BLAME}",
        )

    def _pay(self, price: Price, debit: Debit) -> None:
        """Debit by how much a round raises the most that any person has paid; refuse more than there is.

        That is what a record has paid, times the records of a person, who move scores by as many times as much.
        """
        if price.charges.most > self._epsilon:
            raise self._unpayable(debit.label)
        raised = replace(
            debit,
            epsilon=self._records * (price.charges.most - self._charges.most),
            sensitivity=self._records * debit.sensitivity,
        )
        self._payer.pay(raised)
        self._charges = price.charges
        self._debits.append(raised)
        if self._watch:
            self._watch(raised)

    def _noisy(self, cells: Cells | Contrasts, price: Price) -> Noisy:
        """The counts that were paid for, with noise."""
        rates, rate_of = price.rates
        rates = tuple(rate / cells.reach for rate in rates)
        counts = cells.read(self._look(cells.tally))
        if cells.question.nodes is not None:
            return Noisy(read_only(self._mechanisms.add_noise(counts, rates, rate_of)), rates, rate_of)
        alike = np.zeros(len(counts), np.int64)
        noisy = self._mechanisms.add_noise(counts, rates, alike).reshape(cells.question.shape)
        return Noisy.even(read_only(noisy), *rates)

    def _chosen(self, choices: Choices, score: Score, price: Price, selection: Selection, rate: Fraction) -> Candidates:
        """The candidates that were paid for, chosen by true scores."""
        scored = score_choices(choices, self._look(choices.tally), score, price.multiples)
        return choices.chosen(self._mechanisms.choose(selection, scored, rate))

    def _worst(self, candidates: Misfits | Families, selection: Selection, rate: Fraction) -> int:
        """The marginal that was paid for, chosen by true scores."""
        scores = candidates.scores(self._look(candidates.tally))
        return int(self._mechanisms.choose(selection, Scored.alone(scores, np.array([0, len(scores)])), rate)[0])

    def _look(self, tally: Tally) -> Counts:
        """The engine's counts, kept until another tally is asked: many rounds on one tally cost one pass."""
        if self._last is None or self._last[0] is not tally:
            self._last = (tally, self._engine.tally(tally))
        return self._last[1]


def _unanswered(error: BaseException) -> CountError:
    """The error for a round that failed, in words that are the same whatever was seen."""
    if isinstance(error, MemoryError):
        return CountError("the table must fit in memory", "Use a machine with more of it.")
    return CountError(
        "a round that was paid for must have an answer, and has none", "Report this, without the data: it is a mistake."
    )
