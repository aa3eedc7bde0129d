"""Groups counted twice: as groups and cell by cell. Answers, samples, and what single cells add."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from groups_by_hand import (
    CELLS,
    SCATTERED,
    estimates_by_hand,
    group_releases,
    groups_of,
    leaves_by_hand,
)
from handmade import BOXES, RANGES, drafted, leaf_weights, region_measurement
from sfumato import Release
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models import model_of
from sfumato.models.coclusters import LEAST_EXPECTED, SHAPES, CoclusterModel, Posterior, dispersion, refined
from sfumato.models.margins import Margin
from sfumato.privacy.measurements import Noisy

# Both counts together.


@given(group_releases())
def test_estimates_are_means_by_inverse_variance(release: Release) -> None:
    values, variances = estimates_by_hand(release)
    assert isinstance(release.model, CoclusterModel)
    assert release.model.values == pytest.approx(values)
    assert release.model.variances == pytest.approx(variances)
    assert release.total == pytest.approx(values.sum(), abs=0.51)


def test_two_groups_by_hand() -> None:
    """Of equal noise, a group of 12 cells has 12 parts of 13 from its own count."""
    groups = [[[0, 1], [2, 3, 4, 5]], [[0], [1, 2, 3]], [[0, 1, 2]]]
    histogram = np.zeros((*BOXES.shape, 2), np.int64)
    histogram[0, 0, 0] = (39, 0)
    counts = np.array([[26, 7], [0, 0], [13, 0], [0, 0]])
    release = groups_of(groups, counts, histogram, rates=(Fraction(1), Fraction(1)))
    assert release.model.values[0] == pytest.approx([(6 * 26 + 39) / 7, 6])
    assert release.model.values[2] == pytest.approx([12, 0])
    cells = np.array([6, 18, 12, 36])
    assert release.model.variances == pytest.approx(release.model.counts.variances[0] * cells / (cells + 1))


@given(group_releases())
def test_whole_people_add_up_to_the_total(release: Release) -> None:
    people = release.model.people("projection")
    assert (people >= 0).all()
    assert people.sum() == max(release.total, 0)


@pytest.mark.parametrize(
    ("cuts", "problem"),
    [
        (((0, 6), (0, 4), (0, 3)), "counts of all of its regions"),
        (((0, 3, 6), (0, 1, 2, 3, 4), (0, 1, 2, 3)), r"what was measured \(histogram\) must be used"),
    ],
)
def test_a_histogram_that_is_not_of_all_cells_is_refused(cuts: tuple[tuple[int, ...], ...], problem: str) -> None:
    coarse = Grid(cuts)
    some = region_measurement(coarse, Noisy.even(np.zeros((coarse.regions, 2), np.int64), Fraction(1)), "histogram")
    release = groups_of()
    with pytest.raises(ReleaseError, match=problem):
        model_of(BOXES, replace(release.draft, measurements=(some, *release.draft.measurements[1:])))


def test_groups_without_a_histogram_or_with_one_of_uneven_noise_are_refused() -> None:
    release = groups_of()
    histogram, *rest = release.draft.measurements
    with pytest.raises(ReleaseError, match="counts of all of its regions"):
        model_of(BOXES, replace(release.draft, measurements=tuple(rest)))
    uneven = Noisy(histogram.counts, (Fraction(1), Fraction(1, 2)), np.arange(CELLS) % 2)
    with pytest.raises(ReleaseError, match=r"what was measured \(histogram\) must be used"):
        model_of(BOXES, replace(release.draft, measurements=(replace(histogram, noisy=uneven), *rest)))


def test_counts_almost_without_noise_are_still_combined() -> None:
    release = groups_of(rates=(Fraction(950), Fraction(50)))
    assert release.model.values == pytest.approx(release.model.counts.counts)
    assert np.isfinite(release.model.fitted_cells).all()


@settings(max_examples=40)
@given(group_releases())
def test_cells_keep_the_people_of_their_groups(release: Release) -> None:
    assert isinstance(release.model, CoclusterModel)
    people, cells = release.model.people("projection"), release.model.fitted_cells
    assert cells.shape == (*BOXES.shape, 2)
    assert (cells >= 0).all()
    assert release.model.fitted is None
    for leaves, wanted in zip(leaves_by_hand(release), people, strict=True):
        assert cells[np.ix_(*leaves)].sum(axis=(0, 1, 2)) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


# Answers.


@given(group_releases(), RANGES)
def test_a_count_is_the_sum_over_cells_with_their_noise(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    leaves = {**{name: (0, column.leaves) for name, column in BOXES.attributes.items()}, **box}
    inside = release.model.fitted_cells[tuple(slice(*leaves[name]) for name in BOXES.attributes)]
    assert answer.value == pytest.approx(inside.sum(), abs=1e-6)
    assert answer.noise == pytest.approx(math.sqrt(inside.size * release.model.histogram.variances[0]), abs=1e-6)


@given(group_releases())
def test_what_is_drawn_is_what_is_counted(release: Release) -> None:
    cells = release.model.fitted_cells
    size = 5000
    if cells.sum() >= 1:
        drawn = release.sample_codes(size, seed=1)
        share = release.count({"b": np.array([1.0, 0, 0, 0])}).value / cells.sum()
        assert (drawn["b"] == 0).mean() == pytest.approx(share, abs=0.02)


def test_a_condition_on_values_of_one_group_has_its_people() -> None:
    release = groups_of()
    values = estimates_by_hand(release)[0]
    assert release.count("b in (x, w)").value == pytest.approx(values[[0, 2]].sum(), abs=1)


def test_an_explanation_names_scattered_leaves_one_by_one() -> None:
    groups = groups_of().explain("b in (x, w)").to_pydict()
    assert groups["a"] == ["0 | 1 | 4", "2 | 3 | 5"]
    assert groups["b"] == ["x | w", "x | w"]
    assert groups["estimate"] == pytest.approx(estimates_by_hand(groups_of())[0][[0, 2]].sum(axis=1))


def test_records_are_named_alike_and_hold_everyone() -> None:
    rows = groups_of().records().to_pylist()
    assert {row["a"] for row in rows} == {"0 | 1 | 4", "2 | 3 | 5"}
    assert {row["c"] for row in rows} == {"[0, 3)"}
    assert sum(row["count"] for row in rows) == groups_of().total


@settings(max_examples=30)
@given(group_releases())
def test_sql_agrees_with_counts(release: Release) -> None:
    answers = release.sql("select b, class, count(*) as people from release where a < 3 group by b, class").to_pylist()
    assert len(answers) == 8
    for row in answers:
        condition = f"a < 3 and b = {row['b']} and class = {row['class']}"
        assert row["people"] == pytest.approx(release.count(condition).value, abs=1e-6)


def test_rows_are_classified_by_their_groups() -> None:
    release = groups_of(counts=np.array([[500, 0], [0, 500], [0, 500], [500, 0]]))
    codes = np.array([[0, 1, 2, 4], [0, 1, 3, 2], [0, 0, 0, 0]], np.uint8)
    assert release.classify_codes(dict(zip(BOXES.predictors, codes, strict=True))).tolist() == [0, 1, 1, 1]


# Samples.

SPARSE = np.array([[4000, 0], [0, 2000], [0, 0], [1000, 500]])


@pytest.mark.parametrize("with_histogram", [True, False])
def test_samples_lie_in_their_groups_and_follow_their_counts(with_histogram: bool) -> None:
    release = groups_of(counts=SPARSE, histogram=_even(SPARSE), rates=(Fraction(5), Fraction(5)))
    if not with_histogram:
        release = replace(release, draft=drafted(release.regions, release.model.counts))
    drawn = release.sample_codes(seed=1)
    grid = release.regions
    assert isinstance(grid, Grid)
    rows = [drawn[name].astype(np.uint8) for name in BOXES.predictors]
    regions = grid.locate(rows, len(drawn["class"]))
    found = np.bincount(regions * 2 + drawn["class"], minlength=8).reshape(4, 2)
    assert np.abs(found - SPARSE).max() <= 40
    assert set(np.flatnonzero(found.ravel())) <= set(np.flatnonzero(SPARSE.ravel()))


def _even(counts: np.ndarray) -> np.ndarray:
    """Spread the people of SCATTERED's groups evenly over their cells."""
    grid = Grid.of_groups(SCATTERED)
    cells = np.indices(BOXES.shape).reshape(3, -1).astype(np.uint8)
    regions = grid.locate(list(cells), cells.shape[1])
    return np.rint(counts[regions] / np.bincount(regions)[regions][:, None]).astype(np.int64)


