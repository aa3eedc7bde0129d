"""Which engine counts: by memory, by name, never told; and what cannot be is refused before anything is read."""

from __future__ import annotations

import importlib
import sys
import types
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from command_line import refused
from sfumato import Account, DiffMulti, Schema
from sfumato.engines import counting
from sfumato.engines import counting as memory_limit
from sfumato.engines.counting import Counting, available, in_words, least_memory, memory_of
from sfumato.engines.duckdb import duckdb_engine
from sfumato.errors import MethodError, SfumatoError, TableError
from sfumato.geometry.grid import Grid
from sfumato.methods.laplace import Laplace
from sfumato.privacy.tally import CountEngine, Tally
from sfumato.schema.schema import Schema as Declared
from sfumato.tables.streams import BATCH_ROWS, Table

SCHEMA = Schema.parse(
    {
        "name": "people",
        "confirmed": True,
        "attributes": {
            "who": {"kind": "identifier"},
            "age": {"kind": "numeric", "lower": 0, "upper": 100, "step": 1},
            "town": {"kind": "categorical", "taxonomy": {"any": ["A", "B", "C"]}},
        },
    }
)
ROWS = 5000
RNG = np.random.default_rng(0)
PEOPLE = pa.table(
    {
        "who": np.arange(ROWS),
        "age": RNG.integers(0, 101, ROWS),
        "town": np.array(["A", "B", "C"])[RNG.integers(0, 3, ROWS)],
    }
)
NEED = least_memory(SCHEMA)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Note what DuckDB is given."""
    found: list[dict[str, Any]] = []

    def engine(table: Table, schema: Declared, **how: Any) -> AbstractContextManager[CountEngine]:
        found.append({"table": table, **how})
        return duckdb_engine(table, schema, **how)

    monkeypatch.setattr(counting, "duckdb_engine", engine)
    return found


def publish(folder: Path, table: Any = PEOPLE, **how: Any) -> bytes:
    release = Account(folder / "people.ledger", SCHEMA).publish(
        table, DiffMulti(specializations=20), 1, unsafe_seed=1, **how
    )
    return release.model.counts.counts.tobytes() + repr(release.manifest).encode()


def test_a_table_that_fits_is_counted_in_memory_and_else_by_duckdb(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    each = 1 + 1 + 1 + 4 + 1
    in_memory = publish(tmp_path, memory=NEED + ROWS * each)
    assert not asked
    outside = publish(tmp_path, memory=NEED + ROWS * each - 1)
    assert [one["memory"] for one in asked] == [NEED + ROWS * each - 1]
    assert asked[0]["home"].parent == tmp_path, "coded rows go beside the ledger"
    assert in_memory == outside, "a release does not tell which engine counted"
    assert publish(tmp_path, engine="duckdb", scratch=tmp_path / "rows") == in_memory
    assert asked[1]["home"].parent == tmp_path / "rows"
    assert not (tmp_path / "rows").exists()


def test_files_are_left_to_duckdb_itself(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    pa.csv.write_csv(PEOPLE, tmp_path / "people.csv")
    assert publish(tmp_path, tmp_path / "people.csv", engine="duckdb") == publish(tmp_path)
    assert "people.csv" in asked[0]["table"].sql


def test_no_words_tell_the_engine(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    told: dict[str, list[str]] = {}
    for engine in ("memory", "duckdb"):
        told[engine] = []
        publish(tmp_path, engine=engine, watch=told[engine].append)
    assert asked
    assert told["memory"] == told["duckdb"]


def test_a_limit_is_kept_also_by_memory(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="codes must fit"):
        publish(tmp_path, engine="memory", memory=NEED + 10)
    publish(tmp_path, engine="memory")


def test_a_stream_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="read once"):
        publish(tmp_path, PEOPLE.to_reader(100), memory=NEED + 10)
    assert publish(tmp_path, PEOPLE.to_reader(100)) == publish(tmp_path)


def test_a_limit_too_small_for_the_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match=r"memory \(100 MB\) must be at least \d+ MB for this schema"):
        publish(tmp_path, table="never opened.csv", memory="100MB")
    wide = Schema.parse(
        {"name": "x", "attributes": {"n": {"kind": "numeric", "lower": 0, "upper": 999_990, "step": 1}}}
    )
    assert least_memory(wide) > NEED + 6 * 10**7


def test_the_machine_and_its_group_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available() > 10**6
    monkeypatch.setattr(memory_limit, "GROUP", tmp_path)
    free = available()
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    assert available() == 3_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available() > free / 2
    monkeypatch.setattr(counting, "available", lambda: 2 * (NEED + 10))
    assert Counting()._most_rows(SCHEMA) == 1


@pytest.mark.parametrize("size", ["", "much", "-1GB", "0", "4 parsecs", "1e9", "9" * 30, "9" * 400])
def test_sizes_that_are_none_are_refused(size: str) -> None:
    with pytest.raises(MethodError, match="memory"):
        memory_of(size)


def test_sizes_are_read() -> None:
    assert [memory_of(size) for size in ("512mb", "1 KiB", "2T", 77)] == [512 * 10**6, 1024, 2 * 10**12, 77]
    assert in_words(1) == "1 MB"


def test_engines_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match=r"engine \(abacus\)"):
        publish(tmp_path, engine="abacus")
    with pytest.raises(MethodError, match="master must go with"):
        publish(tmp_path, master="local[2]")


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("method", [["mondrian", "--k", "5"], ["tds", "--k", "5"]])
@pytest.mark.usefixtures("alone")
def test_methods_that_work_on_records_say_so(method: list[str]) -> None:
    for engine in ("duckdb", "spark"):
        told = refused("publish", "adult", "--method", *method, "--engine", engine, "--out", "release")
        assert f"engine ({engine}) must be memory for {method[0]}" in told
    assert "--memory must go with" in refused(
        "publish", "adult", "--method", *method, "--memory", "4GB", "--out", "release"
    )


def test_spark_that_cannot_be_had_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No PySpark, no Java, a session that is gone, files that are not for Spark: each in one sentence."""
    import pyarrow.parquet as pq

    from sfumato.tables.frames import spark_frame

    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(TableError, match="must find PySpark"), spark_frame(tmp_path / "people.parquet", None, tmp_path):
        pass
    for source in (tmp_path / "people.csv", "people.duckdb::people", PEOPLE):
        with pytest.raises(TableError, match="Spark frame or Parquet files"), spark_frame(source, None, tmp_path):
            pass
    with pytest.raises(TableError, match="must exist"), spark_frame(tmp_path / "none.parquet", None, tmp_path):
        pass


