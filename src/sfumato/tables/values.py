"""Read values as texts, as numbers or as days, whatever their type; the same for encoding and for drafting.

Equal numbers are written alike and so are equal days, so that a taxonomy's name finds its value whatever type a column
has. Values are read batch by batch, and distinct ones only once where they repeat, but how a value is read never
depends on the values beside it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.schema.formats import COMMA, rewriting

NESTED_TEXT = "\ufdd0not a single value"
"""Stands in a column of texts for a list or a record; it begins with a code point that no text should have."""
UNREADABLE_TEXT = "\ufdd0not readable"
"""Stands in a column of texts for a value that cannot be written as one."""
FINE, MISSING, NO_NUMBER, NO_DATE, NOT_FINITE, NOT_NAMED, NESTED, NO_TEXT = range(8)
REASONS = {
    MISSING: "missing value",
    NO_NUMBER: "not a number",
    NO_DATE: "not a date",
    NOT_FINITE: "not finite",
    NOT_NAMED: "value not in the taxonomy",
    NESTED: "not a single value",
    NO_TEXT: "not readable as text",
}
"""Why a value has no leaf, in words, by every status but FINE."""
LARGEST_WHOLE = 2**63 - 1
LARGEST_REAL = float(np.finfo(np.float64).max)
LONGEST_NUMBER = 300
"""A number of at most this many digits before the point, and after it, is read at once and written in full."""
REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
SIMPLE = rf"^-?[0-9]{{1,{LONGEST_NUMBER}}}(\.[0-9]{{1,{LONGEST_NUMBER}}})?$"
"""Numbers that Arrow and Python read alike: both round correctly, and none is too large."""
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?|[0-5][0-9]([0-5][0-9]([.,][0-9]+)?)?)?"
MOMENT = f"{DAY}([T ]{_CLOCK}(Z|[+-]{_CLOCK})?)?"
"""ISO dates, with or without a time and a zone after them, in words that all engines and versions of Python know."""
_MOMENT = re.compile(MOMENT)
EPOCH = datetime.date(1970, 1, 1)
"""Days are counted from here."""
SECONDS_A_DAY = 86_400
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of each of Arrow's units of time make a second."""

Array: TypeAlias = "pa.Array[Any]"
Status = NDArray[np.uint8]
"""For each value, FINE or the reason why it cannot be used."""


