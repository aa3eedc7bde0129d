"""What a cell says: a number, a day, nothing, or nothing that can be used.

Both encoding and drafting must read values in the same way, so the reading is here. It works on the distinct values of
a batch wherever they repeat, but what a value says never depends on the values beside it: however a table was typed,
equal numbers and equal days read alike.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.bounds import EPOCH
from sfumato.io.wording import (
    LONGEST_NUMBER,
    NESTED_TEXT,
    REAL,
    Array,
    canonical,
    doubles,
    is_text,
    texts,
)

FINE, MISSING, NO_NUMBER, NO_DATE, NOT_FINITE, NOT_NAMED, NESTED = range(7)
REASONS = {
    MISSING: "missing value",
    NO_NUMBER: "not a number",
    NO_DATE: "not a date",
    NOT_FINITE: "not finite",
    NOT_NAMED: "value not in the taxonomy",
    NESTED: "not a single value",
}
LARGEST_REAL = float(np.finfo(np.float64).max)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?|[0-5][0-9]([0-5][0-9]([.,][0-9]+)?)?)?"
MOMENT = f"{DAY}([T ]{_CLOCK}(Z|[+-]{_CLOCK})?)?"
"""ISO dates, with or without a time and a zone after them, in words that all engines and versions of Python know."""
SIMPLE = rf"^-?[0-9]{{1,{LONGEST_NUMBER}}}(\.[0-9]{{1,{LONGEST_NUMBER}}})?$"
"""Numbers that Arrow and Python read alike: both round correctly, and none is too large."""
SECONDS_A_DAY = 86_400
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_MOMENT = re.compile(MOMENT)

Status = NDArray[np.uint8]


@dataclass(frozen=True)
class Readings:
    """Numbers, or days since 1970, with a status each; where that is not FINE the number means nothing."""

    values: NDArray[Any]
    status: Status


@dataclass(frozen=True)
class Absent:
    """The texts that mean "no value", and so do the numbers and days that they write."""

    texts: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Absent:
        """Take them without the blanks around them."""
        return cls(frozenset(text.strip() for text in texts))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Those that are numbers."""
        read = (_one_number(text) for text in self.texts)
        return np.array(sorted({number for number, status in read if status in (FINE, NOT_FINITE)}), np.float64)

    @cached_property
    def days(self) -> NDArray[np.int64]:
        """Those that are days."""
        return np.array(sorted({day for day, status in map(_one_day, self.texts) if status == FINE}), np.int64)

    def __contains__(self, text: str) -> bool:
        """Tell whether a text, or the number it writes, means "no value"."""
        return text in self.texts or bool(self.numbers.size and canonical(text) in self._canonical)

    @cached_property
    def _canonical(self) -> frozenset[str]:
        return frozenset(canonical(text) for text in self.texts if REAL.fullmatch(text))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether cells of this type are numbers that the machine reckons with."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_day(kind: pa.DataType) -> bool:
    """Tell whether cells of this type are days or points in time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def numbers(values: Array, absent: Absent) -> Readings:
    """Read every value as a number, to the nearest that has 64 bits; some mean that there is none."""
    if not is_number(values.type):
        plain = is_text(values.type)
        return _numbers_of_texts(values if plain else pa.array(texts(values), pa.large_string()), absent)
    status = _null_status(values)
    if pa.types.is_uint64(values.type):
        read = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    elif pa.types.is_integer(values.type):
        read = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    else:
        read = doubles(values).fill_null(0.0).to_numpy(zero_copy_only=False)
    return _sort_out(read, status, absent)


def _numbers_of_texts(values: Array, absent: Absent) -> Readings:
    """Read texts as numbers: at once what Arrow reads as Python does, each of the others by itself."""
    trimmed = pc.ascii_trim(values, " ")
    simple = pc.match_substring_regex(trimmed, SIMPLE).fill_null(False)
    at_once = simple.to_numpy(zero_copy_only=False)
    read, status = np.zeros(len(values), np.float64), np.zeros(len(values), np.uint8)
    read[at_once] = trimmed.filter(simple).cast(pa.float64()).to_numpy(zero_copy_only=False)
    others = np.flatnonzero(~at_once)
    for place, text in zip(others.tolist(), texts(values.take(pa.array(others))), strict=True):
        read[place], status[place] = (0, MISSING) if text is None or text in absent.texts else _one_number(text)
    return _sort_out(read, status, absent)


def _one_number(text: str) -> tuple[float, int]:
    """Read one number; one too large for the machine becomes the largest of its sign."""
    if REAL.fullmatch(text):
        return min(max(float(text), -LARGEST_REAL), LARGEST_REAL), FINE
    if INFINITE.fullmatch(text):
        return float(text), NOT_FINITE
    if text == NESTED_TEXT:
        return 0, NESTED
    return 0, MISSING if text.lower() == "nan" else NO_NUMBER


def _sort_out(read: NDArray[Any], status: Status, absent: Absent) -> Readings:
    """Mark what is not a finite number, or means that there is none."""
    if read.dtype.kind == "f" and not np.isfinite(read).all():
        status[np.isinf(read)] = NOT_FINITE
        status[np.isnan(read)] = MISSING
    if absent.numbers.size:
        status[np.isin(read.astype(np.float64), absent.numbers) & np.isin(status, (FINE, NOT_FINITE))] = MISSING
    if status.any():
        read = np.where(status == FINE, read, read.dtype.type(0))
    return Readings(read, status)


def days(values: Array, absent: Absent) -> Readings:
    """Read every value as a day where it was written, counted from 1970; some mean that there is none."""
    if is_day(values.type):
        status = _null_status(values)
        read = _days_of_moments(values)
    else:
        pairs = np.array([_one_day(text, absent.texts) for text in texts(values)], np.int64).reshape(-1, 2)
        read, status = pairs[:, 0], pairs[:, 1].astype(np.uint8)
    if absent.days.size:
        status[np.isin(read, absent.days) & (status == FINE)] = MISSING
    return Readings(read, status)


def _days_of_moments(values: Array) -> NDArray[np.int64]:
    kind = values.type
    if pa.types.is_date32(kind):
        return np.asarray(values.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    a_day = SECONDS_A_DAY * UNITS["ms" if pa.types.is_date64(kind) else kind.unit]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    return np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // a_day, np.int64)


def _one_day(text: str | None, absent: Collection[str] = ()) -> tuple[int, int]:
    """Read the day of an ISO date, with or without a time after it."""
    if text is None or text in absent:
        return 0, MISSING
    if text == NESTED_TEXT:
        return 0, NESTED
    if not _MOMENT.fullmatch(text):
        return 0, NO_DATE
    try:
        return (datetime.date.fromisoformat(text[: len("2000-12-31")]) - EPOCH).days, FINE
    except ValueError:
        return 0, NO_DATE


def _null_status(values: Array) -> Status:
    return np.where(values.is_null().to_numpy(zero_copy_only=False), MISSING, FINE).astype(np.uint8)
