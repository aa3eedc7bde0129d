"""Count with DuckDB: tables larger than memory on one machine.

Rows are coded while they are scanned, once; what is kept is a byte or two per value, in memory as far as that reaches
and in a private folder beyond. Every tally is then one scan and one aggregation: of a grid in SQL; of a tree, whose
cells are few and dense, by NumPy while the rows stream by, which was measured to take less than a quarter of the time.

*Coding.* Files that DuckDB reads itself are coded in SQL, where they are read. What streams from elsewhere is coded by
the coder of memory before DuckDB sees it: DuckDB would read some of what Arrow holds otherwise than memory does. It
forgets the zone in which a moment was written, rounds what is finer than it can hold, and takes the type of the first
batch for that of all. Which engine reads a table depends on the number of its rows, so one record more would change the
codes of all. Streams are therefore given to it as *slots*: a leaf's code or, from the number of leaves on, the reason
why there is none.

*Grids.* Regions are found by joins with one small table per cut attribute: the parts of the codes are digits of the
region's number. The size of a query follows from the number of attributes, never from the number of regions.

*Trees.* The node on which each row stands is kept in a file, four bytes for each, so that it takes no memory and is
bounded by the disk alone; a full disk is an `OSError`.

*The private folder.* Only its owner may enter, and it goes when the work is done. What a process that was killed left
behind goes with the next one: whoever holds the lock beside a folder is alive; a lock that can be had belongs to
nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import shutil
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.coding import TableCoding, coding_of
from sfumato.engines.dialect import WORTH_MERGING, Coding, DuckDBDialect, Kind, Rows, cells_of, counts_of
from sfumato.engines.memory import Batch, Standing, StreamedRows
from sfumato.errors import CountError, SfumatoError, TableError, guarded, unreadable
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.schema.schema import Predictor, Schema
from sfumato.storage import reason_of
from sfumato.tables.encode import columns_to_read, encoder_of
from sfumato.tables.streams import ROW_BY_ROW, Table, reader_of
from sfumato.tables.values import FINE

PREFIX = ".sfumato-rows-"
LOCK = ".lock"


@contextmanager
def private_folder(beside: Path) -> Iterator[Path]:
    """Give a folder that nobody else may enter; first remove those that dead processes left here.

    A place that had to be made for it goes with it.
    """
    try:
        made = [folder for folder in (beside, *beside.parents) if not folder.exists()]
        beside.mkdir(parents=True, exist_ok=True)
        sweep(beside)
        lock, home = _claimed(beside)
    except (OSError, ValueError) as error:
        raise TableError(
            f"folder {str(beside)[:200]} must be writable ({reason_of(error)}): rows beyond memory go there",
            "Make room or choose another folder.",
        ) from None
    try:
        yield home
    finally:
        _remove(home)
        os.close(lock)
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()


def sweep(beside: Path) -> None:
    """Remove the folders whose process is gone; what others have put into a folder that all may write to is theirs."""
    for path in beside.glob(f"{PREFIX}*{LOCK}"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid != os.geteuid():
                    continue
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path.with_suffix(""))
            finally:
                os.close(lock)


def _claimed(beside: Path) -> tuple[int, Path]:
    """Make a lock and hold it, then the folder: in the moment between making and holding, another may sweep it."""
    while True:
        home = beside / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        lock = os.open(_lock_of(home), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(_lock_of(home)).st_ino == os.fstat(lock).st_ino:
                home.mkdir(mode=0o700)
                return lock, home
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            _remove(home)
            os.close(lock)
            raise
        os.close(lock)


def _remove(home: Path) -> None:
    """Remove a folder and then its lock; what cannot be removed stays locked for the next one to sweep."""
    shutil.rmtree(home, ignore_errors=True)
    if not home.exists():
        with contextlib.suppress(OSError):
            _lock_of(home).unlink(missing_ok=True)


def _lock_of(home: Path) -> Path:
    return home.with_name(home.name + LOCK)


NODE = np.dtype(np.int32)


class NodeFile:
    """The nodes of all rows, by the number of the row; several threads may use it, each for rows of its own."""

    def __init__(self, path: Path) -> None:
        """Make the file, for its owner alone."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

    def close(self) -> None:
        """Let it go; the folder in which it lies is removed with it."""
        os.close(self._file)

    def read(self, start: int, rows: int) -> NDArray[np.int32]:
        """Give the nodes of some rows."""
        nodes = np.empty(rows, NODE)
        left, at = nodes.view(np.uint8).data, start * NODE.itemsize
        while left:
            if not (got := os.preadv(self._file, [left], at)):
                raise EOFError
            left, at = left[got:], at + got
        return nodes

    def write(self, start: int, nodes: NDArray[np.int32]) -> None:
        """Keep the nodes of some rows."""
        left, at = nodes.view(np.uint8).data, start * NODE.itemsize
        while left:
            put = os.pwrite(self._file, left, at)
            left, at = left[put:], at + put


SLOT = pa.uint32()

Slotting = Callable[[Any], Any]
Given = ParamSpec("Given")
Found = TypeVar("Found")


