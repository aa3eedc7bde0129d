"""The kinds of columns: identifiers, categories and numbers, and the ordered list of leaves that each declares.

A categorical attribute's leaves are its taxonomy's, a numeric attribute's are the cells of its grid. Both have
`leaves`, `label` and `children`, which is all that geometry and methods ever ask of them.

A bound of a grid is a decimal number or a day, never a float: `0.1` is a tenth, and a grid that begins there has the
same cells on every machine.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from sfumato.errors import SchemaError
from sfumato.schema.codes import nested_prefixes
from sfumato.schema.formats import refuse_unknown
from sfumato.schema.taxonomy import Nested, Taxonomy

LARGEST = 10**15
"""Bounds are below this in size, so that every grid is exact in 64 bits."""
DIGITS = 30
"""No bound has more digits after the point: as a fraction, 1e-999999999 would fill the memory."""
LONGEST_NUMBER = 60
"""No bound is written with more characters."""
MOST_LEAVES = 1_000_000
"""No attribute has more leaves."""
FINEST_STEP = Fraction(1, 10**9)
"""No cell of a grid that is not of whole numbers is narrower."""
EPOCH = datetime.date(1970, 1, 1)
"""Dates are counted in days from here."""


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
    """A bound as it stands in a schema file."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return int(value) if value == value.to_integral_value() else format(value.normalize(), "f")


Bound = Annotated[
    datetime.date | Decimal,
    BeforeValidator(_number_or_date, json_schema_input_type=int | float | str),
    PlainSerializer(plain, return_type=int | str),
]


def exact(value: Decimal | datetime.date) -> Fraction:
    """A bound as an exact number: days since 1970 for dates."""
    return Fraction((value - EPOCH).days) if isinstance(value, datetime.date) else Fraction(value)


def _optional(value: Any) -> Any:
    """Read an empty field or `~` as None."""
    return None if value in ("", "~") else value


OptionalName = Annotated[str | None, BeforeValidator(_optional)]


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
    if isinstance(item, list):
        raise SchemaError("a list inside a taxonomy must have a name", "Write {name: [a, b]} instead of [a, b].")
    if not isinstance(item, dict):
        return [str(item).strip()]
    named = [(str(name).strip(), _tidy(below)) for name, below in item.items()]
    return [{name: below} if below else name for name, below in named]


class Categorical(Attribute):
    """A column of names, in a taxonomy. As kind `class` it is what classifiers predict.

    >>> diagnosis = Categorical(codes="[A-Z][0-9]", taxonomy=["Other"], unseen="Other")
    >>> diagnosis.leaves, diagnosis.label(0, 10), diagnosis.label(260, 261)
    (261, 'A', 'Other')
    """

    kind: Literal["categorical", "class"] = "categorical"
    taxonomy: Annotated[list[Any], BeforeValidator(_tidy)] = Field(default_factory=list)
    """Nested lists and mappings of names; the order of the leaves is the order of their codes."""
    codes: OptionalName = None
    """A pattern such as `[A-Z][0-9][0-9]` of a code's first characters, which are leaves before those of the taxonomy:
    a value belongs to the one that begins it."""
    labels: dict[str, str] = Field(default_factory=dict)
    """What values are called: by value as it stands in the table, the leaf that it means. From a code book."""
    root: str = "Any"
    """The name of the most general value."""
    missing: OptionalName = None
    """The leaf that stands for a missing value."""
    unseen: OptionalName = None
    """The leaf that stands for every value that the taxonomy does not name."""
    finest: int | None = Field(default=None, ge=1)
    """How far below the root values are published at most, where records are generalized one by one."""

    @model_validator(mode="after")
    def _check_leaves(self) -> Self:
        _refuse_too_many(len(self.tree.leaves))
        for role, leaf in (("missing", self.missing), ("unseen", self.unseen)):
            if leaf is not None and leaf not in self.tree.leaves:
                raise SchemaError(
                    f"{role} ({leaf}) must be a leaf of the taxonomy",
                    "Add it to the taxonomy or choose another leaf.",
                )
        for value, label in self.labels.items():
            if label not in self.tree.leaves or (value in self.tree.leaves and value != label):
                raise SchemaError(
                    f"label ({label[:40]}) of value ({value[:40]}) must be a leaf, and the value no other leaf",
                    "Add it to the taxonomy, or rename the leaf.",
                )
        if self.finest is not None and self.finest > self.tree.height:
            raise SchemaError(
                f"finest ({self.finest}) must be at most the height of the taxonomy, {self.tree.height}",
                "Use a smaller one, or none.",
            )
        return self

    @cached_property
    def tree(self) -> Taxonomy:
        """The taxonomy as a tree of ranges."""
        prefixes = nested_prefixes(self.codes) if self.codes is not None else []
        return Taxonomy.of([*prefixes, *self.taxonomy], root=self.root)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.tree.leaves)

    def label(self, lo: int, hi: int) -> str:
        """Name a range of leaves."""
        return self.tree.label(lo, hi)

    def children(self, lo: int, hi: int) -> tuple[int, ...] | None:
        """The borders between the taxonomy's children of a range, outer ones included; None for a leaf."""
        return self.tree.children(lo, hi)


