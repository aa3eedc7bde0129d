"""Who counts, and where rows lie: by memory, by name, never told; what cannot be is refused before anything is read."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from command_line import refused
from sfumato import Account, DiffMulti, Schema
from sfumato.engines import counting, kernel, local
from sfumato.engines.counting import Counting, available, in_words, least_memory, memory_of
from sfumato.engines.local import NODE, FileRows
from sfumato.errors import MethodError, SfumatoError, TableError
from sfumato.geometry.grid import Grid
from sfumato.methods.laplace import Laplace
from sfumato.privacy.tally import Tally
from sfumato.tables.streams import BATCH_ROWS

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
def homes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Note the folders to which rows go that do not fit in memory."""
    found: list[Path] = []

    class Noted(FileRows):
        def __init__(self, home: Path, *given: Any) -> None:
            found.append(home)
            super().__init__(home, *given)

    monkeypatch.setattr(local, "FileRows", Noted)
    return found


def publish(folder: Path, table: Any = PEOPLE, **how: Any) -> bytes:
    release = Account(folder / "people.ledger", SCHEMA).publish(
        table, DiffMulti(specializations=20), 1, unsafe_seed=1, **how
    )
    return release.model.counts.counts.tobytes() + repr(release.manifest).encode()


def test_rows_that_fit_are_in_memory_and_else_on_the_disk(tmp_path: Path, homes: list[Path]) -> None:
    each = 1 + 1 + 1 + NODE.itemsize
    in_memory = publish(tmp_path, memory=NEED + ROWS * each)
    assert not homes
    outside = publish(tmp_path, memory=NEED + ROWS * each - 1)
    assert homes[0].parent == tmp_path, "coded rows go beside the ledger"
    assert in_memory == outside, "a release does not tell where rows lay"
    assert publish(tmp_path, engine="local", memory=NEED, scratch=tmp_path / "rows") == in_memory
    assert homes[1].parent == tmp_path / "rows"
    assert not (tmp_path / "rows").exists()


def test_files_and_frames_give_the_same(tmp_path: Path) -> None:
    pa.csv.write_csv(PEOPLE, tmp_path / "people.csv")
    assert publish(tmp_path, tmp_path / "people.csv") == publish(tmp_path)


def test_no_words_tell_where_rows_lie(tmp_path: Path, homes: list[Path]) -> None:
    told: dict[int, list[str]] = {}
    for memory in (NEED, 10**9):
        told[memory] = []
        publish(tmp_path, memory=memory, watch=told[memory].append)
    assert len(homes) == 1
    assert told[NEED] == told[10**9]


def test_a_stream_is_read_once_however_long_it_is(tmp_path: Path, homes: list[Path]) -> None:
    assert publish(tmp_path, PEOPLE.to_reader(100), memory=NEED) == publish(tmp_path)
    assert len(homes) == 1


def test_a_limit_too_small_for_the_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match=r"memory \(100 MB\) must be at least \d+ MB for this schema"):
        publish(tmp_path, table="never opened.csv", memory="100MB")
    wide = Schema.parse(
        {"name": "x", "attributes": {"n": {"kind": "numeric", "lower": 0, "upper": 999_990, "step": 1}}}
    )
    assert least_memory(wide) > NEED + 6 * 10**7


def test_the_machine_and_its_group_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available() > 10**6
    monkeypatch.setattr(counting, "GROUP", tmp_path)
    free = available()
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    assert available() == 3_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available() > free / 2
    monkeypatch.setattr(counting, "available", lambda: 2 * NEED)
    assert Counting()._allowed == NEED


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
    told = refused("publish", "adult", "--method", *method, "--engine", "spark", "--out", "release")
    assert f"engine (spark) must be local for {method[0]}" in told
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
        (kernel, "np", types.SimpleNamespace(**vars(np) | {"concatenate": ended})),
        (CODING, "encoder_of", lambda *_: ended),
        (local, "merged", ended),
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


TOWNS = Schema.parse(
    {
        "confirmed": True,
        "attributes": {"town": {"kind": "categorical", "taxonomy": ["x", "y", "none"], "missing": "none"}},
    }
)


def towns(table: Any, memory: int, folder: Path) -> list[int]:
    with Counting.of(memory=memory, scratch=folder).opened(table, TOWNS) as counted:
        counts = counted.tally(Tally(Grid.whole(TOWNS.shape), 1, (0,)))
    return counts.by_leaf[0].dense(1).ravel().tolist()


@pytest.mark.parametrize("memory", [10**9, least_memory(TOWNS)], ids=["memory", "disk"])
def test_a_value_that_arrow_does_not_take_changes_no_other(memory: int, tmp_path: Path) -> None:
    """A batch that is read value by value is of another Arrow type than the batch before it."""

    def counted(last: list[str]) -> list[int]:
        column = pd.Series(["x"] * BATCH_ROWS + last, dtype="string[python]")
        return towns(pd.DataFrame({"town": column}), memory, tmp_path)

    assert counted(["y"]) == [BATCH_ROWS, 1, 0]
    assert counted(["\ud800", "y"]) == [BATCH_ROWS, 1, 1]


def test_a_scratch_folder_does_not_tell_how_many_rows_there_were(tmp_path: Path, homes: list[Path]) -> None:
    """One row more makes the difference between memory and disk, and no other."""
    rows = 300_000
    people = pa.table({"town": ["x"] * rows})
    limit = least_memory(TOWNS) + (rows - 1) * (1 + 1 + NODE.itemsize)
    account = Account(tmp_path / "people.ledger", TOWNS)
    for number, table in enumerate((people.slice(1), people)):
        account.publish(table, Laplace(), 1, unsafe_seed=1, memory=limit, scratch=tmp_path / f"scratch{number}")
    assert len(homes) == 1
    assert (tmp_path / "scratch0").exists() == (tmp_path / "scratch1").exists()
