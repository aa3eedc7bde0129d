"""Mistakes as people make them, to plant in methods, the meter and the mechanisms: each breaks the promise.

With each one goes the method and the pair of tables on which it should show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import mutants
from replay import compare
from sfumato import RPS, DiffGen, DPCube, Laplace, PrivBayes
from sfumato.audit import PAIRS, Pair, attack
from sfumato.audit.attack import Finding
from sfumato.audit.events import SCHEMA
from sfumato.engines.local import MemoryEngine
from sfumato.geometry.grid import Grid
from sfumato.methods.dpcube import KdTree
from sfumato.methods.laplace import histogram
from sfumato.methods.method import Method
from sfumato.privacy import mechanisms
from sfumato.privacy import meter as meter_module
from sfumato.privacy.measurements import Draft, Noisy
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Balance
from sfumato.privacy.selection import Scored
from sfumato.privacy.tally import Cells, Tally


def engine_of(table: np.ndarray) -> MemoryEngine:
    """Put coded rows, the class last, behind an engine."""
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


NOBODY, ONE, LONE, MISSING, TIE, CROWD, BETWEEN = PAIRS
EVEN = Pair("the record makes jobs less even than ages", ((0, 0, 0), (0, 1, 0), (1, 0, 0)), (0, 2, 0))
FEW = Pair("the record makes a cell stand out", ((2, 3, 1), (2, 3, 1)), (2, 3, 1))


def noise_for_those_who_hold_someone(patch: pytest.MonkeyPatch) -> None:
    """Ask the mechanism about groups that hold someone, and publish the empty ones as they are."""

    def noisy(meter, cells, price):
        rates, rate_of = price.rates
        counts = cells.read(meter._look(cells.tally)).copy()
        held = counts.any(axis=1)
        counts[held] = meter._mechanisms.add_noise(counts[held], rates, rate_of[held])
        return Noisy(counts, rates, rate_of)

    patch.setattr(Meter, "_noisy", noisy)


def no_noise_on_zeros(patch: pytest.MonkeyPatch) -> None:
    """Let the mechanism itself pass over counts that are 0."""
    real = Exact.add_noise

    def add_noise(exact, counts, rates, rate_of):
        return np.where(counts == 0, 0, real(exact, counts, rates, rate_of))

    patch.setattr(Exact, "add_noise", add_noise)


def splits_end_at_the_largest_value(patch: pytest.MonkeyPatch) -> None:
    """Offer no split beyond the largest leaf that someone holds."""
    real = meter_module.score_choices

    def score(choices, counts, score, stakes):
        scored = real(choices, counts, score, stakes)
        each = np.repeat(scored.scores, scored.copies)
        for entry in np.flatnonzero(choices.candidates.is_split).tolist():
            held = counts.by_leaf[int(choices.candidates.attributes[entry])].keys
            start, end = choices.candidate_starts[entry : entry + 2]
            offset = int(held.max(initial=0)) - int(choices.candidates.lows[entry])
            each[min(start + max(offset, 1), end) : end] -= 10**6
        return Scored(each, np.ones(len(each), np.int64), choices.candidate_starts[choices.group_starts], stakes)

    patch.setattr(meter_module, "score_choices", score)


def the_midpoint_if_few_are_left(patch: pytest.MonkeyPatch) -> None:
    """Save the choice where at most one record would be divided."""
    real = Meter._chosen

    def chosen(meter, choices, score, price, selection, rate):
        if meter._look(choices.tally).by_place.sum() <= 1:
            ends = choices.candidate_starts[choices.group_starts]
            return choices.chosen(np.diff(ends) // 2)
        return real(meter, choices, score, price, selection, rate)

    patch.setattr(Meter, "_chosen", chosen)


def records_count_in_two_classes(patch: pytest.MonkeyPatch) -> None:
    """Let a record count in its own cell and in the next."""
    real = Cells.read

    def read(cells, counts):
        found = real(cells, counts)
        return found + np.roll(found, 1, axis=1) if cells.by == "class" else found

    patch.setattr(Cells, "read", read)


def the_number_of_rows_is_told(patch: pytest.MonkeyPatch) -> None:
    """Write the size of the table into the steps, unpaid."""
    real = Laplace.publish

    def publish(method, meter, schema, schedule):
        draft = real(method, meter, schema, schedule)
        rows = meter._engine.tally(Tally(Grid.whole(schema.shape), len(schema.classes))).by_place.sum()
        return replace(draft, steps=(*draft.steps, f"{rows} rows"))

    patch.setattr(Laplace, "publish", publish)


def true_counts_are_one_more_measurement(patch: pytest.MonkeyPatch) -> None:
    """Buy the histogram twice, and publish the first one as it was before the noise, under the rate that was paid."""

    def publish(method, meter, schema, schedule):
        cells, half = histogram(schema), schedule["counts"] / 2
        bought, counts = (meter.measure(cells, half, label) for label in ("histogram", "counts"))
        true = replace(bought.noisy, counts=cells.read(meter._look(cells.tally)))
        return Draft(counts.question.regions, (replace(bought, noisy=true), counts), method.model)

    patch.setattr(Laplace, "publish", publish)


def scores_that_fall_pass_for_monotone(patch: pytest.MonkeyPatch) -> None:
    """Choose by any score at the rate of those that only rise."""
    patch.setattr(meter_module, "sides", lambda score, selection: 1)  # noqa: ARG005


def noise_is_a_quarter_too_small(patch: pytest.MonkeyPatch) -> None:
    """Draw at 4/3 of the rate."""
    real = mechanisms.discrete_laplace
    patch.setattr(mechanisms, "discrete_laplace", lambda stream, rate, count: real(stream, rate * 4 / 3, count))


def noise_is_as_many_times_too_small_as_there_are_rows(patch: pytest.MonkeyPatch) -> None:
    """Put on counts the noise that was meant for their shares."""
    real = Meter._noisy

    def noisy(meter, cells, price):
        rows = int(meter._look(cells.tally).by_place.sum())
        return real(meter, cells, replace(price, unit=price.unit * max(rows, 1)))

    patch.setattr(Meter, "_noisy", noisy)


def the_first_attribute_is_the_most_even_one(patch: pytest.MonkeyPatch) -> None:
    """Begin the network with the attribute whose most frequent value is rarest, for free."""
    real = PrivBayes._network

    def network(method, meter, variables, schedule, most):
        shape = variables.schema.shape
        known = meter._engine.tally(Tally(Grid.whole(shape), len(variables.schema.classes), tuple(range(len(shape)))))
        modes = [known.by_leaf[at].counts.sum(axis=1).max(initial=0) for at in range(len(shape))]
        lots, first = meter.lots, [int(np.argmin(modes))]
        meter.lots = lambda count: lots(count) * 0 + (first.pop() if first else 0)
        return real(method, meter, variables, schedule, most)

    patch.setattr(PrivBayes, "_network", network)


def domains_end_where_the_data_does(patch: pytest.MonkeyPatch) -> None:
    """Take the parts of a number from the values that occur."""
    real = PrivBayes._network

    def network(method, meter, variables, schedule, most):
        shape = variables.schema.shape
        known = meter._engine.tally(Tally(Grid.whole(shape), len(variables.schema.classes), (1,)))
        last = int(known.by_leaf[1].keys.max(initial=0)) + 1
        cut = (0, *(one for one in (1, 2) if one < last), shape[1])
        variables.__dict__["levels"] = {**variables.levels, 1: [cut]}
        return real(method, meter, variables, schedule, most)

    patch.setattr(PrivBayes, "_network", network)


def the_kd_tree_sees_true_counts(patch: pytest.MonkeyPatch) -> None:
    """Cut the histogram before its noise."""
    seen: list[np.ndarray] = []
    measure, grown = Meter.measure, KdTree.grown

    def remembered(meter, cells, spend, label):
        seen.append(cells.read(meter._look(cells.tally)))
        return measure(meter, cells, spend, label)

    patch.setattr(Meter, "measure", remembered)
    patch.setattr(
        KdTree, "grown", lambda tree, most: grown(replace(tree, table=1.0 * seen[-1].reshape(tree.table.shape)), most)
    )


def a_median_looks_at_the_size(patch: pytest.MonkeyPatch) -> None:
    """Score balance as a share of the records."""
    real = Balance.of

    def of(score, children):
        return real(score, children) * 100 // np.maximum(children.sum(children.counts.sum(axis=1)), 1)

    patch.setattr(Balance, "of", of)


@dataclass(frozen=True)
class Bug:
    """A mistake, where it shows, and what is expected to find it."""

    plant: mutants.Plant
    method: Method
    pair: Pair
    replay: bool
    audit: bool
    runs: int = 500
    also: str = ""
    """another test that finds it"""
    account: str = ""
    """what an account says that refuses to seal such a release"""

    @property
    def words(self) -> str:
        return self.plant.__name__.replace("_", " ")


NETWORK = PrivBayes(candidates=20, degree=2, margins=Fraction(0))
CUT = DiffGen(specializations=1, margins=Fraction(0), score="max")
BUGS = [
    Bug(noise_for_those_who_hold_someone, Laplace(), NOBODY, replay=True, audit=True),
    Bug(no_noise_on_zeros, Laplace(), NOBODY, replay=False, audit=True, also="samplers"),
    Bug(splits_end_at_the_largest_value, CUT, LONE, replay=True, audit=True, runs=400),
    Bug(the_midpoint_if_few_are_left, CUT, ONE, replay=True, audit=True, runs=400),
    Bug(records_count_in_two_classes, Laplace(), NOBODY, replay=True, audit=True),
    Bug(the_number_of_rows_is_told, Laplace(), CROWD, replay=True, audit=True, also="the fence"),
    Bug(
        mutants.mechanisms_use_twice_what_is_charged,
        Laplace(),
        NOBODY,
        replay=True,
        audit=True,
        also="paths, the account",
        account="the noise of what is published must be worth no more than was paid",
    ),
    Bug(
        true_counts_are_one_more_measurement,
        Laplace(),
        NOBODY,
        replay=True,
        audit=True,
        runs=400,
        also="the account",
        account="what is published with an epsilon must be what the meter has measured",
    ),
    Bug(noise_is_a_quarter_too_small, Laplace(), NOBODY, replay=False, audit=True, runs=1400, also="samplers"),
    Bug(scores_that_fall_pass_for_monotone, DiffGen(specializations=1), LONE, replay=True, audit=False),
    Bug(noise_is_as_many_times_too_small_as_there_are_rows, NETWORK, CROWD, replay=True, audit=False),
    Bug(the_first_attribute_is_the_most_even_one, NETWORK, EVEN, replay=True, audit=False),
    Bug(domains_end_where_the_data_does, NETWORK, LONE, replay=True, audit=False),
    Bug(the_kd_tree_sees_true_counts, DPCube(histogram=Fraction(1, 20)), FEW, replay=True, audit=False),
    Bug(a_median_looks_at_the_size, RPS(depth=2), LONE, replay=True, audit=False),
]
HONEST = Bug(lambda _: None, Laplace(), NOBODY, replay=False, audit=False)


def check_by_replay(bug: Bug) -> None:
    """Record one table of the pair and replay the other, in both directions, with several seeds."""
    tables = [engine_of(bug.pair.table(complete=complete)) for complete in (True, False)]
    for seed in range(6):
        for one, other in (tables, reversed(tables)):
            compare(bug.method, SCHEMA, one, other, epsilon=Fraction(1), seed=seed)


def planted(bug: Bug, check: Callable[[Bug], object]) -> object:
    """Check with the mistake in place."""
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        return check(bug)


def found_by_replay(bug: Bug) -> bool:
    """Tell whether replay finds a mistake."""
    try:
        planted(bug, check_by_replay)
    except AssertionError:
        return True
    return False


def audited(bug: Bug, runs: int | None = None) -> Finding:
    """Attack a method with a mistake in it."""
    return attack(bug.method, Fraction(1), runs=runs or bug.runs, confidence=0.99, pairs=[bug.pair], unsafe_seed=5)
