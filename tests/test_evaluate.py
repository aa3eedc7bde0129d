"""Measures measure what they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Release, Schema
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate.fidelity import (
    FLOOR,
    RangeQuery,
    certainty_penalty,
    discernibility,
    random_queries,
    relative_errors,
)
from sfumato.evaluate.learning import (
    accuracy,
    accuracy_of_regions,
    accuracy_of_samples,
    chance,
    group_features,
    record_features,
)
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.models.regions import regions_of
from sfumato.privacy.budget import Debit
from sfumato.privacy.measurements import Noisy
from sfumato.release.manifest import Manifest
from trees import random_trees

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  single: {kind: categorical, taxonomy: [only]}
  class: {kind: class, taxonomy: [no, yes]}
""")
GRID = Grid(((0, 4, 10), (0, 1, 2, 3), (0, 1)))
TREE = Tree.whole(SCHEMA.shape).refine([0], [0], [0, 4, 10], [0, 3]).refine([2], [1], [0, 1, 3], [0, 3])
ROWS = {
    "a": np.random.default_rng(0).integers(0, 10, 500).astype(np.uint8),
    "b": np.random.default_rng(1).integers(0, 3, 500).astype(np.uint8),
    "single": np.zeros(500, np.uint8),
}


COLUMNS = [ROWS["a"], ROWS["b"], ROWS["single"]]


def exact_release(partition: Partition, classes: np.ndarray) -> Release:
    """Count the rows without noise."""
    regions = regions_of(partition, COLUMNS)
    counts = np.bincount(regions * 2 + classes, minlength=2 * partition.regions).reshape(-1, 2)
    debit = Debit("counts", "discrete Laplace", Fraction(1), Fraction(1), counts.size)
    manifest = Manifest("0", "none", "exact", {}, (debit,), False, SCHEMA.digest)
    return Release(SCHEMA, partition, Noisy.even(counts, Fraction(1)), {}, manifest)


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
    release = exact_release(Grid.whole(SCHEMA.shape), classes)
    assert accuracy(release, ROWS | {"class": classes}) == pytest.approx(classes.mean())


def test_a_release_without_people_predicts_the_first_class() -> None:
    classes = (ROWS["a"] < 8).astype(np.uint8)
    release = exact_release(GRID, classes)
    empty = Release(SCHEMA, GRID, Noisy.even(-1 - release.model.counts.counts, Fraction(1)), {}, release.manifest)
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
    nobody = Release(
        SCHEMA, TREE, Noisy.even(np.full((3, 2), -1), Fraction(1)), {}, exact_release(TREE, classes).manifest
    )
    assert way(nobody, ROWS | {"class": classes}) == (classes == 0).mean()


def test_samples_of_classes_drawn_by_lot_teach_nothing() -> None:
    """Splits that mean nothing are pruned away: what is left predicts the majority."""
    classes = (np.random.default_rng(2).random(500) < 0.3).astype(np.uint8)
    release = exact_release(Grid.whole(SCHEMA.shape), classes)
    assert accuracy_of_samples(release, ROWS | {"class": classes}) == (classes == 0).mean()
    assert chance(SCHEMA, 500) == pytest.approx(np.log2(11) / 500)


def test_groups_look_like_their_ranges() -> None:
    """Where a begins and ends; the share of b that is x, and that is y or z; the only value of single."""
    features = group_features(exact_release(TREE, np.zeros(500, np.uint8)))
    assert features == pytest.approx(
        np.array([[0, 4, 1 / 3, 2 / 3, 1], [4, 10, 1, 0, 1], [4, 10, 0, 1, 1]], np.float32)
    )
    assert group_features(exact_release(GRID, np.zeros(500, np.uint8)))[:, 2:5].tolist() == [*np.eye(3).tolist()] * 2


def test_records_look_like_their_codes() -> None:
    rows = {"a": np.array([7, 0]), "b": np.array([2, 0]), "single": np.array([0, 0])}
    assert record_features(SCHEMA, rows).tolist() == [[7, 0, 0, 1, 1], [0, 1, 0, 0, 1]]


# Predicting the class of new rows.


@pytest.mark.parametrize("partition", [GRID, TREE], ids=["grid", "tree"])
def test_new_rows_get_the_name_of_the_majority_of_their_region(partition: Partition) -> None:
    classes = ((ROWS["a"] >= 4) & (ROWS["b"] > 0)).astype(np.uint8)
    release = exact_release(partition, classes)
    rows = pa.table({"b": ["x", "y", "z"], "a": [9, 9, 2], "single": ["only"] * 3})
    assert release.classify(rows).tolist() == ["no", "yes", "no"]
    assert release.classify(rows.to_pandas()).tolist() == ["no", "yes", "no"]
    assert release.classify(rows.append_column("class", pa.array(["yes", "?", "?"]))).tolist() == ["no", "yes", "no"]


