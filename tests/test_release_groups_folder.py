"""Releases of groups on disk: orders and histogram come back, and what is forged does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from groups_by_hand import group_releases, groups_of
from handmade import SOME_RELEASES, assert_equal, assert_same_noisy, reloaded
from sfumato import Release
from sfumato.errors import ReleaseError
from test_release_folder import reseal


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    groups_of().save(tmp_path / "release")
    return tmp_path / "release"


def assert_same(loaded: Release, release: Release) -> None:
    assert_equal(loaded, release)
    assert loaded.model.histogram is not None
    assert release.model.histogram is not None
    assert_same_noisy(loaded.model.histogram, release.model.histogram)


@SOME_RELEASES
@given(release=group_releases())
def test_saving_and_loading_changes_nothing(release: Release, tmp_path: Path) -> None:
    loaded = reloaded(release, tmp_path / "release")
    assert_same(loaded, release)
    assert loaded.sample_codes(50, seed=1)["a"].tolist() == release.sample_codes(50, seed=1)["a"].tolist()


def test_groups_without_a_histogram_are_a_grid_with_orders(tmp_path: Path) -> None:
    release = replace(groups_of(), histogram=None)
    release.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    assert_equal(loaded, release)
    assert loaded.regions.orders == ((0, 1, 4, 2, 3, 5), (0, 3, 1, 2), None)
    assert loaded.model.histogram is None
    assert not (tmp_path / "release" / "histogram.parquet").exists()


def test_records_show_the_means_of_both_counts(saved: Path) -> None:
    frame = pd.read_parquet(saved / "records.parquet")
    assert frame["noisy_count"].to_numpy() == pytest.approx(groups_of().estimates.values.ravel(), abs=5e-4)
    counts = pd.read_parquet(saved / "counts.parquet")
    assert np.array_equal(counts.to_numpy(), groups_of().counts.counts)


def forge_geometry(saved: Path, change: Callable[[dict], object]) -> None:
    geometry = json.loads((saved / "geometry.json").read_text())
    change(geometry)
    (saved / "geometry.json").write_text(json.dumps(geometry))
    reseal(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda geometry: geometry.pop("histogram_epsilon"),
        lambda geometry: geometry.update(histogram_epsilon="0"),
        lambda geometry: geometry.update(histogram_epsilon="-1/2"),
        lambda geometry: geometry.update(histogram_epsilon=None),
        lambda geometry: geometry.pop("counts_epsilon"),
        lambda geometry: geometry["partition"]["orders"].update(b=[0, 1, 1, 2]),
        lambda geometry: geometry["partition"]["orders"].update(b=[0, 1, 2]),
        lambda geometry: geometry["partition"]["orders"].update(b=[0, 1, 2, 4]),
        lambda geometry: geometry["partition"]["orders"].update(b=[3, 2, 1, "one"]),
        lambda geometry: geometry["partition"]["orders"].update(b=7),
        lambda geometry: geometry["partition"].update(orders=[1]),
        lambda geometry: geometry["partition"]["cuts"].update(b=[0, 4]),
        lambda geometry: geometry["partition"]["cuts"].update(b=[0, 2, 5]),
        lambda geometry: geometry["partition"].update(kind="grid"),
        lambda geometry: geometry["partition"].update(kind="tree"),
        lambda geometry: geometry["partition"].update(kind="cloud"),
    ],
)
def test_a_forged_geometry_is_refused(saved: Path, change: Callable[[dict], object]) -> None:
    forge_geometry(saved, change)
    with pytest.raises(ReleaseError):
        Release.load(saved)


def test_another_order_is_another_release(saved: Path) -> None:
    """What is no contradiction cannot be told from the truth: the digest is no signature."""
    forge_geometry(saved, lambda geometry: geometry["partition"]["orders"].update(b=[1, 2, 0, 3]))
    assert Release.load(saved).partition.orders[1] == (1, 2, 0, 3)


@pytest.mark.parametrize("name", ["histogram.parquet", "counts.parquet"])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(1),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        lambda table: table.slice(0, 0),
        lambda table: table.drop_columns(table.column_names[-1:]),
        lambda table: table.rename_columns(["one", "other"]),
        lambda table: table.cast(pa.schema([(name, pa.float64()) for name in table.column_names])),
        lambda table: table.cast(pa.schema([(name, pa.string()) for name in table.column_names])),
    ],
)
def test_forged_counts_are_refused(saved: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(saved / name)), saved / name)
    reseal(saved)
    with pytest.raises(ReleaseError):
        Release.load(saved)


@pytest.mark.parametrize("name", ["histogram.parquet", "counts.parquet"])
def test_a_missing_file_is_refused(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ReleaseError):
        Release.load(saved)
    reseal(saved)
    with pytest.raises(ReleaseError, match="exactly the files"):
        Release.load(saved)
