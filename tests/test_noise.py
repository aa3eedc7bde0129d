"""The noise has the stated distribution, and the check that says so rejects what is nearly it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2

import planted
from sfumato.privacy import noise as noise_module
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.noise import (
    CHUNK,
    SeededStream,
    SystemStream,
    coins,
    coins_within_one,
    discrete_laplace,
    discrete_laplace_each,
)

FAR_OUT = 1e-9
DRAWS = 1_000_000
LARGE_PRIME = 2**40 - 87
RATES = [
    Fraction(1),
    Fraction(1, 2),
    Fraction(7, 3),
    Fraction(5),
    Fraction(1, 28),
    Fraction(1, 1000),
    Fraction(2**38 + 1, LARGE_PRIME),
    Fraction(3, LARGE_PRIME),
]
IDS = [str(rate) for rate in RATES]


def at_most(values: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """Give P(X <= x) for P(X = x) proportional to exp(-rate |x|)."""
    below = np.exp(-rate * -np.minimum(values, 0)) / (1 + np.exp(-rate))
    above = 1 - np.exp(-rate * (np.maximum(values, 0) + 1)) / (1 + np.exp(-rate))
    return np.where(values < 0, below, above)


def cell_ends(rate: float, draws: int) -> NDArray[np.int64]:
    """Give the last values of cells: some two hundred quantiles, and single values near 0 where likely enough."""
    half = np.linspace(0.005, 0.5, 100)
    tails = np.floor(np.log(half * (1 + np.exp(-rate))) / -rate)
    singles = np.arange(12) if draws * np.tanh(rate / 2) > 50 else np.arange(0)
    positive = np.concatenate((tails, singles)).astype(np.int64)
    ends = np.unique(np.concatenate((-positive - 1, positive)))
    masses = np.diff(at_most(ends, rate), prepend=0, append=1)
    return ends[(masses[:-1] * draws > 30) & (masses[1:] * draws > 30)]


def improbable(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> bool:
    """Whether counts are far out under Pearson's chi-square."""
    return bool(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1) < FAR_OUT)


def fits(sample: NDArray[np.int64], rate: Fraction) -> bool:
    """Whether a sample may have P(x) proportional to exp(-rate |x|)."""
    ends = cell_ends(float(rate), len(sample))
    observed = np.bincount(np.searchsorted(ends, sample), minlength=len(ends) + 1)
    return not improbable(observed, len(sample) * np.diff(at_most(ends, float(rate)), prepend=0, append=1))


def heads_fit(heads: NDArray[np.bool_], chance: float) -> bool:
    """Whether this many heads may come of coins with this chance."""
    number = int(heads.sum())
    tail = min(binom.cdf(number, len(heads), chance), binom.sf(number - 1, len(heads), chance))
    return bool(2 * tail > FAR_OUT)


def imitation(rate: Fraction, negative: float = 0.5, redraw_minus_zero: bool = True) -> NDArray[np.int64]:
    """Draw the noise in floats, with a chosen chance of a minus and with or without the correction of zero."""
    generator = np.random.default_rng(1)
    magnitude = generator.geometric(1 - np.exp(-float(rate)), 2 * DRAWS) - 1
    minus = generator.random(2 * DRAWS) < negative
    kept = ~(minus & (magnitude == 0)) if redraw_minus_zero else np.ones(2 * DRAWS, np.bool_)
    return np.where(minus, -magnitude, magnitude)[kept][:DRAWS]


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES, ids=IDS)
def test_the_right_noise_is_accepted(rate: Fraction) -> None:
    assert fits(discrete_laplace(SeededStream(1), rate, DRAWS), rate)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(4, 5), Fraction(5, 4)], ids=["0.8", "1.25"])
@pytest.mark.parametrize("rate", RATES, ids=IDS)
def test_noise_of_the_wrong_scale_is_rejected(rate: Fraction, scale: Fraction) -> None:
    assert not fits(discrete_laplace(SeededStream(2), rate / scale, DRAWS), rate)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 28), Fraction(1, 1000)], ids=str)
