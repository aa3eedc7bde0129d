"""From noisy counts, which may be negative, to counts that a table can have.

Noise is symmetric, clamping is not: with many empty cells, cutting at zero invents people. The projection here takes
back from the positive counts what the cut added, so the noisy total stands.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ReleaseError

Integers = NDArray[np.int64]
Nonnegative = Literal["projection", "clamp"]


def threshold(counts: NDArray[np.int64]) -> float:
    """Find the t at which the positive parts of (count - t) sum to the counts' total (to 0 if that is negative).

    Among the k largest counts, t = (their sum - total) / k; the right k is the last whose count exceeds its t.
    """
    falling = np.sort(counts, axis=None)[::-1].astype(np.float64)
    total = max(float(counts.sum()), 0.0)
    steps = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    above = np.flatnonzero(falling > steps)
    return float(steps[above[-1]]) if above.size else float(falling[0])


def refuse_unknown(how: str) -> None:
    """Refuse a way that there is not."""
    if how not in get_args(Nonnegative):
        raise ReleaseError(
            f"nonnegative ({how}) must be one of {', '.join(get_args(Nonnegative))}", "Choose one of them."
        )


def nonnegative(counts: Integers, how: Nonnegative) -> Integers:
    """Make counts non-negative integers: the projection that keeps the noisy total, or the papers' clamping at 0.

    >>> nonnegative(np.array([6, 3, -2, 0]), "projection").tolist()
    [5, 2, 0, 0]
    >>> nonnegative(np.array([6, 3, -2, 0]), "clamp").tolist()
    [6, 3, 0, 0]
    """
    refuse_unknown(how)
    if how == "clamp":
        return np.asarray(np.maximum(counts, 0), np.int64)
    wanted = np.maximum(counts - threshold(counts), 0.0).ravel()
    whole = np.floor(wanted).astype(np.int64)
    short = max(int(counts.sum()), 0) - int(whole.sum())
    rounded_up = np.argsort(whole - wanted, kind="stable")[: max(short, 0)]
    whole[rounded_up] += 1
    return np.asarray(whole.reshape(counts.shape))
