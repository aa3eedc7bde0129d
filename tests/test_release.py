"""What the public gets: records that hold the noisy total, and samples that lie in the domain and fall as counted."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from handmade import BOXES, PEOPLE, assert_equal, release_of
from sfumato import Release, Schema
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.models.consistency import nonnegative
from sfumato.release.records import end_names
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

# Records.


def test_clamping_cuts_at_zero() -> None:
    release = release_of(BOXES, ((0, 3, 6), (0, 4), (0, 3)), np.array([5, -4, 7, -9]))
    assert release.records(how="clamp")["count"].to_pylist() == [5, 7]


@pytest.mark.parametrize("counts", [[-5, 3, -1, 0], [0, 0, 0, 0], [-1, -1, -1, -1]])
def test_no_people_give_no_records(counts: list[int]) -> None:
    records = release_of(BOXES, ((0, 3, 6), (0, 4), (0, 3)), np.array(counts)).records()
    assert records.num_rows == 0
    assert [name for name in records.column_names if "_" not in name] == ["a", "b", "c", "class", "count"]


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
    ends = {end for pair in end_names(schema).values() for end in pair}
    (column,) = set(release.records().column_names) - {*names, *ends, "class"}
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
    assert release.records().to_pylist() == [
        {"a": "[0, 2)", "a_lower": 0, "a_upper": 2, "count": 4},
        {"a": "[2, 6)", "a_lower": 2, "a_upper": 6, "count": 8},
    ]
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


# Samples.


def test_samples_lie_in_the_domain(people: Release) -> None:
    """Every drawn value has a leaf, none lies outside the declared bounds."""
    sample = people.sample(5000, seed=1)
    coded = encode(open_table(sample), PEOPLE)
    assert coded.misfits == ()
    assert coded.outside == {}


def test_samples_fall_into_groups_as_counted(people: Release) -> None:
    size = 40_000
    coded = encode(open_table(people.sample(size, seed=2)), PEOPLE)
    regions = people.regions.regions_of([coded.columns[name] for name in PEOPLE.predictors])
    drawn = np.bincount(regions * 2 + coded.columns["income"], minlength=2 * people.groups)
    counts = nonnegative(people.model.counts.counts, "projection").ravel()
    expected = counts / counts.sum() * size
    assert drawn[counts == 0].sum() == 0
    assert (np.abs(drawn - expected) <= 6 * np.sqrt(expected) + 1).all()


@pytest.mark.parametrize("margin", [None, np.array([30, 10, 1, 0, 5])])
def test_inside_groups_samples_follow_the_margins(margin: np.ndarray | None) -> None:
    size = 40_000
    release = release_of(margins={} if margin is None else {0: margin})
    jobs = encode(open_table(release.sample(size, seed=3)), PEOPLE).columns["job"]
    drawn = np.bincount(jobs, minlength=5)
    inside = [0.5, 0.5, 0.5, 0.5] if margin is None else [0.75, 0.25, 1, 0]
    for leaf, share in enumerate(inside):
        group = drawn[leaf // 2 * 2 : leaf // 2 * 2 + 2].sum()
        assert drawn[leaf] == pytest.approx(share * group, abs=6 * math.sqrt(group) * math.sqrt(share * (1 - share)))


def test_the_same_seed_draws_the_same_records(people: Release) -> None:
    assert people.sample(500, seed=7).equals(people.sample(500, seed=7))
    assert not people.sample(500, seed=7).equals(people.sample(500, seed=8))
    assert not people.sample(500).equals(people.sample(500))


def test_missing_leaves_become_null_or_their_name(people: Release) -> None:
    missing = release_of(margins={1: np.array([0] * 74 + [9])})
    ages = missing.sample(2000, seed=1)["age"]
    assert 0 < ages.null_count < 2000
    assert "Unknown" in people.sample(2000, seed=1)["job"].to_pylist()


def test_values_are_on_the_grid_of_their_kind(people: Release) -> None:
    sample = people.sample(2000, seed=4)
    assert sample.schema.field("age").type == pa.int64()
    assert sample.schema.field("born").type == pa.date32()
    assert sample.schema.field("height").type == pa.float64()
    dates, heights = sample["born"].to_pylist(), np.array(sample["height"])
    assert datetime.date(1990, 1, 1) <= min(dates) < max(dates) <= datetime.date(1990, 2, 10)
    assert len(set(dates)) > 30
    assert (heights == np.round(heights, 3)).all()
    assert heights.max() <= 2.4
    assert max(sample["wage"].to_pylist()) <= 100


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [
        (0, "1e-15", "1e-16"),
        ("-9e14", "9e14", "1e12"),
        (0, 1, "0.3"),
        ("1e14", "100000000000000.000001", "0.0000001"),
        ("0001-01-01", "9999-12-30", 365),
    ],
)
def test_every_grid_that_a_schema_may_declare_can_be_used(lower: object, upper: object, step: object) -> None:
    try:
        schema = Schema.loads(f"attributes: {{x: {{kind: numeric, lower: {lower}, upper: {upper}, step: {step}}}}}")
    except SfumatoError:
        return
    release = release_of(schema, None, np.array([100]))
    assert release.records().num_rows == 1
    coded = encode(open_table(release.sample(200, seed=1)), schema)
    assert (coded.misfits, coded.outside) == ((), {})
    assert len(np.unique(coded.columns["x"])) > 1
    assert release.count(f"x >= {lower}").value == pytest.approx(100)


def test_as_many_records_as_asked(people: Release) -> None:
    assert people.sample(0).num_rows == 0
    assert people.sample(0).column_names == list(PEOPLE.attributes)[1:]
    assert people.sample(1).num_rows == 1
    assert people.sample().num_rows == people.total
    with pytest.raises(ReleaseError, match=r"rows \(-1\) must be"):
        people.sample(-1)


def test_a_negative_seed_is_refused(people: Release) -> None:
    with pytest.raises(SfumatoError, match="seed"):
        people.sample(1, seed=-1)


def test_no_people_can_still_be_sampled() -> None:
    nobody = release_of(BOXES, None, np.array([-4, -2]))
    assert nobody.sample().num_rows == 0
    assert nobody.sample(10).num_rows == 10
