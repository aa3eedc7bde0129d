"""How near the joint distribution of synthetic records is to that of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Codes = Mapping[str, NDArray[np.integer]]


def hellinger(one: Codes, other: Codes, names: Sequence[str]) -> float:
    """Give the Hellinger distance of two tables' joint distributions of some attributes: 0 if equal, 1 if disjoint.

    The half of the sum of (sqrt(p) - sqrt(q))^2 is 1 - sum of sqrt(p q), to which only cells that both fill
    contribute.

    >>> left, right = {"a": np.array([0, 0, 1, 1])}, {"a": np.array([1, 1, 2, 2])}
    >>> round(hellinger(left, right, ["a"]), 9)
    0.707106781
    """
    rows = [np.stack([np.asarray(table[name], np.int64) for name in names], axis=1) for table in (one, other)]
    if not all(map(len, rows)):
        return 1.0
    _, cells = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    shares = [
        np.bincount(held, minlength=cells.max() + 1) / len(held) for held in np.split(cells.ravel(), [len(rows[0])])
    ]
    return math.sqrt(max(1.0 - float(np.sqrt(shares[0] * shares[1]).sum()), 0.0))
