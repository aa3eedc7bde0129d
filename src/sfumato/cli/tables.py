"""The options by which the command line is told which table is meant, and how it is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from sfumato import ENGINES

schema_option = click.option(
    "--schema", "schema_path", type=click.Path(), help="The schema file [default: beside the data]."
)

Command = Callable[..., Any]


def source_options(command: Command) -> Command:
    """Add the options that choose what is read of DATA."""
    command = click.option(
        "--sql",
        metavar="QUERY",
        help="Columns and rows to read: a select from one table of the DuckDB database DATA, or from `data`, which is "
        "what the Parquet files DATA are called.",
    )(command)
    return click.option("--table", metavar="NAME", help="The table of the DuckDB database DATA.")(command)


ENGINE_OPTIONS = ("engine", "memory", "master", "scratch")


def engine_options(command: Command) -> Command:
    """Add the options that say how a table is counted."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def how_counted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was said, for the account."""
    return {name: options[name] for name in ENGINE_OPTIONS}


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="auto",
        show_default=True,
        help="What counts: auto is memory if the coded table fits, else duckdb. confidence, mondrian and tds work on "
        "single records, in memory only.",
    ),
    click.option("--memory", metavar="SIZE", help="The memory to use, such as 4GB [default: half of what is free]."),
    click.option("--master", metavar="URL", help="The Spark cluster, such as spark://host:7077 or local[4]."),
    click.option(
        "--scratch",
        type=click.Path(),
        help="The folder for coded rows that do not fit in memory, removed at the end [default: beside the ledger].",
    ),
)
