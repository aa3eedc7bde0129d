"""Cells as rows that people can read: generalized values, class, counts.

Made in batches of dictionary codes, so that millions of cells pass through without being held, and given in the
frame library that the analyst uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import ReleaseError
from sfumato.release.regions import Sides
from sfumato.schema import Schema

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
