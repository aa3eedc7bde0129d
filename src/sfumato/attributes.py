"""The kinds of columns and the ordered list of leaves that each one declares.

A categorical attribute's leaves are its taxonomy's, a numeric attribute's are the cells of its grid; both then speak
the same few words (leaves, label, children), which is all that geometry and methods ever ask of them.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from sfumato.errors import SchemaError
from sfumato.taxonomy import Nested, Taxonomy

MOST_LEAVES = 1_000_000
LARGEST_EXPONENT = 3000
EPOCH = datetime.date(1970, 1, 1)


FRACTION = re.compile(r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d{1,2})?|[+-]?\d{1,20}/\d{1,20}", re.IGNORECASE)


def read_fraction(value: object) -> Fraction | None:
    """Read `0.5`, `1/3` or `1e-3` exactly; None for what is no number of reasonable length.

    >>> read_fraction("0.1"), read_fraction(0.1), read_fraction("1/3"), read_fraction("1e999999"), read_fraction("1/0")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3), None, None)
    """
    text = str(value).strip()
    if not FRACTION.fullmatch(text) or (text.rsplit("/", 1)[-1].strip("0") == "" and "/" in text):
        return None
    return Fraction(text)


class Attribute(BaseModel):
    """What every kind of column has in common: strict fields and nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Identifier(Attribute):
    """A column that names people: dropped before anything else."""

    kind: Literal["identifier"] = "identifier"


def _tidy(value: Any) -> Nested:
    """Bring lists, mappings and empty branches of a schema file to one nested form, names stripped of blanks."""
    if value in (None, ""):
        return []
    if isinstance(value, dict):
        value = [{name: below} for name, below in value.items()]
    if not isinstance(value, list):
        raise SchemaError(
            "a taxonomy must be a list or a mapping of names", "Write it as nested lists; see docs/schema.md."
        )
    return [branch for item in value for branch in _branches(item)]


def _branches(item: Any) -> Nested:
    if not isinstance(item, dict):
        return [str(item).strip()]
    named = [(str(name).strip(), _tidy(below)) for name, below in item.items()]
    return [{name: below} if below else name for name, below in named]


class Categorical(Attribute):
    """A column of names, in a taxonomy. As kind `class` it is what classifiers predict."""

    kind: Literal["categorical", "class"] = "categorical"
    taxonomy: Annotated[list[Any], BeforeValidator(_tidy)]
    """Nested lists and mappings of names; the order of the leaves is the order of their codes."""
    root: str = "Any"
    """The name of the most general value."""
    missing: str | None = None
    """The leaf that stands for a missing value."""
    unseen: str | None = None
    """The leaf that stands for every value that the taxonomy does not name."""

    @model_validator(mode="after")
    def _check_leaves(self) -> Self:
        _refuse_too_many(len(self.tree.leaves))
        for role, leaf in (("missing", self.missing), ("unseen", self.unseen)):
            if leaf is not None and leaf not in self.tree.leaves:
                raise SchemaError(
                    f"{role} ({leaf}) must be a leaf of the taxonomy",
                    "Add it to the taxonomy or choose another leaf.",
                )
        return self

    @cached_property
    def tree(self) -> Taxonomy:
        """The taxonomy as a tree of ranges."""
        return Taxonomy.of(self.taxonomy, root=self.root)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.tree.leaves)

    def label(self, lo: int, hi: int) -> str:
        """Name a range of leaves."""
        return self.tree.label(lo, hi)

    def children(self, lo: int, hi: int) -> tuple[int, ...] | None:
        """Give the borders that the taxonomy draws inside a range; None for a leaf."""
        return self.tree.children(lo, hi)


def _number_or_date(value: Any) -> Any:
    """Read `2020-01-31` as a date and everything else as an exact decimal number."""
    if isinstance(value, datetime.date):
        return value
    try:
        number = Decimal(str(value).strip())
    except ArithmeticError:
        try:
            return datetime.date.fromisoformat(str(value).strip())
        except ValueError:
            number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise SchemaError(
            f"bound ({value}) must be a finite number or an ISO date",
            "Write for example 0, 0.5 or 2020-01-31.",
        )
    return number


