"""Read conditions such as `age between 30 and 40 and sex = 'Female'` into weights of leaves.

Comparisons are joined by `and`, `or` and `not`, with brackets where needed; a mistake is shown where it is. What a
comparison says of a missing number is neither true nor false, as in SQL: `not age < 30` leaves out those whose age is
missing, as `age >= 30` does. Only `is missing` finds them.

A comparison selects a part of an attribute: a set of leaves of categories, or of intervals of numbers. Parts are
combined as sets and only then turned into weights of leaves, so that two comparisons that cut the same cell cut it
once. A condition that is no box (a part of each attribute) is a union of disjoint ones.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.errors import QueryError
from sfumato.schema.attributes import EPOCH, Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema, variables_of
from sfumato.schema.unions import MOST_CELLS, Box, disjoint_boxes

LONGEST = 100_000
"""No condition has more characters."""
DEEPEST = 50
"""No condition has more brackets, or words `not`, inside each other."""
SIMPLER = "Ask several simpler ones, and add up what does not overlap."


@dataclass(frozen=True, eq=False)
class Covered:
    """What a condition covers: disjoint boxes, each as weights of leaves by attribute, and those that cover the rest.

    An attribute that a box does not name is not restricted. Of a single box the rest is not told.
    """

    inside: tuple[Mapping[str, Floats], ...]
    outside: tuple[Mapping[str, Floats], ...] = ()


def read_condition(schema: Schema, condition: str) -> Mapping[str, Floats]:
    """Read a condition that is one box into weights of leaves, by attribute; one that is not named is not restricted.

    An attribute that is named twice must satisfy both comparisons.
    """
    covered = read_covered(schema, condition)
    if len(covered.inside) == 1:
        return covered.inside[0]
    raise QueryError(
        f"the condition ({condition[:40]}) must be comparisons joined by and", "Write one condition for each part."
    )


def read_covered(schema: Schema, condition: str) -> Covered:
    """Read any condition.

    >>> coin = "{kind: numeric, lower: 0, upper: 1}"
    >>> schema = Schema.loads(f"attributes: {{a: {coin}, b: {coin}}}")
    >>> [{name: one.tolist() for name, one in box.items()} for box in read_covered(schema, "a = 1 or b = 1").inside]
    [{'a': [0.0, 1.0]}, {'a': [1.0, 0.0], 'b': [0.0, 1.0]}]
    """
    if len(condition) > LONGEST:
        raise QueryError(f"a condition must be at most {LONGEST:,} characters long", "Ask several shorter ones.")
    reader = _Reader(schema, condition)
    if reader.at_end:
        return Covered(({},))
    said = reader.condition()
    reader.refuse_rest()
    box = said.box()
    if box is not None:
        return Covered(({name: part.weights() for name, part in box.items()},))
    return _union(said, variables_of(schema))


class Part(Protocol):
    """A part of an attribute's domain."""

    def both(self, other: Self) -> Self:
        """What is in both parts."""

    def outside(self) -> Self:
        """What certainly is not in this part: no missing values."""

    def rest(self) -> Self:
        """Everything else, missing values included."""

    def joined(self, others: Iterable[Self]) -> Self:
        """What is in this part or in another."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in this part."""

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

    rest = outside

    def joined(self, others: Iterable[Leaves]) -> Leaves:
        """The leaves in any."""
        return Leaves(np.logical_or.reduce([self.inside, *(other.inside for other in others)]))

    @property
    def is_empty(self) -> bool:
        """Whether there is no leaf."""
        return not self.inside.any()

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

    def rest(self) -> Intervals:
        """The other numbers, and the missing values if they are not here."""
        return Intervals(self.column, self.outside().intervals, self.column.missing is not None and not self.missing)

    def joined(self, others: Iterable[Intervals]) -> Intervals:
        """What is in any."""
        several = [self, *others]
        pieces = [piece for one in several for piece in one.intervals]
        return Intervals.union(self.column, pieces, any(one.missing for one in several))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is here."""
        return not self.intervals and not self.missing

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


@dataclass(frozen=True, eq=False)
class Comparison:
    """What one comparison selects, and what it certainly does not; of other values it says neither."""

    name: str
    true: Any
    false: Any

    def negated(self) -> Comparison:
        """Its opposite."""
        return Comparison(self.name, self.false, self.true)

    def box(self) -> dict[str, Any] | None:
        """The parts by attribute, if it is a box."""
        return {self.name: self.true}

    def comparisons(self) -> Iterator[Comparison]:
        """All comparisons inside."""
        yield self

    def holds(self, atoms: _Atoms) -> Booleans:
        """Tell in which cells of atoms it is true."""
        return atoms.inside(self)


@dataclass(frozen=True, eq=False)
class Joined:
    """Several conditions of which all must be true, or one."""

    parts: Sequence[Comparison | Joined]
    every: bool

    def negated(self) -> Joined:
        """Its opposite, in which only comparisons are negated."""
        return Joined([part.negated() for part in self.parts], not self.every)

    def box(self) -> dict[str, Any] | None:
        """The parts by attribute, if that is a box: all comparisons must hold, or they are all of one attribute."""
        boxes = [part.box() for part in self.parts]
        known = [box for box in boxes if box is not None]
        if len(known) < len(boxes):
            return None
        if self.every:
            return _intersection(known)
        (name, *others) = {name for box in known for name in box}
        if others or any(not box for box in known):
            return None
        first, *more = (box[name] for box in known)
        return {name: first.joined(more)}

    def comparisons(self) -> Iterator[Comparison]:
        """All comparisons inside."""
        for part in self.parts:
            yield from part.comparisons()

    def holds(self, atoms: _Atoms) -> Booleans:
        """Tell in which cells of atoms it is true."""
        reduce = np.logical_and.reduce if self.every else np.logical_or.reduce
        return np.asarray(reduce(np.broadcast_arrays(*(part.holds(atoms) for part in self.parts))))


def _intersection(boxes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for box in boxes:
        for name, part in box.items():
            parts[name] = parts[name].both(part) if name in parts else part
    return parts


@dataclass(frozen=True, eq=False)
class _Atoms:
    """By attribute, disjoint parts that cover it and that no comparison divides: the axes of a small table of cells."""

    parts: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, comparisons: Sequence[Comparison], order: Iterable[str]) -> _Atoms:
        """Divide the attributes that are compared, in a given order, as far as the comparisons do."""
        named = {one.name for one in comparisons}
        return cls(
            {name: _divided([one for one in comparisons if one.name == name]) for name in order if name in named}
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many parts each attribute has."""
        return tuple(map(len, self.parts.values()))

    def inside(self, one: Comparison) -> Booleans:
        """Tell for each part of its attribute whether a comparison is true there, along that axis."""
        at = list(self.parts).index(one.name)
        true = [not part.both(one.true).is_empty for part in self.parts[one.name]]
        return np.array(true).reshape([-1 if axis == at else 1 for axis in range(len(self.parts))])

    def weights(self, box: Box) -> dict[str, Floats]:
        """Turn a box of parts into weights of leaves."""
        found = {}
        for (name, parts), chosen in zip(self.parts.items(), box, strict=True):
            first, *others = (part for part, taken in zip(parts, chosen.tolist(), strict=True) if taken)
            if not chosen.all():
                found[name] = first.joined(others).weights()
        return found


