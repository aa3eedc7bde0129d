"""What SQL in engines is made of: the dialects of DuckDB and Spark, kinds of columns, slots, and tallies as SQL.

Only `Dialect` differs between the two; everything else is written once, in words that both understand.

In a tally's SQL every row has a column `c0`, `c1`, ... for each attribute and `k` for the class, and `w` if it stands
for several records. Each engine finds a row's `place` in its own way; what follows is arithmetic: the cells of all
attributes are numbered one after the other, so that one aggregation counts them all. The steps from the nodes of a tree
to their children are small tables that an engine looks up.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import NONE, Integers
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Breakdown, Counts, Tally
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Predictor
from sfumato.tables import values as reading

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Python strips from texts."""


class Dialect(Protocol):
    """The words of one engine. Arguments are SQL, except where a value is asked for."""

    text_type: str

    def name(self, text: str) -> str:
        """Quote the name of a column."""

    def literal(self, text: str) -> str:
        """Quote a text."""

    def stripped(self, text: str) -> str:
        """Strip blanks as Python does."""

    def matches(self, text: str, pattern: str) -> str:
        """Tell whether a regular expression, given as a value without backslashes, is found in a text."""

    def quotient(self, number: str, divisor: int) -> str:
        """Divide a whole number that is not negative, rounding down."""

    def shortest(self, single: str) -> str:
        """Read a float of 32 bits as the double that its shortest decimal stands for."""

    def code_type(self, slots: int) -> str:
        """Name the smallest type that holds so many codes."""

    def days(self, day: str) -> str:
        """Count the days from 1970 to a day, as BIGINT."""

    def melted(self, cells: Sequence[str], rows: str, *, weighted: bool) -> str:
        """Count every row once in each of its cells: a query for (cell, n)."""


def _weight(weighted: bool) -> tuple[str, str]:
    """Give the column of weights, if there is one, and how many records rows stand for."""
    return (", w", "CAST(sum(w) AS BIGINT)") if weighted else ("", "count(*)")


class DuckDBDialect:
    """DuckDB's words."""

    text_type = "VARCHAR"

    def name(self, text: str) -> str:
        """Quote with double quotes."""
        return '"' + text.replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        """Double the quotes; a NUL, which cannot stand in a query, is spelled."""
        quoted = "'" + text.replace("'", "''") + "'"
        return quoted.replace("\0", "' || chr(0) || '")

    def stripped(self, text: str) -> str:
        """Look at both ends first: most texts have no blanks there, and looking is much cheaper than trimming."""
        plain = " AND ".join(f"ord({end}) BETWEEN 33 AND 126" for end in (text, f"right({text}, 1)"))
        return f"CASE WHEN {plain} THEN {text} ELSE trim({text}, {self.literal(BLANKS)}) END"

    def matches(self, text: str, pattern: str) -> str:
        """Search."""
        return f"regexp_matches({text}, {self.literal(pattern)})"

    def quotient(self, number: str, divisor: int) -> str:
        """Divide whole numbers."""
        return f"({number} // {divisor})"

    def shortest(self, single: str) -> str:
        """Write it: DuckDB writes shortest decimals."""
        return f"CAST(CAST({single} AS VARCHAR) AS DOUBLE)"

    def code_type(self, slots: int) -> str:
        """Choose among unsigned types."""
        return "UTINYINT" if slots <= 2**8 else "USMALLINT" if slots <= 2**16 else "UINTEGER"

    def days(self, day: str) -> str:
        """Subtract; the days without end are as far away as a file can say."""
        finite = f"CAST({day} - DATE '1970-01-01' AS BIGINT)"
        endless = f"WHEN {day} > DATE '1970-01-01' THEN 2147483647 WHEN {day} IS NOT NULL THEN -2147483647"
        return f"CASE WHEN isfinite({day}) THEN {finite} {endless} END"

    def melted(self, cells: Sequence[str], rows: str, *, weighted: bool) -> str:
        """Group by each cell by itself: one scan feeds all groupings."""
        names = [f"x{place}" for place in range(len(cells))]
        listed = ", ".join(f"{cell} AS {name}" for cell, name in zip(cells, names, strict=True))
        found = names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"
        sets = ", ".join(f"({name})" for name in names)
        weight, count = _weight(weighted)
        return (
            f"SELECT CAST({found} AS BIGINT) AS cell, {count} AS n FROM (SELECT {listed}{weight} FROM {rows}) "
            f"GROUP BY GROUPING SETS ({sets})"
        )


