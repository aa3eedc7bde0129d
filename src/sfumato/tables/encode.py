"""Turn values into leaf codes, as the schema says, once.

A value that fits becomes a small integer; one that does not is counted by column and reason, for the holder, and never
shown.

The privacy proof rests on one property of this module: the codes of a row are a function of that row and of the public
schema alone. Neighbouring tables differ in one record; if that record could change how another is read (by the type
that a whole column gets, by the border of a batch), one person would move many counts, and noise for one would not hide
them. So every value is read by a rule for that value, whatever stands beside it and in whatever type it arrives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Codes, Floats, Integers
from sfumato.errors import SchemaError, TableError, guarded, too_large, unreadable
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.codes import PrefixFinder
from sfumato.schema.schema import Predictor, Schema
from sfumato.tables import values as reading
from sfumato.tables.streams import Table

TOLERANCE = 1e-9
"""A number that is below an edge of a decimal grid by no more than this part of a cell is taken to be on the edge."""
LISTED = 8
"""How many columns an error names at most."""
LONGEST_TABLE = 2**21
"""A grid of at most this many whole numbers keeps the cell of each in a table."""


@dataclass(frozen=True)
class Misfit:
    """Why some rows of a column have no leaf."""

    column: str
    reason: str
    rows: int = field(repr=False)


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as leaf codes, and what did not fit. Its repr shows only what is public: names of columns."""

    columns: dict[str, Codes] = field(repr=False)
    """the codes of each attribute that is no identifier, in the order of the schema"""
    rows: int = field(repr=False)
    misfits: tuple[Misfit, ...] = ()
    outside: dict[str, int] = field(default_factory=dict, repr=False)
    """by column, how many numbers lay outside the declared range and count in the nearest cell"""
    undeclared: tuple[str, ...] = ()
    """columns of the table that the schema does not name; they were not read"""


@dataclass(frozen=True)
class Part:
    """The codes of one batch of one column, why some rows have none, and how many lay outside."""

    codes: Codes
    status: reading.Status | None
    """None where everything fits"""
    outside: int = 0

    @property
    def misfits(self) -> dict[int, int]:
        """The number of rows without a leaf, by reason."""
        if self.status is None:
            return {}
        rows = np.bincount(self.status, minlength=1)
        return {reason: int(rows[reason]) for reason in np.flatnonzero(rows).tolist() if reason != reading.FINE}


Encoder = Callable[[reading.Array], Part]


def encode(table: Table, schema: Schema) -> Coded:
    """The leaf codes of every row, of the declared columns; a misfit is counted, and has code 0."""
    columns = columns_to_read(table.columns, schema)
    pieces: dict[str, list[Codes]] = {name: [np.zeros(0, code_type(facts))] for name, facts in columns.items()}
    found = _read(table, schema, lambda name, codes: pieces[name].append(codes))
    joined = guarded(lambda: {name: np.concatenate(pieces.pop(name)) for name in columns}, too_large)
    return replace(found, columns=joined)


def _read(table: Table, schema: Schema, keep: Callable[[str, Codes], None]) -> Coded:
    """Pass the codes of each batch to `keep`, column by column; return all else."""
    columns = columns_to_read(table.columns, schema)
    encoders = {name: encoder_of(facts, schema.missing_values) for name, facts in columns.items()}
    misfits: Counter[tuple[str, int]] = Counter()
    outside: Counter[str] = Counter()
    number = 0
    for batch in table.batches(list(columns)):
        number += batch.num_rows
        for name, array in zip(columns, batch.columns, strict=True):
            part = guarded(partial(encoders[name], array), unreadable(name))
            keep(name, part.codes)
            misfits.update({(name, reason): rows for reason, rows in part.misfits.items()})
            outside[name] += part.outside
    return Coded(
        columns={},
        rows=number,
        misfits=tuple(Misfit(name, reading.REASONS[reason], rows) for (name, reason), rows in sorted(misfits.items())),
        outside={name: rows for name, rows in outside.items() if rows},
        undeclared=tuple(name for name in table.columns if name not in schema.attributes),
    )


