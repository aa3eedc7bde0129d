"""Cells as rows that people can read: generalized values, class, counts.

Made in batches of dictionary codes, so that millions of cells pass through without being held, and given in the
frame library that the analyst uses.

Synthetic records: people drawn from the release, with values of the original kind.

Groups are drawn in proportion to their counts, then each attribute's leaf inside the group by its spread, then a value
inside the leaf. All of it is post-processing of what was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import ReleaseError
from sfumato.models.margins import Spread
from sfumato.models.regions import Sides
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import Schema

Frame = Literal["arrow", "pandas", "polars"]
CHUNK = 1 << 16


def count_names(schema: Schema) -> tuple[str, str]:
    """Name the columns for noisy and non-negative counts so that no attribute has the same name."""
    tail = ""
    while {f"noisy_count{tail}", f"count{tail}"} & schema.attributes.keys():
        tail += "_"
    return f"noisy_count{tail}", f"count{tail}"


def record_batches(
    schema: Schema, sides: Sequence[Sides], shown: NDArray[Any], people: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Give all cells as rows, regions in their order and classes inside: both counts are regions x classes."""
    labels = [
        pa.array([side.label(column, lo, hi) for lo, hi in side.ranges.tolist()])
        for column, side in zip(schema.predictors.values(), sides, strict=True)
    ]
    classes = len(schema.classes)
    for start in range(0, len(people), CHUNK):
        regions = np.arange(start, min(start + CHUNK, len(people)))
        columns = {
            name: _named(np.repeat(side.number(regions), classes), names)
            for name, side, names in zip(schema.predictors, sides, labels, strict=True)
        }
        if schema.target is not None:
            columns[schema.target] = _named(np.tile(np.arange(classes), len(regions)), pa.array(schema.classes))
        counts = (pa.array(shown[regions].ravel()), pa.array(people[regions].ravel()))
        yield pa.RecordBatch.from_pydict(columns | dict(zip(count_names(schema), counts, strict=True)))


def _named(codes: NDArray[np.int64], names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


def as_frame(table: pa.Table, frame: Frame) -> Any:
    """Give a table in the wanted library's frame."""
    if frame not in get_args(Frame):
        raise ReleaseError(f"frame ({frame}) must be one of {', '.join(get_args(Frame))}", "Choose one of them.")
    if frame == "arrow":
        return table
    try:
        return nw.from_arrow(table, backend=frame).to_native()
    except ImportError:
        raise ReleaseError(f"frame ({frame}) must be installed", f"Run: pip install {frame}") from None


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
