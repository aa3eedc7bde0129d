"""Public tables to try Sfumato on, each with a schema made by hand and a citation; and larger ones made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.schema.attributes import Categorical
from sfumato.schema.schema import Column, Schema
from sfumato.storage import staged_file

ADULT_CITATION = (
    "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5XW20. CC BY 4.0."
)
GAPPY = ("workclass", "occupation", "native_country")
"""The attributes of Adult in which values are missing."""
MISSING = "Missing"
"""The leaf of missing values."""
REPLACED = 0.2
"""The chance that a value of a copy is drawn anew."""
PIECE = 1_000_000
"""The number of rows that are made at a time."""
GROUPS = 8
"""The number of row groups in which a piece is written."""


@dataclass(frozen=True)
class Dataset:
    """A public table, its schema, and whom to thank for it."""

    table: Any = field(repr=False)
    """a pyarrow Table"""
    schema: Schema = field(repr=False)
    citation: str


def adult(*, complete: bool = True) -> Dataset:
    """The 1994 census extract: its 45,222 complete rows, or all 48,842 with a leaf for what is missing."""
    folder = resources.files(__name__)
    with (folder / "adult.parquet").open("rb") as file:
        table: pa.Table = pq.read_table(file)
    schema = Schema.loads((folder / "adult.schema.yaml").read_text(encoding="utf-8"))
    if complete:
        return Dataset(table.drop_null(), schema, ADULT_CITATION)
    return Dataset(table, _with_missing(schema), ADULT_CITATION)


def _with_missing(schema: Schema) -> Schema:
    """Add a leaf for missing values under the root of each attribute that lacks some."""
    attributes: dict[str, Column] = dict(schema.attributes)
    for name in GAPPY:
        facts = attributes[name]
        assert isinstance(facts, Categorical)
        attributes[name] = Categorical(taxonomy=[*facts.taxonomy, MISSING], root=facts.root, missing=MISSING)
    return Schema(name=schema.name, confirmed=schema.confirmed, attributes=attributes)


def grown(table: Any, rows: int) -> Any:
    """A table of so many rows, as the papers grow Adult: variations of each record, with values replaced at random.

    The first records are the table itself. Of every further copy a fifth of all values are drawn anew, each alike, from
    those that its column has. Pieces are made one by one, from seeds of their own, so that size costs no memory, and a
    shorter table is the beginning of a longer one up to the last piece.
    """
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
