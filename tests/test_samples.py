"""Samples of a release lie in the declared domain and fall as it counted."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sfumato.models.consistency import nonnegative

from handmade import BOXES, PEOPLE, release_of
from sfumato import Release, Schema
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release.records import draw_cells
from sfumato.tables import encode, open_table


def test_samples_lie_in_the_domain(people: Release) -> None:
    """Every drawn value has a leaf, none lies outside the declared bounds."""
    sample = people.sample(5000, seed=1)
    coded = encode(open_table(sample), PEOPLE)
    assert coded.misfits == ()
    assert coded.outside == {}


def test_samples_fall_into_groups_as_counted(people: Release) -> None:
    size = 40_000
    coded = encode(open_table(people.sample(size, seed=2)), PEOPLE)
    regions = people.partition.locate([coded.columns[name] for name in PEOPLE.predictors], coded.rows)
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


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 200), st.integers(0, 2**32))
def test_every_cell_is_drawn_as_often_as_expected_rounded_up_or_down(weights: list[int], size: int, seed: int) -> None:
    drawn = draw_cells(np.array(weights), size, np.random.default_rng(seed))
    found = np.bincount(drawn, minlength=len(weights))
    shares = np.array(weights) if any(weights) else np.ones(len(weights))
    expected = size * shares / shares.sum()
    assert len(drawn) == size
    assert (np.abs(found - expected) < 1 + 1e-9).all()
    assert not found[shares == 0].any()


def test_cells_are_drawn_in_no_order() -> None:
    drawn = draw_cells(np.ones(1000), 1000, np.random.default_rng(1))
    assert abs(np.corrcoef(drawn, np.arange(1000))[0, 1]) < 0.2
