"""Two sections of the report: the distributions that a release estimates, and what to expect of range counts.

Distributions are of one attribute each, and of the pairs of attributes that hang together most strongly in the release,
with how far they may err. Of range counts there are examples with their error, and how error grows with what is
counted. Intervals are for the whole error, and what part of it is the model's is said beside them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import Z95, Answers, Condition, Estimate, Release, percent
from sfumato.arrays import Booleans, CodedRows, Floats, Integers
from sfumato.pictures.distributions import Cells, Counts, draw_bars, draw_heat_map, draw_steps, draw_triangle
from sfumato.pictures.inline import Marks, draw_half_widths
from sfumato.report.asking import (
    LEAST_TOLD,
    Asked,
    Bins,
    every_bins,
    model_shares,
    questions_to,
    together,
    whose_error,
)
from sfumato.report.html import Html, details, figure, paragraph, section, shortened, table, tag
from sfumato.report.promise import NARROW, WIDE

MOST_BINS = 20
"""The most parts of an attribute that is shown alone."""
MOST_ATTRIBUTES = 40
"""The most attributes that are drawn, or compared; of more, the first are."""
MOST_PAIR_BINS = 8
"""The most parts of an attribute in a pair."""
PAIRS = 6
"""The most pairs that are shown."""
MOST_DRAWN = 20_000
"""The most records that are drawn from the release to see which attributes hang together."""
LEVEL = 0.95
"""The level of intervals."""
THRICE = 3
"""The most pairs that an attribute is in, so that one does not fill all."""
WEAK, FEWEST = 0.1, 2
"""Pairs that hang together less than the first are shown only if there would be fewer than the second."""
ASKED, EXAMPLES = 300, 6
"""How many questions are asked, and how many of them are shown."""
LEAST_DRAWN = 3
"""Of fewer attributes there is no matrix to draw."""
SEED = 0
SIZES = (0.001, 0.01, 0.1)
"""Where classes of answers begin, in shares of all people; smaller ones are of one class."""
TITLE = "What to expect of queries"
CAUSES = {"noise": "noise of what was measured", "sampling": "the luck of the draw where records were sampled"}
"""What answers err by, in words."""
MODEL = "of which model"
"""The column of the share of squared errors that is the model's."""


def distributions_section(release: Release, truth: CodedRows | None = None) -> Html:
    """Show how people are distributed; if the holder's own rows are given, beside them."""
    every = every_bins(release.schema, MOST_BINS)
    shown = every[:MOST_ATTRIBUTES]
    if not shown:
        return section("distributions", "What it holds", paragraph("The release has no attributes."))
    everyone = release.count()
    more = f" Of {len(every)} attributes the first {len(shown)} are shown." if len(every) > len(shown) else ""
    answers = together(release, [bins.weights() for bins in shown])
    erring = any(found.stddevs.any() for found in answers)
    line = " The thin line on a bar is the 95 % interval for its whole error." if erring else ""
    about = "" if release.is_exact and release.manifest.sampling == 1 else "about "
    words = [
        paragraph(
            f"The release holds {about}{everyone.value:,.0f} {release.manifest.counted}. "
            f"Bars are what it says itself.{line}{more}"
        ),
        ""
        if truth is None
        else paragraph("Dashed outlines and open diamonds are the holder's own counts.", class_="note"),
        tag("div", *map(_one_way, shown, answers, itertools.repeat(truth)), class_="multiples"),
        *pairs_shown(release, everyone.value),
    ]
    return section("distributions", "What it holds", *words)


def _one_way(bins: Bins, answers: Answers, truth: CodedRows | None) -> Html:
    halves = Z95 * answers.stddevs
    known = None if truth is None else np.bincount(bins.of(truth[bins.name]), minlength=len(bins)).astype(np.float64)
    counts = Counts(bins.labels, answers.values, *answers.between(LEVEL), known)
    name = shortened(bins.name if not bins.column.title else f"{bins.name}: {bins.column.title}", 60)
    label = f"People by {name}: " + "; ".join(
        f"{one} {value:,.0f}"
        for one, value in itertools.islice(zip(bins.labels, answers.values.tolist(), strict=True), 8)
    )
    told = [f" ± {half:,.0f}" if half else "" for half in halves.tolist()]
    drawn = draw_steps(counts, bins.edges, label) if bins.numeric and len(bins) > 3 else draw_bars(counts, told, label)
    header = ["value", "people", "±", MODEL, *([] if known is None else ["true"])]
    columns: list[Sequence[str]] = [bins.labels, _whole(answers.values), _whole(halves), _shares(answers)]
    columns += [] if known is None else [_whole(known)]
    rows = zip(*columns, strict=True)
    return figure(
        tag("h4", name),
        Html(drawn),
        caption=whose_error(answers),
        below=details("Numbers", table(header, rows, range(1, len(header)))),
    )


