"""What a holder does before publishing: draft a schema, check that the table fits it, and look at its structure.

All of it reads the rows and tells things that are not private, so the answers are for the holder's eyes. Nothing is
published, so nothing is paid or noted in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.coclustering import Coclustering, histogram_of, kinds_of, variables_of
from sfumato.domain import refuse_large
from sfumato.errors import MethodError, TableError
from sfumato.io.draft import draft_schema
from sfumato.io.encode import Misfit, encode, refuse_misfits, survey
from sfumato.io.tables import open_table
from sfumato.modl import DataGrid, fit
from sfumato.modl.table import MOST_CELLS
from sfumato.schema import Schema


@dataclass(frozen=True)
class Fit:
    """How a table fits its schema. Not private."""

    rows: int
    misfits: tuple[Misfit, ...]
    """What has no leaf, by column and reason: with any of these, publishing is refused."""
    outside: dict[str, int]
    """By column, how many numbers lie outside the declared range and count in the nearest cell."""
    undeclared: tuple[str, ...]
    """Columns that the schema does not name, so that they are not read."""

    @property
    def fits(self) -> bool:
        """Whether every value has a leaf."""
        return not self.misfits


def draft(table: Any, name: str = "table", target: str | None = None) -> Schema:
    """Guess a schema from a table (a path or a frame), for a person to correct and confirm."""
    return draft_schema(open_table(table), name, target)


def check(table: Any, schema: Schema) -> Fit:
    """Tell which values of a table (a path or a frame) would not fit, before anything is spent."""
    coded = survey(open_table(table), schema)
    return Fit(coded.rows, coded.misfits, coded.outside, coded.undeclared)


def cocluster(
    table: Any, schema: Schema, *, cells: int | None = None, information: float | None = None
) -> Coclustering:
    """Put the values of all attributes of a table (a path or a frame) into the most probable groups and intervals, or
    into coarser ones: at most so many cells, or a share of the best grid's information. Not private.
    """
    _refuse_unfit(schema, information)
    coded = encode(open_table(table), schema)
    refuse_misfits(coded)
    if not coded.rows:
        raise TableError("a table must have rows to be co-clustered, and this one is empty", "Give another table.")
    codes = [coded.columns[name] for name in variables_of(schema)]
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
