"""What a cell says: a text, a number, a day, nothing, or nothing that can be used.

Both encoding and drafting must read values in the same way, so the reading is here; it works on the distinct values
of a batch wherever they repeat.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.attributes import EPOCH

FINE, MISSING, NO_NUMBER, NO_DATE, NOT_FINITE, NOT_NAMED, NESTED = range(7)
REASONS = {
    MISSING: "missing value",
    NO_NUMBER: "not a number",
    NO_DATE: "not a date",
    NOT_FINITE: "not finite",
    NOT_NAMED: "value not in the taxonomy",
    NESTED: "not a single value",
}
TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
LARGEST_WHOLE = 2**63 - 1
LARGEST_REAL = float(np.finfo(np.float64).max)
WHOLE = re.compile(r"[+-]?[0-9]+")
REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([T ].+)?")

Array: TypeAlias = "pa.Array[Any]"
Status = NDArray[np.uint8]


@dataclass(frozen=True)
class Readings:
    """Numbers, or days since 1970, with a status each; where that is not FINE the number means nothing."""

    values: NDArray[Any]
    status: Status


def distinct(array: Array) -> tuple[Array, NDArray[np.intp]]:
    """Split a column into its distinct values, null last, and the place of each row's value among them."""
    encoded: Any = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(_hashable(array))
    if len(encoded.dictionary) > len(encoded):
        encoded = pc.dictionary_encode(encoded.cast(encoded.dictionary.type))
    values, places = encoded.dictionary, encoded.indices
    if places.null_count:
        places = places.cast(pa.int64()).fill_null(len(values))
    with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return with_null, places.to_numpy(zero_copy_only=False).astype(np.intp, copy=False)


def is_nested(kind: pa.DataType) -> bool:
    """Tell whether cells of this type hold more than one value."""
    return bool(pa.types.is_nested(kind)) and not pa.types.is_dictionary(kind)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether cells of this type are texts or bytes."""
    return str(kind) in TEXT_TYPES or bool(pa.types.is_fixed_size_binary(kind))


def texts(values: Array) -> list[str | None]:
    """Write each value as a taxonomy would name it; None where there is none."""
    if is_text(values.type):
        return [None if text is None else text.strip() for text in _decoded(values).to_pylist()]
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    if pa.types.is_float32(values.type) or pa.types.is_float16(values.type):
        return [None if number is None else _text(float(str(number))) for number in _small_floats(values)]
    return [_text(value) for value in values.to_pylist()]


def _small_floats(values: Array) -> list[Any]:
    numbers = values.to_numpy(zero_copy_only=False)
    return [None if null else number for null, number in zip(values.is_null().to_pylist(), numbers, strict=True)]


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else format(value.normalize(), "f")
    if isinstance(value, datetime.datetime):
        return (value.date() if value.time() == datetime.time() else value).isoformat()
    return str(value.isoformat() if isinstance(value, datetime.date | datetime.time) else value)


def _hashable(array: Array) -> Array:
    """Leave the types that Arrow cannot yet take apart."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(array.type))
    return array if plain is None else array.cast(plain)