class SparkDialect:
    """Spark's words."""

    text_type = "STRING"

    def name(self, text: str) -> str:
        """Quote with backticks."""
        return "`" + text.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        """Escape with backslashes."""
        return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"

    def stripped(self, text: str) -> str:
        """Trim."""
        return f"trim(BOTH {self.literal(BLANKS)} FROM {text})"

    def matches(self, text: str, pattern: str) -> str:
        """Search."""
        return f"({text} RLIKE {self.literal(pattern)})"

    def quotient(self, number: str, divisor: int) -> str:
        """Divide whole numbers."""
        return f"({number} DIV {divisor})"

    def shortest(self, single: str) -> str:
        """Take the fewest digits, from 6 on, that are read back as the same float.

        A decimal of up to 6 digits survives its way through a float, so where fewer digits are enough the nearest
        decimal of 6 is that very number. (Java before 19 does not write the shortest.)
        """
        written = [f"format_string('%.{digits - 1}e', CAST({single} AS DOUBLE))" for digits in range(6, 10)]
        tried = [f"CASE WHEN try_cast({one} AS FLOAT) = {single} THEN try_cast({one} AS DOUBLE) END" for one in written]
        return f"coalesce({', '.join(tried)}, CAST({single} AS DOUBLE))"

    def code_type(self, slots: int) -> str:
        """Choose among signed types, which are all that there is."""
        return "TINYINT" if slots <= 2**7 else "SMALLINT" if slots <= 2**15 else "INT"

    def days(self, day: str) -> str:
        """Subtract."""
        return f"CAST(datediff({day}, DATE '1970-01-01') AS BIGINT)"

    def melted(self, cells: Sequence[str], rows: str, *, weighted: bool) -> str:
        """List the cells of each row, then group once."""
        weight, count = _weight(weighted)
        melted = f"SELECT explode(array({', '.join(cells)})) AS cell{weight} FROM {rows}"
        return f"SELECT CAST(cell AS BIGINT) AS cell, {count} AS n FROM ({melted}) GROUP BY cell"


_ESCAPES = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z", "\b": "\\b"}


NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


class Kind(enum.Enum):
    """What the values of a column are, as far as their coding is concerned."""

    TEXT = enum.auto()
    TRUTH = enum.auto()
    WHOLE = enum.auto()
    """whole numbers of at most 64 bits, with a sign"""
    REAL = enum.auto()
    SINGLE = enum.auto()
    DECIMAL = enum.auto()
    """numbers that are exact, of any length"""
    DAY = enum.auto()
    MOMENT = enum.auto()
    """points in time without a zone"""
    NESTED = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True)
class Dictionary:
    """A small public table: the slot of each key. Rows look up what `wanted` says."""

    alias: str
    wanted: str
    keys: pa.Array[Any]
    slots: tuple[int, ...]

    @property
    def slot(self) -> str:
        """What was found, in SQL; NULL if nothing was."""
        return f"{self.alias}.slot"


@dataclass(frozen=True)
class Coding:
    """How one column is coded: what is read of each value, where that is looked up, and the slot that follows."""

    leaves: int
    slot: str
    readings: dict[str, str] = field(default_factory=dict)
    dictionaries: tuple[Dictionary, ...] = ()

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return self.leaves + len(reading.REASONS)

    def reason(self, slot: int) -> int:
        """Tell why a slot is no leaf."""
        return slot - self.leaves + 1


@dataclass(frozen=True)
class Slots:
    """The slots of an attribute."""

    leaves: int
    missing: int

    @classmethod
    def of(cls, facts: Predictor) -> Slots:
        own = facts.cells if isinstance(facts, Numeric) and facts.missing is not None else None
        return cls(facts.leaves, facts.leaves + reading.MISSING - 1 if own is None else own)

    def misfit(self, reason: int) -> int:
        return self.leaves + reason - 1

    def found(self, code: int, reason: int) -> int:
        return code if reason == reading.FINE else self.misfit(reason)


def stripped(column: str, words: Dialect) -> str:
    """Read a column as text without the blanks around it."""
    return words.stripped(f"CAST({column} AS {words.text_type})")


WORTH_MERGING = 2
"""Rows that are alike become one, with a weight, if there are so many times fewer different ones."""


