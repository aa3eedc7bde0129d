"""What part of an attribute a condition covers: sets of leaves for categories, sets of intervals for numbers.

Conditions are combined as sets and only then turned into weights of leaves, so that two clauses which cut the same cell
cut it once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Numeric

Weights = NDArray[np.float64]


class Coverage(Protocol):
    """A part of an attribute's domain."""

    def both(self, other: Self) -> Self:
        """Give what both cover."""

    def outside(self) -> Self:
        """Give what this leaves out."""

    def weights(self) -> Weights:
        """Give the share of each leaf that is covered."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Some leaves of a taxonomy."""

    covered: NDArray[np.bool_]

    @classmethod
    def ranges(cls, leaves: int, ranges: Iterable[tuple[int, int]]) -> Leaves:
        """Cover ranges of leaf codes."""
        covered = np.zeros(leaves, np.bool_)
        for lo, hi in ranges:
            covered[lo:hi] = True
        return cls(covered)

    def both(self, other: Leaves) -> Leaves:
        """Give what both cover."""
        return Leaves(self.covered & other.covered)

    def outside(self) -> Leaves:
        """Give the other leaves."""
        return Leaves(~self.covered)

    def weights(self) -> Weights:
        """Give 1 for the leaves covered."""
        return self.covered.astype(np.float64)


@dataclass(frozen=True)
class Intervals:
    """Disjoint, increasing intervals `[start, stop)` of a grid's numbers, and whether "missing" is covered."""

    column: Numeric
    intervals: tuple[tuple[Fraction, Fraction], ...]
    missing: bool = False

    @classmethod
    def union(cls, column: Numeric, pieces: Iterable[tuple[Fraction, Fraction]], missing: bool = False) -> Intervals:
        """Cover every piece, cut to the grid."""
        merged: list[tuple[Fraction, Fraction]] = []
        for start, stop in sorted((max(lo, column.origin), min(hi, column.end)) for lo, hi in pieces):
            if start >= stop:
                continue
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return cls(column, tuple(merged), missing)

    def both(self, other: Intervals) -> Intervals:
        """Give what both cover."""
        pieces = [(max(a, c), min(b, d)) for a, b in self.intervals for c, d in other.intervals]
        return Intervals.union(self.column, pieces, self.missing and other.missing)

    def outside(self) -> Intervals:
        """Give the other numbers; who has no number is not among them, as in SQL."""
        borders = [self.column.origin, *(edge for piece in self.intervals for edge in piece), self.column.end]
        return Intervals.union(self.column, zip(borders[::2], borders[1::2], strict=True))

    def weights(self) -> Weights:
        """Give the share of each cell that lies inside."""
        edges = self.column.edges.astype(np.float64)
        inside = sum(
            (
                np.clip(np.minimum(float(hi), edges[1:]) - np.maximum(float(lo), edges[:-1]), 0, None)
                for lo, hi in self.intervals
            ),
            start=np.zeros(self.column.cells),
        )
        shares = np.minimum(inside / np.diff(edges), 1.0)
        return np.append(shares, float(self.missing)) if self.column.missing is not None else shares
