"""Splits are the papers' splits, learners learn what can be learnt, and lessons compare on the same rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, train_test_split

from handmade import manifest_of
from sfumato import Release, Schema
from sfumato.cli.measure import PROTOCOLS as OFFERED
from sfumato.errors import TableError
from sfumato.evaluate.learning import (
    LEARNERS,
    MOST_INDICATORS,
    PROTOCOLS,
    Trial,
    accuracy,
    accuracy_of_regions,
    area,
    lessons,
    lot,
    majority_accuracy,
    most_learnt,
    record_features,
    splits,
    teach,
)
from sfumato.geometry.grid import Grid
from sfumato.models.regions import regions_of
from sfumato.privacy.measurements import Noisy

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  class: {kind: class, taxonomy: [no, yes, perhaps]}
""")


def rows_of(size: int, seed: int = 0, noise: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 10, size), rng.integers(0, 3, size)
    classes = np.where(rng.random(size) < noise, rng.integers(0, 2, size), a >= 5)
    return {"a": a, "b": b, "class": classes.astype(np.int64)}


# Splits.


@pytest.mark.parametrize("rows", [10, 11, 100, 101])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_row_is_either_learnt_or_tested(protocol, rows: int) -> None:
    for train, test in splits(protocol, rows, seed=3):
        assert sorted([*train, *test]) == list(range(rows))
        assert len(train) > 0
        assert len(test) > 0
    again = splits(protocol, rows, seed=3)
    assert all(np.array_equal(one[1], two[1]) for one, two in zip(again, splits(protocol, rows, seed=3), strict=True))


@pytest.mark.parametrize(("protocol", "learnt"), [("2/3", 2 / 3), ("4/5", 0.8), ("80/20", 0.8)])
def test_shares_are_those_of_scikit_learn(protocol, learnt: float) -> None:
    ((train, test),) = splits(protocol, 45222)
    expected = train_test_split(np.arange(45222), train_size=learnt, random_state=0)
    assert [len(train), len(test)] == pytest.approx([len(one) for one in expected], abs=1)


def test_ten_folds_test_every_row_once() -> None:
    found = splits("10-fold", 105, seed=1)
    assert sorted(np.concatenate([test for _, test in found]).tolist()) == list(range(105))
    assert [len(test) for _, test in found] == [len(test) for _, test in KFold(10).split(np.zeros(105))]


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(TableError, match="must be one of 2/3, 4/5, 80/20, 10-fold"):
        splits("halves", 100)
    with pytest.raises(TableError, match="10 rows or more"):
        splits("10-fold", 9)
    with pytest.raises(TableError, match="2 rows or more"):
        splits("2/3", 1)


def test_the_command_line_offers_every_protocol() -> None:
    assert tuple(PROTOCOLS) == OFFERED


# Learners.


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns_a_threshold(learner) -> None:
    pupil, test = teach(learner, SCHEMA, rows_of(2000)), rows_of(500, seed=1)
    assert (pupil.predict(test) == test["class"]).mean() > 0.97
    assert area(test["class"], pupil.scores(test)) > 0.99


@pytest.mark.parametrize("learner", LEARNERS)
def test_scores_are_those_of_the_prediction(learner) -> None:
    rows = rows_of(900, noise=0.3)
    rows["class"][rows["b"] == 2] = 2
    pupil = teach(learner, SCHEMA, rows)
    assert np.array_equal(pupil.scores(rows).argmax(axis=1), pupil.predict(rows))


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_single_class_is_always_predicted(learner) -> None:
    rows = rows_of(50) | {"class": np.full(50, 1)}
    pupil = teach(learner, SCHEMA, rows)
    assert (pupil.predict(rows) == 1).all()
    assert pupil.scores(rows).shape == (50, 3)
    assert area(rows_of(50)["class"], pupil.scores(rows)) == 0.5


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_class_that_was_never_seen_is_no_trouble(learner) -> None:
    test = rows_of(200, seed=1)
    test["class"][:20] = 2
    scores = teach(learner, SCHEMA, rows_of(500)).scores(test)
    assert not scores[:, 2].any()
    assert 0.5 < area(test["class"], scores) < 1


def test_id3_is_not_pruned_and_the_other_tree_is() -> None:
    """Rows that never contradict each other are learnt by heart, or not."""
    schema = Schema.loads(
        "attributes: {a: {kind: numeric, lower: 0, upper: 399}, class: {kind: class, taxonomy: [n, y]}}"
    )
    rows = {"a": np.arange(400), "class": np.random.default_rng(0).integers(0, 2, 400)}
    heart, pruned = (teach(one, schema, rows).predict(rows) for one in ("ID3", "pruned tree"))
    assert np.array_equal(heart, rows["class"])
    assert (pruned == rows["class"]).mean() < 0.7


