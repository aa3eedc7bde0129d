"""The commands that prepare and make a release: draft a schema, check a table by it, publish; and print the JSON
Schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import sfumato
from sfumato import (
    WITH_CLASS,
    WITHOUT_CLASS,
    WITHOUT_EPSILON,
    Account,
    Categorical,
    Fit,
    Method,
    Release,
    RowsOfPersons,
    Schema,
    find_data,
    named_only,
    usual_method,
)
from sfumato.cli.options import (
    ENGINE_OPTIONS,
    EVERY,
    ManyOptions,
    engine_options,
    how_counted,
    listed,
    make_method,
    options_of,
    plan_shown,
    refuse_unfit_options,
    schema_option,
    source_options,
)
from sfumato.cli.show import REFUSED, Show, reporting
from sfumato.cli.show import table as laid_out
from sfumato.errors import MethodError
from sfumato.storage import staged_file

PUBLISHING = {
    "method",
    "epsilon",
    "as_published",
    "attributes",
    "target",
    "out",
    "dry_run",
    "unsafe_seed",
    "other_people",
    "despite_budget",
    "about",
    "synthetic",
    "table",
    "sql",
    "encoding",
    *ENGINE_OPTIONS,
}
"""The options of publish that are not a method's parameters."""
MOST_CLASSES = 10
"""A column with more categories is not proposed as the class."""
FINDINGS = (
    ("The schema would betray", True, False),
    ("Paid for twice", False, False),
    ("Several rows about one", False, True),
)
"""The titles of findings: of those that betray someone or not, and of those that say that an identifier repeats."""
_DRAFT_HEAD = """\
# A draft from private data, NOT confirmed. A schema is public: what stands here is published with every release.
# No value that fewer than 20 rows have is written here, and bounds are rounded; what the rows have in common is your
# decision. Look at each column and its reason, group categories into taxonomies, drop what must not be known; name
# the class, if there is one (kind: class); give the table a lifetime budget, such as `budget: 4`; run `sfumato check`;
# then set `confirmed: true`.
"""
"""What a drafted schema file begins with."""


@click.command()
@click.argument("data", type=click.Path())
@source_options
@click.option("--target", help="The column to predict [default: none].")
@click.option("--decimal", metavar="MARK", help="The decimal mark, . or , where it cannot be told from the values.")
@click.option(
    "--date-format", metavar="FORM", help="How days are written, such as DD/MM/YYYY, where it cannot be told."
)
@click.option("--person", metavar="COLUMN", help="The column that tells whom a row is about, if rows are not people.")
@click.option(
    "--rows-per-person", type=click.IntRange(min=1), default=1, help="How many rows of a person count at most."
)
@click.option("--epsilon", help="Find bounds of numbers and days privately, for this much, such as 0.05.")
@click.option("--budget", help="The lifetime budget of the table, such as 4, to stand in the schema and in the ledger.")
@click.option("--ledger", type=click.Path(), help="The table's ledger, which pays epsilon [default: beside the data].")
@click.option(
    "--codebook",
    type=click.Path(),
    help="What is public about the columns: a Table Schema or CSVW file (.json), codes and labels (.csv), a folder of "
    "ARX hierarchies, or an SPSS, Stata or SAS file [default: the labels inside DATA].",
)
@click.option("--out", type=click.Path(), help="Where to write [default: people.schema.yaml for people.csv].")
@reporting
def draft(
    data: str,
    table: str | None,
    sql: str | None,
    encoding: str | None,
    target: str | None,
    decimal: str | None,
    date_format: str | None,
    codebook: str | None,
    person: str | None,
    rows_per_person: int,
    epsilon: str | None,
    budget: str | None,
    ledger: str | None,
    out: str | None,
    show: Show,
) -> None:
    """Guess a schema from DATA, for you to correct and confirm.

    Each column is written with the reason for what it was taken for. No value that fewer than 20 rows have is written,
    and no bound is a single person's value.
    """
    source = find_data(data, None, table, sql, encoding)
    place = Path(out) if out else source.schema_path
    with staged_file(place) as staging:
        with show.working() as watch:
            found = sfumato.draft(
                source.table,
                source.name,
                target,
                decimal=decimal,
                date_format=date_format,
                codebook=codebook,
                person=person,
                rows_per_person=rows_per_person,
                epsilon=epsilon,
                ledger=source.ledger(ledger),
                budget=budget,
                watch=watch,
            )
        staging.write_text(found.dump(_DRAFT_HEAD), encoding="utf-8")
    columns = found.schema.attributes.items()
    show.result(
        {
            "schema": str(place),
            "attributes": {name: column.kind for name, column in columns},
            "reasons": dict(found.reasons),
            "repeated": list(found.repeated),
        },
        laid_out([(name, column.kind, found.reasons[name]) for name, column in columns], ("column", "kind", "why"))
        + f"\n\nwrote {place}\n{_class_text(found.schema)}{_repeated_text(found.repeated)}\n"
        "Correct it, run sfumato check, then set confirmed: true.",
    )


