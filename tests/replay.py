"""Record every mechanism's input and output on one table, replay the outputs on a neighbour, and compare.

If control flow, shapes, labels and spending are the same and the true inputs are no further apart than declared, then
for every sequence of outputs the two tables' probabilities differ by at most the factor that the debits say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

from handmade import assert_same_draft
from sfumato.errors import SfumatoError
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.models import model_type
from sfumato.privacy.budget import Debit
from sfumato.privacy.families import FAMILY_SCORES
from sfumato.privacy.measurements import Draft
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream
from sfumato.privacy.scores import SCORES
from sfumato.privacy.selection import Scored
from sfumato.privacy.tally import CountEngine, Domain
from sfumato.schema.schema import Schema


@dataclass
class Purse:
    """A payer without a ledger."""

    epsilon: Fraction
    debits: list[Debit] = field(default_factory=list)

    def pay(self, debit: Debit) -> None:
        self.debits.append(debit)


@dataclass
class Call:
    """One mechanism at work: its true inputs, what it answered, and the public facts that shape it."""

    kind: str
    rates: tuple[Fraction, ...]
    shape: tuple
    given: np.ndarray
    answer: np.ndarray


def _noise(counts: np.ndarray, rates, rate_of: np.ndarray, answer: np.ndarray) -> Call:
    return Call("noise", tuple(rates), (counts.shape, tuple(rate_of.tolist())), counts.copy(), answer)


def _choice(selection: str, scored: Scored, rate: Fraction, answer: np.ndarray) -> Call:
    """Record a choice as if every candidate stood alone: how they are bundled is the table's, and stays inside."""
    shape = (tuple(scored.group_ends.tolist()), tuple(scored.stakes.tolist()))
    return Call(selection, (rate,), shape, np.repeat(scored.scores, scored.copies), answer)


class Recorder:
    """The real mechanisms, with a memory."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._exact = Exact(SeededStream(seed))
        self.calls: list[Call] = []
        self.lots_drawn: list[np.ndarray] = []

    def add_noise(self, counts, rates, rate_of):
        answer = self._exact.add_noise(counts, rates, rate_of)
        self.calls.append(_noise(counts, rates, rate_of, answer))
        return answer

    def choose(self, selection, scored, rate):
        answer = self._exact.choose(selection, scored, rate)
        self.calls.append(_choice(selection, scored, rate, answer))
        return answer

    def lots(self, count):
        self.lots_drawn.append(self._exact.lots(count))
        return self.lots_drawn[-1]


class OtherwiseError(SfumatoError, AssertionError):
    """The neighbour behaves otherwise: said in a way that the meter, which hides what it does not know, lets pass."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "Compare the two runs.")


class Replayer:
    """Gives the recorded answers and notes what it was given instead."""

    secure = False

    def __init__(self, recorder: Recorder) -> None:
        self._waiting, self._lots = list(recorder.calls), list(recorder.lots_drawn)
        self.calls: list[Call] = []

    def _next(self, asked: Call) -> np.ndarray:
        if not self._waiting:
            raise OtherwiseError("the neighbour asks more rounds")
        recorded = self._waiting.pop(0)
        if (asked.kind, asked.rates, asked.shape) != (recorded.kind, recorded.rates, recorded.shape):
            raise OtherwiseError("the neighbour asks another question")
        asked.answer = recorded.answer
        self.calls.append(asked)
        return recorded.answer

    def add_noise(self, counts, rates, rate_of):
        return self._next(_noise(counts, rates, rate_of, np.empty(0)))

    def choose(self, selection, scored, rate):
        return self._next(_choice(selection, scored, rate, np.empty(0)))

    def lots(self, count):
        drawn = self._lots.pop(0)
        assert len(drawn) == count, "the neighbour draws other lots"
        return drawn

    def finish(self) -> None:
        assert not self._waiting, "the neighbour asks fewer rounds"


def domain_of(schema: Schema) -> Domain:
    return Domain(schema.shape, len(schema.classes))


def run(method: Method, schema: Schema, engine: CountEngine, epsilon: Fraction, mechanisms) -> tuple[Draft, Purse]:
    """Publish behind a meter as an account makes it, which refuses what the release's model could not read."""
    purse, reader = Purse(epsilon), model_type(method.model).reader()
    meter = Meter(engine, purse, mechanisms, domain_of(schema), None, reader.refuse)
    return method.publish(meter, schema, method.plan(schema, epsilon)), purse


def compare(
    method: Method, schema: Schema, engine: CountEngine, neighbour: CountEngine, *, epsilon: Fraction, seed: int
) -> None:
    """Fail unless the neighbour behaves alike and what its one record costs is what the debits say."""
    recorder = Recorder(seed)
    draft, purse = run(method, schema, engine, epsilon, recorder)
    replayer = Replayer(recorder)
    again, other = run(method, schema, neighbour, epsilon, replayer)
    replayer.finish()
    assert purse.debits == other.debits, "the neighbour pays otherwise"
    assert sum((debit.epsilon for debit in purse.debits), Fraction(0)) <= epsilon
    assert (draft.steps, draft.notes) == (again.steps, again.notes), "the neighbour tells otherwise"
    assert_same_draft(draft, again)
    assert len(recorder.calls) == len(purse.debits), "a round has no debit of its own"
    on_grids = {one.label for one in draft.measurements if one.question.nodes is None}
    lost = paid = Fraction(0)
    for debit, left, right in zip(purse.debits, recorder.calls, replayer.calls, strict=True):
        loss = loss_of(debit, left, right)
        lost, paid = lost + loss, paid + debit.epsilon
        assert lost <= paid, f"{debit.label}: rounds cost more than their debits"
        if isinstance(draft.structure, Grid) or debit.label in on_grids:
            assert loss <= debit.epsilon, f"{debit.label}: a round costs more than its debit"


def loss_of(debit: Debit, left: Call, right: Call) -> Fraction:
    """Give the most that the log probability of the answer can differ between the two inputs.

    Noise of rate r on counts that differ by m in all: r m. A choice of rate r among scores that differ by at most m: 2
    r m, or r m if all moved in one direction; only in the one group that the record belongs to.
    """
    moved = right.given - left.given
    if left.kind == "noise":
        rates = [left.rates[index] for index in left.shape[1]]
        return sum((rate * int(np.abs(row).sum()) for rate, row in zip(rates, moved, strict=True)), Fraction(0))
    score = {**SCORES, **FAMILY_SCORES}[debit.mechanism.split("(")[1].split(")")[0]]
    assert np.abs(moved).max() <= debit.sensitivity / score.unit, f"{debit.label}: scores move too far"
    ends, stakes = left.shape
    groups = [moved[lo:hi] for lo, hi in pairwise(ends)]
    touched = [index for index, group in enumerate(groups) if group.any()]
    assert len(touched) <= 1, f"{debit.label}: one record in two groups"
    if not touched:
        return Fraction(0)
    group = groups[touched[0]]
    one_direction = left.kind == "permute-and-flip" and ((group >= 0).all() or (group <= 0).all())
    assert one_direction or not score.monotone or left.kind == "exponential", f"{debit.label}: not monotone"
    declared = debit.sensitivity / score.unit
    sided = 1 if score.monotone and left.kind == "permute-and-flip" else 2
    return left.rates[0] * stakes[touched[0]] * sided * declared
