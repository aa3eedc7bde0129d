"""Intervals: quantiles of a normal error with the model's heavy tails, and what clauses make of errors."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.intervals import ALONE, GAMMA, PAIR, ROUNDING, TRIPLE, Clause, Clauses, half_widths

SHARES = st.floats(0.01, 0.99)


@given(st.sampled_from([0.5, 0.8, 0.95, 0.99]), st.floats(0.1, 1e6))
def test_without_a_model_the_interval_is_the_normal_one(level: float, noise: float) -> None:
    expected = NormalDist(0, noise).inv_cdf((1 + level) / 2)
    assert half_widths(level, np.array([noise]), np.array([0.0]))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("model", [0.0, 0.3, 1.0, 4.0, 50.0])
def test_half_widths_hold_what_they_say(level: float, model: float) -> None:
    draw = np.random.default_rng(1)
    errors = np.abs(draw.normal(size=200_000) + model * draw.standard_t(2, size=200_000))
    half = half_widths(level, np.array([1.0]), np.array([model]))[0]
    assert (errors <= half).mean() == pytest.approx(level, abs=0.005)
    assert (errors <= 0.8 * half).mean() < level - 0.01


def clauses_of(shares: list[float], inside: list[float], error: float = 0.0, size: float = 1000.0) -> Clauses:
    def one(share: float, within: float) -> Clause:
        alone = np.array([True]), np.array([share]), np.array([share * (1 - share)])
        return Clause(np.array([[share]]), *alone, np.array([within]), np.array([error]), np.zeros(1))

    return Clauses(dict(enumerate(map(one, shares, inside))), 1, size)


@given(st.lists(st.tuples(SHARES, st.floats(0, 1)), min_size=1, max_size=5))
def test_the_models_error_adds_up_pairs_and_triples(asked: list[tuple[float, float]]) -> None:
    reach = [(p * (1 - p)) ** GAMMA for p, _ in asked]
    variance = 0.0
    for strength, order in ((PAIR, 2), (TRIPLE, 3)):
        for chosen in itertools.combinations(range(len(asked)), order):
            others = np.prod([p for at, (p, _) in enumerate(asked) if at not in chosen])
            told = np.prod([1 - asked[at][1] for at in chosen])
            variance += strength**2 * others**2 * np.prod([reach[at] for at in chosen]) * (1 - told)
    found = clauses_of([p for p, _ in asked], [u for _, u in asked]).model_error()[0]
    assert found == pytest.approx(1000 * np.sqrt(variance), rel=1e-6, abs=1e-6)


@given(st.lists(SHARES, min_size=2, max_size=4))
def test_what_regions_tell_is_not_assumed(shares: list[float]) -> None:
    assert clauses_of(shares, [0.0] * len(shares)).model_error()[0] == pytest.approx(0, abs=1e-3)
    assert clauses_of(shares, [1.0] * len(shares)).model_error()[0] > 0


def test_one_clause_has_the_noise_of_its_margin_and_nothing_is_assumed() -> None:
    alone = clauses_of([0.3], [1.0], error=400.0)
    assert alone.model_error()[0] == 0
    assert alone.margin_noise(np.array([300.0]), 9.0)[0] == pytest.approx(ALONE * (400 + ROUNDING))
    assert alone.most()[0] == np.inf


def test_several_clauses_cannot_hold_more_than_one_alone() -> None:
    both = clauses_of([0.3, 0.01], [1.0, 1.0], error=4.0)
    assert both.most()[0] == pytest.approx(10 + 1.959964 * np.sqrt(4 + ROUNDING), rel=1e-6)


def test_who_is_not_restricted_is_counted_by_the_size() -> None:
    nobody = Clauses({}, 3, 1000.0)
    assert nobody.margin_noise(np.full(3, 1000.0), 9.0).tolist() == [9.0] * 3
    assert nobody.model_error().tolist() == [0.0] * 3
