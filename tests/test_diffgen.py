"""DiffGen: the paper's example, its limits, two passes, and a budget that adds up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replay import Purse, Recorder, domain_of, run
from sfumato import DiffGen, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import most_specializations
from sfumato.privacy.meter import Meter

HUGE = Fraction(900)
"""So much budget that choices are the best and counts exact."""


class Scripted(Recorder):
    """Mechanisms that choose what the test says and add no noise."""

    def __init__(self, picks: list[int]) -> None:
        super().__init__(0)
        self._picks = picks

    def add_noise(self, counts, rates, rate_of):  # noqa: ARG002
        return counts.copy()

    def choose(self, selection, scored, rate):  # noqa: ARG002
        return np.array([self._picks.pop(0) for _ in scored.starts[1:]])


def test_example_3_of_the_paper(paper_schema: Schema, paper_engine: MemoryEngine) -> None:
    """Any_Job first, then [18-65) at 40: the generalized contingency table 1.d."""
    method = DiffGen(specializations=2, margins=Fraction(0))
    draft, _ = run(method, paper_schema, paper_engine, Fraction(1), Scripted([0, 2 + 21]))
    assert draft.steps == ("job: Any_Job → Professional, Artist", "age: [18, 65) → [18, 40), [40, 65)")
    assert draft.final.counts.sum(axis=1).tolist() == [3, 1, 4, 0]


def test_the_papers_schedule(adult) -> None:
    """Eps' = eps / (2 (|A_num| + 2 h)): one split per numeric attribute, then a choice and a split per round."""
    schedule = DiffGen.as_published(specializations=10).plan(adult.schema, Fraction(1))
    assert schedule["choice 1"] == schedule["first split of age"] == schedule["split 10"] == Fraction(1, 2 * (6 + 20))
    assert schedule["counts"] == Fraction(1, 2)
    assert len(schedule.parts) == 6 + 20 + 1
    assert schedule.total == 1


@pytest.mark.parametrize("epsilon", ["0.1", "1", "0.123457", "999.99999", "1/3"])
@pytest.mark.parametrize("steps", [1, 10, 37, 151])
@pytest.mark.parametrize("choice", ["joint", "separate"])
def test_plans_add_up_whatever_the_epsilon(adult, epsilon: str, steps: int, choice) -> None:
    method = DiffGen(specializations=steps, choice=choice, margins=Fraction(123, 1000))
    total = method.plan(adult.schema, Fraction(epsilon)).total
    assert Fraction(epsilon) - Fraction(1, 10**6) < total <= Fraction(epsilon)


def test_with_a_huge_budget_it_makes_the_best_choices_and_counts_exactly(paper_schema, paper_columns) -> None:
    job, age, label = (np.tile(column, 50) for column in paper_columns)
    label = (age >= 20).astype(np.uint8)
    draft, _ = run(DiffGen(specializations=1), paper_schema, MemoryEngine([job, age], label), HUGE, Recorder(1))
    assert draft.steps == ("age: [18, 65) → [18, 38), [38, 65)",)
    assert draft.final.counts.tolist() == [[300, 0], [0, 100]]


class Counting:
    """An engine that counts its passes."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine, self.passes = engine, 0

    def tally(self, tally):
        self.passes += 1
        return self.engine.tally(tally)


@pytest.mark.parametrize(
    "method",
    [DiffGen(specializations=20), DiffGen(specializations="auto"), DiffGen.as_published(specializations=20)],
)
def test_two_passes_whatever_h(paper_schema: Schema, paper_engine: MemoryEngine, method: DiffGen) -> None:
    engine = Counting(paper_engine)
    run(method, paper_schema, engine, Fraction(1), Recorder(0))
    assert engine.passes == 2


def test_growth_to_the_end_publishes_the_contingency_table(paper_schema: Schema, paper_engine: MemoryEngine) -> None:
    most = most_specializations(list(paper_schema.predictors.values()))
    assert most == 3 + 46
    draft, _ = run(DiffGen(specializations=most), paper_schema, paper_engine, Fraction(1), Recorder(0))
    assert draft.structure.regions == 4 * 47
    assert draft.measurements[-1].label == "counts"
    assert all(one.label.startswith("margin") for one in draft.measurements[:-1])


def test_no_more_cells_than_allowed_are_ever_made(paper_schema: Schema, paper_engine: MemoryEngine) -> None:
    for seed in range(3):
        draft, purse = run(
            DiffGen(specializations=30, max_cells=64), paper_schema, paper_engine, Fraction(1), Recorder(seed)
        )
        assert draft.final.counts.size <= 64
        assert sum((debit.epsilon for debit in purse.debits), Fraction(0)) == 1


def test_auto_takes_more_steps_with_more_people_or_budget(paper_schema: Schema, paper_columns) -> None:
    def steps(copies: int, epsilon: Fraction) -> int:
        columns = [np.tile(column, copies) for column in paper_columns]
        draft, _ = run(
            DiffGen(specializations="auto"), paper_schema, MemoryEngine(columns[:2], columns[2]), epsilon, Recorder(5)
        )
        return len(draft.steps)

    assert steps(1, Fraction(1)) < steps(100, Fraction(1)) < steps(2000, Fraction(1))
    assert steps(500, Fraction(1, 10)) < steps(500, Fraction(10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"specializations": 0},
        {"specializations": -3},
        {"specializations": 2.5},
        {"specializations": "many"},
        {"specializations": "²"},
        {"score": "entropy"},
        {"margins": Fraction(1)},
        {"margins": Fraction(-1, 5)},
        {"margins": Fraction(1, 3001)},
        {"growth": Fraction(0)},
        {"choice": "both"},
        {"selection": "best"},
        {"max_cells": 1},
        {"score": "weighted-gain", "rows": 0},
    ],
    ids=str,
)
def test_senseless_parameters_are_refused_at_birth(wrong: dict) -> None:
    with pytest.raises(MethodError):
        DiffGen(**wrong)


def test_what_the_schema_does_not_allow_is_refused_in_the_plan(paper_schema: Schema) -> None:
    with pytest.raises(MethodError, match="at most 49"):
        DiffGen(specializations=50).plan(paper_schema, Fraction(1))
    with pytest.raises(MethodError, match="at most 8 cells"):
        DiffGen(specializations=7, max_cells=8).plan(paper_schema, Fraction(1))
    no_class = Schema.loads("attributes: {a: {kind: categorical, taxonomy: [x, y]}}")
    with pytest.raises(MethodError, match="class attribute"):
        DiffGen().plan(no_class, Fraction(1))
    only_class = Schema.loads("attributes: {a: {kind: class, taxonomy: [x, y]}}")
    with pytest.raises(MethodError, match="besides the class"):
        DiffGen().plan(only_class, Fraction(1))
    one_value = Schema.loads("attributes: {a: {kind: categorical, taxonomy: [x, y]}, c: {kind: class, taxonomy: [x]}}")
    with pytest.raises(MethodError, match="two values or more"):
        DiffGen(specializations=1).plan(one_value, Fraction(1))


def test_a_method_cannot_overdraw(paper_schema: Schema, paper_engine: MemoryEngine) -> None:
    method = DiffGen(specializations=3)
    meter = Meter(paper_engine, Purse(Fraction(1, 2)), Recorder(0), domain_of(paper_schema))
    with pytest.raises(BudgetError):
        method.publish(meter, paper_schema, method.plan(paper_schema, Fraction(1)))
