"""How a region's people are spread over the leaves inside it.

Without margins evenly, as the papers do; with them in proportion to the people that the margin tells of, restricted to
the region's range. Only proportions within a range are used, so margins agree with the regions by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Indices

Floats = NDArray[np.float64]

FINENESS = 2.0**40
"""Into so many pieces a margin is divided. Sums of whole pieces are exact in 53 bits, and a share is off by 1e-12 of
the table at most."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The mass of an attribute's leaves in whole pieces; each has one at least, so no range is without."""

    mass: Floats

    @classmethod
    def of(cls, leaves: int, people: Floats | None = None) -> Spread:
        """Spread in proportion to the people of the leaves, or evenly; where there is nobody, evenly, too.

        >>> mass = Spread.of(4, np.array([9.0, 3.0, 0, 0])).mass
        >>> (mass[:2] / mass[:2].sum()).round(9).tolist(), bool(mass[2] == mass[3])
        ([0.75, 0.25], True)
        """
        if people is None:
            return cls(np.ones(leaves))
        return cls(np.rint(people * (FINENESS / max(people.sum(), 1.0))) + 1.0)

    def reordered(self, order: Indices) -> Spread:
        """Give the same mass in another order of the leaves."""
        return Spread(self.mass[order])

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
