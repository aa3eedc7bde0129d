"""Public tables to try Sfumato on, each with a schema made by hand and a citation."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.schema.attributes import Categorical
from sfumato.schema.schema import Column, Schema

ADULT_CITATION = (
    "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5XW20. CC BY 4.0."
)
GAPPY = ("workclass", "occupation", "native_country")
"""The attributes of Adult in which values are missing."""
MISSING = "Missing"
"""The leaf of missing values."""


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
