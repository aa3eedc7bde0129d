"""The command that asks a release: one condition, or a file of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
import pyarrow as pa

from sfumato import Answers, Estimate, Release
from sfumato.cli.show import Show, release_argument, reporting, table
from sfumato.errors import QueryError
from sfumato.storage import reason_of

COLUMN = "condition"
"""The column of a CSV file that holds conditions."""
MOST_SHOWN = 20
"""The most groups that are shown; more are counted."""


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

    Without CONDITION everyone is counted. Answers come with a 95 % interval for the whole of their error, and with what
    it is made of: noise, and what the model had to assume.
    """
    if asked is None:
        if out is not None:
            raise QueryError(f"out ({out}) must come with a file of conditions", "Name one with --file.")
        _ask_one(show.opened(release), condition or "", explain, show)
        return
    if condition is not None or explain:
        raise QueryError(f"file ({asked}) must come without a condition and --explain", "Ask for one at a time.")
    _ask_many(show.opened(release), asked, out, show)


def _ask_one(release: Release, condition: str, explain: bool, show: Show) -> None:
    answer = release.count(condition)
    plain = _plain_answer(answer)
    text = str(answer)
    if answer.stddev:
        low, high = answer.interval
        text += f"\nbetween {low:,.0f} and {high:,.0f}; standard deviation {answer.stddev:,.1f} ({_parts(answer)})"
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
        from sfumato.cli.releases import write

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
        "noise": answer.noise,
        "sampling": answer.sampling,
        "model": answer.model,
    }


def _parts(answer: Estimate) -> str:
    """What the error is made of."""
    parts = {"noise": answer.noise, "sampling": answer.sampling, "model": answer.model}
    return ", ".join(f"{name} {part:,.1f}" for name, part in parts.items() if part)


def _answers_text(pairs: list[tuple[str, Estimate]]) -> str:
    """A table with a row for each answer."""
    rows = [
        (" ".join(condition.split()), *(f"{number:,.0f}" for number in (one.value, *one.interval)))
        for condition, one in pairs
    ]
    return table(rows, ("condition", "count", "low", "high"), (1, 2, 3))


def _groups_text(groups: pa.Table) -> str:
    """A table of the first groups of an explanation."""
    rows = [(*values[:-1], f"{values[-1]:,.1f}") for values in zip(*groups.to_pydict().values(), strict=True)]
    more = f"\n... and {len(rows) - MOST_SHOWN:,} more" if len(rows) > MOST_SHOWN else ""
    return table(rows[:MOST_SHOWN], groups.column_names, (len(groups.column_names) - 1,)) + more


@dataclass(frozen=True)
class Asked:
    """The conditions of a file, and the lines on which they begin."""

    name: str
    conditions: Sequence[str]
    lines: Sequence[int]

    def place(self, number: int) -> str:
        """Where a condition stands, as a beginning of a sentence."""
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
    """Each condition, and the line on which it begins."""
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
