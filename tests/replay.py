"""Record every mechanism's input and output on one table, replay the outputs on a neighbour, and compare.

If control flow, shapes, labels and spending are the same and the true inputs are no further apart than declared, then
for every sequence of outputs the two tables' probabilities differ by at most the factor that the debits say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from handmade import assert_same_draft
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.models import model_type
from sfumato.privacy.budget import Debit
from sfumato.privacy.families import FAMILY_SCORES
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Meter
from sfumato.privacy.misfits import UNIT
from sfumato.privacy.scores import SCORES
from sfumato.privacy.shapes import SHAPES
from sfumato.privacy.tally import CountEngine, Domain
from sfumato.privacy.transcripts import Call, Recorder, Replayer
from sfumato.schema.schema import Schema


class Misfit:
    """What a step of a marginal's misfit is worth; it is not monotone."""

    unit, monotone = UNIT, False


@dataclass
class Purse:
    """A payer without a ledger."""

    epsilon: Fraction
    debits: list[Debit] = field(default_factory=list)

    def pay(self, debit: Debit) -> None:
        self.debits.append(debit)


def domain_of(schema: Schema) -> Domain:
    return Domain(schema.shape, len(schema.classes))


def run(method: Method, schema: Schema, engine: CountEngine, epsilon: Fraction, mechanisms) -> tuple[Draft, Purse]:
    """Publish behind a meter as an account makes it, which refuses what the release's model could not read."""
    purse, reader, records = Purse(epsilon), model_type(method.model).reader(), schema.rows_per_person
    meter = Meter(engine, purse, mechanisms, domain_of(schema), None, reader.refuse, records)
    return method.publish(meter, schema, method.plan(schema, epsilon / records)), purse


def compare(
    method: Method, schema: Schema, engine: CountEngine, neighbour: CountEngine, *, epsilon: Fraction, seed: int
) -> None:
    """Fail unless the neighbour behaves alike and what its one record costs is what the debits say."""
    compare_chain(method, schema, [engine, neighbour], epsilon=epsilon, seed=seed)


def compare_chain(
    method: Method, schema: Schema, engines: Sequence[CountEngine], *, epsilon: Fraction, seed: int
) -> None:
    """Record the first of some tables, each with one record more (or less) than the one before, and replay the rest.

    Fail unless all behave alike, and what the records between the first and the last cost is what the debits say.
    """
    recorder = Recorder(seed)
    draft, purse = run(method, schema, engines[0], epsilon, recorder)
    assert sum((debit.epsilon for debit in purse.debits), Fraction(0)) <= epsilon
    assert len(recorder.calls) == len(purse.debits), "a round has no debit of its own"
    calls = [recorder.calls]
    for engine in engines[1:]:
        replayer = Replayer(recorder)
        again, other = run(method, schema, engine, epsilon, replayer)
        replayer.finish()
        assert purse.debits == other.debits, "the neighbour pays otherwise"
        assert (draft.steps, draft.notes) == (again.steps, again.notes), "the neighbour tells otherwise"
        assert_same_draft(draft, again)
        calls.append(replayer.calls)
    on_grids = {one.label for one in draft.measurements if one.question.nodes is None}
    lost = paid = Fraction(0)
    for place, debit in enumerate(purse.debits):
        of_a_record = replace(debit, sensitivity=debit.sensitivity / schema.rows_per_person)
        loss = sum((loss_of(of_a_record, one[place], two[place]) for one, two in pairwise(calls)), Fraction(0))
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
    score = {**SCORES, **SHAPES, **FAMILY_SCORES, "misfit": Misfit}[debit.mechanism.split("(")[1].split(")")[0]]
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
