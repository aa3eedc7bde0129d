"""What DuckDB's engine leaves behind, refuses and asks for; and that a round is one scan."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Schema, datasets
from sfumato.engines.counting import Counting
from sfumato.engines.duckdb import LOCK, PREFIX, duckdb_engine, sweep
from sfumato.errors import CountError, TableError, guarded
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.privacy.tally import CountEngine, Tally
from sfumato.tables.sources import open_table

CANARY = "KANARIENVOGEL"
SCHEMA = Schema.parse({"attributes": {"x": {"kind": "categorical", "taxonomy": ["a", "b"]}}})
TALLY = Tally(Grid.whole((2,)), 1, (0,))


def opened(table: Any, folder: Path, schema: Schema = SCHEMA) -> AbstractContextManager[CountEngine]:
    return Counting.of("duckdb", scratch=folder).opened(table, schema)


def test_rows_live_in_a_private_folder_that_goes(tmp_path: Path) -> None:
    with opened(pa.table({"x": ["a", "b"]}), tmp_path) as engine:
        (home,) = [path for path in tmp_path.iterdir() if path.is_dir()]
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert engine.tally(TALLY).by_place.tolist() == [[2]]
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing_either(tmp_path: Path) -> None:
    with (
        pytest.raises(TableError, match="x: value not in the taxonomy") as caught,
        opened(pa.table({"x": ["a", CANARY, CANARY]}), tmp_path),
    ):
        pass
    assert CANARY not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_the_dead_left_is_swept_and_the_living_are_left_alone(tmp_path: Path) -> None:
    for name in ("dead", "alive"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
        (tmp_path / f"{PREFIX}{name}" / "rows.tmp").write_bytes(b"rows")
        (tmp_path / f"{PREFIX}{name}{LOCK}").touch()
    held = os.open(tmp_path / f"{PREFIX}alive{LOCK}", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    with opened(pa.table({"x": ["a"]}), tmp_path):
        assert (tmp_path / f"{PREFIX}alive" / "rows.tmp").exists()
    os.close(held)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}alive", f"{PREFIX}alive{LOCK}"]


def test_what_others_left_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{PREFIX}dead").mkdir()
    (tmp_path / f"{PREFIX}dead{LOCK}").touch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: (tmp_path / f"{PREFIX}dead{LOCK}").stat().st_uid + 1)
        sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file/below", "x" * 300, "a\0b"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="must be writable"), opened(pa.table({"x": ["a"]}), tmp_path / name):
        pass


def test_a_folder_that_had_to_be_made_goes_with_the_rows(tmp_path: Path) -> None:
    with opened(pa.table({"x": ["a"]}), tmp_path / "new" / "newer"):
        assert (tmp_path / "new" / "newer").exists()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_stays_locked_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        with opened(pa.table({"x": ["a"]}), tmp_path):
            pass
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_scan_that_ends_early_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.engines import duckdb as module

    with opened(pa.table({"x": ["a", "b"]}), tmp_path) as engine:
        monkeypatch.setattr(module, "reader_of", lambda _: iter(()))
        with pytest.raises(CountError, match="must have an answer"):
            engine.tally(Tally(Tree.whole((2,)), 1, (0,)))


def test_an_interrupt_stays_one() -> None:
    """DuckDB makes an error of it, which is no fault of the table."""
    with duckdb.connect() as connection:
        threading.Timer(0.3, connection.interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            guarded(lambda: connection.execute("SELECT count(*) FROM range(1000000) a, range(1000000) b"), _never)
    for told in (RuntimeError("Query interrupted"), OSError("INTERRUPT Error: Interrupted!")):
        with pytest.raises(KeyboardInterrupt):
            guarded(lambda told=told: _never(told), _never)


def _never(error: BaseException) -> TableError:
    raise error


def test_truncated_parquet_is_told_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [CANARY] * 100_000}), path, row_group_size=10_000, use_dictionary=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + b"\xff" * 5000 + whole[10_000:])
    with pytest.raises(TableError, match="well-formed and readable") as caught, opened(path, tmp_path / "rows"):
        pass
    assert caught.value.__context__ is None
    assert CANARY not in str(caught.value)


def test_absent_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="lacks x"), opened(pa.table({"y": [1]}), tmp_path):
        pass


def test_what_streams_is_read_once_and_counted(tmp_path: Path) -> None:
    import polars as pl

    with duckdb.connect() as other:
        sources = [
            other.sql("SELECT unnest(['a', 'b', ' b ']) AS x"),
            pa.table({"x": ["a", "b", "b"]}).to_reader(),
            pl.DataFrame({"x": ["a", "b", "b"]}),
            pl.LazyFrame({"x": ["a", "b", "b"]}),
        ]
        for source in sources:
            with opened(source, tmp_path) as engine:
                assert engine.tally(TALLY).by_leaf[0].counts.tolist() == [[1], [2]]


def test_the_source_is_scanned_once(tmp_path: Path) -> None:
    """Whoever streams may be asked only once: a reader is spent afterwards."""
    reader = datasets.adult().table.slice(0, 500).to_reader()
    with opened(reader, tmp_path, datasets.adult().schema) as engine:
        schema = datasets.adult().schema
        tally = Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))
        assert [int(engine.tally(tally).by_place.sum()) for _ in range(2)] == [500, 500]


# A round is one scan: what DuckDB really runs is listed, and the scans and groupings of each plan are counted.

WIDE, LEAVES = 3, 400
NUMBERS = Schema.parse(
    {"attributes": {f"a{place}": {"kind": "numeric", "lower": 0, "upper": LEAVES - 1} for place in range(WIDE)}}
)


class Watched:
    """A connection that notes the plan of every query before it runs it."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.plans = connection, []

    def execute(self, query: str, *given: Any) -> Any:
        self._note(query)
        return self.connection.execute(query, *given)

    def sql(self, query: str) -> Any:
        self._note(query)
        return self.connection.sql(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def _note(self, query: str) -> None:
        if query.lstrip().upper().startswith("SELECT"):
            ((_, plan),) = self.connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
            self.plans.append(Counter(operators(json.loads(plan))))


def operators(nodes: list[dict[str, Any]]) -> list[str]:
    """List what a plan does; scans with the name of the table, since small ones are scanned, too."""
    found = []
    for node in nodes:
        name, facts = node["name"].strip(), node.get("extra_info", {})
        name = f"{name} {str(facts.get('Table', '')).rsplit('.', 1)[-1]}" if "SCAN" in name else name
        found += [name, *operators(node["children"])]
    return found


def random_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"a{place}": rng.integers(0, LEAVES, rows) for place in range(WIDE)})


