"""Which levels of a margin are measured: few leaves alone, and for many what errs least by exact least squares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import CDiffGen, DiffGen, DiffMulti, DPCocGen, Schema
from sfumato.errors import MethodError
from sfumato.geometry.halving import borders, families, height, parts
from sfumato.methods.margins import CLOSEST, _shared, expected_error, margin_parts, plan_levels
from sfumato.models.consistency import LeastSquares
from sfumato.privacy.budget import Schedule


def exact_error(leaves: int, precision: np.ndarray) -> float:
    """Average the variance of the share below a border over all borders, on the real tree."""
    by_node = np.repeat(precision, [parts(leaves, depth) for depth in range(height(leaves) + 1)])
    weights = np.zeros((leaves, len(by_node)))
    for border in range(leaves):
        weights[border, -leaves:] = (np.arange(leaves) < border) - border / leaves
    return float(LeastSquares.of(families(leaves), by_node).variance(weights).mean())


def precisions(last: int) -> st.SearchStrategy[np.ndarray]:
    above = st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0]), min_size=last, max_size=last)
    return st.tuples(above, st.sampled_from([0.01, 1.0])).map(lambda both: np.array([*both[0], both[1]]))


@given(st.integers(1, 6).flatmap(lambda last: st.tuples(st.just(2**last), precisions(last))))
def test_for_a_power_of_two_the_expected_error_is_exact(given: tuple[int, np.ndarray]) -> None:
    leaves, precision = given
    assert expected_error(leaves, precision)[0] == pytest.approx(exact_error(leaves, precision))


@given(st.integers(2, 40).flatmap(lambda leaves: st.tuples(st.just(leaves), precisions(height(leaves)))))
def test_the_demand_is_the_derivative_by_the_precision(given: tuple[int, np.ndarray]) -> None:
    leaves, precision = given
    error, demand = expected_error(leaves, precision)
    for depth in np.flatnonzero(precision):
        step = 1e-6 * precision[depth] * (np.arange(len(precision)) == depth)
        above, below = (expected_error(leaves, precision + side)[0] for side in (step, -step))
        slope = (above - below) / (2 * step.sum())
        assert demand[depth] == pytest.approx(-slope * precision[depth] ** 2, rel=1e-4, abs=1e-6 * error)


@pytest.mark.parametrize("leaves", [3, 5, 23, 41, 47, 74, 100, 201])
def test_between_powers_of_two_it_is_near_for_what_is_planned(leaves: int) -> None:
    precision = np.zeros(height(leaves) + 1)
    for depth, share in plan_levels(leaves).shares.items():
        precision[depth] = share**2 / 2
    assert plan_levels(leaves).error == pytest.approx(exact_error(leaves, precision), rel=0.1)


def test_few_leaves_are_measured_alone_and_many_in_levels() -> None:
    assert all(list(plan_levels(leaves).shares) == [height(leaves)] for leaves in range(2, 40))
    assert all(len(plan_levels(leaves).shares) > 1 for leaves in range(64, 1000, 31))
    assert len(plan_levels(10**6).shares) >= 4


@settings(max_examples=15)
@given(st.integers(2, 10**6))
def test_no_plan_is_much_better(leaves: int) -> None:
    plan = plan_levels(leaves)
    assert sum(plan.shares.values()) == pytest.approx(1)
    assert list(plan.shares) == sorted(plan.shares)
    assert max(plan.shares) == height(leaves)
    for step in range(1, CLOSEST + 2):
        for first in range(height(leaves), 0, -step):
            depths = [*range(height(leaves), first - 1, -step)][::-1]
            assert plan.error < 1.02 * _shared(leaves, depths).error


SCHEMA = Schema.loads("""
attributes:
  sex: {kind: categorical, taxonomy: [f, m]}
  one: {kind: categorical, taxonomy: [only]}
  wage: {kind: numeric, lower: 0, upper: 999}
  "wage, 16 parts": {kind: numeric, lower: 0, upper: 999}
  "in 16 parts of wage": {kind: numeric, lower: 0, upper: 999}
  class: {kind: class, taxonomy: [Y, N]}
""")


def test_a_budget_is_shared_whole_and_every_round_has_its_own_part() -> None:
    shared = margin_parts(SCHEMA, Fraction(1, 5), "best")
    assert sum(shared.values()) == Fraction(1, 5)
    assert len(shared) == 1 + 3 * 3 + (SCHEMA.target is not None)
    assert "margin of one" not in shared
    wage = [shared[label] for label in ("margin in 16 parts of wage", "margin in 128 parts of wage", "margin of wage")]
    ratio = sum(wage) / shared["margin of sex"]
    assert float(ratio) == pytest.approx((plan_levels(1000).error / plan_levels(2).error) ** (1 / 3), rel=0.02)
    assert Schedule(shared).total <= Fraction(1, 5)
    assert margin_parts(SCHEMA, Fraction(0), "best") == {}


@given(st.integers(1, 3000))
def test_levels_of_a_halving_nest_and_end_with_single_leaves(leaves: int) -> None:
    for depth in range(height(leaves) + 1):
        here = borders(leaves, depth)
        assert len(here) == parts(leaves, depth) + 1
        assert (here[0], here[-1]) == (0, leaves)
        widths = np.diff(here)
        assert widths.min() >= 1
        assert widths.max() - widths.min() <= 1
        assert depth == 0 or np.isin(borders(leaves, depth - 1), here).all()
    assert np.array_equal(borders(leaves, height(leaves)), np.arange(leaves + 1))


@pytest.mark.parametrize(
    ("method", "classification"), [(DiffGen, "1/5"), (CDiffGen, "1/5"), (DiffMulti, "1/10"), (DPCocGen, "3/20")]
)
def test_the_purpose_decides_the_share_of_margins_unless_it_is_given(method: type, classification: str) -> None:
    shares = {"balanced": "1/2", "counts": "4/5", "classification": classification}
    for purpose, share in shares.items():
        assert method(purpose=purpose).margin_share == Fraction(share)
        assert method(purpose=purpose, margins="0.3").margin_share == Fraction(3, 10)
    assert method().margin_share == Fraction(1, 2)
    assert method.as_published().margin_share == 0
    with pytest.raises(MethodError, match=r"purpose \(fun\) must be one of balanced, counts, classification"):
        method(purpose="fun")
