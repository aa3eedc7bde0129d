"""Counting with DuckDB: tables larger than memory on one machine.

Rows are coded while they are scanned, once; what is kept is a byte or two per value, in memory as far as that reaches
and in a private folder beyond. Every tally is then one scan and one aggregation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.arrow_source import ArrowSource, slotting_of
from sfumato.engines.codes import Coding, Kind
from sfumato.engines.coding import coding_of
from sfumato.engines.dialect import DuckDBDialect
from sfumato.engines.private_folder import private_folder
from sfumato.engines.questions import Columns, Question, Rows, counts_of, question_of, standing, stepped
from sfumato.engines.table_coding import TableCoding
from sfumato.errors import CountError, SfumatoError, TableError
from sfumato.guard import guarded
from sfumato.io.encode import columns_to_read
from sfumato.schema import Predictor, Schema
from sfumato.tree import Stage, Tree

WORDS = DuckDBDialect()
BATCH_ROWS = 1 << 17
SOURCE = "source"
CODED = "coded"
STEPS = 1
"""So many levels of a tree are walked in a query; rows that are further behind are written anew, with their node."""
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
def duckdb_engine(source: Any, schema: Schema, *, memory: int | None = None, folder: Path) -> Iterator[CountEngine]:
    """Code a table and give an engine that counts it; when the block ends, nothing is left of either.

    `source` is what DuckDB can select from, as SQL (`read_parquet('...')`, or a query in parentheses), or anything that
    streams Arrow: a reader, a frame, a relation of another connection. `memory` is how many bytes DuckDB may use; what
    does not fit goes to a folder of its own inside `folder`.
    """
    with private_folder(folder) as home:
        connection = guarded(lambda: _connected(home, memory), _unopened)
        try:
            rows = guarded(lambda: _coded(connection, source, schema), lambda error: _unread(error, home))
            yield DuckDBEngine(connection, rows)
        finally:
            connection.close()


class DuckDBEngine:
    """Coded rows in a database of their own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: Rows) -> None:
        """Count the rows that a connection holds."""
        self._connection = connection
        self._rows = rows
        self._stage: Stage | None = None
        """the moment of a tree at which the rows remember their node"""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "DuckDBEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one scan and one aggregation."""
        return guarded(lambda: self._counted(tally), _uncounted)

    def _counted(self, tally: Tally) -> Counts:
        located = self._located(tally.partition) if isinstance(tally.partition, Tree) else None
        asked = question_of(tally, self._rows, WORDS, located)
        with _small_tables(self._connection, asked) as sql:
            found = self._connection.execute(sql).fetchnumpy()
        return counts_of(tally, np.asarray(found["cell"], np.int64), np.asarray(found["n"], np.int64))

    def _located(self, tree: Tree) -> Question:
        """Give the rows with their nodes; those that would have far to go are first written where they come to stand.

        A tree that has not grown from the one that the rows know is walked from its root.
        """
        grown = self._stage is not None and tree.refines(self._stage)
        known = self._stage.nodes if grown and self._stage is not None else 1
        steps = len(tree.stages_since(self._stage)) if grown and self._stage is not None else int(tree.depths.max())
        while steps > STEPS:
            self._write(stepped(tree, known, STEPS + 1, self._rows, standing(self._rows, located=grown)))
            steps, grown = max(steps - STEPS - 1, 0), True
            self._stage = tree.stage if not steps else None
        return stepped(tree, known, steps, self._rows, standing(self._rows, located=grown))

    def _write(self, rows: Question) -> None:
        """Put the rows, with their nodes, in the place of those that there were."""
        with _small_tables(self._connection, rows) as sql:
            self._connection.execute(f"CREATE TABLE moved AS {sql}")
        self._connection.execute(f"DROP TABLE {self._rows.table}")
        self._connection.execute(f"ALTER TABLE moved RENAME TO {self._rows.table}")


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


def _coded(connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema) -> Rows:
    """Code the table in one scan, refuse what does not fit, and merge rows that are alike if that pays."""
    coding = write_slots(connection, source, schema)
    coding.refuse(list(connection.execute(coding.misfits_query(CODED)).fetchall()[0]))
    return _merged(connection, Rows(CODED, len(schema.predictors), weighted=False))


def write_slots(connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema) -> TableCoding:
    """Write the slots of all rows; give how they were found."""
    arrow = None if isinstance(source, str) else _streamed(connection, source, schema)
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
        slots = slotting_of(facts, schema.missing_values)
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


def _streamed(connection: duckdb.DuckDBPyConnection, source: Any, schema: Schema) -> ArrowSource:
    """Let DuckDB read what another library streams."""
    if isinstance(source, duckdb.DuckDBPyRelation):
        reader = getattr(source, "to_arrow_reader", None) or source.fetch_arrow_reader
        source = reader(BATCH_ROWS)
    elif not isinstance(source, pa.Table | pa.RecordBatchReader):
        source = pa.RecordBatchReader.from_stream(source)
    arrow = ArrowSource.of(source, schema)
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


def _unread(error: BaseException, home: Path) -> SfumatoError:
    """Say why a table cannot be coded, whatever the library told."""
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or str(home) in str(error):
        return _no_room(TableError)
    return TableError("the table must be readable to its end, and is not", "Check its format, or write it again.")


def _uncounted(error: BaseException) -> SfumatoError:
    """Say that a round failed, in words that are the same whatever was seen; nothing but rows' room is read then."""
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException | MemoryError):
        return _no_room(CountError)
    return CountError(
        "a round that was paid for must have an answer, and DuckDB gave none", "Report this, without the data."
    )


def _no_room(kind: type[SfumatoError]) -> SfumatoError:
    return kind("the rows must fit in DuckDB's memory and its folder together", "Allow more memory, or free the disk.")
