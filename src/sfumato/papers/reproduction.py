"""Reproduce the papers: do the runs of their figures, draw the figures, judge the claims, and tell what came of it.

Finished runs are kept in the folder, by version: what another version measured is measured again.
"""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import __version__
from sfumato.errors import MethodError, ReleaseError
from sfumato.evaluate.runs import Kept, Key, Outcome, Watch, carry_out, text_of
from sfumato.papers import cdiffgen, confidence, diffgen, diffmulti, dpcocgen
from sfumato.papers.figures import TITLES, Claim, Effort, Figure, Found, Judgement, Paper, Verdict
from sfumato.pictures.canvas import Panel, draw_panels
from sfumato.storage import reason_of, refuse_no_folder, replaced_file

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (diffgen.PAPER, cdiffgen.PAPER, diffmulti.PAPER, dpcocgen.PAPER, confidence.PAPER)
}
"""The papers, by name."""
ALL = "all"
"""In the place of a paper's name: all of them."""
TOOK = "took"
"""The name under which a run's outcome has the processor seconds of all its work."""
VERDICTS = "verdicts.md"
"""The page that tells what came of a reproduction."""
RUNS = "runs"
"""The folder of finished runs, which has one folder for each version."""
NO_GUARANTEE = (
    "Every release behind these numbers is seeded: none carries a guarantee, and no ledger was debited. They were "
    "measured by the raw rows of a public table."
)
"""What every reproduction says of its releases."""
_READING = (
    "Means over runs with their standard errors in parentheses, percentages in points; several places are given by "
    "the least and the greatest mean. The verdict is on the method as published; beside it stands what the same rule "
    "says of our defaults (ours), which may well miss a stated number to the better side."
)
"""How the page of verdicts is to be read."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, and what the same rule says of other variants, ours first."""

    claim: Claim
    published: Judgement
    others: Mapping[str, Judgement]

    @property
    def what(self) -> str:
        """What is claimed."""
        said = self.claim.stated
        return f"{said.measure}, {said.setting}: {said.words}"

    @property
    def told_of_others(self) -> list[str]:
        """What the rule makes of the other variants: to miss a stated number may be to be better."""
        return [
            f"{name}: {one.numbers} ({'better than stated' if one.missed == self.claim.stated.better else one.verdict})"
            for name, one in self.others.items()
        ]


@dataclass(frozen=True)
class Reproduction:
    """What came of a reproduction."""

    figures: tuple[Figure, ...]
    runs: int
    repeated: Mapping[str, int]
    """how many runs each setting of a figure has"""
    seconds: float
    """of processor time, in all runs"""
    judged: tuple[Judged, ...]

    @property
    def summary(self) -> str:
        """The verdicts, counted."""
        counts = Counter(one.published.verdict for one in self.judged)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
        return f"{len(self.judged)} claims, {self.runs:,} runs in {self.seconds / 60:,.1f} processor minutes: {told}"


def chosen(paper: str, figure: str | None = None) -> list[Figure]:
    """The figures of a paper, or of all, or the one that was named; refuse what there is not."""
    if paper not in (*PAPERS, ALL):
        raise MethodError(f"paper ({paper[:50]}) must be one of {', '.join([*PAPERS, ALL])}", "Choose one of them.")
    if paper == ALL:
        if figure is not None:
            raise MethodError("figure must come with one paper", "Name the paper instead of all.")
        return [one for each in PAPERS.values() for one in each.figures]
    figures = {one.name: one for one in PAPERS[paper].figures}
    if figure is None:
        return list(figures.values())
    if figure not in figures:
        raise MethodError(
            f"figure ({figure[:50]}) must be one of those of {paper} that are reproduced: {', '.join(figures)}",
            "Choose one of them.",
        )
    return [figures[figure]]


def reproduce(
    figures: Sequence[Figure],
    effort: Effort,
    out: Path,
    *,
    workers: int | None = None,
    watch: Watch | None = None,
) -> Reproduction:
    """Do the runs that are not kept in `out` yet, and write a picture and numbers of each figure there, and the
    verdicts.
    """
    refuse_place(out)
    keys = {figure.slug: figure.keys(effort) for figure in figures}
    distinct = {text_of(key): key for one in keys.values() for key in one}
    order = np.random.default_rng(0).permutation(len(distinct))
    mixed = [list(distinct.values())[at] for at in order]
    outcomes = carry_out(perform, mixed, Kept(out / RUNS / __version__), workers=workers, watch=watch)
    known = {text_of(key): outcome for key, outcome in zip(mixed, outcomes, strict=True)}
    found = {slug: _found(one, known) for slug, one in keys.items()}
    for figure in figures:
        panels = figure.panels(found[figure.slug])
        with replaced_file(out / f"{figure.slug}.png") as picture:
            draw_panels(picture, figure.title, panels)
        with replaced_file(out / f"{figure.slug}.csv") as numbers:
            numbers.write_text(_numbers(panels), encoding="utf-8")
    seconds = sum(float(outcome.get(TOOK, 0)) for outcome in outcomes)
    repeated = {slug: len({key["run"] for key in one}) for slug, one in keys.items()}
    done = Reproduction(tuple(figures), len(distinct), repeated, seconds, tuple(_judged(figures, keys, known)))
    with replaced_file(out / VERDICTS) as page:
        page.write_text(verdict_page(done), encoding="utf-8")
    return done


