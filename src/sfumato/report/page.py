"""The page about a release: its parts in order, its style, and the rule that it may reach for nothing outside itself.

The structure is shown as the release's model describes it: a tree of cuts, attributes cut into parts, tables. However
large it is, what is shown is bounded. What the release is worth by the holder's own table is not private, and a page
with it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from sfumato import Branch, Description, Identifier, Listing, Release, Ribbon, expected_errors, percent
from sfumato.arrays import CodedRows
from sfumato.pictures.canvas import refuse_pictureless
from sfumato.pictures.inline import Node, draw_ribbons, draw_tree
from sfumato.pictures.inline import Ribbon as Drawn
from sfumato.report.distributions import distributions_section, queries_section
from sfumato.report.html import Html, details, figure, joined, paragraph, section, shortened, table, tag
from sfumato.report.promise import NARROW, WIDE, headline, ledger_section, loading_section, promise_section

if TYPE_CHECKING:
    from sfumato.evaluate import Scorecard

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser is told to refuse: scripts and requests, so that it enforces what the page promises."""
CONTENTS = {
    "overview": "Overview",
    "distributions": "Distributions",
    "queries": "Queries",
    "promise": "Promise",
    "ledger": "Ledger",
    "shape": "Shape",
    "loading": "Loading",
}
"""The sections and their names in the list of contents, in order."""
MOST_RIBBONS = 30
"""The most attributes that are drawn as ribbons."""
THINNEST_PART = 0.012
"""The least width of a part, wide enough to be seen."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What was found out from the holder's table: the scorecard, and its rows as leaf codes."""

    card: Scorecard
    rows: CodedRows


def report(release: Release, folder: str, evaluated: Evaluated | None = None) -> str:
    """Write the page about a release that lies in a folder of that name; with what the holder's own table adds, if
    given.
    """
    refuse_pictureless()
    sections = [
        overview_section(release),
        distributions_section(release, None if evaluated is None else evaluated.rows),
        queries_section(release),
        promise_section(release),
        ledger_section(release),
        shape_section(release),
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
    return _page(f"{shortened(release.schema.name)}: a Sfumato release", body)


def _page(title: str, body: Html) -> str:
    return f"<!doctype html>\n{tag('html', _head(title), body, lang='en')}\n"


def holders_page(title: str, lead: str, verdict: Sequence[str], sections: Mapping[str, Html]) -> str:
    """Write one page for the holder alone: what was found in words first, then sections by name."""
    named = {f"part-{at}": name for at, name in enumerate(sections)}
    links = [tag("a", name, href=f"#{place}") for place, name in named.items()]
    shown = [section(place, name, sections[name]) for place, name in named.items()]
    body = tag(
        "body",
        tag(
            "aside",
            tag("strong", "For the holder only. Not private, not to be published."),
            class_="banner",
            role="note",
        ),
        tag("header", paragraph("Sfumato", class_="kicker"), tag("h1", title), paragraph(lead)),
        tag("nav", *links, aria_label="Contents"),
        tag("main", section("verdict", "In words", tag("ul", *(tag("li", one) for one in verdict))), *shown),
        tag("footer", paragraph("Made from raw data: not private, not to be published.")),
    )
    return _page(title, body)


def evaluation_page(release: Release, card: Scorecard) -> str:
    """Write the page about what one release is worth by the holder's own table."""
    target = release.schema.target
    parts = {one.title.partition(";")[0]: table(one.header, one.rows, one.numbers) for one in card.tables(target)}
    parts["How it was measured"] = tag(
        "ul", *(tag("li", line) for line in (*card.left_out, *card.notes)), class_="note"
    )
    lead = f"{card.rows:,} rows in the table, {card.people:,} people in the release."
    return holders_page(f"What {shortened(release.schema.name)} is worth", lead, card.verdict(target).lines, parts)


def overview_section(release: Release) -> Html:
    """Say what the data are and what they are good for."""
    columns = release.schema.attributes
    expected = expected_errors(release)
    marks = {"good for": "Good for", "fair for": "With care for", "not for": "Not for"}
    lines = [tag("li", tag("strong", f"{marks[one.verdict]} "), one.sentence, ".") for one in expected]
    rows = [
        (name, column.title, column.kind, f"{column.leaves:,}")
        for name, column in columns.items()
        if not isinstance(column, Identifier)
    ]
    titled = any(row[1] for row in rows)
    header = ("attribute", "what it means", "kind", "values")
    kept = [0, *([1] if titled else []), 2, 3]
    return section(
        "overview",
        "What it is good for",
        paragraph(f"Everyone: {release.count()}."),
        paragraph(
            "By the release's own intervals, of counts that are at least one in a hundred people; smaller ones err "
            "more in relation to themselves:"
        ),
        tag("ul", *lines) if lines else paragraph("There are too few questions to tell."),
        details(
            f"{len(rows)} attributes",
            table([header[at] for at in kept], [[row[at] for at in kept] for row in rows], [len(kept) - 1]),
        ),
    )


def _head(title: str) -> Html:
    style = Html(files("sfumato.report").joinpath("style.css").read_text(encoding="utf-8"))
    return tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        tag("title", title),
        tag("style", style),
    )