def _divided(comparisons: Sequence[Comparison]) -> list[Any]:
    """Divide an attribute by all that comparisons of it say."""
    first = comparisons[0].true
    parts = [part for part in (first, first.rest()) if not part.is_empty]
    for border in (side for one in comparisons for side in (one.true, one.false)):
        both = [half for part in parts for half in (part.both(border), part.both(border.rest()))]
        parts = [half for half in both if not half.is_empty]
        if len(parts) > MOST_CELLS:
            raise QueryError("a condition must be simpler to be answered", SIMPLER)
    return parts


def _union(said: Comparison | Joined, order: Iterable[str]) -> Covered:
    """Write what is covered, and what is not, as disjoint boxes."""
    atoms = _Atoms.of(list(said.comparisons()), order)
    if math.prod(atoms.shape) > MOST_CELLS:
        raise QueryError("a condition must be simpler to be answered", SIMPLER)
    held = np.broadcast_to(said.holds(atoms), atoms.shape)
    inside, outside = disjoint_boxes(held), disjoint_boxes(~held)
    if inside is None:
        raise QueryError("a condition must be simpler to be answered", SIMPLER)
    if not inside:
        nobody = {one.name: one.true.both(one.true.rest()) for one in said.comparisons()}
        return Covered(({name: part.weights() for name, part in nobody.items()},))
    return Covered(tuple(map(atoms.weights, inside)), tuple(map(atoms.weights, outside or ())))


