"""The promise of a release in plain words: what it means, against whom it holds, and which release it is of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.boxes import Boxes
from sfumato.confidence_cap import ConfidenceCap
from sfumato.promises import KAnonymity
from sfumato.release.claims import nearest_claim
from sfumato.release.manifest import NEIGHBOURS, WARNING, Manifest
from sfumato.release.release import Release
from sfumato.release.risk import group_risk, odds_of
from sfumato.report.html import Html, details, joined, paragraph, section, shortened, table, tag

MOST_STATISTICS = 8
"""So many of the likeliest values of a public statistic are shown."""


def promise_section(release: Release) -> Html:
    """Say what is promised."""
    manifest = release.manifest
    warnings = [one.removeprefix(WARNING) for one in manifest.warnings]
    if not manifest.secure:
        warnings.insert(0, "This release carries no guarantee: its randomness came from a known seed.")
    notes = [paragraph(tag("strong", "Warning. "), _sentence(one), class_="warning") for one in warnings]
    words = _epsilon_words(release) if manifest.promise is None else _other_words(release)
    return section("promise", "The promise", *notes, words, certificate(manifest))


def headline(release: Release) -> Html:
    """Give the promise in a few letters."""
    promise = release.manifest.promise
    if promise is None:
        return joined(["ε = ", _number(release.manifest.epsilon)])
    if isinstance(promise, KAnonymity):
        return joined([f"k = {promise.k:,}", f", l = {promise.diversity}" if promise.diversity > 1 else ""])
    return joined(["capped confidence"])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _number(value: object) -> str:
    """Write an exact epsilon as people do, a decimal where that is short."""
    assert isinstance(value, Fraction)
    decimal = f"{float(value):.10g}"
    return decimal if Fraction(decimal) == value and len(decimal) < 9 else shortened(value, 24)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _epsilon_words(release: Release) -> Html:
    odds = odds_of(release)
    rows = [tuple(map(_percent, beliefs)) for beliefs in odds.beliefs]
    conditional = "" if release.manifest.secure else "Had its randomness been secure, it would be so: "
    return joined(
        [
            paragraph(
                conditional,
                "This release is differentially private with ",
                tag("strong", f"ε = {_number(release.manifest.epsilon)}"),
                ". Whether or not one given person was in the table hardly matters: this very release was at most "
                f"{odds.presence:,.3g} times as probable with the person as without, or the other way round. "
                f"Neighbours are {NEIGHBOURS}.",
                class_="lead",
            ),
            paragraph(
                f"In odds: whatever someone knew before, this release multiplies their odds that a person is in the "
                f"table by at most exp(ε) = {odds.presence:,.3g}, and their odds that a person in it has one value and "
                f"not another by at most exp(2 ε) = {odds.value:,.3g}."
            ),
            table(("believed before", "in the table: at most", "has a value: at most"), rows, (0, 1, 2)),
            paragraph(
                "It holds against everyone, whatever else they know or will come to know. It is a promise about each "
                "record: someone with several records has that many times ε. The promises of several releases of the "
                "same table add up.",
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
    if isinstance(promise, KAnonymity):
        terms = [
            ("k, records in the smallest group", f"{promise.k:,}"),
            ("quasi-identifiers", ", ".join(promise.quasi)),
        ]
        if promise.diversity > 1:
            terms.append((f"l, different values of {shortened(promise.sensitive, 30)}", f"{promise.diversity:,}"))
        words.append(table(("term", "value"), [(one, Html(tag("span", two))) for one, two in terms]))
    if isinstance(promise, ConfidenceCap):
        words.append(_statistics(release, promise))
    if release.counts.counts.any():
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
    if isinstance(release.partition, Boxes):
        claim = nearest_claim(release)
        words.append(
            paragraph(
                f"Nearest to its cap: {shortened(release.schema.target, 30)} {shortened(claim.value, 40)} in a group, "
                f"observed {_percent(claim.observed)}, expected {_percent(claim.expected)}.",
                class_="note",
            )
        )
    return joined(words)


def _statistics(release: Release, promise: ConfidenceCap) -> Html:
    """Say which statistics the cap takes for public, and what they say of the sensitive values."""
    knowledge = promise.knowledge
    assert knowledge is not None
    order = np.argsort(-knowledge.sensitive, kind="stable")[:MOST_STATISTICS]
    rows = [(release.schema.classes[at], _percent(float(knowledge.sensitive[at]))) for at in order.tolist()]
    source = (
        "The statistics were public before"
        if knowledge.source == "public"
        else "The statistics are the table's own, rounded, and with this release they are public"
    )
    rules = f", with {len(knowledge.rules):,} rules" if knowledge.rules else ""
    more = f", the {len(rows)} most frequent" if len(knowledge.sensitive) > len(rows) else ""
    return joined(
        [
            tag("h3", "Which statistics are public"),
            paragraph(
                f"{source}{rules}: one distribution for each of {', '.join(map(shortened, promise.quasi))}, and that "
                f"of {shortened(promise.sensitive)}. All of them are in manifest.json, so that everyone can check the "
                f"cap. Each record was published with probability {promise.sampling}."
            ),
            details(
                f"Public statistics of {shortened(promise.sensitive)}{more}",
                table(("value", "probability"), rows, (1,)),
            ),
        ]
    )


def certificate(manifest: Manifest) -> Html:
    """Give what tells this release from any other."""
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
