"""The group of commands, and those that prepare and make a release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import sfumato
from sfumato.account import Account, refuse_unconfirmed
from sfumato.cli.account import account
from sfumato.cli.data import DataSource, find_data
from sfumato.cli.recipients import inspect, query, records, sample
from sfumato.cli.show import REFUSED, Show, reporting, table
from sfumato.cli.taxonomy import taxonomy
from sfumato.errors import MethodError
from sfumato.io.draft import draft_schema
from sfumato.io.encode import Coded, encode
from sfumato.io.tables import open_table
from sfumato.methods import DiffGen
from sfumato.privacy.budget import Schedule, epsilon_of
from sfumato.release.release import Release
from sfumato.release.storage import staged_file
from sfumato.schema import Schema

schema_option = click.option(
    "--schema", "schema_path", type=click.Path(), help="The schema file [default: beside the data]."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(sfumato.__version__, prog_name="sfumato")
def main() -> None:
    """Publish a table about people so that analysts can use it and nobody can find a person in it."""


@main.command()
@click.argument("data", type=click.Path())
@click.option("--target", help="The column to predict.")
@click.option("--out", type=click.Path(), help="Where to write [default: people.schema.yaml for people.csv].")
@reporting
def draft(data: str, target: str | None, out: str | None, show: Show) -> None:
    """Guess a schema from DATA, for you to correct and confirm."""
    source = find_data(data)
    schema = draft_schema(open_table(source.table), source.name, target)
    place = Path(out) if out else source.schema_path
    with staged_file(place) as staging:
        staging.write_text(_DRAFT_HEAD + schema.dump(), encoding="utf-8")
    kinds = [(name, column.kind) for name, column in schema.attributes.items()]
    show.result(
        {"schema": str(place), "attributes": dict(kinds)},
        table(kinds, ("column", "kind"))
        + f"\n\nwrote {place}\nIt was derived from private data: correct it, then set confirmed: true.",
    )


_DRAFT_HEAD = """\
# Derived from private data, NOT confirmed. A schema is public: what stands here is published with every release.
# Correct kinds and bounds, group categories into taxonomies, remove values that betray a person (rare categories,
# exact extremes), drop what must not be known; then set `confirmed: true` and `origin: declared`.
"""


@main.command()
@click.argument("data", type=click.Path())
@schema_option
@reporting
def check(data: str, schema_path: str | None, show: Show) -> None:
    """Tell which values of DATA would not fit its schema, before anything is spent. For the holder's eyes."""
    source = find_data(data, schema_path)
    coded = encode(open_table(source.table), source.schema())
    show.result(_check_plain(coded), _check_text(coded))
    if coded.misfits or not coded.rows:
        raise SystemExit(REFUSED)


def _check_plain(coded: Coded) -> dict[str, Any]:
    return {
        "fits": not coded.misfits,
        "rows": coded.rows,
        "misfits": [{"column": one.column, "reason": one.reason, "rows": one.rows} for one in coded.misfits],
        "outside": coded.outside,
        "undeclared": list(coded.undeclared),
    }


def _check_text(coded: Coded) -> str:
    lines = [f"{coded.rows:,} rows"]
    if not coded.rows:
        lines.append("The table is empty: a release of it would be noise.")
    if coded.misfits:
        lines.append(
            table(
                [(one.column, one.reason, f"{one.rows:,}") for one in coded.misfits],
                ("column", "does not fit", "rows"),
                (2,),
            )
        )
        lines.append("Correct the table, or declare leaves for `missing` and `unseen` values in the schema.")
    for column, rows in coded.outside.items():
        lines.append(f"{column}: {rows:,} rows outside the declared range count in the nearest cell")
    if coded.undeclared:
        lines.append(f"not in the schema, so not read: {', '.join(coded.undeclared)}")
    if not coded.misfits:
        lines.append("Everything fits. (These numbers are not private: do not publish them.)")
    return "\n".join(lines)


