"""Neighbouring tables on a tiny public domain: those on which mistakes are most likely to show.

Few cells, so that every event is frequent; and the one record stands where code is tempted to look: in an empty table,
alone in a leaf or a class, at the end of a range, where it breaks a tie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.memory import MemoryEngine
from sfumato.schema import Schema

Codes = tuple[int, ...]

SCHEMA = Schema.loads("""
name: neighbours
confirmed: true
attributes:
  job: {kind: categorical, taxonomy: {Office: [Clerk, Judge], Field: [Farmer]}}
  age: {kind: numeric, lower: 0, upper: 3, missing: Unknown}
  class: {kind: class, taxonomy: [Yes, No]}
""")

COMMON, OTHER, LAST, UNKNOWN = (0, 0, 0), (1, 1, 0), (2, 3, 1), (2, 4, 1)
"""Records: leaf of job, leaf of age, class."""


@dataclass(frozen=True)
class Pair:
    """A table, and one record more."""

    name: str
    rows: tuple[Codes, ...]
    record: Codes

    def table(self, *, complete: bool) -> NDArray[np.uint8]:
        """Give the coded rows of the table with the record, or without it."""
        rows = [*self.rows, self.record] if complete else [*self.rows]
        return np.array(rows, np.uint8).reshape(len(rows), len(self.record))


def engine_of(table: NDArray[np.uint8]) -> MemoryEngine:
    """Put coded rows, the class last, behind an engine."""
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


CROWD = (COMMON,) * 60 + (LAST,) * 60

PAIRS = (
    Pair("nobody, and one record", (), COMMON),
    Pair("one record, and two alike", (COMMON,), COMMON),
    Pair("ten alike, and one of another class in a leaf of its own", (COMMON,) * 10, LAST),
    Pair("ten alike, and one whose number is missing", (COMMON,) * 10, UNKNOWN),
    Pair("two of two classes, and one that breaks the tie", ((0, 0, 0), (0, 2, 1)), (1, 1, 1)),
    Pair("a crowd, and one more on its side", CROWD, COMMON),
    Pair("a crowd, and one between", CROWD, OTHER),
)
