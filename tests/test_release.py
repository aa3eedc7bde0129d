"""What the public gets: counts that add up to the noisy total, with honest deviations, and records that fit them."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sfumato.models.consistency import nonnegative

from handmade import BOXES, RANGES, assert_equal, box_releases, leaf_weights, manifest_of, release_of, weight_by_hand
from sfumato import Release, Schema
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.models.model import Z95, Estimate
from sfumato.privacy.measurements import Noisy
from sfumato.privacy.noise import SeededStream, discrete_laplace

# Counting.


# A margin of which the first part takes more, once the second part's negative counts are made up for.
LOPSIDED = release_of(BOXES, ((0, 2, 6), (0, 4), (0, 3)), np.array([90, 30, 5, 5]), {0: np.array([9, 3, -1, -2, 4, 0])})


@given(box_releases(), RANGES)
@example(LOPSIDED, {"a": (0, 1)})
def test_a_count_is_the_sum_over_cells_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    weights = weight_by_hand(release, box)
    assert answer.value == pytest.approx((weights * release.model.counts.counts).sum(), abs=1e-6)
    assert answer.stddev == pytest.approx(math.sqrt((release.model.counts.variances @ weights**2).sum()), abs=1e-6)
    if "class" not in box:
        wanted = np.array(
            [box.get(name, (0, leaves)) for name, leaves in zip(BOXES.predictors, BOXES.shape, strict=True)]
        )
        ranges = release.regions.boxes(0, release.groups)
        inside = ((ranges[:, :, 0] >= wanted[:, 0]) & (ranges[:, :, 1] <= wanted[:, 1])).all(axis=1)
        resolved = release.model.counts.counts[inside].sum()
        assert answer.assumed == pytest.approx(answer.value - resolved, abs=1e-6)


@given(box_releases(), st.data())
def test_nothing_is_assumed_where_a_condition_follows_the_groups(release: Release, data: st.DataObject) -> None:
    box = {}
    for name, cut in zip(BOXES.predictors, release.regions.cuts, strict=True):
        box[name] = tuple(sorted(data.draw(st.tuples(st.sampled_from(cut), st.sampled_from(cut)))))
    answer = release.count(leaf_weights(box))
    assert (answer.assumed, answer.aligned) == (0, True)
    assert answer.value == int(answer.value)


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
    release = Release(BOXES, grid, counts, {}, manifest_of(BOXES, 8))
    weights = weight_by_hand(release, {"a": (0, 4), "b": (2, 3)})
    answer = release.count(leaf_weights({"a": (0, 4), "b": (2, 3)}))
    assert answer.stddev == pytest.approx(math.sqrt((counts.variances @ weights**2).sum()))


def test_a_contradiction_covers_nobody_and_assumes_nothing() -> None:
    answer = release_of(BOXES, None, np.array([30, 60])).count("a < 3 and b = x and b = y")
    assert (answer.value, answer.stddev, answer.assumed, answer.aligned) == (0, 0, 0, True)


def test_the_papers_way_spreads_evenly() -> None:
    by_margin = release_of(BOXES, None, np.array([30, 60]), {0: np.array([10, 0, 0, 0, 0, 0])})
    assert by_margin.count("a = 0").value == pytest.approx(90)
    assert release_of(BOXES, None, np.array([30, 60])).count("a = 0").value == pytest.approx(15)


def test_the_deviation_of_one_count_is_the_discrete_laplaces() -> None:
    release = release_of(BOXES, None)
    q = math.exp(-0.5)
    assert release.count("class = yes").stddev == pytest.approx(math.sqrt(2 * q) / (1 - q))
    assert release.count().stddev == pytest.approx(math.sqrt(2) * math.sqrt(2 * q) / (1 - q))


def test_the_interval_is_the_normal_one() -> None:
    assert Estimate(10, 2, 0, True).interval == (10 - Z95 * 2, 10 + Z95 * 2)


def test_an_estimate_tells_what_its_interval_leaves_out() -> None:
    assert str(Estimate(5127.3, 19.4, 0, True)) == "5,127 ± 38 (95 %)"
    assert "300 rests on spreading" in str(Estimate(5127.3, 19.4, 300.2, False))


@pytest.mark.parametrize("condition", ["", "a < 3", "b = x and class = yes", "a between 1 and 4 and c = 1"])
def test_deviations_are_those_of_many_releases(condition: str) -> None:
    grid = Grid(((0, 2, 6), (0, 2, 4), (0, 3)))
    truth = np.arange(100, 108).reshape(4, 2)
    draws = truth + discrete_laplace(SeededStream(1), Fraction(1, 2), 8 * 1500).reshape(1500, 4, 2)
    releases = [Release(BOXES, grid, Noisy.even(one, Fraction(1, 2)), {}, manifest_of(BOXES, 8)) for one in draws]
    answers = np.array([release.count(condition).value for release in releases])
    claimed = releases[0].count(condition).stddev
    exact = Release(BOXES, grid, Noisy.even(truth, Fraction(1, 2)), {}, manifest_of(BOXES, 8)).count(condition).value
    assert answers.std() == pytest.approx(claimed, rel=0.12)
    assert answers.mean() == pytest.approx(exact, abs=5 * claimed / math.sqrt(1500))
    assert 0.92 < (np.abs(answers - exact) <= Z95 * claimed).mean() < 0.975


# Records.


@given(st.lists(st.integers(-1000, 100_000), min_size=1, max_size=200))
@example([1, 0, 0, -1])
@example([5, 5, 5, -1])
@example([2**40, 1, 1, -(2**39) - 1])
def test_the_projection_keeps_the_noisy_total(counts: list[int]) -> None:
    projected = nonnegative(np.array(counts), "projection")
    assert (projected >= 0).all()
    assert projected.sum() == max(sum(counts), 0)


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=50))
def test_the_projection_keeps_the_order(counts: list[int]) -> None:
    projected = nonnegative(np.array(counts), "projection")
    falling = projected[np.argsort(np.array(counts), kind="stable")]
    assert (np.diff(falling) >= -1).all()
    if min(counts) >= 0:
        assert projected.tolist() == counts


def test_clamping_cuts_at_zero() -> None:
    release = release_of(BOXES, ((0, 3, 6), (0, 4), (0, 3)), np.array([5, -4, 7, -9]))
    assert release.records(how="clamp")["count"].to_pylist() == [5, 7]


@pytest.mark.parametrize("counts", [[-5, 3, -1, 0], [0, 0, 0, 0], [-1, -1, -1, -1]])
def test_no_people_give_no_records(counts: list[int]) -> None:
    records = release_of(BOXES, ((0, 3, 6), (0, 4), (0, 3)), np.array(counts)).records()
    assert records.num_rows == 0
    assert records.column_names == ["a", "b", "c", "class", "count"]


def test_records_hold_the_noisy_total(people: Release) -> None:
    assert sum(people.records()["count"].to_pylist()) == people.total


def test_records_read_as_people_write(people: Release) -> None:
    rows = people.records().to_pylist()
    assert {row["job"] for row in rows} == {"White-collar", "Artist", "Unknown"}
    assert {row["age"] for row in rows} == {"[17, 38)", "[38, 91) or Missing"}
    assert {row["born"] for row in rows} == {"[1990-01-01, 1990-01-15)", "[1990-01-15, 1990-02-11)"}
    assert {row["wage"] for row in rows} == {"[0, 101)"}
    assert {row["height"] for row in rows} == {"[0.5, 1.25)", "[1.25, 2.4]"}
    assert {row["gain"] for row in rows} == {"0", "[1, 25)"}
    assert {row["income"] for row in rows} == {"low", "high"}


def test_records_have_no_identifier(people: Release) -> None:
    assert "passport" not in people.records().column_names
    assert "passport" not in people.sample(5).column_names


@pytest.mark.parametrize("names", [["count"], ["noisy_count"], ["count", "count_", "noisy_count"]])
def test_attributes_may_be_called_as_our_columns(names: list[str], tmp_path: Path) -> None:
    attributes = "".join(f"  {name}: {{kind: numeric, lower: 0, upper: 3}}\n" for name in names)
    schema = Schema.loads(f"attributes:\n{attributes}  class: {{kind: class, taxonomy: [no, yes]}}")
    release = release_of(schema, None, np.array([3, 4]))
    (column,) = set(release.records().column_names) - {*names, "class"}
    assert release.records()[column].to_pylist() == [3, 4]
    release.save(tmp_path / "release")
    assert_equal(Release.load(tmp_path / "release"), release)


def test_frames_hold_the_same(people: Release) -> None:
    arrow, pandas, polars = (people.records(frame) for frame in ("arrow", "pandas", "polars"))
    assert (type(arrow), type(pandas), type(polars)) == (pa.Table, pd.DataFrame, pl.DataFrame)
    assert pandas["count"].tolist() == polars["count"].to_list() == arrow["count"].to_pylist()
    assert pandas["job"].tolist() == polars["job"].to_list() == arrow["job"].to_pylist()
    assert people.sample(5, "pandas", seed=1)["income"].tolist() == people.sample(5, seed=1)["income"].to_pylist()
    with pytest.raises(ReleaseError, match="frame"):
        people.records("spreadsheet")


def test_a_table_without_a_class_is_counted_all_the_same(tmp_path: Path) -> None:
    schema = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 5}}")
    release = release_of(schema, ((0, 2, 6),), np.array([4, 8]))
    assert release.records().to_pylist() == [{"a": "[0, 2)", "count": 4}, {"a": "[2, 6)", "count": 8}]
    assert release.count("a < 2").value == 4
    assert release.sample(9).column_names == ["a"]
    release.save(tmp_path / "release")
    assert_equal(Release.load(tmp_path / "release"), release)


def test_three_hundred_attributes(tmp_path: Path) -> None:
    attributes = "".join(f"  a{number}: {{kind: numeric, lower: 0, upper: 9}}\n" for number in range(300))
    schema = Schema.loads(f"attributes:\n{attributes}  class: {{kind: class, taxonomy: [no, yes]}}")
    grid = ((0, 5, 10), *[(0, 10)] * 298, (0, 3, 10))
    release = release_of(schema, grid, np.arange(8), {number: np.arange(10) for number in range(300)})
    release.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    assert_equal(loaded, release)
    assert loaded.count("a0 < 5 and a299 >= 3").value == 2 + 3
    assert loaded.sample(10).num_columns == 301
    assert loaded.records().num_rows == 7


def test_the_promise_is_the_sum_of_the_debits(people: Release) -> None:
    assert people.manifest.epsilon == Fraction(1, 2)
    assert people.manifest.guarantee.startswith("This release is differentially private with epsilon = 1/2:")


def test_a_release_shows_no_counts_in_its_name() -> None:
    assert repr(release_of()) == "Release(test, epsilon=1/2, groups=48)"
