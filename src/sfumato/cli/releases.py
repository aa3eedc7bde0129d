"""The commands for those who receive a release: look, draw, read.

The command that holds a release against itself and against its account.

Files of conditions, one in each row, with the line on which each begins.

It stands apart because a mistake in a condition is told by its line, and only who has read the file knows lines.

The command that asks a release: one condition, or a file of them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.cli.show import REFUSED, Show, reporting, table
from sfumato.errors import QueryError, ReleaseError
from sfumato.models.model import Answers, Estimate
from sfumato.release.release import Release
from sfumato.release.verify import Verification
from sfumato.release.verify import verify as verified
from sfumato.storage import reason_of, staged_file

MOST_ANSWERS = 100
"""More rows of an answer than this are counted and not shown."""

release_argument = click.argument("release", type=click.Path())
out_option = click.option("--out", type=click.Path(), required=True, help="The .csv or .parquet file to write.")
how_option = click.option(
    "--nonnegative", type=click.Choice(["projection", "clamp"]), default="projection", show_default=True,
    help="Keep the noisy total, or clamp at 0 as the papers do.",
)  # fmt: skip


@click.command()
@release_argument
@reporting
def inspect(release: str, show: Show) -> None:
    """Tell what a release promises, what was paid, and how it was made."""
    opened = Release.load(release)
    show.result(
        opened.manifest.plain() | {"groups": opened.groups, "total": opened.total}, _inspect_text(opened, release)
    )


def _inspect_text(release: Release, folder: str) -> str:
    manifest = release.manifest
    predictors = list(release.schema.predictors)
    names = [predictors[attribute] for attribute in release.describe().told_apart]
    about = "" if release.is_exact and manifest.sampling == 1 else "about "
    blocks = [
        "\n".join([manifest.guarantee, *manifest.warnings]),
        _terms_text(release),
        "How it was made\n" + "\n".join(f"  {step}" for step in manifest.steps or ("in one step",)),
        f"{release.groups:,} groups ({', '.join(names)}), {about}{release.total:,} people",
        "Files\n" + "\n".join(f"  {path}" for path in sorted(Path(folder).iterdir())),
    ]
    return "\n\n".join(blocks)


def _terms_text(release: Release) -> str:
    """Show what was paid or, where nothing was, whom the promise holds against and what was looked at."""
    manifest = release.manifest
    if manifest.promise is not None:
        looks = [(one.label, one.reason) for one in manifest.looks]
        return f"{manifest.promise.adversary}\n\nLooked at without epsilon\n{table(looks, ('look', 'reason'))}"
    rows = [(one.label, one.mechanism, f"{one.cells:,}", f"{float(one.epsilon):.5f}") for one in manifest.debits]
    rows.append(("total", "", "", f"{float(manifest.epsilon):.5f}"))
    return "Budget\n" + table(rows, ("round", "mechanism", "cells", "epsilon"), (2, 3)) + _zeros(release)


def _zeros(release: Release) -> str:
    """Explain debits of 0."""
    if all(one.epsilon for one in release.manifest.debits):
        return ""
    return (
        "\nA round's epsilon is by how much it raised the most that any record has paid; 0 means that only paths which "
        "had paid less were asked."
    )


@click.command()
@release_argument
@click.argument("question", metavar="SELECT")
@click.option("--out", type=click.Path(), help="The .csv or .parquet file to write [default: show the result].")
@reporting
def sql(release: str, question: str, out: str | None, show: Show) -> None:
    """Answer a SELECT over the table `release` with estimates.

    For example "select sex, count(*), avg(age) from release group by sex".
    """
    answers = Release.load(release).sql(question)
    if out:
        write(lambda: answers, out, show)
        return
    rows = list(zip(*(column.to_pylist() for column in answers.columns), strict=True))
    show.result({"columns": answers.column_names, "rows": rows}, _rows_text(rows, answers.column_names))


def _rows_text(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> str:
    """Show the first rows of an answer, numbers flush right."""
    numbers = [place for place in range(len(names)) if any(isinstance(row[place], int | float) for row in rows)]
    shown = [[f"{value:,.1f}" if isinstance(value, float) else value for value in row] for row in rows[:MOST_ANSWERS]]
    more = f"\n... and {len(rows) - MOST_ANSWERS:,} more; --out writes all" if len(rows) > MOST_ANSWERS else ""
    return table(shown, names, numbers) + more


@click.command()
@release_argument
@click.option("--rows", type=click.IntRange(min=0, max=10**9), help="How many [default: the noisy total].")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Draw the same records again. Safe: the release is already public."
)
@how_option
@out_option
@reporting
def sample(release: str, rows: int | None, seed: int | None, nonnegative: Any, out: str, show: Show) -> None:
    """Draw synthetic records with original values."""
    opened = Release.load(release)
    write(lambda: opened.sample(rows, seed=seed, how=nonnegative), out, show)


@click.command()
@release_argument
@how_option
@out_option
@reporting
def records(release: str, nonnegative: Any, out: str, show: Show) -> None:
    """Write the generalized records with their counts."""
    opened = Release.load(release)
    write(lambda: opened.records(how=nonnegative), out, show)


def write(make: Callable[[], pa.Table], out: str, show: Show) -> None:
    """Make rows and write them to a file, whole or not at all; a place that cannot be written is refused before."""
    if not out.endswith((".csv", ".parquet")):
        raise ReleaseError(f"out ({out}) must end in .csv or .parquet", "Name the file accordingly.")
    with staged_file(out) as staging:
        rows = make()
        if out.endswith(".csv"):
            _write_csv(rows, staging)
        else:
            pa.parquet.write_table(rows, staging, compression="zstd")
    show.result({"out": out, "rows": rows.num_rows}, f"wrote {rows.num_rows:,} rows to {out}")


def _write_csv(rows: pa.Table, path: Path) -> None:
    try:
        pa.csv.write_csv(_plain_text(rows), path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ReleaseError("a CSV file must have plain columns, and some are lists", "Write .parquet.") from None


def _plain_text(rows: pa.Table) -> pa.Table:
    """Undo dictionary encoding, which CSV does not know."""
    fields = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


MARKS = {True: "ok", False: "WRONG", None: "not checked"}


@click.command()
@release_argument
@click.option(
    "--ledger", type=click.Path(), help="The ledger of the table, to ask whether its account knows the release."
)
@reporting
def verify(release: str, ledger: str | None, show: Show) -> None:
    """Check that a release is what it says: seal, sum, files, records, promise and, with its ledger, account.

    Exit code 0 if nothing that was checked is wrong, 2 if something is: then each line marked WRONG names what.
    """
    found = verified(release, ledger)
    show.result(_plain_checks(found), _text(found))
    if not found.verified:
        raise SystemExit(REFUSED)


def _plain_checks(found: Verification) -> dict[str, Any]:
    checks = [{"about": one.about, "outcome": one.outcome, "says": one.says} for one in found.checks]
    return {"release": found.release, "verified": found.verified, "checks": checks}


def _text(found: Verification) -> str:
    width = max(len(mark) for mark in MARKS.values())
    lines = [f"{MARKS[one.passed].ljust(width)}  {one.about}: {one.says}" for one in found.checks]
    wrong = len(found.failures)
    told = "nothing is wrong with what was checked" if found.verified else f"NOT as published: {wrong} failed"
    return "\n".join([*lines, f"{found.release}: {told}"])


COLUMN = "condition"


@dataclass(frozen=True)
class Asked:
    """The conditions of a file, and the lines on which they begin."""

    name: str
    conditions: Sequence[str]
    lines: Sequence[int]

    def place(self, number: int) -> str:
        """Say where a condition stands."""
        return f"line {self.lines[number]} of {self.name}: "


def read_questions(path: str | Path) -> Asked:
    """Read a CSV file with a column `condition`, or, without such a header, each line of a text as one condition.

    The header may be in capitals. Blank lines are passed over; an empty field of a CSV file is the condition that
    everyone satisfies.
    """
    name = Path(path).name[:80]
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            found = list(_rows(file, name))
    except OSError as error:
        raise QueryError(f"{name} must be a readable file ({reason_of(error)})", "Name another file.") from None
    except (UnicodeDecodeError, csv.Error):
        raise QueryError(f"{name} must be text in UTF-8 with one condition in each row", "Save it as such.") from None
    if not found:
        raise QueryError(f"{name} must hold a condition, and is empty", "Write one in each line.")
    return Asked(name, [condition for _, condition in found], [line for line, _ in found])


def _rows(file: TextIO, name: str) -> Iterator[tuple[int, str]]:
    """Give each condition and the line on which it begins."""
    header = [field.strip().lower() for field in next(csv.reader([file.readline()]), [])]
    if COLUMN in header:
        return _fields(file, name, header)
    file.seek(0)
    return ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())


def _fields(file: TextIO, name: str, header: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Read one column of a CSV file whose header has been read; a field may go over several lines.

    A row that is longer than the header was most likely cut at a comma inside a condition, and half a condition is
    another one.
    """
    rows, begin = csv.reader(file, strict=True), 2
    for row in rows:
        if row and len(row) != len(header):
            raise QueryError(
                f"line {begin} of {name} ({len(row)} fields) must have {len(header)}, like the header",
                "Quote fields that have commas or newlines.",
            )
        if row:
            yield begin, row[header.index(COLUMN)]
        begin = rows.line_num + 2


