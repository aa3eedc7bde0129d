"""Turn values into leaf codes inside an engine: the rules of `tables.encode`, written as SQL from the public schema.

A row's codes must be the same on every engine, to the last bit of a float, or releases would differ and, worse, the
proof that one record moves one row would be about another program. So names are looked up in dictionaries that
`LeafFinder` has filled, numbers meet the comparisons and the arithmetic of `CellFinder` in the same order, and where a
column's type is too odd for SQL there is no coding here, and the engine must do otherwise. A name that writes a number
is found by that number, however it is written; so numbers have one text each here, too.

What comes out is a *slot*: a leaf's code or, from the number of leaves on, the reason why there is none.

`TableCoding` codes a whole table as one query. It refuses what does not fit as the memory engine does: before the first
debit, naming columns and numbers of rows, to the holder, and no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.dialect import NUMBER, Coding, Dialect, Dictionary, Kind, Slots, stripped
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import Predictor, Schema
from sfumato.tables import values as reading
from sfumato.tables import values as wording
from sfumato.tables.encode import TOLERANCE, CellFinder, Coded, LeafFinder, Misfit, absent_of, refuse_misfits
from sfumato.tables.values import REASONS, UNREADABLE_TEXT

INFINITE = "^[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?$"


class _Grid:
    """The coding of numbers or days into the cells of a grid."""

    def __init__(self, facts: Numeric, absent: reading.Absent, column: str, at: int, words: Dialect) -> None:
        self.facts, self.absent, self.column, self.at, self.words = facts, absent, column, at, words
        self.slots = Slots.of(facts)
        self.finder = CellFinder(facts)
        self.read = f"r{at}"

    def _coding(self, slot: str, **readings: str) -> Coding:
        return Coding(self.facts.leaves, slot, {f"{name}{self.at}": told for name, told in readings.items()})

    def _absent_text(self, text: str) -> str:
        return f"{text} IN ({', '.join(self.words.literal(one) for one in sorted(self.absent.texts))})"

    def _cell_of_whole(self, number: str) -> str:
        """Count the edges up to a whole number: those of the regular grid, and those that points add."""
        edges, step = self.finder.edges, int(self.facts.width)
        first, last = int(edges[0]), int(edges[-1]) - 1
        near = f"least(greatest({number}, {first}), {last})"
        extra = edges[1:-1][(edges[1:-1] - first) % step != 0].tolist()
        terms = [self.words.quotient(f"({near} - {first})", step)]
        terms += [f"CASE WHEN {number} >= {edge} THEN 1 ELSE 0 END" for edge in extra]
        return f"({' + '.join(terms)})"

    def _cell_of_real(self, number: str) -> str:
        """Do what `CellFinder` does, operation by operation: they are the same ones of IEEE 754.

        Of whole numbers the cell is found after the bounds, for some engines round to integers, which may be too small
        for a double; the last half is exact, since bounds are far below 2^52.
        """
        if self.facts.is_whole:
            first, last = int(self.finder.edges[0]), int(self.finder.edges[-1]) - 1
            near = f"floor(least(greatest({number}, {_double(first)}), {_double(last + 0.5)}))"
            return self._cell_of_whole(f"TRY_CAST({near} AS BIGINT)")
        lower, upper, width = map(_double, (self.finder.lower, self.finder.upper, self.finder.width))
        near = f"least(greatest({number}, {lower}), {upper})"
        cell = f"floor(({near} - {lower}) / {width} + {_double(TOLERANCE)})"
        return f"TRY_CAST(least(greatest({cell}, {_double(0)}), {_double(self.finder.cells - 1)}) AS BIGINT)"


class NumberCoding(_Grid):
    """The coding of numbers."""

    def coding(self, kind: Kind) -> Coding | None:
        words, column = self.words, self.column
        if kind in (Kind.TEXT, Kind.TRUTH):
            return self._of_texts()
        if kind is Kind.WHOLE:
            return self._of_wholes()
        plain = {
            Kind.REAL: f"CAST({column} AS DOUBLE)",
            Kind.SINGLE: words.shortest(column),
            Kind.DECIMAL: f"CAST(CAST({column} AS {words.text_type}) AS DOUBLE)",
        }
        if kind not in plain:
            return None
        endless = f"abs({self.read}) > {_double(reading.LARGEST_REAL)}"
        told = (
            f"CASE WHEN {self.read} IS NULL OR isnan({self.read}){self._or_absent(self.read)} "
            f"THEN {self.slots.missing} WHEN {endless} THEN {self.slots.misfit(reading.NOT_FINITE)} "
            f"ELSE {self._cell_of_real(self.read)} END"
        )
        return self._coding(told, r=plain[kind])

    def _or_absent(self, number: str) -> str:
        """Tell of a number that it means "no value", by its double."""
        numbers = self.absent.numbers.tolist()
        return f" OR CAST({number} AS DOUBLE) IN ({', '.join(map(_double, numbers))})" if numbers else ""

    def _of_wholes(self) -> Coding:
        cell = (
            self._cell_of_whole(self.read)
            if self.facts.is_whole
            else self._cell_of_real(f"CAST({self.read} AS DOUBLE)")
        )
        gone = f"{self.read} IS NULL{self._or_absent(self.read)}"
        told = f"CASE WHEN {gone} THEN {self.slots.missing} ELSE {cell} END"
        return self._coding(told, r=f"CAST({self.column} AS BIGINT)")

    def _of_texts(self) -> Coding:
        text, number, words = self.read, f"v{self.at}", self.words
        plain = stripped(self.column, words)
        largest = _double(reading.LARGEST_REAL)
        value = f"least(greatest(TRY_CAST({plain} AS DOUBLE), -{largest}), {largest})"
        value = f"CASE WHEN {words.matches(plain, NUMBER)} THEN {value} END"
        endless = words.matches(text, INFINITE)
        absent = [one for one in (np.inf, -np.inf) if np.isin(one, self.absent.numbers)]
        gone = [f"({endless} AND {'' if one > 0 else 'NOT '}{text} NOT LIKE '-%')" for one in absent]
        told = (
            f"CASE WHEN {text} IS NULL OR {self._absent_text(text)}{self._or_absent(number)} THEN {self.slots.missing} "
            f"WHEN {number} IS NOT NULL THEN {self._cell_of_real(number)} "
            + "".join(f"WHEN {one} THEN {self.slots.missing} " for one in gone)
            + f"WHEN {endless} THEN {self.slots.misfit(reading.NOT_FINITE)} "
            f"WHEN {text} = {words.literal(wording.NESTED_TEXT)} THEN {self.slots.misfit(reading.NESTED)} "
            f"WHEN lower({text}) = 'nan' THEN {self.slots.missing} ELSE {self.slots.misfit(reading.NO_NUMBER)} END"
        )
        return self._coding(told, r=plain, v=value)


class DayCoding(_Grid):
    """The coding of days."""

    def coding(self, kind: Kind) -> Coding | None:
        if kind in (Kind.TEXT, Kind.TRUTH, Kind.WHOLE):
            return self._of_texts()
        if kind not in (Kind.DAY, Kind.MOMENT):
            return None
        day = self.column if kind is Kind.DAY else f"CAST({self.column} AS DATE)"
        told = (
            f"CASE WHEN {self.read} IS NULL{self._or_absent(self.read)} THEN {self.slots.missing} "
            f"ELSE {self._cell_of_whole(self.read)} END"
        )
        return self._coding(told, r=self.words.days(day))

    def _or_absent(self, day: str) -> str:
        days = self.absent.days.tolist()
        return f" OR {day} IN ({', '.join(map(str, days))})" if days else ""

    def _of_texts(self) -> Coding:
        text, day, words = self.read, f"v{self.at}", self.words
        plain = stripped(self.column, words)
        shaped = words.matches(plain, f"^{reading.MOMENT}$")
        date = f"TRY_CAST(substr({plain}, 1, 10) AS DATE)"
        value = f"CASE WHEN {shaped} AND substr({plain}, 1, 4) <> '0000' THEN {words.days(date)} END"
        told = (
            f"CASE WHEN {text} IS NULL OR {self._absent_text(text)}{self._or_absent(day)} THEN {self.slots.missing} "
            f"WHEN {day} IS NOT NULL THEN {self._cell_of_whole(day)} "
            f"WHEN {text} = {words.literal(wording.NESTED_TEXT)} THEN {self.slots.misfit(reading.NESTED)} "
            f"ELSE {self.slots.misfit(reading.NO_DATE)} END"
        )
        return self._coding(told, r=plain, v=value)


def _double(number: float) -> str:
    """Write a double so that every engine reads it back to the bit."""
    written = repr(float(number)) if np.isfinite(number) else "Infinity" if number > 0 else "-Infinity"
    return f"CAST('{written}' AS DOUBLE)"


UNHEARD = "\ufdd0unheard of"
"""A text that no taxonomy names."""
FARTHEST = 2 * 10**18
"""Exponents beyond are those of no number that can be written, and would not bear to be reckoned with."""


class NameCoding:
    """The coding of categories."""

    def __init__(self, facts: Categorical, absent: reading.Absent, column: str, at: int, words: Dialect) -> None:
        self.facts, self.column, self.at, self.words = facts, column, at, words
        self.slots = Slots.of(facts)
        self.finder = LeafFinder(facts, absent)
        self.texts = list(dict.fromkeys([*self.finder.names, *absent.texts, wording.NESTED_TEXT]))
        self.numbers = list(dict.fromkeys(one for one in map(wording.canonical, self.texts) if wording.is_real(one)))

    def coding(self, kind: Kind) -> Coding | None:
        reads = {
            Kind.TEXT: self._of_texts,
            Kind.TRUTH: self._of_texts,
            Kind.WHOLE: self._of_wholes,
            Kind.REAL: self._of_reals,
            Kind.SINGLE: self._of_singles,
            Kind.DECIMAL: self._of_decimals,
        }
        return reads[kind]() if kind in reads else None

    def _slot_of(self, text: str | None) -> int:
        return self.slots.found(*self.finder.find(text))

    def _coding(self, reading_of: str, null: str, found: Sequence[Dictionary]) -> Coding:
        slots = ", ".join([*(one.slot for one in found), str(self._slot_of(UNHEARD))])
        told = f"CASE WHEN {null} THEN {self._slot_of(None)} ELSE coalesce({slots}) END"
        return Coding(self.facts.leaves, told, {f"r{self.at}": reading_of}, tuple(found))

    def _of_texts(self) -> Coding:
        """Look a text up as it stands; only if that fails, without the blanks around it; then as a number."""
        read, at = f"r{self.at}", self.at
        keys, slots = pa.array(self.texts, pa.string()), self._all(self.texts)
        bare = self.words.stripped(read)
        found = [
            Dictionary(f"d{at}", read, keys, slots),
            Dictionary(f"s{at}", f"CASE WHEN d{at}.slot IS NULL THEN {bare} END", keys, slots),
        ]
        if self.numbers:
            numbers = pa.array([_normal(number) for number in self.numbers], pa.string())
            slots = self._all(_written_otherwise(number, self.texts) for number in self.numbers)
            normal = _normal_sql(bare, self.words)
            unknown = f"d{at}.slot IS NULL AND s{at}.slot IS NULL"
            found.append(Dictionary(f"n{at}", f"CASE WHEN {unknown} THEN {normal} END", numbers, slots))
        return self._coding(f"CAST({self.column} AS {self.words.text_type})", f"{read} IS NULL", found)

    def _of_decimals(self) -> Coding:
        read = f"r{self.at}"
        keys, slots = [_normal(number) for number in self.numbers], self._all(self.numbers)
        normal = _normal_sql(read, self.words)
        found = [Dictionary(f"n{self.at}", normal, pa.array(keys, pa.string()), slots)] if keys else []
        return self._coding(f"CAST({self.column} AS {self.words.text_type})", f"{read} IS NULL", found)

    def _of_wholes(self) -> Coding:
        known = {int(one): one for one in self.numbers if re.fullmatch("-?[0-9]{1,19}", one)}
        keys = [key for key in known if -(2**63) <= key < 2**63]
        return self._typed(keys, [known[key] for key in keys], pa.int64(), "BIGINT", "")

    def _of_reals(self) -> Coding:
        return self._of_floats(pa.float64(), "DOUBLE")

    def _of_singles(self) -> Coding:
        return self._of_floats(pa.float32(), "FLOAT")

    def _of_floats(self, kind: pa.DataType, name: str) -> Coding:
        """Look up the floats whose own text is a known one."""
        asked = [*self.numbers, "inf", "-inf"]
        with np.errstate(over="ignore"):
            floats = pa.array(np.array([float(one) for one in asked]).astype(kind.to_pandas_dtype()), kind)
        known = [place for place, text in enumerate(wording.texts(floats)) if text == asked[place]]
        texts = [asked[place] for place in known]
        return self._typed(floats.take(known).to_pylist(), texts, kind, name, f" OR isnan(r{self.at})")

    def _typed(self, keys: list[Any], texts: list[str], kind: pa.DataType, name: str, gone: str) -> Coding:
        read = f"r{self.at}"
        found = [Dictionary(f"d{self.at}", read, pa.array(keys, kind), self._all(texts))] if keys else []
        plain = f"CAST({self.column} AS {name})" + (f" + CAST(0 AS {name})" if gone else "")
        return self._coding(plain, f"{read} IS NULL{gone}", found)

    def _all(self, texts: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._slot_of(text) for text in texts)


def _normal(number: str) -> str:
    """Write a number as its digits, without zeros around them, and an exponent: one text for each number.

    >>> _normal("-0.50"), _normal("1200"), _normal("0e7")
    ('-5e-1', '12e2', '0')
    """
    sign, digits, exponent = Decimal(number).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    kept = written.rstrip("0")
    return f"{'-' if sign else ''}{kept}e{exponent + len(written) - len(kept)}" if kept else "0"


def _normal_sql(text: str, words: Dialect) -> str:
    """Do the same in SQL; NULL for what is no number."""

    def part(pattern: str, of: str = text) -> str:
        return f"regexp_extract({of}, {words.literal(pattern)}, 1)"

    whole, fraction = part("^[+-]?([0-9]*)"), part("^[+-]?[0-9]*[.]([0-9]*)")
    exponent = f"TRY_CAST(nullif({part('[eE][+]?(-?[0-9]+)$')}, '') AS BIGINT)"
    near = f"CASE WHEN {exponent} BETWEEN -{FARTHEST} AND {FARTHEST} THEN {exponent} END"
    exponent = f"coalesce({near}, {_no_exponent(text, words)})"
    digits = f"trim(LEADING '0' FROM concat({whole}, {fraction}))"
    kept = f"trim(TRAILING '0' FROM {digits})"
    power = f"{exponent} - length({fraction}) + length({digits}) - length({kept})"
    sign = f"CASE WHEN {text} LIKE '-%' THEN '-' ELSE '' END"
    normal = f"concat({sign}, {kept}, 'e', CAST({power} AS {words.text_type}))"
    return f"CASE WHEN NOT {words.matches(text, NUMBER)} THEN NULL WHEN {kept} = '' THEN '0' ELSE {normal} END"


def _no_exponent(text: str, words: Dialect) -> str:
    """Give 0 where no exponent is written; where one is, and is too long to be read, NULL, which nothing equals."""
    return f"CASE WHEN {words.matches(text, '[eE]')} THEN NULL ELSE 0 END"


def _written_otherwise(number: str, known: Sequence[str]) -> str:
    """Write a number in a way that is not among the known texts."""
    sign, rest = ("-", number[1:]) if number.startswith("-") else ("", number)
    while (text := f"{sign}{rest}") in known:
        rest = f"0{rest}"
    return text


def coding_of(facts: Predictor, missing: list[str], kind: Kind, column: str, at: int, words: Dialect) -> Coding | None:
    """Write the coding of a column, whose SQL is given, as the one at some place; None if SQL cannot do it."""
    if kind is Kind.OTHER or (facts.written if isinstance(facts, Numeric) else facts.codes) is not None:
        return None
    absent = absent_of(facts, missing)
    if kind is Kind.NESTED:
        slots = Slots.of(facts)
        told = (
            f"CASE WHEN {column} IS NULL THEN {slots.misfit(reading.MISSING)} ELSE {slots.misfit(reading.NESTED)} END"
        )
        return Coding(facts.leaves, f"r{at}", {f"r{at}": told})
    if kind is Kind.DAY and not (isinstance(facts, Numeric) and facts.is_date):
        kind, column = Kind.TEXT, _written_day(column, words)
    if isinstance(facts, Categorical):
        return NameCoding(facts, absent, column, at, words).coding(kind)
    if facts.is_date:
        return DayCoding(facts, absent, column, at, words).coding(kind)
    return NumberCoding(facts, absent, column, at, words).coding(kind)


def _written_day(day: str, words: Dialect) -> str:
    """Write a day as Python does, which knows four digits of a year; engines know more, and days without end."""
    known = f"{day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    written = f"CAST({day} AS {words.text_type})"
    return f"CASE WHEN {known} THEN {written} WHEN {day} IS NOT NULL THEN {words.literal(UNREADABLE_TEXT)} END"


CLASS = "k"


@dataclass(frozen=True)
class TableCoding:
    """The codings of the columns that are read, by what the coded column is called."""

    codings: Mapping[str, Coding]
    names: Mapping[str, str]
    """the column of the table behind each coded one"""

    @classmethod
    def of(cls, schema: Schema, code: Callable[[str, Predictor, int], Coding]) -> TableCoding:
        """Code the predictors as c0, c1, ... and the class as k, each by a rule for its name, facts and place."""
        columns: dict[str, tuple[str, Predictor]] = {
            f"c{place}": (name, facts) for place, (name, facts) in enumerate(schema.predictors.items())
        }
        if schema.target is not None:
            target = schema.attributes[schema.target]
            assert target.kind == "class"
            columns[CLASS] = (schema.target, target)
        return cls(
            {column: code(name, facts, place) for place, (column, (name, facts)) in enumerate(columns.items())},
            {column: name for column, (name, _) in columns.items()},
        )

    @property
    def dictionaries(self) -> list[Dictionary]:
        """All small tables in which something is looked up."""
        return [one for coding in self.codings.values() for one in coding.dictionaries]

    def query(self, source: str, words: Dialect, tables: Mapping[str, str]) -> str:
        """Code every row of a source; dictionaries have the given names."""
        readings = ", ".join(
            f"{told} AS {alias}" for coding in self.codings.values() for alias, told in coding.readings.items()
        )
        slots = [
            f"CAST({coding.slot} AS {words.code_type(coding.slots)}) AS {column}"
            for column, coding in self.codings.items()
        ]
        if CLASS not in self.codings:
            slots.append(f"CAST(0 AS {words.code_type(1)}) AS {CLASS}")
        joins = "".join(
            f" LEFT JOIN {tables[one.alias]} AS {one.alias} ON {one.alias}.key = {one.wanted}"
            for one in self.dictionaries
        )
        return f"SELECT {', '.join(slots)} FROM (SELECT {readings} FROM {source}) AS readings{joins}"

    def misfits_query(self, rows: str) -> str:
        """Count, for each column and reason, the rows that have no leaf: one scan and one row."""
        asked = [
            f"count(CASE WHEN {column} = {slot} THEN 1 END)"
            for column, coding in self.codings.items()
            for slot in range(coding.leaves, coding.slots)
        ]
        return f"SELECT {', '.join(asked)} FROM {rows}"

    def refuse(self, counted: list[int]) -> None:
        """Refuse a table of which some rows have no leaf, by these counts."""
        places = [
            (self.names[column], coding.reason(slot))
            for column, coding in self.codings.items()
            for slot in range(coding.leaves, coding.slots)
        ]
        found = sorted(zip(places, counted, strict=True))
        misfits = [Misfit(name, REASONS[reason], rows) for (name, reason), rows in found if rows]
        refuse_misfits(Coded({}, 0, tuple(misfits)))
