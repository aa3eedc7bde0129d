"""Distances of tables, information that is lost, and errors of counts, against SciPy and their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cityblock
from scipy.stats import entropy

from counted_rows import COLUMNS, GRID, ROWS, exact_release
from counted_rows import SCHEMA as COUNTED
from handmade import released
from sfumato import Schema
from sfumato.evaluate import fidelity
from sfumato.evaluate.fidelity import (
    FLOOR,
    RangeQuery,
    certainty_penalty,
    certainty_penalty_of,
    chosen_marginals,
    city_block,
    discernibility,
    distances,
    errors_by_size,
    heights_of,
    hellinger,
    hellinger_distance,
    joint_counts,
    kullback_leibler,
    marginal_distances,
    precision_of,
    random_queries,
    relative_errors,
    total_variation,
)
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition
from trees import random_trees

SCHEMA = Schema.loads("""
attributes:
  id: {kind: identifier}
  a: {kind: numeric, lower: 0, upper: 3}
  b: {kind: categorical, taxonomy: [x, y, z]}
  class: {kind: class, taxonomy: [no, yes]}
""")
SHAPE = {"a": 4, "b": 3, "class": 2}


def rows_of(size: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.binomial(leaves - 1, rng.random(), size) for name, leaves in SHAPE.items()}


COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8).filter(
    lambda cells: all(sum(side) for side in zip(*cells, strict=True))
)


@given(COUNTS)
def test_distances_are_those_of_scipy_and_of_their_definitions(cells) -> None:
    one, other = (np.array(side) for side in zip(*cells, strict=True))
    p, q = one / one.sum(), other / other.sum()
    assert city_block(one, other) == pytest.approx(cityblock(p, q))
    sets = itertools.product([False, True], repeat=len(p))
    largest = max(abs(p[list(chosen)].sum() - q[list(chosen)].sum()) for chosen in sets)
    assert total_variation(one, other) == pytest.approx(largest)
    assert hellinger_distance(one, other) == pytest.approx(
        np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2), abs=1e-7
    )
    smoothed = (other + 1 / len(p)) / (other.sum() + 1)
    assert smoothed.sum() == pytest.approx(1)
    assert kullback_leibler(one, other, len(p)) == pytest.approx(entropy(p, smoothed), abs=1e-12)


def test_the_distance_of_tables_is_that_of_the_definition() -> None:
    one, other = rows_of(500, 1), rows_of(300, 2)
    edges = [np.arange(leaves + 1) for leaves in SHAPE.values()]
    p, q = (np.histogramdd(np.stack(list(t.values()), axis=1), edges)[0] for t in (one, other))
    p, q = p / p.sum(), q / q.sum()
    assert hellinger(one, other, list(one)) == pytest.approx(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2))
    assert hellinger(one, one, ["a", "b"]) == pytest.approx(0, abs=1e-7)
    assert hellinger(one, {name: column[:0] for name, column in one.items()}, ["a"]) == 1


def test_what_is_never_drawn_costs_much_and_not_everything() -> None:
    assert kullback_leibler(np.array([4, 0]), np.array([0, 9]), 2) == pytest.approx(np.log(20))
    assert kullback_leibler(np.array([4, 4]), np.array([0, 0]), 2) == pytest.approx(0)
    assert total_variation(np.array([4, 4]), np.array([0, 0])) == 1


@pytest.mark.parametrize("names", [["a"], ["b", "class"], ["a", "b", "class"]])
def test_joint_counts_are_those_of_a_dense_histogram(names: list[str]) -> None:
    one, other = rows_of(200, 1), rows_of(5, 2)
    edges = [np.arange(SHAPE[name] + 1) for name in names]
    dense = [np.histogramdd(np.stack([t[name] for name in names], axis=1), edges)[0].ravel() for t in (one, other)]
    filled = dense[0] + dense[1] > 0
    for found, expected in zip(joint_counts(one, other, names), dense, strict=True):
        assert np.array_equal(found, expected[filled])


def test_few_rows_in_a_vast_domain_are_counted_alike() -> None:
    far = {"a": np.array([0, 10**6, 10**6]), "b": np.array([0, 10**9, 10**9])}
    assert [one.tolist() for one in joint_counts(far, far, ["a", "b"])] == [[1, 2], [1, 2]]


def test_all_marginals_or_a_seeded_selection() -> None:
    names = [f"c{number}" for number in range(20)]
    assert chosen_marginals(names, 2, 190, seed=1) == list(itertools.combinations(names, 2))
    chosen = chosen_marginals(names, 3, 50, seed=1)
    assert len(set(chosen)) == 50
    assert set(chosen) <= set(itertools.combinations(names, 3))
    assert chosen == chosen_marginals(names, 3, 50, seed=1)
    assert chosen != chosen_marginals(names, 3, 50, seed=2)


def test_mean_and_worst_are_over_all_marginals() -> None:
    table, drawn = rows_of(300, 1), rows_of(300, 2)
    found = {(one.ways, one.distance): one for one in marginal_distances(SCHEMA, table, drawn)}
    assert len(found) == 12
    assert [found[ways, "Hellinger"].of for ways in (1, 2, 3)] == [3, 3, 1]
    pairs = list(itertools.combinations(SHAPE, 2))
    by_hand = [hellinger(table, drawn, pair) for pair in pairs]
    two = found[2, "Hellinger"]
    assert (two.mean, two.worst) == pytest.approx((np.mean(by_hand), max(by_hand)))
    assert (two.worst_of, two.measured) == (pairs[int(np.argmax(by_hand))], 3)
    for (_, distance), one in found.items():
        assert one.mean <= one.worst
        assert distances(SCHEMA, table, drawn, one.worst_of)[distance] == one.worst
        assert found[1, distance].worst <= found[3, distance].worst + 1e-12


def test_a_table_is_no_distance_from_itself() -> None:
    table = rows_of(300, 1)
    for one in marginal_distances(SCHEMA, table, table):
        assert one.worst == pytest.approx(0, abs=0.02 if one.distance == "Kullback-Leibler" else 1e-7)


def test_a_single_attribute_has_no_pairs() -> None:
    schema = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 3}}")
    found = marginal_distances(schema, {"a": np.arange(4)}, {"a": np.arange(4)})
    assert {one.ways for one in found} == {1}


# Information.


@given(random_trees(COUNTED.shape) | st.just(GRID))
def test_information_is_lost_row_by_row(partition: Partition) -> None:
    """Compare with what each row pays, read off its own box."""
    boxes = partition.boxes(0, partition.regions) if isinstance(partition, Grid) else partition.boxes[partition.ends]
    mine = boxes[partition.regions_of(COLUMNS)]
    alike = sum(int((mine == box).all(axis=(1, 2)).sum()) for box in mine)
    widths = mine[..., 1] - mine[..., 0]
    shares = [
        [0 if width == 1 else width / all_ for width, all_ in zip(row, COUNTED.shape, strict=True)] for row in widths
    ]
    assert discernibility(partition, COLUMNS) == alike
    assert certainty_penalty(partition, COLUMNS) == pytest.approx(np.mean(shares))


def test_the_whole_hides_everything_and_leaves_hide_nothing() -> None:
    whole, leaves = Grid.whole((10, 3)), Grid((tuple(range(11)), tuple(range(4))))
    assert discernibility(whole, COLUMNS[:2]) == 500**2
    assert certainty_penalty(whole, COLUMNS[:2]) == 1
    assert certainty_penalty(leaves, COLUMNS[:2]) == 0
    assert certainty_penalty(whole, [column[:0] for column in COLUMNS[:2]]) == 0


# Heights and precision.

NESTED = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: {p: [x, y], q: {r: [z, w], s: [v]}, u: }}
  class: {kind: class, taxonomy: [no, yes]}
""")
HALVES = Grid(((0, 4, 10), (0, 2, 5, 6)))


