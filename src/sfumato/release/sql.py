"""Answers to SQL about a release, computed by DuckDB over the estimates of cells.

The relation `release` is made for each question, of the attributes that it mentions. DuckDB parses the question, says
what it means on a relation without rows, and runs it; it can reach no files, no other tables and no extensions, and has
so much memory and time and no more.

A column tells of each leaf: a category is its name, and `education@1` the name one level below the root, `education@2`
two, for those who group by a taxonomy's inner nodes. A number is itself where cells are single numbers, else the middle
of its cell.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.errors import QueryError
from sfumato.models.model import Model
from sfumato.release.weighing import (
    CLOCKS,
    RELEASE,
    WEIGHT,
    Node,
    Weighing,
    inner_queries,
    named_columns,
    reads_release,
    refuse_growing,
    refuse_other_relations,
    refuse_unstable,
)
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema

MOST_CELLS = 20_000_000
"""The most cells of a question."""
MOST_SECONDS = 120.0
"""The longest that a question may take."""
MOST_BYTES = 2**30
"""The largest answer."""
LONGEST = 100_000
"""The most characters of a question."""
DEEPEST = 200
"""The most brackets open at once: parsing takes the longer the more there are, and cannot be interrupted."""
BATCH_ROWS = 64 * 2048
"""How many rows of an answer are fetched at once."""
LOCKS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "enable_external_access": "false",
    "memory_limit": "4GB",
    "temp_directory": "",
    "lock_configuration": "true",
}
"""How DuckDB is shut in."""
LIMITS = (duckdb.InterruptException, duckdb.OutOfMemoryException)
"""What DuckDB raises where time or memory end."""

EXAMPLE = "Write for example: select sex, count(*) from release where age >= 40 group by sex."
"""The way out for a question that cannot be understood."""
AGGREGATE = "function_type = 'aggregate'"
"""By what DuckDB tells functions that aggregate."""
UNSTABLE = "stability <> 'CONSISTENT'"
"""By what DuckDB tells functions that give something else each time."""
UNKNOWN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
"""How DuckDB complains of a column that there is not."""


def answer(text: str, model: Model) -> pa.Table:
    """Answer a SELECT over `release`; counts are sums of a model's estimates."""
    with desk_for(model.schema) as desk:
        question = desk.understand(text)
        cells = cells_of(model, question.attributes, desk.columns) if question.reads_release else None
        return desk.ask(question, question.weighed, cells).rename_columns(question.names)


@dataclass(frozen=True, eq=False)
class Understood:
    """A question that was read and checked."""

    query: Node
    """its syntax"""
    weighed: Node
    """the statement as it is asked of cells"""
    names: list[str]
    """of the columns of its answer"""
    attributes: set[str]
    """which it mentions"""
    weighing: Weighing

    @property
    def reads_release(self) -> bool:
        """Whether it reads anything at all."""
        return reads_release(self.query)


@contextmanager
def desk_for(schema: Schema) -> Iterator[Desk]:
    """Open a connection for one question."""
    try:
        with duckdb.connect(config=LOCKS) as connection, _in_time(connection):
            yield Desk(connection, schema)
    except RecursionError:
        raise _too_deep() from None


@contextmanager
def _in_time(connection: Any) -> Iterator[None]:
    """Interrupt a connection that takes too long."""
    clock = threading.Timer(MOST_SECONDS, connection.interrupt)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()