def test_what_single_cells_tell_is_sampled() -> None:
    """Everyone of a group is in one cell, which the histogram knows and a margin cannot."""
    histogram = np.zeros((*BOXES.shape, 2), np.int64)
    histogram[4, 3, 1, 0] = histogram[1, 0, 2, 0] = 2000
    release = groups_of(counts=np.array([[4000, 0], [0, 0], [0, 0], [0, 0]]), histogram=histogram)
    drawn = release.sample_codes(1000, seed=2)
    cells = np.stack([drawn[name] for name in BOXES.predictors], axis=1)
    hits = (cells == [4, 3, 1]).all(axis=1) | (cells == [1, 0, 2]).all(axis=1)
    assert hits.mean() > 0.97


def test_margins_spread_people_where_cells_tell_nothing() -> None:
    margin = Margin.flat(np.array([10_000, 0, 0, 0, 0, 10_000]), Fraction(20))
    rates = (Fraction(1), Fraction(1, 10**6))
    release = groups_of(SCATTERED, np.full((4, 2), 5000), np.zeros(CELLS * 2), {0: margin}, rates)
    assert release.sample_codes(1000, seed=3)["a"].tolist().count(0) == pytest.approx(500, abs=30)
    assert release.count("a = 0").value == pytest.approx(20_000, rel=0.01)


def test_nobody_is_drawn_as_nobody() -> None:
    release = groups_of(counts=np.full((4, 2), -9), histogram=np.full(CELLS * 2, -9))
    assert all(len(column) == 0 for column in release.sample_codes().values())
    assert len(release.sample_codes(10)["a"]) == 10


# What a cell's own noisy count adds to what its group expects: the posterior mean, against sums over all counts.


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


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(-(10**7), 10**7), st.floats(0, 1e7)), min_size=1, max_size=30),
    st.fractions(Fraction(1, 10**6), 1000, max_denominator=10**6).filter(bool),
)
def test_means_are_finite_and_not_negative(cells: list[tuple[int, float]], rate: Fraction) -> None:
    noisy, expected = np.array([count for count, _ in cells]), np.array([guess for _, guess in cells])
    means = refined(noisy, rate, expected)
    assert np.isfinite(means).all()
    assert (means >= 0).all()
