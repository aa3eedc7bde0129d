"""Rows that stream by: one scan for a round, whatever the batches, and nothing remembered of a scan that failed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines_under_test import assert_same
from sfumato.engines import memory as streamed
from sfumato.engines.dialect import Rows
from sfumato.engines.duckdb import DuckDBEngine, NodeFile
from sfumato.engines.kernel import in_turns
from sfumato.engines.memory import Batch, MemoryEngine, StreamedRows
from sfumato.errors import CountError
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Tally
from trees import growing_trees

SHAPE, CLASSES = (3, 5, 2), 3


class Kept:
    """Nodes in memory."""

    def __init__(self, rows: int) -> None:
        self.nodes = np.full(rows, -7, np.int32)

    def read(self, start: int, rows: int) -> np.ndarray:
        return self.nodes[start : start + rows].copy()

    def write(self, start: int, nodes: np.ndarray) -> None:
        self.nodes[start : start + len(nodes)] = nodes


class Table:
    """Random rows that can be scanned in batches of a size."""

    def __init__(self, rows: int, size: int, *, weighted: bool = False) -> None:
        rng = np.random.default_rng(rows)
        *self.columns, self.classes = (rng.integers(0, one, rows).astype(np.uint8) for one in (*SHAPE, CLASSES))
        self.weights = rng.integers(1, 2**40, rows) if weighted else None
        self.size, self.scans, self.fails_at = size, 0, rows

    def scan(self) -> Generator[Batch, None, None]:
        self.scans += 1
        for start in range(0, len(self.classes), self.size):
            if start >= self.fails_at:
                raise OSError("no room")
            part = slice(start, start + self.size)
            weights = None if self.weights is None else self.weights[part]
            yield Batch(start, [column[part] for column in self.columns], self.classes[part], weights)

    def streamed(self) -> StreamedRows:
        return StreamedRows(self.scan, Kept(len(self.classes)))

    def in_memory(self) -> MemoryEngine:
        return MemoryEngine(self.columns, self.classes, self.weights)


@settings(max_examples=40)
@given(
    stages=growing_trees(SHAPE),
    rows=st.integers(0, 60),
    size=st.integers(1, 20),
    cells=st.sampled_from([1, 40, 10**6]),
    weighted=st.booleans(),
    data=st.data(),
)
def test_batches_shares_and_weights_do_not_matter(
    stages: list[Tree], rows: int, size: int, cells: int, weighted: bool, data: st.DataObject
) -> None:
    table = Table(rows, size, weighted=weighted)
    engine, reference = table.streamed(), table.in_memory()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streamed, "CELLS", cells)
        for stage in data.draw(st.lists(st.sampled_from(stages), max_size=6)):
            attributes = tuple(sorted(data.draw(st.sets(st.integers(0, 2)))))
            nodes = np.array(sorted(data.draw(st.sets(st.sampled_from(stage.ends.tolist())))), np.int64)
            asked = Tally(stage, CLASSES, attributes, data.draw(st.sampled_from([None, nodes])))
            assert_same(engine.tally(asked), reference.tally(asked))


def grown() -> list[Tree]:
    first = Tree.whole(SHAPE).refine([0], [1], [0, 2, 5], [0, 3])
    return [first, first.refine([1, 2], [0, 0], [0, 1, 3, 0, 2, 3], [0, 3, 6])]


def test_a_round_is_one_scan() -> None:
    table = Table(1000, 64)
    engine = table.streamed()
    for scans, tree in enumerate(grown(), start=1):
        engine.tally(Tally(tree, CLASSES, (0, 1, 2)))
        assert table.scans == scans


def test_of_a_family_the_widest_child_is_not_looked_at() -> None:
    table = Table(1000, 64)
    engine = table.streamed()
    first, second = grown()
    engine.tally(Tally(first, CLASSES, (2,)))
    expected = table.in_memory().tally(Tally(second, CLASSES, (2,))).by_leaf[2].dense(4)
    wide = (table.columns[1] < 2) & (table.columns[0] >= 1)
    table.columns[2][wide] = 0
    assert np.array_equal(engine.tally(Tally(second, CLASSES, (2,))).by_leaf[2].dense(4), expected)


def test_a_scan_that_failed_leaves_no_row_half_way() -> None:
    table = Table(1000, 10)
    engine = table.streamed()
    first, second = grown()
    engine.tally(Tally(first, CLASSES, (0,)))
    table.fails_at = 500
    with pytest.raises(OSError, match="no room"):
        engine.tally(Tally(second, CLASSES, (0,)))
    table.fails_at = 2000
    asked = Tally(second, CLASSES, (0,))
    assert_same(engine.tally(asked), table.in_memory().tally(asked))


def test_rows_out_of_their_order_are_not_counted(tmp_path: Path) -> None:
    """DuckDB keeps the order if it is asked to; if it ever did not, nodes would be those of other rows."""
    with duckdb.connect() as connection, closing(NodeFile(tmp_path / "nodes")) as nodes:
        connection.execute("CREATE TABLE t AS SELECT (range % 2)::UTINYINT AS c0, 0::UTINYINT AS k FROM range(10)")
        asked = Tally(Tree.whole((2,)), 1, (0,))
        assert DuckDBEngine(connection, Rows("t", 1, weighted=False), nodes).tally(asked).by_place.tolist() == [[10]]
        mixed = "(SELECT c0, k, rowid FROM t ORDER BY c0)"
        with pytest.raises(CountError, match="paid for"):
            DuckDBEngine(connection, Rows(mixed, 1, weighted=False), nodes).tally(asked)


def test_nodes_are_read_as_they_were_written(tmp_path: Path) -> None:
    with closing(NodeFile(tmp_path / "nodes")) as nodes:
        nodes.write(5, np.arange(5, dtype=np.int32))
        nodes.write(0, np.arange(10, 15, dtype=np.int32))
        assert nodes.read(3, 4).tolist() == [13, 14, 0, 1]
        assert nodes.read(10, 0).tolist() == []
        with pytest.raises(EOFError):
            nodes.read(8, 4)
    assert (tmp_path / "nodes").stat().st_mode & 0o077 == 0


def test_who_fails_ends_the_work_of_all() -> None:
    taken = []

    def numbers() -> Generator[int, None, None]:
        yield from range(10**6)

    def work(items: Iterator[int]) -> None:
        for item in items:
            taken.append(item)
            if item == 10:
                raise ValueError("ten")

    with pytest.raises(ValueError, match="ten"):
        in_turns(numbers(), work, 2)
    assert len(taken) < 10**6
