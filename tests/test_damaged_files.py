"""Files that were cut short or damaged, and parts that do not agree: one sentence, whether or not memory is short."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import CANARIES, GOOD, HEADER, SCHEMA, contents, people, publish, refused, run
from sfumato import Schema
from sfumato.engines.counting import Counting
from sfumato.errors import SfumatoError

MEMORY = ("4GB", "400MB")
"""Much, and so little that rows go to the disk."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.schema.yaml").write_text(SCHEMA)
    return tmp_path


def refused_alike(data: str) -> str:
    """Give the sentence."""
    told = [refused(*publish("--memory", memory, data=data)) for memory in MEMORY]
    assert told[0] == told[1]
    return told[0]


def parquet(rows: int = 3000, **how: Any) -> bytes:
    """Give a file of people, several row groups of compressed pages, without the column that is not read."""
    sink = pa.BufferOutputStream()
    pq.write_table(people(rows).drop_columns(["name"]), sink, row_group_size=rows // 3, **how)
    return sink.getvalue().to_pybytes()


def footer(whole: bytes) -> int:
    """Tell where the footer of a Parquet file begins."""
    return len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")


CUTS: dict[str, Callable[[bytes], int]] = {
    "a tenth": lambda whole: len(whole) // 10,
    "half": lambda whole: len(whole) // 2,
    "nearly all": lambda whole: len(whole) * 99 // 100,
    "all but a byte": lambda whole: len(whole) - 1,
    "into the footer": lambda whole: (footer(whole) + len(whole)) // 2,
    "the first mark": lambda _: 4,
}


@pytest.mark.parametrize("cut", list(CUTS))
def test_a_file_that_was_cut_short_is_refused(folder: Path, cut: str) -> None:
    whole = parquet()
    (folder / "people.parquet").write_bytes(whole[: CUTS[cut](whole)])
    assert "people.parquet must be well-formed and readable" in refused_alike("people.parquet")


def test_a_folder_with_one_file_cut_short_is_refused(folder: Path) -> None:
    whole = parquet()
    (folder / "people").mkdir()
    for name, size in (("a", len(whole)), ("b", len(whole) // 2), ("c", len(whole))):
        (folder / "people" / f"{name}.parquet").write_bytes(whole[:size])
    assert "b.parquet must be well-formed and readable" in refused_alike("people")


def test_a_folder_with_one_damaged_page_is_refused(folder: Path) -> None:
    whole = parquet(compression="zstd")
    (folder / "people").mkdir()
    (folder / "people" / "a.parquet").write_bytes(whole)
    (folder / "people" / "b.parquet").write_bytes(_overwritten(whole))
    assert "people must be well-formed and readable" in refused_alike("people")


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lambda table: table.set_column(0, "age", table["age"].cast(pa.float64())), "column age"),
        (lambda table: table.drop_columns(["sex"]), "column sex"),
        (lambda table: table.select(table.column_names[::-1]), "the order of its columns"),
    ],
    ids=["type", "column", "order"],
)
def test_a_folder_of_different_schemas_is_refused(
    folder: Path, change: Callable[[pa.Table], pa.Table], about: str
) -> None:
    (folder / "people").mkdir()
    table = people().drop_columns(["name"])
    pq.write_table(table, folder / "people" / "a.parquet")
    pq.write_table(change(table), folder / "people" / "b.parquet")
    told = refused_alike("people")
    assert "same columns of the same types" in told
    assert about in told


def _overwritten(whole: bytes) -> bytes:
    """Damage the pages of the middle of a file."""
    middle = footer(whole) // 2
    return whole[:middle] + b"\xff" * 200 + whole[middle + 200 :]


def _flipped(whole: bytes) -> Iterator[bytes]:
    """Flip one byte, here and there in the pages."""
    for at in np.random.default_rng(0).integers(4, footer(whole), 12).tolist():
        yield whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_a_damaged_page_is_refused_or_read_alike(folder: Path, compression: str) -> None:
    """Parquet need not hold checksums, so a byte that was flipped may leave a file that says something else."""
    (folder / "people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    told = set()
    for number, damaged in enumerate([_overwritten(parquet(compression=compression)), *_flipped(parquet())]):
        (folder / "people.parquet").write_bytes(damaged)
        results = []
        for memory in MEMORY:
            out = f"out-{number}-{memory}"
            before = contents()
            result = run(*publish("--memory", memory, "--unsafe-seed", "1", "--out", out, data="people.parquet"))
            assert result.exit_code in (0, 2), result.exception
            assert not any(canary in result.output + result.stderr for canary in CANARIES)
            if result.exit_code:
                assert result.stderr.count("\n") == 1
                assert contents() == before
            results.append((result.stderr, _saved(folder / out)))
        assert results[0] == results[1]
        told.add(results[0][0])
    assert any("well-formed" in one for one in told)


def _saved(folder: Path) -> dict[str, bytes]:
    """Take a release away, and give its counts."""
    found = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    shutil.rmtree(folder, ignore_errors=True)
    for path in Path().glob("people.ledger*"):
        path.unlink()
    return found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("CANARY 2,30,Female\n", "as many fields as its header (line 3)"),
        ('CANARY 2,30,"Female,Dancer,Earth,low\n', "must be closed"),
    ],
)
def test_a_broken_line_is_told_by_its_number(folder: Path, line: str, told: str) -> None:
    (folder / "people.csv").write_text(HEADER + GOOD + line + GOOD)
    assert told in refused_alike("people.csv")


def _in_both(table: Callable[[], Any], schema: Schema, folder: Path) -> list[str]:
    """Give what is said of a table."""
    told = []
    for memory in MEMORY:
        with (
            pytest.raises(SfumatoError) as caught,
            Counting.of(memory=memory, scratch=folder).opened(table(), schema),
        ):
            pass
        assert caught.value.__context__ is None
        told.append(str(caught.value))
    return told


NUMBERS = Schema.parse({"attributes": {"x": {"kind": "numeric", "lower": 0, "upper": 9}}})


def test_a_stream_that_breaks_is_told_in_its_own_words(tmp_path: Path) -> None:
    def reader() -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"x": [1]})
            raise ValueError("CANARY")

        return pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches())

    told = _in_both(reader, NUMBERS, tmp_path)
    assert told[0] == told[1]
    assert "CANARY" not in told[0]
    assert list(tmp_path.iterdir()) == []


def test_a_coder_that_fails_in_a_stream_names_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Callable[[object], object]:
        def code(_: object) -> object:
            raise ValueError("CANARY")

        return code

    monkeypatch.setattr(importlib.import_module("sfumato.tables.encode"), "encoder_of", broken)
    moments = pa.table({"x": pa.array([1], pa.timestamp("ns"))})
    told = _in_both(lambda: moments, NUMBERS, tmp_path)
    assert told == [told[0]] * 2
    assert "column x must be of a type that can be read" in told[0]
    pq.write_table(pa.table({"x": pa.array([1], pa.time64("us"))}), tmp_path / "t.parquet")
    told = _in_both(lambda: tmp_path / "t.parquet", NUMBERS, tmp_path / "rows")
    assert told == [told[0]] * 2
    assert "column x must be of a type that can be read" in told[0]