def refuse_place(out: Path) -> None:
    """Refuse a file, a folder of something else, and a place where none can be made."""
    refuse_no_folder(out)
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in (RUNS, VERDICTS)):
        raise ReleaseError(
            f"out ({str(out)[:200]}) must be empty, or hold an earlier reproduction", "Name another folder."
        )
    try:
        (out / RUNS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReleaseError(
            f"out ({str(out)[:200]}) must be writable ({reason_of(error)})", "Name another folder."
        ) from None


def perform(key: Key) -> Outcome:
    """Do the work of a run, and take its time: `runs.learnt` is the function `learnt` of the module `runs` beside this
    one.
    """
    module, function = key["work"].split(".")
    work = getattr(import_module(f"sfumato.papers.{module}"), function)
    start = time.process_time()
    outcome: Outcome = work(key)
    return outcome | {TOOK: time.process_time() - start}


def _judged(figures: Sequence[Figure], keys: dict[str, list[Key]], known: dict[str, Outcome]) -> Iterator[Judged]:
    """Judge the claims all of whose figures are there."""
    for name in dict.fromkeys(figure.paper for figure in figures):
        for claim in PAPERS[name].claims:
            slugs = [f"{name}-{one}" for one in claim.stated.figures]
            if all(slug in keys for slug in slugs):
                found = _found([key for slug in slugs for key in keys[slug]], known)
                yield Judged(claim, claim.judge(found), claim.judge_others(found))


def _found(keys: Sequence[Key], known: dict[str, Outcome]) -> Found:
    distinct = {text_of(key): key for key in keys}
    return Found(tuple((key, known[text]) for text, key in distinct.items()))


def _numbers(panels: Sequence[Panel]) -> str:
    """Every point, line and stated value of a figure, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("panel", "curve", "quantity", "at", "measure", "value", "standard_error"))
    for panel in panels:
        for curve in panel.curves:
            errors = curve.errors or (None,) * len(curve.at)
            for at, value, error in zip(curve.at, curve.values, errors, strict=True):
                written = "" if error is None else f"{error:.6g}"
                writer.writerow(
                    (panel.title, curve.name, panel.quantity, f"{at:g}", panel.measure, f"{value:.6g}", written)
                )
        for name, value in panel.levels:
            writer.writerow((panel.title, name, "", "", panel.measure, f"{value:.6g}", ""))
        for name, at, value in panel.stated:
            writer.writerow((panel.title, name, panel.quantity, f"{at:g}", panel.measure, f"{value:.6g}", ""))
    return text.getvalue()


def plain(done: Reproduction) -> dict[str, Any]:
    """A reproduction as plain values, for JSON."""
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
        "numbers": one.published.numbers,
        "others": {
            name: {"verdict": str(other.verdict), "numbers": other.numbers} for name, other in one.others.items()
        },
        "rule": one.claim.rule.words,
        "note": one.claim.note,
    }


def text(done: Reproduction) -> str:
    """A reproduction as text for a terminal: what is stated, and below it what was found."""
    lines = []
    for one in done.judged:
        said = one.claim.stated
        lines += [
            f"{said.paper} {said.figure}: {one.what}",
            f"    {one.published.verdict.upper()}: {one.published.numbers}",
        ]
        lines += [f"    {told}" for told in one.told_of_others]
        if one.claim.note:
            lines.append(f"    note: {one.claim.note}")
    return "\n".join([*lines, "", done.summary, NO_GUARANTEE])


def verdict_page(done: Reproduction) -> str:
    """The page of a reproduction: verdicts counted, a table for each paper, its pictures, and the rules in words."""
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


def _counts(done: Reproduction) -> str:
    """The verdicts of each paper, counted in a table."""
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
            f"**{one.published.verdict}**",
            one.published.numbers,
            "<br>".join(one.told_of_others),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
