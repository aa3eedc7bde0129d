"""Tables of a DuckDB database, and SQL over such a database or over Parquet files. Databases are opened to read only.

Of a query every row must come from one row of one table, by itself: that is what makes a row of the result a record of
the table, and what keeps one person from moving the rows of others. See `rowwise`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import TableError
from sfumato.guard import guarded
from sfumato.io import duck
from sfumato.io.parts import columns_of, parquet_files, scan
from sfumato.io.rowwise import refuse_shadows, table_of
from sfumato.io.streams import Table, refuse_repeated, some

SUFFIXES = (".duckdb", ".ddb", ".db")
MARK = "::"
MAIN = "main"
"""The schema of tables that are named without one."""
TABLE_NAMES = "table_catalog, table_schema, table_name"
VIEW = "data"
"""What Parquet files are called in a query."""


@dataclass(frozen=True)
class Query:
    """Some columns and rows of one table: SQL over a database, or over Parquet files, which are called `data`."""

    sql: str
    over: str | Path

    @property
    def table(self) -> str:
        """The one table that it reads."""
        return table_of(self.sql)


def is_database(source: str | Path) -> bool:
    """Tell a database, with a table or without, from a file that holds one table."""
    path, _ = parted(source)
    return path.suffix.lower() in SUFFIXES


def parted(source: str | Path) -> tuple[Path, str | None]:
    """Take `file.duckdb::table` apart; a file of that very name goes before."""
    text = str(source)
    if MARK not in text or Path(text).exists():
        return Path(text), None
    path, _, table = text.rpartition(MARK)
    return Path(path), table


def open_database(source: str | Path) -> Table:
    """Open a table of a database."""
    path, table = parted(source)
    opened = _database(path)
    if not table:
        listed = sorted(set(_tables(path, opened).values()))
        raise TableError(
            f"a table of {path} must be named", f"Give {path.name}{MARK}table or --table; it has {some(listed)}."
        )
    own_name(path, table)
    name = ".".join(duck.quoted(piece) for piece in table.split("."))
    return _selected(path, f"SELECT * FROM {name}", opened)


def own_name(path: Path, table: str) -> str:
    """Give the one name of a table of a database that can be named in many ways: `T`, `main.t`, `people.t` are t."""
    tables = _tables(path, _database(path))
    if table.lower() not in tables:
        raise TableError(f"table ({table}) must be in {path}", f"It has {some(sorted(set(tables.values())))}.")
    return tables[table.lower()]


def open_query(query: Query) -> Table:
    """Open the result of a query, which reads nothing but the database or the files that were named."""
    table = query.table
    if is_database(query.over):
        path, named = parted(query.over)
        if named:
            raise TableError("a query must name its table itself", f"Give the database alone: {path}.")
        own_name(path, table)
        opened = _database(path)
        with duck.attempt(path, opened) as connection:
            refuse_shadows(connection)
        return _selected(path, query.sql, opened, "the query")
    if table.lower() != VIEW:
        raise TableError(f"a query over files must read from {VIEW}, and reads from {table}", f"Write from {VIEW}.")
    files = parquet_files(query.over)
    names = columns_of(files)
    refuse_repeated(names)
    duck.refuse_case_clash(query.over, names)
    return _selected(query.over, query.sql, _files(files), "the query")


def _database(path: Path) -> duck.Connect:
    """Give a way to open a database for reading; refuse what is none."""
    path = Path(os.path.expanduser(path))
    if not path.is_file():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")

    def opened() -> duck.Connection:
        return duck.connect(path)

    def failure(_: BaseException) -> TableError:
        return TableError(
            f"file {path} must be a DuckDB database that can be read now",
            "Close the program that is writing to it, or check that it was written to its end.",
        )

    guarded(opened, failure).close()
    return lambda: _fenced(opened())


def _files(files: list[Path]) -> duck.Connect:
    def opened() -> duck.Connection:
        connection = duck.connect()
        connection.execute(f"SET allowed_paths = [{', '.join(duck.literal(str(one)) for one in files)}]")
        connection.execute(f"CREATE VIEW {VIEW} AS SELECT * FROM {scan(files)}")
        return _fenced(connection)

    return opened


def _fenced(connection: duck.Connection) -> duck.Connection:
    """Leave a connection no way to other files."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _tables(path: Path, opened: Callable[[], duck.Connection]) -> dict[str, str]:
    """Give the tables by all that they may be called; DuckDB does not see case."""

    def read() -> dict[str, str]:
        called: dict[str, str] = {}
        with opened() as connection:
            found = connection.execute(f"SELECT {TABLE_NAMES} FROM information_schema.tables ORDER BY ALL").fetchall()
        for base, schema, name in found:
            own = name if schema == MAIN else f"{schema}.{name}"
            for other in (own, f"{schema}.{name}", f"{base}.{own}", f"{base}.{schema}.{name}"):
                called.setdefault(other.lower(), own)
        return called

    return duck.attempt(path, read)


def _selected(what: str | Path, sql: str, opened: duck.Connect, name: str | None = None) -> Table:
    """Open the result of some SQL."""

    def columns() -> list[str]:
        with opened() as connection:
            return [str(one) for one in connection.sql(sql).columns]

    def failure(_: BaseException) -> TableError:
        return TableError(
            f"{name or what} must be readable, and is not", "Check the names of its columns and functions in DuckDB."
        )

    names = guarded(columns, failure)
    refuse_repeated(names)
    duck.refuse_case_clash(what, names)
    source = f"({sql.rstrip().rstrip(';')}\n) AS chosen"
    return Table(names, lambda wanted: duck.stream(what, source, wanted, [duck.quoted(one) for one in wanted], opened))
