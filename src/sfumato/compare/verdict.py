"""What a comparison says in words: which method is best at what, by how much, and which to take."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sfumato.compare.contest import MEASURES
from sfumato.compare.results import LEVELS, Mean, Results

ASKED = {
    "relative error, all (median)": "counts by two to four attributes",
    "total variation, 2-way": "synthetic people, by pairs of attributes",
    "accuracy, naive Bayes": "training a classifier",
    "k-marginal score": "synthetic people, by NIST's k-marginal score",
}
"""What a measure stands for, the most important first."""
NONE = "There is no verdict: it needs one of the groups queries, marginals, classification and known."
CLOSE = 2.0
"""Means that differ by less than so many standard errors are taken for the same."""


def verdict_of(results: Results) -> list[str]:
    """Say for each epsilon which method is best at what, and which to take."""
    means = [one for one in results.means() if one.method not in LEVELS]
    lines: list[str] = []
    for epsilon in dict.fromkeys(one.epsilon for one in means if one.epsilon is not None):
        lines += _at(epsilon, [one for one in means if one.epsilon in (epsilon, None)])
    return lines or list(_at(None, means)) or [NONE]


def _at(epsilon: str | None, means: list[Mean]) -> Iterator[str]:
    place = f"At epsilon {epsilon}" if epsilon else "Without epsilon"
    firsts: list[str] = []
    for measure, what in ASKED.items():
        ranked = _ranked([one for one in means if one.measure == measure])
        if not ranked:
            continue
        best, alike = ranked[0], [one for one in ranked[1:] if _alike(ranked[0], one)]
        digits = MEASURES[measure].written
        others = f" (no worse, as far as these runs tell: {', '.join(map(_name, alike))})" if alike else ""
        yield f"{place}, for {what}: {_name(best)}, {measure} {best.mean:{digits}}{others}."
        firsts.append(_name(best))
    if firsts:
        most = max(dict.fromkeys(firsts), key=firsts.count)
        yield f"{place} we recommend {most}: first in {firsts.count(most)} of {len(firsts)} uses."


def _ranked(means: list[Mean]) -> list[Mean]:
    """The means of one measure, the best first."""
    if not means:
        return []
    sign = -1 if MEASURES[means[0].measure].better == "higher" else 1
    return sorted(means, key=lambda one: sign * one.mean)


def _alike(one: Mean, other: Mean) -> bool:
    error = math.hypot(one.standard_error or 0.0, other.standard_error or 0.0)
    return abs(one.mean - other.mean) < CLOSE * error


def _name(one: Mean) -> str:
    return one.method if one.epsilon is not None else f"{one.method} (no epsilon)"
