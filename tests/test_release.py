"""What the public gets: counts that add up, records and samples that fit, folders that are whole or refused."""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import itertools
import json
import math
import os
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from sfumato import Release, Schema, storage
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.io import encode, open_table
from sfumato.partition import Grid
from sfumato.privacy.budget import Debit
from sfumato.privacy.noise import discrete_laplace
from sfumato.privacy.noisy import Noisy
from sfumato.privacy.stream import SeededStream
from sfumato.release.answers import Z95, Estimate
from sfumato.release.manifest import FORMAT, Manifest
from sfumato.release.projection import nonnegative

PEOPLE = Schema.loads("""
name: people
confirmed: true
attributes:
  passport: {kind: identifier}
  job:
    kind: categorical
    root: Anyone
    taxonomy: {White-collar: [Engineer, Lawyer], Artist: [Dancer, Writer], Unknown: }
    missing: Unknown
  age: {kind: numeric, lower: 17, upper: 90, missing: Missing}
  wage: {kind: numeric, lower: 0, upper: 100, step: 30}
  height: {kind: numeric, lower: 0.5, upper: 2.4, step: 0.25}
  born: {kind: numeric, lower: 1990-01-01, upper: 1990-02-10, step: 7}
  gain: {kind: numeric, lower: 0, upper: 24, step: 10, points: [0, 13]}
  income: {kind: class, taxonomy: [low, high]}
""")
CUTS = ((0, 2, 4, 5), (0, 21, 75), (0, 4), (0, 3, 8), (0, 2, 6), (0, 1, 6))
FILES = ["geometry.json", "manifest.json", "margins.parquet", "records.parquet", "schema.json"]


def manifest_of(schema: Schema, cells: int, *, secure: bool = True) -> Manifest:
    debit = Debit("counts", "discrete Laplace", Fraction(1, 2), Fraction(1), cells)
    return Manifest("0.1.0", "publication", "test", {"h": 3}, (debit,), secure, schema.digest, ("one step",))


def release_of(
    schema: Schema = PEOPLE,
    cuts: tuple[tuple[int, ...], ...] | None = CUTS,
    counts: np.ndarray | None = None,
    margins: Mapping[int, np.ndarray] | None = None,
    *,
    secure: bool = True,
) -> Release:
    """Build a release by hand; without counts each cell has its own."""
    grid = Grid.whole(schema.shape) if cuts is None else Grid(cuts)
    shape = (grid.regions, len(schema.classes))
    given_counts = np.arange(math.prod(shape)).reshape(shape) - 3 if counts is None else counts.reshape(shape)
    return Release(
        schema,
        grid,
        Noisy(given_counts.astype(np.int64), Fraction(1, 2)),
        {attribute: Noisy(margin, Fraction(1, 10)) for attribute, margin in (margins or {}).items()},
        manifest_of(schema, given_counts.size, secure=secure),
    )


@pytest.fixture
def people() -> Release:
    return release_of(margins={0: np.array([5, 10, -2, 4, 1]), 3: np.arange(8)})


@pytest.fixture
def saved(people: Release, tmp_path: Path) -> Path:
    people.save(tmp_path / "release")
    return tmp_path / "release"


# Counting.

BOXES = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 5}
  b: {kind: categorical, taxonomy: {p: [x, y], q: [z, w]}}
  c: {kind: numeric, lower: 0, upper: 2}
  class: {kind: class, taxonomy: [no, yes]}