def _shares(answers: Answers) -> list[str]:
    """The share of each error that is the model's."""
    return [percent(share) for share in model_shares(answers).tolist()]


def _whole(numbers: Floats) -> list[str]:
    return [f"{one:,.0f}" for one in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two attributes and how strongly they hang together in the release."""

    down: Bins
    across: Bins
    strength: float
    order: tuple[str, str]
    """what they are called, in the order of the schema"""

    @classmethod
    def of(cls, one: Bins, other: Bins, strength: float) -> Pair:
        """Lay two attributes out, the one with longer names down the side."""
        down, across = sorted((one, other), key=lambda bins: -max(map(len, bins.labels)))
        return cls(down, across, strength, (one.name, other.name))

    @property
    def names(self) -> tuple[str, str]:
        """What the attributes are called."""
        return self.down.name, self.across.name

    @property
    def questions(self) -> list[Condition]:
        """A question for every cell, row by row."""
        rows, columns = self.down.weights(), self.across.weights()
        return [{**row, **column} for row in rows for column in columns]


def pairs_shown(release: Release, everyone: float) -> list[Html]:
    """Show how strongly any two attributes hang together, and the strongest pairs in shares of everyone."""
    every = every_pair(release)
    pairs = strongest(every)
    if not pairs:
        return [paragraph("No two attributes hang together in this release.", class_="note")]
    answers = together(release, [pair.questions for pair in pairs])
    drawn = [_heat_map(pair, found, max(everyone, 1.0)) for pair, found in zip(pairs, answers, strict=True)]
    erring = any(found.stddevs.any() for found in answers)
    hatched = "the 95 % interval reaches 0, so there may be nobody" if erring else "nobody"
    return [
        *_associations(every),
        tag("h3", "Two attributes at a time"),
        paragraph(
            "The pairs that hang together most strongly in the release itself (Cramér's V of records drawn from it, no "
            "attribute more than three times). Numbers are percent of all people; the more, the darker. "
            f"Hatched: {hatched}."
        ),
        tag("div", *drawn, class_="multiples"),
    ]


def _associations(pairs: Sequence[Pair]) -> list[Html]:
    """Draw Cramér's V of any two attributes as a triangle, and write it as a table; of two attributes, nothing."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair.order))
    if len(names) < LEAST_DRAWN:
        return []
    strengths = np.full((len(names), len(names)), np.nan)
    for pair in pairs:
        one, other = sorted(map(names.index, pair.order))
        strengths[other, one] = pair.strength
    shown = [shortened(name, 30) for name in names]
    first = max(pairs, key=lambda pair: pair.strength)
    label = f"Cramér's V of any two of {len(names)} attributes; the strongest is {first.strength:.2f}"
    rows = [
        (name, *("" if np.isnan(one) else f"{one:.2f}" for one in line))
        for name, line in zip(shown[1:], strengths[1:, :-1].tolist(), strict=True)
    ]
    return [
        tag("h3", "What hangs together"),
        paragraph(
            "Cramér's V of any two attributes, in hundredths: 0 if they have nothing to do with each other, 100 if one "
            "tells the other. It is reckoned of records drawn from the release, in few parts of each attribute, and "
            "corrected for chance; what the release did not measure together shows as less than it was."
        ),
        figure(
            Html(f'<div class="scroll matrix">{draw_triangle(shown, strengths, label)}</div>'),
            caption=f"Most of all: {' and '.join(shortened(name, 30) for name in first.order)}, {first.strength:.2f}.",
            below=details("Numbers", table(("", *shown[:-1]), rows, range(1, len(shown)))),
        ),
    ]


def _heat_map(pair: Pair, answers: Answers, total: float) -> Html:
    down, across = pair.down, pair.across
    shape = (len(down), len(across))
    values, halves = answers.values.reshape(shape), Z95 * answers.stddevs.reshape(shape)
    low, _ = answers.between(LEVEL)
    cells = Cells(down.labels, across.labels, values / total, (low <= 0).reshape(shape))
    names = (shortened(down.name, 30), shortened(across.name, 30))
    label = f"People by {names[0]} and {names[1]}, in percent of all"
    rows = [
        (
            one,
            *(
                f"{value:,.0f} ± {half:,.0f}" if half else f"{value:,.0f}"
                for value, half in zip(line, errors, strict=True)
            ),
        )
        for one, line, errors in zip(down.labels, values.tolist(), halves.tolist(), strict=True)
    ]
    numbers = table((f"{names[0]} \\ {names[1]}", *across.labels), rows, range(1, len(across) + 1))
    return figure(
        Html(draw_heat_map(cells, names, label)),
        caption=f"Cramér's V {pair.strength:.2f}. {whose_error(answers)}",
        below=details("Numbers", numbers),
    )


def every_pair(release: Release) -> list[Pair]:
    """Any two attributes with their Cramér's V in records drawn from the release by a fixed seed, corrected for chance.

    With V² = χ² / (n min(r - 1, c - 1)), and χ² about (r - 1)(c - 1) by chance alone, which is taken off.
    """
    size = min(max(release.total, 0), MOST_DRAWN)
    if not size:
        return []
    drawn = release.sample_codes(size, seed=0)
    bins = [one for one in every_bins(release.schema, MOST_PAIR_BINS)[:MOST_ATTRIBUTES] if len(one) > 1]
    held = {one.name: one.of(drawn[one.name]) for one in bins}
    return [
        Pair.of(one, other, association(held[one.name], held[other.name], (len(one), len(other))))
        for one, other in itertools.combinations(bins, 2)
    ]


def strongest(found: Sequence[Pair], most: int = PAIRS) -> list[Pair]:
    """Choose the pairs that hang together most strongly, no attribute too often."""
    chosen: list[Pair] = []
    for pair in sorted(found, key=lambda pair: -pair.strength):
        used = [name for other in chosen for name in other.names]
        if max(map(used.count, pair.names)) < THRICE and pair.strength > 0:
            chosen.append(pair)
    return [pair for at, pair in enumerate(chosen[:most]) if pair.strength >= WEAK or at < FEWEST]


def association(one: Integers, other: Integers, shape: tuple[int, int]) -> float:
    """Cramér's V of two coded columns, corrected for chance; values that nobody has do not count.

    >>> same = np.array([0, 1, 2] * 20)
    >>> round(association(same, same, (3, 3)), 2), association(np.arange(40) % 2, np.arange(40) // 20, (2, 2))
    (0.98, 0.0)
    """
    counts = np.bincount(one * shape[1] + other, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    freedom = [size - 1 for size in counts.shape]
    if not min(freedom, default=0):
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    chi = float(((counts - expected) ** 2 / expected).sum()) - freedom[0] * freedom[1]
    return float(np.sqrt(max(chi, 0.0) / (counts.sum() * min(freedom))))


def queries_section(release: Release) -> Html:
    """Show questions with their answers, and the errors of answers by size."""
    questions = questions_to(release, ASKED, SEED)
    if not questions:
        return section("queries", TITLE, paragraph("There is nothing to restrict: no attribute has two values."))
    answers = release.count_many([one.weights for one in questions])
    measured = model_shares(answers) < LEAST_TOLD
    header = ["question", "people", "±", *((answers.cause, "model") if answers.noise.any() else ())]
    shown = [row[: len(header)] for row in _examples(questions, answers, measured)]
    parts: list[object] = [
        paragraph(f"{len(questions)} questions, drawn by a fixed seed, that the release answers. {_about(answers)}"),
        tag("h3", "For example"),
        table(header, shown, range(1, len(header))),
    ]
    if answers.stddevs.any():
        everyone = max(release.count().value, 1.0)
        parts += [
            tag("h3", "By size of the answer"),
            _by_size(answers, measured, everyone),
            _picture(answers, measured),
        ]
    ask = ("Ask your own with ", tag("code", "sfumato query"), " or ", tag("code", "release.count(…)"), ".")
    return section("queries", TITLE, *parts, paragraph(*ask, class_="note"))


def _about(answers: Answers) -> str:
    """What the columns mean."""
    assumed = "what the model had to assume of values that were not measured together"
    if not answers.stddevs.any():
        return "All of these counts are exact."
    if not answers.noise.any():
        return f"Counts of what was measured are exact. ± is half the 95 % interval for {assumed}."
    return (
        f"± is half the 95 % interval for the whole error: {CAUSES[answers.cause]}, and {assumed}. Both parts are "
        "given as ±, and their squares add up to that of the whole. Some questions are of just what was measured: they "
        f"err by {answers.cause} alone."
    )


def _examples(questions: list[Asked], answers: Answers, measured: Booleans) -> list[tuple[object, ...]]:
    """Examples that can be written, of all sizes, the largest first; first of what was measured, then of others."""
    written = {
        at: words for at, one in enumerate(questions) if (words := one.words) is not None and answers.values[at] >= 1
    }
    first = {words: at for at, words in reversed(written.items())}
    half = EXAMPLES // 2 if any(measured[at] for at in first.values()) else 0
    chosen: list[int] = []
    for which, count in ((True, half), (False, EXAMPLES - half)):
        order = sorted((at for at in first.values() if measured[at] == which), key=lambda at: -answers.values[at])
        steps = np.unique(np.linspace(0, len(order) - 1, count).astype(np.int64)).tolist() if order else []
        chosen += [order[step] for step in steps]
    return [_example(written[at], answers[at]) for at in chosen]


def _example(words: str, answer: Estimate) -> tuple[object, ...]:
    measured = math.hypot(answer.noise, answer.sampling)
    parts = [f"{Z95 * part:,.0f}" if part else "none" for part in (measured, answer.model)]
    error = f"{Z95 * answer.stddev:,.0f}" if answer.stddev else "exact"
    return Html(tag("code", shortened(words, 200), class_="long")), f"{answer.value:,.0f}", error, *parts


def _by_size(answers: Answers, measured: Booleans, total: float) -> Html:
    """The typical half-width of answers of each size, of what was measured with noise and of what the model adds to."""
    rows = []
    borders = sorted({max(np.round(share * total), 1.0) for share in SIZES})
    for low, high in itertools.pairwise((-np.inf, *borders, np.inf)):
        sized = (answers.values >= low) & (answers.values < high)
        begin, end = f"{low:,.0f}", f"{high:,.0f}"
        name = f"from {begin}" if np.isinf(high) else f"below {end}" if np.isinf(low) else f"{begin} to {end}"
        if sized.any():
            rows.append((name, *_typical(answers, sized & measured)[:2], *_typical(answers, sized & ~measured)))
    header = ["people", f"{answers.cause} alone ±", "in %", "with the model ±", "in %", MODEL]
    noisy, modelled = answers.noise.any() and measured.any(), not measured.all()
    shown = [0, *((1, 2) if noisy else ()), *((3, 4, 5) if modelled else ())]
    return table([header[at] for at in shown], [[row[at] for at in shown] for row in rows], range(1, len(shown)))


def _typical(answers: Answers, which: Booleans) -> list[str]:
    """The median half-width of some answers, in people and in percent of them, and the model's share of it."""
    if not which.any():
        return ["–"] * 3
    halves, values = Z95 * answers.stddevs[which], np.maximum(np.abs(answers.values[which]), 1.0)
    shares = model_shares(answers)[which]
    return [f"{np.median(halves):,.0f}", _percent(float(np.median(halves / values))), percent(float(np.median(shares)))]


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _picture(answers: Answers, measured: Booleans) -> Html:
    """Draw half-widths over sizes, where there are any of either."""
    halves = Z95 * answers.stddevs
    drawn = (answers.values >= 1) & (halves >= 0.005)
    if drawn.sum() < 2:
        return paragraph("Few of these answers have an error that could be drawn.", class_="note")
    marks = Marks(answers.values[drawn], halves[drawn], measured[drawn])
    label = (
        f"Half-widths of 95 % intervals of {drawn.sum()} range counts over their size: from {halves[drawn].min():,.1f} "
        f"to {halves[drawn].max():,.0f}, typically {np.median(halves[drawn]):,.0f}"
    )
    pictures = [
        Html(draw_half_widths(marks, width, label, class_)) for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
    ]
    quantiles = [
        (f"{share:.0%} of the questions", f"± {np.quantile(halves[drawn], share):,.1f} at most")
        for share in (0.1, 0.5, 0.9, 1.0)
    ]
    kinds = f"Filled: {answers.cause} alone. Open: the model's error is in it. " if measured[drawn].any() else ""
    caption = (
        f"Half the 95 % interval of each question over the people it counts. {kinds}Dotted lines: equal parts of the "
        "answer."
    )
    return figure(
        *pictures, caption=caption, below=details("The same in numbers", table(("of", "half-width"), quantiles, (1,)))
    )
