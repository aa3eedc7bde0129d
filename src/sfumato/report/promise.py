"""Three sections of the report: the promise of a release, what was paid for it, and how to read its files.

The promise is said in plain words: what it means, against whom it holds, and which release it is of. The ledger lists
what was paid, round by round, or looked at without paying. Of files only those are named that this release has, in
words that can be copied.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from sfumato import FOLDER, WARNING, Knowledge, Manifest, Release, count_names, group_risk, nearest_claim, odds_of
from sfumato.pictures.inline import Purchase, draw_ledger
from sfumato.report.html import Html, details, figure, joined, paragraph, section, shortened, table, tag

NARROW, WIDE = 340.0, 720.0
"""The widths of pictures that need room: they are drawn twice, for phones and for everything else."""
MOST_ROUNDS = 500
"""The most rounds that are listed, and steps that are told."""
MOST_PURCHASES = 10
"""The most kinds of rounds that are told apart."""
PLURALS = {"choice": "choices", "split": "split points", "margin": "margins", "size": "sizes", "level": "levels"}
"""What kinds of rounds are called, where that is not the first word of their labels."""
MOST_STATISTICS = 8
"""The most values of a public statistic that are shown, the likeliest."""
ABOUT = {
    "record": "record: someone with several records has that many times ε.",
    "person": "person with all rows. Counts are of rows, and of someone with more rows only so many count.",
}
"""What the promise is about, by its unit."""


def promise_section(release: Release) -> Html:
    """Say what is promised."""
    manifest = release.manifest
    warnings = [one.removeprefix(WARNING) for one in manifest.warnings]
    if not manifest.secure:
        warnings.insert(0, "This release carries NO GUARANTEE: its randomness came from a known seed.")
    notes = [paragraph(tag("strong", "Warning. "), _sentence(one), class_="warning") for one in warnings]
    words = joined([]) if not manifest.secure else _words(release)
    return section("promise", "The promise", *notes, words, certificate(manifest))


def _words(release: Release) -> Html:
    return _epsilon_words(release) if release.manifest.promise is None else _other_words(release)


def headline(release: Release) -> Html:
    """The promise in a few letters."""
    promise = release.manifest.promise
    if not release.manifest.secure:
        return joined(["NO GUARANTEE"])
    if promise is None:
        return joined(["ε = ", _number(release.manifest.epsilon)])
    return joined([promise.headline])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _number(value: object) -> str:
    """An exact epsilon as people write it, a decimal where that is short."""
    assert isinstance(value, Fraction)
    decimal = f"{float(value):.10g}"
    return decimal if Fraction(decimal) == value and len(decimal) < 9 else shortened(value, 24)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _epsilon_words(release: Release) -> Html:
    odds, unit = odds_of(release), release.manifest.unit
    rows = [tuple(map(_percent, beliefs)) for beliefs in odds.beliefs]
    return joined(
        [
            paragraph(
                "This release is differentially private with ",
                tag("strong", f"ε = {_number(release.manifest.epsilon)}"),
                f". Whether or not one given {unit} was in the table hardly matters: this very release was at most "
                f"{odds.presence:,.3g} times as probable with the {unit} as without, or the other way round. "
                f"Neighbours are {release.manifest.neighbours}.",
                class_="lead",
            ),
            paragraph(
                f"In odds: whatever someone knew before, this release multiplies their odds that a {unit} is in the "
                f"table by at most exp(ε) = {odds.presence:,.3g}, and their odds that a {unit} in it has one value and "
                f"not another by at most exp(2 ε) = {odds.value:,.3g}."
            ),
            table(("believed before", "in the table: at most", "has a value: at most"), rows, (0, 1, 2)),
            paragraph(
                "It holds against everyone, whatever else they know or will come to know. It is a promise about each "
                f"{ABOUT[unit]} The promises of several releases of the same table add up.",
                class_="note",
            ),
        ]
    )


def _other_words(release: Release) -> Html:
    promise = release.manifest.promise
    assert promise is not None
    words = [
        paragraph(release.manifest.guarantee, class_="lead"),
        tag("h3", "Against whom"),
        paragraph(promise.adversary),
    ]
    if promise.terms:
        rows = [(shortened(one, 60), Html(tag("span", two))) for one, two in promise.terms]
        words.append(table(("term", "value"), rows))
    if promise.knowledge is not None:
        words.append(_statistics(release, promise.knowledge))
    if release.draft.final.counts.any():
        words.append(_risks(release))
    return joined(words)


def _risks(release: Release) -> Html:
    """Say how well people hide in exact groups."""
    risk = group_risk(release)
    rows = [
        ("someone known to be in the table is found", _percent(risk.prosecutor)),
        ("records found by guessing, on average", _percent(risk.marketer)),
    ]
    if risk.worst_confidence is not None:
        target = shortened(release.schema.target, 30)
        rows.append((f"confidence in a value of {target}, at worst", _percent(risk.worst_confidence)))
        rows.append((f"records in groups with one value of {target} only", f"{risk.certain:,}"))
    sizes = [(name, f"{groups:,}", f"{records:,}") for name, groups, records in risk.distribution]
    words = [
        tag("h3", "What is left to an adversary"),
        table(("at worst", "chance"), rows, (1,)),
        details("Sizes of groups", table(("records in a group", "groups", "records"), sizes, (1, 2))),
    ]
    if not release.disjoint:
        claim = nearest_claim(release)
        words.append(
            paragraph(
                f"Nearest to its cap: {shortened(release.schema.target, 30)} {shortened(claim.value, 40)} in a group, "
                f"observed {_percent(claim.observed)}, expected {_percent(claim.expected)}.",
                class_="note",
            )
        )
    return joined(words)


def _statistics(release: Release, knowledge: Knowledge) -> Html:
    """Say which statistics the cap takes for public, and what they say of the sensitive values."""
    order = np.argsort(-knowledge.sensitive, kind="stable")[:MOST_STATISTICS]
    rows = [(release.schema.classes[at], _percent(float(knowledge.sensitive[at]))) for at in order.tolist()]
    source = (
        "The statistics were public before"
        if knowledge.source == "public"
        else "The statistics are the table's own, rounded, and with this release they are public"
    )
    rules = f", with {len(knowledge.rules):,} rules" if knowledge.rules else ""
    more = f", the {len(rows)} most frequent" if len(knowledge.sensitive) > len(rows) else ""
    quasi = ", ".join(map(shortened, release.schema.predictors))
    return joined(
        [
            tag("h3", "Which statistics are public"),
            paragraph(
                f"{source}{rules}: one distribution for each of {quasi}, and that of "
                f"{shortened(release.schema.target)}. All of them are in manifest.json, so that everyone can check the "
                f"cap. Each record was published with probability {release.manifest.sampling}."
            ),
            details(
                f"Public statistics of {shortened(release.schema.target)}{more}",
                table(("value", "probability"), rows, (1,)),
            ),
        ]
    )


def certificate(manifest: Manifest) -> Html:
    """What tells this release from any other."""
    facts = [
        ("certificate", manifest.publication),
        ("digest", manifest.digest),
        ("schema", manifest.schema_digest),
        ("method", manifest.method),
        ("made with", f"Sfumato {manifest.version}"),
        ("randomness", "secure" if manifest.secure else "a known seed: no guarantee"),
    ]
    listed = [
        part
        for name, fact in facts
        for part in (tag("dt", name), tag("dd", tag("code", shortened(fact, 200), class_="long")))
    ]
    parameters = [(name, shortened(value, 200)) for name, value in manifest.parameters.items()]
    files = [(name, Html(tag("code", digest, class_="long"))) for name, digest in sorted(manifest.files.items())]
    return joined(
        [
            tag("h3", "Certificate"),
            tag("dl", *listed, class_="facts"),
            paragraph(
                "The digest is the SHA-256 fingerprint of manifest.json, which covers every file of the release. It "
                "reveals changes; it is no signature.",
                class_="note",
            ),
            details("Parameters of the method", table(("parameter", "value"), parameters)) if parameters else "",
            details("Files and their fingerprints", table(("file", "SHA-256"), files)) if files else "",
        ]
    )


def ledger_section(release: Release) -> Html:
    """Show what was paid, or looked at, and how the release was made."""
    manifest = release.manifest
    parts = [_looks(manifest)] if manifest.promise is not None else [_debits(manifest, release.schema.budget)]
    steps = [tag("li", shortened(step, 300)) for step in manifest.steps[:MOST_ROUNDS]]
    if steps:
        parts.append(details("How it was made", tag("ol", *steps)))
    return section("ledger", "The ledger", *parts)


def purchases_of(manifest: Manifest) -> list[Purchase]:
    """Put rounds together by what they bought, which is the first word of their labels, in order of appearance.

    Of too many kinds the last ones are one.
    """
    bought: dict[str, list[float]] = {}
    for debit in manifest.debits:
        word = shortened((debit.label.split() or ["round"])[0], 24)
        kind = PLURALS.get(word, word)
        if kind not in bought and len(bought) >= MOST_PURCHASES:
            kind = "others"
        bought.setdefault(kind, []).append(float(debit.epsilon))
    return [Purchase(kind, tuple(paid)) for kind, paid in bought.items()]


def _debits(manifest: Manifest, budget: Fraction | None) -> Html:
    purchases = [one for one in purchases_of(manifest) if one.total > 0]
    told = "; ".join(f"{one.name} {one.total:.3g} in {_rounds(len(one.paid))}" for one in purchases)
    limit = "" if budget is None else f" The dashed line is the table's lifetime budget, ε = {budget}."
    label = f"Ledger: {told}. In all {float(manifest.epsilon):.4g}.{limit}"
    pictures = [
        Html(draw_ledger(purchases, None if budget is None else float(budget), width, label, class_))
        for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
        if purchases
    ]
    rows = [
        (one.label, shortened(one.mechanism, 60), f"{one.cells:,}", f"{float(one.epsilon):.5f}")
        for one in manifest.debits[:MOST_ROUNDS]
    ]
    rows.append(("in all", "", "", f"{float(manifest.epsilon):.5f}"))
    more = len(manifest.debits) - MOST_ROUNDS
    return joined(
        [
            paragraph(
                "Every look at the data was paid for before it was made. Each purchase begins where the one before "
                f"ended; gaps tell its rounds apart.{limit}"
            ),
            figure(
                *pictures,
                caption=f"What was paid: {told}.",
                below=details(
                    "Round by round",
                    table(("round", "mechanism", "cells", "ε"), rows, (2, 3)),
                    paragraph(f"{more:,} more are in manifest.json.") if more > 0 else "",
                ),
            ),
            _zeros(manifest),
        ]
    )


def _rounds(number: int) -> str:
    return f"{number:,} round{'s' if number != 1 else ''}"


def _zeros(manifest: Manifest) -> Html:
    """Explain rounds that cost nothing."""
    if all(one.epsilon for one in manifest.debits):
        return Html("")
    return paragraph(
        f"A round's ε is by how much it raised the most that any {manifest.unit} has paid; 0 means that only "
        "paths which had paid less were asked.",
        class_="note",
    )


def _looks(manifest: Manifest) -> Html:
    rows = [(one.label, shortened(one.reason, 200)) for one in manifest.looks[:MOST_ROUNDS]]
    return joined(
        [
            paragraph(
                "No ε was paid. What was looked at was counted exactly, and no ε bounds what this release and others "
                "of the table tell together: the table's total is infinite."
            ),
            table(("looked at", "why"), rows),
        ]
    )


def loading_section(release: Release, folder: str) -> Html:
    """Show how to open the release."""
    names = ["manifest.json", *sorted(release.manifest.files)]
    rows = [(Html(tag("code", name)), FOLDER.get(name, "")) for name in names]
    noisy, count = count_names(release.schema)
    told = (
        f"{count} is the exact number of records of a group{_drawn(release)}."
        if release.is_exact
        else f"{noisy} is the estimate with its noise, which may be negative; {count} is a whole number of people that "
        "is not, and sums to the noisy total."
    )
    shown = [
        part
        for name, code in snippets(release, folder).items()
        for part in (tag("h3", name), tag("pre", tag("code", code)))
    ]
    return section(
        "loading",
        "How to load it",
        paragraph(release.about_records, " ", told),
        *shown,
        tag("h3", "What is in the folder"),
        table(("file", "what it holds"), rows),
    )


def _drawn(release: Release) -> str:
    sampling = release.manifest.sampling
    return "" if sampling == 1 else f"; each record of the table was published with probability {sampling} at most"


def snippets(release: Release, folder: str) -> dict[str, str]:
    """How each tool reads the records and adds them up by one attribute; Sfumato itself answers questions."""
    path, count = f"{folder}/records.parquet", count_names(release.schema)[1]
    by = release.grouping
    quoted = json.dumps(path, ensure_ascii=False)
    column, number = json.dumps(by, ensure_ascii=False), json.dumps(count)
    return {
        "pandas": f"import pandas as pd\n\nrecords = pd.read_parquet({path!r})\n"
        f"print(records.groupby({by!r}, observed=True)[{count!r}].sum())",
        "Polars": f"import polars as pl\n\nrecords = pl.read_parquet({path!r})\n"
        f"print(records.group_by(pl.col({by!r}).cast(pl.String)).agg(pl.col({count!r}).sum()))",
        "DuckDB": f"SELECT {_identifier(by)}, sum({_identifier(count)}) AS people\n"
        f"FROM read_parquet({_literal(path)})\nGROUP BY ALL ORDER BY people DESC;",
        "R": f"library(arrow)\n\nrecords <- read_parquet({quoted})\n"
        f"aggregate(records[[{number}]], by = list(value = records[[{column}]]), FUN = sum)",
        "Sfumato": f"import sfumato\n\nrelease = sfumato.Release.load({folder!r})\n"
        "print(release.count())  # everyone, with how far that may err\n"
        'people = release.sample(1000, "pandas")  # synthetic records with original values',
    }


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
