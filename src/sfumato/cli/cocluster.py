"""The command that shows the holder the structure of a table: its data grid in words and as a picture."""

from __future__ import annotations

import math
from typing import Any

import click

from sfumato import holder
from sfumato.cli.data import find_data, named_only, schema_option
from sfumato.cli.show import Show, reporting, table
from sfumato.coclustering import NOT_PRIVATE, Coclustering, Part
from sfumato.modl import Step
from sfumato.pictures.canvas import refuse_undrawable
from sfumato.pictures.triangle import draw_grid

MOST_VALUES = 6
"""Of a group with more values than this, the most frequent are shown."""
MOST_MERGES = 20
"""Of more merges than this, the last are shown."""


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
        found = holder.cocluster(source.table, schema, cells=cells, information=information)
        if out:
            watch("drawing")
            draw_grid(found, out)
    show.result(_plain(found, out), _text(found, out))


def _plain(found: Coclustering, out: str | None) -> dict[str, Any]:
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


def _text(found: Coclustering, out: str | None) -> str:
    blocks = [NOT_PRIVATE, _facts(found), _parts_text(found)]
    if found.grid.steps:
        blocks.append(_merges_text(found))
    if out:
        blocks.append(f"drew {out}\n{NOT_PRIVATE}")
    return "\n\n".join(blocks)


def _facts(found: Coclustering) -> str:
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
    """Show the way to the null model, which is where a number of cells or a share of information is found."""
    steps = found.grid.steps[-MOST_MERGES:]
    rows = [
        (f"{100 * one.information:.1f} %", f"{math.prod(one.shape):,}", _shape(one.shape), *_merged(found, one))
        for one in steps
    ]
    finer = len(found.grid.steps) - len(steps)
    head = "Coarser grids" + (f", after {finer} finer ones" if finer else "")
    return f"{head}\n" + table(rows, ("information", "cells", "parts", "attribute", "merged"), (0, 1))


def _merged(found: Coclustering, step: Step) -> tuple[str, str]:
    """Tell which parts become one, each by its most frequent value."""
    both = [found.part(step.variable, leaves).values for leaves in (step.first, step.second)]
    shown = [f"{values[0]} (+{len(values) - 1})" if len(values) > 1 else values[0] for values in both]
    return found.variables[step.variable], " with ".join(shown)
