"""What the release is worth by the holder's own table. Nothing here is private, and the page says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.distributions import Codes
from sfumato.report.html import Html, joined, paragraph, section, table, tag

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
    if card.lessons:
        parts += [tag("h3", f"Classification of {target}"), _lessons(card)]
    information = [
        (name, f"{one:,}" if isinstance(one, int) else f"{one:.4f}") for name, one in card.information.items()
    ]
    parts += [tag("h3", "Information"), table(("measure", "value"), information, (1,))]
    if card.marginals:
        parts += [tag("h3", "Distances of drawn records"), _marginals(card)]
    queries = [(one.size, f"{one.queries:,}", f"{one.mean:.3f}", f"{one.median:.3f}") for one in card.queries]
    parts += [
        tag("h3", "Relative error of range counts"),
        table(("size", "queries", "mean", "median"), queries, (1, 2, 3)),
    ]
    if card.clusters:
        clusters = [(f"{one.clusters}", one.after, _percent(one.match_point)) for one in card.clusters]
        parts += [tag("h3", "Clusters"), table(("clusters", "after", "Match Point"), clusters, (0, 2))]
    if card.left_out:
        parts += [tag("h3", "Left out"), tag("ul", *(tag("li", line) for line in card.left_out))]
    parts += [tag("h3", "How it was measured"), tag("ul", *(tag("li", line) for line in card.notes), class_="note")]
    return section("evaluation", "What it is worth", *parts, class_="holder")


def _lessons(card: Scorecard) -> Html:
    rows = [
        (
            *(one.learner, one.taught_by, *map(_percent, (one.ba, one.ca, one.cost, one.benefit))),
            *("" if area is None else f"{area:.3f}" for area in (one.auc_raw, one.auc)),
        )
        for one in card.lessons
    ]
    header = ("learner", "taught by", "BA (raw)", "CA", "cost", "benefit", "AUC (raw)", "AUC")
    lower = paragraph(f"Always saying the most frequent class is right for {_percent(card.lessons[0].la)} (LA).")
    return joined([lower, table(header, rows, range(2, 8))])


def _marginals(card: Scorecard) -> Html:
    rows = [
        (
            *(f"{one.ways}-way", one.distance, f"{one.mean:.4f}", f"{one.worst:.4f}", ", ".join(one.worst_of)),
            f"{one.measured:,} of {one.of:,}",
        )
        for one in card.marginals
    ]
    return table(("marginals", "distance", "mean", "worst", "worst of", "measured"), rows, (2, 3))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