def test_a_correct_imitation_is_accepted(rate: Fraction) -> None:
    assert fits(imitation(rate), rate)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 28), Fraction(1, 1000)], ids=str)
@pytest.mark.parametrize("negative", [0.49, 0.51])
def test_a_wrong_chance_of_minus_is_rejected(rate: Fraction, negative: float) -> None:
    assert not fits(imitation(rate, negative=negative), rate)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 28), Fraction(1, 1000)], ids=str)
def test_a_zero_counted_twice_is_rejected(rate: Fraction) -> None:
    assert not fits(imitation(rate, redraw_minus_zero=False), rate)


def test_rounded_continuous_noise_is_rejected() -> None:
    rounded = np.rint(np.random.default_rng(2).laplace(0, 1, DRAWS)).astype(np.int64)
    assert not fits(rounded, Fraction(1))


def test_noise_with_a_few_values_shifted_by_one_is_rejected() -> None:
    noise = discrete_laplace(SeededStream(3), Fraction(1), DRAWS)
    noise[: DRAWS // 50] += 1
    assert not fits(noise, Fraction(1))


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(7, 6000), Fraction(3, LARGE_PRIME)], ids=str)
def test_wide_noise_has_even_last_digits(rate: Fraction) -> None:
    noise = discrete_laplace(SeededStream(4), rate, DRAWS // 2)
    digits = np.bincount(noise % 16, minlength=16)
    assert not improbable(digits, np.full(16, len(noise) / 16))


def test_consecutive_draws_are_independent() -> None:
    noise = np.clip(discrete_laplace(SeededStream(5), Fraction(1), DRAWS), -2, 2) + 2
    pairs = np.bincount(noise[::2] * 5 + noise[1::2], minlength=25)
    single = np.diff(at_most(np.arange(-2, 2), 1.0), prepend=0, append=1)
    assert not improbable(pairs, np.outer(single, single).ravel() * (DRAWS // 2))


def test_draws_on_both_sides_of_a_chunk_are_alike() -> None:
    noise = discrete_laplace(SeededStream(6), Fraction(1, 3), 3 * CHUNK)
    assert fits(noise[:CHUNK], Fraction(1, 3))
    assert fits(noise[-CHUNK:], Fraction(1, 3))


@pytest.mark.slow
def test_short_calls_are_as_good_as_long_ones() -> None:
    stream = SeededStream(7)
    noise = np.concatenate([discrete_laplace(stream, Fraction(1, 2), 3) for _ in range(3_000)])
    assert fits(noise, Fraction(1, 2))
    assert fits(noise[2::3], Fraction(1, 2))


@pytest.mark.parametrize("count", [0, 1, 2, CHUNK, CHUNK + 1])
def test_as_many_draws_as_asked(count: int) -> None:
    assert discrete_laplace(SeededStream(8), Fraction(1, 2), count).shape == (count,)


def test_the_system_gives_the_same_noise() -> None:
    assert fits(discrete_laplace(SystemStream(), Fraction(1, 3), 200_000), Fraction(1, 3))


def test_noise_is_added_to_every_cell_at_the_rate_of_its_row() -> None:
    counts = np.full((6000, 100), 10**15)
    rates, rate_of = (Fraction(1, 5), Fraction(2, 3)), np.arange(6000) % 2
    noisy = Exact(SeededStream(9)).add_noise(counts, rates, rate_of)
    assert noisy.shape == counts.shape
    assert noisy.dtype == np.int64
    for index, rate in enumerate(rates):
        assert fits((noisy - counts)[rate_of == index].ravel(), rate)
        assert not fits((noisy - counts)[rate_of != index].ravel(), rate)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 4])
def test_noise_agrees_with_opendp(scale: int) -> None:
    ours = discrete_laplace(SeededStream(10), Fraction(1, scale), DRAWS)
    theirs = opendp_noise(scale)
    assert alike(ours, theirs)
    assert fits(theirs, Fraction(1, scale))


@pytest.mark.slow
def test_noise_of_the_wrong_scale_disagrees_with_opendp() -> None:
    theirs = opendp_noise(4)
    assert not alike(discrete_laplace(SeededStream(11), Fraction(5, 16), DRAWS), theirs)
    assert not alike(discrete_laplace(SeededStream(11), Fraction(1, 5), DRAWS), theirs)


def opendp_noise(scale: int) -> NDArray[np.int64]:
    """Draw discrete Laplace noise with OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * 60_000))


def alike(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Whether two samples may come from one distribution."""
    reach = int(np.quantile(np.abs(second), 0.995))
    table = np.stack([np.bincount(np.clip(sample, -reach, reach) + reach) for sample in (first, second)])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    return bool(chi2.sf(((table - expected) ** 2 / expected).sum(), 2 * reach) > FAR_OUT)


@pytest.mark.parametrize("denominator", [1, 2, 7, 1000, LARGE_PRIME])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(6, 7), Fraction(1)], ids=str)
def test_a_coin_shows_heads_as_often_as_stated(share: Fraction, denominator: int) -> None:
    numerator = int(share * denominator)
    heads = coins_within_one(SeededStream(12), np.full(200_000, numerator), denominator)
    assert heads_fit(heads, np.exp(-numerator / denominator))


