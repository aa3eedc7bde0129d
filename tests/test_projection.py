"""Counts made people, of a grid or down a tree: whole, none negative, none lost, as near to the estimates as can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from measured_trees import Case, cases, sums_of_children, thorough
from sfumato.models.consistency import nearest, nonnegative, project, whole


def bisected(estimates: np.ndarray, variances: np.ndarray, total: int) -> np.ndarray:
    """Find max(u - t v, 0) of the given sum by halving the interval in which t lies."""
    low, high = ((estimates - total) / variances).min() - 1, (estimates / variances).max() + 1
    low = min(low, -total / variances.min() + (estimates / variances).min())
    for _ in range(100):
        middle = (low + high) / 2
        above = np.maximum(estimates - middle * variances, 0).sum() > total
        low, high = (middle, high) if above else (low, middle)
    return np.maximum(estimates - low * variances, 0)


families = st.lists(
    st.tuples(
        st.integers(0, 40), st.lists(st.tuples(st.floats(-50, 50), st.floats(0.01, 100)), min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=5,
)


@thorough
@given(families)
def test_nearest_and_whole_against_bisection(drawn: list[tuple[int, list[tuple[float, float]]]]) -> None:
    estimates, variances = np.array([child for _, children in drawn for child in children]).T
    family = np.repeat(np.arange(len(drawn)), [len(children) for _, children in drawn])
    totals = np.array([total for total, _ in drawn])
    wanted = nearest(estimates, variances, family, totals)
    people = whole(wanted, family, totals)
    for index, total in enumerate(totals):
        mine = family == index
        assert np.allclose(wanted[mine], bisected(estimates[mine], variances[mine], total), atol=1e-6)
        assert people[mine].sum() == total
    assert (people >= 0).all()
    assert (np.abs(people - wanted) < 1 + 1e-6).all()
    assert not people[wanted == 0].any()


def test_nearest_is_the_solution_of_the_quadratic_program() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(5)
    for _ in range(5):
        estimates, variances = rng.normal(2, 6, 6), rng.uniform(0.5, 3, 6)
        found = nearest(estimates, variances, np.zeros(6, np.int64), np.array([9]))
        solved = optimize.minimize(
            lambda x, u=estimates, v=variances: ((x - u) ** 2 / v).sum(),
            np.full(6, 1.5),
            jac=lambda x, u=estimates, v=variances: 2 * (x - u) / v,
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 9},
            method="SLSQP",
            options={"ftol": 1e-12},
        )
        assert np.allclose(found, solved.x, atol=1e-3)


@thorough
@given(cases())
def test_projected_people_are_consistent(case: Case) -> None:
    consistent = case.consistent
    people = project(case.parents, consistent.values, consistent.passes.shares)
    assert people.dtype == np.int64
    assert people.shape == consistent.values.shape
    assert (people >= 0).all()
    assert (people == sums_of_children(case.parents, people)).all()
    assert people[0].sum() == max(round(float(consistent.values[0].sum())), 0)
    assert (people == project(case.parents, consistent.values, consistent.passes.shares)).all()


@thorough
@given(cases())
def test_each_family_is_within_one_of_its_nearest(case: Case) -> None:
    consistent = case.consistent
    people = project(case.parents, consistent.values, consistent.passes.shares)
    for parent in np.unique(case.parents[1:]):
        children = np.flatnonzero(case.parents == parent)
        for label in range(people.shape[1]):
            exact = bisected(
                consistent.values[children, label], consistent.passes.upward[children], people[parent, label]
            )
            assert (np.abs(people[children, label] - exact) < 1 + 1e-5).all()


@thorough
@given(cases())
def test_a_possible_table_is_left_alone(case: Case) -> None:
    truth = case.incidence @ np.arange(case.incidence.shape[1])[:, None]
    shares = case.consistent.passes.shares
    assert (project(case.parents, truth, shares) == truth).all()
    assert not project(case.parents, -truth - 1, shares).any()


def test_upward_metric_absorbs_what_the_downward_pass_moves() -> None:
    """Before the downward pass or after it: the children of one node differ by a multiple of their variances only."""
    estimates, variances = np.array([5.0, -3.0, 4.5, 0.2]), np.array([1.0, 2.0, 0.5, 4.0])
    family, totals = np.zeros(4, np.int64), np.array([8])
    moved = estimates + 0.7 * variances
    assert np.allclose(nearest(estimates, variances, family, totals), nearest(moved, variances, family, totals))


def test_whole_rounds_the_largest_remainders_up() -> None:
    wanted = np.array([0.2, 0.7, 0.0, 3.1, 0.4, 1.6])
    assert whole(wanted, np.array([0, 0, 0, 0, 1, 1]), np.array([4, 2])).tolist() == [0, 1, 0, 3, 0, 2]


def test_whole_shares_what_nobody_wants_and_ties_go_to_the_earlier() -> None:
    family = np.array([0, 0, 0, 1, 1, 2])
    wanted = np.array([0.0, 0.0, 0.0, 1.5, 1.5, 0.0])
    assert whole(wanted, family, np.array([5, 3, 0])).tolist() == [2, 2, 1, 2, 1, 0]


def test_far_too_large_noise_still_keeps_the_total() -> None:
    parents = np.array([-1] + [0] * 1000)
    values = np.concatenate(([1.0], np.full(1000, -1e14)))[:, None]
    people = project(parents, values, np.full(1001, 1e28))
    assert people[0, 0] == people[1:].sum() == 1
    assert (people >= 0).all()


@thorough
@given(cases())
def test_people_by_the_papers_weights_are_consistent_and_as_near_as_can_be(case: Case) -> None:
    published = case.published
    people = project(case.parents, published.values, published.passes.shares)
    assert (people >= 0).all()
    assert (people == sums_of_children(case.parents, people)).all()
    for parent in np.unique(case.parents[1:]):
        children = np.flatnonzero(case.parents == parent)
        for label in range(people.shape[1]):
            plain = bisected(published.values[children, label], np.ones(len(children)), people[parent, label])
            assert (np.abs(people[children, label] - plain) < 1 + 1e-5).all()


# Counts of a grid.


@given(st.lists(st.integers(-1000, 100_000), min_size=1, max_size=200))
@example([1, 0, 0, -1])
@example([5, 5, 5, -1])
@example([2**40, 1, 1, -(2**39) - 1])
def test_the_projection_keeps_the_noisy_total(counts: list[int]) -> None:
    projected = nonnegative(np.array(counts), "projection")
    assert (projected >= 0).all()
    assert projected.sum() == max(sum(counts), 0)


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=50))
def test_the_projection_keeps_the_order(counts: list[int]) -> None:
    projected = nonnegative(np.array(counts), "projection")
    falling = projected[np.argsort(np.array(counts), kind="stable")]
    assert (np.diff(falling) >= -1).all()
    if min(counts) >= 0:
        assert projected.tolist() == counts
