"""What the engines' SQL dialects say differently. Everything else is written once, in words that both understand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