class Desk:
    """A connection by which one question is read, checked and answered."""

    def __init__(self, connection: Any, schema: Schema) -> None:
        """Take a connection that is shut in."""
        self._connection, self._schema, self.columns = connection, schema, cell_columns(schema)
        self._attributes = {name.lower(): column.attribute for name, column in self.columns.items()}

    def understand(self, text: str) -> Understood:
        """Read a question, and say how it is asked of cells."""
        try:
            statement = self._read(text)
            query = statement["node"]
            refuse_other_relations(query)
            refuse_growing(query)
            refuse_unstable(query, _functions(UNSTABLE, CLOCKS), self._attributes.keys())
            names = self._names_of_results(statement)
            weighing = Weighing(_functions(AGGREGATE), self._attributes.keys(), self._expression)
            weighed = statement | {"node": weighing.weigh(query)}
        except (KeyError, TypeError, AttributeError):
            raise QueryError(
                f"DuckDB {duckdb.__version__} must write syntax as Sfumato knows it, and does not",
                "Install DuckDB 2.0, or use count.",
            ) from None
        mentioned = named_columns(query) & self._attributes.keys()
        return Understood(query, weighed, names, {self._attributes[name] for name in mentioned}, weighing)

    def ask(self, question: Understood, weighed: Node, cells: pa.Table | None) -> pa.Table:
        """Ask a weighed statement of cells; the columns of its answer are not named yet."""
        if cells is not None:
            self._connection.register(RELEASE, cells)
        return self._attempt(lambda: _arrow(self._connection.sql(self._text(weighed))), question.query)

    def _read(self, text: str) -> Node:
        """Parse one SELECT."""
        if len(text) > LONGEST:
            raise QueryError(f"the SQL must be at most {LONGEST:,} characters long", "Ask several shorter questions.")
        if re.search("[\0\ud800-\udfff]", text):
            raise QueryError("the SQL must be readable text", "Write it as UTF-8.")
        if max(itertools.accumulate((one in "([{") - (one in ")]}") for one in text), default=0) > DEEPEST:
            raise _too_deep()
        parsed = self._parsed(text)
        if parsed["error"]:
            raise _unreadable(parsed, text)
        if len(parsed["statements"]) != 1:
            told = "several statements" if parsed["statements"] else "empty"
            raise QueryError(f"the SQL must be one SELECT, and is {told}", EXAMPLE)
        statement: Node = parsed["statements"][0]
        return statement

    def _names_of_results(self, statement: Node) -> list[str]:
        """Let DuckDB understand a question over no cells, and each of its subqueries alone; return its columns' names.

        An aggregate in a subquery that is about columns from outside it would belong to the select outside.
        """
        query = statement["node"]
        empty = pa.table({name: column.values.slice(0, 0) for name, column in self.columns.items()})
        self._connection.register(RELEASE, empty)
        described = self._attempt(lambda: self._describe(statement), query)
        try:
            for inner in inner_queries(query):
                self._describe(statement | {"node": inner})
        except LIMITS:
            raise _too_much() from None
        except duckdb.Error:
            raise QueryError(
                "a subquery must stand by itself, without columns of the select around it", "Join it instead."
            ) from None
        self._connection.unregister(RELEASE)
        return _distinct(str(name) for name, *_ in described)

    def _describe(self, statement: Node) -> list[tuple[Any, ...]]:
        described: list[tuple[Any, ...]] = self._connection.execute(f"DESCRIBE {self._text(statement)}").fetchall()
        return described

    def _parsed(self, text: str) -> Node:
        parsed: Node = json.loads(self._value("SELECT json_serialize_sql(?::VARCHAR)", text))
        return parsed

    def _expression(self, text: str) -> Node:
        """Parse one expression."""
        expression: Node = self._parsed(f"SELECT {text}")["statements"][0]["node"]["select_list"][0]
        return expression

    def _text(self, statement: Node) -> str:
        """Write a statement as SQL again."""
        plain = json.dumps({"error": False, "statements": [statement]})
        return str(self._value("SELECT json_deserialize_sql(?::JSON)", plain))

    def _value(self, sql: str, parameter: str) -> Any:
        return self._connection.execute(sql, [parameter]).fetchall()[0][0]

    def _attempt(self, action: Callable[[], Any], query: Node) -> Any:
        """Do something with a question, or raise why it cannot be answered."""
        try:
            return action()
        except LIMITS:
            raise _too_much() from None
        except duckdb.Error as error:
            raise self._failure(str(error), query) from None

    def _failure(self, told: str, query: Node) -> QueryError:
        """Say in our words what DuckDB has told."""
        known = f"It has {', '.join(list(self.columns)[:20])}."
        dropped = [name for name, column in self._schema.attributes.items() if isinstance(column, Identifier)]
        asked = [name for name in dropped if name.lower() in named_columns(query)]
        unknown = UNKNOWN.search(told)
        if unknown and asked:
            return QueryError(f"attribute {asked[0][:40]} was dropped as an identifier", known)
        if unknown and "(" in told[slice(*unknown.span())]:
            return QueryError("what is computed must have a name to be referred to", "Name it with AS.")
        if unknown:
            return QueryError(f"column {(unknown[1] or unknown[2])[:40]} is not in this release", known)
        says = told.splitlines()[0].partition(": ")[2].rstrip(".!")[:200]
        return QueryError(f"the SQL must have a meaning for DuckDB, which says: {says}", EXAMPLE)


@cache
def _functions(kind: str, words: frozenset[str] = frozenset()) -> frozenset[str]:
    """Ask DuckDB which functions are of a kind, macros that use such functions, or some words, included."""
    with duckdb.connect(config=LOCKS) as connection:
        functions = connection.execute(
            f"SELECT DISTINCT function_name, {kind}, macro_definition FROM duckdb_functions()"
        ).fetchall()
    found = {name for name, is_one, _ in functions if is_one}
    macros = [(name, definition) for name, _, definition in functions if definition]
    while True:
        calls = re.compile("|".join([rf"\b{re.escape(name)}\(" for name in found] + [rf"\b{word}\b" for word in words]))
        more = {name for name, definition in macros if calls.search(definition)} - found
        if not more:
            return frozenset(found)
        found |= more


def _arrow(relation: Any) -> pa.Table:
    """Fetch a relation as Arrow, unless it is too large; the method has another name before DuckDB 2."""
    reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(BATCH_ROWS)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > MOST_BYTES:
            raise QueryError(f"an answer must have at most {MOST_BYTES >> 20:,} MB", "Ask for less at once.")
    return pa.Table.from_batches(batches, reader.schema)


def _distinct(names: Iterable[str]) -> list[str]:
    """Make names distinct: number those that come again."""
    found: list[str] = []
    for name in names:
        again = (f"{name}_{number}" for number in itertools.count(1))
        found.append(next(other for other in itertools.chain([name], again) if other not in found))
    return found


