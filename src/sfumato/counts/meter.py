"""The only door to the data: a method asks, the meter writes the debit, then looks, then answers with noise.

There is one number: the epsilon that is debited is the epsilon that scales the noise. True counts and scores stay
inside.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.choices import Choices
from sfumato.counts.tally import BLAME, Cells, CountEngine, Counts, Tally
from sfumato.errors import BudgetError, PrivacyError
from sfumato.privacy.budget import FINEST_PART, Debit
from sfumato.privacy.mechanisms import CHOOSERS, Mechanisms
from sfumato.privacy.noisy import Noisy
from sfumato.privacy.scores import SCORES, Score, Selection

Integers = NDArray[np.int64]


class Payer(Protocol):
    """Where debits go: when `pay` returns, the debit is durable."""

    @property
    def epsilon(self) -> Fraction:
        """What may be paid in all."""

    def pay(self, debit: Debit) -> None:
        """Write a debit, or refuse."""


class Meter:
    """Answers questions at a price. It offers no way to learn how many rows there are, or anything else for free."""

    def __init__(
        self,
        engine: CountEngine,
        payer: Payer,
        mechanisms: Mechanisms,
        watch: Callable[[Debit], None] | None = None,
    ) -> None:
        """Stand between a method and an engine; `watch` hears of each debit, for progress."""
        self._engine = engine
        self._payer = payer
        self._mechanisms = mechanisms
        self._watch = watch
        self._debits: list[Debit] = []
        self._last: tuple[Tally, Counts] | None = None

    @property
    def debits(self) -> tuple[Debit, ...]:
        """What was paid so far."""
        return tuple(self._debits)

    @property
    def left(self) -> Fraction:
        """What may still be spent: it depends on which questions were asked, never on the data behind them."""
        return self._payer.epsilon - sum((debit.epsilon for debit in self._debits), Fraction(0))

    def measure(self, cells: Cells, spend: Fraction, label: str) -> Noisy:
        """Count disjoint cells with noise.

        One record is in one cell, so the counts of neighbouring tables differ by 1 in all: noise of rate `spend`
        makes the answer spend-private.
        """
        regions, across = cells.shape
        self._pay(Debit(label, "discrete Laplace", spend, Fraction(1), regions * across))
        counts = cells.read(self._look(cells.tally))
        return Noisy(self._mechanisms.add_noise(counts, spend), spend)

    def select(self, choices: Choices, score: Score, spend: Fraction, label: str, selection: Selection) -> Integers:
        """Choose one candidate per group; only the indices leave.

        The proof is in `selection.permute_and_flip`. The factor 2 falls for monotone scores, but the exponential
        mechanism is here to do what the papers do and keeps it.
        """
        if type(score) not in SCORES.values() or selection not in CHOOSERS:
            raise PrivacyError("a choice must be by one of our scores and mechanisms", BLAME)
        sensitivity = score.sensitivity(choices.tally.classes)
        sided = 1 if score.monotone and selection == "permute-and-flip" else 2
        rate = spend * score.unit / (sided * sensitivity)
        self._pay(Debit(label, f"{selection} ({score.name})", spend, sensitivity, int(choices.group_starts[-1])))
        scores = score.of(choices.child_counts(self._look(choices.tally)), choices.child_starts)
        return self._mechanisms.choose(selection, scores, choices.group_starts, rate)

    def _pay(self, debit: Debit) -> None:
        """Write the debit, unless it is more than is left or too fine for exact sampling.

        With a denominator up to 2^31 in the epsilon and 2^17 units in a score's sensitivity, a rate's denominator stays
        below 2^49, and what the samplers multiply it with (below 2^13, beyond any run of luck) keeps to 62 bits.
        """
        if not (0 < debit.epsilon <= self.left and debit.epsilon.denominator <= FINEST_PART):
            raise BudgetError(
                f"round {debit.label} (epsilon {debit.epsilon}) must cost more than 0 and at most the {self.left} left",
                f"This round looked at nothing. {BLAME}",
            )
        self._payer.pay(debit)
        self._debits.append(debit)
        if self._watch:
            self._watch(debit)

    def _look(self, tally: Tally) -> Counts:
        """Let the engine count, unless the last thing it counted is this: many rounds on one tally cost one pass."""
        if self._last is None or self._last[0] != tally:
            self._last = (tally, self._engine.tally(tally))
        return self._last[1]
