"""The commands that carry taxonomies between schema files and the common hierarchy CSV (leaf; parent; ...; root)."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from sfumato.attributes import Categorical
from sfumato.cli.show import Show, reporting
from sfumato.errors import SchemaError
from sfumato.schema import Schema
from sfumato.storage import staged_file
from sfumato.taxonomy import Taxonomy


@click.group()
def taxonomy() -> None:
    """Carry taxonomies to and from hierarchy CSV files."""


@taxonomy.command(name="import")
@click.argument("schema", type=click.Path())
@click.argument("attribute")
@click.argument("hierarchy", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="The new schema file; it must be confirmed again.")
@reporting
def import_hierarchy(schema: str, attribute: str, hierarchy: str, out: str, show: Show) -> None:
    """Put the HIERARCHY file's tree into the SCHEMA as ATTRIBUTE's taxonomy."""
    facts = Schema.load(schema)
    column = _categorical(facts, attribute)
    tree = Taxonomy.of_hierarchy(_rows(hierarchy))
    changed = column.model_dump(exclude_unset=True) | {
        "kind": column.kind,
        "taxonomy": tree.nested,
        "root": tree.root.label,
    }
    plain = facts.plain()
    plain["attributes"][attribute] = changed
    plain["confirmed"] = False
    with staged_file(out) as staging:
        staging.write_text(Schema.parse(plain).dump(), encoding="utf-8")
    show.result({"schema": out, "leaves": len(tree.leaves), "height": tree.height}, f"wrote {out}; read and confirm it")


@taxonomy.command(name="export")
@click.argument("schema", type=click.Path())
@click.argument("attribute")
@click.option("--out", type=click.Path(), required=True, help="The hierarchy CSV to write.")
@reporting
def export_hierarchy(schema: str, attribute: str, out: str, show: Show) -> None:
    """Write ATTRIBUTE's taxonomy as a hierarchy file."""
    tree = _categorical(Schema.load(schema), attribute).tree
    with staged_file(out) as staging, staging.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(tree.hierarchy)
    show.result({"out": out, "leaves": len(tree.leaves)}, f"wrote {len(tree.leaves):,} leaves to {out}")


def _categorical(schema: Schema, attribute: str) -> Categorical:
    column = schema.attributes.get(attribute)
    if not isinstance(column, Categorical):
        raise SchemaError(
            f"attribute ({attribute}) must be a categorical attribute of the schema", "Check its name and kind."
        )
    return column


def _rows(path: str) -> list[list[str]]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            return [row for row in csv.reader(file, delimiter=";") if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SchemaError(
            f"hierarchy {path} must be a readable CSV file", "Write one row per leaf: leaf; parent; ...; root."
        ) from None
