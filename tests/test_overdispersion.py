"""Noisy counts made fit for co-clustering: what is taken for noise, and by how much the rest is discounted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.methods.dpcocgen import clipped, clipped_dispersion, corrected

RATES = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)]


@pytest.mark.parametrize("rate", RATES)
def test_the_dispersion_is_variance_over_mean_of_clipped_noise(rate: Fraction) -> None:
    values = np.arange(1, int(60 / rate) + 2)
    chances = np.exp(-float(rate) * values)
    chances /= 1 + 2 * chances.sum()
    mean = float(values @ chances)
    assert clipped_dispersion(rate) == pytest.approx((values**2 @ chances - mean**2) / mean)


def test_counts_are_never_made_larger() -> None:
    rates = [Fraction(number, 10) for number in range(1, 400)]
    dispersions = [clipped_dispersion(rate) for rate in rates]
    assert min(dispersions) >= 1
    assert dispersions == sorted(dispersions, reverse=True)
    assert dispersions[-1] == pytest.approx(1)


def test_without_any_noise_nothing_is_discounted_and_with_the_most_nothing_breaks() -> None:
    assert clipped_dispersion(Fraction(1000)) == 1
    assert math.isfinite(clipped_dispersion(Fraction(1, 10**9)))


def test_counts_that_noise_reaches_easily_are_taken_for_none() -> None:
    noisy = np.array([[-9, 0, 4], [5, 6, 700]])
    threshold = math.log(3) / (2 * 0.1)
    assert 5 < threshold < 6
    known = corrected(noisy, Fraction(1, 10))
    assert known.counts.tolist() == [[0, 0, 0], [0, 6, 700]]
    assert known.dispersion == clipped_dispersion(Fraction(1, 10))


def test_about_the_root_of_all_empty_cells_are_left() -> None:
    rng, rate = np.random.default_rng(0), 0.5
    noise = rng.geometric(-math.expm1(-rate), 1_000_000) - rng.geometric(-math.expm1(-rate), 1_000_000)
    left = np.count_nonzero(corrected(noise, Fraction(1, 2)).counts)
    assert 300 < left < 1500


def test_two_cells_have_no_threshold() -> None:
    assert corrected(np.array([[1, -1]]), Fraction(1, 10)).counts.tolist() == [[1, 0]]


def test_the_papers_way_clips_and_believes() -> None:
    known = clipped(np.array([-3, 0, 5]))
    assert (known.counts.tolist(), known.dispersion) == ([0, 0, 5], 1.0)
