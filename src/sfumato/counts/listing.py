"""The engine behind exact counts: it counts a table in memory and can also list what occurs in it.

Apart from the engine that meters stand before, which has no such verb to be asked by mistake.
"""

from __future__ import annotations

import numpy as np

from sfumato.counts.combinations import Combinations
from sfumato.counts.memory import MemoryEngine
from sfumato.grouping import row_keys
from sfumato.partition import Grid


class MemoryListing(MemoryEngine):
    """Coded columns that can be listed."""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "MemoryListing(...)"

    def combinations(self, grid: Grid, classes: int) -> Combinations:
        """List what occurs, by sorting."""
        parts = [grid.part_of(attribute)[column] for attribute, column in enumerate(self._columns)]
        keys = row_keys([*parts, self._classes], [*grid.parts, classes])
        _, rows, counts = np.unique(keys, return_index=True, return_counts=True)
        return Combinations(tuple(part[rows] for part in parts), self._classes[rows].astype(np.int64), counts)