def test_the_check_of_coins_rejects_a_chance_off_by_two_hundredths() -> None:
    heads = coins_within_one(SeededStream(13), np.full(200_000, 1), 2)
    assert not heads_fit(heads, np.exp(-0.5) + 0.02)
    assert not heads_fit(heads, np.exp(-0.5) - 0.02)


def test_a_coin_of_nothing_is_certain() -> None:
    assert coins_within_one(SeededStream(14), np.zeros(10_000, np.int64), 3).all()
    assert coins(SeededStream(14), np.zeros(10_000, np.int64), np.zeros(10_000, np.int64), 3).all()


def test_different_coins_in_one_call_keep_their_own_chances() -> None:
    numerators = np.tile(np.arange(8), 100_000)
    heads = coins_within_one(SeededStream(15), numerators, 7)
    assert all(heads_fit(heads[numerators == number], np.exp(-number / 7)) for number in range(8))


def test_coins_beyond_one_keep_their_own_chances() -> None:
    whole, rest = np.tile(np.repeat(np.arange(5), 3), 60_000), np.tile(np.tile(np.arange(3), 5), 60_000)
    heads = coins(SeededStream(16), whole, rest, 3)
    for units in range(5):
        for thirds in range(3):
            assert heads_fit(heads[(whole == units) & (rest == thirds)], np.exp(-units - thirds / 3))


def test_a_coin_of_a_huge_exponent_is_tails_at_once() -> None:
    assert not coins(SeededStream(17), np.full(1000, 2**62), np.zeros(1000, np.int64), 1).any()


def test_coins_in_a_row_are_independent() -> None:
    heads = coins_within_one(SeededStream(18), np.full(DRAWS, 1), 1)
    pairs = np.bincount(heads[::2] * 2 + heads[1::2], minlength=4)
    single = np.array([1 - np.exp(-1), np.exp(-1)])
    assert not improbable(pairs, np.outer(single, single).ravel() * (DRAWS // 2))


# Where noise is rarest, at equal and at different rates; nearly right noise is rejected.

TAIL_DRAWS = 2_000_000
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
    noise = discrete_laplace(SeededStream(1), rate, TAIL_DRAWS)
    assert tails_fit(noise, rate)
    assert not tails_fit(np.clip(noise, -int(9 / rate), int(9 / rate)), rate)


@pytest.mark.parametrize("wrong", [Fraction(4, 5), Fraction(5, 4)], ids=["0.8", "1.25"])
def test_tails_of_the_wrong_scale_are_rejected(wrong: Fraction) -> None:
    assert not tails_fit(discrete_laplace(SeededStream(2), 1 / wrong, TAIL_DRAWS // 4), Fraction(1))


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
