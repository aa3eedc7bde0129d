"""How a region's people are spread over the leaves inside it.

Without margins evenly, as the papers do; with them in proportion to the noisy margin, restricted to the region's
range. Only proportions within a range are used, so margins agree with the regions by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Indices
from sfumato.release.projection import threshold

Floats = NDArray[np.float64]

FINENESS = 2.0**40
"""Into so many pieces a margin is divided. Sums of whole pieces are exact in 53 bits, and a share is off by 1e-12 of
the table at most."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The mass of an attribute's leaves in whole pieces; each has one at least, so no range is without."""

    mass: Floats

    @classmethod
    def of(cls, leaves: int, margin: NDArray[np.int64] | None = None) -> Spread:
        """Spread by a margin made non-negative, or evenly; where the margin has nothing, evenly, too.

        >>> Spread.of(4, np.array([9, 3, -1, -2])).shares(np.array([[0, 2], [2, 4]]), np.array([1, 0, 1, 0])).round(9)
        array([0.83333333, 0.5       ])
        """
        if margin is None:
            return cls(np.ones(leaves))
        positive = np.maximum(margin - threshold(margin), 0.0)
        return cls(np.rint(positive * (FINENESS / max(positive.sum(), 1.0))) + 1.0)

    def shares(self, ranges: Indices, weights: Floats) -> Floats:
        """Give the part of each range's people that weights of leaves cover."""
        covered, whole = (sums_within(mass, ranges) for mass in (self.mass * weights, self.mass))
        return np.asarray(covered / whole)

    def draw(self, ranges: Indices, rng: np.random.Generator) -> Indices:
        """Draw a leaf inside each range."""
        ends = np.cumsum(self.mass)
        first, last = ranges[:, 0], ranges[:, 1] - 1
        before = ends[first] - self.mass[first]
        at = before + rng.random(len(ranges)) * (ends[last] - before)
        return np.clip(np.searchsorted(ends, at, side="right"), first, last)


def sums_within(leaves: Floats, ranges: Indices) -> Floats:
    """Sum numbers of leaves over each range, as differences of running sums."""
    running = np.concatenate(([0.0], np.cumsum(leaves)))
    return np.asarray(running[ranges[:, 1]] - running[ranges[:, 0]])
