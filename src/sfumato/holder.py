"""What a holder does before publishing: draft a schema, and check that the table fits it.

Both read the rows and tell things that are not private, so their answers are for the holder's eyes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.io.draft import draft_schema
from sfumato.io.encode import Misfit, encode
from sfumato.io.tables import open_table
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
    coded = encode(open_table(table), schema)
    return Fit(coded.rows, coded.misfits, coded.outside, coded.undeclared)
