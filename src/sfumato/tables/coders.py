"""Code one batch of Arrow columns: a value becomes the number of its leaf, or a reason why it has none.

The privacy proof rests on one property of this module: the codes of a row are a function of that row and of the public
schema alone. Neighbouring tables differ in one record; if that record could change how another is read (by the type
that a whole column gets, by the border of a batch), one person would move many counts, and noise for one would not hide
them. So every value is read by a rule for that value, whatever stands beside it and in whatever type it arrives.

Nothing is needed here but NumPy and Arrow: this module travels to the executors of a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Codes, Floats, Integers
from sfumato.errors import guarded, unreadable
from sfumato.schema.codes import PrefixFinder
from sfumato.tables import values as reading

if TYPE_CHECKING:
    from sfumato.schema.attributes import Categorical, Numeric
    from sfumato.schema.schema import Predictor

TOLERANCE = 1e-9
"""A number that is below an edge of a decimal grid by no more than this part of a cell is taken to be on the edge."""
LONGEST_TABLE = 2**21
"""A grid of at most this many whole numbers keeps the cell of each in a table."""


@dataclass(frozen=True)
class Part:
    """The codes of one batch of one column, why some rows have none, and how many lay outside."""

    codes: Codes
    status: reading.Status | None
    """None where everything fits"""
    outside: int = 0

    def __repr__(self) -> str:
        """Say nothing of what is counted."""
        return "Part(...)"

    @property
    def misfits(self) -> dict[int, int]:
        """The number of rows without a leaf, by reason."""
        if self.status is None:
            return {}
        rows = np.bincount(self.status, minlength=1)
        return {reason: int(rows[reason]) for reason in np.flatnonzero(rows).tolist() if reason != reading.FINE}


Encoder = Callable[[reading.Array], Part]
"""Codes the values of one column."""


@dataclass(frozen=True)
class CodedBatch:
    """The codes of a batch, 0 where a value has none, and what there is to tell about it."""

    columns: dict[str, Codes]
    rows: int
    misfits: Counter[tuple[str, int]]
    """the number of rows without a leaf, by column and reason"""
    outside: Counter[str]
    """by column, how many numbers lay outside the declared range"""
    persons: pa.LargeBinaryArray | None = None
    """whom each row is about, null if it is about a person of its own; None where nobody asks"""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "CodedBatch(...)"


@dataclass(frozen=True)
class BatchCoder:
    """Codes batches of some columns, each by its own encoder, and reads whom rows are about."""

    encoders: Mapping[str, Encoder]
    person: PersonReader | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of a batch, in their order."""
        return [*self.encoders, *(() if self.person is None else (self.person.column,))]

    def code(self, batch: pa.RecordBatch) -> CodedBatch:
        """Code the columns of a batch."""
        columns: dict[str, Codes] = {}
        misfits: Counter[tuple[str, int]] = Counter()
        outside: Counter[str] = Counter()
        persons = None
        if self.person is not None:
            persons, reasons = guarded(partial(self.person.read, batch.columns[-1]), unreadable(self.person.column))
            misfits.update({(self.person.column, reason): rows for reason, rows in reasons.items()})
        for (name, encoder), array in zip(self.encoders.items(), batch.columns[: len(self.encoders)], strict=True):
            part = guarded(partial(encoder, array), unreadable(name))
            columns[name] = part.codes
            misfits.update({(name, reason): rows for reason, rows in part.misfits.items()})
            outside[name] += part.outside
        return CodedBatch(columns, batch.num_rows, misfits, outside, persons)


