"""From values to leaf codes, once, at the door.

It stands apart because here alone a value meets the schema: what fits becomes a small integer, what does not is
counted by column and reason, for the holder, and never shown.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attributes import EPOCH, Categorical, Identifier, Numeric
from sfumato.errors import SchemaError, TableError
from sfumato.io import values as reading
from sfumato.io.tables import Table
from sfumato.schema import Predictor, Schema

TOLERANCE = 1e-9
LISTED = 8

Codes = NDArray[Any]


@dataclass(frozen=True)
class Misfit:
    """Why some rows of a column have no leaf."""

    column: str
    reason: str
    rows: int = field(repr=False)


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as leaf codes, and what did not fit. What it shows of itself is public: names of columns."""

    columns: dict[str, Codes] = field(repr=False)
    """One code array per attribute that is no identifier, in the order of the schema."""
    rows: int = field(repr=False)
    misfits: tuple[Misfit, ...] = ()
    outside: dict[str, int] = field(default_factory=dict, repr=False)
    """How many numbers lay outside the declared range and count in the nearest cell."""
    undeclared: tuple[str, ...] = ()
    """Columns of the table that the schema does not name; they were not read."""


@dataclass(frozen=True)
class _Part:
    """The codes of one batch of one column, with the rows that had none (by reason) or lay outside."""

    codes: Codes
    misfits: dict[int, int]
    outside: int = 0


_Encoder = Callable[[reading.Array], _Part]


def encode(table: Table, schema: Schema) -> Coded:
    """Read the declared columns and give every row its leaf codes; a misfit counts, and gets code 0."""
    columns = {name: facts for name, facts in schema.attributes.items() if not isinstance(facts, Identifier)}
    _refuse_absent(table, list(columns))
    encoders = {name: _encoder(facts, frozenset(schema.missing_values)) for name, facts in columns.items()}
    pieces: dict[str, list[Codes]] = {name: [] for name in columns}
    misfits: Counter[tuple[str, int]] = Counter()
    outside: Counter[str] = Counter()
    for batch in table.batches(list(columns)):
        for name, array in zip(columns, batch.columns, strict=True):
            part = encoders[name](array)
            pieces[name].append(part.codes)
            misfits.update({(name, reason): rows for reason, rows in part.misfits.items()})
            outside[name] += part.outside
    coded = {
        name: np.concatenate([np.zeros(0, code_type(facts)), *pieces.pop(name)]) for name, facts in columns.items()
    }
    return Coded(
        columns=coded,
        rows=len(next(iter(coded.values()))),
        misfits=tuple(Misfit(name, reading.REASONS[reason], rows) for (name, reason), rows in sorted(misfits.items())),
        outside={name: rows for name, rows in outside.items() if rows},
        undeclared=tuple(name for name in table.columns if name not in schema.attributes),
    )


def refuse_misfits(coded: Coded) -> None:
    """Raise one error that says, column by column, how many rows have no leaf and why."""
    if not coded.misfits:
        return
    listed = [f"{misfit.column}: {misfit.reason}, {misfit.rows:,} rows" for misfit in coded.misfits[:LISTED]]
    if len(coded.misfits) > LISTED:
        listed.append(f"and {len(coded.misfits) - LISTED} more")
    raise TableError(
        f"every value must fit the schema, and some do not ({'; '.join(listed)})",
        "Correct the table, or declare `missing` or `unseen` leaves in the schema; see `sfumato check`.",
    )


def code_type(facts: Predictor) -> type[np.unsignedinteger[Any]]:
    """Choose the smallest unsigned type that holds the leaves."""
    if facts.leaves <= 2**8:
        return np.uint8
    return np.uint16 if facts.leaves <= 2**16 else np.uint32


def _refuse_absent(table: Table, names: list[str]) -> None:
    if not names:
        raise SchemaError("a schema must have an attribute that is no identifier", "Declare what should be published.")
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise TableError(
            f"the table must have every column that the schema declares, and lacks {', '.join(absent[:LISTED])}",
            "Correct the schema's names, or give the table these columns.",
        )


def _encoder(facts: Predictor, absent: frozenset[str]) -> _Encoder:
    if isinstance(facts, Categorical):
        return _categories(facts, absent)
    return _cells(facts, absent)


def _nested_part(array: reading.Array, kind: type[Any]) -> _Part:
    given = len(array) - array.null_count
    misfits = {reading.NESTED: given, reading.MISSING: array.null_count}
    return _Part(np.zeros(len(array), kind), {reason: rows for reason, rows in misfits.items() if rows})