def _header(release: Release) -> Html:
    manifest = release.manifest
    exact = release.is_exact and manifest.sampling == 1
    people = f"{'' if exact else 'about '}{max(release.total, 0):,} {manifest.counted}"
    facts = f"{shortened(manifest.method, 40)} · {release.extent} · {people}"
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


def shape_section(release: Release) -> Html:
    """Show the structure of a release."""
    about = release.describe()
    pictures = [*_tree(about), *_ribbons(about)]
    shown = [paragraph(about.words)]
    first, others = about.listings[:1], about.listings[1:]
    if pictures:
        below = [_listing(one) for one in first]
        shown.append(figure(*pictures, caption=about.caption, below=below[0] if below else ""))
    shown += [_listing(one) for one in (others if pictures else about.listings)]
    return section("shape", about.title, *shown)


def _listing(one: Listing) -> Html:
    rows = [[shortened(text, 100) for text in row] for row in one.rows]
    return details(one.title, table(one.header, rows, one.numbers))


def _tree(about: Description) -> list[Html]:
    if not about.branches:
        return []
    everyone = max(about.branches[0].people, 1.0)
    nodes = [_node(one, everyone) for one in about.branches]
    label = f"Tree of cuts: the first level is cut by {nodes[0].split or 'nothing'}"
    return [Html(draw_tree(nodes, width, label, class_)) for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))]


def _node(one: Branch, everyone: float) -> Node:
    told = percent(max(one.people, 0.0) / everyone) if one.level else ""
    return Node(one.level, one.begin, one.end, shortened(one.name, 40), told, shortened(one.split_by, 40))


def _ribbons(about: Description) -> list[Html]:
    if not about.ribbons:
        return []
    drawn = [_drawn(one, about.textures) for one in about.ribbons[:MOST_RIBBONS]]
    label = f"{about.title}: " + "; ".join(f"{one.attribute} {one.number:,}" for one in about.ribbons)
    return [
        Html(draw_ribbons(drawn, width, label, class_, texture=about.textures))
        for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
    ]


def _drawn(one: Ribbon, textures: bool) -> Drawn:
    name = shortened(one.attribute, 40)
    if not one.parts:
        return Drawn(name, (1.0,), (f"{one.number:,} parts",))
    labels = tuple(f"{shortened(part, 60)} {percent(share)}" for part, share in one.parts)
    if textures:
        return Drawn(name, tuple(share for _, share in one.parts), labels)
    widths = [max(share, THINNEST_PART) for _, share in one.parts]
    return Drawn(f"{name} · {one.number}", tuple(width / sum(widths) for width in widths), labels)


def banner() -> Html:
    """A warning for the top of a page that only the holder may see."""
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
    """Show what a release is worth by the holder's own table."""
    card = evaluated.card
    parts: list[object] = [
        paragraph(tag("strong", card.plain()["warning"]), class_="warning"),
        paragraph(f"{card.rows:,} rows in the table, {card.people:,} people in the release."),
        tag("ul", *(tag("li", line) for line in card.verdict(target).lines)),
    ]
    for one in card.tables(target):
        parts += [tag("h3", one.title), table(one.header, one.rows, one.numbers)]
    if card.left_out:
        parts += [tag("h3", "Left out"), tag("ul", *(tag("li", line) for line in card.left_out))]
    parts += [tag("h3", "How it was measured"), tag("ul", *(tag("li", line) for line in card.notes), class_="note")]
    return section("evaluation", "What it is worth", *parts, class_="holder")
