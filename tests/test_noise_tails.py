"""The noise is right where it is rarest, too, at equal and at different rates; nearly right noise is rejected."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import planted
from sfumato.privacy import noise as noise_module
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.noise import SeededStream, discrete_laplace, discrete_laplace_each
from test_noise import FAR_OUT, fits

DRAWS = 2_000_000
EXPECTED = (5000, 500, 50)
"""So many draws of each sign are expected beyond the borders that are looked at."""


def tails_fit(sample: NDArray[np.int64], rate: Fraction) -> bool:
    """Whether as many draws lie far out, on each side, as P(X >= t) = exp(-rate t) / (1 + exp(-rate)) says."""
    for number in EXPECTED:
        border = int(np.log(len(sample) / number) / float(rate))
        chance = np.exp(-float(rate) * border) / (1 + np.exp(-float(rate)))
        for seen in (int((sample >= border).sum()), int((sample <= -border).sum())):
            side = min(binom.cdf(seen, len(sample), chance), binom.sf(seen - 1, len(sample), chance))
            if 2 * side < FAR_OUT:
                return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 3), Fraction(1, 28)], ids=str)
def test_tails_are_as_heavy_as_stated(rate: Fraction) -> None:
    noise = discrete_laplace(SeededStream(1), rate, DRAWS)
    assert tails_fit(noise, rate)
    assert not tails_fit(np.clip(noise, -int(9 / rate), int(9 / rate)), rate)


@pytest.mark.parametrize("wrong", [Fraction(4, 5), Fraction(5, 4)], ids=["0.8", "1.25"])
def test_tails_of_the_wrong_scale_are_rejected(wrong: Fraction) -> None:
    assert not tails_fit(discrete_laplace(SeededStream(2), 1 / wrong, DRAWS // 4), Fraction(1))


def by_each(rate: Fraction, draws: int = 400_000) -> NDArray[np.int64]:
    """Draw one rate among others, as places of a tree do."""
    rates = np.resize([rate.numerator * 10, rate.numerator * 7, rate.numerator * 13], draws)
    return discrete_laplace_each(SeededStream(3), rates, rate.denominator * 10)[::3]


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 28)], ids=str)
def test_places_with_prices_of_their_own_get_the_same_noise(rate: Fraction) -> None:
    assert fits(by_each(rate), rate)
    assert not fits(by_each(rate * 4 / 5), rate)
    assert not fits(by_each(rate * 5 / 4), rate)


def test_zeros_get_noise_like_any_count(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.repeat([[0], [7]], 200_000, axis=0)
    one = np.zeros(len(counts), np.int64)
    noise = Exact(SeededStream(5)).add_noise(counts, (Fraction(1),), one) - counts
    assert fits(noise[counts == 0], Fraction(1))
    assert fits(noise[counts == 7], Fraction(1))
    planted.no_noise_on_zeros(monkeypatch)
    assert not fits(Exact(SeededStream(5)).add_noise(0 * counts, (Fraction(1),), one).ravel(), Fraction(1))


def test_a_missing_correction_of_zero_in_the_sampler_itself_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the sign drawn, minus zero passes for zero."""
    real = noise_module.uniform_below

    def plus_for_zero(stream, bound, count):
        return np.zeros(count, np.int64) if bound == 2 else real(stream, bound, count)

    monkeypatch.setattr(noise_module, "uniform_below", plus_for_zero)
    one_sided = discrete_laplace(SeededStream(4), Fraction(1), 400_000)
    signs = np.where(np.random.default_rng(1).random(len(one_sided)) < 0.5, -1, 1)
    assert not fits(one_sided * signs, Fraction(1))
    assert not fits(one_sided, Fraction(1))
