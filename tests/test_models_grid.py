"""Models of grids: a count is the sum over cells of their share inside, with the deviation of their noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handmade import BOXES, RANGES, box_releases, drafted, leaf_weights, manifest_of, release_of, weight_by_hand
from sfumato import Release
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models import model_of
from sfumato.models.intervals import Z95
from sfumato.models.model import Estimate
from sfumato.privacy.measurements import Noisy
from sfumato.privacy.noise import SeededStream, discrete_laplace

# A margin of which the first part takes more, once the second part's negative counts are made up for.
LOPSIDED = release_of(BOXES, ((0, 2, 6), (0, 4), (0, 3)), np.array([90, 30, 5, 5]), {0: np.array([9, 3, -1, -2, 4, 0])})


@given(box_releases(), RANGES)
@example(LOPSIDED, {"a": (0, 1)})
def test_a_count_is_the_sum_over_cells_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    weights = weight_by_hand(release, box)
    assert answer.value == pytest.approx((weights * release.model.counts.counts).sum(), abs=1e-6)
    assert answer.noise == pytest.approx(math.sqrt((release.model.counts.variances @ weights**2).sum()), abs=1e-6)


@given(box_releases(), st.data())
def test_nothing_is_assumed_where_a_condition_follows_the_groups(release: Release, data: st.DataObject) -> None:
    box = {}
    for name, cut in zip(BOXES.predictors, release.regions.cuts, strict=True):
        box[name] = tuple(sorted(data.draw(st.tuples(st.sampled_from(cut), st.sampled_from(cut)))))
    answer = release.count(leaf_weights(box))
    assert answer.untold == 0
    assert answer.value == int(answer.value)


@given(box_releases())
def test_regions_measured_once_keep_their_counts(release: Release) -> None:
    counts = release.draft.final.noisy
    assert np.array_equal(release.model.values, counts.counts)
    assert release.model.variances == pytest.approx(counts.variances)


@given(box_releases())
def test_everyone_is_the_noisy_total(release: Release) -> None:
    assert release.count().value == release.total
    assert release.count("b = Any and a between 0 and 5 and c >= 0").value == pytest.approx(release.total)


@given(box_releases(), st.integers(0, 6))
def test_what_is_counted_apart_adds_up(release: Release, bound: int) -> None:
    below, above = release.count(f"a < {bound}"), release.count(f"a >= {bound}")
    assert below.value + above.value == pytest.approx(release.total, abs=1e-6)


def test_regions_with_different_noise_give_the_deviation_of_their_mixture() -> None:
    grid = Grid(((0, 2, 6), (0, 2, 4), (0, 3)))
    counts = Noisy(np.arange(8).reshape(4, 2), (Fraction(1), Fraction(1, 10)), np.array([0, 1, 1, 0]))
    release = Release(BOXES, drafted(grid, counts), manifest_of(BOXES, 8))
    weights = weight_by_hand(release, {"a": (0, 4), "b": (2, 3)})
    answer = release.count(leaf_weights({"a": (0, 4), "b": (2, 3)}))
    assert answer.noise == pytest.approx(math.sqrt((counts.variances @ weights**2).sum()))


def test_a_contradiction_covers_nobody_and_assumes_nothing() -> None:
    answer = release_of(BOXES, None, np.array([30, 60])).count("a < 3 and b = x and b = y")
    assert (answer.value, answer.stddev, answer.untold) == (0, 0, 0)


def test_the_papers_way_spreads_evenly() -> None:
    by_margin = release_of(BOXES, None, np.array([30, 60]), {0: np.array([10, 0, 0, 0, 0, 0])})
    assert by_margin.count("a = 0").value == pytest.approx(90)
    assert release_of(BOXES, None, np.array([30, 60])).count("a = 0").value == pytest.approx(15)


def test_the_deviation_of_one_count_is_the_discrete_laplaces() -> None:
    release = release_of(BOXES, None)
    q = math.exp(-0.5)
    assert release.count("class = yes").stddev == pytest.approx(math.sqrt(2 * q) / (1 - q))
    assert release.count().stddev == pytest.approx(math.sqrt(2) * math.sqrt(2 * q) / (1 - q))


def test_the_interval_is_the_normal_one_where_nothing_is_assumed() -> None:
    assert Estimate(10, 2).interval == pytest.approx((10 - Z95 * 2, 10 + Z95 * 2))


def test_an_estimate_is_written_with_its_whole_error() -> None:
    assert str(Estimate(5127.3, 19.4)) == "5,127 ± 38 (95 %)"
    assert str(Estimate(12, 0)) == "12 (exact)"
    wide = Estimate(5127.3, 19.4, untold=100.0)
    assert str(wide) == f"5,127 ± {Z95 * wide.stddev:,.0f} (95 %)"
    assert wide.stddev**2 == pytest.approx(wide.noise**2 + wide.model**2)


def test_an_interval_does_not_reach_below_nobody_nor_above_what_is_possible() -> None:
    assert Estimate(3, 10).interval == (0, pytest.approx(3 + Z95 * 10))
    assert Estimate(3, 10, most=5.0).interval == (0, 5)
    assert Estimate(-4, 1).interval == (-4, pytest.approx(-4 + Z95))


@pytest.mark.parametrize("condition", ["", "a < 3", "b = x and class = yes", "a between 1 and 4 and c = 1"])
def test_deviations_are_those_of_many_releases(condition: str) -> None:
    grid = Grid(((0, 2, 6), (0, 2, 4), (0, 3)))
    truth = np.arange(100, 108).reshape(4, 2)
    draws = truth + discrete_laplace(SeededStream(1), Fraction(1, 2), 8 * 1500).reshape(1500, 4, 2)
    releases = [release_of(BOXES, grid.cuts, one) for one in draws]
    answers = np.array([release.count(condition).value for release in releases])
    claimed = releases[0].count(condition).noise
    exact = release_of(BOXES, grid.cuts, truth).count(condition).value
    assert answers.std() == pytest.approx(claimed, rel=0.12)
    assert answers.mean() == pytest.approx(exact, abs=5 * claimed / math.sqrt(1500))
    assert 0.92 < (np.abs(answers - exact) <= Z95 * claimed).mean() < 0.975


def test_levels_of_a_margin_that_do_not_fit_are_refused_before_anything_is_asked() -> None:
    draft = release_of(BOXES, None, np.array([30, 60]), {0: np.arange(6)}).draft
    margin, counts = draft.measurements
    twice = (margin, replace(margin, label="again"), counts)
    with pytest.raises(ReleaseError, match="margins must become finer"):
        model_of(BOXES, replace(draft, measurements=twice))
    uneven = Noisy(margin.counts, (Fraction(1), Fraction(2)), np.arange(6) % 2)
    with pytest.raises(ReleaseError, match="must be used"):
        model_of(BOXES, replace(draft, measurements=(replace(margin, noisy=uneven), counts)))
