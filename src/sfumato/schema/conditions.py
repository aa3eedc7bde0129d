"""Read conditions such as `age between 30 and 40 and sex = 'Female'` into weights of leaves.

The grammar is small: comparisons joined by `and`. It can say only what a release can answer, and a mistake is shown
where it is.

A comparison selects a part of an attribute: a set of leaves of categories, or of intervals of numbers. Parts are
combined as sets and only then turned into weights of leaves, so that two comparisons that cut the same cell cut it
once.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.errors import QueryError
from sfumato.schema.attributes import EPOCH, Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema

LONGEST = 100_000
"""No condition has more characters."""


def read_condition(schema: Schema, condition: str) -> Mapping[str, Floats]:
    """Read a condition into weights of leaves, by attribute; one that is not named is not restricted.

    An attribute that is named twice must satisfy both comparisons.
    """
    if len(condition) > LONGEST:
        raise QueryError(f"a condition must be at most {LONGEST:,} characters long", "Ask several shorter ones.")
    parts: dict[str, Any] = {}
    reader = _Reader(schema, condition)
    while not reader.at_end:
        name, part = reader.clause()
        parts[name] = parts[name].both(part) if name in parts else part
        if not reader.at_end:
            reader.expect("and")
            reader.refuse_end("another comparison")
    return {name: part.weights() for name, part in parts.items()}


class Part(Protocol):
    """A part of an attribute's domain."""

    def both(self, other: Self) -> Self:
        """What is in both parts."""

    def outside(self) -> Self:
        """What is not in this part."""

    def weights(self) -> Floats:
        """The share of each leaf that is in this part."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Some leaves of a taxonomy."""

    inside: Booleans
    """of each leaf"""

    @classmethod
    def ranges(cls, leaves: int, ranges: Iterable[tuple[int, int]]) -> Leaves:
        """The union of ranges of leaf codes."""
        inside = np.zeros(leaves, np.bool_)
        for lo, hi in ranges:
            inside[lo:hi] = True
        return cls(inside)

    def both(self, other: Leaves) -> Leaves:
        """The leaves in both."""
        return Leaves(self.inside & other.inside)

    def outside(self) -> Leaves:
        """The other leaves."""
        return Leaves(~self.inside)

    def weights(self) -> Floats:
        """1 for each leaf inside, 0 for the others."""
        return self.inside.astype(np.float64)


@dataclass(frozen=True)
class Intervals:
    """Disjoint, increasing intervals `[start, stop)` of a grid's numbers, and perhaps the missing values."""

    column: Numeric
    intervals: tuple[tuple[Fraction, Fraction], ...]
    missing: bool = False

    @classmethod
    def union(cls, column: Numeric, pieces: Iterable[tuple[Fraction, Fraction]], missing: bool = False) -> Intervals:
        """The union of pieces, cut to the grid."""
        merged: list[tuple[Fraction, Fraction]] = []
        for start, stop in sorted((max(lo, column.origin), min(hi, column.end)) for lo, hi in pieces):
            if start >= stop:
                continue
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return cls(column, tuple(merged), missing)

    def both(self, other: Intervals) -> Intervals:
        """What is in both."""
        pieces = [(max(a, c), min(b, d)) for a, b in self.intervals for c, d in other.intervals]
        return Intervals.union(self.column, pieces, self.missing and other.missing)

    def outside(self) -> Intervals:
        """The other numbers, without missing values, as in SQL."""
        borders = [self.column.origin, *(edge for piece in self.intervals for edge in piece), self.column.end]
        return Intervals.union(self.column, zip(borders[::2], borders[1::2], strict=True))

    def weights(self) -> Floats:
        """The share of each cell that lies inside, and 0 or 1 for the leaf of missing values."""
        edges = self.column.edges.astype(np.float64)
        inside = sum(
            (
                np.clip(np.minimum(float(hi), edges[1:]) - np.maximum(float(lo), edges[:-1]), 0, None)
                for lo, hi in self.intervals
            ),
            start=np.zeros(self.column.cells),
        )
        shares = np.minimum(inside / np.diff(edges), 1.0)
        return np.append(shares, float(self.missing)) if self.column.missing is not None else shares


