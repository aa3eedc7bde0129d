"""Distances of marginals, against SciPy and against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cityblock
from scipy.stats import entropy

from sfumato import Schema
from sfumato.evaluate.fidelity import (
    chosen_marginals,
    city_block,
    distances,
    hellinger,
    hellinger_distance,
    joint_counts,
    kullback_leibler,
    marginal_distances,
    total_variation,
)

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
