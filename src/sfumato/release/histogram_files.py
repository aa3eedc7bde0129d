"""What the folder of a release of groups holds besides, if they were made from a histogram of all single cells.

Its records show means of two counts, from which these cannot be read back; so `counts.parquet` keeps those of the
groups and `histogram.parquet` those of the cells, both as they were measured, in the order of regions and of codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.privacy.noisy import Noisy
from sfumato.release.reading import read_columns, read_rate, whole_numbers
from sfumato.release.tree_files import count_columns
from sfumato.schema import Schema

RATE = "histogram_epsilon"
FILES = {"counts.parquet", "histogram.parquet"}


def write_histogram(staging: Path, schema: Schema, counts: Noisy, histogram: Noisy) -> dict[str, Any]:
    """Write both counts; give the rate of the histogram's noise for `geometry.json`."""
    _write(staging / "counts.parquet", schema, counts)
    _write(staging / "histogram.parquet", schema, histogram)
    (rate,) = histogram.rates
    return {RATE: str(rate)}


def _write(path: Path, schema: Schema, noisy: Noisy) -> None:
    columns = dict(zip(count_columns(schema), noisy.counts.T, strict=True))
    pq.write_table(pa.table({name: pa.array(one) for name, one in columns.items()}), path, compression="zstd")


def read_histogram(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> Noisy:
    """Read the histogram; whether it fits the domain is seen where it is used."""
    return Noisy.even(read_counts(place / "histogram.parquet", schema), read_rate(geometry[RATE]))


def read_counts(path: Path, schema: Schema) -> NDArray[np.int64]:
    """Read counts by class."""
    names = count_columns(schema)
    table = read_columns(path, names)
    return np.stack([whole_numbers(table[name]) for name in names], axis=1)