""")


def cuts(leaves: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(1, leaves - 1)).map(lambda inner: (0, *sorted(inner), leaves))


@st.composite
def box_releases(draw: st.DrawFn) -> Release:
    grid = draw(st.tuples(*map(cuts, BOXES.shape)))
    size = math.prod(len(cut) - 1 for cut in grid) * 2
    counts = draw(st.lists(st.integers(-50, 1000), min_size=size, max_size=size))
    numbers = [st.lists(st.integers(-5, 50), min_size=leaves, max_size=leaves) for leaves in BOXES.shape]
    margins = {at: np.array(draw(one), np.int64) for at, one in enumerate(numbers) if draw(st.booleans())}
    return release_of(BOXES, grid, np.array(counts), margins)


def shares_by_hand(release: Release, attribute: int) -> list[float]:
    """Spread each part by its margin (projected to be non-negative, keeping its total) or evenly."""
    shares: list[float] = []
    for lo, hi in itertools.pairwise(release.partition.cuts[attribute]):
        if attribute not in release.margins:
            shares += [1 / (hi - lo)] * (hi - lo)
            continue
        margin = release.margins[attribute].counts[lo:hi].astype(float)
        total = margin.sum()
        if total <= 0:
            shares += [1 / (hi - lo)] * (hi - lo)
            continue
        low, high = margin.min() - total, margin.max()
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(margin - middle, 0).sum() > total else (low, middle)
        shares += (np.maximum(margin - low, 0) / total).tolist()
    return shares


def weight_of_regions(release: Release, box: dict[str, tuple[int, int]]) -> np.ndarray:
    """Give the weight of every region and class in a box, leaf by leaf."""
    names = list(BOXES.predictors)
    shares = [shares_by_hand(release, attribute) for attribute in range(len(names))]
    weights = np.zeros(release.counts.counts.shape)
    lo_class, hi_class = box.get("class", (0, 2))
    for region, ranges in enumerate(release.partition.boxes(0, release.groups)):
        inside = 1.0
        for attribute, (lo, hi) in enumerate(ranges):
            left, right = box.get(names[attribute], (lo, hi))
            inside *= sum(shares[attribute][leaf] for leaf in range(lo, hi) if left <= leaf < right)
        weights[region, lo_class:hi_class] = inside
    return weights


RANGES = {name: st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted) for name in ("a", "b", "c", "class")}


def leaf_weights(box: Mapping[str, tuple[int, int]]) -> dict[str, np.ndarray]:
    sizes = {name: column.leaves for name, column in BOXES.attributes.items()}
    return {name: np.array([float(lo <= leaf < hi) for leaf in range(sizes[name])]) for name, (lo, hi) in box.items()}


@given(box_releases(), st.fixed_dictionaries({}, optional=RANGES))
def test_a_count_is_the_sum_over_cells_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count_weighted(leaf_weights(box))
    weights = weight_of_regions(release, box)
    assert answer.value == pytest.approx((weights * release.counts.counts).sum(), abs=1e-6)
    assert answer.stddev == pytest.approx(math.sqrt(release.counts.variance * (weights**2).sum()), abs=1e-6)
    resolved = (weights * release.counts.counts)[(np.isclose(weights, 1) | np.isclose(weights, 0)).all(axis=1)].sum()
    if "class" not in box:
        assert answer.assumed == pytest.approx(answer.value - resolved, abs=1e-6)


@given(box_releases(), st.data())
def test_nothing_is_assumed_where_a_condition_follows_the_groups(release: Release, data: st.DataObject) -> None:
    box = {}
    for name, cut in zip(BOXES.predictors, release.partition.cuts, strict=True):
        box[name] = tuple(sorted(data.draw(st.tuples(st.sampled_from(cut), st.sampled_from(cut)))))
    answer = release.count_weighted(leaf_weights(box))
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
    releases = [Release(BOXES, grid, Noisy(one, Fraction(1, 2)), {}, manifest_of(BOXES, 8)) for one in draws]
    answers = np.array([release.count(condition).value for release in releases])
    claimed = releases[0].count(condition).stddev
    exact = Release(BOXES, grid, Noisy(truth, Fraction(1, 2)), {}, manifest_of(BOXES, 8)).count(condition).value
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
    regions = people.partition.locate([coded.columns[name] for name in PEOPLE.predictors])
    drawn = np.bincount(regions * 2 + coded.columns["income"], minlength=2 * people.groups)
    counts = nonnegative(people.counts.counts, "projection").ravel()
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


# Folders.


def assert_equal(one: Release, other: Release) -> None:
    assert (one.schema, one.partition) == (other.schema, other.partition)
    assert one.manifest == other.manifest.with_files(one.manifest.files or {})
    assert one.counts.epsilon == other.counts.epsilon
    assert one.counts.counts.dtype == np.int64
    assert np.array_equal(one.counts.counts, other.counts.counts)
    assert one.margins.keys() == other.margins.keys()
    for attribute, margin in one.margins.items():
        assert margin.epsilon == other.margins[attribute].epsilon
        assert np.array_equal(margin.counts, other.margins[attribute].counts)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(release=box_releases())
def test_saving_and_loading_changes_nothing(release: Release, tmp_path: Path) -> None:
    place = tmp_path / "release"
    shutil.rmtree(place, ignore_errors=True)
    release.save(place)
    assert_equal(Release.load(place), release)


def test_a_release_is_these_files(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == FILES
    assert [path.name for path in saved.parent.iterdir()] == ["release"]


def test_records_open_without_sfumato(saved: Path, people: Release) -> None:
    frame = pd.read_parquet(saved / "records.parquet")
    assert len(frame) == people.counts.counts.size
    assert frame["noisy_count"].sum() == frame["count"].sum() == people.total
    with duckdb.connect() as connection:
        (total,) = connection.execute(
            f"select sum(noisy_count) from '{saved}/records.parquet' where job = 'White-collar' and age = '[17, 38)'"
        ).fetchone()
    assert total == people.count("job = White-collar and age < 38").value


def test_what_is_saved_keeps_negative_counts(saved: Path, people: Release) -> None:
    assert pq.read_table(saved / "records.parquet")["noisy_count"].to_pylist() == people.counts.counts.ravel().tolist()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["append", "empty", "flip", "remove", "folder"])
def test_a_file_that_was_changed_is_refused(saved: Path, name: str, change: str) -> None:
    path = saved / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if change == "append":
        path.write_bytes(content + b"x")
    elif change == "empty":
        path.write_bytes(b"")
    elif change == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif change == "folder":
        path.mkdir()
    with pytest.raises(ReleaseError):
        Release.load(saved)


def edit(saved: Path, **changes: object) -> None:
    plain = json.loads((saved / "manifest.json").read_text()) | changes
    (saved / "manifest.json").write_text(json.dumps(plain))


def reseal(saved: Path, **changes: object) -> None:
    """Do what a forger does: write new digests."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(saved.iterdir())}
    files.pop("manifest.json")
    plain = json.loads((saved / "manifest.json").read_text()) | {"files": files} | changes
    plain.pop("digest")
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    (saved / "manifest.json").write_text(json.dumps(plain | {"digest": digest}))


