"""Epsilon as an exact fraction, the schedule of what a publication will spend, and the debits that it makes.

The fraction that is debited is the fraction that scales the noise, so it must never be rounded on the way. A schedule
is complete before any data is opened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from sfumato.errors import BudgetError
from sfumato.exact import read_fraction
from sfumato.markup import table

FINEST = 10**6
"""A user's epsilon has a denominator of at most this."""
LARGEST = 1000
"""No epsilon is larger: beyond it there is nothing left to promise."""
FINEST_PART = 2**31
"""A part of epsilon, for one round, has a denominator of at most this: the samplers multiply it in 64 bits."""
GRAIN = Fraction(1, 10**9)
"""Where places pay different amounts, they pay whole grains, so that arrays of amounts are exact."""
INFINITE = math.inf
"""The epsilon of a publication that promises none."""
Total = Fraction | float
"""An exact epsilon, or INFINITE, which is the only float."""


def epsilon_of(value: str | int | float | Fraction) -> Fraction:
    """Read a privacy budget exactly; a float means the decimal number that it prints as.

    >>> epsilon_of("0.1"), epsilon_of(0.1), epsilon_of("1/3")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3))
    """
    remedy = "Give a number such as 1, 0.5 or 1/3."
    epsilon = read_fraction(value)
    if epsilon is None:
        raise BudgetError(f"epsilon ({str(value)[:40]}) must be a number", remedy)
    if epsilon <= 0:
        raise BudgetError(f"epsilon ({str(value)[:40]}) must be greater than 0", remedy)
    if epsilon > LARGEST:
        raise BudgetError(
            f"epsilon ({str(value)[:40]}) must be at most {LARGEST:,}: more protects nobody",
            "Common values are 0.1 to 4.",
        )
    if epsilon.denominator > FINEST:
        raise BudgetError(
            f"epsilon ({str(value)[:40]}) must have at most six decimals",
            "Round it, for example to three decimals.",
        )
    return epsilon


def payable(amount: Fraction) -> Fraction:
    """The amount itself if it can be sampled exactly, else the next lower one that can.

    >>> payable(Fraction(1, 52)), payable(Fraction(1, 3 * 10**12))
    (Fraction(1, 52), Fraction(0, 1))
    """
    if amount.denominator <= FINEST_PART:
        return amount
    return Fraction(amount.numerator * FINEST_PART // amount.denominator, FINEST_PART)


def grains_of(amount: Fraction) -> int:
    """The number of whole grains in an amount."""
    return int(amount // GRAIN)


@dataclass(frozen=True)
class Schedule:
    """What each round will cost, by label, in order.

    Parts that are too fine to be sampled exactly are rounded down to what can be paid.
    """

    parts: Mapping[str, Fraction]
    open_part: str | None = None
    """the part, if any, that is spent in as many rounds as it takes, a number that is not known beforehand"""

    def __post_init__(self) -> None:
        """Make the parts payable and immutable; refuse those that are 0."""
        object.__setattr__(self, "parts", MappingProxyType({name: payable(part) for name, part in self.parts.items()}))
        for label, part in self.parts.items():
            if part <= 0:
                raise BudgetError(
                    f"the part of epsilon for {label} must be greater than 0, and is next to nothing",
                    "Use a larger epsilon or fewer rounds.",
                )

    def _repr_html_(self) -> str:
        rows = [(label, f"{float(part):.5f}") for label, part in self.parts.items()]
        return table(("round", "epsilon"), [*rows, ("in all", f"{float(sum(self.parts.values())):.5f}")], (1,))

    def __getitem__(self, label: str) -> Fraction:
        """The planned cost of a round."""
        return self.parts[label]

    def in_grains(self, last: str, whole: Fraction) -> Schedule:
        """Round all parts but the last down to whole grains; the last gets what that leaves of the whole."""
        parts = {label: grains_of(part) * GRAIN for label, part in self.parts.items() if label != last}
        return replace(self, parts=parts | {last: whole - sum(parts.values(), Fraction(0))})

    def times(self, records: int) -> Schedule:
        """What all of a person's records cost, if there are so many of them."""
        return replace(self, parts={label: records * part for label, part in self.parts.items()})

    @property
    def rounds(self) -> tuple[str, ...]:
        """The labels of the rounds that are known beforehand."""
        return tuple(label for label in self.parts if label != self.open_part)

    @property
    def total(self) -> Fraction:
        """The sum of all parts."""
        return sum(self.parts.values(), Fraction(0))


@dataclass(frozen=True)
class Debit:
    """What one round did and cost: one line of ledger and manifest, whose fields never change their meaning."""

    label: str
    mechanism: str
    epsilon: Fraction
    sensitivity: Fraction
    cells: int


@dataclass(frozen=True)
class NonPrivate:
    """A look at exact counts, and the reason: no epsilon bounds what it tells, so it makes a table's total infinite."""

    label: str
    reason: str

    @property
    def epsilon(self) -> float:
        """Infinity."""
        return INFINITE
