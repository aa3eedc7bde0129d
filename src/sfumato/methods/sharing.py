"""Sharing out a region's specializations among its children, in proportion to noisy sizes (DiffMulti, equation 10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def share_out(shares: Integers, families: Integers, sizes: Integers, lots: Integers) -> Integers:
    """Give every child its part of what its family shares; none are lost.

    Child i belongs to family `families[i]` (in increasing order), which shares `shares[family]` specializations in
    proportion to the children's noisy `sizes`, negative ones counting as 0; if all are 0, evenly. Parts are rounded
    down, and what that leaves goes by lot to children whose part was rounded.

    >>> share_out(np.array([20]), np.array([0, 0]), np.array([8, 2]), np.array([0, 1])).tolist()
    [16, 4]
    """
    weights = np.maximum(sizes, 0)
    totals = np.bincount(families, weights, len(shares)).astype(np.int64)
    weights = np.where(totals[families] > 0, weights, 1)
    totals = np.maximum(np.where(totals > 0, totals, np.bincount(families, minlength=len(shares))), 1)
    parts, rests = np.divmod(shares[families] * weights, totals[families])
    left = shares - np.bincount(families, parts, len(shares)).astype(np.int64)
    order = np.lexsort((lots, rests == 0, families))
    rank = np.empty(len(families), np.int64)
    rank[order] = np.arange(len(families)) - np.searchsorted(families, families[order])
    return np.asarray(parts + ((rank < left[families]) & (rests > 0)))
