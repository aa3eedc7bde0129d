"""How near a joint distribution of synthetic records is to that of the table.

Distances are of shares of rows, over the cells that either table fills: cells that both leave empty add nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grouping import row_keys

Codes = Mapping[str, NDArray[Any]]
Counts = NDArray[np.int64]


def joint_counts(one: Codes, other: Codes, names: Sequence[str]) -> tuple[Counts, Counts]:
    """Count two tables' rows in the cells of some attributes that either fills.

    >>> joint_counts({"a": np.array([0, 0, 5])}, {"a": np.array([5, 9])}, ["a"])
    (array([2, 1, 0]), array([0, 1, 1]))
    """
    columns = [np.concatenate([one[name], other[name]]).astype(np.int64) for name in names]
    first = len(one[names[0]])
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    keys = row_keys(columns, sizes)
    if math.prod(sizes) > 2 * len(keys):
        keys = np.unique(keys, return_inverse=True)[1].ravel()
    cells = int(keys.max(initial=0)) + 1
    mine, theirs = (np.bincount(part, minlength=cells) for part in (keys[:first], keys[first:]))
    filled = mine + theirs > 0
    return mine[filled], theirs[filled]


def hellinger(one: Codes, other: Codes, names: Sequence[str]) -> float:
    """Give the Hellinger distance of two tables' joint distributions of some attributes: 0 if equal, 1 if disjoint.

    >>> left, right = {"a": np.array([0, 0, 1, 1])}, {"a": np.array([1, 1, 2, 2])}
    >>> round(hellinger(left, right, ["a"]), 9)
    0.707106781
    """
    return hellinger_distance(*joint_counts(one, other, names))


def hellinger_distance(one: Counts, other: Counts) -> float:
    """Give the root of half the sum of (sqrt(p) - sqrt(q))^2, which is 1 - sum of sqrt(p q); nobody is far from all."""
    if not (one.any() and other.any()):
        return 1.0
    return math.sqrt(max(1.0 - float(np.sqrt(one / one.sum() * (other / other.sum())).sum()), 0.0))


def city_block(one: Counts, other: Counts) -> float:
    """Give the sum of |p - q|, from 0 to 2.

    >>> city_block(np.array([2, 2, 0]), np.array([0, 5, 5]))
    1.0
    """
    return float(np.abs(one / max(one.sum(), 1) - other / max(other.sum(), 1)).sum())


def total_variation(one: Counts, other: Counts) -> float:
    """Give the largest difference that any set of cells can have, half the city-block distance, from 0 to 1."""
    return city_block(one, other) / 2 if one.any() and other.any() else 1.0


def kullback_leibler(one: Counts, other: Counts, cells: int) -> float:
    """Give the nats lost by taking the other table for the first: the sum of p ln(p / q).

    So that it stays finite, one record more is added to the other table, spread evenly over all `cells` of the
    marginal, filled or not: q = (count + 1 / cells) / (rows + 1). The first table is taken as it is.

    >>> round(kullback_leibler(np.array([3, 1]), np.array([0, 3]), 2), 6)
    1.030629
    """
    shares = one[one > 0] / max(one.sum(), 1)
    smoothed = (other[one > 0] + 1 / cells) / (other.sum() + 1)
    return max(float((shares * np.log(shares / smoothed)).sum()), 0.0)
