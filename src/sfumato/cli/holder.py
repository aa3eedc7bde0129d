"""The holder's commands: a table's account, its taxonomies, and the structure of its rows.

`account` tells what was paid and what is left, and takes a person's decisions about it. `taxonomy` carries taxonomies
between schema files and the common hierarchy CSV (leaf; parent; ...; root). `cocluster` shows a table's data grid in
words and as a picture.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import click

import sfumato
from sfumato import (
    NOT_PRIVATE,
    Categorical,
    Coclustering,
    Debit,
    Ledger,
    NonPrivate,
    Part,
    Schema,
    Statement,
    Step,
    Taxonomy,
    Total,
    epsilon_of,
    find_data,
    named_only,
)
from sfumato.cli.options import schema_option
from sfumato.cli.show import Show, reporting, table
from sfumato.errors import SchemaError
from sfumato.pictures.canvas import refuse_undrawable
from sfumato.pictures.triangle import draw_grid
from sfumato.storage import staged_file

data_argument = click.argument("data", type=click.Path())
ledger_option = click.option("--ledger", type=click.Path(), help="The ledger file [default: beside the data].")
MOST_VALUES = 6
"""The most values of a group that are shown, the most frequent."""
MOST_MERGES = 20
"""The most merges that are shown, the last."""


@click.group()
def account() -> None:
    """Show and settle what a table has paid."""


@account.command()
@data_argument
@ledger_option
@reporting
def show(data: str, ledger: str | None, show: Show) -> None:
    """List every debit ever made on DATA, by release, and what is left."""
    statement = _open(data, ledger).statement()
    show.result(_plain_statement(statement), _statement_text(statement))


@account.command()
@data_argument
@click.argument("publication")
@ledger_option
@reporting
def settle(data: str, publication: str, ledger: str | None, show: Show) -> None:
    """End a PUBLICATION that died: it keeps what it paid and gives back what it held."""
    book = _open(data, ledger)
    book.settle(publication, "settled by hand")
    show.result(_plain_statement(book.statement()), f"settled {publication}")


@account.command()
@data_argument
@click.option("--budget", required=True, help="The new lifetime budget, or none.")
@ledger_option
@reporting
def amend(data: str, budget: str, ledger: str | None, show: Show) -> None:
    """Change the lifetime budget. The old one stays on record."""
    book = _open(data, ledger)
    book.amend(None if budget == "none" else epsilon_of(budget))
    show.result(_plain_statement(book.statement()), _statement_text(book.statement()))


def _open(data: str, ledger: str | None) -> Ledger:
    return Ledger.open(ledger or find_data(data).ledger_path)


def _plain_statement(statement: Statement) -> dict[str, Any]:
    return {
        "table": statement.name,
        "budget": statement.budget,
        "spent": _plain_total(statement.spent),
        "left": statement.left,
        "units": list(statement.units),
        "without_epsilon": [one.id for one in statement.without_epsilon],
        "publications": [
            {
                "id": one.id,
                "at": one.at,
                "method": one.method,
                "outcome": one.outcome,
                "unit": one.unit,
                "reserved": _plain_total(one.reserved),
                "paid": _plain_total(one.paid),
                "debits": [
                    {"label": debit.label, "mechanism": _mechanism(debit), "epsilon": _plain_total(debit.epsilon)}
                    for debit in one.debits
                ],
            }
            for one in statement.publications
        ],
    }


def _statement_text(statement: Statement) -> str:
    blocks = []
    for one in statement.publications:
        rows = [(debit.label, _mechanism(debit), f"{float(debit.epsilon):.5f}") for debit in one.debits]
        held = f"holds {_in_words(one.held)}" if one.outcome == "open" else f"paid {_in_words(one.paid)}"
        unit = f" for each {one.unit}" if one.held != math.inf else ""
        head = f"{one.at}  {one.method}  {one.outcome}, {held}{unit}  ({one.id})"
        blocks.append(head + ("\n" + table(rows, ("round", "mechanism", "epsilon"), (2,)) if rows else ""))
    left = (
        "no lifetime budget is declared" if statement.left is None else f"{statement.left} of {statement.budget} left"
    )
    number = len(statement.publications)
    many = f"{number} publication{'' if number == 1 else 's'}"
    unit = f" for each {statement.units[0]}" if len(statement.units) == 1 else ""
    blocks.append(f"{statement.name}: {_in_words(statement.spent)} spent{unit} in {many}, {left}")
    if len(statement.units) > 1:
        blocks.append(
            f"Epsilons were spent for each {' and for each '.join(statement.units)}. They do not add up: no number "
            "bounds what all releases together tell of a person with many records."
        )
    if statement.without_epsilon:
        blocks.append("Exact counts were published: no epsilon bounds what all releases of the table tell together.")
    return "\n\n".join(blocks)


def _mechanism(line: Debit | NonPrivate) -> str:
    return line.mechanism if isinstance(line, Debit) else f"exact counts ({line.reason})"


def _plain_total(total: Total) -> str:
    """An epsilon for programs: JSON knows no infinity."""
    return "infinite" if isinstance(total, float) else str(total)


def _in_words(total: Total) -> str:
    """An epsilon for people, or that there is none."""
    return "infinite epsilon" if isinstance(total, float) else str(total)


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
    """Put the HIERARCHY file's tree into the SCHEMA as ATTRIBUTE's taxonomy.

    The leaves for missing and unseen values stay, and so do a draft's comments.
    """
    facts = Schema.load(schema)
    column = _categorical(facts, attribute)
    tree = Taxonomy.of_hierarchy(_rows(hierarchy))
    own = [leaf for leaf in (column.unseen, column.missing) if leaf is not None and leaf not in tree.leaves]
    changed = column.model_dump(exclude_unset=True) | {
        "kind": column.kind,
        "taxonomy": [*tree.nested, *own],
        "root": tree.root.label,
    }
    plain = facts.plain()
    plain["attributes"][attribute] = changed
    plain["confirmed"] = False
    before = Path(schema).read_text(encoding="utf-8")
    with staged_file(out) as staging:
        staging.write_text(Schema.parse(plain).dump(like=before), encoding="utf-8")
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


@click.command()
@click.argument("data", type=click.Path())
@click.option("--attributes", help="The attributes to co-cluster, such as age,sex [default: all declared].")
@schema_option
@click.option("--cells", type=click.IntRange(min=1), help="The most cells that the grid may have.")
@click.option(
    "--information", type=click.FloatRange(0, 1), help="Or the share of the best grid's information to be kept."
)
@click.option("--out", type=click.Path(), help="Draw the grid to this .png or .svg file.")
@reporting
def cocluster(
    data: str,
    attributes: str | None,
    schema_path: str | None,
    cells: int | None,
    information: float | None,
    out: str | None,
    show: Show,
) -> None:
    """Show the structure of DATA: the most probable groups and intervals of all attributes at once.

    NOT private: it tells exact counts, for the holder's eyes. It publishes nothing, so nothing is paid.
    """
    source = find_data(data, schema_path)
    schema = named_only(source.schema(), attributes)
    if out:
        refuse_undrawable(out)
    with show.working() as watch:
        watch("co-clustering")
        found = sfumato.cocluster(source.table, schema, cells=cells, information=information)
        if out:
            watch("drawing")
            draw_grid(found, out)
    show.result(_plain_grid(found, out), _grid_text(found, out))


def _plain_grid(found: Coclustering, out: str | None) -> dict[str, Any]:
    grid = found.grid
    return {
        "private": False,
        "warning": NOT_PRIVATE,
        "rows": found.rows,
        "attributes": {
            name: [
                {"name": part.name, "values": part.values, "rows": part.rows, "share": part.rows / found.rows}
                for part in parts
            ]
            for name, parts in found.parts.items()
        },
        "parts": grid.shape,
        "cells": grid.cells,
        "cost": grid.cost,
        "null_cost": grid.null_cost,
        "level": grid.level,
        "information": grid.information,
        "merges": [
            {"attribute": found.variables[one.variable], "parts": one.shape, "information": one.information}
            for one in grid.steps
        ],
        "picture": out,
    }


def _grid_text(found: Coclustering, out: str | None) -> str:
    blocks = [NOT_PRIVATE, _grid_facts(found), _parts_text(found)]
    if found.grid.steps:
        blocks.append(_merges_text(found))
    if out:
        blocks.append(f"drew {out}\n{NOT_PRIVATE}")
    return "\n\n".join(blocks)


def _grid_facts(found: Coclustering) -> str:
    grid = found.grid
    if not found.informative:
        return f"{found.rows:,} rows in a single cell: the attributes tell nothing of each other."
    return (
        f"{found.rows:,} rows in {_shape(grid.shape)} = {grid.cells:,} cells\n"
        f"cost {grid.cost:,.1f} nats, null model {grid.null_cost:,.1f}, level {grid.level:.4f}, "
        f"information {100 * grid.information:.1f} %"
    )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _parts_text(found: Coclustering) -> str:
    rows = [
        (name if number == 0 else "", f"{100 * part.rows / found.rows:.1f} %", _values(part))
        for name, parts in found.parts.items()
        for number, part in enumerate(parts)
    ]
    return table(rows, ("attribute", "share", "values"), (1,))


def _values(part: Part) -> str:
    more = f" and {len(part.values) - MOST_VALUES} more" if len(part.values) > MOST_VALUES else ""
    return ", ".join(part.values[:MOST_VALUES]) + more


def _merges_text(found: Coclustering) -> str:
    """The way to the null model, which is where a number of cells or a share of information is found."""
    steps = found.grid.steps[-MOST_MERGES:]
    rows = [
        (f"{100 * one.information:.1f} %", f"{math.prod(one.shape):,}", _shape(one.shape), *_merged(found, one))
        for one in steps
    ]
    finer = len(found.grid.steps) - len(steps)
    head = "Coarser grids" + (f", after {finer} finer ones" if finer else "")
    return f"{head}\n" + table(rows, ("information", "cells", "parts", "attribute", "merged"), (0, 1))


def _merged(found: Coclustering, step: Step) -> tuple[str, str]:
    """The attribute whose parts become one, and the parts, each by its most frequent value."""
    both = [found.part(step.variable, leaves).values for leaves in (step.first, step.second)]
    shown = [f"{values[0]} (+{len(values) - 1})" if len(values) > 1 else values[0] for values in both]
    return found.variables[step.variable], " with ".join(shown)
