"""Record every mechanism's input and output on one table, replay the outputs on a neighbour, and compare.

If control flow, shapes, labels and spending are the same and the true inputs are no further apart than declared, then
for every sequence of outputs the two tables' probabilities differ by at most the factor that the debits say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sfumato.counts.meter import Meter
from sfumato.counts.tally import CountEngine
from sfumato.methods.base import Draft, Method
from sfumato.privacy.budget import Debit
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.scores import SCORES
from sfumato.privacy.stream import SeededStream
from sfumato.schema import Schema


@dataclass
class Purse:
    """A payer without a ledger."""

    epsilon: Fraction
    debits: list[Debit] = field(default_factory=list)

    def pay(self, debit: Debit) -> None:
        self.debits.append(debit)


@dataclass
class Call:
    """One mechanism at work."""

    kind: str
    rate: Fraction
    starts: list[int]
    given: np.ndarray
    answer: np.ndarray


class Recorder:
    """The real mechanisms, with a memory."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._exact = Exact(SeededStream(seed))
        self.calls: list[Call] = []

    def add_noise(self, counts, rate):
        answer = self._exact.add_noise(counts, rate)
        self.calls.append(Call("noise", rate, [], counts.copy(), answer))
        return answer

    def choose(self, selection, scores, starts, rate):
        answer = self._exact.choose(selection, scores, starts, rate)
        self.calls.append(Call(selection, rate, starts.tolist(), scores.copy(), answer))
        return answer


class Replayer:
    """Gives the recorded answers and notes what it was given instead."""

    secure = False

    def __init__(self, calls: list[Call]) -> None:
        self._waiting = list(calls)
        self.calls: list[Call] = []

    def _next(self, kind: str, rate: Fraction, starts: list[int], given: np.ndarray) -> np.ndarray:
        assert self._waiting, "the neighbour asks more rounds"
        recorded = self._waiting.pop(0)
        assert (kind, rate, starts, given.shape) == (
            recorded.kind,
            recorded.rate,
            recorded.starts,
            recorded.given.shape,
        ), "the neighbour asks another question"
        self.calls.append(Call(kind, rate, starts, given.copy(), recorded.answer))
        return recorded.answer

    def add_noise(self, counts, rate):
        return self._next("noise", rate, [], counts)

    def choose(self, selection, scores, starts, rate):
        return self._next(selection, rate, starts.tolist(), scores)

    def finish(self) -> None:
        assert not self._waiting, "the neighbour asks fewer rounds"


def run(method: Method, schema: Schema, engine: CountEngine, epsilon: Fraction, mechanisms) -> tuple[Draft, Purse]:
    purse = Purse(epsilon)
    draft = method.publish(Meter(engine, purse, mechanisms), schema, method.plan(schema, epsilon))
    return draft, purse


def compare(
    method: Method, schema: Schema, engine: CountEngine, neighbour: CountEngine, *, epsilon: Fraction, seed: int
) -> None:
    """Fail unless the neighbour behaves alike and its inputs are within the declared sensitivities."""
    recorder = Recorder(seed)
    draft, purse = run(method, schema, engine, epsilon, recorder)
    replayer = Replayer(recorder.calls)
    again, other = run(method, schema, neighbour, epsilon, replayer)
    replayer.finish()
    assert purse.debits == other.debits, "the neighbour pays otherwise"
    assert sum((debit.epsilon for debit in purse.debits), Fraction(0)) <= epsilon
    assert (draft.partition, draft.steps) == (again.partition, again.steps)
    assert np.array_equal(draft.counts.counts, again.counts.counts)
    assert len(recorder.calls) == len(purse.debits)
    for debit, left, right in zip(purse.debits, recorder.calls, replayer.calls, strict=True):
        within_declaration(debit, left, right)


def within_declaration(debit: Debit, left: Call, right: Call) -> None:
    """Fail if the two inputs are further apart than the debit pays for."""
    moved = right.given - left.given
    if left.kind == "noise":
        assert np.abs(moved).sum() * left.rate <= debit.epsilon, f"{debit.label}: counts move too far"
        return
    score = SCORES[debit.mechanism.split("(")[1].rstrip(")")]()
    assert np.abs(moved).max() <= debit.sensitivity / score.unit, f"{debit.label}: scores move too far"
    one_direction = score.monotone and ((moved >= 0).all() or (moved <= 0).all())
    sided = 1 if one_direction else 2
    assert left.rate * sided * debit.sensitivity <= debit.epsilon * score.unit, f"{debit.label}: rate too high"
    touched = [np.any(moved[lo:hi]) for lo, hi in zip(left.starts, left.starts[1:], strict=False)]
    assert sum(touched) <= 1, f"{debit.label}: one record in two groups"
