"""What someone who has the rows does with them, besides publishing: draft a schema, check that the table fits it, read
it as codes, look at its structure, and let a release classify it.

All of it reads rows and tells things that are not private, so the answers are for the holder's eyes. Nothing is
published, so nothing is paid or noted in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers
from sfumato.bounds import private_bounds
from sfumato.errors import BudgetError, MethodError, TableError
from sfumato.modl import Coordinates, DataGrid, fit
from sfumato.modl.grid import MOST_CELLS
from sfumato.privacy.budget import epsilon_of
from sfumato.privacy.ledger import Ledger
from sfumato.release.release import Release
from sfumato.schema.attributes import Numeric, label_leaves
from sfumato.schema.codebooks import CodeBook, read_codebook
from sfumato.schema.schema import Schema, kinds_of, refuse_large, variables_of
from sfumato.tables.draft import Drafted, draft_schema
from sfumato.tables.encode import Coded, Misfit, encode, refuse_misfits
from sfumato.tables.findings import Finding, survey
from sfumato.tables.microdata import is_statistics, labels_of
from sfumato.tables.persons import RowsOfPersons
from sfumato.tables.sources import open_table

NOT_PRIVATE = "NOT PRIVATE: exact counts of the table, for the holder's eyes. Do not publish them."
"""What stands above exact counts."""


def draft(
    table: Any,
    name: str = "table",
    target: str | None = None,
    *,
    decimal: str | None = None,
    date_format: str | None = None,
    codebook: str | Path | None = None,
    person: str | None = None,
    rows_per_person: int = 1,
    epsilon: str | float | Fraction | None = None,
    ledger: str | Path | None = None,
    budget: str | float | Fraction | None = None,
    watch: Callable[[str], None] = lambda _: None,
) -> Drafted:
    """Guess a schema from a table (a path or a frame), with the reason for each column, for a person to confirm.

    `decimal` is the mark of numbers, "." or ",", and `date_format` the form of days, such as "DD/MM/YYYY", where they
    cannot be told from the values. A `codebook` (a file or a folder, or the labels inside a file of SPSS, Stata or SAS)
    declares what needs no guess. `person` is the column that tells whom a row is about, of whom at most
    `rows_per_person` rows count. With an `epsilon`, bounds are found privately and paid for in the table's `ledger`,
    which begins with the lifetime `budget` if there is none yet; all else of a draft is no more private than without.
    """
    opened = open_table(table)
    found = draft_schema(
        opened,
        name,
        target,
        book=_book(table, codebook, opened.columns),
        decimal=decimal,
        date_format=date_format,
        budget=None if budget is None else epsilon_of(budget),
        watch=watch,
    )
    if person is not None:
        found = found.about(person, rows_per_person)
    if epsilon is None or not found.bounded:
        return found
    if ledger is None:
        raise BudgetError("bounds found with epsilon must be paid for in a ledger", "Name the ledger of the table.")
    book, price = Ledger(ledger, name, found.schema.budget), epsilon_of(epsilon)
    facts = found.schema
    bounds = private_bounds(
        table,
        found.bounded,
        price,
        book,
        facts.missing_values,
        person=facts.person,
        rows_per_person=facts.rows_per_person,
        watch=watch,
    )
    return found.with_bounds(bounds)


def _book(table: Any, codebook: str | Path | None, columns: Sequence[str]) -> CodeBook | None:
    """The code book that was given, or the one inside the table's own file."""
    given = codebook if codebook is not None else table
    if isinstance(given, str | Path) and is_statistics(given):
        return labels_of(Path(given).expanduser())
    return None if codebook is None else read_codebook(codebook, columns)


def check(table: Any, schema: Schema) -> Fit:
    """List the values of a table (a path or a frame) that would not fit, and what the schema would betray of it."""
    found, findings, persons = survey(open_table(table), schema)
    return Fit(found.rows, found.misfits, found.outside, found.undeclared, findings, persons)


@dataclass(frozen=True)
class Fit:
    """How a table fits its schema. Not private."""

    rows: int
    misfits: tuple[Misfit, ...]
    """what has no leaf, by column and reason: with any of these, publishing is refused"""
    outside: dict[str, int]
    """by column, how many numbers lie outside the declared range and count in the nearest cell"""
    undeclared: tuple[str, ...]
    """columns that the schema does not name, so that they are not read"""
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    """what the schema would betray, columns that say the same, and identifiers that repeat"""
    persons: RowsOfPersons | None = field(default=None, repr=False)
    """how many rows persons have, where the schema names them"""

    @property
    def fits(self) -> bool:
        """Whether every value has a leaf."""
        return not self.misfits

    @property
    def betrays(self) -> bool:
        """Whether the schema holds what few people have."""
        return any(one.betrays for one in self.findings)


def coded(table: Any, schema: Schema, *, misfits: bool = False) -> Coded:
    """Read a table (a path or a frame) as leaf codes; refuse what does not fit the schema, unless `misfits`."""
    found = encode(open_table(table), schema)
    if not misfits:
        refuse_misfits(found)
    return found


