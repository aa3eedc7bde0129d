"""From how often something was seen to what must be true of its probability, with a stated confidence.

Exact binomial tails (Clopper and Pearson, 1934), so that a bound fails no more often than it says, also for rare
events.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALVINGS = 60
"""A probability is found by halving an interval so often."""


def lower_chance(seen: int, runs: int, doubt: float) -> float:
    """Give a number that an event's probability is not below, but for a doubt: it would be seen so often, or more
    often, with probability `doubt` at most.

    >>> round(lower_chance(5, 10, 0.025), 4), lower_chance(0, 10, 0.025)
    (0.1871, 0.0)
    """
    if seen == 0:
        return 0.0
    low, high = 0.0, seen / runs
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(seen, runs, middle) <= doubt else (low, middle)
    return low


def upper_chance(seen: int, runs: int, doubt: float) -> float:
    """Give a number that an event's probability is not above, but for a doubt."""
    return 1.0 - lower_chance(runs - seen, runs, doubt)


def epsilon_shown(more: int, less: int, runs: int, confidence: float) -> float:
    """Give an epsilon that cannot be undercut if an event is seen so often on two neighbouring tables.

    Each of the two probabilities may be beyond its bound with half of the doubt, so both hold with the confidence.

    >>> round(epsilon_shown(7310, 2690, 10_000, 0.95), 2)
    0.96
    """
    doubt = (1 - confidence) / 2
    low, high = lower_chance(more, runs, doubt), upper_chance(less, runs, doubt)
    return max(math.log(low / high), 0.0) if low > 0 else 0.0


def epsilons_hinted(more: Floats, less: Floats, runs: int) -> Floats:
    """Rank events by about what they would show: Wilson's bounds at three deviations, of all events at once."""
    low, high = _wilson(more / runs, runs, -3.0), _wilson(less / runs, runs, 3.0)
    return np.log(np.maximum(low, 1e-12) / high)


def _wilson(share: Floats, runs: int, deviations: float) -> Floats:
    square = deviations**2
    middle = share + square / (2 * runs)
    reach = deviations * np.sqrt(share * (1 - share) / runs + square / (4 * runs**2))
    return np.asarray((middle + reach) / (1 + square / runs))


def _at_least(seen: int, runs: int, chance: float) -> float:
    """Give the probability that an event of this chance is seen so often or more often."""
    if chance == 0.0:
        return 0.0
    times = np.arange(seen, runs + 1)
    return float(np.exp(_ways(runs)[seen:] + times * math.log(chance) + (runs - times) * math.log1p(-chance)).sum())


@lru_cache(maxsize=4)
def _ways(runs: int) -> Floats:
    """Give the logarithm of how many ways there are to see something 0, 1, 2, ... times."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, runs + 1)))))
    return np.asarray(factorials[-1] - factorials - factorials[::-1])
