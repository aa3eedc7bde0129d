"""Turn tables into leaf codes, as the schema says, once.

A value that fits becomes a small integer (`coders`); one that does not is counted by column and reason, for the holder,
and never shown.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato.arrays import Codes
from sfumato.errors import SchemaError, TableError, guarded, too_large
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.schema import Predictor, Schema
from sfumato.tables import values as reading
from sfumato.tables.coders import BatchCoder, CategoryCoder, CellCoder, CodedBatch, Encoder, PersonReader, code_type
from sfumato.tables.streams import Table

AT_A_TIME = 4
"""How many batches are coded at a time, at most."""
LISTED = 8
"""How many columns an error names at most."""


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


def encode(table: Table, schema: Schema) -> Coded:
    """The leaf codes of every row, of the declared columns; a misfit is counted, and has code 0."""
    columns = columns_to_read(table, schema)
    pieces: dict[str, list[Codes]] = {name: [np.zeros(0, code_type(facts))] for name, facts in columns.items()}
    read = Reading(table, schema)
    for batch in read.batches():
        for name, codes in batch.columns.items():
            pieces[name].append(codes)
    joined = guarded(lambda: {name: np.concatenate(pieces.pop(name)) for name in columns}, too_large)
    return replace(read.told(), columns=joined)


class Reading:
    """One reading of a table: batch by batch its codes and, at the end, what did not fit."""

    def __init__(self, table: Table, schema: Schema, person: str | None = None) -> None:
        """Read the attributes and, if a column is named for it, whom rows are about; refuse a table that lacks one."""
        self._coder = coder_of(columns_to_read(table, schema, person), schema, person)
        self._table, self._schema = table, schema
        self._misfits: Counter[tuple[str, int]] = Counter()
        self._outside: Counter[str] = Counter()
        self._rows = 0

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Reading(...)"

    def batches(self) -> Iterator[CodedBatch]:
        """Code all rows, in their order; a few batches at a time, so that few are in memory."""
        coder = self._coder
        ahead: deque[Future[CodedBatch]] = deque()
        threads = min(cores(), AT_A_TIME)
        with ThreadPoolExecutor(threads) as pool:
            for batch in self._table.batches(coder.columns):
                ahead.append(pool.submit(coder.code, batch))
                if len(ahead) > threads:
                    yield self._noted(ahead.popleft().result())
            while ahead:
                yield self._noted(ahead.popleft().result())

    def _noted(self, batch: CodedBatch) -> CodedBatch:
        self._rows += batch.rows
        self._misfits.update(batch.misfits)
        self._outside.update(batch.outside)
        return batch

    def told(self) -> Coded:
        """Everything but the codes."""
        return Coded(
            columns={},
            rows=self._rows,
            misfits=misfits_of(self._misfits),
            outside={name: rows for name, rows in self._outside.items() if rows},
            undeclared=self._schema.undeclared(self._table.columns),
        )


def cores() -> int:
    """How many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def misfits_of(counted: Counter[tuple[str, int]]) -> tuple[Misfit, ...]:
    """What has no leaf, by column and reason, in words."""
    return tuple(Misfit(name, reading.REASONS[reason], rows) for (name, reason), rows in sorted(counted.items()))


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


def columns_to_read(table: Table, schema: Schema, person: str | None = None) -> dict[str, Predictor]:
    """The declared columns that are no identifiers; a table that lacks one, or that of persons, is refused."""
    return declared_columns(table.lacks, schema, person)


def declared_columns(
    lacks: Callable[[list[str]], list[str]], schema: Schema, person: str | None = None
) -> dict[str, Predictor]:
    """The declared columns that are no identifiers; refuse a table that says it lacks one, or that of persons."""
    declared = {name: facts for name, facts in schema.attributes.items() if not isinstance(facts, Identifier)}
    if not declared:
        raise SchemaError("a schema must have an attribute that is no identifier", "Declare what should be published.")
    absent = lacks([*declared, *filter(None, [person])])
    if absent:
        raise TableError(
            f"the table must have every column that the schema declares, and lacks {', '.join(absent[:LISTED])}",
            "Correct the schema's names, or give the table these columns.",
        )
    return declared


def coder_of(columns: dict[str, Predictor], schema: Schema, person: str | None = None) -> BatchCoder:
    """What codes batches of these columns, and tells whom rows are about."""
    encoders = {name: encoder_of(facts, schema.missing_values) for name, facts in columns.items()}
    if person is None:
        return BatchCoder(encoders)
    absent = reading.Absent.of(schema.missing_values)
    return BatchCoder(encoders, PersonReader(person, absent, own=schema.missing_person == "own"))


def encoder_of(facts: Predictor, missing: list[str]) -> Encoder:
    """The function that codes batches of one column."""
    absent = absent_of(facts, missing)
    return CategoryCoder.of(facts, absent) if isinstance(facts, Categorical) else CellCoder.of(facts, absent)


def absent_of(facts: Predictor, missing: list[str]) -> reading.Absent:
    """The texts that mean "no value" in one column: the schema's and, of a numeric attribute, its own."""
    own = [facts.missing] if isinstance(facts, Numeric) and facts.missing else []
    return reading.Absent.of([*missing, *own])
