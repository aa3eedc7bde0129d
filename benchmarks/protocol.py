"""What the benchmarks on Adult share: the splits of the table, and how a mean is written with its standard error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato import datasets
from sfumato.evaluate.classification import Codes
from sfumato.io.encode import encode
from sfumato.io.tables import open_table
from sfumato.schema import Schema


def coded(table: pa.Table, schema: Schema) -> Codes:
    """Give a table's leaf codes by attribute."""
    return encode(open_table(table), schema).columns


def splits(run: int) -> tuple[pa.Table, Codes]:
    """Give a random 2/3 of Adult, and the other third coded; a run has the same split in every benchmark."""
    adult = datasets.adult()
    order = np.random.default_rng(run).permutation(adult.table.num_rows)
    cut = 2 * len(order) // 3
    return adult.table.take(np.sort(order[:cut])), coded(adult.table.take(np.sort(order[cut:])), adult.schema)


def mean_of(values: Sequence[float]) -> str:
    """Write a mean with its standard error."""
    return f"{np.mean(values):6.2f} ({np.std(values, ddof=1) / len(values) ** 0.5:.2f})"
