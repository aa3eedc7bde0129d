"""PrivBayes: which families are offered, how noisy families become a network, and what the network answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from handmade import manifest_of
from replay import Recorder, run
from sfumato import PrivBayes, Release, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError, ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.methods.privbayes import Variables, levels_of
from sfumato.models import bayes, model_of
from sfumato.models.bayes import BayesModel, consistent
from sfumato.privacy.families import CLASS
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question

SCHEMA = Schema.loads("""
confirmed: true
attributes:
  job: {kind: categorical, taxonomy: {Office: [Clerk, Judge], Field: [Farmer]}}
  age: {kind: numeric, lower: 0, upper: 7}
  same: {kind: categorical, taxonomy: [Alone]}
  class: {kind: class, taxonomy: [Yes, No]}
""")
VARIABLES = Variables(SCHEMA, 4)
RATE = Fraction(10)


def test_levels_are_those_of_taxonomies_and_halvings() -> None:
    assert VARIABLES.names == {0: "job", 1: "age", CLASS: "class"}
    assert VARIABLES.levels[0] == [(0, 1, 2, 3), (0, 2, 3)]
    assert VARIABLES.levels[1] == [(0, 2, 4, 6, 8), (0, 4, 8)]
    assert levels_of(SCHEMA.predictors["age"], 16)[0] == tuple(range(9))


@pytest.mark.parametrize(
    ("most", "degree", "vanilla", "expected"),
    [
        (24, 2, False, [((0, 3), (1, 4))]),
        (16, 2, False, [((0, 2), (1, 4)), ((0, 3), (1, 2))]),
        (16, 2, True, [((0, 3),), ((1, 4),)]),
        (8, 1, False, [((0, 3),), ((1, 4),)]),
        (6, 2, False, [((0, 3),), ((1, 2),)]),
        (3, 2, False, [()]),
    ],
)
def test_parent_sets_are_as_fine_and_large_as_there_is_room_for(most, degree, vanilla, expected) -> None:
    """The class has two values: a family of most cells leaves half of them to its parents."""
    found = VARIABLES.parent_sets(CLASS, [0, 1], most, degree, vanilla)
    assert sorted(tuple((at, len(cut) - 1) for at, cut in one) for one in found) == sorted(expected)


def people(rows: int = 4000) -> list[np.ndarray]:
    """Draw people whose job follows from their age, and whose class from both."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 8, rows)
    job = np.where(rng.random(rows) < 0.8, age // 3, rng.integers(0, 3, rows))
    label = ((job == 1) ^ (rng.random(rows) < 0.1)).astype(np.int64)
    return [job, age, np.zeros(rows, np.int64), label]


def published(method: PrivBayes, epsilon: int) -> tuple[Release, list[np.ndarray]]:
    rows = people()
    engine = MemoryEngine([one.astype(np.uint8) for one in rows[:3]], rows[3].astype(np.uint8))
    draft, _ = run(method, SCHEMA, engine, Fraction(epsilon), Recorder(2))
    return Release(SCHEMA, draft, manifest_of(SCHEMA, draft.cells)), rows


@pytest.mark.parametrize(
    "method", [PrivBayes(), PrivBayes(margins=0), PrivBayes.as_published()], ids=lambda one: one.model
)
def test_with_a_large_budget_the_network_tells_the_table(method: PrivBayes) -> None:
    release, (job, age, _, label) = published(method, 400)
    truth = np.zeros((3, 8, 2))
    np.add.at(truth, (job, age, label), 1)
    assert release.total == 4000
    assert np.abs(release.model.marginal([0, 1], by_class=True) - truth).sum() < 200
    found = release.count("age < 3 and class = 'Yes'")
    assert found.value == pytest.approx(truth[:, :3, 0].sum(), abs=30)
    drawn = release.sample_codes(4000, seed=1)
    again = np.zeros((3, 8, 2))
    np.add.at(again, (drawn["job"], drawn["age"], drawn["class"]), 1)
    assert np.abs(again - truth).sum() < 400
    right = release.classify_codes({"job": job, "age": age, "same": 0 * age}) == label
    assert right.mean() == pytest.approx(0.9, abs=0.02)


def test_sums_over_cliques_and_means_over_a_sample_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = ["age < 3", "job = 'Judge' and age >= 5", "class = 'No' and job = 'Farmer'", ""]
    exact, _ = published(PrivBayes(), 2)
    values = exact.count_many(conditions).values
    monkeypatch.setattr(bayes, "MOST_CELLS", 0)
    sampled = Release(SCHEMA, exact.draft, exact.manifest)
    assert sampled.count_many(conditions).values == pytest.approx(values, abs=40)
    assert sampled.model.marginal([1], by_class=False) == pytest.approx(
        exact.model.marginal([1], by_class=False), abs=40
    )


def test_rows_without_anyone_follow_the_childs_margin() -> None:
    table = np.array([[100.0, 300.0], [0.0, 0.0]])
    given = consistent(table, 1.0, np.array([1.0, 0.0]), 400.0, None)
    assert given[0] == pytest.approx([0.25, 0.75], abs=0.01)
    assert given[1] == pytest.approx([0.25, 0.75], abs=0.01)


def measurement(label: str, grid: Grid, classes: int, counts: list[int]) -> Measurement:
    noisy = Noisy.even(np.array(counts).reshape(grid.regions, classes), RATE)
    return Measurement(label, Question(grid, None, classes), noisy)


WHOLE = Grid.whole(SCHEMA.shape)
SIZE = measurement("size", WHOLE, 2, [5, 5])
CLASSES = measurement("class", WHOLE, 2, [6, 4])
JOBS = measurement("job", Grid.marginal(SCHEMA.shape, {0: (0, 1, 2, 3)}), 2, [1, 1, 1, 1, 3, 3])
AGES = measurement("age", Grid.marginal(SCHEMA.shape, {0: (0, 2, 3), 1: (0, 4, 8)}), 1, [1, 2, 3, 4])
FINE = measurement("age", Grid.marginal(SCHEMA.shape, {0: (0, 1, 3), 1: (0, 4, 8)}), 1, [1, 2, 3, 4])


def test_a_network_is_read_from_the_order_of_its_families() -> None:
    model = model_of(SCHEMA, Draft(WHOLE, (SIZE, CLASSES, JOBS, AGES), "network of families"))
    assert isinstance(model, BayesModel)
    listing = model.describe().listings[0]
    assert listing.rows == (("class", "", "2"), ("job", "class", "6"), ("age", "job in 2 parts", "4"))


@pytest.mark.parametrize(
    "measured",
    [(CLASSES, JOBS, AGES), (SIZE, CLASSES, AGES, JOBS), (SIZE, AGES, CLASSES, JOBS), (SIZE, CLASSES, JOBS)],
    ids=["no size", "two new ones", "two at first", "one missing"],
)
def test_what_is_no_network_is_refused(measured: tuple[Measurement, ...]) -> None:
    with pytest.raises(ReleaseError):
        model_of(SCHEMA, Draft(WHOLE, measured, "network of families"))


def test_a_parent_that_divides_its_own_parts_is_refused() -> None:
    coarse = measurement("job", Grid.marginal(SCHEMA.shape, {0: (0, 2, 3)}), 2, [1, 1, 1, 1])
    with pytest.raises(ReleaseError):
        model_of(SCHEMA, Draft(WHOLE, (SIZE, CLASSES, coarse, FINE), "network of families"))


def test_a_table_of_one_attribute_is_refused() -> None:
    alone = Schema.loads("attributes: {class: {kind: class, taxonomy: [Y, N]}}")
    with pytest.raises(MethodError, match="two attributes or more"):
        PrivBayes().plan(alone, Fraction(1))


def test_binary_tables_are_scored_by_fit() -> None:
    schema = Schema.loads("""
    attributes:
      a: {kind: categorical, taxonomy: [x, y]}
      b: {kind: categorical, taxonomy: [x, y]}
      class: {kind: class, taxonomy: [x, y]}
    """)
    column = np.tile([0, 1], 100).astype(np.uint8)
    draft, purse = run(PrivBayes(), schema, MemoryEngine([column, column], column), Fraction(5), Recorder(0))
    assert {debit.mechanism for debit in purse.debits if "choice" in debit.label} == {"permute-and-flip (F')"}
    assert len(draft.steps) == 3