def _misfits(status: reading.Status) -> dict[int, int]:
    rows = np.bincount(status, minlength=1)
    return {reason: int(rows[reason]) for reason in np.flatnonzero(rows).tolist() if reason != reading.FINE}


def _categories(facts: Categorical, absent: frozenset[str]) -> _Encoder:
    """Look distinct values up by name; a name the taxonomy holds is itself even if it is also a text for "missing"."""
    names = {name: code for code, name in enumerate(facts.tree.leaves)}
    missing = None if facts.missing is None else names[facts.missing]
    unseen = None if facts.unseen is None else names[facts.unseen]
    kind = code_type(facts)

    def look_up(text: str | None) -> tuple[int, int]:
        if text is not None and text in names:
            return names[text], reading.FINE
        code, reason = (missing, reading.MISSING) if text is None or text in absent else (unseen, reading.NOT_NAMED)
        return (0, reason) if code is None else (code, reading.FINE)

    def encode_array(array: reading.Array) -> _Part:
        if reading.is_nested(array.type):
            return _nested_part(array, kind)
        values, places = reading.distinct(array)
        found = np.array([look_up(text) for text in reading.texts(values)])
        codes, status = found[:, 0].astype(kind), found[:, 1].astype(np.uint8)
        return _Part(codes[places], _misfits(status[places]) if status.any() else {})

    return encode_array


def _cells(facts: Numeric, absent: frozenset[str]) -> _Encoder:
    """Find the cell of each number or day: of distinct texts once, of numbers directly."""
    read = reading.days if facts.is_date else reading.numbers
    no_value = absent | ({facts.missing} if facts.missing else frozenset())
    kind = code_type(facts)
    grid = Grid.of(facts)

    def encode_array(array: reading.Array) -> _Part:
        if reading.is_nested(array.type):
            return _nested_part(array, kind)
        places = None
        if reading.is_text(array.type) or pa.types.is_dictionary(array.type):
            array, places = reading.distinct(array)
        readings = read(array, no_value)
        cells, outside = grid.cells_of(readings.values)
        status = readings.status
        if status.any():
            cells[status != reading.FINE] = 0
            outside &= status == reading.FINE
            if facts.missing is not None:
                cells[status == reading.MISSING] = facts.cells
                status = np.where(status == reading.MISSING, reading.FINE, status).astype(np.uint8)
        cells = cells.astype(kind)
        if places is not None:
            cells, outside, status = cells[places], outside[places], status[places]
        return _Part(cells, _misfits(status) if status.any() else {}, int(np.count_nonzero(outside)))

    return encode_array


@dataclass(frozen=True)
class Grid:
    """The public cells of a numeric attribute as plain arithmetic."""

    lower: Fraction
    upper: Fraction
    width: Fraction
    cells: int

    @classmethod
    def of(cls, facts: Numeric) -> Grid:
        """Take the grid from the schema."""
        upper = facts.upper
        end = Fraction((upper - EPOCH).days) if isinstance(upper, datetime.date) else Fraction(upper)
        return cls(facts.origin, end, facts.width, facts.cells)

    def cells_of(self, numbers: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Give each number its cell, or the nearest one, and tell which lay outside the bounds."""
        whole = self.lower.denominator == self.width.denominator == 1
        small = max(abs(self.lower), abs(self.upper), self.width) < 2**62
        return self._exactly(numbers) if whole and small and numbers.dtype == np.int64 else self._nearly(numbers)

    def _exactly(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        lower, upper, width = int(self.lower), self.upper.__floor__(), int(self.width)
        inside = np.clip(numbers, lower, upper)
        outside = inside != numbers
        cells = inside - lower
        if width > 1:
            cells //= width
        return cells, outside

    def _nearly(self, numbers: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Allow for the rounding of decimal fractions, and of the type they came in, at the edges of cells.

        All is scaled by one power of two, which rounds nothing, so that no bound is too large for a float.
        """
        precision = float(np.finfo(numbers.dtype).eps) if numbers.dtype.kind == "f" else 0.0
        largest = max(abs(self.lower), abs(self.upper), self.width)
        power = largest.numerator.bit_length() - largest.denominator.bit_length()
        lower, upper, width = (float(part / Fraction(2) ** power) for part in (self.lower, self.upper, self.width))
        with np.errstate(over="ignore", under="ignore"):
            near = np.clip(np.ldexp(numbers.astype(np.float64), -power), lower - width, upper + width)
        slack = TOLERANCE * width + precision * np.abs(near)
        outside = (near < lower - slack) | (near > upper + slack)
        cells = np.floor((near - lower + slack) / width)
        return np.clip(cells, 0, self.cells - 1).astype(np.int64), outside
