"""Which combinations of values occur in a table, and how often: where generalizing records one by one begins.

No meter can ask for it: that a combination is listed tells that someone has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import CountEngine
from sfumato.partition import Grid

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Combinations:
    """Every combination of parts and class that someone has, once."""

    parts: tuple[Integers, ...]
    """by attribute, the part of its cut that each combination has"""
    classes: Integers
    counts: Integers

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Combinations(...)"


class ListingEngine(CountEngine, Protocol):
    """An engine that can also list what occurs."""

    def combinations(self, grid: Grid, classes: int) -> Combinations:
        """List the regions of a grid that hold someone, by class, in one pass."""
