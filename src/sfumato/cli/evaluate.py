"""The command that tells the holder what a release is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.data import find_data, refuse_other_schema
from sfumato.cli.extras import lacking
from sfumato.cli.recipients import release_argument
from sfumato.cli.show import Show, reporting, table
from sfumato.errors import MethodError
from sfumato.release.release import Release

if TYPE_CHECKING:
    from sfumato.evaluate import Scorecard

PROTOCOLS = ("2/3", "4/5", "80/20", "10-fold")


@click.command()
@release_argument
@click.argument("data", type=click.Path())
@click.option("--test", type=click.Path(), help="A table to test classifiers on that was not published.")
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), help="How to split DATA where no --test is given. [default: 2/3]"
)
@reporting
def evaluate(release: str, data: str, test: str | None, protocol: Any, show: Show) -> None:
    """Tell what a release of DATA is worth: what can be learnt from it, how near it is. For the holder's eyes."""
    opened, source = Release.load(release), find_data(data)
    refuse_other_schema(opened.schema, source)
    if test is not None and protocol is not None:
        raise MethodError("protocol must come without a test set", "Leave one of them out.")
    scorecard = find_scorecard("evaluate")
    tested = None if test is None else find_data(test).table
    with show.working() as watch:
        card = scorecard(opened, source.table, tested, protocol=protocol or "2/3", watch=watch)
    show.result(card.plain(), _text(card, opened.schema.target))


def find_scorecard(command: str) -> Callable[..., Scorecard]:
    """Give the function that measures, or tell how a command gets what it needs."""
    try:
        from sfumato.evaluate import scorecard
    except ImportError:
        raise lacking(command, "scikit-learn") from None
    return scorecard


def _text(card: Scorecard, target: str | None) -> str:
    from sfumato.evaluate.card import NOT_PRIVATE

    blocks = [NOT_PRIVATE, f"{card.release}\n{card.rows:,} rows, {card.people:,} people in the release"]
    blocks += [f"{one.title}\n{table(one.rows, one.header, one.numbers)}" for one in card.tables(target)]
    blocks.append(_use_text(card))
    if card.left_out:
        blocks.append("\n".join(["Left out", *(f"  {line}" for line in card.left_out)]))
    blocks.append("\n".join(["How it was measured", *(f"  {line}" for line in card.notes)]))
    return "\n\n".join(blocks)


def _use_text(card: Scorecard) -> str:
    rows = [
        (
            *(one.what, f"{one.processor_seconds:.2f}", f"{one.seconds:.2f}"),
            "" if one.peak_megabytes is None else f"{one.peak_megabytes:.0f}",
        )
        for one in card.use
    ]
    return "What using the release costs\n" + table(rows, ("use", "processor s", "s", "peak MB"), (1, 2, 3))