def test_heights_are_shares_of_the_way_to_the_root() -> None:
    """B is a tree of x, y under p; z, w under r under q; v under s under q; and u."""
    column = NESTED.predictors["b"]
    nodes = Grid(((0, 4, 10), (0, 2, 4, 5, 6)))
    assert heights_of(column, nodes.sides(1)).tolist() == pytest.approx([1 - 1 / 2, 1 - 2 / 3, 0, 0])
    assert heights_of(column, HALVES.sides(1)).tolist() == pytest.approx([1 - 1 / 2, 1 - 1 / 3, 0])
    assert heights_of(column, Grid.whole((10, 6)).sides(1)).tolist() == [1]
    mixed = Grid.of_groups([[list(range(10))], [[2, 4], [0, 5], [1, 3]]])
    assert heights_of(column, mixed.sides(1)).tolist() == pytest.approx([1 - 1 / 3, 1, 1])


def test_intervals_are_as_high_as_if_the_grid_were_halved() -> None:
    column = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 15}}").predictors["a"]
    assert heights_of(column, Grid(((0, 1, 2, 4, 8, 16),)).sides(0)) == pytest.approx([0, 0, 1 / 4, 2 / 4, 3 / 4])
    assert heights_of(column, Grid(((0, 16),)).sides(0)).tolist() == [1]


