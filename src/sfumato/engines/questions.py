"""A tally in SQL: what every row is counted by, and how the answer is put together.

Every row has a column `c0`, `c1`, ... for each attribute and `k` for the class, `w` if it stands for several records.
Where a row lies, its `place`, each engine finds in its own way (`duckdb_questions`, `spark_questions`); what follows is
arithmetic: the cells of all attributes are numbered one after the other, so that one aggregation counts them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from sfumato.counts.tally import Breakdown, Counts, Integers, Tally

WORTH_MERGING = 2
"""Rows that are alike become one, with a weight, if there are so many times fewer different ones."""


@dataclass(frozen=True)
class Rows:
    """What a table of coded rows is called, and what columns it has."""

    table: str
    attributes: int
    weighted: bool

    @property
    def columns(self) -> list[str]:
        """The columns that never change."""
        return [*(f"c{attribute}" for attribute in range(self.attributes)), "k", *(["w"] if self.weighted else [])]


def cells_of(tally: Tally) -> list[str]:
    """Write the cells of a row that lies in a place: one of each attribute, or that of its class."""
    cells = [
        f"{start} + (place * {tally.leaves(attribute)} + c{attribute}) * {tally.classes} + k"
        for attribute, start in zip(tally.attributes, _starts(tally), strict=False)
    ]
    wide = "BIGINT" if _starts(tally)[-1] >= 2**31 else "INT"
    return [f"CAST({cell} AS {wide})" for cell in cells or [f"place * {tally.classes} + k"]]


def counts_of(tally: Tally, cells: Integers, numbers: Integers) -> Counts:
    """Put the answer together."""
    order = np.argsort(cells, kind="stable")
    cells, numbers = cells[order], numbers[order]
    by_place = np.zeros((tally.places, tally.classes), np.int64)
    if not tally.attributes:
        by_place.reshape(-1)[cells] = numbers
        return Counts(by_place, {})
    starts = _starts(tally)
    found = np.searchsorted(cells, starts)
    by_leaf = {
        attribute: Breakdown.of_cells(
            tally.leaves(attribute), tally.classes, cells[begin:end] - start, numbers[begin:end]
        )
        for attribute, start, begin, end in zip(tally.attributes, starts, found, found[1:], strict=False)
    }
    some = by_leaf[tally.attributes[0]]
    np.add.at(by_place, some.keys // some.leaves, some.counts)
    return Counts(by_place, by_leaf)


def _starts(tally: Tally) -> list[int]:
    """Give where the cells of each attribute begin, and the end."""
    sizes = [tally.places * tally.leaves(attribute) * tally.classes for attribute in tally.attributes]
    return list(accumulate(sizes or [tally.places * tally.classes], initial=0))
