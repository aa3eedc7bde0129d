"""Logarithms of factorials of counts, by the hundred million.

They stand apart because they are where all the time goes: counts that are whole multiples of one unit are looked up
in a table, any others are computed by Stirling's series.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[Any]
"""Whole counts (np.int64), or real weights (np.float64)."""

SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
TABLE = 1 << 20


def log_gamma(arguments: Floats) -> Floats:
    """Give ln Gamma(x) for x >= 1.

    From Gamma(x + 8) = x (x + 1) ... (x + 7) Gamma(x), and Stirling's series at z = x + 8, which is so large that what
    follows the term in z^-9 is below 691 / (360360 9^11) < 10^-13. With t = x (x + 7) the factors, taken in pairs from
    both ends, are t, t + 6, t + 10 and t + 12.

    >>> log_gamma(np.array([1.0, 5.0, 11.0])).round(9).tolist() == [0.0, round(math.log(24), 9), 15.104412573]
    True
    """
    pair = arguments * (arguments + 7)
    product = pair * (pair + 6)
    product *= (pair + 10) * (pair + 12)
    shifted = arguments + 8
    inverse = 1 / shifted
    square = inverse * inverse
    series = square * SERIES[-1]
    for coefficient in SERIES[-2:0:-1]:
        series += coefficient
        series *= square
    series += SERIES[0]
    series *= inverse
    result: Floats = (shifted - 0.5) * np.log(shifted)
    result -= np.log(product)
    result -= shifted - HALF_LOG_TAU
    result += series
    return result


class LogFactorials:
    """Give ln (n unit)! for arrays of counts: integers n of at most `largest`, or real weights, whose unit is 1."""

    def __init__(self, largest: float, unit: float) -> None:
        """Tabulate the integers, but no more of them than a processor's cache holds."""
        self._unit = unit
        self._covers_all = largest < TABLE
        self._table = log_gamma(np.arange(min(int(largest), TABLE) + 1.0) * unit + 1)

    def __call__(self, counts: Counts) -> Floats:
        """Look integers up, compute reals."""
        if counts.dtype.kind == "f":
            return log_gamma(counts + 1.0)
        result: Floats = self._table.take(counts, mode="clip")
        if not self._covers_all:
            beyond = counts >= TABLE
            if beyond.any():
                result[beyond] = log_gamma(counts[beyond] * self._unit + 1)
        return result
