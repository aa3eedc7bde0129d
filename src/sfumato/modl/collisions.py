"""What cells lose when they become one: ln x! + ln y! - ln (x + y)!, summed over the cells of pairs of rows.

They stand apart because all comparisons of parts come down to them, and nearly all time is spent here.
"""

from __future__ import annotations

import numpy as np

from sfumato.modl.factorials import Counts, Floats, LogFactorials

AT_ONCE = 1 << 16
"""How many logarithms are looked up at once, so that they stay in a processor's cache."""
SPARSE = 0.2
"""Below this share of cells that are not empty it pays to pick them out."""


def of_all(rows: Counts, log_factorials: LogFactorials) -> Floats:
    """Give the collisions of every pair of rows, as a symmetric matrix."""
    parts, cells = rows.shape
    if parts * parts * cells <= AT_ONCE:
        return _of_block(rows, rows, log_factorials)
    result = np.zeros((parts, parts))
    sparse = np.count_nonzero(rows) < SPARSE * rows.size
    step = 1 if sparse else max(1, AT_ONCE // (parts * cells))
    for start in range(0, parts, step):
        block, others = rows[start : start + step], rows[start:]
        if sparse:
            filled = np.flatnonzero(block[0])
            block, others = block[:, filled], others[:, filled]
        width = max(1, AT_ONCE // max(1, block.size))
        for other in range(0, len(others), width):
            priced = _of_block(block, others[other : other + width], log_factorials)
            result[start : start + step, start + other : start + other + width] = priced
    upper = np.triu(result, 1)
    return upper + upper.T


def of_one(row: Counts, rows: Counts, log_factorials: LogFactorials) -> Floats:
    """Give the collisions of one row with each of others."""
    filled = np.flatnonzero(row)
    if len(filled) < SPARSE * len(row):
        row, rows = row[filled], rows[:, filled]
    width = max(1, AT_ONCE // max(1, len(row)))
    blocks = (rows[start : start + width] for start in range(0, len(rows), width))
    return np.concatenate([_of_block(row[None], block, log_factorials)[0] for block in blocks])


def of_neighbours(rows: Counts, log_factorials: LogFactorials) -> Floats:
    """Give the collisions of each row with the next."""
    own = log_factorials(rows).sum(axis=1)
    joint: Floats = log_factorials(rows[:-1] + rows[1:]).sum(axis=1)
    return np.asarray(own[:-1] + own[1:] - joint)


def _of_block(rows: Counts, others: Counts, log_factorials: LogFactorials) -> Floats:
    own, theirs = log_factorials(rows).sum(axis=1), log_factorials(others).sum(axis=1)
    joint = log_factorials(rows[:, None, :] + others[None, :, :]).sum(axis=2)
    return np.asarray(own[:, None] + theirs[None, :] - joint)
