"""Splits are the papers' splits, learners learn what can be learnt, lessons compare on the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, train_test_split

from counted_rows import GRID, ROWS, TREE, exact_release
from counted_rows import SCHEMA as COUNTED
from handmade import released
from sfumato import Schema, holder
from sfumato.cli.measure import PROTOCOLS as OFFERED
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate.learning import (
    LEARNERS,
    MOST_INDICATORS,
    PROTOCOLS,
    Trial,
    accuracy,
    accuracy_of_regions,
    accuracy_of_samples,
    area,
    auc,
    chance,
    group_features,
    lessons,
    lot,
    majority_accuracy,
    most_learnt,
    record_features,
    splits,
    teach,
)
from sfumato.evaluate.runs import one_thread
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition

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


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Learn on one thread: several processes with threads for every core wait for each other."""
    with one_thread():
        yield


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
    cells = grid.regions_of([rows["a"], rows["b"]]) * 3 + rows["class"]
    counts = np.bincount(cells, minlength=6).reshape(2, 3)
    release = released(SCHEMA, grid, counts)
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


# What groups, their regions and samples teach.


@pytest.mark.parametrize("how", ["projection", "clamp"])
@pytest.mark.parametrize(
    "rule", [lambda a, b: (a >= 4) | (b > 2), lambda a, b: (a >= 4) ^ (b == 1)], ids=["one", "both"]
)
def test_separable_classes_are_learnt_perfectly(rule, how) -> None:
    classes = rule(ROWS["a"], ROWS["b"]).astype(np.uint8)
    assert accuracy(exact_release(GRID, classes), ROWS | {"class": classes}, how) == 1.0


def test_what_the_groups_do_not_tell_apart_is_guessed_by_majority() -> None:
    classes = (ROWS["a"] == 0).astype(np.uint8)
    assert accuracy(exact_release(GRID, classes), ROWS | {"class": classes}) == (classes == 0).mean()


def test_one_group_predicts_the_majority() -> None:
    classes = (ROWS["a"] < 8).astype(np.uint8)
    release = exact_release(Grid.whole(COUNTED.shape), classes)
    assert accuracy(release, ROWS | {"class": classes}) == pytest.approx(classes.mean())


def test_a_release_without_people_predicts_the_first_class() -> None:
    classes = (ROWS["a"] < 8).astype(np.uint8)
    release = exact_release(GRID, classes)
    empty = released(COUNTED, GRID, -1 - release.model.counts.counts)
    assert accuracy(empty, ROWS | {"class": classes}) == (classes == 0).mean()


WAYS = [accuracy, accuracy_of_samples, accuracy_of_regions]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("partition", [GRID, TREE], ids=["grid", "tree"])
def test_every_way_learns_what_the_regions_tell_apart(way, partition: Partition) -> None:
    classes = ((ROWS["a"] >= 4) & (ROWS["b"] > 0)).astype(np.uint8)
    assert way(exact_release(partition, classes), ROWS | {"class": classes}) == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_without_people_every_way_predicts_the_first_class(way) -> None:
    classes = (ROWS["a"] < 8).astype(np.uint8)
    nobody = released(COUNTED, TREE, np.full((3, 2), -1))
    assert way(nobody, ROWS | {"class": classes}) == (classes == 0).mean()


def test_samples_of_classes_drawn_by_lot_teach_nothing() -> None:
    """Splits that mean nothing are pruned away: what is left predicts the majority."""
    classes = (np.random.default_rng(2).random(500) < 0.3).astype(np.uint8)
    release = exact_release(Grid.whole(COUNTED.shape), classes)
    assert accuracy_of_samples(release, ROWS | {"class": classes}) == (classes == 0).mean()
    assert chance(COUNTED, 500) == pytest.approx(np.log2(11) / 500)


def test_groups_look_like_their_ranges() -> None:
    """Where a begins and ends; the share of b that is x, and that is y or z; the only value of single."""
    features = group_features(exact_release(TREE, np.zeros(500, np.uint8)))
    assert features == pytest.approx(
        np.array([[0, 4, 1 / 3, 2 / 3, 1], [4, 10, 1, 0, 1], [4, 10, 0, 1, 1]], np.float32)
    )
    assert group_features(exact_release(GRID, np.zeros(500, np.uint8)))[:, 2:5].tolist() == [*np.eye(3).tolist()] * 2


