"""A noisy answer that carries its own noise level.

It is the one type that leaves the trusted core for everyone: methods receive it, releases are made of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.geometry.halving import height, parts


@dataclass(frozen=True, eq=False)
class Groups:
    """The noisy counts of all parts at one depth of an attribute's halving, in the whole table, with the same noise."""

    depth: int
    counts: NDArray[np.int64]
    rate: Fraction


@dataclass(frozen=True, eq=False)
class Margin:
    """What was bought about the leaves of one attribute: levels of their halving, the coarsest first, the last one the
    leaves themselves.
    """

    leaves: int
    levels: tuple[Groups, ...]

    def __post_init__(self) -> None:
        """Refuse levels that are not those of these leaves."""
        depths = [groups.depth for groups in self.levels]
        if depths != sorted({*depths, height(self.leaves)}) or depths[0] < 0 or depths[-1] > height(self.leaves):
            raise ValueError("levels must become finer and end with the leaves")
        if any(groups.counts.shape != (parts(self.leaves, groups.depth),) for groups in self.levels):
            raise ValueError("a level must have a count for each of its parts")

    @classmethod
    def flat(cls, counts: NDArray[np.int64], rate: Fraction) -> Margin:
        """Give a margin of which only the leaves were measured."""
        return cls(len(counts), (Groups(height(len(counts)), counts, rate),))


@dataclass(frozen=True, eq=False)
class Noisy:
    """Counts, a row for each place, with discrete Laplace noise: P(x) is proportional to exp(-rate |x|).

    Negative ones are left negative. Places may have different rates: place i has `rates[rate_of[i]]`. Exact counts have
    no rate.
    """

    counts: NDArray[np.int64]
    """places x cells"""
    rates: tuple[Fraction, ...]
    rate_of: NDArray[np.int64]

    @classmethod
    def even(cls, counts: NDArray[np.int64], rate: Fraction) -> Noisy:
        """Give counts that all have the same noise."""
        return cls(counts, (rate,), np.zeros(len(counts), np.int64))

    @classmethod
    def exact(cls, counts: NDArray[np.int64]) -> Noisy:
        """Give counts that have no noise, and so no rate: what methods without epsilon publish."""
        return cls(counts, (), np.zeros(len(counts), np.int64))

    @property
    def is_exact(self) -> bool:
        """Whether there is no noise."""
        return not self.rates

    def groups(self, depth: int) -> Groups:
        """Give the counts of the only place, whose cells are the parts of an attribute's leaves at a depth."""
        return Groups(depth, self.counts[0], self.rates[0])

    @property
    def variances(self) -> NDArray[np.float64]:
        """The variance of the noise of each place's counts."""
        if self.is_exact:
            return np.zeros(len(self.counts))
        return np.array([variance_of(rate) for rate in self.rates])[self.rate_of]


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Counts by class that were bought for some nodes of a tree on the way to its leaves."""

    nodes: NDArray[np.int64]
    noisy: Noisy


LEAST_VARIANCE = 1e-100
"""Noise so small that its variance is 0 in floating point still leaves its counts a finite say."""


def variance_of(rate: Fraction) -> float:
    """Give the variance of discrete Laplace noise: 2 q / (1 - q)^2 for q = exp(-rate).

    >>> round(variance_of(Fraction(1)), 6)
    1.841347
    """
    return max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, LEAST_VARIANCE)