def _plain(value: Decimal | datetime.date) -> int | str:
    """Write a bound as a schema file shows it."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value.isoformat() if isinstance(value, datetime.date) else format(value.normalize(), "f")


Bound = Annotated[
    datetime.date | Decimal,
    BeforeValidator(_number_or_date, json_schema_input_type=int | float | str),
    PlainSerializer(_plain, return_type=int | str),
]


class Numeric(Attribute):
    """A column of numbers or dates on a public grid of cells `[lower + i step, lower + (i + 1) step)`.

    Every value from `lower` to `upper`, both included, has its cell; values outside count in the nearest one. With
    `missing`, one more leaf after the last cell stands for "no value".

    >>> age = Numeric(lower=17, upper=90)
    >>> age.leaves, age.label(0, 21), age.label(3, 4)
    (74, '[17, 38)', '20')
    """

    kind: Literal["numeric"] = "numeric"
    lower: Bound
    upper: Bound
    step: Bound = Field(default=Decimal(1))
    """The width of a cell, in days for dates."""
    missing: str | None = None
    """What an extra leaf for missing values is called; without it they do not fit."""

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        if isinstance(self.step, datetime.date) or self.step <= 0:
            raise SchemaError(
                f"step ({_plain(self.step)}) must be a number greater than 0", "Give the width of a cell."
            )
        if isinstance(self.lower, datetime.date) != isinstance(self.upper, datetime.date):
            raise SchemaError("lower and upper must both be numbers or both be dates", "Write both in the same way.")
        if self.is_date and self.step != int(self.step):
            raise SchemaError(
                f"step ({_plain(self.step)}) must be a whole number of days", "Use for example 1, 7 or 365."
            )
        if self.origin >= _exact(self.upper):
            raise SchemaError(
                f"lower ({_plain(self.lower)}) must be less than upper ({_plain(self.upper)})",
                "Swap or widen the bounds.",
            )
        _refuse_too_many(self.leaves)
        return self

    @property
    def is_date(self) -> bool:
        """Whether the values are days."""
        return isinstance(self.lower, datetime.date)

    @property
    def is_whole(self) -> bool:
        """Whether the grid lies on whole numbers (or days), so that values do, too."""
        return self.origin.denominator == 1 and self.width.denominator == 1

    @property
    def origin(self) -> Fraction:
        """Where the first cell begins, as a number (days since 1970 for dates)."""
        return _exact(self.lower)

    @property
    def width(self) -> Fraction:
        """How wide a cell is."""
        return _exact(self.step)

    @cached_property
    def cells(self) -> int:
        """How many cells the grid has."""
        return int((_exact(self.upper) - self.origin) // self.width) + 1

    @property
    def leaves(self) -> int:
        """How many leaves there are: the cells and, if declared, the one for missing values."""
        return self.cells + (self.missing is not None)

    def edge(self, cell: int) -> str:
        """Write the lower end of a cell."""
        at = self.origin + cell * self.width
        if self.is_date:
            return (EPOCH + datetime.timedelta(days=int(at))).isoformat()
        return str(_plain(Decimal(at.numerator) / Decimal(at.denominator)))

    def label(self, lo: int, hi: int) -> str:
        """Write a range of leaves as an interval, as a single value where a cell is one, or as missing."""
        end = min(hi, self.cells)
        if lo >= end:
            return str(self.missing)
        single = hi - lo == 1 and self.is_whole and self.width == 1
        interval = self.edge(lo) if single else f"[{self.edge(lo)}, {self.edge(end)})"
        return interval if hi <= self.cells else f"{interval} or {self.missing}"

    def children(self, lo: int, hi: int) -> None:
        """Have no borders of its own: a numeric range is split where the data says, privately."""


def _exact(value: Decimal | datetime.date) -> Fraction:
    return Fraction((value - EPOCH).days) if isinstance(value, datetime.date) else Fraction(value)


def _refuse_too_many(leaves: int) -> None:
    if leaves > MOST_LEAVES:
        raise SchemaError(
            f"an attribute must have at most {MOST_LEAVES:,} leaves, and this one has {leaves:,}",
            "Use a larger step or a coarser taxonomy.",
        )
