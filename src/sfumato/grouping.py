"""Which rows of small whole numbers are equal: the one question behind groups of records that look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

LARGEST = 2**62


def row_keys(columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> Integers:
    """Give every row a number that equal rows share and no others have; column i holds numbers below `sizes[i]`.

    Columns are the digits of one number. Where it would become too large, what was read so far is replaced by its rank,
    which is below the number of rows. The last digit is always the key modulo the last size.

    >>> row_keys([np.array([1, 0, 1]), np.array([2, 2, 2])], [2, 3]).tolist()
    [5, 2, 5]
    >>> row_keys([np.array([7, 0, 7]), np.array([2, 2, 2])], [2**40, 2**40]).tolist()
    [1099511627778, 2, 1099511627778]
    """
    keys, bound = np.zeros(len(columns[0]), np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if bound > LARGEST // size:
            values, keys = np.unique(keys, return_inverse=True)
            bound = len(values)
        keys = keys * size + column
        bound *= size
    return keys