def test_a_manifest_written_otherwise_but_saying_the_same_is_fine(saved: Path, people: Release) -> None:
    edit(saved)
    assert_equal(Release.load(saved), people)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1/100"},
        {"guarantee": "This release is perfectly safe."},
        {"randomness": "unsafe seed"},
        {"neighbours": "tables that are equal"},
        {"ledger": []},
        {"files": {}},
        {"steps": ["another"]},
        {"extra": 1},
        {"digest": "0" * 64},
        {"schema_digest": "0" * 64},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_manifest_is_refused(saved: Path, changes: dict) -> None:
    edit(saved, **changes)
    with pytest.raises(ReleaseError, match="was edited"):
        Release.load(saved)


@pytest.mark.parametrize("changes", [{"epsilon": "1/100"}, {"guarantee": "Perfectly safe."}, {"extra": 1}], ids=str)
def test_a_promise_that_its_debits_do_not_back_is_refused_even_if_resealed(saved: Path, changes: dict) -> None:
    reseal(saved, **changes)
    with pytest.raises(ReleaseError, match=r"manifest.json must"):
        Release.load(saved)


def test_a_manifest_that_leaves_a_file_unsealed_is_refused(saved: Path) -> None:
    reseal(saved, files={})
    with pytest.raises(ReleaseError):
        Release.load(saved)


def test_a_newer_release_is_refused_as_such(saved: Path) -> None:
    edit(saved, format=FORMAT + 1)
    with pytest.raises(ReleaseError, match="Upgrade Sfumato"):
        Release.load(saved)


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "absent", tmp_path / "file", ""):
        with pytest.raises(ReleaseError):
            Release.load(place)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FUZZ = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def refused(place: Path) -> None:
    with pytest.raises(ReleaseError):
        Release.load(place)


@FUZZ
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"format": Infinity}')
@example(b'{"format": 1e400}')
@example(b"\xff")
@example(b"[" * 100_000)
def test_any_bytes_as_a_manifest_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    refused(tmp_path)


@FUZZ
@given(
    st.sampled_from(["format", "sfumato", "publication", "method", "ledger", "randomness", "steps", "files"]),
    JSON,
)
@example("ledger", [{"label": "x", "mechanism": "x", "epsilon": "1/0", "sensitivity": "1", "cells": 1}])
@example("ledger", [{"label": "x", "mechanism": "x", "epsilon": "1", "sensitivity": "1", "cells": math.inf}])
def test_any_value_in_a_manifest_is_refused_unless_it_says_the_same(saved: Path, field: str, value: object) -> None:
    kept = (saved / "manifest.json").read_text()
    assume(json.loads(kept)[field] != value and value not in (True, 1.0))
    try:
        edit(saved, **{field: value})
        refused(saved)
    finally:
        (saved / "manifest.json").write_text(kept)


