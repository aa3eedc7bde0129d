"""CDiffGen: DiffGen's tree, level by level, with consistent counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from replay import Recorder, run
from sfumato import Account, CDiffGen, DiffGen, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, MethodError, QueryError
from sfumato.geometry.candidates import Specialization, stages_of
from sfumato.geometry.grid import Grid
from sfumato.privacy.budget import GRAIN
from sfumato.privacy.measurements import Draft, Measurement

STEPS = [
    Specialization(0, 0, (0, 2, 4)),
    Specialization(0, 1, (0, 22, 47)),
    Specialization(0, 1, (0, 9, 22)),
    Specialization(0, 0, (2, 3, 4)),
]


def test_the_leaves_of_the_steps_are_the_regions_of_the_grid() -> None:
    tree = stages_of((4, 47), STEPS)[-1]
    grid = Grid.whole((4, 47))
    for step in STEPS:
        grid = grid.refine(step.attribute, step.borders)
    found = sorted(map(tuple, tree.boxes_of(tree.ends).reshape(-1, 4).tolist()))
    assert found == sorted(map(tuple, grid.boxes(0, grid.regions).reshape(-1, 4).tolist()))


def test_every_stage_adds_a_level() -> None:
    stages = stages_of((4, 47), STEPS)
    assert [int(stage.depths.max()) for stage in stages] == list(range(len(stages)))
    for coarser, finer in pairwise(stages):
        assert finer.refines(coarser.stage)
        assert (finer.depths[len(coarser) :] == finer.depths.max()).all()
    assert [stage.regions for stage in stages] == [1, 2, 4, 7, 9]


def test_nothing_to_specialize_is_a_single_region() -> None:
    (only,) = stages_of((4, 47), [])
    assert only.regions == 1


def of_nodes(draft: Draft) -> list[Measurement]:
    """Give what was measured of nodes: the levels and, last, the ends."""
    return [one for one in draft.measurements if one.question.nodes is not None]


def test_the_same_choices_make_the_same_regions_as_diffgen(adult, adult_codes) -> None:
    flat, _ = run(DiffGen(specializations=8), adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(4))
    tree, _ = run(CDiffGen(specializations=8), adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(4))
    assert flat.steps == tree.steps
    assert flat.structure.regions == tree.structure.regions


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("workload", ["ranges", "marginals"])
def test_every_path_spends_the_whole_budget(adult, adult_codes, epsilon: str, workload) -> None:
    method = CDiffGen(specializations=9, workload=workload)
    draft, purse = run(method, adult.schema, MemoryEngine(*adult_codes), Fraction(epsilon), Recorder(5))
    assert sum(debit.epsilon for debit in purse.debits) == Fraction(epsilon)
    tree = draft.structure
    paid = np.zeros(len(tree), object)
    for one in of_nodes(draft):
        paid[one.question.nodes] += np.array(one.noisy.rates, object)[one.noisy.rate_of]
    for node in range(1, len(tree)):
        paid[node] += paid[tree.parents[node]]
    assert len(set(paid[tree.ends])) == 1
    assert paid[tree.ends][0] == Fraction(epsilon) - sum(
        debit.epsilon for debit in purse.debits if not debit.label.startswith(("level", "counts"))
    )


def test_as_published_all_nodes_get_the_same_share_of_half_the_budget(adult, adult_codes) -> None:
    method = CDiffGen.as_published(specializations=6)
    draft, purse = run(method, adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(6))
    levels = int(draft.structure.depths.max()) + 1
    (rate,) = {rate for one in draft.measurements for rate in one.noisy.rates}
    assert [one.label for one in draft.measurements] == [*(f"level {at}" for at in range(levels - 1)), "counts"]
    assert 0 <= rate * levels - Fraction(1, 2) < 40 * GRAIN
    assert draft.model == "tree with the paper's weights"
    assert sum(debit.epsilon for debit in purse.debits) <= 1


def test_the_leaves_alone_are_diffgen(adult, adult_codes) -> None:
    draft, _ = run(CDiffGen(levels="leaves"), adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(7))
    assert of_nodes(draft) == [draft.final]
    assert len(draft.final.noisy.rates) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"levels": "some"}, "levels (some) must be one of workload, equal, leaves"),
        ({"workload": " \n "}, "workload (0 conditions) must be ranges, marginals, or from 1 to 1,000 conditions"),
        ({"workload": ["age > 3"] * 1001}, "workload (1,001 conditions) must be"),
        ({"workload": 7}, "workload (7) must be ranges, marginals, or"),
        ({"workload": ["age > 3", 7]}, "must be ranges, marginals, or"),
        ({"consistency": "none"}, "consistency (none) must be one of"),
        ({"specializations": 0}, "specializations (0) must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(given: dict, said: str) -> None:
    with pytest.raises(MethodError) as refused:
        CDiffGen(**given)
    assert said in str(refused.value)


def test_the_holders_own_conditions_get_more_precise_answers(adult) -> None:
    condition = "education in ('Bachelors', 'Masters') and marital_status = 'Married'"
    deviations = []
    for workload in (condition, "age < 30 and sex = 'Female'", "sex = 'Male' and age > 200"):
        account = Account("unused.ledger", adult.schema)
        method = CDiffGen(specializations=12, workload=workload)
        release = account.publish(adult.table, method, "1", unsafe_seed=3)
        assert release.manifest.parameters["workload"] == [workload]
        deviations.append(release.count(condition).stddev)
    assert deviations[0] < min(deviations[1:])


def test_a_condition_that_cannot_be_read_is_refused_before_anything_is_paid(adult) -> None:
    with pytest.raises(QueryError, match="shoe"):
        CDiffGen(workload=["age < 30", "shoe > 3"]).plan(adult.schema, Fraction(1))


def test_a_table_without_a_class_is_refused() -> None:
    plain = Schema.loads("attributes:\n  a: {kind: numeric, lower: 0, upper: 9}")
    with pytest.raises(MethodError, match="cdiffgen must have a class"):
        CDiffGen().plan(plain, Fraction(1))


BITS = Schema.loads(
    "attributes:\n"
    + "\n".join(f"  b{bit}: {{kind: categorical, taxonomy: [no, yes]}}" for bit in range(10))
    + "\n  c: {kind: class, taxonomy: [y, n]}"
)


def test_counts_that_the_levels_would_grind_to_nothing_are_refused_before_anything_is_paid() -> None:
    method = CDiffGen(specializations=10, levels="equal", margins="0.9", growth="0.9", leftover=False)
    with pytest.raises(BudgetError, match="enough for 11 levels"):
        method.plan(BITS, Fraction(1, 3 * 10**6))


def test_choices_that_rounding_would_grind_to_nothing_are_refused_too() -> None:
    method = CDiffGen(specializations="auto", choice="separate", margins="0.867", growth="0.05")
    with pytest.raises(BudgetError, match="shared among the choices"):
        method.plan(BITS, Fraction(1, 3 * 10**6))