def refuse_misfits(coded: Coded) -> None:
    """Raise one error that says, column by column, why rows have no leaf, but not how many (`check` tells that)."""
    if not coded.misfits:
        return
    listed = [f"{misfit.column}: {misfit.reason}" for misfit in coded.misfits[:LISTED]]
    if len(coded.misfits) > LISTED:
        listed.append(f"and {len(coded.misfits) - LISTED} more")
    raise TableError(
        f"every value must fit the schema, and some do not ({'; '.join(listed)})",
        "Correct the table, or declare `missing` or `unseen` leaves in the schema; `sfumato check` tells how many.",
    )


def code_type(facts: Predictor) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds the codes of an attribute."""
    if facts.leaves <= 2**8:
        return np.uint8
    return np.uint16 if facts.leaves <= 2**16 else np.uint32


def columns_to_read(present: Collection[str], schema: Schema) -> dict[str, Predictor]:
    """The declared columns that are no identifiers; a table that lacks one is refused."""
    declared = {name: facts for name, facts in schema.attributes.items() if not isinstance(facts, Identifier)}
    if not declared:
        raise SchemaError("a schema must have an attribute that is no identifier", "Declare what should be published.")
    absent = [name for name in declared if name not in present]
    if absent:
        raise TableError(
            f"the table must have every column that the schema declares, and lacks {', '.join(absent[:LISTED])}",
            "Correct the schema's names, or give the table these columns.",
        )
    return declared


def encoder_of(facts: Predictor, missing: list[str]) -> Encoder:
    """The function that codes batches of one column."""
    absent = absent_of(facts, missing)
    return _categories(facts, absent) if isinstance(facts, Categorical) else _cells(facts, absent)


def absent_of(facts: Predictor, missing: list[str]) -> reading.Absent:
    """The texts that mean "no value" in one column: the schema's and, of a numeric attribute, its own."""
    own = [facts.missing] if isinstance(facts, Numeric) and facts.missing else []
    return reading.Absent.of([*missing, *own])


def _nested_part(array: reading.Array, kind: type[Any]) -> Part:
    null = array.is_null().to_numpy(zero_copy_only=False)
    return Part(np.zeros(len(array), kind), np.where(null, reading.MISSING, reading.NESTED).astype(np.uint8))


def _categories(facts: Categorical, absent: reading.Absent) -> Encoder:
    """Code categories: look up distinct values."""
    finder = LeafFinder(facts, absent)
    kind = code_type(facts)

    def encode_array(array: reading.Array) -> Part:
        if reading.is_nested(array.type):
            return _nested_part(array, kind)
        distinct, places = reading.distinct(array)
        found = np.array([finder.find(text) for text in reading.texts(distinct)])
        codes, status = found[:, 0].astype(kind), found[:, 1].astype(np.uint8)
        return Part(codes[places], status[places] if status.any() else None)

    return encode_array


def _cells(facts: Numeric, absent: reading.Absent) -> Encoder:
    """Code numbers or days: columns of such types directly, all others by distinct values."""
    read, is_direct = (reading.days, reading.is_day) if facts.is_date else (reading.numbers, reading.is_number)
    kind = code_type(facts)
    finder = CellFinder(facts)

    def encode_array(array: reading.Array) -> Part:
        if reading.is_nested(array.type):
            return _nested_part(array, kind)
        places = None
        if not is_direct(array.type):
            array, places = reading.distinct(array)
            array = reading.rewritten(array, facts.written)
        readings = read(array, absent)
        cells, outside = finder.find(readings.values)
        status = readings.status
        if status.any():
            cells[status != reading.FINE] = 0
            outside &= status == reading.FINE
            if facts.missing is not None:
                cells[status == reading.MISSING] = facts.cells
                status = np.where(status == reading.MISSING, reading.FINE, status).astype(np.uint8)
        codes = cells.astype(kind)
        if places is not None:
            codes, outside, status = codes[places], outside[places], status[places]
        return Part(codes, status if status.any() else None, int(np.count_nonzero(outside)))

    return encode_array