@FUZZ
@given(st.sampled_from(["geometry.json", "schema.json"]), JSON, st.sampled_from(["", "partition", "margins_epsilon"]))
@example("geometry.json", {"999": "1"}, "margins_epsilon")
@example("geometry.json", {"0": "1/0"}, "margins_epsilon")
@example("geometry.json", {"0": "x"}, "margins_epsilon")
@example("geometry.json", [], "margins_epsilon")
@example("geometry.json", {"kind": "grid", "cuts": {"job": [], "age": [0, 75]}}, "partition")
@example("geometry.json", {"kind": "grid", "cuts": {"job": [0, math.inf]}}, "partition")
@example("geometry.json", {"kind": "boxes"}, "partition")
@example("geometry.json", {"job": "1/0"}, "margins_epsilon")
@example("geometry.json", {"job": "1e999999999"}, "margins_epsilon")
@example("schema.json", {"attributes": {}}, "")
@example("schema.json", {"attributes": {"a": {"kind": "identifier"}}}, "")
def test_any_forged_content_is_read_or_refused(saved: Path, name: str, value: object, field: str) -> None:
    kept = {one: (saved / one).read_bytes() for one in (name, "manifest.json")}
    try:
        forged = json.loads(kept[name]) | {field: value} if field and name == "geometry.json" else value
        (saved / name).write_text(json.dumps(forged))
        reseal(saved)
        with contextlib.suppress(SfumatoError):
            Release.load(saved).count("age < 30")
    finally:
        for one, content in kept.items():
            (saved / one).write_bytes(content)


@pytest.mark.parametrize("name", ["records.parquet", "margins.parquet"])
@pytest.mark.parametrize(
    "table",
    [
        pa.table({"noisy_count": ["a"], "attribute": ["job"]}),
        pa.table({"noisy_count": [1.5] * 96, "attribute": ["job"] * 96}),
        pa.table({"noisy_count": pa.array([None] * 96, pa.int64()), "attribute": ["job"] * 96}),
        pa.table({"noisy_count": [1], "attribute": ["job"]}),
        pa.table({"other": [1]}),
    ],
    ids=["text", "floats", "nulls", "short", "other"],
)
def test_forged_tables_are_refused(saved: Path, name: str, table: pa.Table) -> None:
    pq.write_table(table, saved / name)
    reseal(saved)
    refused(saved)


def test_an_existing_destination_is_refused_and_untouched(people: Release, tmp_path: Path) -> None:
    for name in ("file", "folder", "link"):
        place = tmp_path / name
        if name == "file":
            place.write_text("mine")
        elif name == "folder":
            place.mkdir()
        else:
            place.symlink_to(tmp_path / "nowhere")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(ReleaseError, match="must not exist yet"):
            people.save(place)
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("step", ["fallocate", "records", "margins", "text", "sync", "rename"])
def test_a_failed_write_leaves_nothing_behind(people: Release, tmp_path, monkeypatch, step: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    place, name = {
        "fallocate": (os, "posix_fallocate"),
        "records": (pq.ParquetWriter, "write_batch"),
        "margins": (pq, "write_table"),
        "text": (Path, "write_text"),
        "sync": (os, "fsync"),
        "rename": (Path, "rename"),
    }[step]
    monkeypatch.setattr(place, name, full)
    with pytest.raises(ReleaseError, match="no space left"):
        people.save(tmp_path / "release")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_refused_release_leaves_no_parent_folders(people: Release, tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ReleaseError):
        people.save(tmp_path / "a" / "b" / "release")
    assert list(tmp_path.iterdir()) == []


def test_space_that_was_set_aside_is_not_part_of_the_release(tmp_path: Path) -> None:
    with storage.staged_folder(tmp_path / "release", 1000) as staging:
        assert (staging / storage.RESERVE).stat().st_size == 1000
        (staging / "file").write_text("x")
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["file"]


def test_a_staged_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with contextlib.suppress(ZeroDivisionError), storage.staged_file(tmp_path / "out") as staging:
        staging.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with storage.staged_file(tmp_path / "out") as staging:
        staging.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"


def test_a_seeded_release_says_that_it_promises_nothing(tmp_path: Path) -> None:
    release = release_of(secure=False)
    release.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    assert "NO guarantee" in loaded.manifest.guarantee
    assert "NO GUARANTEE" in repr(loaded)
    assert json.loads((tmp_path / "release/manifest.json").read_text())["randomness"] == "unsafe seed"


def test_the_promise_is_the_sum_of_the_debits(people: Release) -> None:
    assert people.manifest.epsilon == Fraction(1, 2)
    assert people.manifest.guarantee.startswith("This release is differentially private with epsilon = 1/2:")


def test_a_release_shows_no_counts_in_its_name() -> None:
    assert repr(release_of()) == "Release(test, epsilon=1/2, groups=48)"
