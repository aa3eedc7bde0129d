"""What the local engine leaves behind, refuses and reads: a table once, and every block once in a round."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines_under_test import assert_same
from sfumato import Schema, datasets
from sfumato.engines import kernel, local
from sfumato.engines.counting import Counting, least_memory
from sfumato.engines.kernel import Block, Layout
from sfumato.engines.local import BLOCKS, NODES, FileRows, LocalEngine, MemoryEngine, MemoryRows, Rows, in_turns
from sfumato.errors import CountError, TableError, guarded
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.geometry.walk import Nodes
from sfumato.privacy.tally import CountEngine, Tally
from sfumato.storage import LOCK, PREFIX, sweep
from trees import growing_trees

CANARY = "KANARIENVOGEL"
SCHEMA = Schema.parse({"attributes": {"x": {"kind": "categorical", "taxonomy": ["a", "b"]}}})
TALLY = Tally(Grid.whole((2,)), 1, (0,))


def opened(table: Any, folder: Path, schema: Schema = SCHEMA) -> AbstractContextManager[CountEngine]:
    """Allow no memory to rows."""
    return Counting.of("local", memory=least_memory(schema), scratch=folder).opened(table, schema)


def test_rows_live_in_a_private_folder_that_goes(tmp_path: Path) -> None:
    with opened(pa.table({"x": ["a", "b"]}), tmp_path) as engine:
        (home,) = [path for path in tmp_path.iterdir() if path.is_dir()]
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
        assert modes == {BLOCKS: 0o600, NODES: 0o600}
        assert (home / BLOCKS).stat().st_size, "rows are there"
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


def test_rows_that_are_gone_from_the_disk_are_not_counted(tmp_path: Path) -> None:
    with opened(pa.table({"x": ["a", "b"]}), tmp_path) as engine:
        (blocks,) = tmp_path.rglob(BLOCKS)
        os.truncate(blocks, 3)
        with pytest.raises(CountError, match="the coded rows must fit") as caught:
            engine.tally(TALLY)
    assert caught.value.__context__ is None


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


# A round is one pass: every block is read once, whatever is asked; and a pass that failed leaves no row half way.

SHAPE, CLASSES = (3, 5, 2), 3


class Watched:
    """Rows that note which blocks are read, and can fail at one."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.reads, self.fails_at = rows, Counter[int](), -1

    def __len__(self) -> int:
        return len(self.rows)

    def block(self, at: int) -> Block:
        self.reads[at] += 1
        if at == self.fails_at:
            raise OSError("no room")
        return self.rows.block(at)

    def stood(self, at: int) -> Nodes:
        return self.rows.stood(at)

    def keep(self, at: int, nodes: Nodes) -> None:
        self.rows.keep(at, nodes)


def blocks_of(rows: int, size: int, *, weighted: bool = False) -> list[Block]:
    rng = np.random.default_rng(rows)
    *columns, classes = (rng.integers(0, one, rows).astype(np.uint8) for one in (*SHAPE, CLASSES))
    weights = rng.integers(1, 2**40, rows) if weighted else None
    cuts = [slice(start, start + size) for start in range(0, rows, size)]
    return [
        Block(tuple(one[cut] for one in columns), classes[cut], None if weights is None else weights[cut])
        for cut in cuts
    ]


def reference(blocks: list[Block]) -> MemoryEngine:
    """Count the same rows as one."""
    columns = [np.concatenate(one) for one in zip(*(block.columns for block in blocks), strict=True)]
    weighted = [block.weights for block in blocks if block.weights is not None]
    classes = np.concatenate([block.classes for block in blocks])
    return MemoryEngine(columns, classes, np.concatenate(weighted) if weighted else None)


def on_file(blocks: list[Block], folder: Path) -> FileRows:
    rows = FileRows(folder, Layout.of(blocks[0]))
    for block in blocks:
        rows.add(block)
    return rows


def grown() -> list[Tree]:
    first = Tree.whole(SHAPE).refine([0], [1], [0, 2, 5], [0, 3])
    return [first, first.refine([1, 2], [0, 0], [0, 1, 3, 0, 2, 3], [0, 3, 6])]


