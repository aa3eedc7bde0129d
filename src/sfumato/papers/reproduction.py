"""Figures drawn again and claims judged: the runs, which are kept, then pictures, their numbers, and verdicts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import sfumato.papers.catalogue as catalogue
from sfumato import __version__
from sfumato.errors import ReleaseError
from sfumato.evaluate.runs import Kept, Key, Outcome, Watch, carry_out, text_of
from sfumato.papers.figures import Effort, Figure, Found
from sfumato.papers.report import Judged, Reproduction, verdict_page
from sfumato.pictures.curves import Panel, draw_panels
from sfumato.storage import reason_of, refuse_no_folder, replaced_file

VERDICTS = "verdicts.md"
RUNS = "runs"
"""Finished runs lie there, by version: what another one measured is measured again."""


def reproduce(
    figures: Sequence[Figure],
    effort: Effort,
    out: Path,
    *,
    workers: int | None = None,
    watch: Watch = lambda _done, _all: None,
) -> Reproduction:
    """Do the runs that are not kept in `out` yet, and write a picture and numbers of each figure there."""
    refuse_place(out)
    keys = {figure.slug: figure.keys(effort) for figure in figures}
    distinct = {text_of(key): key for one in keys.values() for key in one}
    order = np.random.default_rng(0).permutation(len(distinct))
    mixed = [list(distinct.values())[at] for at in order]
    outcomes = carry_out(catalogue.perform, mixed, Kept(out / RUNS / __version__), workers=workers, watch=watch)
    known = {text_of(key): outcome for key, outcome in zip(mixed, outcomes, strict=True)}
    found = {slug: _found(one, known) for slug, one in keys.items()}
    for figure in figures:
        panels = figure.panels(found[figure.slug])
        with replaced_file(out / f"{figure.slug}.png") as picture:
            draw_panels(picture, figure.title, panels)
        with replaced_file(out / f"{figure.slug}.csv") as numbers:
            numbers.write_text(_numbers(panels), encoding="utf-8")
    seconds = sum(float(outcome.get(catalogue.TOOK, 0)) for outcome in outcomes)
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


def _judged(figures: Sequence[Figure], keys: dict[str, list[Key]], known: dict[str, Outcome]) -> Iterator[Judged]:
    """Judge the claims all of whose figures are there."""
    for name in dict.fromkeys(figure.paper for figure in figures):
        for claim in catalogue.PAPERS[name].claims:
            slugs = [f"{name}-{one}" for one in claim.stated.figures]
            if all(slug in keys for slug in slugs):
                found = _found([key for slug in slugs for key in keys[slug]], known)
                yield Judged(claim, claim.judge(found), claim.judge_others(found))


def _found(keys: Sequence[Key], known: dict[str, Outcome]) -> Found:
    distinct = {text_of(key): key for key in keys}
    return Found(tuple((key, known[text]) for text, key in distinct.items()))


def _numbers(panels: Sequence[Panel]) -> str:
    """Write every point, line and stated value of a figure as CSV."""
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
