"""What is seen of a column while a schema is drafted: enough to guess what it is, and little of any one person.

Memory is bounded for each column, however many rows there are. Texts are counted exactly, up to a number of different
ones; of numbers and days the outermost few are kept, and how many rows there are of each order of magnitude. All
counts that are told are exact or too small, never too large: so "at least twenty rows have it" is always true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema.formats import CLOCK, COMMA, DAYS, POINT, rewriting
from sfumato.schema.recognize import ABSENT_WORDS
from sfumato.schema.schema import Schema
from sfumato.tables import values as reading

FEWEST = 20
"""No value that fewer rows have is written down, and no bound is beyond the value of the row that is so far from the
end."""
MOST_DIFFERENT = 10_000
"""So many different texts of a column are counted."""
TRIED = 25
"""So many values are tried before all are read in a form."""
ABSENT_BY_DEFAULT: list[str] = Schema.model_fields["missing_values"].get_default(call_default_factory=True)
ABSENT = reading.Absent.of(ABSENT_BY_DEFAULT)
"""The texts that mean "no value" unless a schema says otherwise."""
ABSENT_WIDELY = reading.Absent.of(ABSENT_WORDS)
"""The texts that mean it in columns of numbers and days."""
PLAIN_NUMBER, PLAIN_DAY = "number", "day"
"""Numbers and days in the plain way."""
_WHOLE = "^-?[0-9]{1,18}$"


@dataclass
class Tail:
    """The outermost values of a column at one end, each with its rows, until they are those of `FEWEST` rows.

    Derivation. A value is dropped when those before it have `FEWEST` rows or more. They only become more, so it can
    never come back: what is kept has its exact number of rows, and what is dropped lies inside of all that is kept.
    """

    sign: int
    """1 for the smallest values, -1 for the largest"""
    rows: dict[float, int] = field(default_factory=dict)

    def add(self, values: NDArray[Any], used: NDArray[np.intp]) -> None:
        """Add different values, and how many rows have each."""
        if len(values) > FEWEST:
            nearest = np.argpartition(self.sign * values, FEWEST)[: FEWEST + 1]
            values, used = values[nearest], used[nearest]
        for value, times in zip(values.tolist(), used.tolist(), strict=True):
            self.rows[value] = self.rows.get(value, 0) + times
        kept, total = {}, 0
        for value in sorted(self.rows, key=lambda one: self.sign * one):
            kept[value] = self.rows[value]
            total += kept[value]
            if total >= FEWEST:
                break
        self.rows = kept

    @property
    def bound(self) -> float | None:
        """The value that `FEWEST` rows have or lie beyond; None if there are fewer rows."""
        return next(reversed(self.rows)) if sum(self.rows.values()) >= FEWEST else None

    def is_rare(self, value: float) -> bool:
        """Whether a value at this end, or beyond, is that of some rows, and of few."""
        return 0 < self.rows.get(value, 0) < FEWEST


@dataclass
class Reading:
    """A column read as numbers or as days in one form, as long as all its values are written so."""

    form: str
    holds: bool = True
    rewritten: bool = False
    """whether some value was not written in the plain way"""
    whole: bool = True
    low: Tail = field(default_factory=lambda: Tail(1))
    high: Tail = field(default_factory=lambda: Tail(-1))
    given: int = 0
    """how many rows have a value"""
    zeros: int = 0
    magnitudes: Counter[float] = field(default_factory=Counter)
    """rows by their number, cut to one digit"""

    @property
    def is_day(self) -> bool:
        """Whether the values are read as days."""
        return self.form not in (PLAIN_NUMBER, COMMA, CLOCK)

    def look(self, values: reading.Array, used: NDArray[np.intp]) -> None:
        """Add the different values of a batch, if all are written in this form."""
        if not self.holds:
            return
        if len(values) > 2 * TRIED:
            self.holds = self._read(values.slice(0, TRIED)) is not None
        read = self._read(values) if self.holds else None
        self.holds = read is not None
        if read is None:
            return
        fine = read.status == reading.FINE
        self._add(read.values[fine], used[fine])

    def _read(self, values: reading.Array) -> reading.Readings | None:
        """The values as numbers, or None if one is none."""
        if self.is_day:
            direct, plain, wrong = reading.is_day(values.type), reading.days, reading.NO_DATE
        else:
            direct, plain, wrong = reading.is_number(values.type), reading.numbers, reading.NO_NUMBER
        if direct:
            return plain(values, ABSENT_WIDELY) if self.form in (PLAIN_NUMBER, PLAIN_DAY) else None
        if reading.is_number(values.type) or reading.is_day(values.type):
            return None
        texts = values if reading.is_text(values.type) else pa.array(reading.texts(values), pa.large_string())
        if self.form != PLAIN_DAY:
            texts = self._in_plain_words(texts)
        found = None if texts is None else plain(texts, ABSENT_WIDELY)
        if found is None or bool(np.isin(found.status, (wrong, reading.NESTED)).any()):
            return None
        return found

    def _in_plain_words(self, texts: reading.Array) -> reading.Array | None:
        """The texts in the plain way; None if one is written otherwise. Whole numbers are plain in every form."""
        if self.form in (PLAIN_NUMBER, COMMA):
            known = reading.SIMPLE if self.form == PLAIN_NUMBER else _WHOLE
            plain = pc.match_substring_regex(texts, known).fill_null(True).to_numpy(zero_copy_only=False)
            others = np.flatnonzero(~plain)
        else:
            others = np.arange(len(texts))
        rule = rewriting(POINT if self.form == PLAIN_NUMBER else self.form)
        found = texts.to_pylist() if len(others) else []
        for place in others.tolist():
            text = None if found[place] is None else found[place].strip()
            if text is None or text in ABSENT_WIDELY.texts:
                continue
            written = rule(text)
            if written is None and not (self.form == PLAIN_NUMBER and reading.is_real(text)):
                return None
            self.rewritten |= written not in (None, text)
            found[place] = written or text
        return pa.array(found, pa.large_string()) if len(others) else texts

    def _add(self, numbers: NDArray[Any], used: NDArray[np.intp]) -> None:
        if not len(numbers):
            return
        self.given += int(used.sum())
        self.zeros += int(used[numbers == 0].sum())
        self.whole = self.whole and (numbers.dtype.kind == "i" or bool((numbers == np.floor(numbers)).all()))
        self.low.add(numbers, used)
        self.high.add(numbers, used)
        if not self.is_day:
            cut, places = np.unique(one_digit(numbers.astype(np.float64)), return_inverse=True)
            rows = np.bincount(places, weights=used)
            self.magnitudes.update(dict(zip(cut.tolist(), rows.astype(np.int64).tolist(), strict=True)))

    @property
    def median(self) -> float:
        """The number, cut to one digit, of the row in the middle of those that are not 0."""
        rows = {number: times for number, times in self.magnitudes.items() if number}
        passed = 0
        for number in sorted(rows):
            passed += rows[number]
            if 2 * passed >= sum(rows.values()):
                return number
        return 0.0


def one_digit(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers cut to one significant digit.

    >>> one_digit(np.array([0, 7, 19.5, -250, 0.03])).tolist()
    [0.0, 7.0, 10.0, -200.0, 0.03]
    """
    size = np.abs(numbers)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = 10.0 ** np.floor(np.log10(np.where(size > 0, size, 1.0)) + 1e-12)
        cut = np.round(np.floor(size / power + 1e-9) * power, 12)
    return np.asarray(np.sign(numbers) * np.where(np.isfinite(cut), cut, size))


