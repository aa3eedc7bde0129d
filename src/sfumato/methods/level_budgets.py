"""How a budget for counts is best split over the levels of a tree, for a workload of queries.

The tree and the workload are public, so the split costs nothing and is made before any count is looked at. All nodes of
a level are measured at one rate; a leaf is measured last, with all that its path has left.

The answer to a query is a sum of measurements with coefficients c, of variance 2 c^2 / rate^2 each (the noise being
Laplace). For given rates, least squares finds the c of least variance; for given c, `Demand.cheapest` finds the rates
of least variance. In turn, they go down to a split that neither can better. What is hardly measured counts for little
and so deserves still less: which levels to measure at all is tried out, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.methods.bundles import Bundles, Demand, Workload
from sfumato.privacy.budget import GRAIN, grains_of
from sfumato.privacy.noisy import variance_of

Floats = NDArray[np.float64]

FOR_LEAVES = 0.01
"""The least share of the leaves on the longest path: every region must have counts, whoever asks for them."""
DUST = 1e-4
"""A level with a smaller share is not measured."""
ENOUGH = 1e-3
"""The way down ends at a step that gains less than this part."""
HOPE = 4
"""The way down is given up where this many steps like the last would not lead below what is known already."""
SWEEPS = 3
"""How often each level may be left out or taken in."""
LEAST_VARIANCE = 1e-100
"""Noise so small that its variance is 0 in floating point still leaves its counts a finite say."""


def level_grains(parents: ArrayLike, workload: ArrayLike, budget: Fraction) -> tuple[int, ...]:
    """Split a budget over the levels of a tree, root first, in whole grains, for queries x leaves weights.

    Never worse for the workload than all for the leaves, or the same for each level: those are among the splits that
    are compared in the end, each as it would be paid, with the variance that discrete noise has.
    """
    asked = Workload.of(parents, workload)
    if asked.height == 1:
        return (grains_of(budget),)
    splits = [best_split(asked), leaves_only(asked.height), even(asked.height)]
    paid = [whole_grains(split, grains_of(budget)) for split in splits]
    return min(paid, key=lambda grains: expected_variance(asked, grains))


def whole_grains(split: Floats, grains: int) -> tuple[int, ...]:
    """Round shares down to whole grains; the last level gets what that leaves over.

    >>> whole_grains(np.array([0.3, 0.0, 0.7]), 11)
    (3, 0, 8)
    """
    above = [int(share * grains) for share in split[:-1]]
    return (*above, grains - sum(above))


def expected_variance(asked: Workload, grains: tuple[int, ...]) -> float:
    """Give the sum of the queries' variances, exact for discrete noise, when levels get so many grains."""
    noise = [
        np.array([max(variance_of(one * GRAIN), LEAST_VARIANCE) if one else 0.0 for one in rates])
        for rates in (grains, [sum(grains[level:]) for level in range(len(grains))])
    ]
    return asked.bundled(np.flatnonzero(grains)).demand(noise[0], noise[1]).variance(noise[0], noise[1])


def best_split(asked: Workload) -> Floats:
    """Begin with the leaves alone; take in or leave out one level after the other, as long as that helps."""
    best, split = lowest(asked, leaves_only(asked.height))
    levels, in_vain = range(asked.height - 1), 0
    for level in [*levels] * SWEEPS:
        if in_vain == len(levels):
            break
        lower, other = lowest(asked, without(split, level) if split[level] else with_a_part(split, level), best)
        in_vain = 0 if lower < best else in_vain + 1
        best, split = (lower, other) if lower < best else (best, split)
    return split


def leaves_only(height: int) -> Floats:
    """Give all to the leaves: DiffGen's counts."""
    return np.asarray(np.eye(height)[-1])


def even(height: int) -> Floats:
    """Give every level the same: the paper's CDiffGen."""
    return np.full(height, 1 / height)


def without(split: Floats, level: int) -> Floats:
    """Leave a level out and share its part among the others."""
    rest = np.where(np.arange(len(split)) == level, 0.0, split)
    return np.asarray(rest / rest.sum())


def with_a_part(split: Floats, level: int) -> Floats:
    """Take a level in, with a part like that of the others."""
    part = np.eye(len(split))[level]
    return np.asarray(split + (part - split) / (np.count_nonzero(split) + 1))


def lowest(asked: Workload, split: Floats, rival: float = np.inf) -> tuple[float, Floats]:
    """Give where the way down ends, or where it is hopeless that it will end below a rival."""
    end = (np.inf, split)
    for found in descent(asked.bundled(np.flatnonzero(split)), split):
        if found[0] - rival > HOPE * (end[0] - found[0]):
            return found
        end = found
    return end


def descent(bundles: Bundles, split: Floats) -> Iterator[tuple[float, Floats]]:
    """Give variances and splits on the way down."""
    best = np.inf
    while True:
        inner, leaves = _laplace(split), _laplace(np.cumsum(split[::-1])[::-1])
        demand = bundles.demand(inner, leaves)
        variance = demand.variance(inner, leaves)
        if not variance < best * (1 - ENOUGH):
            return
        yield variance, split
        best, split = variance, cheapest(demand)


def _laplace(rates: Floats) -> Floats:
    return np.divide(2.0, rates**2, out=np.zeros(len(rates)), where=rates > 0)


def cheapest(demand: Demand) -> Floats:
    """Give the split of the least sum of c^2 / rate^2.

    Let paths that come to level d with T to spend cost a_d / T^2 from there on, at best. Those that end there cost
    leaves_d / T^2. The others spend t there and the rest below: inner_d / t^2 + a_(d+1) / (T - t)^2, least if t is
    to T - t as the cube root of inner_d to that of a_(d+1), and then the cube of the roots' sum over T^2. So
    a_d = leaves_d + (inner_d^(1/3) + a_(d+1)^(1/3))^3, from the last level up. If all leaves are on the last level,
    each level gets in proportion to the cube root of its demand.
    """
    below, left = demand.leaves[-1], 1.0
    kept = np.zeros(len(demand.inner))
    for level in reversed(range(len(kept) - 1)):
        here, later = np.cbrt(demand.inner[level]), np.cbrt(below)
        kept[level] = here / (here + later) if here else 0.0
        below = demand.leaves[level] + (here + later) ** 3
    for level, part in enumerate(kept):
        kept[level], left = left * part, left * (1 - part)
    return _payable(kept[:-1])


def _payable(above: Floats) -> Floats:
    """Leave out dust, and keep for the last level what it must have."""
    above = np.where(above < DUST, 0.0, above)
    above *= min(1.0, (1 - FOR_LEAVES) / max(above.sum(), DUST))
    return np.append(above, 1 - above.sum())
