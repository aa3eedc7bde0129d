"""Lengths, in nats, of the codes by which a grid's numbers of parts and its partitions are written down.

They stand apart because they are number theory: no data, no grid.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

UNIVERSAL_CONSTANT = 2.86511
"""The sum of 2^-log2*(n) over all n >= 1, as Khiops rounds it."""
SUMMED = 1 << 16
"""Up to here the sum is taken term by term; it is also where log2* gets its fifth term."""


def log2_star(number: float) -> float:
    """Add up log2 n, log2 log2 n, ... as long as they are positive.

    >>> log2_star(1), log2_star(2), log2_star(16)
    (0.0, 1.0, 7.0)
    """
    total, term = 0.0, math.log2(number)
    while term > 0:
        total += term
        term = math.log2(term)
    return total


def universal(number: int) -> float:
    """Give the length of Rissanen's code for an integer n >= 1 of which nothing is known: ln c + ln 2 log2*(n)."""
    return math.log(UNIVERSAL_CONSTANT) + math.log(2) * log2_star(number)


def bounded(number: int, largest: float) -> float:
    """Give the length of the same code for an integer known to be at most `largest`: c is the sum up to there."""
    return math.log(_mass(max(math.floor(largest), number))) + math.log(2) * log2_star(number)


@cache
def _mass(largest: int) -> float:
    """Add up f(n) = 2^-log2*(n) for n = 1 ... largest.

    Beyond 2^16, f(x) = 1 / (x log2(x) log2(log2(x)) ...), with four logarithms, is (ln 2)^5 times the derivative of
    the fifth iterate of log2; Euler and Maclaurin turn the integral into the sum, with an error of f'/12 < 10^-12.
    """
    head = _heads()
    if largest <= SUMMED:
        return float(head[largest - 1])
    iterate = float(largest)
    for _ in range(5):
        iterate = math.log2(iterate)
    ends = (2.0 ** -log2_star(largest) - 2.0 ** -log2_star(SUMMED)) / 2
    return float(head[-1] + math.log(2) ** 5 * iterate + ends)


@cache
def _heads() -> NDArray[np.float64]:
    """Give the sums of 2^-log2*(n) up to each of the first integers."""
    return np.cumsum([2.0 ** -log2_star(number) for number in range(1, SUMMED + 1)])


@cache
def log_partitions(values: int, groups: int) -> float:
    """Give ln B(V, k), the number of partitions of V values into at most k groups.

    Stirling's number of partitions into exactly j groups is the sum over i of (-1)^(j-i) i^V / (i! (j-i)!). Summed over
    j <= k it is that of i^V / i! d(k-i), where d(m) = 1 - 1/1! + 1/2! - ... (m terms more) is the share of
    permutations of m things that leave none in its place. No d is negative, so nothing cancels.

    >>> round(math.exp(log_partitions(4, 4)), 9), round(math.exp(log_partitions(4, 2)), 9)
    (15.0, 8.0)
    """
    if groups == 1 or values == 1:
        return 0.0
    most = min(groups, values)
    indices = np.arange(1, most + 1)
    shares = _displaced(most)[most - indices]
    log_factorials = np.cumsum(np.log(indices))
    with np.errstate(divide="ignore"):
        terms = values * np.log(indices) - log_factorials + np.log(shares)
    highest = terms.max()
    return float(highest + math.log(np.exp(terms - highest).sum()))


def _displaced(most: int) -> NDArray[np.float64]:
    """Give d(m) for m = 0 ... most - 1; it is 1/e to the last digit from m = 18 on."""
    shares, term = [1.0], 1.0
    for index in range(1, 19):
        term /= -index
        shares.append(shares[-1] + term)
    return np.array(shares)[np.minimum(np.arange(most), 18)]
