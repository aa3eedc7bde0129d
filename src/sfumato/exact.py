"""Read numbers exactly from the text of people and files, and write them exactly.

A fraction read here is the fraction that was written. Text that is no number, or so long that reading it would exhaust
the machine, is None.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from fractions import Fraction
from typing import SupportsIndex

FRACTION = re.compile(
    r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d{1,2})?|[+-]?\d{1,20}/0*[1-9]\d{0,19}", re.ASCII | re.IGNORECASE
)


def read_fraction(value: object) -> Fraction | None:
    """Read `0.5`, `1/3` or `1e-3` exactly; a float is the decimal number that it prints as.

    >>> read_fraction("0.1"), read_fraction(0.1), read_fraction("1/3"), read_fraction("1e999999"), read_fraction("1/0")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3), None, None)
    """
    if isinstance(value, Fraction):
        return value
    text = str(value).strip() if isinstance(value, str | int | float | Decimal) else ""
    return Fraction(text) if FRACTION.fullmatch(text) else None


def write_fraction(value: Fraction) -> str:
    """Write a fraction as the decimal number that it is, if that is a short one.

    >>> write_fraction(Fraction(1, 10)), write_fraction(Fraction(1, 3))
    ('0.1', '1/3')
    """
    decimal = f"{float(value):.6f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == value else str(value)


def read_whole(value: object) -> int | None:
    """Read a whole number, also one of NumPy's; None for anything else.

    >>> read_whole(5), read_whole(True), read_whole(5.0)
    (5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    return operator.index(value)
