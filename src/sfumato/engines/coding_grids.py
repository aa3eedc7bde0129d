"""The coding of numbers and days: the comparisons and the arithmetic of `CellFinder`, in the same order."""

from __future__ import annotations

import numpy as np

from sfumato.attributes import Numeric
from sfumato.engines.codes import NUMBER, Coding, Kind, Slots, stripped
from sfumato.engines.dialect import Dialect
from sfumato.io import values as reading
from sfumato.io import wording
from sfumato.io.encode import TOLERANCE, CellFinder

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
