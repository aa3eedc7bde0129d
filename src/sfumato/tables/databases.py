"""Open tables of a DuckDB database, which is only ever read, and queries over one or over Parquet files.

A query must make each row of its result from one row of one table, looking at nothing else; `table_of` refuses any
other. The promise is about one row more or less in the table that is published. If a query joins, groups, numbers,
limits or samples, a person of the table below can make many rows of the result, or change those of others, and noise
for one row hides nobody. So a query may choose columns, compute with the values of a row, and choose rows by their own
values.

Derivation. Let q(T) be the rows q(t) of those t in T for which p(t) holds. Adding t to T adds at most one row to q(T)
and changes no other: neighbours stay neighbours. What is allowed below is of that form, since of all expressions only
those pass that are functions of one row: columns, constants, comparisons, casts, cases and DuckDB's own functions of
single values that give the same for the same. That holds of what rows are ordered by, too: `order by unnest(...)` makes
rows, and `order by count(*)` groups them. A database may define a function under the name of one of DuckDB's own, which
then goes before; `refuse_shadows` refuses such a database.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sfumato.errors import TableError, guarded
from sfumato.tables import streams
from sfumato.tables.streams import Table, columns_of, parquet_files, refuse_repeated, scan, some

SUFFIXES = (".duckdb", ".ddb", ".db")
"""The endings of databases."""
MARK = "::"
"""Stands between a database and its table."""
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
        """The one table that it reads; a query that is not row by row is refused."""
        return table_of(self.sql)


def is_database(source: str | Path) -> bool:
    """Whether a source is a database, with or without the name of a table."""
    path, _ = parted(source)
    return path.suffix.lower() in SUFFIXES


def parted(source: str | Path) -> tuple[Path, str | None]:
    """The parts of `file.duckdb::table`, unless a file of that very name exists."""
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
        raise TableError(
            f"a table of {path} must be named",
            f"Give {path.name}{MARK}table or --table; it has {some(tables_of(path))}.",
        )
    own_name(path, table)
    name = ".".join(streams.quoted(piece) for piece in table.split("."))
    return _selected(path, f"SELECT * FROM {name}", opened)


def tables_of(path: Path) -> list[str]:
    """The names of a database's tables."""
    return sorted(set(_tables(path, _database(path)).values()))


def own_name(path: Path, table: str) -> str:
    """The one name of a table, which can be named in many ways: `T`, `main.t` and `people.t` are t."""
    tables = _tables(path, _database(path))
    if table.lower() not in tables:
        raise TableError(f"table ({table}) must be in {path}", f"It has {some(sorted(set(tables.values())))}.")
    return tables[table.lower()]


def base_tables(path: Path, table: str) -> list[str]:
    """The tables that a view reads, through other views, by their own names; a table reads itself."""
    opened, first = _database(path), own_name(path, table)
    tables = _tables(path, opened)

    def read() -> list[str]:
        with opened() as connection:
            rows = connection.execute("SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal")
            views = {name if schema == MAIN else f"{schema}.{name}": sql for schema, name, sql in rows.fetchall()}
            waiting, seen, bases = [first], set[str](), set[str]()
            while waiting:
                one = waiting.pop()
                if one not in views:
                    bases.add(one)
                elif one not in seen:
                    seen.add(one)
                    body = views[one].split(" AS ", 1)[1]
                    named = connection.get_table_names(body, qualified=True)
                    waiting += [known for name in named if (known := tables.get(name.replace('"', "").lower()))]
        return sorted(bases)

    return streams.attempt(path, read)


def open_query(query: Query) -> Table:
    """Open the result of a query, which can read nothing but its database or its files."""
    table = query.table
    if is_database(query.over):
        path, named = parted(query.over)
        if named:
            raise TableError("a query must name its table itself", f"Give the database alone: {path}.")
        own_name(path, table)
        opened = _database(path)
        with streams.attempt(path, opened) as connection:
            refuse_shadows(connection)
        return _selected(path, query.sql, opened, "the query")
    if table.lower() != VIEW:
        raise TableError(f"a query over files must read from {VIEW}, and reads from {table}", f"Write from {VIEW}.")
    files = parquet_files(query.over)
    names = columns_of(files)
    refuse_repeated(names)
    streams.refuse_case_clash(query.over, names)
    return _selected(query.over, query.sql, _files(files), "the query")


def _database(path: Path) -> streams.Connect:
    """A function that opens a database for reading; refuse what is no database."""
    path = Path(os.path.expanduser(path))
    if not path.is_file():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")

    def opened() -> streams.Connection:
        return streams.connect(path)

    def failure(_: BaseException) -> TableError:
        return TableError(
            f"file {path} must be a DuckDB database that can be read now",
            "Close the program that is writing to it, or check that it was written to its end.",
        )

    guarded(opened, failure).close()
    return lambda: _fenced(opened())


def _files(files: list[Path]) -> streams.Connect:
    def opened() -> streams.Connection:
        connection = streams.connect()
        connection.execute(f"SET allowed_paths = [{', '.join(streams.literal(str(one)) for one in files)}]")
        connection.execute(f"CREATE VIEW {VIEW} AS SELECT * FROM {scan(files)}")
        return _fenced(connection)

    return opened


