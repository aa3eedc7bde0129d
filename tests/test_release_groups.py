"""Releases of groups of any leaves, counted twice: answers, explanations, SQL, samples."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups_by_hand import (
    CELLS,
    SCATTERED,
    estimates_by_hand,
    group_releases,
    groups_of,
    leaves_by_hand,
    weights_by_hand,
)
from handmade import BOXES, RANGES, leaf_weights
from sfumato import Release
from sfumato.geometry.grid import Grid
from sfumato.models.coclusters import CoclusterEstimates
from sfumato.models.margins import Spread
from sfumato.privacy.measurements import Margin, Noisy

# Both counts together.


@given(group_releases())
def test_estimates_are_means_by_inverse_variance(release: Release) -> None:
    values, variances = estimates_by_hand(release)
    assert isinstance(release.model, CoclusterEstimates)
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


def test_a_histogram_of_another_domain_is_refused() -> None:
    grid, counts = Grid.of_groups(SCATTERED), Noisy.even(np.zeros((4, 2), np.int64), Fraction(1))
    for shape in ((CELLS - 1, 2), (CELLS, 1), (CELLS * 2, 1)):
        with pytest.raises(ValueError, match="every cell and class"):
            CoclusterEstimates(grid, counts, Noisy.even(np.zeros(shape, np.int64), Fraction(1)))


def test_counts_almost_without_noise_are_still_combined() -> None:
    release = groups_of(rates=(Fraction(950), Fraction(50)))
    assert release.model.values == pytest.approx(release.model.counts.counts)
    assert np.isfinite(release.model.cell_people([Spread.of(leaves) for leaves in BOXES.shape], "projection")).all()


@settings(max_examples=40)
@given(group_releases(), st.sampled_from(["projection", "clamp"]))
def test_cells_keep_the_people_of_their_groups(release: Release, how) -> None:
    assert isinstance(release.model, CoclusterEstimates)
    people = release.model.people(how)
    cells = release.model.cell_people([Spread.of(leaves) for leaves in BOXES.shape], how)
    assert cells.shape == (*BOXES.shape, 2)
    assert (cells >= 0).all()
    for leaves, wanted in zip(leaves_by_hand(release), people, strict=True):
        assert cells[np.ix_(*leaves)].sum(axis=(0, 1, 2)) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


# Answers.


@given(group_releases(), RANGES)
def test_a_count_is_the_sum_over_groups_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    weights, (values, variances) = weights_by_hand(release, box), estimates_by_hand(release)
    assert answer.value == pytest.approx((weights * values).sum(), abs=1e-6)
    assert answer.stddev == pytest.approx(math.sqrt((variances @ weights**2).sum()), abs=1e-6)


@given(group_releases(), st.data())
def test_nothing_is_assumed_of_whole_groups(release: Release, data: st.DataObject) -> None:
    groups = {tuple(leaves[1]) for leaves in leaves_by_hand(release)}
    chosen = data.draw(st.sampled_from(sorted(groups)))
    answer = release.count({"b": np.isin(np.arange(4), chosen).astype(float)})
    assert (answer.assumed, answer.aligned) == (0, True)


def test_a_condition_on_values_of_one_group_follows_it() -> None:
    release = groups_of()
    answer = release.count("b in (x, w)")
    assert answer.aligned
    values = estimates_by_hand(release)[0]
    assert answer.value == pytest.approx(values[[0, 2]].sum())
    assert not release.count("b in (x, y)").aligned


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
        release = replace(release, histogram=None)
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