MOST_SHOWN = 20
"""More groups than this are counted and not shown."""


@click.command()
@release_argument
@click.argument("condition", required=False)
@click.option("--explain", is_flag=True, help="List the groups that make up the answer, as few as possible.")
@click.option(
    "--file", "asked", type=click.Path(),
    help="Answer every condition in a file: a CSV file with a column named condition, or a text with one in each line.",
)  # fmt: skip
@click.option("--out", type=click.Path(), help="With --file: the .csv or .parquet file to write the answers to.")
@reporting
def query(release: str, condition: str | None, explain: bool, asked: str | None, out: str | None, show: Show) -> None:
    """Estimate how many people satisfy CONDITION, such as "age between 30 and 40 and sex = 'Female'".

    Without CONDITION everyone is counted. Answers come with their standard deviation and 95 % interval from noise, and
    with how much of them rests on spreading people inside groups.
    """
    if asked is None:
        if out is not None:
            raise QueryError(f"out ({out}) must come with a file of conditions", "Name one with --file.")
        _ask_one(Release.load(release), condition or "", explain, show)
        return
    if condition is not None or explain:
        raise QueryError(f"file ({asked}) must come without a condition and --explain", "Ask for one at a time.")
    _ask_many(Release.load(release), asked, out, show)


def _ask_one(release: Release, condition: str, explain: bool, show: Show) -> None:
    answer = release.count(condition)
    low, high = answer.interval
    plain = _plain_answer(answer)
    text = str(answer)
    if not release.is_exact:
        text += f"\nstandard deviation {answer.stddev:,.1f}, 95 % interval {low:,.0f} to {high:,.0f}"
    if explain:
        groups = release.explain(condition)
        plain["groups"] = groups.to_pylist()
        text += "\n\n" + _groups_text(groups)
    show.result(plain, text)


