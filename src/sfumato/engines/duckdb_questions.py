"""A tally of a grid as one query for DuckDB: regions are found by joins with one small table per cut attribute.

The parts of the codes are digits of the region's number. The size of a query follows from the number of attributes,
never from the number of regions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Tally
from sfumato.engines.dialect import DuckDBDialect
from sfumato.engines.questions import Rows, cells_of
from sfumato.partition import Grid

WORDS = DuckDBDialect()

Columns = dict[str, NDArray[np.integer]]
"""A small table by column."""


@dataclass(frozen=True)
class Question:
    """A query with the small tables that it reads: their names are marked in it as {name}."""

    sql: str
    tables: dict[str, Columns]


def question_of(tally: Tally, rows: Rows) -> Question:
    """Ask for every cell (region, leaf, class) of every attribute that holds someone, in one scan."""
    grid = tally.partition
    assert isinstance(grid, Grid)
    tables: dict[str, Columns] = {}
    joins = []
    for attribute in grid.split_attributes:
        later = math.prod(grid.parts[attribute + 1 :])
        offsets = grid.part_of(attribute) * later
        tables[f"part{attribute}"] = {"leaf": np.arange(len(offsets), dtype=np.int32), "offset": offsets}
        joins.append(f" JOIN {{part{attribute}}} AS p{attribute} ON p{attribute}.leaf = c{attribute}")
    place = " + ".join(f"p{attribute}.offset" for attribute in grid.split_attributes) or "CAST(0 AS BIGINT)"
    placed = f"SELECT {', '.join(rows.columns)}, {place} AS place FROM {rows.table}{''.join(joins)}"
    return Question(WORDS.melted(cells_of(tally), f"({placed})", weighted=rows.weighted), tables)
