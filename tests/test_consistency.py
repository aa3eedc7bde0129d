"""The linear-time passes give what a dense solver gives, and the people they share out are people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from measured_trees import Case, cases, sums_of_children, thorough
from sfumato.geometry.halving import levels_of
from sfumato.models.consistency import Consistent, nearest, nonnegative, project, whole


@thorough
@given(cases())
def test_values_are_the_least_squares_solution(case: Case) -> None:
    values = case.consistent.values
    assert np.allclose(values, case.values, rtol=1e-7, atol=1e-7)
    assert np.allclose(values, sums_of_children(case.parents, values), rtol=1e-9, atol=1e-9)


@thorough
@given(cases())
def test_variance_of_weighted_sums(case: Case) -> None:
    expected = np.einsum("qi,ij,qj->q", case.weights, case.covariance, case.weights)
    assert np.allclose(case.consistent.variance(case.weights), expected, rtol=1e-6, atol=1e-9)
    assert np.isclose(float(case.consistent.variance(case.weights[0])), expected[0], rtol=1e-6, atol=1e-9)


@thorough
@given(cases())
def test_variance_of_every_node(case: Case) -> None:
    consistent = case.consistent
    assert np.allclose(consistent.variances(), np.diag(case.covariance), rtol=1e-7)
    assert np.allclose(consistent.variances(), consistent.variance(np.eye(len(case.parents))), rtol=1e-9)


@thorough
@given(cases())
def test_variance_is_that_of_the_measurements_coefficients(case: Case) -> None:
    """Values are linear in what was measured, so their response to unit measurements gives the variance, too."""
    seen = case.precision > 0
    unit = Consistent.of(case.parents, np.eye(len(case.parents)), case.precision)
    coefficients = (case.weights @ unit.values)[:, seen]
    expected = (coefficients**2 / case.precision[seen]).sum(axis=1)
    assert np.allclose(case.consistent.variance(case.weights), expected, rtol=1e-9)


@thorough
@given(cases())
def test_coefficients_are_the_response_to_unit_measurements(case: Case) -> None:
    seen = case.precision > 0
    measured = np.where(seen[:, None], case.measured, 0.0)
    for consistent in (case.consistent, case.published):
        responses = consistent.passes.values(np.eye(len(seen))) * seen
        coefficients = consistent.coefficients(case.weights)
        assert np.allclose(coefficients, case.weights @ responses, atol=1e-9)
        assert np.allclose(consistent.coefficients(case.weights[0]), coefficients[0], atol=1e-12)
        assert np.allclose(coefficients @ measured, case.weights @ consistent.values, atol=1e-6)
        single = consistent.coefficients(case.weights.astype(np.float32))
        assert single.dtype == np.float32
        assert np.allclose(single, coefficients, atol=1e-3)


# The paper's weights.


@thorough
@given(cases())
def test_published_values_and_variances_are_those_of_the_listing(case: Case) -> None:
    matrix, seen = case.published_matrix, case.precision > 0
    measured = np.where(seen[:, None], case.measured, 0.0)
    noise = np.divide(1, case.precision, out=np.zeros(len(seen)), where=seen)
    covariance = (matrix * noise) @ matrix.T
    assert np.allclose(case.published.values, matrix @ measured, atol=1e-7)
    assert np.allclose(case.published.values, sums_of_children(case.parents, case.published.values), atol=1e-7)
    assert np.allclose(case.published.variances(), np.diag(covariance), rtol=1e-7)
    expected = np.einsum("qi,ij,qj->q", case.weights, covariance, case.weights)
    assert np.allclose(case.published.variance(case.weights), expected, rtol=1e-7, atol=1e-9)


@thorough
@given(cases())
def test_least_squares_is_never_worse_than_the_paper(case: Case) -> None:
    assert (case.consistent.variances() <= case.published.variances() * (1 + 1e-9)).all()
    assert (case.consistent.variance(case.weights) <= case.published.variance(case.weights) * (1 + 1e-9)).all()


def test_on_an_irregular_tree_least_squares_is_better() -> None:
    parents = np.array([-1, 0, 0, 1, 1, 1, 1, 3, 3])
    measured, precision = np.zeros((9, 1)), np.ones(9)
    ours, theirs = (make(parents, measured, precision) for make in (Consistent.of, Consistent.as_published))
    assert (ours.variances() < theirs.variances() - 1e-4).any()


@pytest.mark.parametrize(("fan_out", "height"), [(2, 1), (2, 2), (2, 6), (3, 4), (5, 3), (10, 2)])
def test_on_full_trees_with_equal_noise_the_paper_is_hay_et_al_and_least_squares(fan_out: int, height: int) -> None:
    """Hay et al. give a node with l levels below and including its own the say (k^l - k^(l-1)) / (k^l - 1)."""
    size = (fan_out**height - 1) // (fan_out - 1)
    parents = (np.arange(size) - 1) // fan_out
    measured = np.random.default_rng(size).normal(20, 9, (size, 2))
    ours, theirs = (make(parents, measured, np.full(size, 0.3)) for make in (Consistent.of, Consistent.as_published))
    depths = np.zeros(size, int)
    for node in range(1, size):
        depths[node] = depths[parents[node]] + 1
    powers = float(fan_out) ** (height - depths)
    assert np.allclose(1 - theirs.passes.left, (powers - powers / fan_out) / (powers - 1))
    assert np.allclose(theirs.passes.left, ours.passes.left)
    assert np.allclose(theirs.passes.shares, ours.passes.shares)
    assert np.allclose(theirs.values, ours.values)
    assert np.allclose(theirs.passes.upward, ours.passes.upward)


def test_the_papers_example() -> None:
    """Figure 3: A, B, C, D = 2, 3, 0, 3, AB = 6, CD = 0, all 7."""
    tree = Consistent.as_published([-1, 0, 0, 1, 1, 2, 2], [[7.0], [6], [0], [2], [3], [0], [3]], np.ones(7))
    upward = [(2 * 6 + 5) / 3, (0 + 3) / 3]
    root = (4 * 7 + 3 * sum(upward)) / 7
    assert np.isclose(tree.values[0, 0], root)
    assert np.allclose(tree.values[1:3, 0], np.array(upward) + (root - sum(upward)) / 2)


# Least squares again.


@thorough
@given(cases())
def test_consistent_measurements_stay_and_every_measurement_helps(case: Case) -> None:
    truth = case.incidence @ np.arange(float(case.incidence.shape[1]))[:, None]
    assert np.allclose(Consistent.of(case.parents, truth, case.precision).values, truth, rtol=1e-9, atol=1e-9)
    seen = case.precision > 0
    assert (case.consistent.variances()[seen] <= 1 / case.precision[seen] * (1 + 1e-12)).all()


def test_a_chain_combines_by_inverse_variance() -> None:
    measured, precision = np.array([[10.0], [4.0], [np.nan], [1.0]]), np.array([1.0, 2.0, 0.0, 5.0])
    chain = Consistent.of(np.array([-1, 0, 1, 2]), measured, precision)
    assert np.allclose(chain.values, (10 + 2 * 4 + 5 * 1) / 8)
    assert np.allclose(chain.variances(), 1 / 8)
    assert np.isclose(chain.variance([0, 1, 0, -1]), 0.0)


@pytest.mark.parametrize("height", [1, 2, 5, 8])
def test_a_full_binary_tree_is_that_of_hay_et_al(height: int) -> None:
    """Unrolled, their root is the sum over depths i of 2^(height - 1 - i) / (2^height - 1) times the sum at depth i."""
    size = 2**height - 1
    parents = (np.arange(size) - 1) // 2
    measured = np.random.default_rng(height).normal(7, 3, (size, 2))
    tree = Consistent.of(parents, measured, np.full(size, 0.25))
    weights = 2.0 ** (height - 1 - np.floor(np.log2(np.arange(1, size + 1)))) / size
    assert np.allclose(tree.values[0], weights @ measured)
    assert np.isclose(tree.variances()[0], 4 * 2 ** (height - 1) / size)


def test_an_ignored_measurement_does_not_matter() -> None:
    parents, precision = np.array([-1, 0, 0]), [0, 1, 2]
    one, other = (Consistent.of(parents, [[root], [3.0], [4.0]], precision) for root in (np.inf, -8.0))
    assert one.values.ravel().tolist() == other.values.ravel().tolist() == [7.0, 3.0, 4.0]


@thorough
@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.sampled_from([np.float32, np.float64]))
def test_families_are_summed_alike_whether_wide_or_narrow(sizes: list[int], dtype: type) -> None:
    parents = np.concatenate(([-1], np.zeros(len(sizes), int), np.repeat(np.arange(1, len(sizes) + 1), sizes)))
    rows = np.arange(2.0 * sum(sizes)).reshape(-1, 2).astype(dtype)
    sums = levels_of(parents)[1].sums(rows)
    assert sums.dtype == dtype
    assert np.array_equal(sums, np.add.reduceat(rows, np.cumsum([0, *sizes[:-1]])))


def test_levels_put_siblings_side_by_side() -> None:
    parents = np.array([-1, 0, 0, 2, 1, 2, 3])
    levels = levels_of(parents)
    assert [level.nodes.tolist() for level in levels] == [[1, 2], [4, 3, 5], [6]]
    assert [level.heads.tolist() for level in levels] == [[0], [1, 2], [3]]
    assert levels[1].family.tolist() == [0, 1, 1]


def test_a_single_node_is_its_measurement() -> None:
    tree = Consistent.of(np.array([-1]), [[3.6, -2.0]], [4])
    assert tree.values.tolist() == [[3.6, -2.0]]
    assert tree.variances().tolist() == [0.25]
    assert float(tree.variance([2])) == 1.0
    assert project(np.array([-1]), tree.values, tree.passes.shares).tolist() == [[2, 0]]


def test_a_large_tree() -> None:
    size = 300_001
    rng = np.random.default_rng(1)
    parents = np.concatenate(([-1], rng.integers(np.arange(size - 1) // 3, np.arange(1, size))))
    precision = np.where(np.isin(np.arange(size), parents), rng.integers(0, 3, size), 1)
    tree = Consistent.of(parents, rng.normal(1, 5, (size, 2)), precision)
    assert np.allclose(tree.values, sums_of_children(parents, tree.values), rtol=1e-6, atol=1e-6)
    leaves = (~np.isin(np.arange(size), parents)).astype(float)
    assert np.isclose(tree.variance(leaves), tree.variances()[0])
    people = project(parents, tree.values, tree.passes.shares)
    assert (people >= 0).all()
    assert (people == sums_of_children(parents, people)).all()


@pytest.mark.parametrize("parents", [[], [0], [-1, 1], [-1, 2, 0], [-1, -1], [-1, 0, -2], [[-1, 0]]])
def test_a_tree_that_is_none_is_refused(parents: list[int]) -> None:
    numbers = np.ones(np.shape(parents))
    with pytest.raises(ValueError, match=r"root|precede"):
        Consistent.of(np.array(parents, np.int64), numbers[..., None], numbers)
    with pytest.raises(ValueError, match=r"root|precede"):
        project(np.array(parents, np.int64), numbers[..., None], numbers)


@pytest.mark.parametrize(
    ("measured", "precision", "problem"),
    [
        ([[1], [1], [1]], [1, 1, 0], "every leaf must be measured"),
        ([[1], [1], [1]], [1, 1, -1], "finite"),
        ([[1], [1], [1]], [1, 1, np.inf], "finite"),
        ([[1], [1], [np.nan]], [1, 1, 1], "finite"),
        ([[1], [1]], [1, 1, 1], "one row"),
        ([1, 1, 1], [1, 1, 1], "one row"),
        ([[1], [1], [1]], [1, 1], "one precision"),
    ],
)
def test_measurements_that_do_not_do_are_refused(measured: list, precision: list, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Consistent.of(np.array([-1, 0, 0]), measured, precision)


def test_weights_and_variances_that_do_not_do_are_refused() -> None:
    tree = Consistent.of(np.array([-1, 0, 0]), np.ones((3, 1)), np.ones(3))
    for weights in ([1, 1], 1.0, np.ones((3, 2))):
        with pytest.raises(ValueError, match="one weight per node"):
            tree.variance(weights)
        with pytest.raises(ValueError, match="one weight per node"):
            tree.coefficients(weights)
    for shares in ([1, 0, 1], [1, 1], [1, 1, np.inf]):
        with pytest.raises(ValueError, match="greater than 0"):
            project(np.array([-1, 0, 0]), np.ones((3, 1)), shares)


# People shared out, of a grid or down a tree: whole, none negative, none lost, as near as can be.


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