SIGNS = ("=", "!=", "<>", "<", "<=", ">", ">=", "in", "between")
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

    def condition(self, depth: int = 0) -> Comparison | Joined:
        """Read what is joined by `or`: `and` binds closer, and `not` closest."""
        return self._joined("or", lambda: self._joined("and", lambda: self._negatable(depth)))

    def _joined(self, word: str, read: Callable[[], Comparison | Joined]) -> Comparison | Joined:
        parts = [read()]
        while not self.at_end and self._tokens[self._next].says(word):
            self._next += 1
            self.refuse_end("another comparison")
            parts.append(read())
        return parts[0] if len(parts) == 1 else Joined(parts, word == "and")

    def _negatable(self, depth: int) -> Comparison | Joined:
        """Read a comparison, or what stands in brackets, or the opposite of either."""
        if depth > DEEPEST:
            raise QueryError("a condition must not be nested so deeply", SIMPLER)
        if self._passes("not"):
            return self._negatable(depth + 1).negated()
        if self._passes("("):
            inner = self.condition(depth + 1)
            self.expect(")")
            return inner
        return self._clause()

    def _passes(self, word: str) -> bool:
        """Whether a word comes next; if so, go on behind it."""
        found = not self.at_end and self._tokens[self._next].says(word)
        self._next += found
        return found

    def refuse_rest(self) -> None:
        """Refuse what stands behind the condition."""
        if not self.at_end:
            raise self._mistake(self._tokens[self._next].at, "and or or")

    def _clause(self) -> Comparison:
        token = self._take("an attribute")
        if token.is_mark:
            raise self._mistake(token.at, "an attribute")
        name = token.text
        column = self._schema.attributes.get(name)
        if column is None or isinstance(column, Identifier):
            known = [one for one, facts in self._schema.attributes.items() if not isinstance(facts, Identifier)]
            why = "was dropped as an identifier" if column else "is not in this release"
            raise QueryError(f"attribute {name[:40]} {why}", f"It has {', '.join(known[:20])}.")
        if self._passes("is"):
            opposite = self._passes("not")
            self.expect("missing")
            part = _missing(column)
            found = Comparison(name, part, part.rest())
        else:
            opposite = self._passes("not")
            part = self._comparison(name, column, ("in", "between") if opposite else SIGNS)
            found = Comparison(name, part, part.outside())
        return found.negated() if opposite else found

    def _comparison(self, name: str, column: Categorical | Numeric, signs: Sequence[str]) -> Leaves | Intervals:
        sign = self._take("a comparison such as =, <, between or in")
        if not sign.says(*signs):
            raise self._mistake(sign.at, "a comparison such as =, <, between or in")
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
        low = _number(name, column, self._value())
        return _between(column, low=low, low_included=sign.text == ">=")

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


def _missing(column: Categorical | Numeric) -> Leaves | Intervals:
    """What stands for missing values: nothing, if the attribute has none."""
    if isinstance(column, Numeric):
        return Intervals(column, (), column.missing is not None)
    inside = np.array([leaf == column.missing for leaf in column.tree.leaves], np.bool_)
    return Leaves(inside)


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
