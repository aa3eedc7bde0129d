"""What a recipient can expect of range counts: examples with their error, and how error grows with what is counted."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.widths import Marks, draw_half_widths
from sfumato.release.answers import Z95, Answers, Estimate
from sfumato.release.release import Release
from sfumato.report.html import Html, details, figure, paragraph, section, shortened, table, tag
from sfumato.report.ledger import NARROW, WIDE
from sfumato.report.questions import Asked, questions_to

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

ASKED, EXAMPLES = 300, 6
SEED = 0
SIZES = (0.001, 0.01, 0.1, np.inf)
"""Where classes of answers begin, in shares of all people; smaller ones are of one class."""
TITLE = "What to expect of queries"


def queries_section(release: Release) -> Html:
    """Show examples and errors."""
    questions = questions_to(release, ASKED, SEED)
    if not questions:
        return section("queries", TITLE, paragraph("There is nothing to restrict: no attribute has two values."))
    answers = release.count_many([one.weights for one in questions])
    own = np.array([one.own for one in questions]) & answers.aligned
    parts: list[object] = [
        paragraph(
            f"{len(questions)} questions, drawn by a fixed seed, that the release answers. {_about(answers, own)}"
        ),
        tag("h3", "For example"),
        table(("question", "people", "±", "spread"), _examples(questions, answers), (1, 2, 3)),
    ]
    if answers.stddevs.any():
        everyone = max(release.count().value, 1.0)
        parts += [tag("h3", "By size of the answer"), _by_size(answers, own, everyone), _picture(answers, own)]
    ask = ("Ask your own with ", tag("code", "sfumato query"), " or ", tag("code", "release.count(…)"), ".")
    return section("queries", TITLE, *parts, paragraph(*ask, class_="note"))


def _about(answers: Answers, own: Booleans) -> str:
    """Say what the columns mean, and what they leave out."""
    spread = "“Spread” is how much of an answer rests on spreading people inside regions, which no interval covers."
    if not answers.stddevs.any():
        return f"Counts of whole regions are exact. {spread}"
    whole = "Half of them ask for whole regions, where that is all that can be wrong; the others cut through regions. "
    error = f"± is half the 95 % interval for the {answers.cause} of the regions' counts. "
    return f"{error}{whole if own.any() else ''}{spread}"


def _examples(questions: list[Asked], answers: Answers) -> list[tuple[object, ...]]:
    """Choose examples that can be written, of all sizes, the largest first, of both kinds in turn."""
    written = {
        at: words for at, one in enumerate(questions) if (words := one.words) is not None and answers.values[at] >= 1
    }
    first = {words: at for at, words in reversed(written.items())}
    half = EXAMPLES // 2 if any(questions[at].own for at in first.values()) else 0
    chosen: list[int] = []
    for own, count in ((True, half), (False, EXAMPLES - half)):
        order = sorted((at for at in first.values() if questions[at].own == own), key=lambda at: -answers.values[at])
        steps = np.unique(np.linspace(0, len(order) - 1, count).astype(np.int64)).tolist() if order else []
        chosen += [order[step] for step in steps]
    return [_example(written[at], answers[at]) for at in chosen]


def _example(words: str, answer: Estimate) -> tuple[object, ...]:
    half = Z95 * answer.stddev
    share = abs(answer.assumed) / abs(answer.value) if answer.value else 0.0
    rests = "none" if answer.aligned else f"{100 * min(share, 1.0):.0f} %"
    error = f"{half:,.0f}" if half else "exact" if answer.aligned else "–"
    return Html(tag("code", shortened(words, 200), class_="long")), f"{answer.value:,.0f}", error, rests


def _by_size(answers: Answers, own: Booleans, total: float) -> Html:
    """Give the typical half-width of answers of each size, of both kinds of questions."""
    halves, rows = Z95 * answers.stddevs, []
    for low, high in itertools.pairwise((-np.inf, *SIZES)):
        sized = (answers.values / total >= low) & (answers.values / total < high)
        begin, end = f"{max(low, 0.0) * total:,.0f}", f"{high * total:,.0f}"
        name = f"from {begin}" if np.isinf(high) else f"below {end}" if np.isinf(low) else f"{begin} to {end}"
        if sized.any():
            rows.append(
                (name, *_typical(answers, halves, sized & own), *_typical(answers, halves, sized & ~own, rests=True))
            )
    header = ["people", "whole regions ±", "in %", "others ±", "in %", "spread"]
    shown = range(6) if own.any() else (0, 3, 4, 5)
    return table([header[at] for at in shown], [[row[at] for at in shown] for row in rows], range(1, 6))


def _typical(answers: Answers, halves: Floats, which: Booleans, *, rests: bool = False) -> list[str]:
    if not which.any():
        return ["–"] * (3 if rests else 2)
    values = np.maximum(np.abs(answers.values[which]), 1.0)
    told = [f"{np.median(halves[which]):,.0f}", _percent(float(np.median(halves[which] / values)))]
    resting = float(np.median(np.minimum(np.abs(answers.assumed[which]) / values, 1.0)))
    return [*told, f"{100 * resting:.0f} %"] if rests else told


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def _picture(answers: Answers, own: Booleans) -> Html:
    """Draw half-widths over sizes, where there are any of either."""
    halves = Z95 * answers.stddevs
    drawn = (answers.values >= 1) & (halves >= 0.005)
    if drawn.sum() < 2:
        return paragraph("Answers have no error from noise.", class_="note")
    marks = Marks(answers.values[drawn], halves[drawn], own[drawn])
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
    caption = (
        "Half the 95 % interval of each question over the people it counts. Filled: whole regions. Open: others. "
        "Dotted lines: equal parts of the answer."
    )
    return figure(
        *pictures, caption=caption, below=details("The same in numbers", table(("of", "half-width"), quantiles, (1,)))
    )
