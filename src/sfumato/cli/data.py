"""From the word a user types for a table to the table, its schema and its ledger, which lie beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sfumato import datasets
from sfumato.attributes import Categorical
from sfumato.errors import ReleaseError, TableError
from sfumato.schema import Column, Schema

schema_option = click.option(
    "--schema", "schema_path", type=click.Path(), help="The schema file [default: beside the data]."
)

BUNDLED = "adult"
SUFFIXES = re.compile(r"\.(csv|tsv|parquet|json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True)
class DataSource:
    """A table and the files that belong to it."""

    name: str
    table: Any
    schema_path: Path
    ledger_path: Path
    bundled: Schema | None = None

    def schema(self) -> Schema:
        """Read the schema: the bundled one, or the file's."""
        return self.bundled or Schema.load(self.schema_path)


def find_data(data: str, schema_path: str | None = None) -> DataSource:
    """Understand DATA: `adult` is the bundled table unless a file of that name exists, everything else is a path."""
    path = Path(data)
    if data == BUNDLED and not path.exists():
        adult = datasets.adult()
        bundled = None if schema_path else adult.schema
        return DataSource(BUNDLED, adult.table, Path(schema_path or "adult.schema.yaml"), Path("adult.ledger"), bundled)
    if not path.name:
        raise TableError(f"data ({data}) must be a file", "Name a CSV, Parquet or JSON-lines file, or adult.")
    real = path.resolve()
    stem = SUFFIXES.sub("", real.name) or real.name
    schema = Path(schema_path) if schema_path else real.with_name(f"{stem}.schema.yaml")
    return DataSource(stem, path, schema, real.with_name(f"{stem}.ledger"))


def named_only(schema: Schema, names: str | None) -> Schema:
    """Keep the attributes that were named, separated by commas; all if none were."""
    return schema if names is None else schema.only([name.strip() for name in names.split(",")])


def refuse_other_schema(schema: Schema, source: DataSource) -> None:
    """Refuse a table whose own schema, where there is one, describes an attribute otherwise than a release's does."""
    if source.bundled is None and not source.schema_path.exists():
        return
    declared = {name: _as_attribute(column) for name, column in source.schema().attributes.items()}
    for name, column in schema.attributes.items():
        if declared.get(name) != _as_attribute(column):
            raise ReleaseError(
                f"the release must be of the schema of the data, which declares {name} otherwise or not at all",
                "Evaluate with the table that was published.",
            )


def _as_attribute(column: Column) -> Column:
    """See the class as an attribute like others: any can be made the class of a release."""
    return column.model_copy(update={"kind": "categorical"}) if isinstance(column, Categorical) else column
