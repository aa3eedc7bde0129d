"""Whether a query makes each row of its result from one row of one table, looking at nothing else.

The promise is about one row more or less in the table that is published. If a query joins, groups, numbers, limits or
samples, a person of the table below can make many rows of the result, or change those of others, and noise for one row
hides nobody. So a query may choose columns, compute with the values of a row, and choose rows by their own values.

Derivation. Let q(T) be the rows q(t) of those t in T for which p(t) holds. Adding t to T adds at most one row to q(T)
and changes no other: neighbours stay neighbours. What is allowed below is of that form, since of all expressions only
those pass that are functions of one row: columns, constants, comparisons, casts, cases and DuckDB's own functions of
single values that give the same for the same. That holds of what rows are ordered by, too: `order by unnest(...)` makes
rows, and `order by count(*)` groups them. A database may define a function under the name of one of DuckDB's own, which
then goes before; `refuse_shadows` refuses such a database.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sfumato.errors import TableError
from sfumato.guard import guarded
from sfumato.io import duck

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
NUMBERING = {"rowid", "file_row_number", "file_index"}
"""Columns that are a row's place among the others."""
LOOKING = {"unnest", "unlist", "json_serialize_plan"}
"""They make rows, or plan another query; a plan tells what a table holds, which DuckDB keeps in mind for planning."""
UNDOCUMENTED = "__internal"
REMEDY = "Choose columns and rows of one table; make a table of anything more, in which each person is one row."


def table_of(sql: str) -> str:
    """Give the table that a query reads; refuse a query that is not row by row."""
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
    """Let DuckDB read the query, as a tree; nothing is run."""

    def read() -> Any:
        with duck.connect() as connection:
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
    """Walk through all expressions; refuse those that look at more than a row."""
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


def refuse_shadows(connection: duck.Connection) -> None:
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
    """List DuckDB's functions of the values of one row that give the same for the same."""
    with duck.connect() as connection:
        found = connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE internal GROUP BY 1 "
            "HAVING bool_and(function_type = 'scalar' AND coalesce(stability = 'CONSISTENT', false))"
        ).fetchall()
    names = {str(name).lower() for (name,) in found}
    return frozenset(name for name in names - LOOKING if not name.startswith(UNDOCUMENTED))
