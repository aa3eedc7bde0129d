"""The mean of what several runs gave, and how far it may be from that of all runs there could be."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def mean_and_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float | None]:
    """Give the mean, and its standard error if there is more than one value.

    >>> mean_and_error([1.0, 3.0]), mean_and_error([5.0])
    ((2.0, 1.0), (5.0, None))
    """
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return float(np.mean(values)), error