TOKEN = re.compile(
    r"""(?: '(?P<text>(?:[^']|'')*)' | "(?P<quoted>[^"]*)" | (?P<mark><=|>=|!=|<>|=|<|>|\(|\)|,)
        | (?P<word>[^\s'"(),<>=!]+) )\s*""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    text: str
    at: int
    is_mark: bool = False
    is_bare: bool = False

    def says(self, *words: str) -> bool:
        """Whether this is one of these marks or unquoted words."""
        return (self.is_mark or self.is_bare) and self.text.lower() in words


class _Reader:
    """A cursor over the tokens of one condition."""

    def __init__(self, schema: Schema, condition: str) -> None:
        self._schema, self._condition = schema, condition
        self._tokens = self._split(condition)
        self._next = 0

    def _split(self, condition: str) -> list[_Token]:
        tokens, at = [], len(condition) - len(condition.lstrip())
        while at < len(condition):
            match = TOKEN.match(condition, at)
            if match is None:
                raise self._mistake(at, "a name, a value or a comparison")
            kind = str(match.lastgroup)
            text = match[kind].replace("''", "'") if kind == "text" else match[kind]
            tokens.append(_Token(text, match.start(kind), is_mark=kind == "mark", is_bare=kind == "word"))
            at = match.end()
        return tokens

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def clause(self) -> tuple[str, Part]:
        token = self._take("an attribute")
        if token.is_mark:
            raise self._mistake(token.at, "an attribute")
        name = token.text
        column = self._schema.attributes.get(name)
        if column is None or isinstance(column, Identifier):
            known = [one for one, facts in self._schema.attributes.items() if not isinstance(facts, Identifier)]
            why = "was dropped as an identifier" if column else "is not in this release"
            raise QueryError(f"attribute {name[:40]} {why}", f"It has {', '.join(known[:20])}.")
        return name, self._comparison(name, column)

    def _comparison(self, name: str, column: Categorical | Numeric) -> Part:
        sign = self._take("a comparison such as =, <, between or in")
        if sign.says("in"):
            return _equal(name, column, self._list())
        if sign.says("="):
            return _equal(name, column, [self._value()])
        if sign.says("!=", "<>"):
            return _equal(name, column, [self._value()]).outside()
        if isinstance(column, Categorical):
            raise QueryError(
                f"{name} must be compared with = or in, because it is categorical", f"Write {name} = 'value'."
            )
        if sign.says("between"):
            low = _number(name, column, self._value())
            self.expect("and")
            return _between(column, low=low, high=_number(name, column, self._value()))
        if sign.says("<", "<="):
            high = _number(name, column, self._value())
            return _between(column, high=high, high_included=sign.text == "<=")
        if sign.says(">", ">="):
            low = _number(name, column, self._value())
            return _between(column, low=low, low_included=sign.text == ">=")
        raise self._mistake(sign.at, "a comparison such as =, <, between or in")

    def _list(self) -> list[str]:
        self.expect("(")
        values = [self._value()]
        while self._take("a comma or )").says(","):
            values.append(self._value())
        if not self._tokens[self._next - 1].says(")"):
            raise self._mistake(self._tokens[self._next - 1].at, "a comma or )")
        return values

    def _value(self) -> str:
        token = self._take("a value")
        if token.is_mark:
            raise self._mistake(token.at, "a value")
        return token.text

    def expect(self, word: str) -> None:
        token = self._take(word)
        if not token.says(word):
            raise self._mistake(token.at, word)

    def refuse_end(self, wanted: str) -> None:
        if self.at_end:
            raise self._mistake(len(self._condition), wanted)

    def _take(self, wanted: str) -> _Token:
        self.refuse_end(wanted)
        self._next += 1
        return self._tokens[self._next - 1]

    def _mistake(self, at: int, wanted: str) -> QueryError:
        place = self._condition[at : at + 20] or "its end"
        return QueryError(
            f"the condition must have {wanted} at character {at + 1} (at {place!r})",
            "Write for example: age between 30 and 40 and sex = 'Female'.",
        )


def _equal(name: str, column: Categorical | Numeric, values: list[str]) -> Leaves | Intervals:
    """The leaves of the categories named, or the numbers (on a decimal grid, their cells)."""
    if isinstance(column, Categorical):
        return Leaves.ranges(column.leaves, [_category(name, column, value) for value in values])
    numbers = [_number(name, column, value) for value in values if value != column.missing]
    return Intervals.union(column, [_just(column, number) for number in numbers], len(numbers) < len(values))


def _category(name: str, column: Categorical, value: str) -> tuple[int, int]:
    found = column.tree.range_of(value)
    if found is None:
        names = ", ".join(node.label for node in column.tree.nodes[:12])
        raise QueryError(
            f"{name} must be compared with a value of its taxonomy, and {value[:40]!r} is none", f"It has {names} ..."
        )
    return found


def _just(column: Numeric, number: Fraction) -> tuple[Fraction, Fraction]:
    """The interval of one number: itself on whole grids, the cell it lies in on others."""
    if column.is_whole:
        return Fraction(math.ceil(number)), Fraction(math.floor(number) + 1)
    if not column.origin <= number <= column.end:
        return number, number
    cell = min((number - column.origin) // column.width, column.cells - 1)
    return column.origin + cell * column.width, column.origin + (cell + 1) * column.width


def _between(
    column: Numeric,
    low: Fraction | None = None,
    high: Fraction | None = None,
    *,
    low_included: bool = True,
    high_included: bool = True,
) -> Intervals:
    """What lies between two numbers; on a grid of whole numbers, only whole numbers do."""
    start, stop = column.origin if low is None else low, column.end if high is None else high
    if column.is_whole and low is not None:
        start = Fraction(math.ceil(low) if low_included else math.floor(low) + 1)
    if column.is_whole and high is not None:
        stop = Fraction(math.floor(high) + 1 if high_included else math.ceil(high))
    return Intervals.union(column, [(start, stop)])


def _number(name: str, column: Numeric, value: str) -> Fraction:
    try:
        if column.is_date:
            return Fraction((datetime.date.fromisoformat(value) - EPOCH).days)
        number = Decimal(value)
        if number.is_finite() and abs(number.adjusted()) < 40:
            return Fraction(number)
    except (ValueError, InvalidOperation):
        pass
    what = "a date such as 2020-01-31" if column.is_date else "a number"
    raise QueryError(
        f"{name} must be compared with {what}, and {value[:40]!r} is none",
        f"Write for example {name} >= {column.edge(0)}.",
    )
