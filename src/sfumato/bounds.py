"""Numbers and days as a schema states them: exact from the file to the grid.

A bound is a decimal number or a day, never a float: `0.1` is a tenth, and a grid that begins there has the same cells
on every machine.
"""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from sfumato.errors import SchemaError

LARGEST = 10**15
"""Bounds are below this in size, so that every grid is exact in 64 bits."""
DIGITS = 30
"""No bound has more digits behind the point: as a fraction, 1e-999999999 would fill the memory."""
LONGEST_NUMBER = 60
EPOCH = datetime.date(1970, 1, 1)


def _number_or_date(value: Any) -> Any:
    """Read `2020-01-31` as a date and everything else as an exact decimal number."""
    text = str(value).strip()
    try:
        number = Decimal(text[: LONGEST_NUMBER + 1])
        if len(text) <= LONGEST_NUMBER and abs(number) < LARGEST and int(number.as_tuple().exponent) >= -DIGITS:
            return number
    except ArithmeticError:
        with contextlib.suppress(ValueError):
            return datetime.date.fromisoformat(text)
    raise SchemaError(
        f"bound ({text[:40]}) must be a number below {LARGEST:,} in size or an ISO date", "Write 0, 0.5 or 2020-01-31."
    )


def plain(value: Decimal | datetime.date) -> int | str:
    """Write a bound as a schema file shows it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return int(value) if value == value.to_integral_value() else format(value.normalize(), "f")


Bound = Annotated[
    datetime.date | Decimal,
    BeforeValidator(_number_or_date, json_schema_input_type=int | float | str),
    PlainSerializer(plain, return_type=int | str),
]


def exact(value: Decimal | datetime.date) -> Fraction:
    """Give a bound as a number: days since 1970 for dates."""
    return Fraction((value - EPOCH).days) if isinstance(value, datetime.date) else Fraction(value)
