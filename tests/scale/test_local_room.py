"""A disk that is too small for the rows, for real: one sentence, nothing spent before the first debit, no rubbish."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from no_room import NO_ROOM, people, published, small_disk, spent

ROWS, ATTRIBUTES = 5_000_000, 60
"""600 MB of codes; the least that this schema may have is 490 MB."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("table"), ROWS, ATTRIBUTES)


@pytest.mark.parametrize("how", ["no file beyond 20 MB", "a disk of 20 MB"])
def test_rows_without_room_are_told_before_anything_is_spent(table: Path, tmp_path: Path, how: str) -> None:
    with contextlib.ExitStack() as stack:
        scratch: Path | None = tmp_path / "rows"
        if how == "a disk of 20 MB":
            scratch = stack.enter_context(small_disk(tmp_path / "rows", "20m"))
        if scratch is None:
            pytest.skip("only root may mount a disk")
        limit = 20_000_000 if how == "no file beyond 20 MB" else None
        told = published(table, "--memory", "500MB", "--scratch", str(scratch), largest_file=limit)
        assert (told.returncode, told.stdout, told.stderr) == (2, "", NO_ROOM)
        assert not scratch.exists() or list(scratch.iterdir()) == []
    assert spent(table) == []
    assert not (table.parent / "out").exists()


def test_less_memory_than_the_schema_needs_is_refused_before_reading(table: Path) -> None:
    beside = table.with_name("people2.parquet")
    beside.write_bytes(b"PAR1 no table at all")
    beside.with_suffix(".schema.yaml").write_bytes(table.with_suffix(".schema.yaml").read_bytes())
    told = published(beside, "--memory", "300MB")
    assert told.returncode == 2
    assert "memory (300 MB) must be at least" in told.stderr
    assert told.stderr.count("\n") == 1
    assert "well-formed" in published(beside, "--memory", "500MB").stderr, "it would be refused if it were read"
