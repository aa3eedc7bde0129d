"""Grow a table to any size, as the papers grow Adult: variations of each record, with values replaced at random.

The first records are the table itself. Of every further copy a fifth of all values are drawn anew, each alike, from
those that its column has. Pieces are made one by one, from seeds of their own, so that size costs no memory, and a
shorter table is the beginning of a longer one up to the last piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.storage import staged_file

REPLACED = 0.2
"""The chance that a value of a copy is drawn anew."""
PIECE = 1_000_000
"""The number of rows that are made at a time."""
GROUPS = 8
"""The number of row groups in which a piece is written."""


def grown(table: Any, rows: int) -> Any:
    """A pyarrow Table of so many rows."""
    return pa.concat_tables(_pieces(table, rows))


def write_grown(table: Any, rows: int, path: Path) -> Path:
    """Write a Parquet file of so many rows, unless it is there already."""
    if not path.exists():
        with staged_file(path) as staging, pq.ParquetWriter(staging, table.schema) as writer:
            for piece in _pieces(table, rows):
                writer.write_table(piece, row_group_size=PIECE // GROUPS)
    return path


def _pieces(table: Any, rows: int) -> Iterator[Any]:
    for start in range(0, rows, PIECE):
        yield _piece(table, np.arange(start, min(start + PIECE, rows)))


def _piece(table: Any, numbers: Any) -> Any:
    rng = np.random.default_rng([0, int(numbers[0])])
    copies = table.take(pa.array(numbers % table.num_rows))
    columns = []
    for name in table.column_names:
        domain = table[name].unique()
        other = domain.take(pa.array(rng.integers(0, len(domain), len(numbers))))
        original = (numbers < table.num_rows) | (rng.random(len(numbers)) >= REPLACED)
        columns.append(pc.if_else(pa.array(original), copies[name].combine_chunks(), other))
    return pa.table(columns, schema=table.schema)