def test_rows_that_do_not_fit_are_refused() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    with pytest.raises(TableError, match="b: "):
        release.classify(pa.table({"b": ["v"], "a": [9], "single": ["only"]}))
    with pytest.raises(TableError, match="lacks single"):
        release.classify(pa.table({"b": ["x"], "a": [9]}))


def test_a_release_without_a_class_does_not_classify() -> None:
    schema = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 5}}")
    manifest = exact_release(GRID, np.zeros(500, np.uint8)).manifest
    release = Release(schema, Grid.whole((6,)), Noisy.even(np.array([[4]]), Fraction(1)), {}, manifest)
    with pytest.raises(ReleaseError, match="class"):
        release.classify(pa.table({"a": [1]}))


# Information.


@given(random_trees(SCHEMA.shape) | st.just(GRID))
def test_information_is_lost_row_by_row(partition: Partition) -> None:
    """Compare with what each row pays, read off its own box."""
    boxes = partition.boxes(0, partition.regions) if isinstance(partition, Grid) else partition.boxes[partition.ends]
    mine = boxes[regions_of(partition, COLUMNS)]
    alike = sum(int((mine == box).all(axis=(1, 2)).sum()) for box in mine)
    widths = mine[..., 1] - mine[..., 0]
    shares = [
        [0 if width == 1 else width / all_ for width, all_ in zip(row, SCHEMA.shape, strict=True)] for row in widths
    ]
    assert discernibility(partition, COLUMNS) == alike
    assert certainty_penalty(partition, COLUMNS) == pytest.approx(np.mean(shares))


def test_the_whole_hides_everything_and_leaves_hide_nothing() -> None:
    whole, leaves = Grid.whole((10, 3)), Grid((tuple(range(11)), tuple(range(4))))
    assert discernibility(whole, COLUMNS[:2]) == 500**2
    assert certainty_penalty(whole, COLUMNS[:2]) == 1
    assert certainty_penalty(leaves, COLUMNS[:2]) == 0
    assert certainty_penalty(whole, [column[:0] for column in COLUMNS[:2]]) == 0


# Queries.


@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 3), st.integers(0, 3))
def test_the_truth_is_a_plain_count(left: int, right: int, low: int, high: int) -> None:
    query = RangeQuery({"a": (left, right), "b": (low, high)})
    inside = sum(left <= a < right and low <= b < high for a, b in zip(ROWS["a"], ROWS["b"], strict=True))
    assert query.truth(ROWS) == inside


def test_a_query_without_ranges_counts_everyone() -> None:
    assert RangeQuery({}).truth(ROWS) == 500


def test_weights_are_one_inside() -> None:
    weights = RangeQuery({"a": (2, 4)}).weights(SCHEMA)
    assert {name: np.flatnonzero(one).tolist() for name, one in weights.items()} == {"a": [2, 3]}


def test_random_queries_are_reproducible_and_within_the_domain() -> None:
    queries = random_queries(SCHEMA, 200, seed=5, attributes=(1, 2))
    assert queries == random_queries(SCHEMA, 200, seed=5, attributes=(1, 2))
    assert queries != random_queries(SCHEMA, 200, seed=6, attributes=(1, 2))
    assert {len(query.ranges) for query in queries} == {1, 2}
    sizes = {name: column.leaves for name, column in SCHEMA.predictors.items()}
    assert all(0 <= lo < hi <= sizes[name] for query in queries for name, (lo, hi) in query.ranges.items())
    assert not any("single" in query.ranges for query in queries)


def test_exact_counts_of_whole_groups_have_no_error() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    aligned = [RangeQuery({"a": (0, 4), "b": (1, 3)}), RangeQuery({"a": (4, 10)}), RangeQuery({"b": (0, 3)})]
    assert relative_errors(release, aligned, ROWS, 500) == pytest.approx(0, abs=1e-12)


def test_errors_are_relative_with_a_floor() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    off = Release(SCHEMA, GRID, Noisy.even(release.model.counts.counts + 1, Fraction(1)), {}, release.manifest)
    everyone, nobody = RangeQuery({"a": (0, 10)}), RangeQuery({"a": (5, 5)})
    assert relative_errors(off, [everyone], ROWS, 500) == pytest.approx(12 / 500)
    assert relative_errors(off, [nobody], ROWS, 500) == pytest.approx(0)
    assert relative_errors(release, [RangeQuery({"a": (4, 5)})], ROWS, 10**9)[0] < 1 / (FLOOR * 10**6)
