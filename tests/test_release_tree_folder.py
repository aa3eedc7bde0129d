"""Releases over trees on disk: nothing is lost, and nothing forged is read."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from handmade import (
    SOME_RELEASES,
    assert_equal,
    handmade_tree,
    release_over,
    reloaded,
    tree_releases,
)
from sfumato import Release
from sfumato.errors import ReleaseError
from test_release_folder import refused, reseal

FILES = {"counts", "earlier", "margins", "nodes", "records"}


@pytest.fixture
def release() -> Release:
    return release_over(handmade_tree(), [[40, 10], [5, -2], [9, 30]], {2: [20, 25], 0: [60, 44], 3: [3, 1]})


@pytest.fixture
def saved(release: Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "release")
    return tmp_path / "release"


@SOME_RELEASES
@given(release=tree_releases())
def test_saving_and_loading_changes_nothing(release: Release, tmp_path: Path) -> None:
    loaded = reloaded(release, tmp_path / "release")
    assert_equal(loaded, release)
    assert np.array_equal(loaded.model.values, release.model.values)


def test_a_release_over_a_tree_is_these_files(saved: Path, release: Release) -> None:
    assert {path.stem for path in saved.glob("*.parquet")} == FILES
    assert {path.stem for path in saved.glob("*.json")} == {"geometry", "manifest", "schema"}
    frame = pd.read_parquet(saved / "records.parquet")
    assert frame["noisy_count"].to_numpy() == pytest.approx(release.model.values.ravel(), abs=5e-4)
    assert frame["count"].sum() == release.total


def test_how_counts_agree_is_kept(release: Release, tmp_path: Path) -> None:
    published = replace(release, consistency="paper")
    published.save(tmp_path / "published")
    loaded = Release.load(tmp_path / "published")
    assert loaded.consistency == "paper"
    assert np.array_equal(loaded.model.values, published.model.values)
    assert not np.allclose(loaded.model.values, release.model.values)


def test_before_there_was_a_choice_counts_agreed_by_least_squares(saved: Path, release: Release) -> None:
    geometry = json.loads((saved / "geometry.json").read_text())
    assert geometry.pop("consistency") == "least squares"
    (saved / "geometry.json").write_text(json.dumps(geometry))
    reseal(saved)
    assert np.array_equal(Release.load(saved).estimates.values, release.model.values)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_was_changed_is_refused(saved: Path, name: str) -> None:
    content = bytearray((saved / f"{name}.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (saved / f"{name}.parquet").write_bytes(content)
    with pytest.raises(ReleaseError, match="was changed"):
        Release.load(saved)


@pytest.mark.parametrize(
    ("name", "column", "row", "value"),
    [
        ("nodes", "parent", 3, 1),
        ("nodes", "parent", 3, 4),
        ("nodes", "parent", 1, -1),
        ("nodes", "parent", 4, 99),
        ("nodes", "attribute", 4, 0),
        ("nodes", "attribute", 4, 7),
        ("nodes", "attribute", 1, -1),
        ("nodes", "high", 2, 5),
        ("nodes", "high", 2, 7),
        ("nodes", "high", 2, 2**33 + 6),
        ("nodes", "low", 2, 1),
        ("nodes", "low", 1, 1),
        ("counts", "node", 0, 2),
        ("counts", "node", 0, 3),
        ("counts", "rate", 1, 1),
        ("counts", "rate", 1, -1),
        ("earlier", "round", 0, 1),
        ("earlier", "round", 0, -1),
        ("earlier", "node", 0, 5),
        ("earlier", "node", 0, -1),
        ("earlier", "node", 0, 3),
        ("earlier", "rate", 0, 9),
    ],
)
def test_forged_numbers_are_refused(saved: Path, name: str, column: str, row: int, value: int) -> None:
    table = pq.read_table(saved / f"{name}.parquet")
    numbers = table[column].to_pylist()
    numbers[row] = value
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(numbers)), saved / f"{name}.parquet")
    reseal(saved)
    refused(saved)


@pytest.mark.parametrize(
    ("name", "forge"),
    [
        *itertools.product(["nodes", "counts", "earlier"], ["floats", "nulls", "other"]),
        *itertools.product(["nodes", "counts"], ["short", "empty"]),
    ],
)
def test_forged_tables_are_refused(saved: Path, name: str, forge: str) -> None:
    table = pq.read_table(saved / f"{name}.parquet")
    forged = {
        "short": table.slice(1),
        "empty": table.slice(0, 0),
        "floats": table.cast(pa.schema([(one, pa.float64()) for one in table.column_names])),
        "nulls": pa.table({one: pa.nulls(len(table), pa.int64()) for one in table.column_names}),
        "other": table.rename_columns([f"{one}_" for one in table.column_names]),
    }[forge]
    pq.write_table(forged, saved / f"{name}.parquet")
    reseal(saved)
    refused(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"counts_rates": []},
        {"counts_rates": ["0"]},
        {"counts_rates": ["1/0"]},
        {"counts_rates": 5},
        {"earlier_rates": []},
        {"earlier_rates": [["-1"]]},
        {"earlier_rates": [[]]},
        {"earlier_rates": None},
        {"consistency": "wish"},
        {"consistency": ["paper"]},
        {"consistency": None},
        {"partition": {"kind": "grid", "cuts": {"a": [0, 6], "b": [0, 4], "c": [0, 3]}}},
        {"partition": {"kind": ["tree"]}},
    ],
    ids=str,
)
def test_forged_geometry_is_refused(saved: Path, changes: dict) -> None:
    geometry = json.loads((saved / "geometry.json").read_text())
    (saved / "geometry.json").write_text(json.dumps(geometry | changes))
    reseal(saved)
    refused(saved)


@pytest.mark.parametrize("name", ["nodes", "counts", "earlier"])
def test_a_manifest_that_leaves_a_file_of_the_tree_unsealed_is_refused(saved: Path, name: str) -> None:
    (saved / f"{name}.parquet").unlink()
    reseal(saved)
    refused(saved)