def test_a_frame_of_a_session_that_is_gone_is_refused() -> None:
    from sfumato.tables.frames import spark_frame

    class Frame:
        """A frame without its session."""

        toLocalIterator = None  # noqa: N815

        @property
        def sparkSession(self) -> Any:  # noqa: N802
            raise ConnectionError("CANARY")

    Frame.__module__ = "pyspark.sql.dataframe"
    with pytest.raises(TableError, match="session that runs") as told, spark_frame(Frame(), None, Path()):
        pass
    assert "CANARY" not in str(told.value)


def ended(*_: Any, **__: Any) -> Any:
    raise MemoryError(f"Unable to allocate an array with shape ({ROWS},)")


CODING = importlib.import_module("sfumato.tables.encode")


@pytest.mark.parametrize(
    "place",
    [
        (CODING, "np", types.SimpleNamespace(**vars(np) | {"concatenate": ended})),
        (CODING, "encoder_of", lambda *_: ended),
        (counting, "merged", ended),
    ],
    ids=["joining", "coding", "merging"],
)
def test_memory_that_ends_is_told_without_a_number_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str, Any]
) -> None:
    """NumPy says how much it wanted, which is the number of rows."""
    monkeypatch.setattr(*place)
    with pytest.raises(SfumatoError, match="must fit in memory") as caught:
        publish(tmp_path)
    assert str(ROWS) not in str(caught.value)
    assert caught.value.__context__ is None


# Frames that memory leaves to DuckDB: the one row more that makes the difference must make no other.

TOWNS = Schema.parse(
    {
        "confirmed": True,
        "attributes": {"town": {"kind": "categorical", "taxonomy": ["x", "y", "none"], "missing": "none"}},
    }
)
NAMES = [f"a town of some length {number}" for number in range(40)]
WIDE = Schema.parse(
    {
        "confirmed": True,
        "attributes": {f"a{place}": {"kind": "categorical", "taxonomy": NAMES} for place in range(10)},
    }
)


def towns(table: Any, engine: str, folder: Path) -> list[int]:
    with Counting.of(engine, scratch=folder).opened(table, TOWNS) as counted:
        counts = counted.tally(Tally(Grid.whole(TOWNS.shape), 1, (0,)))
    return counts.by_leaf[0].dense(1).ravel().tolist()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_value_that_arrow_does_not_take_changes_no_other(engine: str, tmp_path: Path) -> None:
    """A batch that is read value by value is of another Arrow type than the batch before it."""

    def counted(last: list[str]) -> list[int]:
        column = pd.Series(["x"] * BATCH_ROWS + last, dtype="string[python]")
        return towns(pd.DataFrame({"town": column}), engine, tmp_path)

    assert counted(["y"]) == [BATCH_ROWS, 1, 0]
    assert counted(["\ud800", "y"]) == [BATCH_ROWS, 1, 1]


def test_a_frame_that_is_one_row_too_long_for_memory_is_counted_by_duckdb(tmp_path: Path) -> None:
    """Joins with dictionaries must stream the rows past the dictionaries, and not the other way round."""
    rows = 1_000_000
    column = pa.array(NAMES).take(pa.array(np.random.default_rng(0).integers(0, 40, rows)))
    people = pa.table(dict.fromkeys(WIDE.attributes, column))
    limit = least_memory(WIDE) + (rows - 1) * (10 + 1 + 4 + 1)
    account = Account(tmp_path / "people.ledger", WIDE)
    account.publish(people.slice(1), DiffMulti(specializations=2), 1, unsafe_seed=1, memory=limit)
    account.publish(people, DiffMulti(specializations=2), 1, unsafe_seed=1, memory=limit)


def test_a_scratch_folder_does_not_tell_how_many_rows_there_were(tmp_path: Path) -> None:
    rows = 300_000
    people = pa.table({"town": ["x"] * rows})
    limit = least_memory(TOWNS) + (rows - 1) * (1 + 1 + 4 + 1)
    account = Account(tmp_path / "people.ledger", TOWNS)
    for number, table in enumerate((people.slice(1), people)):
        account.publish(table, Laplace(), 1, unsafe_seed=1, memory=limit, scratch=tmp_path / f"scratch{number}")
    assert (tmp_path / "scratch0").exists() == (tmp_path / "scratch1").exists()