def test_records_look_like_their_codes() -> None:
    rows = {"a": np.array([7, 0]), "b": np.array([2, 0]), "single": np.array([0, 0])}
    assert record_features(COUNTED, rows).tolist() == [[7, 0, 0, 1, 1], [0, 1, 0, 0, 1]]


# Predicting the class of new rows.


@pytest.mark.parametrize("partition", [GRID, TREE], ids=["grid", "tree"])
def test_new_rows_get_the_name_of_the_majority_of_their_region(partition: Partition) -> None:
    classes = ((ROWS["a"] >= 4) & (ROWS["b"] > 0)).astype(np.uint8)
    release = exact_release(partition, classes)
    rows = pa.table({"b": ["x", "y", "z"], "a": [9, 9, 2], "single": ["only"] * 3})
    assert holder.classify(release, rows).tolist() == ["no", "yes", "no"]
    assert holder.classify(release, rows.to_pandas()).tolist() == ["no", "yes", "no"]
    assert holder.classify(release, rows.append_column("class", pa.array(["yes", "?", "?"]))).tolist() == [
        "no",
        "yes",
        "no",
    ]


def test_rows_that_do_not_fit_are_refused() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    with pytest.raises(TableError, match="b: "):
        holder.classify(release, pa.table({"b": ["v"], "a": [9], "single": ["only"]}))
    with pytest.raises(TableError, match="lacks single"):
        holder.classify(release, pa.table({"b": ["x"], "a": [9]}))


def test_a_release_without_a_class_does_not_classify() -> None:
    schema = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 5}}")
    release = released(schema, Grid.whole((6,)), np.array([[4]]))
    with pytest.raises(ReleaseError, match="class"):
        holder.classify(release, pa.table({"a": [1]}))


# Areas under curves.

UNLABELLED = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  c: {kind: categorical, taxonomy: [no, yes]}
""")


def table(rows: int, seed: int, echo: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 10, rows)
    b = np.where(echo, np.minimum(a // 3, 2), rng.integers(0, 3, rows))
    return {"a": a, "b": b, "c": rng.integers(0, 2, rows)}


@pytest.mark.parametrize("model", ["naive Bayes", "boosted trees"])
def test_what_follows_is_predicted_and_what_does_not_is_not(model) -> None:
    train, test = table(2000, 3, echo=True), table(1000, 4, echo=True)
    assert auc(UNLABELLED, train, test, "b", model) > 0.99
    assert auc(UNLABELLED, train, test, "c", model) == pytest.approx(0.5, abs=0.08)


def test_values_never_seen_and_a_single_value_are_no_trouble() -> None:
    train, test = table(200, 5, echo=True), table(100, 6, echo=True)
    few = {name: column[train["b"] < 2] for name, column in train.items()}
    assert 0.5 < auc(UNLABELLED, few, test, "b") < 1
    assert auc(UNLABELLED, {name: column[train["b"] < 1] for name, column in train.items()}, test, "b") == 0.5


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        auc(UNLABELLED, table(9, 1, echo=True), table(9, 1, echo=True), "b", "oracle")


def with_class() -> Schema:
    return UNLABELLED.with_target("b")


@pytest.mark.parametrize("model", ["naive Bayes", "boosted trees"])
def test_the_class_predicts_like_any_other_attribute(model) -> None:
    train, test = table(2000, 3, echo=True), table(1000, 4, echo=True)
    alone = with_class().only(["b", "c"])
    follows = [{**rows, "c": np.minimum(rows["b"], 1)} for rows in (train, test)]
    assert auc(alone, *follows, "c", model) > 0.99
    assert auc(with_class(), train, test, "b", model) == auc(UNLABELLED, train, test, "b", model)


def test_with_nothing_to_tell_apart_or_to_predict_by_the_area_is_a_half() -> None:
    train, test = table(200, 5, echo=True), table(100, 6, echo=True)
    assert auc(UNLABELLED, train, {name: column[test["b"] < 1] for name, column in test.items()}, "b") == 0.5
    assert auc(UNLABELLED, train, {name: column[:0] for name, column in test.items()}, "b") == 0.5
    assert auc(UNLABELLED.only(["b"]), train, test, "b") == 0.5