def test_naive_bayes_multiplies_smoothed_shares() -> None:
    """Of two classes with three rows each, b is x, x, y and y, z, z; a is always 0: every count has one added."""
    rows = {"a": np.zeros(6, int), "b": np.array([0, 0, 1, 1, 2, 2]), "class": np.array([0, 0, 0, 1, 1, 1])}
    scores = teach("naive Bayes", SCHEMA, rows).scores({"a": np.zeros(3, int), "b": np.arange(3)})
    assert scores[:, :2] == pytest.approx(np.array([[3 / 4, 1 / 4], [1 / 2, 1 / 2], [1 / 4, 3 / 4]]))


def test_an_unknown_learner_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        teach("oracle", SCHEMA, rows_of(9))


def test_long_lists_of_categories_are_codes() -> None:
    names = ", ".join(f"v{number}" for number in range(MOST_INDICATORS + 1))
    schema = Schema.loads(f"attributes: {{b: {{kind: categorical, taxonomy: [{names}]}}}}")
    assert record_features(schema, {"b": np.array([7, 200])}).tolist() == [[7], [200]]


@given(st.integers(0, 2**32 - 1))
def test_the_area_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, scores = np.concatenate([np.arange(3), rng.integers(0, 3, 40)]), rng.dirichlet(np.ones(3), 43)
    expected = roc_auc_score(truth, scores, multi_class="ovr", average="weighted")
    assert area(truth, scores) == pytest.approx(expected)
    assert area(np.ones(43, int), scores) == 0.5


# Lessons.


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.lists(st.integers(0, 2), min_size=1, max_size=30))
def test_the_lower_bound_is_the_majority(train: list[int], test: list[int]) -> None:
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(train), 1)), train)
    found = majority_accuracy({"class": np.array(train)}, {"class": np.array(test)}, "class")
    assert found == pytest.approx(dummy.score(np.zeros((len(test), 1)), test))


def test_every_row_of_the_comparison_is_tested_alike() -> None:
    rows, grid = rows_of(900, noise=0.2), Grid(((0, 5, 10), (0, 3)))
    cells = regions_of(grid, [rows["a"], rows["b"]]) * 3 + rows["class"]
    counts = np.bincount(cells, minlength=6).reshape(2, 3)
    release = Release(SCHEMA, grid, Noisy.even(counts, Fraction(1)), {}, manifest_of(SCHEMA, 6))
    trials = [Trial(rows, rows_of(300, seed=seed, noise=0.2)) for seed in (1, 2)]
    found = lessons(release, release.sample_codes(seed=0), trials)
    assert [(one.learner, one.taught_by) for one in found] == [
        ("pruned tree", "groups"),
        ("majority", "regions"),
        *((learner, "drawn records") for learner in LEARNERS),
    ]
    groups, regions, tree = found[:3]
    assert groups.ca == pytest.approx(np.mean([accuracy(release, trial.test) for trial in trials]))
    assert regions.ca == pytest.approx(np.mean([accuracy_of_regions(release, trial.test) for trial in trials]))
    raw = [(teach("pruned tree", SCHEMA, rows).predict(one.test) == one.test["class"]).mean() for one in trials]
    assert groups.ba == regions.ba == tree.ba == pytest.approx(np.mean(raw))
    for one in found:
        assert one.la == pytest.approx(np.mean([majority_accuracy(rows, trial.test, "class") for trial in trials]))
        assert (one.cost, one.benefit) == pytest.approx((one.ba - one.ca, one.ca - one.la))


def test_the_more_classes_the_fewer_records_are_learnt() -> None:
    assert most_learnt(SCHEMA) == 33_333
    assert most_learnt(SCHEMA.only(["a", "b"])) == 50_000


def test_a_lot_keeps_rows_whole_and_in_order() -> None:
    rows = {"a": np.arange(100), "b": np.arange(100) * 2}
    drawn = lot(rows, 30, seed=4)
    assert len(drawn["a"]) == 30
    assert (np.diff(drawn["a"]) > 0).all()
    assert np.array_equal(drawn["b"], drawn["a"] * 2)
    assert np.array_equal(drawn["a"], lot(rows, 30, seed=4)["a"])
    assert lot(rows, 100, seed=4)["a"] is rows["a"]