def _ask_many(release: Release, file: str, out: str | None, show: Show) -> None:
    def ask() -> Answers:
        asked = read_questions(file)
        return release.count_many(asked.conditions, asked.place)

    if out is not None:
        write(lambda: ask().table, out, show)
        return
    answers = ask()
    pairs = list(zip(answers.conditions, answers, strict=True))
    plain = [{"condition": condition} | _plain_answer(answer) for condition, answer in pairs]
    show.result({"answers": plain}, _answers_text(pairs))


def _plain_answer(answer: Estimate) -> dict[str, Any]:
    return {
        "value": answer.value,
        "stddev": answer.stddev,
        "interval95": list(answer.interval),
        "assumed": answer.assumed,
        "aligned": answer.aligned,
    }


def _answers_text(pairs: list[tuple[str, Estimate]]) -> str:
    """Show each answer in a row."""
    rows = [
        (" ".join(condition.split()), *(f"{number:,.0f}" for number in (one.value, *one.interval, one.assumed)))
        for condition, one in pairs
    ]
    return table(rows, ("condition", "count", "low", "high", "assumed"), (1, 2, 3, 4))


def _groups_text(groups: pa.Table) -> str:
    """Show the first groups of an explanation."""
    rows = [(*values[:-1], f"{values[-1]:,.1f}") for values in zip(*groups.to_pydict().values(), strict=True)]
    more = f"\n... and {len(rows) - MOST_SHOWN:,} more" if len(rows) > MOST_SHOWN else ""
    return table(rows[:MOST_SHOWN], groups.column_names, (len(groups.column_names) - 1,)) + more
