"""How a value is written: one text for each value, whatever type or column it came in.

Equal numbers are written alike and so are equal days, so that a taxonomy's name finds its value on every path; and
what is written for one value never depends on the values beside it.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NESTED_TEXT = "\ufdd0not a single value"
"""Stands in a column of texts for a list or a record; it begins with a code point that no text should hold."""
UNREADABLE_TEXT = "\ufdd0not readable"
"""Stands in a column of texts for a value that cannot be written as one."""
LARGEST_WHOLE = 2**63 - 1
LONGEST_NUMBER = 300
REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

Array: TypeAlias = "pa.Array[Any]"


def is_nested(kind: pa.DataType) -> bool:
    """Tell whether cells of this type hold more than one value."""
    return bool(pa.types.is_nested(kind)) and not pa.types.is_dictionary(kind)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether cells of this type are texts that Arrow can take apart."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def distinct(array: Array) -> tuple[Array, NDArray[np.intp]]:
    """Split a column into its distinct values, null last, and the place of each row's value among them."""
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
    """Leave the types that Arrow cannot yet take apart."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(array.type))
    if pa.types.is_float16(array.type):
        return doubles(array)
    return array if plain is None else array.cast(plain)


def texts(values: Array) -> list[str | None]:
    """Write each value as a taxonomy would name it; None where there is none."""
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = pc.floor_temporal(values, unit="microsecond").cast(pa.timestamp("us", values.type.tz), safe=False)
    if pa.types.is_duration(values.type) and values.type.unit == "ns":
        values = values.cast(pa.duration("us"), safe=False)
    if pa.types.is_floating(values.type):
        values = doubles(values)
    return [text_of(value) for value in _python(values)]


def _python(values: Array) -> list[Any]:
    """Take the values out; one that Python cannot hold, such as a day after the year 9999, is unreadable."""
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
    """Write one value, of whatever type, as a taxonomy would name it; None for all that mean "no value".

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
    """Take a value out of its NumPy dress."""
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
    """Tell whether a text writes a number, and one whose digits can be told.

    >>> [is_real(text) for text in ("1", "-.5e3", "x", "1e99999999999999999999")]
    [True, True, False, False]
    """
    try:
        return bool(REAL.fullmatch(text)) and Decimal(text).is_finite()
    except ArithmeticError:
        return False


def canonical(text: str) -> str:
    """Write a number in the one way in which equal numbers are written alike; leave any other text.

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
    """Write a number with all its digits and no others, and with an exponent only where it is very large or small."""
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
    """Read shorter floats as the shortest decimal that they stand for: 0.1, not 0.100000001."""
    if pa.types.is_float32(values.type):
        return values.cast(pa.string()).cast(pa.float64())
    if pa.types.is_float16(values.type):
        halves = values.to_numpy(zero_copy_only=False)
        null = values.is_null().to_numpy(zero_copy_only=False)
        return pa.array(np.array([float(str(half)) for half in halves], np.float64), mask=null)
    return values
