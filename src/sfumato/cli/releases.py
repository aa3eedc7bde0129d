"""The commands for those who receive a release: look at it, ask it in SQL, draw from it, write its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato import Release, defused, plain_text
from sfumato.cli.show import Show, release_argument, reporting, table, visible
from sfumato.errors import ReleaseError
from sfumato.storage import staged_file

MOST_ANSWERS = 100
"""The most rows of an answer that are shown; more are counted."""

out_option = click.option("--out", type=click.Path(), required=True, help="The .csv or .parquet file to write.")
formulas_option = click.option(
    "--keep-formulas",
    is_flag=True,
    help="Write text to .csv as it is, also where a spreadsheet would run it: without this, text that begins with = + "
    "- @ or a tab gets an apostrophe in front.",
)
how_option = click.option(
    "--nonnegative", type=click.Choice(["projection", "clamp"]), default="projection", show_default=True,
    help="Keep the noisy total, or clamp at 0 as the papers do.",
)  # fmt: skip


@click.command()
@release_argument
@reporting
def inspect(release: str, show: Show) -> None:
    """Tell what a release promises, what was paid, and how it was made."""
    opened = show.opened(release)
    show.result(
        opened.manifest.plain() | {"groups": opened.groups, "total": opened.total}, _inspect_text(opened, release)
    )


def _inspect_text(release: Release, folder: str) -> str:
    manifest = release.manifest
    apart = ", ".join(map(visible, release.told_apart)) if release.has_groups else release.describe().words
    about = "" if release.is_exact and manifest.sampling == 1 else "about "
    blocks = [
        "\n".join([visible(manifest.guarantee), *map(visible, manifest.warnings)]),
        _terms_text(release),
        "How it was made\n" + "\n".join(f"  {visible(step)}" for step in manifest.steps or ("in one step",)),
        f"{release.extent} ({apart}), {about}{release.total:,} {manifest.counted}",
        "Files\n" + "\n".join(f"  {visible(str(path))}" for path in sorted(Path(folder).iterdir())),
    ]
    return "\n\n".join(blocks)


def _terms_text(release: Release) -> str:
    """What was paid or, where nothing was, whom the promise holds against and what was looked at."""
    manifest = release.manifest
    if manifest.promise is not None:
        looks = [(one.label, one.reason) for one in manifest.looks]
        return f"{visible(manifest.promise.adversary)}\n\nLooked at without epsilon\n{table(looks, ('look', 'reason'))}"
    rows = [(one.label, one.mechanism, f"{one.cells:,}", f"{float(one.epsilon):.5f}") for one in manifest.debits]
    rows.append(("total", "", "", f"{float(manifest.epsilon):.5f}"))
    return "Budget\n" + table(rows, ("round", "mechanism", "cells", "epsilon"), (2, 3)) + _zeros(release)


def _zeros(release: Release) -> str:
    """What debits of 0 mean, if there are any."""
    if all(one.epsilon for one in release.manifest.debits):
        return ""
    return (
        f"\nA round's epsilon is by how much it raised the most that any {release.manifest.unit} has paid; 0 means "
        "that only paths which had paid less were asked."
    )


@click.command()
@release_argument
@click.argument("question", metavar="SELECT")
@click.option("--intervals", is_flag=True, help="Give the 95 % interval of every estimate, as columns _low and _high.")
@click.option("--out", type=click.Path(), help="The .csv or .parquet file to write [default: show the result].")
@formulas_option
@reporting
def sql(release: str, question: str, intervals: bool, out: str | None, keep_formulas: bool, show: Show) -> None:
    """Answer a SELECT over the table `release` with estimates.

    For example "select sex, count(*), avg(age) from release group by sex".
    """
    answers = show.opened(release).sql(question, intervals=intervals)
    if out:
        write(lambda: answers, out, show, keep_formulas=keep_formulas)
        return
    rows = list(zip(*(column.to_pylist() for column in answers.columns), strict=True))
    show.result({"columns": answers.column_names, "rows": rows}, _rows_text(rows, answers.column_names))


def _rows_text(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> str:
    """A table of the first rows of an answer, numbers flush right."""
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
@formulas_option
@reporting
def sample(
    release: str, rows: int | None, seed: int | None, nonnegative: Any, out: str, keep_formulas: bool, show: Show
) -> None:
    """Draw synthetic records with original values."""
    opened = show.opened(release)
    write(lambda: opened.sample(rows, seed=seed, how=nonnegative), out, show, keep_formulas=keep_formulas)


@click.command()
@release_argument
@how_option
@out_option
@formulas_option
@reporting
def records(release: str, nonnegative: Any, out: str, keep_formulas: bool, show: Show) -> None:
    """Write the generalized records with their counts."""
    opened = show.opened(release)
    write(lambda: opened.records(how=nonnegative), out, show, keep_formulas=keep_formulas)


def write(make: Callable[[], pa.Table], out: str, show: Show, *, keep_formulas: bool = False) -> None:
    """Make rows and write them to a file, whole or not at all; a place that cannot be written is refused before."""
    if not out.endswith((".csv", ".parquet")):
        raise ReleaseError(f"out ({out}) must end in .csv or .parquet", "Name the file accordingly.")
    with staged_file(out) as staging:
        rows = make()
        if out.endswith(".csv"):
            _write_csv(rows if keep_formulas else defused(rows), staging)
        else:
            pa.parquet.write_table(rows, staging, compression="zstd")
    show.result({"out": out, "rows": rows.num_rows}, f"wrote {rows.num_rows:,} rows to {out}")


def _write_csv(rows: pa.Table, path: Path) -> None:
    try:
        pa.csv.write_csv(plain_text(rows), path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ReleaseError("a CSV file must have plain columns, and some are lists", "Write .parquet.") from None