def slot_reader(table: Table, schema: Schema, names: dict[str, str], said: list[SfumatoError]) -> Any:
    """Stream the slots of the declared columns under other names. What is said of an error is noted: DuckDB, in whose
    hands it is read, would forget it.
    """
    declared = columns_to_read(table.columns, schema)
    slotting = [slotting_of(name, facts, schema.missing_values) for name, facts in declared.items()]
    fields = pa.schema([(names[name], SLOT) for name in declared])

    def coded() -> Iterator[pa.RecordBatch]:
        for batch in table.batches(list(declared)):
            slots = [code(column) for code, column in zip(slotting, batch.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(slots, schema=fields)

    batches = coded()
    return pa.RecordBatchReader.from_batches(fields, iter(noting(said, lambda: next(batches, None)), None))


def slotting_of(name: str, facts: Predictor, missing: list[str]) -> Slotting:
    """Give what finds the slots of a batch of one column as memory does."""
    encode = encoder_of(facts, missing)

    def slots(array: Any) -> Any:
        whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        part = guarded(lambda: encode(whole), unreadable(name))
        codes = part.codes.astype(np.uint32)
        if part.status is not None:
            codes = np.where(part.status == FINE, codes, facts.leaves + part.status.astype(np.uint32) - 1)
        return pa.array(codes, SLOT)

    return slots


def noting(said: list[SfumatoError], action: Callable[Given, Found]) -> Callable[Given, Found]:
    """Do something in the hands of a library that forgets errors of ours: note what they say, not how they came."""

    @wraps(action)
    def noted(*given: Given.args, **named: Given.kwargs) -> Found:
        try:
            return action(*given, **named)
        except SfumatoError as error:
            said.append(copy(error))
            raise

    return noted


WORDS = DuckDBDialect()

Columns = dict[str, NDArray[np.integer]]
"""A small table by column."""


@dataclass(frozen=True)
class Question:
    """A query with the small tables that it reads: their names are marked in it as {name}."""

    sql: str
    tables: dict[str, Columns]


def question_of(tally: Tally, rows: Rows) -> Question:
    """Ask for every cell (region, leaf, class) of every attribute that holds someone, in one scan."""
    grid = tally.partition
    assert isinstance(grid, Grid)
    tables: dict[str, Columns] = {}
    joins = []
    for attribute in grid.split_attributes:
        later = math.prod(grid.parts[attribute + 1 :])
        offsets = grid.part_of(attribute) * later
        tables[f"part{attribute}"] = {"leaf": np.arange(len(offsets), dtype=np.int32), "offset": offsets}
        joins.append(f" JOIN {{part{attribute}}} AS p{attribute} ON p{attribute}.leaf = c{attribute}")
    place = " + ".join(f"p{attribute}.offset" for attribute in grid.split_attributes) or "CAST(0 AS BIGINT)"
    placed = f"SELECT {', '.join(rows.columns)}, {place} AS place FROM {rows.table}{''.join(joins)}"
    return Question(WORDS.melted(cells_of(tally), f"({placed})", weighted=rows.weighted), tables)


CODED = "coded"
STREAM = "stream"

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


def write_slots(
    connection: duckdb.DuckDBPyConnection, table: Table, schema: Schema, said: list[SfumatoError]
) -> TableCoding:
    """Write the slots of all rows; give how they were found. What our own code says in DuckDB's hands is noted."""
    columns_to_read(table.columns, schema)
    sql = _sql_of(table)
    coding, source = (
        (_streamed(connection, table, schema, said), STREAM)
        if sql is None
        else (_selected(connection, sql, schema, said), sql)
    )
    dictionaries = {one.alias: f"dictionary_{one.alias}" for one in coding.dictionaries}
    for one in coding.dictionaries:
        pairs = pa.table({"key": one.keys, "slot": pa.array(one.slots, pa.int32())})
        create(connection, dictionaries[one.alias], pairs)
    connection.execute(f"CREATE TABLE {CODED} AS {coding.query(source, WORDS, dictionaries)}")
    for name in dictionaries.values():
        connection.execute(f"DROP TABLE {name}")
    return coding


def _sql_of(table: Table) -> str | None:
    """Give what DuckDB may select from, if it can tell the columns apart: it does not see case."""
    distinct = len({name.lower() for name in table.columns}) == len(table.columns)
    return table.sql if distinct else None


def _streamed(
    connection: duckdb.DuckDBPyConnection, table: Table, schema: Schema, said: list[SfumatoError]
) -> TableCoding:
    names = {name: f"a{place}" for place, name in enumerate(table.columns)}
    connection.register(STREAM, slot_reader(table, schema, names, said))

    def code(name: str, facts: Predictor, place: int) -> Coding:
        return Coding(facts.leaves, f"r{place}", {f"r{place}": names[name]})

    return TableCoding.of(schema, code)


def _selected(connection: duckdb.DuckDBPyConnection, sql: str, schema: Schema, said: list[SfumatoError]) -> TableCoding:
    types = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()}

    def code(name: str, facts: Predictor, place: int) -> Coding:
        column, kind = WORDS.name(name), types[name]
        coding = coding_of(facts, schema.missing_values, kind_of(kind), column, place, WORDS)
        if coding is not None:
            return coding
        slots = noting(said, slotting_of(name, facts, schema.missing_values))
        connection.create_function(f"f{place}", slots, [kind], "UINTEGER", type="arrow", null_handling="special")
        return Coding(facts.leaves, f"r{place}", {f"r{place}": f"f{place}({column})"})

    return TableCoding.of(schema, code)


def kind_of(type_name: str) -> Kind:
    """Tell what the values of a DuckDB type are."""
    if type_name.endswith("]") or type_name.startswith(("STRUCT", "MAP", "UNION")):
        return Kind.NESTED
    if type_name.startswith("DECIMAL"):
        return Kind.DECIMAL
    return Kind.TEXT if type_name.startswith("ENUM") else _KINDS.get(type_name, Kind.OTHER)


def create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Write a small table."""
    connection.register("given", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    connection.unregister("given")


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
