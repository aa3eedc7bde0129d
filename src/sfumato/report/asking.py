"""Questions that pictures ask of a release: many in one pass, and what their answers rest on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.release.answers import Answers
from sfumato.release.questions import Condition
from sfumato.release.release import Release

LEAST_RESTING = 0.005
"""Less is not worth a word."""


def together(release: Release, groups: Sequence[Sequence[Condition]]) -> list[Answers]:
    """Answer groups of questions, all in one pass over the regions."""
    answers = release.count_many([one for group in groups for one in group])
    ends = list(itertools.accumulate(map(len, groups), initial=0))
    return [answers[start:end] for start, end in itertools.pairwise(ends)]


def resting(answers: Answers) -> float:
    """Give the share of people in some answers that rests on spreading people inside regions."""
    people = float(np.abs(answers.values).sum())
    return min(float(np.abs(answers.assumed).sum()) / people, 1.0) if people else 0.0


def mostly_spread(answers: Answers) -> NDArray[np.bool_]:
    """Tell which answers rest on spreading for more than half."""
    return np.asarray(np.abs(answers.assumed) > np.abs(answers.values) / 2)


def rests(answers: Answers) -> str:
    """Say it."""
    share = resting(answers)
    if share < LEAST_RESTING:
        return "Told apart by the regions."
    return f"{100 * share:.0f} % rests on spreading inside regions."