def is_nested(kind: pa.DataType) -> bool:
    """Whether values of this type are lists or records."""
    return bool(pa.types.is_nested(kind)) and not pa.types.is_dictionary(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are texts that Arrow's functions take."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_day(kind: pa.DataType) -> bool:
    """Whether values of this type are days or points in time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def distinct(array: Array) -> tuple[Array, NDArray[np.intp]]:
    """The distinct values of a column, null last, and the place of each row's value among them."""
    encoded: Any = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(_hashable(array))
    values, places = encoded.dictionary, encoded.indices
    if len(values) > len(places):
        used = pc.dictionary_encode(places)
        values, places = _hashable(values).take(used.dictionary), used.indices
    if places.null_count:
        places = places.cast(pa.int64()).fill_null(len(values))
    with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return with_null, places.to_numpy(zero_copy_only=False).astype(np.intp, copy=False)


def _hashable(array: Array) -> Array:
    """Replace types that Arrow cannot yet encode as a dictionary."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(array.type))
    if pa.types.is_float16(array.type):
        return doubles(array)
    return array if plain is None else array.cast(plain)


def texts(values: Array) -> list[str | None]:
    """The text of each value, as a taxonomy would name it; None where there is no value."""
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = pc.floor_temporal(values, unit="microsecond").cast(pa.timestamp("us", values.type.tz), safe=False)
    if pa.types.is_duration(values.type) and values.type.unit == "ns":
        values = values.cast(pa.duration("us"), safe=False)
    if pa.types.is_floating(values.type):
        values = doubles(values)
    return [text_of(value) for value in _python(values)]


def _python(values: Array) -> list[Any]:
    """The values as Python's; one that Python cannot hold, such as a day after the year 9999, is unreadable."""
    try:
        return list(values.to_pylist())
    except Exception:  # whatever Arrow and the standard library raise, for one value or another
        return [_one_python(value) for value in values]


def _one_python(value: Any) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return bytes(value.as_buffer())
    except Exception:  # as above
        return UNREADABLE_TEXT


def text_of(value: Any) -> str | None:
    """The text of one value of any type, as a taxonomy would name it; None for null, NaN and the like.

    >>> [text_of(value) for value in (1, 1.0, Decimal("1.50"), True, " x ", float("nan"), [1] == 1)]
    ['1', '1', '1.5', 'true', 'x', None, 'false']
    """
    try:
        text = value if type(value) is str else _written(_plain(value))
    except Exception:  # an object's own methods may raise anything
        return UNREADABLE_TEXT
    if text is None:
        return None
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.strip()


def _plain(value: Any) -> Any:
    """Turn one of NumPy's values into Python's."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else value.astype(f"{type(value).__name__[:-2]}64[us]").item()
    if isinstance(value, np.floating):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def _written(value: Any) -> str | None:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value)) if abs(value) <= LARGEST_WHOLE else _digits(Decimal(int(value)))
    if isinstance(value, float):
        if value.is_integer() and abs(value) <= LARGEST_WHOLE:
            return str(int(value))
        return None if value != value else _digits(Decimal(repr(float(value))))
    if isinstance(value, Decimal):
        return None if value.is_nan() else _digits(value)
    if isinstance(value, datetime.datetime):
        moment = datetime.datetime.isoformat(value)
        return moment[:10] if value.time() == datetime.time() else moment
    if isinstance(value, datetime.timedelta):
        return str(datetime.timedelta(value.days, value.seconds, value.microseconds))
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, dict | list | tuple | set | frozenset | np.ndarray) or hasattr(value, "__array__"):
        return NESTED_TEXT
    return str(value)


def is_real(text: str) -> bool:
    """Whether a text writes a number whose digits can be found.

    >>> [is_real(text) for text in ("1", "-.5e3", "x", "1e99999999999999999999")]
    [True, True, False, False]
    """
    try:
        return bool(REAL.fullmatch(text)) and Decimal(text).is_finite()
    except ArithmeticError:
        return False


def canonical(text: str) -> str:
    """The text of a number, the same for equal numbers; any other text is left as it is.

    >>> [canonical(text) for text in ("1.0", "+01", "1e3", "-0.0", ".50", "1e-7", "9007199254740993", "x")]
    ['1', '1', '1000', '0', '0.5', '0.0000001', '9007199254740993', 'x']
    >>> canonical("0e99999999999999999999")
    '0'
    """
    if not REAL.fullmatch(text):
        return text
    try:
        return _digits(Decimal(text))
    except ArithmeticError:
        return text if re.split("[eE]", text)[0].strip("+-.0") else "0"


def _digits(number: Decimal) -> str:
    """All digits of a number and no others, with an exponent only where it is very large or small."""
    if not number.is_finite():
        return "inf" if number > 0 else "-inf"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    kept = written.rstrip("0")
    if not kept:
        return "0"
    exponent += len(written) - len(kept)
    start = "-" if sign else ""
    if abs(exponent) + len(kept) > 2 * LONGEST_NUMBER:
        return f"{start}{kept}e{exponent}"
    if exponent >= 0:
        return start + kept + "0" * exponent
    padded = kept.rjust(1 - exponent, "0")
    return f"{start}{padded[:exponent]}.{padded[exponent:]}"


def doubles(values: Array) -> Array:
    """Shorter floats as doubles, each the shortest decimal that it stands for: 0.1, not 0.100000001."""
    if pa.types.is_float32(values.type):
        return values.cast(pa.string()).cast(pa.float64())
    if pa.types.is_float16(values.type):
        halves = values.to_numpy(zero_copy_only=False)
        null = values.is_null().to_numpy(zero_copy_only=False)
        return pa.array(np.array([float(str(half)) for half in halves], np.float64), mask=null)
    return values


def rewritten(values: Array, form: str | None) -> Array:
    """The values in the plain way of writing them, each by itself; what is not written in the form stays as it is.

    But what would be another number in the plain way, such as 1.5 where the comma is the decimal mark, is unreadable.
    """
    if form is None:
        return values
    rule = rewriting(form)
    ambiguous = form == COMMA

    def plain(text: str | None) -> str | None:
        if text is None or (found := rule(text)) is not None:
            return None if text is None else found
        return UNREADABLE_TEXT if ambiguous and REAL.fullmatch(text) else text

    return pa.array([plain(text) for text in texts(values)], pa.large_string())


@dataclass(frozen=True)
class Readings:
    """Numbers, or days since 1970, each with a status; where that is not FINE, the number means nothing."""

    values: NDArray[Any]
    status: Status


@dataclass(frozen=True)
class Absent:
    """The texts that mean "no value", and the numbers and days that they write, which mean the same."""

    texts: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Absent:
        """From texts, without the blanks around them."""
        return cls(frozenset(text.strip() for text in texts))

    @cached_property
    def numbers(self) -> Floats:
        """The numbers that mean "no value"."""
        read = (_one_number(text) for text in self.texts)
        return np.array(sorted({number for number, status in read if status in (FINE, NOT_FINITE)}), np.float64)

    @cached_property
    def days(self) -> Integers:
        """The days that mean "no value"."""
        return np.array(sorted({day for day, status in map(_one_day, self.texts) if status == FINE}), np.int64)

    def __contains__(self, text: str) -> bool:
        """Whether a text, or the number it writes, means "no value"."""
        return text in self.texts or bool(self.numbers.size and canonical(text) in self._canonical)

    @cached_property
    def _canonical(self) -> frozenset[str]:
        return frozenset(canonical(text) for text in self.texts if REAL.fullmatch(text))


def numbers(values: Array, absent: Absent) -> Readings:
    """Read every value as a number, to the nearest one of 64 bits."""
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
    """Read texts as numbers: all those at once that Arrow and Python read alike, each of the others by itself."""
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
    """Read one number; one too large for a float becomes the largest of its sign."""
    if REAL.fullmatch(text):
        return min(max(float(text), -LARGEST_REAL), LARGEST_REAL), FINE
    if INFINITE.fullmatch(text):
        return float(text), NOT_FINITE
    if text == NESTED_TEXT:
        return 0, NESTED
    return 0, MISSING if text.lower() == "nan" else NO_NUMBER


def _sort_out(read: NDArray[Any], status: Status, absent: Absent) -> Readings:
    """Mark what is not a finite number, or means "no value"."""
    if read.dtype.kind == "f" and not np.isfinite(read).all():
        status[np.isinf(read)] = NOT_FINITE
        status[np.isnan(read)] = MISSING
    if absent.numbers.size:
        status[np.isin(read.astype(np.float64), absent.numbers) & np.isin(status, (FINE, NOT_FINITE))] = MISSING
    if status.any():
        read = np.where(status == FINE, read, read.dtype.type(0))
    return Readings(read, status)


def days(values: Array, absent: Absent) -> Readings:
    """Read every value as a day, of the time zone in which it was written, counted from 1970."""
    if is_day(values.type):
        status = _null_status(values)
        read = _days_of_moments(values)
    else:
        pairs = np.array([_one_day(text, absent.texts) for text in texts(values)], np.int64).reshape(-1, 2)
        read, status = pairs[:, 0], pairs[:, 1].astype(np.uint8)
    if absent.days.size:
        status[np.isin(read, absent.days) & (status == FINE)] = MISSING
    return Readings(read, status)


def _days_of_moments(values: Array) -> Integers:
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
