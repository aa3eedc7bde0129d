"""The coding of categories: names are looked up in dictionaries that the one and only finder of leaves has filled.

A name that writes a number is found by that number, however it is written; so numbers have one text each here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attributes import Categorical
from sfumato.engines.codes import NUMBER, Coding, Dictionary, Kind, Slots
from sfumato.engines.dialect import Dialect
from sfumato.io import values as reading
from sfumato.io import wording
from sfumato.io.encode import LeafFinder

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
