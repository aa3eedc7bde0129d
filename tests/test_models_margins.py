"""What a margin tells of its leaves: least squares, as by hand; nobody negative; what is known besides counts, too."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margins_by_hand import CLEAR, SEEDS, least_squares_by_hand, margins_of, people_by_hand
from sfumato.geometry.halving import borders, height
from sfumato.methods.margins import plan_levels
from sfumato.models.margins import Beside, Estimator, Margin, MarginLevel, people_of
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
    found = Estimator.of(margin, Beside.everyone(margin.leaves))
    estimates, covariance = least_squares_by_hand(margin)
    assert found.people == pytest.approx(estimates, abs=1e-6)
    assert found.variances(np.eye(margin.leaves)) == pytest.approx(np.diag(covariance), rel=1e-6)


@given(MARGINS, SEEDS)
def test_what_is_known_besides_is_one_more_measurement(margin: Margin, rng: np.random.Generator) -> None:
    part_of = rng.integers(0, 3, margin.leaves)
    counted, variances = rng.integers(0, 90, 3).astype(float), rng.uniform(1, 50, 3)
    beside = Beside.everyone(margin.leaves, 70.0, 4.0).with_parts(part_of, counted, variances)
    counted, variances = np.append(counted, 70.0), np.append(variances, 4.0)
    known = np.vstack([part_of == np.arange(3)[:, None], np.ones(margin.leaves)]).astype(float)
    _, covariance = least_squares_by_hand(margin)
    precision = np.linalg.inv(covariance)
    together = np.linalg.inv(precision + known.T @ (known / variances[:, None]))
    estimates = together @ (precision @ least_squares_by_hand(margin)[0] + known.T @ (counted / variances))
    found = Estimator.of(margin, beside)
    assert found.people == pytest.approx(estimates, rel=1e-6, abs=1e-5)
    weights = rng.normal(size=(4, margin.leaves))
    expected = np.einsum("qi,ij,qj->q", weights, together, weights)
    assert found.variances(weights) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    alone = Estimator.of(margin, Beside.everyone(margin.leaves)).variances(weights)
    assert (found.variances(weights) <= alone * (1 + 1e-9)).all()


@given(MARGINS)
@example(Margin.flat(np.array([-5, -3]), Fraction(1, 10)))
def test_people_are_those_found_by_hand(margin: Margin) -> None:
    assert people_of(margin) == pytest.approx(people_by_hand(margin), abs=1e-6)


@given(MARGINS)
def test_where_nothing_is_negative_it_is_least_squares_and_nobody_ever_is(margin: Margin) -> None:
    people = people_of(margin)
    estimates, _ = least_squares_by_hand(margin)
    assert people.min() >= 0
    if estimates.min() >= 0:
        assert people == pytest.approx(estimates, abs=1e-6)


@given(MARGINS, st.integers(1, 500))
def test_a_total_that_is_certain_is_met(margin: Margin, total: int) -> None:
    people = people_of(margin, Beside.everyone(margin.leaves, float(total), 1e-9))
    assert people.sum() == pytest.approx(total, abs=1e-3)
    assert people.min() >= 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.booleans())
def test_without_noise_the_counts_stand(true: list[int], in_levels: bool) -> None:
    exact = np.array(true)
    levels = range(height(len(exact)) + 1) if in_levels else [height(len(exact))]
    sums = [np.add.reduceat(exact, borders(len(exact), depth)[:-1]) for depth in levels]
    margin = Margin(len(exact), tuple(MarginLevel(depth, one, CLEAR) for depth, one in zip(levels, sums, strict=True)))
    assert people_of(margin) == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_spikes_stay_and_cutting_at_zero_invents_nobody(seed: int) -> None:
    true = np.zeros(1000, int)
    true[[0, 333, 700]] = 40_000, 2_000, 3_000
    margin = measured(true, 0.1, seed)
    people = people_of(margin, Beside.everyone(1000, 45_000.0, 100.0))
    assert people[[0, 333, 700]] == pytest.approx([40_000, 2_000, 3_000], abs=500)
    clipped = np.maximum(margin.levels[-1].counts, 0)[true == 0].sum()
    assert people[true == 0].sum() < clipped / 10


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_shares_of_adults_ranges_are_nearer_than_the_leaves_alone_have_them(adult_codes, epsilon: float) -> None:
    columns, _ = adult_codes
    for attribute, leaves in ((2, 150), (10, 201), (11, 91)):
        true = np.bincount(columns[attribute], minlength=leaves)
        errors = []
        for seed in range(3):
            total = Beside.everyone(leaves, float(true.sum()), (20 / epsilon) ** 2)
            found = people_of(measured(true, epsilon / 4, seed), total)
            rate = Fraction(epsilon / 4).limit_denominator(10**6)
            alone = np.maximum(true + discrete_laplace(SeededStream(seed), rate, leaves), 0)
            errors.append([np.abs(np.cumsum(one) / one.sum() - np.cumsum(true) / true.sum()) for one in (found, alone)])
        ours, others = np.mean(errors, axis=(0, 2))
        assert ours < others / 2


def test_a_million_leaves_take_no_time() -> None:
    rng = np.random.default_rng(1)
    margin = measured(rng.poisson(5, 10**6), 0.1, 1)
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