@dataclass
class Seen:
    """What is known of one column, batch by batch."""

    counts: Counter[str] = field(default_factory=Counter)
    """how many rows have each text, of the first that were met"""
    many: bool = False
    """whether there are more different texts"""
    missing: int = 0
    """how many rows have no value"""
    given: int = 0
    nested: bool = False
    """whether some value is a list or a record"""
    typed: bool = False
    """whether values come as numbers or days, not as texts"""
    readings: list[Reading] = field(
        default_factory=lambda: [Reading(form) for form in (PLAIN_NUMBER, COMMA, CLOCK, PLAIN_DAY, *DAYS)]
    )

    def look(self, array: reading.Array) -> None:
        """Add the values of one batch."""
        if self.nested or reading.is_nested(array.type):
            self.nested = True
            return
        values, places = reading.distinct(array)
        used = np.bincount(places, minlength=len(values))
        values, used = values.filter(pa.array(used > 0)), used[used > 0]
        texts = reading.texts(values)
        if reading.NESTED_TEXT in texts:
            self.nested = True
            return
        self.typed = reading.is_number(values.type) or reading.is_day(values.type)
        self._count(texts, used)
        for one in self.readings:
            one.look(values, used)

    def _count(self, texts: Sequence[str | None], used: NDArray[np.intp]) -> None:
        room = MOST_DIFFERENT - len(self.counts)
        for text, times in zip(texts, used.tolist(), strict=True):
            if text is None or text in ABSENT:
                self.missing += times
                continue
            self.given += times
            if text in self.counts:
                self.counts[text] += times
            elif room > 0:
                self.counts[text] = times
                room -= 1
            else:
                self.many = True

    def as_read(self, forms: Sequence[str]) -> Reading | None:
        """The first reading of these forms that holds for all values, if two rows differ in it."""
        for one in self.readings:
            if one.form in forms and one.holds and one.given and len({*one.low.rows, *one.high.rows}) > 1:
                return one
        return None

    @cached_property
    def frequent(self) -> list[str]:
        """The texts that `FEWEST` rows have, or more."""
        return [text for text, times in self.counts.items() if times >= FEWEST]

    @property
    def covered(self) -> float:
        """The share of rows with a value whose value is frequent."""
        return sum(self.counts[text] for text in self.frequent) / max(self.given, 1)

    @property
    def repetition(self) -> float:
        """How many rows have the same text, on average of those that were counted."""
        return sum(self.counts.values()) / max(len(self.counts), 1)

    def share(self, holds: Any) -> float:
        """The share of counted rows whose text has a property."""
        fitting = sum(times for text, times in self.counts.items() if holds(text))
        return fitting / max(sum(self.counts.values()), 1)
