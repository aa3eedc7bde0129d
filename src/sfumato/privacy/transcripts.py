"""Transcripts: what every mechanism was given and what it answered, and the same answers given again on another table.

A `Recorder` stands in the meter's place of the mechanisms and remembers. A `Replayer` gives the remembered answers
while the method runs on a neighbour, refuses any other question, and remembers what it was given instead. From both,
the exact loss of a whole publication follows (`audit.exact`). They work on whatever goes through `Mechanisms`, so a new
method or a new kind of choice needs nothing of its own. Transcripts hold true counts and scores: nothing of them is
ever written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import SfumatoError
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.noise import SeededStream, uniform_below, uniform_below_each
from sfumato.privacy.scores import Selection
from sfumato.privacy.selection import Scored

NOISE = "noise"
"""The kind of a call that adds noise; others have the name of their selection."""


class OtherwiseError(SfumatoError, AssertionError):
    """The neighbour behaves otherwise: said in a way that the meter, which hides what it does not know, lets pass."""

    def __init__(self, problem: str) -> None:
        """Say how it differs."""
        super().__init__(problem, "Compare the two runs.")


@dataclass
class Call:
    """One mechanism at work: its true inputs, what it answered, and the public facts that shape it."""

    kind: str
    rates: tuple[Fraction, ...]
    shape: tuple[Any, ...]
    """of noise: the counts' shape and the rate of each row; of a choice: where groups end, and their stakes"""
    given: Integers = field(repr=False)
    """counts, or the score of every candidate"""
    answer: Integers = field(repr=False)


def noise_call(counts: Integers, rates: Sequence[Fraction], rate_of: Integers, answer: Integers) -> Call:
    """Note counts that got noise."""
    return Call(NOISE, tuple(rates), (counts.shape, tuple(rate_of.tolist())), counts.copy(), answer)


def choice_call(selection: str, scored: Scored, rate: Fraction, answer: Integers) -> Call:
    """Note a choice as if every candidate stood alone: how they are bundled is the table's, and stays inside."""
    shape = (tuple(scored.group_ends.tolist()), tuple(scored.stakes.tolist()))
    return Call(selection, (rate,), shape, np.repeat(scored.scores, scored.copies), answer)


class Recorder:
    """The real mechanisms on a seed, with a memory."""

    secure = False

    def __init__(self, unsafe_seed: int) -> None:
        """Begin a transcript."""
        self._stream = SeededStream(unsafe_seed)
        self._exact = Exact(self._stream)
        self.calls: list[Call] = []
        self.lots_drawn: list[Integers] = []

    def add_noise(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        """Add noise, and note it."""
        answer = self._noisy(counts, rates, rate_of)
        self.calls.append(noise_call(counts, rates, rate_of, answer))
        return answer

    def choose(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        """Choose, and note it."""
        answer = self._chosen(selection, scored, rate)
        self.calls.append(choice_call(selection, scored, rate, answer))
        return answer

    def lots(self, count: int) -> Integers:
        """Draw lots, and note them."""
        self.lots_drawn.append(self._exact.lots(count))
        return self.lots_drawn[-1]

    def _noisy(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        return self._exact.add_noise(counts, rates, rate_of)

    def _chosen(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        return self._exact.choose(selection, scored, rate)


class DaringRecorder(Recorder):
    """Answers that can happen but seldom do: all noise on one side, choices of the worst candidate, or by lot.

    A publication must keep to what it paid along *every* sequence of answers, so the improbable ones, in which all
    losses add up, are worth more than those that are met.
    """

    def __init__(self, unsafe_seed: int) -> None:
        """Choose a side."""
        super().__init__(unsafe_seed)
        side, worst = uniform_below(self._stream, 2, 2).tolist()
        self._side, self._worst = 1 - 2 * side, bool(worst)

    def _noisy(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        noise = np.abs(self._exact.add_noise(np.zeros_like(counts), rates, rate_of))
        return np.asarray(counts + self._side * noise)

    def _chosen(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:  # noqa: ARG002
        if not self._worst:
            return uniform_below_each(self._stream, np.diff(scored.group_ends))
        each, ends = np.repeat(scored.scores, scored.copies), scored.group_ends
        return np.array([each[start:end].argmin() for start, end in pairwise(ends.tolist())], np.int64)


class Replayer:
    """Gives the recorded answers and notes what it was given instead."""

    secure = False

    def __init__(self, recorder: Recorder) -> None:
        """Begin at the first answer."""
        self._waiting, self._lots = list(recorder.calls), list(recorder.lots_drawn)
        self.calls: list[Call] = []

    def add_noise(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        """Give the recorded counts."""
        return self._next(noise_call(counts, rates, rate_of, np.empty(0, np.int64)))

    def choose(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        """Give the recorded choice."""
        return self._next(choice_call(selection, scored, rate, np.empty(0, np.int64)))

    def lots(self, count: int) -> Integers:
        """Give the recorded lots."""
        if not self._lots or len(self._lots[0]) != count:
            raise OtherwiseError("the neighbour draws other lots")
        return self._lots.pop(0)

    def finish(self) -> None:
        """Refuse a neighbour that asked fewer rounds."""
        if self._waiting:
            raise OtherwiseError("the neighbour asks fewer rounds")

    def _next(self, asked: Call) -> Integers:
        if not self._waiting:
            raise OtherwiseError("the neighbour asks more rounds")
        recorded = self._waiting.pop(0)
        if (asked.kind, asked.rates, asked.shape) != (recorded.kind, recorded.rates, recorded.shape):
            raise OtherwiseError("the neighbour asks another question")
        asked.answer = recorded.answer
        self.calls.append(asked)
        return recorded.answer
