"""What came of a reproduction, told: verdicts as text, as plain values, and as a page with the pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.papers.figures import Claim, Figure
from sfumato.papers.stated import TITLES
from sfumato.papers.verdicts import Judgement, Verdict

NO_GUARANTEE = (
    "Every release behind these numbers is seeded: none carries a guarantee, and no ledger was debited. They were "
    "measured by the raw rows of a public table."
)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, and what the same rule says of other variants, ours first."""

    claim: Claim
    published: Judgement
    others: Mapping[str, Judgement]

    @property
    def what(self) -> str:
        """Say what is claimed."""
        said = self.claim.stated
        return f"{said.measure}, {said.setting}: {said.words}"

    @property
    def verdict(self) -> str:
        """Give the verdict, and whether it is on a part of the claim alone."""
        return f"{self.published.verdict}{' (in part)' if self.claim.in_part else ''}"

    @property
    def told_of_others(self) -> list[str]:
        """Say what the rule makes of the other variants: to miss a stated number may be to be better."""
        return [
            f"{name}: {one.numbers} ({'better than stated' if one.missed == self.claim.stated.better else one.verdict})"
            for name, one in self.others.items()
        ]


@dataclass(frozen=True)
class Reproduction:
    """What came of it."""

    figures: tuple[Figure, ...]
    runs: int
    repeated: Mapping[str, int]
    """how many runs each setting of a figure has"""
    seconds: float
    """of processor time, in all runs"""
    judged: tuple[Judged, ...]

    @property
    def summary(self) -> str:
        """Count the verdicts."""
        counts = Counter(one.published.verdict for one in self.judged)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
        return f"{len(self.judged)} claims, {self.runs:,} runs in {self.seconds / 60:,.1f} processor minutes: {told}"


def plain(done: Reproduction) -> dict[str, Any]:
    """Give plain values for JSON."""
    return {
        "warning": NO_GUARANTEE,
        "runs": done.runs,
        "processor_seconds": round(done.seconds, 1),
        "figures": [f"{one.slug}.png" for one in done.figures],
        "claims": [_plain(one) for one in done.judged],
    }


def _plain(one: Judged) -> dict[str, Any]:
    said = one.claim.stated
    return {
        "paper": said.paper,
        "figure": said.figure,
        "setting": said.setting,
        "measure": said.measure,
        "stated": said.words,
        "source": said.source,
        "verdict": str(one.published.verdict),
        "in_part": one.claim.in_part,
        "numbers": one.published.numbers,
        "others": {
            name: {"verdict": str(other.verdict), "numbers": other.numbers} for name, other in one.others.items()
        },
        "rule": one.claim.rule.words,
        "note": one.claim.note,
    }


def text(done: Reproduction) -> str:
    """Lay the verdicts out for a terminal: what is stated, and below it what was found."""
    lines = []
    for one in done.judged:
        said = one.claim.stated
        lines += [
            f"{said.paper} {said.figure}: {one.what}",
            f"    {one.verdict.upper()}: {one.published.numbers}",
        ]
        lines += [f"    {told}" for told in one.told_of_others]
        if one.claim.note:
            lines.append(f"    note: {one.claim.note}")
    return "\n".join([*lines, "", done.summary, NO_GUARANTEE])


def verdict_page(done: Reproduction) -> str:
    """Write the page: the verdicts counted, a table for each paper, its pictures, and the rules in words."""
    parts = [f"# The papers' figures, measured again\n\n{done.summary}. {NO_GUARANTEE}\n\n{_READING}\n"]
    parts.append(_counts(done))
    for name in dict.fromkeys(figure.paper for figure in done.figures):
        parts.append(f"## {name}\n\n{TITLES[name]}.\n\n{_table(done, name)}\n")
        parts += [
            f"![{one.title}]({one.slug}.png)\n\nRuns of each setting: {done.repeated[one.slug]}.\n"
            for one in done.figures
            if one.paper == name
        ]
        rules = [f"* *{one.what}* ({one.claim.stated.source}): {one.claim.rule.words}." for one in _of(done, name)]
        parts.append("Reproduced if\n\n" + "\n".join(rules) + "\n")
    return "\n".join(parts)


_READING = (
    "Means over runs with their standard errors in parentheses, percentages in points; several places are given by "
    "the least and the greatest mean. The verdict is on the method as published; beside it stands what the same rule "
    "says of our defaults (ours), which may well miss a stated number to the better side. *In part*: the claim is "
    "also about a method that does not exist here, and the note says what was judged instead."
)


def _counts(done: Reproduction) -> str:
    """Count the verdicts of each paper."""
    rows = ["| paper | " + " | ".join(Verdict) + " |", "| --- |" + " --- |" * len(Verdict)]
    for name in dict.fromkeys(figure.paper for figure in done.figures):
        counts = Counter(one.published.verdict for one in _of(done, name))
        rows.append(f"| [{name}](#{name}) | " + " | ".join(str(counts[verdict]) for verdict in Verdict) + " |")
    return "\n".join(rows) + "\n"


def _of(done: Reproduction, paper: str) -> list[Judged]:
    return [one for one in done.judged if one.claim.stated.paper == paper]


def _table(done: Reproduction, paper: str) -> str:
    rows = ["| figure | stated | verdict | as published | other variants |", "| --- | --- | --- | --- | --- |"]
    for one in _of(done, paper):
        without = f" *Note: {one.claim.note}.*" if one.claim.note else ""
        cells = (
            one.claim.stated.figure,
            one.what + "." + without,
            f"**{one.verdict}**",
            one.published.numbers,
            "<br>".join(one.told_of_others),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