def _decoded(values: Array) -> Array:
    """Read bytes as UTF-8 text, with a mark in place of what is none."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values
    cells = (value.encode() if isinstance(value, str) else value for value in values.to_pylist())
    return pa.array([None if cell is None else cell.decode("utf-8", "replace") for cell in cells], pa.large_string())


def numbers(values: Array, absent: Collection[str]) -> Readings:
    """Read every value as a number; texts in `absent` mean that there is none."""
    kind = values.type
    if is_text(kind):
        return _read_texts(values, absent, _numbers_at_once, _one_number)
    status = _null_status(values)
    if pa.types.is_integer(kind):
        if pa.types.is_uint64(kind):
            values = pc.min_element_wise(values, pa.scalar(LARGEST_WHOLE, pa.uint64()))
        return Readings(values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), status)
    if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return _none_fit(status, NO_NUMBER)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    reals = np.where(status == FINE, values.to_numpy(zero_copy_only=False), values.type.to_pandas_dtype()(0))
    return _sort_out(reals, status)


def days(values: Array, absent: Collection[str]) -> Readings:
    """Read every value as a day, counted from 1970; texts in `absent` mean that there is none."""
    kind = values.type
    if is_text(kind):
        return _read_texts(values, absent, _days_at_once, _one_day)
    status = _null_status(values)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return _none_fit(status, NO_DATE)
    whole = values.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0)
    return Readings(whole.to_numpy(zero_copy_only=False).astype(np.int64), status)


def _null_status(values: Array) -> Status:
    return np.where(values.is_null().to_numpy(zero_copy_only=False), MISSING, FINE).astype(np.uint8)


def _none_fit(status: Status, reason: int) -> Readings:
    return Readings(np.zeros(len(status), np.int64), np.where(status == FINE, reason, status).astype(np.uint8))


def _sort_out(reals: NDArray[Any], status: Status) -> Readings:
    """Mark what is not a finite number."""
    status = status.copy()
    status[np.isinf(reals)] = NOT_FINITE
    status[np.isnan(reals)] = MISSING
    return Readings(np.where(status == FINE, reals, reals.dtype.type(0)), status)


def _read_texts(values: Array, absent: Collection[str], at_once: Any, one: Any) -> Readings:
    """Read all texts in one cast or, where one of them resists, each by itself."""
    trimmed = pc.utf8_trim_whitespace(_decoded(values))
    known = pa.array([*absent, None], trimmed.type)
    status = np.where(pc.is_in(trimmed, known).to_numpy(zero_copy_only=False), MISSING, FINE).astype(np.uint8)
    kept = trimmed.filter(pa.array(status == FINE))
    read = at_once(kept)
    if read is None:
        read = _each([str(text) for text in kept.to_pylist()], one)
    values_out = np.zeros(len(status), read.values.dtype)
    values_out[status == FINE] = read.values
    status[status == FINE] = read.status
    return Readings(values_out, status)


def _numbers_at_once(kept: Array) -> Readings | None:
    if pc.any(pc.match_substring_regex(kept, r"[^-0-9.eE]")).as_py():
        return None
    for kind in (pa.int64(), pa.float64()):
        try:
            read = kept.cast(kind).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            continue
        return Readings(read, np.zeros(len(read), np.uint8)) if np.isfinite(read).all() else None
    return None


def _days_at_once(kept: Array) -> Readings | None:
    try:
        read = kept.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
    except pa.ArrowInvalid:
        return None
    return Readings(read, np.zeros(len(read), np.uint8))


def _each(kept: list[str], one: Any) -> Readings:
    pairs = [one(text) for text in kept]
    whole = all(isinstance(value, int) for value, _ in pairs)
    read = np.array([value for value, _ in pairs], np.int64 if whole else np.float64)
    return Readings(read, np.array([status for _, status in pairs], np.uint8))


def _one_number(text: str) -> tuple[int | float, int]:
    """Read one number; one too large for the machine becomes the largest of its sign."""
    if WHOLE.fullmatch(text):
        digits = text.lstrip("+-0")
        size = LARGEST_WHOLE if len(digits) > 19 else min(int(digits or "0"), LARGEST_WHOLE)
        return (-size if text[0] == "-" else size), FINE
    if REAL.fullmatch(text):
        return min(max(float(text), -LARGEST_REAL), LARGEST_REAL), FINE
    if INFINITE.fullmatch(text):
        return 0, NOT_FINITE
    return 0, MISSING if text.lower() == "nan" else NO_NUMBER


def _one_day(text: str) -> tuple[int, int]:
    """Read the day of an ISO date, with or without a time after it."""
    found = DAY.fullmatch(text)
    try:
        if found and found[2]:
            datetime.datetime.fromisoformat(text)
        return ((datetime.date.fromisoformat(found[1]) - EPOCH).days, FINE) if found else (0, NO_DATE)
    except ValueError:
        return 0, NO_DATE
