"""The one-way and two-way distributions that the release itself estimates, with what its noise may have moved."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.distributions import Counts, draw_bars, draw_steps
from sfumato.release.answers import Answers
from sfumato.release.release import Release
from sfumato.report.asking import LEAST_RESTING, mostly_spread, resting, rests, together
from sfumato.report.bins import Bins, every_bins
from sfumato.report.html import Html, details, figure, paragraph, section, shortened, table, tag
from sfumato.report.intervals import half_widths, margin_of
from sfumato.report.pairs import pairs_shown

Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.integer]]

MOST_BINS = 20
MOST_ATTRIBUTES = 40
"""Of more attributes the first so many are drawn."""


def distributions_section(release: Release, truth: Codes | None = None) -> Html:
    """Show how people are distributed; with the holder's own rows, these beside."""
    every = every_bins(release.schema, MOST_BINS)
    shown = every[:MOST_ATTRIBUTES]
    if not shown:
        return section("distributions", "What it holds", paragraph("The release has no attributes."))
    everyone = release.count()
    more = f" Of {len(every)} attributes the first {len(shown)} are shown." if len(every) > len(shown) else ""
    line = f" The thin line on a bar is the 95 % interval for the {everyone.cause}." if everyone.stddev else ""
    about = "" if release.counts.is_exact and release.manifest.sampling == 1 else "about "
    words = [
        paragraph(f"The release holds {about}{everyone.value:,.0f} people. Bars are what it says itself.{line}{more}"),
        ""
        if truth is None
        else paragraph("Dashed outlines and open diamonds are the holder's own counts.", class_="note"),
        tag("div", *_one_ways(release, shown, truth), class_="multiples"),
        *pairs_shown(release, everyone.value),
    ]
    return section("distributions", "What it holds", *words)


def _one_ways(release: Release, every: Sequence[Bins], truth: Codes | None) -> list[Html]:
    answers = together(release, [bins.weights() for bins in every])
    return [_one_way(release, bins, found, truth) for bins, found in zip(every, answers, strict=True)]


def _one_way(release: Release, bins: Bins, answers: Answers, truth: Codes | None) -> Html:
    halves = half_widths(release, bins, answers)
    known = None if truth is None else np.bincount(bins.of(truth[bins.name]), minlength=len(bins)).astype(np.float64)
    supposed = mostly_spread(answers) if margin_of(release, bins.name) is None else None
    counts = Counts(bins.labels, answers.values, answers.values - halves, answers.values + halves, known, supposed)
    name = shortened(bins.name, 40)
    label = f"People by {name}: " + "; ".join(
        f"{one} {value:,.0f}"
        for one, value in itertools.islice(zip(bins.labels, answers.values.tolist(), strict=True), 8)
    )
    told = [f" ± {half:,.0f}" if half else "" for half in halves.tolist()]
    drawn = draw_steps(counts, bins.edges, label) if bins.numeric and len(bins) > 3 else draw_bars(counts, told, label)
    header = ["value", "people", "±", *([] if known is None else ["true"])]
    columns: list[Sequence[str]] = [bins.labels, _whole(answers.values), _whole(halves)]
    columns += [] if known is None else [_whole(known)]
    rows = zip(*columns, strict=True)
    return figure(
        tag("h4", name),
        Html(drawn),
        caption=_one_way_caption(release, bins, answers),
        below=details("Numbers", table(header, rows, range(1, len(header)))),
    )


def _one_way_caption(release: Release, bins: Bins, answers: Answers) -> str:
    """Say what a bar and its interval rest on."""
    if resting(answers) < LEAST_RESTING:
        return "Told apart by the regions."
    if margin_of(release, bins.name) is not None:
        return "Spread inside regions by its own margin, whose noise is in the interval."
    return f"{rests(answers)} No interval covers that. Hatched: more than half of a bar."


def _whole(numbers: Floats) -> list[str]:
    return [f"{one:,.0f}" for one in numbers.tolist()]
