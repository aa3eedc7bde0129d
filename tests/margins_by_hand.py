"""Margins for tests, and what they tell of their leaves worked out another way: by matrices and one by one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from sfumato.models.margins import Margin, MarginLevel

CLEAR = Fraction(20)
"""A rate with so little noise that nothing is left to judge."""


def borders_by_hand(leaves: int, depth: int) -> list[int]:
    return sorted({number * leaves // 2**depth for number in range(2**depth + 1)})


def depth_of_leaves(leaves: int) -> int:
    return math.ceil(math.log2(leaves))


SEEDS = st.integers(0, 2**32).map(np.random.default_rng)
"""Random sources: what one of them makes is made at once; drawn number by number it would take far longer."""


def margins_of(leaves: int) -> st.SearchStrategy[Margin]:
    """Give a margin of some levels, each with its own noise."""
    return SEEDS.map(lambda rng: random_margin(rng, leaves))


def random_margin(rng: np.random.Generator, leaves: int) -> Margin:
    last = depth_of_leaves(leaves)
    depths = [*np.flatnonzero(rng.random(last) < rng.random()).tolist(), last]
    return Margin(leaves, tuple(_random_level(rng, leaves, depth) for depth in depths))


def _random_level(rng: np.random.Generator, leaves: int, depth: int) -> MarginLevel:
    parts = len(borders_by_hand(leaves, depth)) - 1
    return MarginLevel(depth, rng.integers(-5, 51, parts), Fraction(1, int(rng.choice([10, 7]))))


def variance_by_hand(rate: Fraction) -> float:
    """Sum x^2 P(x), with a little at least."""
    weights = np.exp(-float(rate) * np.arange(1, 4000))
    spread = 2 * (np.arange(1, 4000) ** 2 * weights).sum() / (1 + 2 * weights.sum())
    return max(float(spread), 1e-9)


def least_squares_by_hand(margin: Margin, free: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Solve the normal equations: the estimates of the leaves, and their covariances; those not free are 0."""
    rows, counts, precision = [], [], []
    for groups in margin.levels:
        ends = borders_by_hand(margin.leaves, groups.depth)
        rows += [[float(lo <= leaf < hi) for leaf in range(margin.leaves)] for lo, hi in pairwise(ends)]
        counts += groups.counts.tolist()
        precision += [1 / variance_by_hand(groups.rate)] * len(groups.counts)
    chosen = np.ones(margin.leaves, bool) if free is None else free
    design, weights = np.array(rows)[:, chosen], np.array(precision)
    covariance, estimates = np.zeros((margin.leaves,) * 2), np.zeros(margin.leaves)
    covariance[np.ix_(chosen, chosen)] = inverse = np.linalg.inv(design.T @ (weights[:, None] * design))
    estimates[chosen] = inverse @ design.T @ (weights * np.array(counts))
    return estimates, covariance


def people_by_hand(margin: Margin) -> np.ndarray:
    """Hold leaves at 0 whose estimates are negative, and estimate the others again."""
    free = np.ones(margin.leaves, bool)
    while free.any():
        people, _ = least_squares_by_hand(margin, free)
        if (people >= -1e-6).all():
            return np.maximum(people, 0.0)
        free &= people >= -1e-6
    return np.zeros(margin.leaves)


def assert_same_margin(one: Margin, other: Margin) -> None:
    assert one.leaves == other.leaves
    for left, right in zip(one.levels, other.levels, strict=True):
        assert (left.depth, left.rate) == (right.depth, right.rate)
        assert left.counts.dtype == right.counts.dtype == np.int64
        assert np.array_equal(left.counts, right.counts)
