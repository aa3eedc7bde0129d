"""Measures measure what they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Release, Schema
from sfumato.evaluate.classification import accuracy
from sfumato.evaluate.queries import FLOOR, RangeQuery, random_queries, relative_errors
from sfumato.partition import Grid
from sfumato.privacy.budget import Debit
from sfumato.privacy.noisy import Noisy
from sfumato.release.manifest import Manifest

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  single: {kind: categorical, taxonomy: [only]}
  class: {kind: class, taxonomy: [no, yes]}
""")
GRID = Grid(((0, 4, 10), (0, 1, 2, 3), (0, 1)))
ROWS = {
    "a": np.random.default_rng(0).integers(0, 10, 500).astype(np.uint8),
    "b": np.random.default_rng(1).integers(0, 3, 500).astype(np.uint8),
    "single": np.zeros(500, np.uint8),
}


def exact_release(grid: Grid, classes: np.ndarray) -> Release:
    """Count the rows without noise."""
    regions = grid.locate([ROWS["a"], ROWS["b"], ROWS["single"]])
    counts = np.bincount(regions * 2 + classes, minlength=2 * grid.regions).reshape(-1, 2)
    debit = Debit("counts", "discrete Laplace", Fraction(1), Fraction(1), counts.size)
    manifest = Manifest("0", "none", "exact", {}, (debit,), False, SCHEMA.digest)
    return Release(SCHEMA, grid, Noisy(counts, Fraction(1)), {}, manifest)


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
    empty = Release(SCHEMA, GRID, Noisy(-1 - release.counts.counts, Fraction(1)), {}, release.manifest)
    assert accuracy(empty, ROWS | {"class": classes}) == (classes == 0).mean()


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
    off = Release(SCHEMA, GRID, Noisy(release.counts.counts + 1, Fraction(1)), {}, release.manifest)
    everyone, nobody = RangeQuery({"a": (0, 10)}), RangeQuery({"a": (5, 5)})
    assert relative_errors(off, [everyone], ROWS, 500) == pytest.approx(12 / 500)
    assert relative_errors(off, [nobody], ROWS, 500) == pytest.approx(0)
    assert relative_errors(release, [RangeQuery({"a": (4, 5)})], ROWS, 10**9)[0] < 1 / (FLOOR * 10**6)
