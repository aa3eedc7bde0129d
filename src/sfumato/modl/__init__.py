"""MODL data grids: put the values of several variables into groups and intervals at once, as is most probable.

Co-clustering after M. Boullé, "Data grid models for preparation and modeling in supervised and unsupervised learning"
(2010). It works on a histogram, which must be public already: nothing here is private or adds noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import MethodError
from sfumato.modl.criterion import Kind, Variant
from sfumato.modl.grid import Coordinates, DataGrid, Step, Table
from sfumato.modl.merging import describe
from sfumato.modl.search import cheapest_grid

__all__ = ["Coordinates", "DataGrid", "Kind", "Step", "Variant", "fit"]


def fit(
    histogram: ArrayLike | Coordinates,
    kinds: Sequence[Kind],
    *,
    variant: Variant = "boulle2010",
    dispersion: float = 1.0,
    restarts: int = 9,
    seed: int | np.random.Generator = 0,
) -> DataGrid:
    """Find the grid of least cost for a histogram with one axis per variable.

    Weights may be real. Those that are whole numbers to be divided by a `dispersion`, such as noisy counts, are best
    given as they are, with the dispersion: that is faster. The same seed gives the same grid.

    >>> grid = fit([[30, 2], [3, 25]], ["categorical", "categorical"])
    >>> grid.parts
    (((0,), (1,)), ((0,), (1,)))
    >>> round(grid.cost, 8), round(grid.null_cost, 8)
    (66.84339743, 87.8046807)
    """
    if restarts < 0:
        raise MethodError(f"restarts ({restarts}) must not be negative", "Give 0 for a single descent.")
    table = Table.of(histogram, kinds, variant, dispersion)
    return describe(table, cheapest_grid(table, restarts, np.random.default_rng(seed)))
