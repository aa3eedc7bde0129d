"""DuckDB as a reader: how names and paths are written for it, and what is repeated of what it says.

What it says about a bad row holds the row, so nothing of it is passed on but the number of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from sfumato.errors import TableError
from sfumato.guard import Found, guarded, too_large
from sfumato.io import streams
from sfumato.io.streams import Table

Connection: TypeAlias = Any
"""A connection of DuckDB's, which tells no types."""
Connect = Callable[[], Connection]

ROW_BY_ROW = "statistics_propagation,filter_pushdown"
"""What DuckDB must not do, so that how a row is read depends on that row alone.

Writers of Parquet leave NaN out of the least and the largest value that they note for a part of a file. DuckDB would
find that no value there is NaN, or that none is beyond a bound, and one record more would move all that are NaN.
"""
CORRECT = "Correct the line; if fields hold line breaks, a file of more than 30 MB must be Parquet."
"""DuckDB reads a long file in pieces, and does not always find where a line begins."""
LINE = re.compile(r"^[^\n]*CSV Error on Line: (\d+)")


def connect(database: Path | None = None) -> Connection:
    """Open DuckDB without a database, or for reading one, and without a way to the network.

    Standard output is ours, so it must not draw its bar there when a file is large.
    """
    path = ":memory:" if database is None else str(database)
    connection = duckdb.connect(path, read_only=database is not None, config={"autoinstall_known_extensions": "false"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET disabled_optimizers = '{ROW_BY_ROW}'")
    return connection


def literal(text: str) -> str:
    """Write a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(text: str) -> str:
    """Write a name for SQL."""
    return '"' + text.replace('"', '""') + '"'


def file_literal(path: Path) -> str:
    """Write a path so that DuckDB reads this very file: quotes doubled, no glob."""
    return literal(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def table(what: object, source: str, inner: Mapping[str, str]) -> Table:
    """Give the table of expressions, by name, of what a connection of any kind can select from."""
    named = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in inner.items())
    return Table(
        list(inner),
        lambda columns: stream(what, source, columns, [inner[name] for name in columns]),
        f"(SELECT {named} FROM {source})",
        failure_of(what),
    )


def stream(
    what: object, source: str, columns: Sequence[str], inner: Sequence[str], opened: Connect = connect
) -> Iterator[pa.RecordBatch]:
    """Read expressions of a source of SQL, named as columns."""
    query = f"SELECT {', '.join(inner)} FROM {source}"
    with attempt(what, opened) as connection:
        reader = attempt(what, lambda: iter(reader_of(connection.sql(query))))
        while (batch := attempt(what, lambda: next(reader, None))) is not None:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))


def reader_of(relation: Any) -> pa.RecordBatchReader:
    """Stream a relation; the method has another name before DuckDB 2."""
    arrow_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader: pa.RecordBatchReader = arrow_reader(streams.BATCH_ROWS)
    return reader


def attempt(what: object, action: Callable[[], Found]) -> Found:
    """Do something with a file, or say in our words what went wrong."""
    return guarded(action, failure_of(what))


def failure_of(what: object) -> Callable[[BaseException], TableError]:
    """Give what is said of a file that could not be read."""

    def failure(error: BaseException) -> TableError:
        if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
            return too_large(error)
        return _failure(what, str(error))

    return failure


def not_text(what: object, where: str = "") -> TableError:
    """Say that a file is no text."""
    return TableError(f"file {what} must be UTF-8 text{where}", "Save it again as UTF-8.")


def refuse_case_clash(what: object, names: Sequence[str]) -> None:
    """Refuse names that DuckDB, which does not see case, would confuse."""
    if len({name.lower() for name in names}) < len(set(names)):
        raise TableError(f"column names of {what} must differ in more than case", "Rename some of them.")


def _failure(what: object, told: str) -> TableError:
    line = LINE.search(told)
    where = f" (line {line[1]})" if line else ""
    if "not utf-8" in told.lower() or "invalid unicode" in told.lower():
        return not_text(what, where)
    if "Expected Number of Columns" in told:
        return TableError(f"every line of {what} must have as many fields as its header{where}", CORRECT)
    if "unterminated quote" in told:
        return TableError(
            f"every quoted field of {what} must be closed{where}", f"Double quotes inside quotes. {CORRECT}"
        )
    return TableError(f"file {what} must be well-formed and readable{where}", "Check its format, or write it again.")
