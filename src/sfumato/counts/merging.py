"""Rows that are the same, put together as one row with a weight, where that pays: many tables shrink a lot.

Counts stay what they were, whole numbers of 64 bits. It stands apart because it is decided once, before counting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.counts.sorted_cells import SortedCells
from sfumato.counts.tally import Domain, Integers
from sfumato.counts.threads import stretches
from sfumato.partition import Codes

STRETCH = 1 << 20
WORTHWHILE = 4
"""Rows must become so many times fewer."""
SAMPLE = 1 << 16
"""So many rows are tried first; a table of less than twice as many is counted quickly as it is."""


def merged(columns: Sequence[Codes], classes: Codes, domain: Domain) -> tuple[Sequence[Codes], Codes, Integers | None]:
    """Give the different rows and how often each occurs; or the rows as they are, and nothing, if that is as good."""
    radices = (*domain.shape, domain.classes)
    if len(classes) < 2 * SAMPLE or math.prod(radices) >= 2**63:
        return columns, classes, None
    table = (*columns, classes)
    rows, found = len(classes), SortedCells()
    first = np.unique(_numbers(table, radices, slice(0, SAMPLE)))
    if len(first) * WORTHWHILE > SAMPLE:
        return columns, classes, None
    for stretch in stretches(rows, STRETCH):
        found.add(_numbers(table, radices, stretch), None)
        if found.held * WORTHWHILE > rows:
            return columns, classes, None
    numbers, weights = found.found()
    different = _codes(numbers, radices, table)
    return different[:-1], different[-1], weights


def _numbers(table: Sequence[Codes], radices: Sequence[int], stretch: slice) -> Integers:
    """Give each row as one number, whose digits are its codes."""
    numbers = np.zeros(len(table[-1][stretch]), np.int64)
    for column, radix in zip(table, radices, strict=True):
        numbers *= radix
        numbers += column[stretch]
    return numbers


def _codes(numbers: Integers, radices: Sequence[int], table: Sequence[Codes]) -> list[Codes]:
    """Give the digits of numbers, as columns of the types that they came from."""
    columns: list[Codes] = []
    for radix, column in zip(reversed(radices), reversed(table), strict=True):
        numbers, digits = np.divmod(numbers, radix)
        columns.insert(0, digits.astype(column.dtype))
    return columns