@dataclass(frozen=True)
class PersonReader:
    """Reads whom rows are about: identifiers of the same text are of one person, whatever stands beside them."""

    column: str
    absent: reading.Absent
    own: bool
    """whether a row without an identifier is about a person of its own; else it does not fit"""

    def read(self, array: reading.Array) -> tuple[pa.LargeBinaryArray, dict[int, int]]:
        """The identifiers, null where there is none, and how many rows do not fit, by reason.

        Texts that stand for what could not be read would make one person of many, so they do not fit.
        """
        if reading.is_nested(array.type):
            return pa.nulls(len(array), pa.large_binary()), {reading.NESTED: len(array)} if len(array) else {}
        distinct, places = reading.distinct(array)
        found = [self._read(text) for text in reading.texts(distinct)]
        rows = np.bincount(places, minlength=len(found))
        misfits: Counter[int] = Counter()
        for (_, reason), number in zip(found, rows.tolist(), strict=True):
            misfits[reason] += number
        identifiers = pa.array([one for one, _ in found], pa.large_binary()).take(pa.array(places))
        return identifiers, {reason: number for reason, number in misfits.items() if reason and number}

    def _read(self, text: str | None) -> tuple[bytes | None, int]:
        if text is None or text in self.absent:
            return None, reading.FINE if self.own else reading.MISSING
        if text == reading.NESTED_TEXT:
            return None, reading.NESTED
        if text == reading.UNREADABLE_TEXT or REPLACED in text:
            return None, reading.NO_TEXT
        return text.encode(), reading.FINE


REPLACED = "\ufffd"
"""Stands in a text for bytes that are none."""


def code_type(facts: Predictor) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds the codes of an attribute."""
    if facts.leaves <= 2**8:
        return np.uint8
    return np.uint16 if facts.leaves <= 2**16 else np.uint32


def _nested_part(array: reading.Array, kind: type[Any]) -> Part:
    null = array.is_null().to_numpy(zero_copy_only=False)
    return Part(np.zeros(len(array), kind), np.where(null, reading.MISSING, reading.NESTED).astype(np.uint8))


@dataclass(frozen=True)
class CategoryCoder:
    """Codes categories: looks up distinct values."""

    finder: LeafFinder
    kind: type[np.unsignedinteger[Any]]

    @classmethod
    def of(cls, facts: Categorical, absent: reading.Absent) -> CategoryCoder:
        """The coder of an attribute."""
        return cls(LeafFinder(facts, absent), code_type(facts))

    def __call__(self, array: reading.Array) -> Part:
        """Code values of any type."""
        if reading.is_nested(array.type):
            return _nested_part(array, self.kind)
        distinct, places = reading.distinct(array)
        found = np.array([self.finder.find(text) for text in reading.texts(distinct)])
        codes, status = found[:, 0].astype(self.kind), found[:, 1].astype(np.uint8)
        return Part(codes[places], status[places] if status.any() else None)


@dataclass(frozen=True)
class CellCoder:
    """Codes numbers or days: columns of such types directly, all others by distinct values.

    Where the schema says how values are written, all go by their texts, also those of a typed column: in a column of
    mixed values the same numbers come as texts, and one person's text must not change how others are read.
    """

    finder: CellFinder
    absent: reading.Absent
    kind: type[np.unsignedinteger[Any]]
    is_date: bool
    missing: int | None
    """the code of a missing value, if it has one"""
    written: str | None = None
    """how values are written, where it is not the plain way"""

    @classmethod
    def of(cls, facts: Numeric, absent: reading.Absent) -> CellCoder:
        """The coder of an attribute."""
        missing = None if facts.missing is None else facts.cells
        return cls(CellFinder(facts), absent, code_type(facts), facts.is_date, missing, facts.written)

    def __call__(self, array: reading.Array) -> Part:
        """Code values of any type."""
        if reading.is_nested(array.type):
            return _nested_part(array, self.kind)
        places = None
        if self.written is not None or not (reading.is_day if self.is_date else reading.is_number)(array.type):
            array, places = reading.distinct(array)
            array = reading.rewritten(array, self.written)
        readings = (reading.days if self.is_date else reading.numbers)(array, self.absent)
        cells, outside = self.finder.find(readings.values)
        status = readings.status
        if status.any():
            cells[status != reading.FINE] = 0
            outside &= status == reading.FINE
            if self.missing is not None:
                cells[status == reading.MISSING] = self.missing
                status = np.where(status == reading.MISSING, reading.FINE, status).astype(np.uint8)
        codes = cells.astype(self.kind)
        if places is not None:
            codes, outside, status = codes[places], outside[places], status[places]
        return Part(codes, status if status.any() else None, int(np.count_nonzero(outside)))


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
