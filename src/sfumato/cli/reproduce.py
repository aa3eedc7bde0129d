"""The command that draws the papers' figures again and judges what they claim."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.bar import Steps
from sfumato.cli.extras import lacking
from sfumato.cli.show import Show, reporting
from sfumato.pictures.canvas import can_draw

EXTRAS = "evaluate,pictures"


@click.command()
@click.argument("paper")
@click.option("--figure", help="One figure of the paper, such as 3a [default: all].")
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each setting [default: by figure, mostly 10].")
@click.option("--quick", is_flag=True, help="Fewer runs and settings: all papers in minutes.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes at a time [default: one for each core].")
@click.option(
    "--out", type=click.Path(), default="reproduction", show_default=True, help="The folder for pictures and verdicts."
)
@reporting
def reproduce(
    paper: str, figure: str | None, runs: int | None, quick: bool, workers: int | None, out: str, show: Show
) -> None:
    """Draw the figures of PAPER again (diffgen, cdiffgen, diffmulti, dpcocgen, confidence, all) and judge its claims.

    Everything is measured on the bundled table. Finished runs are kept in the folder, and never repeated.
    """
    try:
        from sfumato.papers import catalogue, report, reproduction
        from sfumato.papers.figures import Effort
    except ImportError:
        raise lacking("reproduce", "scikit-learn", EXTRAS) from None
    if not can_draw():
        raise lacking("reproduce", "matplotlib", EXTRAS)
    figures = catalogue.chosen(paper, figure)
    with show.working() as tell:
        watch = Steps("runs", tell)
        done = reproduction.reproduce(figures, Effort(runs, quick), Path(out), workers=workers, watch=watch)
    written = f"{len(done.figures)} pictures, their numbers and {reproduction.VERDICTS} in {out}"
    show.result(report.plain(done), f"{report.text(done)}\n{written}")
