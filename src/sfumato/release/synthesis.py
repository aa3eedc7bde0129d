"""Synthetic records: people drawn from the release, with values of the original kind.

Groups are drawn in proportion to their counts, then each attribute's leaf inside the group by its spread, then a value
inside the leaf. All of it is post-processing of what was paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric
from sfumato.release.regions import Sides
from sfumato.release.spread import Spread

Integers = NDArray[np.int64]


def draw_cells(weights: NDArray[np.integer | np.floating], size: int, rng: np.random.Generator) -> Integers:
    """Draw indices of cells in proportion to non-negative weights, or evenly when all are 0.

    With one random start and even steps through the running sum, a cell of which x are expected is drawn x times,
    rounded up or down: no chance is added to what the noise did, and neighbours together are as near to their sum.
    The order is shuffled, so that any part of the sample is a sample.

    >>> np.bincount(draw_cells(np.array([3, 0, 1]), 8, np.random.default_rng())).tolist()
    [6, 0, 2]
    """
    given = weights.ravel().astype(np.float64)
    running = np.cumsum(given if given.any() else np.ones_like(given))
    at = (np.arange(size) + rng.random()) * (running[-1] / max(size, 1))
    cells = np.searchsorted(running, at, side="right").astype(np.int64)
    return np.asarray(rng.permutation(np.minimum(cells, np.searchsorted(running, running[-1]))))


def draw_leaves(
    sides: Sequence[Sides], spreads: Sequence[Spread], regions: Integers, rng: np.random.Generator
) -> list[Integers]:
    """Draw one record inside each given region, as the leaf codes of its attributes."""
    return [side.order[spread.draw(side.of(regions), rng)] for side, spread in zip(sides, spreads, strict=True)]


def values(column: Categorical | Numeric, leaves: Integers, rng: np.random.Generator) -> pa.Array:
    """Turn leaves into values: a name, or a number or date drawn evenly inside its cell; null for missing."""
    if isinstance(column, Categorical):
        return pa.DictionaryArray.from_arrays(pa.array(leaves, pa.int32()), pa.array(column.tree.leaves)).cast(
            pa.string()
        )
    missing = leaves >= column.cells
    cells = np.minimum(leaves, column.cells - 1)
    if column.is_whole:
        numbers = rng.integers(column.edges[cells], column.edges[cells + 1])
        return (
            pa.array(numbers.astype(np.int32), pa.date32(), mask=missing)
            if column.is_date
            else pa.array(numbers, mask=missing)
        )
    digits = _decimals(column) + 1
    ticks = np.rint(column.edges * 10.0**digits).astype(np.int64)
    return pa.array(np.round(rng.integers(ticks[cells], ticks[cells + 1]) / 10.0**digits, digits), mask=missing)


def _decimals(column: Numeric) -> int:
    """Count the decimals in which the grid is written."""
    bounds = (column.lower, column.upper, column.step)
    exponents = [-int(bound.as_tuple().exponent) for bound in bounds if isinstance(bound, Decimal)]
    return min(max([0, *exponents]), 12)