def test_precision_averages_over_rows_and_attributes() -> None:
    columns, sizes = list(NESTED.predictors.values()), np.array([1, 0, 0, 2, 0, 1])
    heights = [np.log10([4, 6, 6, 6]), [1 / 2, 1 / 2, 1 / 2, 0]]
    assert precision_of(columns, HALVES, sizes) == pytest.approx(1 - np.mean(heights))
    assert precision_of(columns, Grid.whole((10, 6)), np.array([5])) == 0
    assert precision_of(columns, HALVES, np.zeros(6, int)) == 1
    assert certainty_penalty_of(HALVES, np.zeros(6, int)) == 0


# Queries.


@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 3), st.integers(0, 3))
def test_the_truth_is_a_plain_count(left: int, right: int, low: int, high: int) -> None:
    query = RangeQuery({"a": (left, right), "b": (low, high)})
    inside = sum(left <= a < right and low <= b < high for a, b in zip(ROWS["a"], ROWS["b"], strict=True))
    assert query.truth(ROWS) == inside


def test_a_query_without_ranges_counts_everyone() -> None:
    assert RangeQuery({}).truth(ROWS) == 500


def test_weights_are_one_inside() -> None:
    weights = RangeQuery({"a": (2, 4)}).weights(COUNTED)
    assert {name: np.flatnonzero(one).tolist() for name, one in weights.items()} == {"a": [2, 3]}


def test_random_queries_are_reproducible_and_within_the_domain() -> None:
    queries = random_queries(COUNTED, 200, seed=5, attributes=(1, 2))
    assert queries == random_queries(COUNTED, 200, seed=5, attributes=(1, 2))
    assert queries != random_queries(COUNTED, 200, seed=6, attributes=(1, 2))
    assert {len(query.ranges) for query in queries} == {1, 2}
    sizes = {name: column.leaves for name, column in COUNTED.predictors.items()}
    assert all(0 <= lo < hi <= sizes[name] for query in queries for name, (lo, hi) in query.ranges.items())
    assert not any("single" in query.ranges for query in queries)


def test_exact_counts_of_whole_groups_have_no_error() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    aligned = [RangeQuery({"a": (0, 4), "b": (1, 3)}), RangeQuery({"a": (4, 10)}), RangeQuery({"b": (0, 3)})]
    assert relative_errors(release, aligned, ROWS, 500) == pytest.approx(0, abs=1e-12)


def test_errors_are_relative_with_a_floor() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    off = released(COUNTED, GRID, release.model.counts.counts + 1)
    everyone, nobody = RangeQuery({"a": (0, 10)}), RangeQuery({"a": (5, 5)})
    assert relative_errors(off, [everyone], ROWS, 500) == pytest.approx(12 / 500)
    assert relative_errors(off, [nobody], ROWS, 500) == pytest.approx(0)
    assert relative_errors(release, [RangeQuery({"a": (4, 5)})], ROWS, 10**9)[0] < 1 / (FLOOR * 10**6)


def test_queries_are_asked_in_parts_that_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    release, asked = exact_release(GRID, np.zeros(500, np.uint8)), random_queries(COUNTED, 25, seed=1)
    at_once = relative_errors(release, asked, ROWS, 500)
    monkeypatch.setattr(fidelity, "MOST_AT_ONCE", 100)
    assert np.array_equal(relative_errors(release, asked, ROWS, 500), at_once)


def test_errors_of_small_and_large_queries_stand_apart() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    asked = [RangeQuery({"a": (5, 6), "b": (0, 1)}), RangeQuery({"a": (4, 10)}), RangeQuery({"a": (9, 9)})]
    errors = relative_errors(release, asked, ROWS, 500)
    shares = [query.truth(ROWS) / 500 for query in asked]
    assert shares[2] == 0
    assert 0.01 <= shares[0] <= 0.1 < shares[1]
    everything, small, large = errors_by_size(release, asked, ROWS, 500)
    assert (everything.queries, everything.mean, everything.median) == (3, errors.mean(), np.median(errors))
    assert (small.queries, small.mean) == (1, errors[2])
    assert (large.queries, large.mean) == (1, errors[1])
    assert [one.size for one in errors_by_size(release, asked[:1], ROWS, 500)] == ["all"]