@main.command()
@click.argument("data", type=click.Path())
@click.option("--method", type=click.Choice(list(sfumato.METHODS)), default="diffgen", show_default=True)
@click.option("--epsilon", required=True, help="The privacy budget to spend, such as 1, 0.5 or 1/3.")
@click.option("--specializations", default="10", show_default=True, help="How many values to specialize, or auto.")
@click.option("--score", default="deviation", show_default=True, help="Or max, gain (the paper's), weighted-gain.")
@click.option(
    "--rows-about",
    default=1_000_000,
    show_default=True,
    help="For weighted-gain: the publicly known order of magnitude.",
)
@click.option(
    "--choice",
    default="joint",
    show_default=True,
    help="Choose value and split point jointly, or separately (the paper).",
)
@click.option("--selection", default="permute-and-flip", show_default=True, help="Or exponential (the paper).")
@click.option(
    "--margins", default="0.2", show_default=True, help="Share of epsilon for one-way margins; 0 is the paper's way."
)
@click.option("--growth", default="0.5", show_default=True, help="Share of the rest for choosing specializations.")
@click.option(
    "--as-published", is_flag=True, help="Exactly the paper's method; only --specializations and --score count."
)
@click.option(
    "--max-cells", default=10_000_000, show_default=True, help="Never make more groups times classes than this."
)
@click.option("--target", help="The class attribute [default: the schema's].")
@schema_option
@click.option("--ledger", type=click.Path(), help="The table's ledger [default: beside the data].")
@click.option("--out", type=click.Path(), help="The release folder to write.")
@click.option("--dry-run", is_flag=True, help="Print the schedule of debits and touch no data.")
@click.option("--unsafe-seed", type=int, help="Reproducible noise, for tests: the release carries no guarantee.")
@reporting
def publish(data: str, schema_path: str | None, ledger: str | None, show: Show, **options: Any) -> None:
    """Publish DATA: a CSV, Parquet or JSON-lines file, or `adult` for the bundled table."""
    source = find_data(data, schema_path)
    schema = source.schema()
    if options["target"]:
        schema = schema.with_target(options["target"])
    method = _method(options)
    epsilon = epsilon_of(options["epsilon"])
    if options["dry_run"]:
        schedule = method.plan(schema, epsilon)
        show.result(
            {"schedule": {label: str(part) for label, part in schedule.parts.items()}}, _schedule_text(schedule)
        )
        return
    refuse_unconfirmed(schema)
    if not options["out"]:
        raise MethodError("out must name the release folder to write", "Give --out release/.")
    release = _publish(source, schema, ledger, method, epsilon, options, show)
    show.result(_published_plain(release, options["out"]), _published_text(release, options["out"]))


def _publish(
    source: DataSource,
    schema: Schema,
    ledger: str | None,
    method: DiffGen,
    epsilon: Fraction,
    options: dict[str, Any],
    show: Show,
) -> Release:
    try:
        return Account(ledger or source.ledger_path, schema).publish(
            source.table, method, epsilon, out=options["out"], unsafe_seed=options["unsafe_seed"], watch=show.progress
        )
    finally:
        show.done()


def _method(options: dict[str, Any]) -> DiffGen:
    steps = options["specializations"]
    if steps != "auto":
        if not steps.lstrip("-").isdigit():
            raise MethodError(f"specializations ({steps}) must be a whole number from 1 up", "Or give auto.")
        steps = int(steps)
    if options["as_published"]:
        return DiffGen.as_published(specializations=steps, score=options["score"])
    return DiffGen(
        specializations=steps,
        score=options["score"],
        rows=options["rows_about"],
        choice=options["choice"],
        selection=options["selection"],
        margins=_share("margins", options["margins"]),
        growth=_share("growth", options["growth"]),
        max_cells=options["max_cells"],
    )


def _share(name: str, text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise MethodError(f"{name} ({text}) must be a share from 0 to 0.9", "Give for example 0.2.") from None


def _schedule_text(schedule: Schedule) -> str:
    rows = [(label, str(part), f"{float(part):.6f}") for label, part in schedule.parts.items()]
    return table(
        [*rows, ("total", str(schedule.total), f"{float(schedule.total):.6f}")], ("round", "epsilon", "about"), (1, 2)
    )


def _published_plain(release: Release, out: str) -> dict[str, Any]:
    return {
        "release": out,
        "groups": release.groups,
        "epsilon": str(release.manifest.epsilon),
        "guarantee": release.manifest.guarantee,
    }


def _published_text(release: Release, out: str) -> str:
    return f"{release.manifest.guarantee}\n{release.groups:,} groups in {out}\nSee: sfumato inspect {out}"


@main.command(name="schema")
@reporting
def json_schema(show: Show) -> None:
    """Print the JSON Schema of schema files, for editors."""
    text = json.dumps(Schema.model_json_schema(), indent=2)
    show.result(Schema.model_json_schema(), text)


for command in (inspect, query, sample, records, account, taxonomy):
    main.add_command(command)
