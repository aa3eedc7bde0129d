"""A noisy answer that carries its own noise level.

It is the one type that leaves the trusted core for everyone: methods receive it, releases are made of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Noisy:
    """Counts with discrete Laplace noise of P(x) proportional to exp(-epsilon |x|). Negative ones are left negative."""

    counts: NDArray[np.int64]
    epsilon: Fraction

    def of_region(self, region: int) -> Noisy:
        """Give the counts of one region."""
        return Noisy(self.counts[region], self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of each count's noise: 2 q / (1 - q)^2 for q = exp(-epsilon)."""
        q = math.exp(-self.epsilon)
        return 2 * q / math.expm1(-self.epsilon) ** 2