def grid(parts: int) -> Grid:
    return Grid.whole(NUMBERS.shape).refine(0, tuple(range(LEAVES // parts, LEAVES, LEAVES // parts)))


def tree(parts: int) -> Tree:
    borders = list(range(0, LEAVES + 1, LEAVES // parts))
    return Tree.whole(NUMBERS.shape).refine([0], [0], borders, [0, len(borders)])


def plans_of(asked: Tally, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Give all that runs for a tally."""
    from sfumato.engines import duckdb as module

    watched: list[Watched] = []
    connected = module._connected

    def watching(*given: Any) -> Any:
        watched.append(Watched(connected(*given)))
        return watched[-1]

    monkeypatch.setattr(module, "_connected", watching)
    with duckdb_engine(open_table(random_table(5000)), NUMBERS, memory=10**9, home=folder) as engine:
        watched[0].plans.clear()
        assert engine.tally(asked).by_place.sum() == 5000
    return sum(watched[0].plans, Counter())


@pytest.mark.parametrize("partition", [grid(2), grid(400), tree(2), tree(400)], ids=["2", "400", "tree 2", "tree 400"])
@pytest.mark.parametrize("attributes", [(0,), (0, 1, 2)])
def test_a_round_scans_the_rows_once(
    partition: Partition, attributes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many regions there are: one scan of the coded rows, whose cells are grouped once for each attribute.

    (DuckDB itself divides grouping sets so, over rows that it has scanned once; a stream is not grouped at all.)
    """
    plan = plans_of(Tally(partition, 1, attributes), tmp_path, monkeypatch)
    groupings = sum(number for name, number in plan.items() if "GROUP_BY" in name)
    assert plan["SEQ_SCAN coded"] == 1, plan
    assert groupings <= len(attributes), plan
    assert groupings or isinstance(partition, Tree), plan


def test_scans_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count would see a query for each region."""
    from sfumato.engines import duckdb as module

    def twice(*given: Any) -> Any:
        found = asked_once(*given)
        return type(found)(f"{found.sql} UNION ALL SELECT c0, k FROM coded WHERE random() < 0", found.tables)

    asked_once = module.question_of
    monkeypatch.setattr(module, "question_of", twice)
    plan = plans_of(Tally(grid(2), 1, (0,)), tmp_path, monkeypatch)
    assert plan["SEQ_SCAN coded"] == 2