def _class_text(schema: Schema) -> str:
    """Ask for the class rather than guess it."""
    if schema.target is not None:
        return f"The class is {schema.target}."
    few = [
        name
        for name, column in schema.attributes.items()
        if isinstance(column, Categorical) and 2 <= column.leaves <= MOST_CLASSES
    ]
    if not few:
        return "It has no class."
    return f"It has no class. If something is to be predicted, name it: --target {' or '.join(few[:4])}, for example."


def _repeated_text(columns: tuple[str, ...]) -> str:
    """Warn of identifiers that several rows share."""
    if not columns:
        return ""
    return (
        f"\nSeveral rows share a value of {', '.join(columns)}. If one of them tells whom a row is about, a person "
        f"with k rows has k times epsilon: then declare `person: {columns[0]}` and `rows_per_person`, and see what "
        "sfumato check tells of it. (Where this draft says that so many rows have a value, they may be few persons.)"
    )


@click.command()
@click.argument("data", type=click.Path())
@source_options
@schema_option
@click.option(
    "--strict", is_flag=True, help="Refuse (exit code 2) what would betray someone, not only what does not fit."
)
@reporting
def check(
    data: str,
    table: str | None,
    sql: str | None,
    encoding: str | None,
    schema_path: str | None,
    strict: bool,
    show: Show,
) -> None:
    """Tell which values of DATA would not fit its schema, before anything is spent. For the holder's eyes.

    And what the schema would betray: values that few rows have, bounds that are a single person's value, columns that
    are nearly unique; and columns that follow from others or repeat them.
    """
    source = find_data(data, schema_path, table, sql, encoding)
    with show.working() as watch:
        watch("reading the table")
        fit = sfumato.check(source.table, source.schema())
    show.result(_check_plain(fit), _check_text(fit))
    if not fit.fits or not fit.rows or (strict and fit.betrays):
        raise SystemExit(REFUSED)


def _check_plain(fit: Fit) -> dict[str, Any]:
    return {
        "fits": fit.fits,
        "rows": fit.rows,
        "misfits": [{"column": one.column, "reason": one.reason, "rows": one.rows} for one in fit.misfits],
        "outside": fit.outside,
        "undeclared": list(fit.undeclared),
        "betrays": fit.betrays,
        "findings": [
            {
                "columns": list(one.columns),
                "problem": one.problem,
                "remedy": one.remedy,
                "betrays": one.betrays,
                "repeats": one.repeats,
            }
            for one in fit.findings
        ],
        "persons": None
        if fit.persons is None
        else {"number": fit.persons.persons, "most_rows": fit.persons.most, "rows_that_count": fit.persons.shares},
    }


def _check_text(fit: Fit) -> str:
    lines = [f"{fit.rows:,} rows"]
    if fit.misfits:
        rows = [(one.column, one.reason, f"{one.rows:,}") for one in fit.misfits]
        lines.append(laid_out(rows, ("column", "does not fit", "rows"), (2,)))
        lines.append("Correct the table, or declare leaves for `missing` and `unseen` values in the schema.")
    for column, number in fit.outside.items():
        lines.append(f"{column}: {number:,} rows outside the declared range count in the nearest cell")
    if fit.undeclared:
        lines.append(f"not in the schema, so not read: {', '.join(fit.undeclared)}")
    for title, betrays, repeats in FINDINGS:
        found = [one for one in fit.findings if (one.betrays, one.repeats) == (betrays, repeats)]
        if found:
            lines += [title, *(f"  {', '.join(one.columns)}: {one.problem}. {one.remedy}" for one in found)]
    if fit.persons is not None and fit.persons.rows:
        lines.append(_persons_text(fit.persons))
    if fit.fits and fit.rows:
        lines.append("Everything fits. (These numbers are not private: do not publish them.)")
    if not fit.rows:
        lines.append("The table is empty: a release of it would be noise.")
    return "\n".join(lines)


def _persons_text(found: RowsOfPersons) -> str:
    """What share of rows each bound keeps, and what it leaves to each row of an epsilon."""
    rows = [(f"{bound:,}", f"{100 * share:.1f} %", f"epsilon / {bound:,}") for bound, share in found.shares.items()]
    return (
        f"{found.persons:,} persons, of whom the one with most has {found.most:,} rows\n"
        + laid_out(rows, ("rows_per_person", "rows that count", "each at"), (0, 1, 2))
        + "\nMore rows of a person tell more and are noisier: rows_per_person is public, so choose it by what is known."
    )


