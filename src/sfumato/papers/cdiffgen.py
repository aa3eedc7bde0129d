"""CDiffGen, section IV: accuracy of DiffGen and CDiffGen over specializations, with InfoGain and with Max."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sfumato.arrays import Floats
from sfumato.evaluate.runs import Key
from sfumato.papers.diffgen import CA, H
from sfumato.papers.figures import Between, Beyond, Claim, Effort, Evidence, Figure, Found, Paper, Parts, statement
from sfumato.papers.runs import (
    CDIFFGEN,
    CDIFFGEN_GAIN,
    CDIFFGEN_OURS,
    DIFFGEN,
    DIFFGEN_GAIN,
    DIFFGEN_OURS,
    EPSILONS,
    STEPS,
    cost,
    learning_keys,
    levels,
    raw_keys,
)
from sfumato.pictures.canvas import Panel

NAME = "cdiffgen"
BEYOND = 7
"""The number of specializations from which on the budget is said not to matter."""
WITH_GAIN = {CDIFFGEN: CDIFFGEN_GAIN, CDIFFGEN_OURS: CDIFFGEN_OURS}
"""The variant of figure 4 that stands for one of figure 5; ours has a score of its own."""
STATED = [statement(NAME, "5", "BA-CA", f"DiffGen Max h=10 eps={epsilon}") for epsilon in ("1", "0.5", "0.25", "0.1")]
"""What the paper states of DiffGen with Max at h = 10, by budget."""


def gain_keys(effort: Effort) -> list[Key]:
    """The runs of both methods with InfoGain, and of ours, over h."""
    runs, epsilons = effort.runs_of(10, 3), effort.some(EPSILONS, ("0.1", "1"))
    steps = effort.some(STEPS, (4, 10, 13))
    return [*learning_keys((DIFFGEN_GAIN, CDIFFGEN_GAIN, CDIFFGEN_OURS), epsilons, steps, runs), *raw_keys(runs)]


def max_keys(effort: Effort) -> list[Key]:
    """The runs of both methods with Max, and of ours; DiffGen at h = 10 at every budget, since it is stated."""
    runs, epsilons = effort.runs_of(10, 3), effort.some(EPSILONS, ("0.1", "1"))
    steps = effort.some(STEPS, (4, 10, 13))
    both = learning_keys((DIFFGEN, CDIFFGEN, CDIFFGEN_OURS), epsilons, steps, runs)
    return [*both, *learning_keys((DIFFGEN, DIFFGEN_OURS), EPSILONS, (10,), runs), *raw_keys(runs)]


def panels(found: Found, *methods: str) -> list[Panel]:
    """Accuracy over h, a panel for each budget; of DiffGen with Max the paper states h = 10."""
    raw = levels(found)
    drawn = []
    for epsilon in found.places("epsilon", "CA", method=methods[1]):
        curves = tuple(found.curve(name, "CA", "h", method=name, epsilon=epsilon) for name in methods)
        spots = tuple(
            (f"stated, DiffGen: BA - {said.number:g}", 10.0, raw[0][1] - said.number)
            for said in STATED
            if DIFFGEN in methods and said.setting.endswith(f"eps={epsilon}")
        )
        drawn.append(Panel(f"ε = {epsilon}", H, CA, curves, raw, spots))
    return drawn


def _growth(found: Found, method: str) -> Evidence:
    """CA at the last h minus that at the first."""
    grown = {}
    for name in dict.fromkeys((method, WITH_GAIN[method])):
        for epsilon in found.places("epsilon", "CA", method=name):
            first, *_, last = found.places("h", "CA", method=name, epsilon=epsilon)
            ends = [found.values("CA", method=name, epsilon=epsilon, h=h) for h in (first, last)]
            grown[f"ε = {epsilon}{_score(name)}"] = ends[1] - ends[0]
    return grown


def _straightness(found: Found, method: str) -> Evidence:
    """The correlation of mean CA with h."""
    straight = {}
    for name in dict.fromkeys((method, WITH_GAIN[method])):
        for epsilon in found.places("epsilon", "CA", method=name):
            means = found.means("CA", "h", method=name, epsilon=epsilon)
            slope = np.corrcoef(list(means), list(means.values()))[0, 1]
            straight[f"ε = {epsilon}{_score(name)}"] = np.array([slope])
    return straight


def _dependence(found: Found, method: str) -> Evidence:
    """CA at the largest budget minus that at the smallest, beyond h = 7."""
    more = {}
    for name in dict.fromkeys((method, WITH_GAIN[method])):
        least, *_, most = found.places("epsilon", "CA", method=name)
        for h in found.places("h", "CA", method=name, epsilon=least):
            if h > BEYOND:
                more[f"h = {h}{_score(name)}"] = _ca(found, name, most, h) - _ca(found, name, least, h)
    return more


def _ca(found: Found, method: str, epsilon: str, h: int) -> Floats:
    return found.values("CA", method=method, epsilon=epsilon, h=h)


def _score(method: str) -> str:
    return ", InfoGain" if method == CDIFFGEN_GAIN else ""


def _cost(epsilon: str) -> Callable[[Found, str], Evidence]:
    return lambda found, method: cost(found, method=method, epsilon=epsilon, h=10)


PAPER = Paper(
    NAME,
    (
        Figure(
            NAME,
            "4",
            "CDiffGen, figure 4: accuracy with InfoGain",
            gain_keys,
            lambda found: panels(found, DIFFGEN_GAIN, CDIFFGEN_GAIN, CDIFFGEN_OURS),
        ),
        Figure(
            NAME,
            "5",
            "CDiffGen, figure 5: accuracy with Max",
            max_keys,
            lambda found: panels(found, DIFFGEN, CDIFFGEN, CDIFFGEN_OURS),
        ),
    ),
    (
        *(Claim.near(said, _cost(said.setting.split("eps=")[1]), DIFFGEN, DIFFGEN_OURS) for said in STATED),
        Claim(
            statement(NAME, "4-5", "CA"),
            Parts(
                {
                    "grows from the first h to the last": Beyond("above", "points"),
                    "almost linearly: correlation of CA with h": Between(0.9, 1, 0.2),
                    "beyond h = 7 hardly depends on ε: CA at the largest minus at the smallest": Between(
                        -math.inf, 1, 1, "points"
                    ),
                }
            ),
            lambda found, method: (_growth(found, method), _straightness(found, method), _dependence(found, method)),
            CDIFFGEN,
            CDIFFGEN_OURS,
        ),
    ),
)