class Numeric(Attribute):
    """A column of numbers or dates on a public grid of cells `[lower + i step, lower + (i + 1) step)`.

    Every value from `lower` to `upper`, both included, has its cell; values outside count in the nearest one. A value
    in `points` has a leaf of its own, cut out of its cell. With `missing`, one more leaf after the last cell stands
    for "no value".

    >>> age = Numeric(lower=17, upper=90)
    >>> age.leaves, age.label(0, 21), age.label(3, 4)
    (74, '[17, 38)', '20')
    >>> gain = Numeric(lower=0, upper=1499, step=500, points=[0])
    >>> [gain.label(leaf, leaf + 1) for leaf in range(gain.leaves)]
    ['0', '[1, 500)', '[500, 1000)', '[1000, 1500)']

    Where values are of many orders of magnitude, cells may follow them, or begin at the borders that are listed.

    >>> income = Numeric(lower=0, upper=1000, grid="log")
    >>> income.leaves, [income.label(leaf, leaf + 1) for leaf in (0, 9, 10, 27, 28)]
    (29, ['0', '9', '[10, 20)', '[900, 1000)', '1000'])
    >>> age = Numeric(lower=0, upper=99, borders=[18, 65])
    >>> [age.label(leaf, leaf + 1) for leaf in range(age.leaves)]
    ['[0, 18)', '[18, 65)', '[65, 100)']
    """

    kind: Literal["numeric"] = "numeric"
    lower: Bound
    upper: Bound
    step: Bound = Field(default=Decimal(1))
    """The width of a cell, in days for dates."""
    grid: Literal["even", "log"] = "even"
    """Whether cells are equally wide, or begin at the numbers of one significant digit: 1, 2, ..., 9, 10, 20, ..."""
    borders: list[Bound] = Field(default_factory=list)
    """Where cells begin, instead of after each step: whole numbers or dates between the bounds."""
    written: OptionalName = None
    """How values are written, such as `1.234,5`, `DD.MM.YYYY` or `HH:MM`, where it is not the plain way."""
    points: list[Bound] = Field(default_factory=list)
    """Whole numbers or dates that stand out, such as 0 for an income: each gets a leaf of its own."""
    missing: OptionalName = None
    """What an extra leaf for missing values is called; without it they do not fit."""
    intervals: list[Bound] = Field(default_factory=list)
    """Widths of the intervals to which values are generalized one by one, each a multiple of the one before.

    No interval narrower than the first is then published.
    """

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        widths = [Fraction(0) if isinstance(one, datetime.date) else Fraction(one) for one in self.intervals]
        for narrow, wide in itertools.pairwise([Fraction(0), *widths]):
            if wide <= narrow or (narrow and (wide / narrow).denominator > 1):
                raise SchemaError(
                    "intervals must be widths greater than 0, each a multiple of the one before",
                    "Write for example [5, 10, 20].",
                )
        return self

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        if isinstance(self.step, datetime.date) or self.step <= 0:
            raise SchemaError(f"step ({plain(self.step)}) must be a number greater than 0", "Give the width of a cell.")
        bounds = [self.lower, self.upper, *self.points]
        if len({isinstance(bound, datetime.date) for bound in bounds}) > 1:
            raise SchemaError("bounds and points must all be numbers or all be dates", "Write all in the same way.")
        if self.is_date and self.step != int(self.step):
            raise SchemaError(f"step ({plain(self.step)}) must be a whole number of days", "Use 1, 7 or 365.")
        if self.origin >= exact(self.upper):
            raise SchemaError(
                f"lower ({plain(self.lower)}) must be less than upper ({plain(self.upper)})",
                "Swap or widen the bounds.",
            )
        if self.upper == datetime.date.max:
            raise SchemaError(f"upper ({self.upper}) must be before the last day there is", "Use 9999-12-30 at most.")
        if self.points and not self.is_whole:
            raise SchemaError("points must be on a grid of whole numbers or dates", "Use a whole lower bound and step.")
        self._check_uneven()
        if self.written is not None:
            refuse_unknown(self.written, days=self.is_date)
        for point in self.points:
            if exact(point).denominator != 1 or not self.origin <= exact(point) < self.end:
                raise SchemaError(f"point ({plain(point)}) must be whole and between the bounds", "Remove it.")
        _refuse_too_many(self.most_leaves)
        if not self.is_whole and (self.width < FINEST_STEP or bool((np.diff(self.edges) <= 0).any())):
            raise SchemaError(
                f"step ({str(plain(self.step))[:40]}) must not be too fine for these bounds", "Use a larger step."
            )
        return self

    def _check_uneven(self) -> None:
        if not self.is_uneven:
            return
        if (self.grid == "log" and self.borders) or self.step != 1:
            raise SchemaError("grid: log, borders and step must not go together", "Keep one of them.")
        if self.grid == "log" and self.is_date:
            raise SchemaError("grid (log) must be of numbers, and the bounds are dates", "Give a step in days.")
        if not self.is_whole:
            raise SchemaError("bounds of an uneven grid must be whole numbers or dates", "Round them.")
        for border in self.borders:
            inside = isinstance(border, datetime.date) == self.is_date and self.origin < exact(border) < self.end
            if not inside or exact(border).denominator != 1:
                raise SchemaError(f"border ({plain(border)}) must be whole and between the bounds", "Remove it.")

    @property
    def most_leaves(self) -> int:
        """An upper bound of the number of leaves, found without building the grid."""
        return int((self.end - self.origin) / self.width) + len(self._cuts) + 2 * len(self.points) + 2

    @property
    def is_uneven(self) -> bool:
        """Whether cells are not one step wide, points aside."""
        return self.grid == "log" or bool(self.borders)

    @property
    def _cuts(self) -> list[int]:
        """Where the cells of an uneven grid begin, but for the first."""
        if self.grid == "log":
            powers = [digit * 10**power for power in range(len(str(LARGEST))) for digit in range(1, 10)]
            return [cut for one in (0, *powers) for cut in {one, -one} if self.origin < cut < self.end]
        return [int(exact(border)) for border in self.borders if exact(border).denominator == 1]

    @property
    def is_date(self) -> bool:
        """Whether the values are days."""
        return isinstance(self.lower, datetime.date)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the grid lies on whole numbers (or days), so that its values are whole, too."""
        return self.origin.denominator == 1 and (self.is_uneven or self.width.denominator == 1)

    @cached_property
    def origin(self) -> Fraction:
        """Where the first cell begins, as a number (days since 1970 for dates)."""
        return exact(self.lower)

    @cached_property
    def width(self) -> Fraction:
        """The width of a cell, unless a point or the end cuts it; of an uneven grid, that of all of it."""
        return max(self.end - self.origin, Fraction(1)) if self.is_uneven else exact(self.step)

    @cached_property
    def end(self) -> Fraction:
        """Where the last cell ends: after `upper` on whole grids, at `upper` (which it includes) on others."""
        last = exact(self.upper)
        return Fraction(math.floor(last) + 1) if self.is_whole else last

    @property
    def edges(self) -> NDArray[Any]:
        """The borders of the cells, one more than cells: whole numbers on whole grids."""
        return self._held.edges

    @cached_property
    def _held(self) -> _Held:
        own = [int(exact(point)) + side for point in self.points for side in (0, 1)] + self._cuts
        return _Held(_edges(self.origin, self.end, self.width, own, self.is_whole))

    @cached_property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return len(self.edges) - 1

    @property
    def apart(self) -> NDArray[np.int64]:
        """The leaves that are not like their neighbours: points, and the one for missing values."""
        points = [int(np.searchsorted(self.edges, int(exact(point)))) for point in self.points]
        return np.array([*sorted(points), *range(self.cells, self.leaves)], np.int64)

    @property
    def leaves(self) -> int:
        """The number of leaves: the cells and, if declared, the one for missing values."""
        return self.cells + (self.missing is not None)

    def edge(self, cell: int) -> str:
        """Where a cell begins, as text; for the number after the last cell, where the grid ends."""
        if self.is_date:
            return (EPOCH + datetime.timedelta(days=int(self.edges[cell]))).isoformat()
        if self.is_whole:
            return str(int(self.edges[cell]))
        at = self.end if cell == self.cells else self.origin + cell * self.width
        return str(plain(Decimal(at.numerator) / Decimal(at.denominator)))

    def label(self, lo: int, hi: int) -> str:
        """Name a range of leaves: an interval, a single value where a cell is one, or what missing is called."""
        end = min(hi, self.cells)
        if lo >= end:
            return str(self.missing)
        single = self.is_whole and self.edges[end] - self.edges[lo] == 1
        closing = "]" if end == self.cells and not self.is_whole else ")"
        interval = self.edge(lo) if single else f"[{self.edge(lo)}, {self.edge(end)}{closing}"
        return interval if hi <= self.cells else f"{interval} or {self.missing}"

    def children(self, lo: int, hi: int) -> None:
        """None: a numeric range has no borders of its own; it is split where the data says, privately."""


def label_leaves(column: Categorical | Numeric, leaves: Sequence[int]) -> str:
    """Name a set of leaves: as a range where they are one, and otherwise one by one."""
    first, last = min(leaves), max(leaves)
    if last - first == len(leaves) - 1:
        return column.label(first, last + 1)
    return " | ".join(column.label(leaf, leaf + 1) for leaf in sorted(leaves))


@dataclass(frozen=True, eq=False)
class _Held:
    """An array that two equal attributes may each hold without being compared by it."""

    edges: NDArray[Any]


def _edges(origin: Fraction, end: Fraction, width: Fraction, own: list[int], whole: bool) -> NDArray[Any]:
    regular = -(-(end - origin) // width)
    if whole:
        grid = int(origin) + np.arange(regular, dtype=np.int64) * int(width)
        every = np.sort(np.concatenate([grid, np.array([*own, int(end)], np.int64)]))
        edges: NDArray[Any] = every[np.diff(every, prepend=every[0] - 1) > 0]
    else:
        edges = np.append(float(origin) + np.arange(regular) * float(width), float(end))
    edges.flags.writeable = False
    return edges


def _refuse_too_many(leaves: int) -> None:
    if leaves > MOST_LEAVES:
        raise SchemaError(
            f"an attribute must have at most {MOST_LEAVES:,} leaves, and this one has {leaves:,}",
            "Use a larger step or a coarser taxonomy.",
        )
