"""What the release is worth by the holder's own table. Nothing here is private, and the page says so.

The page: its parts in order, its style, and the rule that it may reach for nothing outside itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from sfumato import Release
from sfumato.pictures.canvas import refuse_pictureless
from sfumato.report.distributions import Codes, distributions_section, queries_section
from sfumato.report.html import Html, joined, paragraph, section, shortened, table, tag
from sfumato.report.promise import headline, ledger_section, loading_section, promise_section
from sfumato.report.shape import shape_section

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


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""No script, no request: a browser enforces what the page promises."""
CONTENTS = {
    "promise": "Promise",
    "ledger": "Ledger",
    "shape": "Shape",
    "distributions": "Distributions",
    "queries": "Queries",
    "loading": "Loading",
}


def report(release: Release, folder: str, evaluated: Evaluated | None = None) -> str:
    """Write the page about a release that lies in a folder of that name; with what the holder's own table adds."""
    refuse_pictureless()
    sections = [
        promise_section(release),
        ledger_section(release),
        shape_section(release),
        distributions_section(release, None if evaluated is None else evaluated.rows),
        queries_section(release),
        loading_section(release, folder),
    ]
    contents = dict(CONTENTS)
    if evaluated is not None:
        sections.insert(0, evaluation_section(evaluated, release.schema.target))
        contents = {"evaluation": "For the holder"} | contents
    links = [tag("a", name, href=f"#{place}") for place, name in contents.items()]
    body = tag(
        "body",
        "" if evaluated is None else banner(),
        _header(release),
        tag("nav", *links, aria_label="Contents"),
        tag("main", *sections),
        _footer(release, evaluated),
    )
    return f"<!doctype html>\n{tag('html', _head(release), body, lang='en')}\n"


def _head(release: Release) -> Html:
    style = Html(files("sfumato.report").joinpath("style.css").read_text(encoding="utf-8"))
    return tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        tag("title", f"{shortened(release.schema.name)}: a Sfumato release"),
        tag("style", style),
    )


def _header(release: Release) -> Html:
    manifest = release.manifest
    exact = release.is_exact and manifest.sampling == 1
    people = f"{'' if exact else 'about '}{max(release.total, 0):,} people"
    facts = f"{shortened(manifest.method, 40)} · {release.groups:,} groups · {people}"
    return tag(
        "header",
        paragraph("Sfumato release", class_="kicker"),
        tag("h1", shortened(release.schema.name)),
        paragraph(tag("span", headline(release), class_="promise"), tag("span", facts, class_="about")),
    )


def _footer(release: Release, evaluated: Evaluated | None) -> Html:
    words = (
        "Made from the release alone: this page is as public as the release."
        if evaluated is None
        else "Made from the release and the holder's own table: not private, not to be published."
    )
    return tag(
        "footer", joined([paragraph(words), paragraph("Digest ", tag("code", release.manifest.digest, class_="long"))])
    )
