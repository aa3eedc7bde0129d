"""Scores for any table, with or without a class: how fine and how even the children are.

Each one carries its sensitivity and the derivation of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.score import Children, Integers, Score


@dataclass(frozen=True)
class Discernibility(Score):
    """How many records each record of the range cannot be told from, on average, after the split; less is better.

    The discernibility metric is the sum of n_c^2 over the children (DiffMulti, equation 3), which moves by up to 2 n +
    1. All candidates of a range divide the same n records, so S = sum n_c^2 / n orders them alike; the score is -S.

    Sensitivity 1. Let Q = sum n_c^2 and add a record to child a:

        S' - S = (Q + 2 n_a + 1) / (n + 1) - Q / n = (2 n_a + 1 - Q / n) / (n + 1).

    Since Q >= n_a^2, the bracket is at most 2 n_a + 1 - n_a^2 / n, which grows with n_a up to n + 1 at n_a = n: S
    rises by at most 1. Since Q <= n^2 and n_a >= 0, it is at least 1 - n: S falls by less than 1. An empty range has S
    = 0, and 1 with its first record. Not monotone. S is rounded down to the grid, exactly, which adds one unit.
    """

    name: ClassVar[str] = "discernibility"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    monotone: ClassVar[bool] = False
    positional: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """Give 1 and the rounding."""
        return 1 + self.unit

    def of(self, children: Children) -> Integers:
        """Compute -floor(sum n_c^2 / (n unit))."""
        sizes: NDArray[Any] = children.counts.sum(axis=1)
        totals = np.maximum(children.sum(sizes), 1)
        if int(totals.max()) >= 2**31:
            sizes, totals = sizes.astype(object), totals.astype(object)
        squares = children.sum(sizes * sizes)
        steps = self.unit.denominator
        return np.asarray(-(squares // totals * steps + squares % totals * steps // totals), np.int64)


def _penalties(widths: Integers, leaves: int) -> Integers:
    """Give the normalized certainty penalty of ranges on the grid: their share of the domain, 0 for single leaves.

    Public numbers between 0 and 1, rounded down once for all tables: what is summed over them is exact.
    """
    return np.asarray(np.where(widths > 1, widths * PENALTY // leaves, 0), np.int64)


PENALTY = 2**16


@dataclass(frozen=True)
class CertaintyGain(Score):
    """The certainty that the records gain: what a split takes off the normalized certainty penalty (NCP). Ours.

    S = sum over children of n_c (w - w_c), with w the penalty of the range that is divided and w_c of the child's. It
    is what greedy growth should maximize, since the penalty of the other attributes stays.

    Sensitivity 1, monotone: a record in child c adds w - w_c, which is between 0 and 1, and public.
    """

    name: ClassVar[str] = "ncp"
    unit: ClassVar[Fraction] = Fraction(1, PENALTY)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """Give 1."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """Sum what the records gain."""
        before = children.repeat(_penalties(children.sum(children.widths), children.leaves))
        gained = before - _penalties(children.widths, children.leaves)
        return np.asarray(children.sum(children.counts.sum(axis=1) * gained))


@dataclass(frozen=True)
class PenaltyLeft(Score):
    """The normalized certainty penalty of the divided attribute after the split (DiffMulti, equation 6); less is
    better.

    S = -sum over children of n_c w_c. Sensitivity 1, monotone: a record in child c takes off w_c, which is between 0
    and 1. It compares attributes by what is left of their penalty, not by what the split takes off it.
    """

    name: ClassVar[str] = "ncp-left"
    unit: ClassVar[Fraction] = Fraction(1, PENALTY)
    monotone: ClassVar[bool] = True
    positional: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = False

    def sensitivity(self, _classes: int, /) -> Fraction:
        """Give 1."""
        return Fraction(1)

    def of(self, children: Children) -> Integers:
        """Sum what is left."""
        left = _penalties(children.widths, children.leaves)
        return np.asarray(-children.sum(children.counts.sum(axis=1) * left))