@pytest.mark.parametrize("partition", [*grown(), Grid.finest(SHAPE)], ids=["level", "next level", "grid"])
@pytest.mark.parametrize("attributes", [(), (0,), (0, 1, 2)])
@pytest.mark.parametrize("dense", [1 << 21, 0])
def test_a_round_reads_every_block_once(
    partition: Partition, attributes: tuple[int, ...], dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where cells are found by sorting, and with marginals."""
    rows = Watched(MemoryRows(blocks_of(1000, 64)))
    monkeypatch.setattr("sfumato.engines.rounds.DENSE", dense)
    pairs = (Grid.marginal(SHAPE, {0: (0, 1, 3), 1: (0, 2, 5)}), Grid.finest(SHAPE))
    LocalEngine(rows).tally(Tally(partition, CLASSES, attributes, marginals=pairs))
    assert rows.reads == Counter(range(16))


def test_a_tree_that_grows_costs_a_pass_for_each_level() -> None:
    rows = Watched(MemoryRows(blocks_of(1000, 64)))
    engine = LocalEngine(rows)
    for passes, tree in enumerate(grown(), start=1):
        engine.tally(Tally(tree, CLASSES, (0, 1, 2)))
        assert set(rows.reads.values()) == {passes}


@settings(max_examples=40)
@given(
    stages=growing_trees(SHAPE),
    rows=st.integers(1, 60),
    size=st.integers(1, 20),
    dense=st.sampled_from([1, 40, 10**6]),
    weighted=st.booleans(),
    data=st.data(),
)
def test_blocks_files_and_weights_do_not_matter(
    stages: list[Tree], rows: int, size: int, dense: int, weighted: bool, data: st.DataObject
) -> None:
    blocks = blocks_of(rows, size, weighted=weighted)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(on_file(blocks, Path(folder))) as file,
        pytest.MonkeyPatch.context() as patched,
    ):
        engine, expected = LocalEngine(file), reference(blocks)
        for stage in data.draw(st.lists(st.sampled_from(stages), max_size=6)):
            attributes = tuple(sorted(data.draw(st.sets(st.integers(0, 2)))))
            nodes = np.array(sorted(data.draw(st.sets(st.sampled_from(stage.ends.tolist())))), np.int64)
            asked = Tally(stage, CLASSES, attributes, data.draw(st.sampled_from([None, nodes])))
            patched.setattr("sfumato.engines.rounds.DENSE", dense)
            found = engine.tally(asked)
            patched.undo()
            assert_same(found, expected.tally(asked))


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_pass_that_failed_leaves_no_row_half_way(where: str, tmp_path: Path) -> None:
    blocks = blocks_of(1000, 10)
    rows = Watched(MemoryRows(blocks) if where == "memory" else on_file(blocks, tmp_path))
    engine = LocalEngine(rows)
    first, second = grown()
    engine.tally(Tally(first, CLASSES, (0,)))
    rows.fails_at = 50
    with pytest.raises(OSError, match="no room"):
        engine.tally(Tally(second, CLASSES, (0,)))
    rows.fails_at = -1
    otherwise = first.refine([1, 2], [2, 2], [0, 1, 2, 0, 1, 2], [0, 3, 6])
    for tree in (otherwise, second):
        asked = Tally(tree, CLASSES, (0,))
        assert_same(engine.tally(asked), reference(blocks).tally(asked))


def test_who_fails_ends_the_work_of_all() -> None:
    taken = []

    def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            taken.append(number)
            if number == 10:
                raise ValueError("ten")

    with pytest.raises(ValueError, match="ten"):
        in_turns(10**6, work, 2)
    assert len(taken) < 10**6


def test_rows_go_to_the_disk_when_memory_is_full_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "BLOCK", 10)
    table, need = pa.table({"x": ["a", "b"] * 50}), least_memory(SCHEMA)
    each = 1 + 1 + local.NODE.itemsize
    for memory, files in ((need + 100 * each, []), (need + 100 * each - 1, [BLOCKS, NODES]), (need, [BLOCKS, NODES])):
        with Counting.of("local", memory=memory, scratch=tmp_path).opened(table, SCHEMA) as engine:
            assert sorted(path.name for path in tmp_path.rglob("*") if path.name in (BLOCKS, NODES)) == files
            assert engine.tally(TALLY).by_leaf[0].counts.tolist() == [[50], [50]]
