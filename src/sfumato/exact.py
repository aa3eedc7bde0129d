"""Read numbers exactly from the text of people and files, and write them exactly.

A fraction read here is the fraction that was written; text that is no number, or so long that reading it would be an
attack, is None. JSON that a person would read one way and a program another is refused.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, SupportsIndex

FRACTION = re.compile(
    r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d{1,2})?|[+-]?\d{1,20}/0*[1-9]\d{0,19}", re.ASCII | re.IGNORECASE
)
MOST_BITS = 4096
"""A common denominator has so many at most: budgets are shared in parts of a few numbers."""


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


def can_be_summed(fractions: Iterable[Fraction]) -> bool:
    """Tell whether fractions have a common denominator that is no longer than budgets need: a few thousand that have
    nothing in common would take for ever to add up.

    >>> can_be_summed([Fraction(1, 3), Fraction(1, 10**9)]), can_be_summed(Fraction(1, n) for n in range(1, 10**4))
    (True, False)
    """
    common = 1
    for one in fractions:
        common = math.lcm(common, one.denominator)
        if common.bit_length() > MOST_BITS:
            return False
    return True


def read_json(text: str) -> Any:
    """Read JSON in which every name stands once, and every number is one.

    >>> read_json('{"epsilon": "1/100", "epsilon": "1"}')
    Traceback (most recent call last):
    ValueError: names must stand once
    """
    return json.loads(text, object_pairs_hook=_each_once, parse_constant=_refuse_constant)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: a person would believe the first, and a program the last."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("names must stand once")
    return plain


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} must be a number")