def _fenced(connection: streams.Connection) -> streams.Connection:
    """Bar a connection from all other files."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _tables(path: Path, opened: Callable[[], streams.Connection]) -> dict[str, str]:
    """The tables by every name that they may be given, in small letters: DuckDB ignores case."""

    def read() -> dict[str, str]:
        called: dict[str, str] = {}
        with opened() as connection:
            found = connection.execute(f"SELECT {TABLE_NAMES} FROM information_schema.tables ORDER BY ALL").fetchall()
        for base, schema, name in found:
            own = name if schema == MAIN else f"{schema}.{name}"
            for other in (own, f"{schema}.{name}", f"{base}.{own}", f"{base}.{schema}.{name}"):
                called.setdefault(other.lower(), own)
        return called

    return streams.attempt(path, read)


def _selected(what: str | Path, sql: str, opened: streams.Connect, name: str | None = None) -> Table:
    """The table that some SQL gives."""

    def columns() -> list[str]:
        with opened() as connection:
            return [str(one) for one in connection.sql(sql).columns]

    def failure(_: BaseException) -> TableError:
        return TableError(
            f"{name or what} must be readable, and is not", "Check the names of its columns and functions in DuckDB."
        )

    names = guarded(columns, failure)
    refuse_repeated(names)
    streams.refuse_case_clash(what, names)
    source = f"({sql.rstrip().rstrip(';')}\n) AS chosen"
    return Table(
        names, lambda wanted: streams.stream(what, source, wanted, [streams.quoted(one) for one in wanted], opened)
    )


EXPRESSIONS = {
    "BETWEEN",
    "CASE",
    "CAST",
    "COLLATE",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
    "FUNCTION",
    "LAMBDA",
    "LAMBDA_REF",
    "OPERATOR",
    "STAR",
    "TYPE",
}
"""The classes of expressions that are functions of one row."""
NUMBERING = {"rowid", "file_row_number", "file_index"}
"""Columns that are a row's place among the others."""
LOOKING = {"unnest", "unlist", "json_serialize_plan"}
"""Functions that make rows, or plan another query: a plan tells what a table holds, because DuckDB plans by that."""
UNDOCUMENTED = "__internal"
"""How the names of DuckDB's undocumented functions begin."""
REMEDY = "Choose columns and rows of one table; make a table of anything more, in which each person is one row."


def table_of(sql: str) -> str:
    """The table that a query reads; a query that is not row by row is refused."""
    node = _parsed(sql)
    source = node.get("from_table") or {}
    if node.get("type") != "SELECT_NODE" or source.get("type") != "BASE_TABLE":
        raise TableError("a query must be a select from one table", REMEDY)
    for key in ("group_expressions", "group_sets", "having", "qualify", "sample"):
        if node.get(key):
            raise _unfit("group or sample rows")
    if node.get("aggregate_handling", "STANDARD_HANDLING") != "STANDARD_HANDLING":
        raise _unfit("group or sample rows")
    if source.get("sample") or source.get("at_clause") or node.get("cte_map", {}).get("map"):
        raise _unfit("sample a table or define others")
    if any(one.get("type") != "ORDER_MODIFIER" for one in node.get("modifiers", [])):
        raise _unfit("limit rows or leave out equal ones")
    _refuse_expressions([node.get("select_list"), node.get("where_clause"), node.get("modifiers")])
    return ".".join(filter(None, (source.get("schema_name"), source.get("table_name"))))


def _unfit(what: str) -> TableError:
    return TableError(f"a query must make each row from one row, so it must not {what}", REMEDY)


def _parsed(sql: str) -> dict[str, Any]:
    """The query's syntax tree, as DuckDB reads it; nothing is run."""

    def read() -> Any:
        with streams.connect() as connection:
            found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
        return json.loads(found[0]) if found else {}

    tree = guarded(read, lambda _: TableError("a query must be SQL that DuckDB reads", "Check it in DuckDB."))
    if tree.get("error", True):
        raise TableError("a query must be a select that DuckDB can read", "Check it in DuckDB.")
    if len(tree["statements"]) != 1:
        raise TableError("a query must be one statement", "Give one select.")
    node: dict[str, Any] = tree["statements"][0]["node"]
    return node


def _refuse_expressions(tree: Any) -> None:
    """Refuse expressions that look at more than one row, anywhere in the tree."""
    if isinstance(tree, list):
        for one in tree:
            _refuse_expressions(one)
    if not isinstance(tree, dict):
        return
    if "class" in tree and tree["class"] not in EXPRESSIONS:
        raise _unfit("look at other rows or tables")
    if tree.get("class") == "FUNCTION":
        _refuse_function(str(tree.get("function_name", "")).lower())
    if tree.get("class") == "COLUMN_REF" and {str(one).lower() for one in tree.get("column_names", ())} & NUMBERING:
        raise _unfit("look at the places of rows")
    for one in tree.values():
        _refuse_expressions(one)


def _refuse_function(name: str) -> None:
    if name not in _of_single_values():
        raise TableError(
            f"a query must use functions of single values that DuckDB has built in, and {name} is none", REMEDY
        )


def refuse_shadows(connection: streams.Connection) -> None:
    """Refuse a database in which the name of one of DuckDB's own functions stands for something else."""
    own = "SELECT lower(function_name) FROM duckdb_functions() WHERE"
    found = connection.execute(f"{own} NOT internal INTERSECT {own} internal ORDER BY 1").fetchall()
    if found:
        raise TableError(
            f"a database that is queried must not define functions of DuckDB's own, and defines {found[0][0]}",
            "Drop the macro, or publish a table of the database.",
        )


@cache
def _of_single_values() -> frozenset[str]:
    """DuckDB's functions of the values of one row that give the same for the same."""
    with streams.connect() as connection:
        found = connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE internal GROUP BY 1 "
            "HAVING bool_and(function_type = 'scalar' AND coalesce(stability = 'CONSISTENT', false))"
        ).fetchall()
    names = {str(name).lower() for (name,) in found}
    return frozenset(name for name in names - LOOKING if not name.startswith(UNDOCUMENTED))
