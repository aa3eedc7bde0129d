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


def least_squares_by_hand(margin: Margin) -> tuple[np.ndarray, np.ndarray]:
    """Solve the normal equations: the estimates of the leaves, and their covariances."""
    rows, counts, precision = [], [], []
    for groups in margin.levels:
        ends = borders_by_hand(margin.leaves, groups.depth)
        rows += [[float(lo <= leaf < hi) for leaf in range(margin.leaves)] for lo, hi in pairwise(ends)]
        counts += groups.counts.tolist()
        precision += [1 / variance_by_hand(groups.rate)] * len(groups.counts)
    design, weights = np.array(rows), np.array(precision)
    covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
    return covariance @ design.T @ (weights * np.array(counts)), covariance


def people_by_hand(margin: Margin) -> np.ndarray:
    """Divide people from the top down, each division conditioned on what is above it."""
    estimates, covariance = least_squares_by_hand(margin)
    people = {(0, margin.leaves): max(float(estimates.sum()), 0.0)}
    frequencies = [0.25] * 4
    for depth in range(1, depth_of_leaves(margin.leaves) + 1):
        below = borders_by_hand(margin.leaves, depth)
        halved = {whole: at for whole in people for at in below if whole[0] < at < whole[1]}
        known = {whole: conditioned(estimates, covariance, whole, at, people[whole]) for whole, at in halved.items()}
        sides = {whole: (at - whole[0]) / (whole[1] - whole[0]) for whole, at in halved.items()}
        cases = [(people[whole], sides[whole], *known[whole]) for whole in halved]
        frequencies = frequencies_by_hand(cases, frequencies)
        for whole, case in zip(halved, cases, strict=True):
            left = left_by_hand(case, frequencies)
            people[whole[0], halved[whole]] = left
            people[halved[whole], whole[1]] = people[whole] - left
            del people[whole]
    return np.array([people[leaf, leaf + 1] for leaf in range(margin.leaves)])


def conditioned(
    estimates: np.ndarray, covariance: np.ndarray, whole: tuple[int, int], at: int, total: float
) -> tuple[float, float]:
    """Give mean and variance of the left half's people, given the whole's."""
    left, both = np.zeros(len(estimates)), np.zeros(len(estimates))
    left[whole[0] : at] = both[whole[0] : whole[1]] = 1
    slope = left @ covariance @ both / (both @ covariance @ both)
    mean = left @ estimates + slope * (total - both @ estimates)
    return float(mean), float(left @ covariance @ left - slope * (left @ covariance @ both))


Case = tuple[float, float, float, float]
"""People, even share, estimate of the left half, and its variance."""


def chances(case: Case, frequencies: list[float]) -> list[float]:
    """Give the probabilities of none, all, even and anyhow on the left."""
    people, even, left, noise = case
    anyhow = noise + even * (1 - even) * people**2
    normals = [(0.0, noise), (people, noise), (people * even, noise), (people * even, anyhow)]
    logs = [-((left - mean) ** 2) / (2 * spread) - math.log(spread) / 2 for mean, spread in normals]
    joint = [often * math.exp(one - max(logs)) for often, one in zip(frequencies, logs, strict=True)]
    return [one / sum(joint) for one in joint]


def frequencies_by_hand(cases: list[Case], before: list[float]) -> list[float]:
    frequencies = before
    for _ in range(10):
        found = [4 * one for one in before]
        for case in cases:
            found = [sum(pair) for pair in zip(found, chances(case, frequencies), strict=True)]
        frequencies = [one / sum(found) for one in found]
    return frequencies


def left_by_hand(case: Case, frequencies: list[float]) -> float:
    people, even, left, noise = case
    middle, spread = people * even, even * (1 - even) * people**2
    free = (middle * noise + left * spread) / (noise + spread)
    _, everyone, evenly, anyhow = chances(case, frequencies)
    return everyone * people + evenly * middle + anyhow * min(max(free, 0.0), people)


def assert_same_margin(one: Margin, other: Margin) -> None:
    assert one.leaves == other.leaves
    for left, right in zip(one.levels, other.levels, strict=True):
        assert (left.depth, left.rate) == (right.depth, right.rate)
        assert left.counts.dtype == right.counts.dtype == np.int64
        assert np.array_equal(left.counts, right.counts)