class Publish(ManyOptions):
    """The command that publishes."""

    common = (
        *("--method", "--epsilon", "--attributes", "--target", "--schema"),
        *("--for", "--ledger", "--out", "--about", "--synthetic", "--dry-run", "--json"),
    )


@click.command(cls=Publish)
@click.argument("data", type=click.Path())
@source_options
@click.option(
    "--method",
    type=click.Choice(list(EVERY)),
    help=f"How to publish [default: {WITH_CLASS} if the table has a class, else {WITHOUT_CLASS}].",
)
@click.option(
    "--epsilon",
    help="The privacy budget to spend, such as 1, 0.5 or 1/3: for all methods but "
    f"{listed(WITHOUT_EPSILON)}, which have none.",
)
@options_of(EVERY)
@click.option(
    "--as-published", is_flag=True, help="Exactly the paper's method, with the few options that the paper has."
)
@click.option("--attributes", help="The attributes to publish, such as age,sex [default: all declared].")
@click.option("--target", help="The class attribute [default: the schema's].")
@schema_option
@click.option("--ledger", type=click.Path(), help="The table's ledger [default: beside the data].")
@click.option("--out", type=click.Path(), help="The release folder to write.")
@click.option(
    "--about", type=click.Path(), help="What users must know: a YAML file with a title, publisher, licence, contact ..."
)
@click.option(
    "--synthetic",
    type=click.Choice(["parquet", "csv"]),
    help="Add a file of synthetic people to the folder. In CSV, text that a spreadsheet would run gets an apostrophe.",
)
@engine_options
@click.option("--dry-run", is_flag=True, help="Print the schedule of debits and touch no data.")
@click.option(
    "--unsafe-seed", type=click.IntRange(min=0), help="Reproducible noise, for tests: the release carries no guarantee."
)
@click.option(
    "--despite-budget",
    is_flag=True,
    help="Publish by a method without epsilon although the table has a lifetime budget, which ends it.",
)
@click.option(
    "--other-people",
    is_flag=True,
    help="These are other people than those of a table with a ledger in this folder, although most rows are alike.",
)
@reporting
def publish(data: str, schema_path: str | None, ledger: str | None, show: Show, **options: Any) -> None:
    """Publish DATA: a table in a file, a folder or a database.

    A CSV, Parquet or JSON-lines file, a folder or a quoted pattern of Parquet files ('parts/*.parquet'), a table of a
    DuckDB database (file.duckdb::table), or `adult` for the bundled table.
    """
    source = find_data(data, schema_path, options["table"], options["sql"], options["encoding"])
    schema = named_only(source.schema(), options["attributes"])
    if options["target"]:
        schema = schema.with_target(options["target"])
    given = {key: value for key, value in options.items() if key not in PUBLISHING}
    name = options["method"] or usual_method(schema)
    method = make_method(name, given, as_published=options["as_published"])
    refuse_unfit_options(method, options)
    if options["dry_run"]:
        show.result(*plan_shown(method, schema, options["epsilon"]))
        return
    sfumato.About.of(options["about"])
    if not options["out"]:
        raise MethodError("out must name the release folder to write", "Give --out release/.")
    account, seed = Account(source.ledger(ledger), schema), options["unsafe_seed"]
    planned = account.plan(method, options["epsilon"]) if isinstance(method, Method) else None
    with show.working(planned) as watch:
        release = account.publish(
            source.table,
            method,
            options["epsilon"],
            out=options["out"],
            despite_budget=options["despite_budget"],
            other_people=options["other_people"],
            unsafe_seed=seed,
            about=options["about"],
            synthetic=options["synthetic"],
            watch=watch,
            **how_counted(options),
        )
    source.note_ledger(account.id)
    show.result(_published_plain(release, options["out"]), _published_text(release, options["out"], account))


def _published_plain(release: Release, out: str) -> dict[str, Any]:
    return {
        "release": out,
        "groups": release.groups,
        "epsilon": str(release.manifest.epsilon) if release.manifest.promise is None else None,
        "guarantee": release.manifest.guarantee,
        "warnings": list(release.manifest.warnings),
        "notes": list(release.notes),
    }


def _published_text(release: Release, out: str, account: Account) -> str:
    lines = [release.manifest.guarantee, *release.manifest.warnings, f"{release.extent} in {out}"]
    if release.notes:
        lines += ["For your eyes, exact and not in the release: do not publish", *(f"  {one}" for one in release.notes)]
    text = "\n".join([*lines, f"See: sfumato inspect {out}"])
    if release.manifest.promise is None and account.statement().without_epsilon:
        text += "\nExact counts of this table were published, too: no epsilon bounds all of its releases together."
    return text


@click.command(name="schema")
@reporting
def json_schema(show: Show) -> None:
    """Print the JSON Schema of schema files, for editors."""
    text = json.dumps(Schema.model_json_schema(), indent=2)
    show.result(Schema.model_json_schema(), text)
