"""Counting with DuckDB: tables larger than memory on one machine.

Rows are coded while they are scanned, once; what is kept is a byte or two per value, in memory as far as that reaches
and in a private folder beyond. Every tally is then one scan and one aggregation: of a grid in SQL; of a tree, whose
cells are few and dense, by NumPy while the rows stream by, which was measured to take less than a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.counts.streamed import Batch, Standing, StreamedRows
from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.arrow_source import ArrowSource, noting, slotting_of
from sfumato.engines.codes import Coding, Kind
from sfumato.engines.coding import coding_of
from sfumato.engines.dialect import DuckDBDialect
from sfumato.engines.node_file import NodeFile
from sfumato.engines.private_folder import private_folder
from sfumato.engines.questions import Columns, Question, Rows, counts_of, question_of
from sfumato.engines.table_coding import TableCoding
from sfumato.errors import CountError, SfumatoError, TableError
from sfumato.guard import guarded
from sfumato.io.duck import reader_of
from sfumato.io.encode import columns_to_read
from sfumato.schema import Predictor, Schema
from sfumato.tree import Tree

WORDS = DuckDBDialect()
SOURCE = "source"
CODED = "coded"
NODES = "nodes"
WORTH_MERGING = 2
"""Rows that are alike become one, with a weight, if there are so many times fewer different ones."""

_KINDS = {
    "VARCHAR": Kind.TEXT,
    "JSON": Kind.TEXT,
    "BOOLEAN": Kind.TRUTH,
    "DOUBLE": Kind.REAL,
    "FLOAT": Kind.SINGLE,
    "DATE": Kind.DAY,
    "TIMESTAMP": Kind.MOMENT,
}
_KINDS |= dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), Kind.WHOLE)
_KINDS |= dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), Kind.DECIMAL)


@contextmanager
def duckdb_engine(
    source: Any,
    schema: Schema,
    *,
    memory: int | None = None,
    folder: Path,
    failure: Callable[[BaseException], SfumatoError] | None = None,
) -> Iterator[CountEngine]:
    """Code a table and give an engine that counts it; when the block ends, nothing is left of either.

    `source` is what DuckDB can select from, as SQL (`read_parquet('...')`, or a query in parentheses), or anything that
    streams Arrow: a reader, a frame, a relation of another connection. `memory` is how many bytes DuckDB may use; what
    does not fit goes to a folder of its own inside `folder`. `failure` words what is wrong with the source; what the
    code that reads a stream has said itself goes before.
    """
    said: list[SfumatoError] = []

    def unread(error: BaseException) -> SfumatoError:
        return said[0] if said else _unread(error, home, failure)

    with private_folder(folder) as home:
        connection = guarded(lambda: _connected(home, memory), _unopened)
        try:
            rows = guarded(lambda: _coded(connection, source, schema, said), unread)
            with closing(NodeFile(home / NODES)) as nodes:
                yield DuckDBEngine(connection, rows, nodes)
        finally:
            connection.close()


class DuckDBEngine:
    """Coded rows in a database of their own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: Rows, standing: Standing) -> None:
        """Count the rows that a connection holds; `standing` keeps where they stand in a tree."""
        self._connection = connection
        self._rows = rows
        self._streamed = StreamedRows(lambda: _batches(connection, rows), standing)

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "DuckDBEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one scan and one aggregation."""
        count = self._streamed.tally if isinstance(tally.partition, Tree) else self._grouped
        return guarded(lambda: count(tally), _uncounted)

    def _grouped(self, tally: Tally) -> Counts:
        asked = question_of(tally, self._rows, WORDS, None)
        with _small_tables(self._connection, asked) as sql:
            found = self._connection.execute(sql).fetchnumpy()
        return counts_of(tally, np.asarray(found["cell"], np.int64), np.asarray(found["n"], np.int64))


def _batches(connection: duckdb.DuckDBPyConnection, rows: Rows) -> Generator[Batch, None, None]:
    """Scan the coded rows in their order; a batch that does not follow the one before must never be counted."""
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


