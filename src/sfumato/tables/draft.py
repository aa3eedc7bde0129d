"""Draft a schema: a first guess from the table's values, for a person to correct and confirm.

It makes public values from private ones, which nothing else may do. So the draft is marked as derived from private data
and refused until a person has confirmed it.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import TableError, guarded, unreadable
from sfumato.schema.attributes import EPOCH, LARGEST, Categorical, Identifier, Numeric
from sfumato.schema.schema import Column, Schema
from sfumato.tables import values as reading
from sfumato.tables.streams import Table

MOST_CATEGORIES = 10_000
"""A column of texts with more different ones is taken for an identifier."""
MOST_SMALL = 12
"""A column with at most this many different numbers or days is taken for categories."""
MOST_CLASSES = 10
"""The last column is taken for the class if it has at most this many categories."""
DRAFTED_CELLS = 200
"""About how many cells a grid has at most."""
FEWEST_ROWS = 20
"""Distinct values alone make a column an identifier only if there are at least this many."""
NEARLY = 0.95
"""Values are nearly distinct if this share of them is."""
ABSENT = reading.Absent.of(Schema.model_fields["missing_values"].get_default(call_default_factory=True))
"""The texts that mean "no value" unless a schema says otherwise."""
LAST_DAY = datetime.date(9999, 12, 30)
"""The last day that a schema may have."""
NAMING = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|ssn|nin|name|surname|email|e-mail|phone|passport|iban)([^a-z]|$)|name$"
)
"""Names of columns that name people."""


def draft_schema(table: Table, name: str, target: str | None = None) -> Schema:
    """A schema guessed from the values; it is unconfirmed and says that it comes from private data."""
    seen = {column: _Seen() for column in table.columns}
    rows = 0
    for batch in table.batches(table.columns):
        rows += batch.num_rows
        for column, array in zip(table.columns, batch.columns, strict=True):
            guarded(partial(seen[column].look, array), unreadable(column))
    if not rows:
        raise TableError(
            "the table must have rows to draft a schema from", "Give it rows, or write the schema by hand."
        )
    attributes = {
        column: guarded(partial(_guess, column, facts, rows), unreadable(column)) for column, facts in seen.items()
    }
    if all(isinstance(facts, Identifier) for facts in attributes.values()):
        raise TableError(
            "the table must have a column that is no identifier", "Give it one, or write the schema by hand if it has."
        )
    schema = Schema(name=name, origin="derived from private data", attributes=attributes)
    target = target if target is not None else _last_class(schema)
    return schema if target is None else schema.with_target(target)


def _last_class(schema: Schema) -> str | None:
    """The last column, if it has few categories."""
    name, facts = list(schema.attributes.items())[-1]
    return name if isinstance(facts, Categorical) and 2 <= facts.leaves <= MOST_CLASSES else None


@dataclass
class _Range:
    """What is known of a column as numbers, or as days, as long as all its values are such."""

    holds: bool = True
    """whether all values so far are such"""
    whole: bool = True
    """whether all values so far are whole"""
    least: Any = None
    most: Any = None
    counts: dict[int, int] = field(default_factory=dict)
    """how often the most frequent whole numbers occur: any that more than half of the rows have is among them"""

    @property
    def spans(self) -> bool:
        """Whether all values are such, and two of them differ."""
        return self.holds and self.least is not None and bool(self.least < self.most)

    @property
    def spans_a_grid(self) -> bool:
        """Whether all values are such, and two of them differ within the bounds that a schema may have."""
        return self.spans and bool(self.least < LARGEST - 1 and self.most > 1 - LARGEST)

    def look(self, readings: reading.Readings, used: NDArray[np.intp], wrong: int) -> None:
        """Add the distinct values of one batch; `used` is how often each occurs."""
        fine = readings.values[readings.status == reading.FINE]
        self.holds = self.holds and not bool(np.isin(readings.status, (wrong, reading.NESTED)).any())
        if not self.holds or not len(fine):
            return
        self.whole = self.whole and (fine.dtype.kind == "i" or bool((fine == np.floor(fine)).all()))
        least, most = fine.min().item(), fine.max().item()
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)
        if self.whole:
            self._count(fine, used[readings.status == reading.FINE])

    def _count(self, numbers: NDArray[Any], used: NDArray[np.intp]) -> None:
        """Count numbers that make up more than half of some batch: one that makes up half of all rows is among them."""
        frequent = numbers[used * 2 > used.sum()]
        for number in (*self.counts, *(int(number) for number in frequent.tolist())):
            self.counts.setdefault(number, 0)
        for number in self.counts:
            self.counts[number] += int(used[numbers == number].sum())

    def main(self, rows: int) -> int | None:
        """The number that more than half of the rows have, if there is one."""
        return next((number for number, times in self.counts.items() if 2 * times > rows), None)


@dataclass
class _Seen:
    """What is known of one column, batch by batch. Memory is bounded, but for whole numbers while all are distinct."""

    names: set[str] = field(default_factory=set)
    """the different texts, until there are too many"""
    missing: int = 0
    """how many rows have no value"""
    nested: bool = False
    """whether some value is a list or a record"""
    numbers: _Range = field(default_factory=_Range)
    days: _Range = field(default_factory=_Range)
    wholes: Integers | None = field(default_factory=lambda: np.zeros(0, np.int64))
    """hashes of the whole numbers, while no two are equal"""

    @property
    def many(self) -> bool:
        """Whether there are more names than a taxonomy should have."""
        return len(self.names) > MOST_CATEGORIES

    def look(self, array: reading.Array) -> None:
        """Add the values of one batch."""
        if reading.is_nested(array.type):
            self.nested = True
            return
        values, places = reading.distinct(array)
        used = np.bincount(places, minlength=len(values))
        values, used = values.filter(pa.array(used > 0)), used[used > 0]
        texts = [None if text is None or text in ABSENT else text for text in reading.texts(values)]
        if reading.NESTED_TEXT in texts:
            self.nested = True
            return
        self._look_at_names(texts, used)
        if self.numbers.holds:
            read = reading.numbers(values, ABSENT)
            self.numbers.look(read, used, reading.NO_NUMBER)
            self._look_for_repeats(texts, used)
        if self.days.holds:
            self.days.look(reading.days(values, ABSENT), used, reading.NO_DATE)

    def _look_at_names(self, texts: list[str | None], used: NDArray[np.intp]) -> None:
        self.missing += int(used[[text is None for text in texts]].sum())
        if not self.many:
            self.names.update(text for text in texts if text is not None)

    def _look_for_repeats(self, texts: list[str | None], used: NDArray[np.intp]) -> None:
        """Note when a number repeats. Numbers are compared by all their digits, which a float may not hold."""
        if self.wholes is None:
            return
        if not self.numbers.whole or (used[[text is not None for text in texts]] > 1).any():
            self.wholes = None
            return
        fresh = np.array([hash(reading.canonical(text)) for text in texts if text is not None], np.int64)
        both = np.concatenate([self.wholes, fresh])
        self.wholes = both if len(np.unique(both)) == len(both) else None


def _guess(name: str, seen: _Seen, rows: int) -> Column:
    if seen.nested or _names_people(name, seen, rows - seen.missing):
        return Identifier()
    missing = _free("Missing", seen.names) if seen.missing else None
    if len(seen.names) > MOST_SMALL and seen.days.spans:
        return _calendar(seen.days, missing)
    if len(seen.names) > MOST_SMALL and seen.numbers.spans_a_grid:
        return _grid(seen.numbers, rows, missing)
    if seen.many:
        return Identifier()
    leaves = sorted(seen.names, key=_order) + ([missing] if missing else [])
    return Categorical(taxonomy=leaves, root=_free("Any", {*leaves}), missing=missing)


def _names_people(name: str, seen: _Seen, given: int) -> bool:
    """Whether a column is an identifier, by its values, or by its name and its values."""
    if seen.days.holds or given < 2:
        return False
    called_so = NAMING.search(name.lower()) is not None
    if seen.numbers.holds:
        if not seen.numbers.whole:
            return False
        return (seen.wholes is not None and given >= FEWEST_ROWS) or (called_so and _nearly_distinct(seen, given))
    return _nearly_distinct(seen, given) and (called_so or given >= FEWEST_ROWS)


def _nearly_distinct(seen: _Seen, given: int) -> bool:
    return seen.many or len(seen.names) >= NEARLY * given


def _order(text: str) -> tuple[int, Decimal, str]:
    """The key that sorts numbers by size, and before names."""
    return (0, Decimal(text), text) if reading.REAL.fullmatch(text) and len(text) < 30 else (1, Decimal(0), text)


def _free(name: str, taken: set[str]) -> str:
    """A name, with a number after it if it is taken."""
    choices = (name if number == 1 else f"{name} {number}" for number in range(1, len(taken) + 2))
    return next(choice for choice in choices if choice not in taken)


def _calendar(days: _Range, missing: str | None) -> Numeric:
    """A grid of days that spans whole years."""
    ends = (datetime.date.min - EPOCH).days, (LAST_DAY - EPOCH).days
    first, last = (EPOCH + datetime.timedelta(days=min(max(day, ends[0]), ends[1])) for day in (days.least, days.most))
    lower, upper = datetime.date(first.year, 1, 1), min(datetime.date(last.year, 12, 31), LAST_DAY)
    span = (upper - lower).days
    step = next((step for step in (1, 7, 30, 91, 365) if span // step < DRAFTED_CELLS), 3650)
    return Numeric(lower=lower, upper=upper, step=Decimal(step), missing=missing)


def _grid(numbers: _Range, rows: int, missing: str | None) -> Numeric:
    """A grid with bounds rounded outward to two digits of their distance, and about two hundred cells at most."""
    least, most = Decimal(str(numbers.least)), Decimal(str(numbers.most))
    unit = Decimal(1).scaleb((most - least).adjusted() - 1)
    if numbers.whole:
        unit = max(unit, Decimal(1))
    lower = max((least / unit).to_integral_value(ROUND_FLOOR) * unit, Decimal(1 - LARGEST))
    upper = min((most / unit).to_integral_value(ROUND_CEILING) * unit, Decimal(LARGEST - 1))
    whole_and_short = numbers.whole and upper - lower <= DRAFTED_CELLS
    step = Decimal(1) if whole_and_short else _step(upper - lower)
    if numbers.whole:
        step = max(step, Decimal(1))
    main = numbers.main(rows) if numbers.whole and step > 1 else None
    points: list[datetime.date | Decimal] = [Decimal(main)] if main is not None and lower <= main <= upper else []
    return Numeric(lower=lower, upper=upper, step=step, points=points, missing=missing)


def _step(span: Decimal) -> Decimal:
    """A step of 1, 2 or 5 times a power of ten."""
    power = Decimal(1).scaleb(span.adjusted() - 2)
    return next(power * times for times in (1, 2, 5, 10) if span / (power * times) < DRAFTED_CELLS)