@dataclass(frozen=True)
class Rows:
    """What a table of coded rows is called, and what columns it has."""

    table: str
    attributes: int
    weighted: bool

    @property
    def columns(self) -> list[str]:
        """The columns that never change."""
        return [*(f"c{attribute}" for attribute in range(self.attributes)), "k", *(["w"] if self.weighted else [])]


def cells_of(tally: Tally) -> list[str]:
    """Write the cells of a row that lies in a place: one of each attribute, or that of its class."""
    cells = [
        f"{start} + (place * {tally.leaves(attribute)} + c{attribute}) * {tally.classes} + k"
        for attribute, start in zip(tally.attributes, _starts(tally), strict=False)
    ]
    wide = "BIGINT" if _starts(tally)[-1] >= 2**31 else "INT"
    return [f"CAST({cell} AS {wide})" for cell in cells or [f"place * {tally.classes} + k"]]


def counts_of(tally: Tally, cells: Integers, numbers: Integers) -> Counts:
    """Put the answer together."""
    order = np.argsort(cells, kind="stable")
    cells, numbers = cells[order], numbers[order]
    by_place = np.zeros((tally.places, tally.classes), np.int64)
    if not tally.attributes:
        by_place.reshape(-1)[cells] = numbers
        return Counts(by_place, {})
    starts = _starts(tally)
    found = np.searchsorted(cells, starts)
    by_leaf = {
        attribute: Breakdown.of_cells(
            tally.leaves(attribute), tally.classes, cells[begin:end] - start, numbers[begin:end]
        )
        for attribute, start, begin, end in zip(tally.attributes, starts, found, found[1:], strict=False)
    }
    some = by_leaf[tally.attributes[0]]
    np.add.at(by_place, some.keys // some.leaves, some.counts)
    return Counts(by_place, by_leaf)


def _starts(tally: Tally) -> list[int]:
    """Give where the cells of each attribute begin, and the end."""
    sizes = [tally.places * tally.leaves(attribute) * tally.classes for attribute in tally.attributes]
    return list(accumulate(sizes or [tally.places * tally.classes], initial=0))


Columns = dict[str, NDArray[np.integer]]
"""A small table by column."""


def splits_of(tree: Tree, known: int) -> Columns:
    """Give for each split node the attribute that divides it, its first child, and the border if there is only one.

    Children of one family have numbers side by side. Where there are more than two, the way they divide their parent
    has a number, which is the same for all parents that are divided alike: a taxonomy has few.
    """
    first, sizes = _families(tree, known)
    alike = _numbers_of_ways(tree, first, sizes)
    ways = [alike.get(_way(tree, one, size), NONE) for one, size in zip(first, sizes, strict=True)]
    return {
        "parent": tree.parents[first],
        "attribute": tree.attributes[first],
        "born": first.astype(np.int32),
        "border": np.where(sizes == 2, tree.highs[first], 0).astype(np.int32),
        "way": np.array(ways, np.int32),
    }


def ways_of(tree: Tree, known: int) -> Columns:
    """Give for each way to divide a range in more than two, leaf by leaf, which part it is in."""
    alike = _numbers_of_ways(tree, *_families(tree, known))
    columns: dict[str, list[NDArray[np.integer]]] = {"way": [], "leaf": [], "part": []}
    for (_, *borders), number in alike.items():
        widths = np.diff(borders)
        columns["way"].append(np.full(borders[-1] - borders[0], number))
        columns["leaf"].append(np.arange(borders[0], borders[-1]))
        columns["part"].append(np.repeat(np.arange(len(widths)), widths))
    return {name: np.concatenate([np.empty(0, np.int32), *pieces]).astype(np.int32) for name, pieces in columns.items()}


def _families(tree: Tree, known: int) -> tuple[Integers, Integers]:
    """Give the first child of each family from a number of nodes on, and how many children it has."""
    parents = tree.parents[known:]
    first = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
    return known + first, np.diff(first, append=len(parents))


def _way(tree: Tree, first: int, size: int) -> tuple[int, ...]:
    """Give the attribute and the borders of a family."""
    return (int(tree.attributes[first]), *tree.lows[first : first + size].tolist(), int(tree.highs[first + size - 1]))


def _numbers_of_ways(tree: Tree, first: Integers, sizes: Integers) -> dict[tuple[int, ...], int]:
    many = np.flatnonzero(sizes > 2)
    ways = dict.fromkeys(_way(tree, int(first[one]), int(sizes[one])) for one in many)
    return {way: number for number, way in enumerate(ways)}
