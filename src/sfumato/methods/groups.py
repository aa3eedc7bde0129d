"""Groups of values found by co-clustering, as parts of a grid: what they are called, and whether they mean anything."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Numeric
from sfumato.modl import DataGrid
from sfumato.partition import Grid
from sfumato.privacy.noisy import Noisy
from sfumato.schema import Schema

SURE = 4.0
"""Structure must stand out from noise by so many standard deviations."""
NO_STRUCTURE = "warning: the grid cannot be told from noise, so this release carries no structure beyond its margins"


def grid_of(schema: Schema, found: DataGrid | None) -> Grid:
    """Give the grid of the attributes' parts; the class is counted value by value in any case."""
    if found is None:
        return Grid.whole(schema.shape)
    return Grid.of_groups(found.parts[: len(schema.shape)])


def with_groups(found: DataGrid, attributes: int, most: int) -> DataGrid:
    """Give the finest grid on the way whose first attributes have so many combinations of parts at most.

    The class, which may come after them, is left out: its values are counted one by one whatever its parts are.
    """
    shapes = [found.shape, *(step.shape for step in found.steps)]
    return found.after(next(merges for merges, shape in enumerate(shapes) if math.prod(shape[:attributes]) <= most))


def describe_groups(schema: Schema, grid: Grid) -> tuple[str, ...]:
    """Tell the parts of each attribute."""
    return tuple(
        f"{name}: {parts} {'interval' if isinstance(column, Numeric) else 'group'}{'s' if parts > 1 else ''}"
        for (name, column), parts in zip(schema.predictors.items(), grid.parts, strict=True)
    )


def structure(grid: Grid, counts: Noisy) -> tuple[str, ...]:
    """Warn if the parts' own counts, whose noise the grid was not learnt from, show nothing that margins do not.

    If attributes were independent, a part would have e people, the product of its margins' shares, and its count would
    miss that by chance and by noise, with variance e + v. The sum of (count - e)^2 / (e + v) over G parts would then
    be about G, give or take sqrt(2 G) or, the noise being Laplace, sqrt(5 G). A count below 0 is noise for certain: it
    is taken for 0, which only lowers the sum.
    """
    table = counts.counts.reshape(*grid.parts, -1).astype(np.float64)
    deviations = _beyond_margins(table, float(counts.variances[0]))
    excess = float((deviations - 1).sum())
    return () if excess > SURE * math.sqrt(5 * table.size) else (NO_STRUCTURE,)


def _beyond_margins(table: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Give the squared deviations from what the margins say, in units of their variance."""
    expected = np.full(table.shape, max(float(table.sum()), 0.0))
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        margin = np.maximum(table.sum(axis=others, keepdims=True), 0.0)
        expected *= margin / max(float(margin.sum()), 1.0)
    return np.asarray((np.maximum(table, 0.0) - expected) ** 2 / (expected + variance))
