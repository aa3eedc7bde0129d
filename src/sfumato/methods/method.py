"""Reading a method's parameters: from text or numbers to checked values, with one sentence for what does not fit.

What a method is: a frozen value that plans its spending from public facts and drafts a release through a meter.

It drafts and does not seal: the account joins the draft with the ledger, so a method cannot write its own certificate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from sfumato.errors import MethodError
from sfumato.exact import read_fraction, read_whole
from sfumato.geometry.tree import Partition
from sfumato.models.consistency import Consistency
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Margin, NodeCounts, Noisy
from sfumato.privacy.meter import Meter
from sfumato.schema.schema import Schema


def parameter(default: Any, says: str, *, file: bool = False) -> Any:
    """Declare a parameter of a method: its default, what it says to those who set it, and whether it is a text so long
    that the command line takes the file that holds it.
    """
    return field(default=default, metadata={"says": says, "file": file})


def required(says: str) -> Any:
    """Declare a parameter that must be given."""
    return field(metadata={"says": says, "file": False})


def read_number(name: str, value: object, remedy: str, least: int = 1, most: int = 10**9) -> int:
    """Read a whole number between bounds."""
    number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,40}", value) else read_whole(value)
    if number is None or not least <= number <= most:
        raise MethodError(f"{name} ({str(value)[:40]}) must be a whole number from {least} to {most:,}", remedy)
    return number


def read_share(name: str, value: object, least: Fraction, most: Fraction = Fraction(9, 10)) -> Fraction:
    """Read a share of the budget."""
    share = read_fraction(value)
    if share is None or not least <= share <= most or share.denominator > 1000:
        raise MethodError(
            f"{name} ({str(value)[:40]}) must be a share from {float(least):g} to {float(most):g} with at most three "
            "decimals",
            "Give for example 0.2.",
        )
    return share


def read_truth(name: str, value: object) -> bool:
    """Read yes or no."""
    known = {"yes": True, "true": True, "no": False, "false": False}
    truth = known.get(str(value).lower())
    if truth is None:
        raise MethodError(f"{name} ({str(value)[:40]}) must be yes or no", "Choose one of them.")
    return truth


def refuse_other(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a word that is not one of these."""
    if value not in choices:
        raise MethodError(f"{name} ({str(value)[:40]}) must be one of {', '.join(choices)}", "Choose one of them.")


def plain_parameters(method: Any) -> Mapping[str, Any]:
    """Give a method's parameters as plain values, for the manifest."""
    values = {one.name: getattr(method, one.name) for one in fields(method)}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True)
class Draft:
    """What a method found: regions, their noisy counts by class, noisy margins by attribute, and how it got there."""

    partition: Partition
    counts: Noisy
    margins: Mapping[int, Margin] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    earlier: tuple[NodeCounts, ...] = ()
    """what was bought on the way, if the regions are the leaves of a tree"""
    consistency: Consistency = "least squares"
    """how all these counts of a tree are made to agree"""
    histogram: Noisy | None = None
    """the noisy counts of all single cells, by class, if they were bought, too"""


class Method(Protocol):
    """A way to publish. Validated at birth: after data is opened nothing fails because of a parameter."""

    name: ClassVar[str]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values, for the manifest."""

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Say what every round will cost, from public facts alone, or refuse."""

    def expected_cells(self, schema: Schema) -> int:
        """Estimate generously, from public facts, how many cells a release will have, to set disk space aside."""

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Ask the meter and draft a release."""