class LeafFinder:
    """Finds the leaf of a taxonomy that a text means: by name, then by the number that the name writes.

    A name of the taxonomy means itself even if it is also a text for "missing". A code means the leaf that begins it.
    """

    def __init__(self, facts: Categorical, absent: reading.Absent) -> None:
        """Read the names of the leaves."""
        leaves = {name: code for code, name in enumerate(facts.tree.leaves)}
        self.names = leaves | {value.strip(): leaves[label] for value, label in facts.labels.items()}
        self.absent = absent
        self._values = _by_value(self.names) if facts.codes is None else {}
        self._prefix = None if facts.codes is None else PrefixFinder(facts.codes)
        self._missing = None if facts.missing is None else self.names[facts.missing]
        self._unseen = None if facts.unseen is None else self.names[facts.unseen]

    def find(self, text: str | None) -> tuple[int, int]:
        """The leaf and FINE, or 0 and the reason why there is none."""
        if text == reading.NESTED_TEXT:
            return 0, reading.NESTED
        code = None if text is None else self.names.get(text)
        if code is None and text is not None and text not in self.absent:
            code = self._prefix.find(text) if self._prefix else self._values.get(reading.canonical(text))
        if code is not None:
            return code, reading.FINE
        gone = text is None or text in self.absent
        code, reason = (self._missing, reading.MISSING) if gone else (self._unseen, reading.NOT_NAMED)
        return (0, reason) if code is None else (code, reading.FINE)


def _by_value(names: dict[str, int]) -> dict[str, int]:
    """Leaves by the number that they write, in one form; of leaves that write the same number, the one in that form."""
    values: dict[str, int] = {}
    for name, code in names.items():
        value = reading.canonical(name)
        values.setdefault(value, names.get(value, code))
    return values


class CellFinder:
    """Finds the cell of a numeric attribute that holds a number, each number by itself."""

    def __init__(self, facts: Numeric) -> None:
        """Read the grid."""
        self.whole = facts.is_whole
        self.edges = facts.edges
        self.cells = facts.cells
        self.lower, self.upper = float(facts.origin), float(facts.end)
        self.width = max(float(facts.width), float(np.finfo(np.float64).smallest_subnormal))
        short = self.whole and self.edges[-1] - self.edges[0] <= LONGEST_TABLE
        self.table = np.repeat(np.arange(self.cells), np.diff(self.edges)) if short else None

    def find(self, numbers: NDArray[Any]) -> tuple[Integers, Booleans]:
        """The cell of each number, or the nearest one, and whether it lay outside the bounds.

        Bounds are below 2^53 in size: there every whole number is exact as a float, too, and a larger one stays outside
        however it is rounded. So integers and floats that are equal share a cell.
        """
        return self._among_whole_numbers(numbers) if self.whole else self._among_decimals(numbers.astype(np.float64))

    def _among_whole_numbers(self, numbers: NDArray[Any]) -> tuple[Integers, Booleans]:
        """Compare the whole number below with the edges."""
        first, last = int(self.edges[0]), int(self.edges[-1]) - 1
        floors = numbers if numbers.dtype.kind == "i" else np.floor(numbers)
        near = np.clip(floors, first, last)
        inside = near.astype(np.int64, copy=False)
        if self.table is not None:
            return self.table[inside - first], near != floors
        return np.searchsorted(self.edges, inside, side="right") - 1, near != floors

    def _among_decimals(self, numbers: Floats) -> tuple[Integers, Booleans]:
        """Divide by the width, allowing for the rounding of decimal fractions at the edges of cells."""
        near = np.clip(numbers, self.lower, self.upper)
        cells = np.floor((near - self.lower) / self.width + TOLERANCE)
        return np.clip(cells, 0, self.cells - 1).astype(np.int64), near != numbers