def _connected(home: Path, memory: int | None) -> duckdb.DuckDBPyConnection:
    config = {
        "temp_directory": str(home),
        "autoinstall_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
    if memory is not None:
        config["memory_limit"] = f"{memory // 1000}KB"
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET enable_progress_bar = false")
    return connection


def _coded(connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema, said: list[SfumatoError]) -> Rows:
    """Code the table in one scan, refuse what does not fit, and merge rows that are alike if that pays."""
    coding = write_slots(connection, source, schema, said)
    coding.refuse(list(connection.execute(coding.misfits_query(CODED)).fetchall()[0]))
    return _merged(connection, Rows(CODED, len(schema.predictors), weighted=False))


def write_slots(
    connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema, said: list[SfumatoError]
) -> TableCoding:
    """Write the slots of all rows; give how they were found. What our own code says in DuckDB's hands is noted."""
    arrow = None if isinstance(source, str) else _streamed(connection, source, schema, said)
    table = source if arrow is None else SOURCE
    types = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}
    names = {name: name for name in types} if arrow is None else arrow.names
    columns_to_read(names, schema)

    def code(name: str, facts: Predictor, place: int) -> Coding:
        column, kind = WORDS.name(names[name]), types[names[name]]
        if arrow is not None and name in arrow.coded:
            return Coding(facts.leaves, f"r{place}", {f"r{place}": column})
        coding = coding_of(facts, schema.missing_values, kind_of(kind), column, place, WORDS)
        if coding is not None:
            return coding
        slots = noting(said, slotting_of(name, facts, schema.missing_values))
        connection.create_function(f"f{place}", slots, [kind], "UINTEGER", type="arrow", null_handling="special")
        return Coding(facts.leaves, f"r{place}", {f"r{place}": f"f{place}({column})"})

    coding = TableCoding.of(schema, code)
    tables = {one.alias: f"dictionary_{one.alias}" for one in coding.dictionaries}
    for one in coding.dictionaries:
        _create(connection, tables[one.alias], pa.table({"key": one.keys, "slot": pa.array(one.slots, pa.int32())}))
    connection.execute(f"CREATE TABLE {CODED} AS {coding.query(table, WORDS, tables)}")
    for name in tables.values():
        connection.execute(f"DROP TABLE {name}")
    return coding


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


def kind_of(type_name: str) -> Kind:
    """Tell what the values of a DuckDB type are."""
    if type_name.endswith("]") or type_name.startswith(("STRUCT", "MAP", "UNION")):
        return Kind.NESTED
    if type_name.startswith("DECIMAL"):
        return Kind.DECIMAL
    return Kind.TEXT if type_name.startswith("ENUM") else _KINDS.get(type_name, Kind.OTHER)


def _streamed(
    connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema, said: list[SfumatoError]
) -> ArrowSource:
    """Let DuckDB read what another library streams."""
    if isinstance(source, duckdb.DuckDBPyRelation):
        source = reader_of(source)
    elif not isinstance(source, pa.Table | pa.RecordBatchReader):
        source = pa.RecordBatchReader.from_stream(source)
    arrow = ArrowSource.of(source, schema, said)
    connection.register(SOURCE, arrow.content)
    return arrow


@contextmanager
def _small_tables(connection: duckdb.DuckDBPyConnection, asked: Question) -> Iterator[str]:
    """Give a query with its small tables in place, for as long as it runs."""
    names = {name: f"small_{name}" for name in asked.tables}
    try:
        for name, columns in asked.tables.items():
            _create(connection, names[name], _arrow(columns))
        yield asked.sql.format(**names)
    finally:
        for name in names.values():
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _arrow(columns: Columns) -> Any:
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: Any) -> None:
    connection.register("given", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    connection.unregister("given")


def _unopened(_: BaseException) -> SfumatoError:
    return TableError("DuckDB must start, and does not", "Give it more memory, or another folder.")


def _unread(error: BaseException, home: Path, failure: Callable[[BaseException], SfumatoError] | None) -> SfumatoError:
    """Say why a table cannot be coded, whatever the library told."""
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or str(home) in str(error):
        return _no_room(TableError)
    if failure is not None:
        return failure(error)
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
