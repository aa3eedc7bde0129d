"""How much the class is in doubt: entropies of exact counts, in bits.

No sensitivities here: these scores choose in the open, so they need none and are not rounded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

DECIMALS = 9
"""Doubts that differ by less than this are the same: rounding must not decide between candidates."""


def doubt(counts: Integers) -> Floats:
    """Give the entropy of the classes times the number of records, for each row of counts by class.

    n H = n log n - sum of c log c, so the doubt of a set of groups is the sum of theirs, and a specialization's
    information gain is by how much it lowers the doubt, per record.

    >>> doubt(np.array([[1, 1], [4, 0], [2, 2], [0, 0]])).tolist()
    [2.0, 0.0, 4.0, 0.0]
    """
    return np.asarray(_n_log_n(counts.sum(axis=-1)) - _n_log_n(counts).sum(axis=-1))


def _n_log_n(counts: Integers) -> Floats:
    numbers = counts.astype(np.float64)
    return np.asarray(numbers * np.log2(np.maximum(numbers, 1.0)))