def _unreadable(parsed: Node, text: str) -> QueryError:
    """The refusal of a question that cannot be parsed, with the place, or that is no SELECT."""
    if parsed.get("error_type") != "parser":
        return QueryError("the SQL must be one SELECT, and is something else", EXAMPLE)
    if not str(parsed.get("position", "")).isdigit():
        return QueryError("the SQL must be well-formed", EXAMPLE)
    at = int(parsed["position"])
    rest = text.encode()[at : at + 20].decode(errors="ignore")
    where = len(text.encode()[:at].decode(errors="ignore")) + 1
    return QueryError(f"the SQL must be well-formed at character {where} (at {rest or 'its end'!r})", EXAMPLE)


def _too_deep() -> QueryError:
    return QueryError("the SQL must not be nested so deeply", "Use lists with IN, or several questions.")


def _too_much() -> QueryError:
    return QueryError(
        f"an answer must take at most {MOST_SECONDS:.0f} seconds and {LOCKS['memory_limit']} of memory",
        "Ask for less at once.",
    )


def cells_of(model: Model, names: Collection[str], columns: Mapping[str, CellColumn]) -> pa.Table:
    """Make a row for every combination of leaves of some attributes, with its estimate.

    Where the class is not asked for, everybody is of one nameless class.
    """
    schema = model.schema
    refuse_too_many(schema, names)
    asked = [at for at, name in enumerate(schema.predictors) if name in names]
    target = schema.target if schema.target in names else None
    order = [*(list(schema.predictors)[at] for at in asked), target or ""]
    return cell_table(model.marginal(asked, by_class=target is not None), order, columns)


def cell_table(estimates: Floats, axes: Sequence[str], columns: Mapping[str, CellColumn]) -> pa.Table:
    """Write cells as rows: all columns that tell of an axis' attribute, and the estimate."""
    leaves: Sequence[NDArray[np.int32]] = np.indices(estimates.shape, np.int32, sparse=True)
    codes = dict(zip(axes, leaves, strict=True))
    table = {
        name: _column(np.broadcast_to(codes[column.attribute], estimates.shape).ravel(), column.values)
        for name, column in columns.items()
        if column.attribute in codes
    }
    return pa.table(table | {WEIGHT: estimates.ravel()})


def _column(codes: NDArray[np.int32], values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return pa.DictionaryArray.from_arrays(pa.array(codes), values)
    return values.take(pa.array(codes))


def refuse_too_many(schema: Schema, names: Collection[str]) -> None:
    """Refuse to make more cells than fit in memory."""
    leaves = {
        name: column.leaves
        for name, column in schema.attributes.items()
        if name in names and not isinstance(column, Identifier)
    }
    if math.prod(leaves.values()) > MOST_CELLS:
        listed = ", ".join(f"{name} {number:,}" for name, number in leaves.items())
        raise QueryError(
            f"the columns of one SQL question must have at most {MOST_CELLS:,} combinations of leaves, and these have "
            f"more ({listed})",
            "Mention fewer columns, or use count.",
        )


@dataclass(frozen=True, eq=False)
class CellColumn:
    """A column of the relation: what it says of each leaf of an attribute."""

    attribute: str
    values: pa.Array


def cell_columns(schema: Schema) -> dict[str, CellColumn]:
    """All columns by name; an attribute's own name goes before a level of another."""
    known = {name: column for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    _refuse_case_clash(known)
    levels = {
        f"{name}@{depth}": CellColumn(name, pa.array([path[-1 - depth] for path in column.tree.hierarchy]))
        for name, column in known.items()
        if isinstance(column, Categorical)
        for depth in range(1, column.tree.height)
    }
    own = {name: CellColumn(name, leaf_values(column)) for name, column in known.items()}
    taken = {name.lower() for name in own}
    return own | {name: column for name, column in levels.items() if name.lower() not in taken}


def leaf_values(column: Categorical | Numeric) -> pa.Array:
    """The value of each leaf: a name, or a number or date in the middle of its cell; null for missing.

    >>> leaf_values(Numeric(lower=0, upper=1499, step=500, points=[0])).to_pylist()
    [0.0, 250.0, 749.5, 1249.5]
    """
    if isinstance(column, Categorical):
        return pa.array(column.tree.leaves)
    first, end = column.edges[:-1], column.edges[1:]
    last = end - 1 if column.is_whole else end
    if column.is_date:
        values = pa.array(((first + last) // 2).astype(np.int32), pa.date32())
    elif column.is_whole and (first == last).all():
        values = pa.array(first)
    else:
        values = pa.array((first + last) / 2)
    return values if column.missing is None else pa.concat_arrays([values, pa.nulls(1, values.type)])


def _refuse_case_clash(names: Mapping[str, object]) -> None:
    """Refuse names that SQL, which does not see case, would confuse."""
    if len({name.lower() for name in names}) < len(names):
        raise QueryError(
            "attributes must differ in more than case to be asked in SQL, and some do not", "Use count or records."
        )
