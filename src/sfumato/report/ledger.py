"""What was paid, round by round, or looked at without paying."""

from __future__ import annotations

from fractions import Fraction

from sfumato.pictures.ledgers import Purchase, draw_ledger
from sfumato.release.manifest import Manifest
from sfumato.release.release import Release
from sfumato.report.html import Html, details, figure, joined, paragraph, section, shortened, table, tag

NARROW, WIDE = 340.0, 720.0
"""Pictures that need room are drawn twice, for phones and for everything else."""
MOST_ROUNDS = 500
"""So many rounds are listed, and steps told."""
MOST_PURCHASES = 10
PLURALS = {"choice": "choices", "split": "split points", "margin": "margins", "size": "sizes", "level": "levels"}


def ledger_section(release: Release) -> Html:
    """Show the ledger."""
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
        "A round's ε is by how much it raised the most that any record has paid; 0 means that only paths which had "
        "paid less were asked.",
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
