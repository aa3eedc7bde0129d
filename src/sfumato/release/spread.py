"""How a region's people are spread over the leaves inside it.

Without margins evenly, as the papers do; with them in proportion to the noisy margin, restricted to the region's
range. Only proportions within a part are used, so margins agree with the regions by construction.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.release.projection import threshold

Floats = NDArray[np.float64]


def spread(cut: tuple[int, ...], margin: NDArray[np.int64] | None) -> Floats:
    """Give each leaf its share of the part that holds it; the shares of a part sum to 1.

    >>> spread((0, 2, 4), None).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> spread((0, 2, 4), np.array([9, 3, -1, -2])).tolist()
    [0.75, 0.25, 0.5, 0.5]
    """
    shares = np.empty(cut[-1])
    for lo, hi in pairwise(cut):
        shares[lo:hi] = _within(np.ones(hi - lo, np.int64) if margin is None else margin[lo:hi])
    return shares


def _within(counts: NDArray[np.int64]) -> Floats:
    positive = np.maximum(counts - threshold(counts), 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(counts), 1 / len(counts))


def by_part(cut: tuple[int, ...], weights: Floats) -> Floats:
    """Sum weights of leaves over the parts of a cut."""
    return np.asarray(np.add.reduceat(weights, cut[:-1]))
