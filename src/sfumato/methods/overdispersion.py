"""Noisy counts made fit for a criterion that takes counts for exact.

A co-clustering asks how much more counts vary than chance allows. Noise clipped at 0 varies far more than chance: of
every cell it makes a discovery. Two corrections follow from the noise alone, which is public: counts that noise
reaches easily are taken for 0, and what is left counts for less, divided by what clipped noise varies more than a
Poisson count of its mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corrected:
    """Counts to be divided by a dispersion."""

    counts: Integers
    dispersion: float


def corrected(noisy: Integers, rate: Fraction) -> Corrected:
    """Take counts up to a threshold for 0, and give the dispersion of the others.

    Noise exceeds t with a probability of about exp(-rate t) / 2, so of n empty cells about one exceeds
    ln(n / 2) / rate. At half of that, cells that hold few people are still seen, and about the root of n empty ones.
    """
    threshold = math.log(max(noisy.size / 2, 1.0)) / (2 * rate)
    return Corrected(np.where(noisy > threshold, noisy, 0), clipped_dispersion(rate))


def clipped(noisy: Integers) -> Corrected:
    """Clip counts at 0 and take them for exact, as the paper does."""
    return Corrected(np.maximum(noisy, 0), 1.0)


def clipped_dispersion(rate: Fraction) -> float:
    """Give variance over mean of max(noise, 0), at least 1.

    With q = exp(-rate), P(k) = (1 - q) / (1 + q) q^k. The sum of k q^k is q / (1 - q)^2 and that of k^2 q^k is
    q (1 + q) / (1 - q)^3. So the mean is m = q / (1 - q^2), the mean square q / (1 - q)^2 = m (1 + q) / (1 - q), and
    variance over mean (1 + q) / (1 - q) - m.

    >>> [round(clipped_dispersion(Fraction(rate)), 1) for rate in ("0.1", "0.25", "0.5", "1", "2")]
    [15.0, 6.1, 3.1, 1.7, 1.2]
    """
    q = math.exp(-rate)
    return max((1 + q) / (1 - q) - q / (1 - q * q), 1.0) if q < 1 else math.inf