def raw_rows(table: Any, columns: Sequence[str] | None = None, rows: int | None = None) -> pa.Table:
    """Read some columns of a table (a path or a frame) as they are, or all; all rows, or so many of the first."""
    opened = open_table(table)
    names = list(opened.columns if columns is None else columns)
    kept: list[pa.RecordBatch] = []
    for batch in opened.batches(names):
        kept.append(batch if rows is None else batch.slice(0, rows - sum(map(len, kept))))
        if rows is not None and sum(map(len, kept)) >= rows:
            break
    return pa.Table.from_batches(kept) if kept else pa.table({name: pa.nulls(0) for name in names})


def classify(release: Release, table: Any) -> NDArray[np.str_]:
    """Predict by a release the class of each row of a table (a path or a frame, with or without a class column)."""
    schema = release.schema
    predictors = Schema(missing_values=schema.missing_values, attributes=dict(schema.predictors))
    return np.asarray(schema.classes)[release.classify_codes(coded(table, predictors).columns)]


def cocluster(
    table: Any, schema: Schema, *, cells: int | None = None, information: float | None = None
) -> Coclustering:
    """Put the values of all attributes of a table (a path or a frame) into the most probable groups and intervals.

    Or into coarser ones: at most so many `cells`, or a share of the best grid's `information`. Not private.
    """
    _refuse_unfit(schema, information)
    rows = coded(table, schema)
    if not rows.rows:
        raise TableError("a table must have rows to be co-clustered, and this one is empty", "Give another table.")
    codes = [rows.columns[name] for name in variables_of(schema)]
    best = fit(histogram_of(schema, codes), kinds_of(schema))
    return Coclustering.of(schema, codes, _cut(best, cells, information))


def _refuse_unfit(schema: Schema, information: float | None) -> None:
    if len(variables_of(schema)) < 2:
        raise MethodError("co-clustering must have two attributes or more", "Name more of them.")
    if information is not None and not 0 <= information <= 1:
        raise MethodError(f"information ({information}) must be a share from 0 to 1", "Give for example 0.9.")
    refuse_large(schema, MOST_CELLS, "Name fewer attributes, or give those a coarser grid.")


def _cut(best: DataGrid, cells: int | None, information: float | None) -> DataGrid:
    if cells is None and information is None:
        return best
    return best.cut(cells=cells, information=information)


def histogram_of(schema: Schema, codes: Sequence[Codes]) -> Coordinates:
    """Count coded rows, a column for each variable, by combination of leaves."""
    shape = tuple(column.leaves for column in variables_of(schema).values())
    cells, rows = np.unique(np.ravel_multi_index(tuple(codes), shape), return_counts=True)
    return Coordinates(np.stack(np.unravel_index(cells, shape), axis=1), rows, shape)


@dataclass(frozen=True, eq=False)
class Coclustering:
    """The grid of a table's own rows, with exact counts. NOT private."""

    schema: Schema
    grid: DataGrid
    counts: Integers = field(repr=False)
    """how many rows lie in each cell of the grid: one axis for each variable"""
    leaf_counts: tuple[Integers, ...] = field(repr=False)
    """for each variable, how many rows have each leaf"""

    @classmethod
    def of(cls, schema: Schema, codes: Sequence[Codes], grid: DataGrid) -> Coclustering:
        """Count coded rows, a column for each variable, by the cells of a grid."""
        places = np.ravel_multi_index(
            tuple(labels[column] for labels, column in zip(grid.labels, codes, strict=True)), grid.shape
        )
        counts = np.bincount(places, minlength=grid.cells).reshape(grid.shape)
        leaves = tuple(
            np.bincount(column, minlength=len(labels)) for labels, column in zip(grid.labels, codes, strict=True)
        )
        return cls(schema, grid, counts, leaves)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the grid's axes."""
        return tuple(variables_of(self.schema))

    @property
    def informative(self) -> tuple[int, ...]:
        """The axes of the variables that are cut into parts: the others tell nothing of each other."""
        return tuple(axis for axis, parts in enumerate(self.grid.shape) if parts > 1)

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each variable, by name."""
        return {
            name: tuple(self.part(axis, leaves) for leaves in self.grid.parts[axis])
            for axis, name in enumerate(self.variables)
        }

    def part(self, axis: int, leaves: Sequence[int]) -> Part:
        """Name and count some leaves of a variable; of a numeric one, all from the first to the last."""
        column, rows = variables_of(self.schema)[self.variables[axis]], self.leaf_counts[axis]
        if isinstance(column, Numeric):
            interval = column.label(leaves[0], leaves[-1] + 1)
            return Part(interval, (interval,), int(rows[leaves[0] : leaves[-1] + 1].sum()))
        seen = sorted((leaf for leaf in leaves if rows[leaf]), key=lambda leaf: -rows[leaf])
        values = tuple(column.label(leaf, leaf + 1) for leaf in seen)
        return Part(label_leaves(column, leaves), values, int(rows[list(leaves)].sum()))


@dataclass(frozen=True)
class Part:
    """A group of values, or an interval, and how many rows lie in it."""

    name: str
    values: tuple[str, ...]
    """the values that occur, the most frequent first; an interval is one value"""
    rows: int = field(repr=False)
