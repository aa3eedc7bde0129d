"""What co-clustering gives: a grid of groups and intervals, and the coarser grids that it merges into.

It stands apart because it is what callers keep; it knows values by their codes and nothing of how it was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MethodError


@dataclass(frozen=True, eq=False)
class Step:
    """A merge on the way to the null model: two parts of a variable, and what the grid is worth after it."""

    variable: int
    first: tuple[int, ...]
    second: tuple[int, ...]
    shape: tuple[int, ...]
    """The numbers of parts after the merge."""
    cost: float
    information: float
    labels: tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, eq=False)
class DataGrid:
    """A partition of each variable's values; their cross product is the grid.

    Costs are in nats; differences of costs are differences of log-probability.
    """

    labels: tuple[NDArray[np.int64], ...]
    """For each variable, the part of each value, seen or not. Unseen values of a numeric variable are in the part of
    the nearest seen one; those of a categorical one in the part that has the most values."""
    cost: float
    null_cost: float
    information: float
    """The share of the best grid's gain over the null model that this one keeps: 1 for the best, 0 for the null one."""
    steps: tuple[Step, ...]
    """The cheapest merges one after the other, down to the null model."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of parts of each variable."""
        return tuple(int(part.max()) + 1 for part in self.labels)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def level(self) -> float:
        """How much cheaper than the null model it is, from 0 to 1; only grids of the same data can be compared."""
        return max(0.0, 1 - self.cost / self.null_cost) if self.null_cost > 0 else 0.0

    @property
    def parts(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each variable its parts, each the codes of its values."""
        return tuple(
            tuple(tuple(np.flatnonzero(part == number).tolist()) for number in range(parts))
            for part, parts in zip(self.labels, self.shape, strict=True)
        )

    def cut(self, *, cells: int | None = None, parts: int | None = None, information: float | None = None) -> DataGrid:
        """Give a coarser grid: the first on the way with at most so many cells, or so many parts in all, or the last
        before one that keeps less than a share of the information.
        """
        if (cells, parts, information).count(None) != 2:
            raise MethodError("a cut must be given one of cells, parts and information", "Leave out the others.")
        shapes = [self.shape, *(step.shape for step in self.steps)]
        if cells is not None:
            fits = [math.prod(shape) <= cells for shape in shapes]
        elif parts is not None:
            fits = [sum(shape) <= parts for shape in shapes]
        else:
            fits = [step.information < (information or 0.0) for step in self.steps] + [True]
        if not any(fits):
            asked, least = (f"cells ({cells})", 1) if cells is not None else (f"parts ({parts})", len(self.labels))
            raise MethodError(f"{asked} must be at least {least}", "Give a larger number.")
        return self.after(fits.index(True))

    def after(self, merges: int) -> DataGrid:
        """Give the grid after so many merges on the way to the null model."""
        if merges == 0:
            return self
        step = self.steps[merges - 1]
        return DataGrid(step.labels, step.cost, self.null_cost, step.information, self.steps[merges:])
