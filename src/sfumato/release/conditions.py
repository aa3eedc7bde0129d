"""Conditions such as `age between 30 and 40 and sex = 'Female'`, read into weights of leaves.

The weight of a leaf is the share of it that the condition covers: 0 or 1 where the grid resolves the values, a
fraction where a cell is cut. A conjunction keeps one weight vector per attribute it names.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import EPOCH, Categorical, Identifier, Numeric
from sfumato.errors import QueryError
from sfumato.schema import Schema

Weights = NDArray[np.float64]

TOKEN = re.compile(
    r"""\s*(?: '(?P<text>(?:[^']|'')*)' | "(?P<quoted>[^"]*)" | (?P<mark><=|>=|!=|<>|=|<|>|\(|\)|,)
        | (?P<word>[^\s'"(),<>=!]+) )""",
    re.VERBOSE,
)
LONGEST = 100_000


@dataclass(frozen=True)
class _Token:
    text: str
    at: int
    is_mark: bool = False
    is_bare: bool = False

    def says(self, *words: str) -> bool:
        """Tell whether this is one of these marks or bare words."""
        return (self.is_mark or self.is_bare) and self.text.lower() in words


def read_condition(schema: Schema, condition: str) -> Mapping[str, Weights]:
    """Read a conjunction; an attribute named twice must satisfy both. An empty condition covers everyone."""
    if len(condition) > LONGEST:
        raise QueryError(f"a condition must be at most {LONGEST:,} characters long", "Ask several shorter ones.")
    weights: dict[str, Weights] = {}
    reader = _Reader(schema, condition)
    while not reader.at_end:
        name, covered = reader.clause()
        weights[name] = weights[name] * covered if name in weights else covered
        if not reader.at_end:
            reader.expect("and")
            reader.refuse_end("another comparison")
    return weights


class _Reader:
    """A cursor over the tokens of one condition."""

    def __init__(self, schema: Schema, condition: str) -> None:
        self._schema, self._condition = schema, condition
        self._tokens = self._split(condition)
        self._next = 0

    def _split(self, condition: str) -> list[_Token]:
        tokens, at = [], 0
        while condition[at:].strip():
            match = TOKEN.match(condition, at)
            if match is None:
                raise self._mistake(
                    at + len(condition[at:]) - len(condition[at:].lstrip()), "a name, a value or a comparison"
                )
            kind = str(match.lastgroup)
            text = match[kind].replace("''", "'") if kind == "text" else match[kind]
            tokens.append(_Token(text, match.start(kind), is_mark=kind == "mark", is_bare=kind == "word"))
            at = match.end()
        return tokens

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def clause(self) -> tuple[str, Weights]:
        name = self._take("an attribute").text
        column = self._schema.attributes.get(name)
        if column is None or isinstance(column, Identifier):
            known = [one for one, facts in self._schema.attributes.items() if not isinstance(facts, Identifier)]
            why = "was dropped as an identifier" if column else "is not in this release"
            raise QueryError(f"attribute {name} {why}", f"It has {', '.join(known[:20])}.")
        return name, self._comparison(name, column)

    def _comparison(self, name: str, column: Categorical | Numeric) -> Weights:
        sign = self._take("a comparison such as =, <, between or in")
        if sign.says("between"):
            low = self._value()
            self.expect("and")
            return _interval(name, column, low=low, high=self._value())
        if sign.says("in"):
            return np.asarray(np.minimum(sum(_equal(name, column, value) for value in self._list()), 1.0))
        if sign.says("="):
            return _equal(name, column, self._value())
        if sign.says("!=", "<>"):
            return np.asarray(1.0 - _equal(name, column, self._value()))
        if sign.says("<", "<="):
            return _interval(name, column, high=self._value(), high_included=sign.text == "<=")
        if sign.says(">", ">="):
            return _interval(name, column, low=self._value(), low_included=sign.text == ">=")
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


def _equal(name: str, column: Categorical | Numeric, value: str) -> Weights:
    """Cover the leaves of a category, or the cell of a number."""
    if isinstance(column, Categorical):
        found = column.tree.range_of(value)
        if found is None:
            names = ", ".join(node.label for node in column.tree.nodes[:12])
            raise QueryError(
                f"{name} must be compared with a value of its taxonomy, and {value!r} is none",
                f"It has {names} ...",
            )
        return _ones(column.leaves, *found)
    if column.missing is not None and value == column.missing:
        return _ones(column.leaves, column.cells, column.leaves)
    number = _number(name, column, value)
    if column.is_whole:
        return _interval(name, column, low=value, high=value)
    cell = (number - column.origin) // column.width
    return _ones(column.leaves, int(cell), int(cell) + 1) if 0 <= cell < column.cells else np.zeros(column.leaves)


def _ones(leaves: int, lo: int, hi: int) -> Weights:
    weights = np.zeros(leaves)
    weights[lo:hi] = 1.0
    return weights


def _interval(
    name: str,
    column: Categorical | Numeric,
    low: str | None = None,
    high: str | None = None,
    *,
    low_included: bool = True,
    high_included: bool = True,
) -> Weights:
    """Cover what lies between two numbers; on a grid of whole numbers, strict bounds move by one."""
    if isinstance(column, Categorical):
        raise QueryError(f"{name} must be compared with = or in, because it is categorical", f"Write {name} = 'value'.")
    end = column.origin + column.cells * column.width
    unit = 1 if column.is_whole else 0
    start = column.origin if low is None else _number(name, column, low) + (0 if low_included else unit)
    stop = end if high is None else _number(name, column, high) + (unit if high_included else 0)
    last = Fraction((column.upper - EPOCH).days) if isinstance(column.upper, datetime.date) else Fraction(column.upper)
    if high_included and high is not None and _number(name, column, high) >= last:
        stop = end
    return _overlap(column, (start - column.origin) / column.width, (stop - column.origin) / column.width)


def _overlap(column: Numeric, start: Fraction, stop: Fraction) -> Weights:
    """Give the share of each cell that lies between two places on the grid."""
    weights = np.zeros(column.leaves)
    edges = np.arange(column.cells)
    inside = np.minimum(float(stop), edges + 1.0) - np.maximum(float(start), edges)
    weights[: column.cells] = np.clip(inside, 0.0, 1.0)
    return weights


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
        f"{name} must be compared with {what}, and {value!r} is none",
        f"Write for example {name} >= {column.edge(0)}.",
    )
