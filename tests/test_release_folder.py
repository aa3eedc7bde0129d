"""A release on disk: whole and unchanged as it was saved, or refused."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from handmade import SOME_RELEASES, assert_equal, box_releases, release_of, reloaded
from sfumato import Release, storage
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release.manifest import FORMAT

FILES = ["geometry.json", "manifest.json", "margins.parquet", "records.parquet", "schema.json"]


@SOME_RELEASES
@given(release=box_releases())
def test_saving_and_loading_changes_nothing(release: Release, tmp_path: Path) -> None:
    assert_equal(reloaded(release, tmp_path / "release"), release)


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
