"""How coarse a grid of noisy counts should be: on the way from the best grid to a single cell, that of least error.

Decided by public numbers: the costs of the grids, the noisy histogram that they were learnt from, and how much noise
their own counts will have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.modl import DataGrid
from sfumato.modl.table import Labels, sum_parts


@dataclass(frozen=True, eq=False)
class Parts:
    """A noisy histogram summed up by the parts of a grid."""

    counts: NDArray[np.int64]
    cells: NDArray[np.int64]
    """how many cells of the histogram a part has"""

    @classmethod
    def of(cls, histogram: NDArray[np.int64], labels: Labels) -> Parts:
        """Sum up single cells."""
        return cls(histogram, np.ones(histogram.shape, np.int64)).merged(labels)

    def merged(self, labels: Labels) -> Parts:
        """Merge parts along every axis."""
        counts, cells = self.counts, self.cells
        for axis, label in enumerate(labels):
            counts, cells = sum_parts(counts, axis, label), sum_parts(cells, axis, label)
        return Parts(counts, cells)

    def noise_error(self, of_cell: float, of_part: float) -> float:
        """Give what noise adds to the distance of the parts' people from the truth, given the variances of the
        histogram's cells and of the parts' own counts.

        The distance is Hellinger's: half the sum of (sqrt(x) - sqrt(y))^2, with people for shares. For an estimate y
        of x with variance v that is about v / (8 x), and of the order of sqrt(v) / 8 if x is smaller than the noise. A
        part is known from its own count and, m times noisier, from its m cells of the histogram.
        """
        variance = 1 / (1 / of_part + 1 / (self.cells * of_cell))
        return float((variance / (8 * np.maximum(self.counts, np.sqrt(variance)))).sum())


def best_granularity(
    grid: DataGrid, dispersion: float, histogram: NDArray[np.int64], of_cell: float, of_part: float
) -> DataGrid:
    """Give the grid of the least expected error.

    What a merge loses is told by the criterion: its cost is a negative log-likelihood, in which a deviation d of a cell
    from what is expected there, x, counts d^2 / (2 x), and in the distance it counts d^2 / (8 x): a quarter. Counts
    had been divided by the dispersion.
    """
    finest = Parts.of(histogram, grid.labels)
    first = tuple(np.unique(labels, return_index=True)[1] for labels in grid.labels)
    errors = [finest.noise_error(of_cell, of_part)]
    for step in grid.steps:
        merged = finest.merged(tuple(labels[at] for labels, at in zip(step.labels, first, strict=True)))
        lost = (step.cost - grid.cost) * dispersion / 4
        errors.append(lost + merged.noise_error(of_cell, of_part))
    return grid.after(int(np.argmin(errors)))
