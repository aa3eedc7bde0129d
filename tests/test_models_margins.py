"""What a margin tells of its leaves: as by hand; nobody lost, nobody negative; noise levelled, spikes kept."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margins_by_hand import CLEAR, least_squares_by_hand, margins_of, people_by_hand
from sfumato.geometry.halving import borders, families, height
from sfumato.methods.margins import plan_levels
from sfumato.models.consistency import LeastSquares
from sfumato.models.margins import MOST_LOOKED_AT, Margin, MarginLevel, _measurements, people_of
from sfumato.privacy.noise import SeededStream, discrete_laplace

MARGINS = st.integers(1, 20).flatmap(margins_of)


def measured(true: np.ndarray, epsilon: float, seed: int) -> Margin:
    """Measure a margin as methods do."""
    levels = []
    for depth, share in plan_levels(len(true)).shares.items():
        rate = Fraction(share * epsilon).limit_denominator(10**6)
        exact = np.add.reduceat(true, borders(len(true), depth)[:-1])
        levels.append(MarginLevel(depth, exact + discrete_laplace(SeededStream(seed + depth), rate, len(exact)), rate))
    return Margin(len(true), tuple(levels))


@given(MARGINS)
def test_levels_are_reconciled_by_least_squares(margin: Margin) -> None:
    counts, precision = _measurements(margin)
    values = LeastSquares.of(families(margin.leaves), precision).values(counts[:, None])[:, 0]
    estimates, _ = least_squares_by_hand(margin)
    assert values[-margin.leaves :] == pytest.approx(estimates, abs=1e-6)


@given(MARGINS)
@example(Margin.flat(np.array([-5, -3]), Fraction(1, 10)))
def test_people_are_those_found_by_hand(margin: Margin) -> None:
    assert people_of(margin) == pytest.approx(people_by_hand(margin), abs=1e-6)


@given(MARGINS)
def test_the_total_is_kept_and_nobody_is_negative(margin: Margin) -> None:
    people = people_of(margin)
    estimates, _ = least_squares_by_hand(margin)
    assert people.sum() == pytest.approx(max(estimates.sum(), 0), abs=1e-6)
    assert people.min() >= 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.booleans())
def test_without_noise_the_counts_stand(true: list[int], in_levels: bool) -> None:
    exact = np.array(true)
    levels = range(height(len(exact)) + 1) if in_levels else [height(len(exact))]
    sums = [np.add.reduceat(exact, borders(len(exact), depth)[:-1]) for depth in levels]
    margin = Margin(len(exact), tuple(MarginLevel(depth, one, CLEAR) for depth, one in zip(levels, sums, strict=True)))
    assert people_of(margin) == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(("leaves", "factor"), [(64, 2.5), (100, 3), (1000, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_noise_on_evenly_spread_people_is_levelled(leaves: int, factor: float, seed: int) -> None:
    margin = measured(np.full(leaves, 40), 0.1, seed)
    people, raw = people_of(margin), margin.levels[-1].counts
    assert np.abs(people - 40).mean() < np.abs(raw - 40).mean() / factor


@pytest.mark.parametrize("seed", range(3))
def test_spikes_stay_and_empty_stretches_stay_empty(seed: int) -> None:
    true = np.zeros(1000, int)
    true[[0, 333, 700]] = 40_000, 2_000, 3_000
    people = people_of(measured(true, 0.1, seed))
    assert people[[0, 333, 700]] == pytest.approx([40_000, 2_000, 3_000], abs=300)
    assert people[true == 0].sum() < 1000


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_shares_of_adults_ranges_are_nearer_than_the_leaves_alone_have_them(adult_codes, epsilon: float) -> None:
    columns, _ = adult_codes
    for attribute, leaves in ((2, 150), (10, 201), (11, 91)):
        true = np.bincount(columns[attribute], minlength=leaves)
        errors = []
        for seed in range(3):
            found = people_of(measured(true, epsilon / 4, seed))
            rate = Fraction(epsilon / 4).limit_denominator(10**6)
            alone = np.maximum(true + discrete_laplace(SeededStream(seed), rate, leaves), 0)
            errors.append([np.abs(np.cumsum(one) / one.sum() - np.cumsum(true) / true.sum()) for one in (found, alone)])
        ours, others = np.mean(errors, axis=(0, 2))
        assert ours < others / 2


def test_a_million_leaves_take_no_time() -> None:
    rng = np.random.default_rng(1)
    margin = measured(rng.poisson(5, 10**6), 0.1, 1)
    assert len(margin.levels[-1].counts) > MOST_LOOKED_AT
    begun = time.process_time()
    assert people_of(margin).min() >= 0
    assert time.process_time() - begun < 5


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1]), min_size=1, max_size=9),
    st.sampled_from([Fraction(1, 10**99), Fraction(1, 10), Fraction(1000), Fraction(10**40)]),
)
def test_numbers_of_any_size_are_borne(counts: list[int], rate: Fraction) -> None:
    people = people_of(Margin.flat(np.array(counts, np.int64), rate))
    assert np.isfinite(people).all()
    assert people.min() >= 0


@pytest.mark.parametrize(
    ("leaves", "levels"),
    [
        (4, []),
        (4, [(1, 2)]),
        (4, [(2, 3)]),
        (4, [(2, 4), (1, 2)]),
        (4, [(2, 4), (2, 4)]),
        (4, [(2, 4), (3, 4)]),
        (4, [(-1, 1), (2, 4)]),
        (5, [(2, 4), (3, 8)]),
    ],
)
def test_levels_that_are_not_those_of_the_leaves_are_refused(leaves: int, levels: list) -> None:
    with pytest.raises(ValueError, match="level"):
        Margin(leaves, tuple(MarginLevel(depth, np.zeros(size, np.int64), Fraction(1)) for depth, size in levels))
