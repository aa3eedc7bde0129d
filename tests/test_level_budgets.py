"""Splits over levels go down, and end where a search of everything ends."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.methods.workloads import (
    ENOUGH,
    FOR_LEAVES,
    Demand,
    TreeQueries,
    best_split,
    cheapest,
    descent,
    even,
    expected_variance,
    leaves_only,
    level_grains,
    whole_grains,
)
from sfumato.models.consistency import Consistent
from sfumato.privacy.measurements import variance_of

GRAINS = 10**8
NUMBERS = st.just(0.0) | st.floats(0.5, 100)
thorough = settings(derandomize=True, deadline=None, max_examples=60, database=None)


def full_tree(fan_out: int, height: int) -> np.ndarray:
    return (np.arange((fan_out**height - 1) // (fan_out - 1)) - 1) // fan_out


@st.composite
def workloads(draw: st.DrawFn, most_height: int = 5) -> TreeQueries:
    """Draw a tree, leaves on several levels, and a few queries: sets, ranges or any weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    splits, most = draw(st.sampled_from([0.4, 0.7, 1.0])), draw(st.integers(2, 5))
    parents, frontier = [-1], [0]
    for _ in range(draw(st.integers(1, most_height - 1))):
        split = [node for node in frontier if node == frontier[0] or rng.random() < splits]
        children = np.repeat(split, rng.integers(2, most + 1, len(split))).tolist()
        frontier = list(range(len(parents), len(parents) + len(children)))
        parents += children
    leaves = int((np.bincount(parents[1:], minlength=len(parents)) == 0).sum())
    numbers = np.arange(leaves)
    ends = np.sort(rng.integers(0, leaves + 1, (4, 2)), axis=1)
    weights = {
        "sets": rng.random((4, leaves)) < 0.6,
        "ranges": (numbers >= ends[:, :1]) & (numbers < ends[:, 1:]),
        "any": rng.normal(size=(4, leaves)),
    }[draw(st.sampled_from(["sets", "ranges", "any"]))].astype(float)
    weights[0, 0] = 1.0
    return TreeQueries.of(parents, weights)


def variance_by_nodes(asked: TreeQueries, grains: tuple[int, ...]) -> float:
    """Sum the exact variances of all queries, every node of the tree by itself."""
    is_leaf = np.isin(np.arange(len(asked.parents)), asked.leaves)
    bought = [sum(grains[depth:]) if leaf else grains[depth] for depth, leaf in zip(asked.depths, is_leaf, strict=True)]
    precision = [1 / variance_of(Fraction(one, 10**9)) if one else 0.0 for one in bought]
    weights = np.zeros((asked.weights.shape[1], len(is_leaf)))
    weights[:, is_leaf] = asked.weights.T
    return float(Consistent.of(asked.parents, np.zeros((len(is_leaf), 1)), precision).variance(weights).sum())


@thorough
@given(workloads(), st.data())
def test_bundles_have_the_variance_of_the_whole_tree(asked: TreeQueries, data: st.DataObject) -> None:
    parts = st.lists(st.sampled_from([0, 0, 1, 3, 40]), min_size=asked.height - 1, max_size=asked.height - 1)
    grains = (*(10**7 * part for part in data.draw(parts)), 10**8)
    assert expected_variance(asked, grains) == pytest.approx(variance_by_nodes(asked, grains), rel=1e-5)


@thorough
@given(workloads(), st.integers(0, 5))
def test_the_way_down_goes_down(asked: TreeQueries, leaning: int) -> None:
    start = 2.0 ** (np.arange(asked.height) * leaning / 3)
    way = list(descent(asked.bundled(np.arange(asked.height)), start / start.sum()))
    variances = [variance for variance, _ in way]
    assert all(later < earlier * (1 - ENOUGH) for earlier, later in itertools.pairwise(variances))
    for _, split in way:
        assert split.sum() == pytest.approx(1)
        assert (split >= 0).all()
    for _, split in way[1:]:
        assert split[-1] >= FOR_LEAVES * (1 - 1e-9)


@thorough
@given(workloads())
def test_neither_leaves_only_nor_an_even_split_is_better(asked: TreeQueries) -> None:
    grains = level_grains(asked.parents, asked.weights.T, Fraction(1, 10))
    assert sum(grains) == GRAINS
    assert min(grains) >= 0
    ours = variance_by_nodes(asked, grains)
    for other in (leaves_only(asked.height), even(asked.height)):
        assert ours <= variance_by_nodes(asked, whole_grains(other, GRAINS)) * (1 + 1e-5)


