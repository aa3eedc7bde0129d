"""What the release is worth by the holder's own table. Nothing here is private, and the page says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.distributions import Codes
from sfumato.report.html import Html, paragraph, section, table, tag

if TYPE_CHECKING:
    from sfumato.evaluate import Scorecard


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What was found out from the holder's table: the scorecard, and its rows as leaf codes."""

    card: Scorecard
    rows: Codes


def banner() -> Html:
    """Say at the top of a page who may see it."""
    return tag(
        "aside",
        tag("strong", "For the holder only. Not private, not to be published."),
        " This page also shows what was worked out from the raw data: the scorecard, and true counts beside released "
        "ones. Whoever publishes it has published exact counts without any promise. Run the report without the table "
        "for a page that is as public as the release.",
        class_="banner",
        role="note",
    )


def evaluation_section(evaluated: Evaluated, target: str | None) -> Html:
    """Show the scorecard."""
    card = evaluated.card
    parts: list[object] = [
        paragraph(tag("strong", card.plain()["warning"]), class_="warning"),
        paragraph(f"{card.rows:,} rows in the table, {card.people:,} people in the release."),
    ]
    for one in card.tables(target):
        parts += [tag("h3", one.title), table(one.header, one.rows, one.numbers)]
    if card.left_out:
        parts += [tag("h3", "Left out"), tag("ul", *(tag("li", line) for line in card.left_out))]
    parts += [tag("h3", "How it was measured"), tag("ul", *(tag("li", line) for line in card.notes), class_="note")]
    return section("evaluation", "What it is worth", *parts, class_="holder")
