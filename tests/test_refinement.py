"""What a cell's own noisy count adds to what its group expects: the posterior mean, against sums over all counts."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from sfumato.models.coclusters import LEAST_EXPECTED, SHAPES, Posterior, dispersion, refined


def mean_by_hand(shape: float, rate: float, expected: float, noisy: float) -> float:
    """Sum over every count that is at all probable."""
    counts = np.arange(max(noisy, 0) + 60 / rate + 200 * (1 + expected))
    logs = gammaln(counts + shape) - gammaln(counts + 1) + counts * np.log(expected / (shape + expected))
    logs -= rate * np.abs(counts - noisy)
    weights = np.exp(logs - logs.max())
    return float(weights @ counts / weights.sum())


@pytest.mark.parametrize("rate", [0.002, 0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("shape", [SHAPES[0], 0.3, 5.0, SHAPES[1]])
def test_posterior_means_are_sums_over_all_counts(shape: float, rate: float) -> None:
    """Those near to what is expected; where a count is a surprise, the mean turns too fast to be interpolated."""
    expected = np.repeat([1e-4, 0.03, 0.5, 4.0, 60.0, 900.0], 5)
    noisy = np.rint(expected + np.tile([-3, -1, 0, 1, 3], 6) / rate).astype(np.int64)
    means = Posterior.of(shape, rate, expected, noisy).at(noisy, expected)
    by_hand = [mean_by_hand(shape, rate, *pair) for pair in zip(expected, np.maximum(noisy, 0), strict=True)]
    assert means == pytest.approx(by_hand, rel=0.06, abs=0.02)


@pytest.mark.parametrize("expected", [1e-6, 0.2, 30.0])
@pytest.mark.parametrize("noisy", [0, 1, 7, 40, 800])
def test_nodes_are_exact(expected: float, noisy: int) -> None:
    table = Posterior.of(1.0, 0.25, np.array([expected]), np.array([noisy]))
    wanted = mean_by_hand(1.0, 0.25, expected, noisy)
    assert table.at(np.array([noisy]), np.array([expected])) == pytest.approx([wanted], rel=2e-3, abs=1e-7)


def test_a_large_expectation_elsewhere_does_not_blur_small_counts() -> None:
    expected, noisy = np.array([0.5, 3.0, 5000.0]), np.array([2, 1, 9000])
    means = Posterior.of(0.3, 1.0, expected, noisy).at(noisy, expected)
    assert means[:2] == pytest.approx([mean_by_hand(0.3, 1.0, 0.5, 2), mean_by_hand(0.3, 1.0, 3.0, 1)], rel=0.06)


def test_without_noise_counts_are_believed() -> None:
    noisy = np.array([0, 1, 2, 17, 4000])
    assert refined(noisy, Fraction(50), np.array([2.0, 5.0, 0.5, 1.0, 100.0])) == pytest.approx(noisy, abs=1e-6)


def test_with_huge_noise_what_is_expected_stays() -> None:
    expected = np.array([0.01, 0.4, 5.0, 60.0])
    noisy = np.array([3, -1, 2, -4]) * 10**6
    assert refined(noisy, Fraction(1, 10**6), expected) == pytest.approx(expected, rel=0.05, abs=1e-3)


@pytest.mark.parametrize("expected", [0.0, LEAST_EXPECTED, 3.0])
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1), Fraction(1000)])
def test_one_kind_of_cell_alone(expected: float, rate: Fraction) -> None:
    for noisy in (-2, 0, 1):
        assert np.isfinite(refined(np.full(4, noisy), rate, np.full(4, expected))).all()


def test_below_none_all_counts_say_the_same() -> None:
    expected = np.array([0.3, 0.3, 0.3, 0.3, 20.0])
    means = refined(np.array([0, -1, -50, -(10**6), 25]), Fraction(1, 2), expected)
    assert means[:4].tolist() == [means[0]] * 4


def test_how_far_cells_depart_is_learnt() -> None:
    rng = np.random.default_rng(0)
    expected = np.full(20_000, 30.0)
    for shape in (0.5, 3.0):
        counts = rng.poisson(expected * rng.gamma(shape, 1 / shape, len(expected)))
        noise = rng.geometric(0.4, len(counts)) - rng.geometric(0.4, len(counts))
        rate = Fraction(float(-np.log(0.6))).limit_denominator(1000)
        assert dispersion(counts + noise, rate, expected) == pytest.approx(shape, rel=0.1)
    assert dispersion(rng.poisson(expected), Fraction(50), expected) == SHAPES[1]


def test_refined_cells_are_nearer_to_the_truth_than_either_source() -> None:
    rng = np.random.default_rng(1)
    expected = rng.gamma(0.2, 20, 50_000)
    counts = rng.poisson(expected * rng.gamma(1.0, 1.0, len(expected)))
    noisy = counts + rng.geometric(0.2, len(counts)) - rng.geometric(0.2, len(counts))
    means = refined(noisy, Fraction(223, 1000), expected)
    error = [np.abs(one - counts).sum() for one in (means, expected, np.maximum(noisy, 0))]
    assert error[0] < 0.8 * min(error[1:])


def test_a_million_cells_take_seconds() -> None:
    rng = np.random.default_rng(2)
    expected = rng.gamma(0.1, 30, 1_000_000)
    noisy = rng.poisson(expected) + rng.integers(-20, 21, 1_000_000)
    began = time.perf_counter()
    assert refined(noisy, Fraction(1, 5), expected).shape == (1_000_000,)
    assert time.perf_counter() - began < 10


@given(
    st.lists(st.tuples(st.integers(-(10**7), 10**7), st.floats(0, 1e7)), min_size=1, max_size=30),
    st.fractions(Fraction(1, 10**6), 1000, max_denominator=10**6).filter(bool),
)
def test_means_are_finite_and_not_negative(cells: list[tuple[int, float]], rate: Fraction) -> None:
    noisy, expected = np.array([count for count, _ in cells]), np.array([guess for _, guess in cells])
    means = refined(noisy, rate, expected)
    assert np.isfinite(means).all()
    assert (means >= 0).all()
