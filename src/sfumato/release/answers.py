"""Range counts from a release, each with the deviation that the noise of the counts gives it.

An answer is a weighted sum of noisy counts, so the variance from their noise is the sum of squared weights times the
variance of one count, no matter how many regions. What that does not cover, spreading people inside regions (and the
noise of the margins by which they are spread), is told beside it: how much of the answer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Grid
from sfumato.privacy.noisy import Noisy
from sfumato.release.spread import by_part

Floats = NDArray[np.float64]

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""
    aligned: bool
    """Whether the condition covers every region wholly or not at all, so that nothing is assumed."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval, and what it leaves out."""
        text = f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %"
        return (
            f"{text})" if self.aligned else f"{text} for noise; {self.assumed:,.0f} rests on spreading inside groups)"
        )


@dataclass(frozen=True)
class PartWeights:
    """How much of each part of an attribute a condition covers: its people, and whether wholly or not at all."""

    weights: Floats
    whole: NDArray[np.bool_]
    aligned: bool

    @classmethod
    def of(cls, cut: tuple[int, ...], shares: Floats, leaves: Floats | None) -> PartWeights:
        """Weigh the parts of a cut by the covered shares of their leaves; None covers everything."""
        if leaves is None:
            return cls(np.ones(len(cut) - 1), np.ones(len(cut) - 1, np.bool_), True)
        least, most = np.minimum.reduceat(leaves, cut[:-1]), np.maximum.reduceat(leaves, cut[:-1])
        whole = least == 1.0
        return cls(np.where(whole, 1.0, by_part(cut, shares * leaves)), whole, bool((whole | (most == 0.0)).all()))


def estimate(grid: Grid, noisy: Noisy, parts: Sequence[PartWeights], classes: Floats) -> Estimate:
    """Weigh every region by the product of its parts' weights, and every class by its own."""
    split = [parts[attribute] for attribute in grid.split_attributes]
    single = [part for part, number in zip(parts, grid.parts, strict=True) if number == 1]
    table = noisy.counts.reshape([len(part.weights) for part in split] + [-1])
    factor = math.prod(float(part.weights[0]) for part in single)
    value = factor * _contract(table, [*(part.weights for part in split), classes])
    resolved = 0.0
    if all(part.whole[0] for part in single):
        resolved = _contract(table, [*(part.whole.astype(np.float64) for part in split), classes])
    squares = factor**2 * math.prod(
        float((weights**2).sum()) for weights in [*(part.weights for part in split), classes]
    )
    aligned = all(part.aligned for part in parts)
    return Estimate(value, math.sqrt(noisy.variance * squares), 0.0 if aligned else value - resolved, aligned)


def _contract(table: NDArray[np.int64], weights: Sequence[Floats]) -> float:
    result: NDArray[np.float64] = table.astype(np.float64)
    for one in weights:
        result = np.tensordot(one, result, axes=(0, 0))
    return float(result)
