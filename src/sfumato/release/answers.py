"""Range counts from a release, each with the deviation that the noise gives it.

An answer is a weighted sum of noisy counts, so its noise variance is the sum of the squared weights times the noise
of one count: exact, no matter how many regions. What the noise does not cover, spreading inside regions, is told
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Grid
from sfumato.privacy.noisy import Noisy

Floats = NDArray[np.float64]

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval."""
        note = f", {self.assumed:,.0f} of it by spreading inside groups" if abs(self.assumed) >= 0.5 else ""
        return f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %{note})"


def estimate(grid: Grid, noisy: Noisy, part_weights: Sequence[Floats], class_weights: Floats) -> Estimate:
    """Weigh every region by the product of its parts' weights, and every class by its own."""
    split = [part_weights[attribute] for attribute in grid.split_attributes]
    whole = [part_weights[attribute] for attribute in range(len(grid.cuts)) if grid.parts[attribute] == 1]
    table = noisy.counts.reshape([len(weights) for weights in split] + [-1])
    factor = math.prod(float(weights[0]) for weights in whole)
    value = factor * _contract(table, [*split, class_weights])
    certain = all(weights[0] in (0.0, 1.0) for weights in whole)
    resolved = (
        factor * _contract(table, [*(np.where(w == 1.0, 1.0, 0.0) for w in split), class_weights]) if certain else 0.0
    )
    squares = factor**2 * math.prod(float((weights**2).sum()) for weights in [*split, class_weights])
    return Estimate(value, math.sqrt(noisy.variance * squares), value - resolved)


def _contract(table: NDArray[np.int64], weights: Sequence[Floats]) -> float:
    result: NDArray[np.float64] = table.astype(np.float64)
    for one in weights:
        result = np.tensordot(one, result, axes=(0, 0))
    return float(result)
