"""What grids cost: codes, factorials, the criterion's worked values, and the prices of merges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import gammaln

from grids import CATEGORICAL, MIXED, MIXED_KINDS, NUMERIC, SQUARE, table_of
from sfumato.modl.criterion import (
    SUMMED,
    TABLE,
    Kind,
    LogFactorials,
    Variant,
    bounded,
    log2_star,
    log_gamma,
    log_partitions,
    universal,
)
from sfumato.modl.grid import Table
from sfumato.modl.merging import Merging, merges
from sfumato.modl.search import Moving


def test_universal_codes_by_derivation() -> None:
    assert log2_star(4) == 2 + 1
    assert log2_star(256) == 8 + 3 + math.log2(3) + math.log2(math.log2(3))
    assert universal(1) == math.log(2.86511)
    assert universal(2) - math.log(2) == pytest.approx(1.052607, abs=1e-6)
    assert bounded(1, 1) == 0
    assert bounded(2, 2) == pytest.approx(math.log(1 + 1 / 2) + math.log(2))
    assert bounded(1, 4) == pytest.approx(math.log(1 + 1 / 2 + 2.0 ** -log2_star(3) + 1 / 8))


def test_a_bounded_code_is_one() -> None:
    assert sum(math.exp(-bounded(number, 1000)) for number in range(1, 1001)) == pytest.approx(1)


def test_the_sum_goes_on_where_terms_are_no_longer_added_one_by_one() -> None:
    largest = SUMMED + 5000
    beyond = sum(2.0 ** -log2_star(number) for number in range(SUMMED + 1, largest + 1))
    assert math.exp(bounded(1, largest)) == pytest.approx(math.exp(bounded(1, SUMMED)) + beyond, abs=1e-11)


def partitions(values: int, groups: int) -> int:
    """Count by Stirling's recurrence: the last value joins one of k groups, or is the k-th."""
    row = [1] + [0] * groups
    for _ in range(values):
        row = [0] + [group * row[group] + row[group - 1] for group in range(1, groups + 1)]
    return sum(row)


@pytest.mark.parametrize(("values", "groups"), [(1, 1), (5, 1), (5, 2), (5, 5), (40, 39), (300, 7), (900, 400)])
def test_partitions_are_counted(values: int, groups: int) -> None:
    assert log_partitions(values, groups) == pytest.approx(math.log(partitions(values, groups)), rel=1e-13, abs=1e-13)


def test_factorials_are_those_of_scipy() -> None:
    numbers = np.concatenate([np.arange(1, 50), np.linspace(1, 9, 300), [1e3, 1e6, 1e12]])
    np.testing.assert_allclose(log_gamma(numbers), gammaln(numbers), rtol=1e-14, atol=2e-13)
    counts = np.array([0, 1, 7, TABLE - 1, TABLE, 5 * TABLE])
    for unit in (1.0, 1 / 3.1):
        expected = gammaln(counts * unit + 1)
        np.testing.assert_allclose(LogFactorials(6 * TABLE, unit)(counts), expected, rtol=1e-13, atol=1e-12)
        np.testing.assert_allclose(LogFactorials(0, 1.0)(counts * unit), expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize(
    ("variant", "cost", "null_cost"),
    [("boulle2010", 66.84339743, 87.80468070), ("khiops11", 67.20285699, 87.11153352)],
)
def test_a_square_table_costs_what_was_worked_out(variant: Variant, cost: float, null_cost: float) -> None:
    table = table_of(SQUARE, [CATEGORICAL, CATEGORICAL], variant)
    assert table.cost(table.finest) == pytest.approx(cost, abs=5e-9)
    assert table.cost(table.null) == pytest.approx(null_cost, abs=5e-9)


@pytest.mark.parametrize(
    ("variant", "cost", "null_cost"),
    [("boulle2010", 829.98372533, 911.72818755), ("khiops11", 825.8852209, 905.5926227)],
)
def test_a_mixed_table_costs_what_was_worked_out(variant: Variant, cost: float, null_cost: float) -> None:
    table = table_of(MIXED, MIXED_KINDS, variant)
    labels = (np.array([0, 0, 1]), np.array([0, 0, 1, 1]), np.array([0, 1]))
    assert table.cost(labels) == pytest.approx(cost, abs=1e-7)
    assert table.cost(table.null) == pytest.approx(null_cost, abs=1e-7)


def test_weights_divided_by_a_dispersion_cost_the_same_in_units_and_as_reals() -> None:
    units = Table.of(MIXED, MIXED_KINDS, "boulle2010", 2.7)
    reals = Table.of(MIXED / 2.7, MIXED_KINDS, "boulle2010", 1.0)
    assert units.counts.dtype == np.int64
    assert reals.counts.dtype == np.float64
    for labels in (units.null, units.finest):
        assert units.cost(labels) == pytest.approx(reals.cost(labels), rel=1e-12)


histograms = arrays.arrays(
    np.int64, arrays.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=5), elements=st.integers(0, 30)
).filter(lambda histogram: bool(histogram.any()))


@settings(deadline=None, max_examples=60)
@given(histograms, st.data())
def test_every_price_is_the_difference_of_two_costs(histogram: np.ndarray, data: st.DataObject) -> None:
    kind: st.SearchStrategy[Kind] = st.sampled_from([CATEGORICAL, NUMERIC])
    kinds = data.draw(st.tuples(*[kind] * histogram.ndim))
    table = table_of(histogram, kinds, data.draw(st.sampled_from(["boulle2010", "khiops11"])))
    steps = list(merges(table, table.finest))
    assert len(steps) == sum(table.counts.shape) - histogram.ndim
    for step in steps:
        assert step.cost == pytest.approx(table.cost(step.labels), rel=1e-11)


@settings(deadline=None, max_examples=40)
@given(histograms, st.booleans())
def test_the_cheapest_merge_is_the_cheapest_of_all(histogram: np.ndarray, numeric: bool) -> None:
    kinds = [NUMERIC if numeric else CATEGORICAL] + [CATEGORICAL] * (histogram.ndim - 1)
    table = table_of(histogram, kinds)
    merging = Merging(table, table.finest, range(histogram.ndim))
    for _ in range(2):
        if (cheapest := merging.cheapest()) is None:
            return
        labels = tuple(merging.labels)
        rivals = []
        for axis, part in enumerate(labels):
            for first in range(part.max()):
                later = range(first + 1, part.max() + 1)
                for second in later[:1] if kinds[axis] == NUMERIC else later:
                    joined = np.where(part == second, first, part)
                    joined -= joined > second
                    rivals.append(table.cost((*labels[:axis], joined, *labels[axis + 1 :])))
        assert table.cost(labels) + cheapest[0] == pytest.approx(min(rivals), rel=1e-11)
        merging.merge(*cheapest[1:])


@settings(deadline=None, max_examples=40)
@given(histograms, st.integers(0, 2**32))
def test_moves_never_cost(histogram: np.ndarray, seed: int) -> None:
    table = table_of(histogram, [CATEGORICAL] * histogram.ndim)
    if table.counts.shape[0] == 1:
        return
    rng = np.random.default_rng(seed)
    labels = [np.unique(rng.integers(0, 3, values), return_inverse=True)[1] for values in table.counts.shape]
    moving, cost = Moving(table, tuple(labels), 0), table.cost(tuple(labels))
    while moving.sweep():
        labels[0] = moving.labels
        assert moving.groups == len(np.unique(moving.labels)) == moving.labels.max() + 1
        assert table.cost(tuple(labels)) < cost
        cost = table.cost(tuple(labels))
