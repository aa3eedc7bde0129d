"""Counting with DuckDB: tables larger than memory on one machine.

Rows are coded while they are scanned, once; what is kept is a byte or two per value, in memory as far as that reaches
and in a private folder beyond. Every tally is then one scan and one aggregation: of a grid in SQL; of a tree, whose
cells are few and dense, by NumPy while the rows stream by, which was measured to take less than a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.counts.streamed import Batch, Standing, StreamedRows
from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.duckdb_coding import CODED, create, write_slots
from sfumato.engines.duckdb_questions import Question, question_of
from sfumato.engines.node_file import NodeFile
from sfumato.engines.questions import WORTH_MERGING, Rows, counts_of
from sfumato.errors import CountError, SfumatoError, TableError
from sfumato.guard import guarded
from sfumato.io.duck import ROW_BY_ROW, reader_of
from sfumato.io.streams import Table
from sfumato.schema import Schema
from sfumato.tree import Tree

NODES = "nodes"
ROWS_PASS_BY = "build_side_probe_side"
"""What DuckDB must not do, so that in a join rows go past the small table that is named last, however many it thinks
there are of either: a hash table of all rows might not fit."""


@contextmanager
def duckdb_engine(table: Table, schema: Schema, *, memory: int, home: Path) -> Iterator[CountEngine]:
    """Code a table and give an engine that counts it; when the block ends, nothing is left of either.

    `memory` is how many bytes DuckDB may use; what does not fit goes to `home`, which only its owner may enter.
    """
    said: list[SfumatoError] = []

    def unread(error: BaseException) -> SfumatoError:
        return said[0] if said else _unread(error, home, table)

    connection = guarded(lambda: _connected(home, memory), _unopened)
    try:
        rows = guarded(lambda: _coded(connection, table, schema, said), unread)
        with closing(guarded(lambda: NodeFile(home / NODES), unread)) as nodes:
            yield guarded(lambda: DuckDBEngine(connection, rows, nodes), unread)
    finally:
        connection.close()


class DuckDBEngine:
    """Coded rows in a database of their own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: Rows, standing: Standing) -> None:
        """Count the rows that a connection holds; `standing` keeps where they stand in a tree."""
        self._connection = connection
        self._rows = rows
        ((every,),) = connection.execute(f"SELECT count(*) FROM {rows.table}").fetchall()
        self._streamed = StreamedRows(lambda: _batches(connection, rows, every), standing)

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "DuckDBEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one scan and one aggregation."""
        count = self._streamed.tally if isinstance(tally.partition, Tree) else self._grouped
        return guarded(lambda: count(tally), _uncounted)

    def _grouped(self, tally: Tally) -> Counts:
        asked = question_of(tally, self._rows)
        with _small_tables(self._connection, asked) as sql:
            found = self._connection.execute(sql).fetchnumpy()
        return counts_of(tally, np.asarray(found["cell"], np.int64), np.asarray(found["n"], np.int64))


def _batches(connection: duckdb.DuckDBPyConnection, rows: Rows, every: int) -> Generator[Batch, None, None]:
    """Scan the coded rows in their order, to the last; if one is not where it was before, nothing may be counted."""
    connection.execute("SET preserve_insertion_order = true")
    selected = connection.sql(f"SELECT {', '.join(rows.columns)}, rowid FROM {rows.table}")
    start = 0
    for batch in reader_of(selected):
        *columns, numbers = (column.to_numpy() for column in batch.columns)
        if not np.array_equal(numbers, np.arange(start, start + len(numbers))):
            raise RuntimeError
        weights = columns.pop() if rows.weighted else None
        yield Batch(start, columns[:-1], columns[-1], weights)
        start += len(numbers)
    if start != every:
        raise RuntimeError


def _connected(home: Path, memory: int) -> duckdb.DuckDBPyConnection:
    """Open a database that may use so much.

    What a file says about a column as a whole decides nothing (see `duck.ROW_BY_ROW`), until all is coded: what DuckDB
    knows of our codes is true.
    """
    config = {
        "temp_directory": str(home),
        "memory_limit": f"{memory // 1000}KB",
        "autoinstall_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET disabled_optimizers = '{ROW_BY_ROW},{ROWS_PASS_BY}'")
    return connection


def _coded(connection: duckdb.DuckDBPyConnection, table: Table, schema: Schema, said: list[SfumatoError]) -> Rows:
    """Code the table in one scan, refuse what does not fit, and merge rows that are alike if that pays."""
    coding = write_slots(connection, table, schema, said)
    connection.execute(f"SET disabled_optimizers = '{ROWS_PASS_BY}'")
    coding.refuse(list(connection.execute(coding.misfits_query(CODED)).fetchall()[0]))
    return _merged(connection, Rows(CODED, len(schema.predictors), weighted=False))


def _merged(connection: duckdb.DuckDBPyConnection, rows: Rows) -> Rows:
    """Let one row, with a weight, stand for all that are alike, if there are enough of them."""
    listed = ", ".join(rows.columns)
    estimate = f"SELECT count(*), approx_count_distinct(hash({listed})) FROM {rows.table}"
    ((every, different),) = connection.execute(estimate).fetchall()
    if every < WORTH_MERGING * different:
        return rows
    merged = Rows("merged", rows.attributes, weighted=True)
    connection.execute(f"CREATE TABLE merged AS SELECT {listed}, count(*) AS w FROM {rows.table} GROUP BY {listed}")
    connection.execute(f"DROP TABLE {rows.table}")
    return merged


@contextmanager
def _small_tables(connection: duckdb.DuckDBPyConnection, asked: Question) -> Iterator[str]:
    """Give a query with its small tables in place, for as long as it runs."""
    names = {name: f"small_{name}" for name in asked.tables}
    try:
        for name, columns in asked.tables.items():
            create(connection, names[name], pa.table({name: pa.array(column) for name, column in columns.items()}))
        yield asked.sql.format(**names)
    finally:
        for name in names.values():
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _unopened(_: BaseException) -> SfumatoError:
    return TableError("DuckDB must start, and does not", "Give it more memory, or another folder.")


def _unread(error: BaseException, home: Path, table: Table) -> SfumatoError:
    """Say why a table cannot be coded, whatever the library told."""
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or str(home) in str(error):
        return _no_room(TableError)
    if table.failure is not None:
        return table.failure(error)
    return TableError("the table must be readable to its end, and is not", "Check its format, or write it again.")


def _uncounted(error: BaseException) -> SfumatoError:
    """Say that a round failed, in words that are the same whatever was seen; nothing but rows' room is read then."""
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException | MemoryError | OSError):
        return _no_room(CountError)
    return CountError(
        "a round that was paid for must have an answer, and DuckDB gave none", "Report this, without the data."
    )


def _no_room(kind: type[SfumatoError]) -> SfumatoError:
    return kind("the rows must fit in DuckDB's memory and its folder together", "Allow more memory, or free the disk.")
