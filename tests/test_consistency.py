"""The linear-time passes give what a dense solver gives, and the people they share out are people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measured_trees import Case, cases, sums_of_children, thorough
from sfumato.geometry.halving import levels_of
from sfumato.models.consistency import Consistent, project


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
