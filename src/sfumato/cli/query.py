"""The command that asks a release: one condition, or a file of them."""

from __future__ import annotations

from typing import Any

import click
import pyarrow as pa

from sfumato.cli.asked import read_questions
from sfumato.cli.recipients import release_argument, write
from sfumato.cli.show import Show, reporting, table
from sfumato.errors import QueryError
from sfumato.release.answers import Answers, Estimate
from sfumato.release.release import Release

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
    plain = _plain(answer)
    text = str(answer)
    if not release.counts.is_exact:
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
    plain = [{"condition": condition} | _plain(answer) for condition, answer in pairs]
    show.result({"answers": plain}, _answers_text(pairs))


def _plain(answer: Estimate) -> dict[str, Any]:
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
