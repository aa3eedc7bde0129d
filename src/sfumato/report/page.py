"""The page: its parts in order, its style, and the rule that it may reach for nothing outside itself."""

from __future__ import annotations

from importlib.resources import files

from sfumato.pictures.canvas import refuse_pictureless
from sfumato.release.release import Release
from sfumato.report.distributions import distributions_section
from sfumato.report.evaluation import Evaluated, banner, evaluation_section
from sfumato.report.html import Html, joined, paragraph, shortened, tag
from sfumato.report.ledger import ledger_section
from sfumato.report.loading import loading_section
from sfumato.report.promise import headline, promise_section
from sfumato.report.queries import queries_section
from sfumato.report.shape import shape_section

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
    exact = release.counts.is_exact and manifest.sampling == 1
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
