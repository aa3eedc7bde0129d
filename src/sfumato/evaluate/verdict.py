"""What a scorecard says in words: what a release is good for, what it is not for, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato import Release
from sfumato.arrays import CodedRows
from sfumato.evaluate.coverage import natural_questions
from sfumato.evaluate.fidelity import answers_to

if TYPE_CHECKING:
    from sfumato.evaluate.card import Scorecard

QUESTIONS = 200
"""How many questions are asked about each number of attributes."""
LEAST_SHARE = 0.01
"""Smaller truths, in shares of the rows, are not judged."""
GOOD, FAIR = 0.05, 0.2
"""Up to which relative error counts are good, and fair."""
NEAR, FAR = 0.01, 0.03
"""How many points of accuracy a classifier may lose and be as good, or usable."""
LEAST_COVERAGE = 0.9
"""Fewer 95 % intervals than this that hold the truth are a warning."""
NUMBERS = {1: "one attribute", 2: "two attributes", 3: "three attributes"}


@dataclass(frozen=True)
class CountErrors:
    """The errors of counts by some attributes, relative to the truth."""

    attributes: int
    questions: int
    typical: float
    most: float
    """nine of ten err less"""


def count_errors(release: Release, rows: CodedRows, size: int, seed: int) -> list[CountErrors]:
    """Measure natural counts by one, two and three attributes that are at least one in a hundred rows."""
    found = []
    for attributes in NUMBERS:
        asked = natural_questions(release.schema, rows, attributes, QUESTIONS, seed)
        truths = np.array([one.truth(rows) for one in asked], np.float64)
        judged = [one for one, truth in zip(asked, truths.tolist(), strict=True) if truth >= LEAST_SHARE * size]
        if not judged:
            continue
        true = truths[truths >= LEAST_SHARE * size]
        errors = np.abs(answers_to(release, judged).values - true) / true
        found.append(CountErrors(attributes, len(judged), *np.quantile(errors, [0.5, 0.9]).tolist()))
    return found


@dataclass(frozen=True)
class Verdict:
    """What a release is good for, with care, and not for; and a recommendation."""

    good: tuple[str, ...]
    fair: tuple[str, ...]
    bad: tuple[str, ...]
    recommendation: str

    @property
    def lines(self) -> list[str]:
        """All of it, a line for each finding."""
        sides = (("good for", self.good), ("with care for", self.fair), ("not for", self.bad))
        return [f"{title} {one}" for title, several in sides for one in several] + [self.recommendation]


def verdict_of(card: Scorecard, target: str | None) -> Verdict:
    """Judge a scorecard."""
    sides: tuple[list[str], list[str], list[str]] = ([], [], [])
    for one in card.counts:
        place = 0 if one.typical <= GOOD else 1 if one.typical <= FAIR else 2
        sides[place].append(
            f"counts by {NUMBERS[one.attributes]}: typically within {percent(one.typical)}, nine in ten within "
            f"{percent(one.most)}"
        )
    if card.lessons:
        best = min(card.lessons, key=lambda one: one.ba - one.ca)
        lost = best.ba - best.ca
        place = 0 if lost <= NEAR else 1 if lost <= FAR else 2
        within = f"{100 * max(lost, 0.0):.1f} points below the original" if lost > 0 else "as good as the original"
        sides[place].append(f"training a classifier of {target}: {within} ({best.learner}, taught by {best.taught_by})")
    held = [
        one for one in card.intervals if one.level == 0.95 and one.questions_of.endswith(("attribute", "attributes"))
    ]
    if held:
        least = min(one.coverage for one in held)
        sides[0 if least >= LEAST_COVERAGE else 2].append(
            f"trusting its intervals: of those that say 95 %, {100 * least:.0f} % or more held the truth"
        )
    sides[2].append("counts of a few people, and for finding anybody")
    good, fair, bad = (tuple(one) for one in sides)
    return Verdict(good, fair, bad, _recommendation(card, sides[0]))


def _recommendation(card: Scorecard, good: list[str]) -> str:
    worst = max((one.typical for one in card.counts), default=0.0)
    if worst <= GOOD:
        return "Recommendation: publish it as it is; its users need to know the intervals, and nothing else."
    if not any(one.startswith("counts") for one in good):
        return (
            "Recommendation: do not publish this for counts. Compare methods with sfumato compare, publish fewer "
            "attributes, or spend more epsilon."
        )
    return (
        "Recommendation: publish it for what it is good for, and say so. For more, compare methods with sfumato "
        "compare, or publish the attributes that matter in a release of their own."
    )


def percent(share: float) -> str:
    """Write a relative error.

    >>> percent(0.0432), percent(0.31)
    ('4.3 %', '31 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{float(f'{100 * share:.2g}'):g} %"