@settings(thorough, max_examples=15)
@given(workloads(most_height=4))
def test_trying_everything_finds_nothing_better(asked: TreeQueries) -> None:
    steps = 12
    above = itertools.product(range(steps + 1), repeat=asked.height - 1)
    every = [(*parts, steps - sum(parts)) for parts in above if sum(parts) < steps]
    best = min(expected_variance(asked, tuple(part * GRAINS // steps for part in parts)) for parts in every)
    found = expected_variance(asked, level_grains(asked.parents, asked.weights.T, Fraction(1, 10)))
    assert found <= best * 1.005


def test_the_total_alone_goes_to_the_root() -> None:
    grains = level_grains(full_tree(3, 4), np.ones((1, 27)), Fraction(1))
    assert grains[0] == pytest.approx((1 - FOR_LEAVES) * 10**9, rel=1e-6)
    assert sum(grains) == 10**9


def test_single_leaves_go_to_the_leaves() -> None:
    assert level_grains(full_tree(3, 4), np.eye(27), Fraction(1)) == (0, 0, 0, 10**9)


def test_a_level_that_alone_is_asked_for_gets_it() -> None:
    blocks = np.repeat(np.eye(4), 4, axis=1)
    grains = level_grains(full_tree(4, 3), blocks, Fraction(1))
    assert grains[1] == pytest.approx((1 - FOR_LEAVES) * 10**9, rel=1e-3)


def test_a_short_branch_counts_on_what_it_leaves() -> None:
    """A leaf below the root gets the whole rest of its path, so nothing need be set aside for it."""
    parents, weights = [-1, 0, 0, 2, 2], [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]
    asked = TreeQueries.of(parents, weights)
    grains = level_grains(parents, weights, Fraction(1))
    assert grains == (0, 0, 10**9)
    assert variance_by_nodes(asked, grains) == pytest.approx(3 * variance_of(Fraction(1)))


def test_one_node_gets_everything() -> None:
    assert level_grains([-1], [[1.0]], Fraction(1, 3)) == (333_333_333,)


@thorough
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3), st.floats(0.5, 100), st.integers(0, 2**32 - 1))
def test_the_cheapest_split_is_cheaper_than_others(drawn: list, last: float, seed: int) -> None:
    demand = Demand(*np.array([*drawn, (0.0, last)]).T)

    def cost(split: np.ndarray) -> float:
        rest = np.cumsum(split[::-1])[::-1]
        inner = np.where(demand.inner > 0, demand.inner / np.maximum(split, 1e-12) ** 2, 0.0)
        return float((inner + demand.leaves / np.maximum(rest, 1e-12) ** 2).sum())

    rng, found = np.random.default_rng(seed), cheapest(demand)
    for near in (1, 30, 1000):
        for other in rng.dirichlet(found * near + 0.01, 20):
            if other[-1] >= FOR_LEAVES:
                assert cost(found) <= cost(other) * (1 + 1e-3)


def test_without_short_branches_the_rule_is_that_of_cube_roots() -> None:
    split = cheapest(Demand(np.array([8.0, 0.0, 27.0, 0.0]), np.array([0.0, 0.0, 0.0, 125.0])))
    assert np.allclose(split, [0.2, 0.0, 0.3, 0.5])


def test_large_budgets_do_not_overflow() -> None:
    grains = level_grains(full_tree(2, 5), np.eye(16)[:3], Fraction(1000))
    assert sum(grains) == 10**12


def test_the_split_does_not_depend_on_the_budget() -> None:
    asked = TreeQueries.of(full_tree(4, 4), np.tri(64)[::5])
    small, large = (
        np.array(level_grains(asked.parents, asked.weights.T, epsilon)) / float(epsilon) / 1e9
        for epsilon in (Fraction(1, 100), Fraction(1, 10))
    )
    assert np.allclose(small, large, atol=1e-6)
    assert np.allclose(small, best_split(asked), atol=1e-6)


@pytest.mark.parametrize("weights", [np.ones((1, 3)), np.ones((2, 5)), [[1, 1, 1, np.nan]], np.ones((1, 1, 4))])
def test_a_workload_that_does_not_fit_is_refused(weights: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one finite weight"):
        level_grains(full_tree(2, 3), weights, Fraction(1))


@pytest.mark.slow
def test_a_large_tree_takes_seconds() -> None:
    rng = np.random.default_rng(4)
    parents, frontier, size = [np.array([-1])], np.array([0]), 1
    for depth in range(13):
        split = frontier[rng.random(len(frontier)) < (1.0 if depth < 6 else 0.95)]
        parents.append(np.repeat(split, 3 if depth == 2 else 2))
        frontier = np.arange(size, size + len(parents[-1]))
        size += len(frontier)
    every = np.concatenate(parents)
    leaves = int((np.bincount(every[1:], minlength=size) == 0).sum())
    marks = np.sort(rng.integers(0, leaves, (64, 2)), axis=1)
    asked = TreeQueries.of(every, (np.arange(leaves) >= marks[:, :1]) & (np.arange(leaves) < marks[:, 1:]))
    paid = whole_grains(best_split(asked), GRAINS)
    assert expected_variance(asked, paid) < 0.2 * expected_variance(asked, whole_grains(leaves_only(14), GRAINS))
