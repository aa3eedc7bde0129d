"""How numbers decide whether a claim was reproduced. Every rule says in words what it does.

The evidence is an array for every place (a budget, a number of specializations): one number per run, all runs of a
place paired with those of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluate.averages import mean_and_error

Floats = NDArray[np.float64]
Evidence = Mapping[str, Floats]
"""The numbers of each place, by run."""


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    DIFFERENT = "reproduced with a difference"
    NOT = "not reproduced"


@dataclass(frozen=True)
class Judgement:
    """A verdict, and the numbers that led to it."""

    verdict: Verdict
    numbers: str
    missed: Literal["above", "below", ""] = ""
    """on which side of what was stated the numbers lie, if they do"""


class Rule(Protocol):
    """What decides."""

    @property
    def words(self) -> str:
        """Say when it gives which verdict."""

    def judge(self, evidence: Any) -> Judgement:
        """Give the verdict."""


def mean_and_doubt(values: Floats) -> tuple[float, float]:
    """Give a mean over runs and its standard error, which is taken for 0 where there is one run."""
    mean, error = mean_and_error(values)
    return mean, error or 0.0


@dataclass(frozen=True)
class Between:
    """A number lies between two others, at every place."""

    low: float
    high: float
    roughly: float
    """by how much more it may miss to count as a difference"""
    unit: str = ""

    @classmethod
    def near(cls, value: float, within: float = 0.5, roughly: float = 2.0, unit: str = "points") -> Between:
        """Give the rule for a stated number."""
        return cls(value - within, value + within, roughly - within, unit)

    @property
    def words(self) -> str:
        """Say the bounds."""
        ends = [
            "" if math.isinf(self.low) else f"at least {self.low:.4g}",
            "" if math.isinf(self.high) else f"at most {self.high:.4g}",
        ]
        bounds = " and ".join(end for end in ends if end)
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"the mean over runs is {bounds}{unit} at every place, give or take two standard errors; a difference if "
            f"it misses by {self.roughly:.4g} more at most"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Look at the place that misses by most."""
        missed = {"below": 0.0, "above": 0.0}
        for values in evidence.values():
            mean, error = mean_and_doubt(values)
            missed["below"] = max(missed["below"], self.low - mean - 2 * error)
            missed["above"] = max(missed["above"], mean - self.high - 2 * error)
        most, numbers = max(missed.values()), numbers_of(evidence, self.unit)
        if most <= 0:
            return Judgement(Verdict.REPRODUCED, numbers)
        side: Literal["above", "below"] = "above" if missed["above"] >= missed["below"] else "below"
        return Judgement(Verdict.DIFFERENT if most <= self.roughly else Verdict.NOT, numbers, side)


@dataclass(frozen=True)
class Beyond:
    """One method is above, or below, another: the evidence is the first minus the second, run by run."""

    side: Literal["above", "below"]
    unit: str = ""

    @property
    def words(self) -> str:
        """Say what pairs of runs must show."""
        return (
            f"paired by run, the mean difference is {self.side} 0 at every place, and {self.side} 0 by two standard "
            "errors on the average of all places; a difference if on the average alone"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Judge places one by one, and all together."""
        sign = 1 if self.side == "above" else -1
        places = {place: sign * float(values.mean()) > 0 for place, values in evidence.items()}
        fewest = min(map(len, evidence.values()))
        mean, error = mean_and_doubt(np.mean([sign * values[:fewest] for values in evidence.values()], axis=0))
        numbers = numbers_of(evidence, self.unit, signed=True)
        if failing := [place for place, holds in places.items() if not holds]:
            few = ", ".join(failing) if len(failing) <= FEW_PLACES else f"{len(failing)} of {len(places)} places"
            numbers += f"; not {self.side} at {few}"
        if mean <= 2 * error or mean <= 0:
            return Judgement(Verdict.NOT, numbers)
        return Judgement(Verdict.DIFFERENT if failing else Verdict.REPRODUCED, numbers)


@dataclass(frozen=True)
class Parts:
    """A claim of several parts: the evidence is that of each, in order."""

    rules: Mapping[str, Rule]
    """by what the part says"""

    @property
    def words(self) -> str:
        """Say the rule of each part."""
        parts = "; ".join(f"({name}) {rule.words}" for name, rule in self.rules.items())
        return f"all parts are reproduced; a difference if one is, or all are with a difference: {parts}"

    def judge(self, evidence: Sequence[Any]) -> Judgement:
        """Judge every part: all right, all wrong, or something between."""
        parts = {name: rule.judge(one) for (name, rule), one in zip(self.rules.items(), evidence, strict=True)}
        found = {part.verdict for part in parts.values()}
        numbers = "; ".join(f"({name}) {part.numbers}: {part.verdict}" for name, part in parts.items())
        if found == {Verdict.REPRODUCED}:
            return Judgement(Verdict.REPRODUCED, numbers)
        some = Verdict.REPRODUCED in found or Verdict.NOT not in found
        return Judgement(Verdict.DIFFERENT if some else Verdict.NOT, numbers)


def numbers_of(evidence: Evidence, unit: str = "", *, signed: bool = False) -> str:
    """Write means with their standard errors; of many places the least and the greatest.

    >>> numbers_of({"h = 4": np.array([1.0, 3.0]), "h = 7": np.array([5.0])}, "points")
    '2.00 (1.00) at h = 4, 5.00 at h = 7 points'
    """
    shown = sorted(evidence, key=lambda place: float(evidence[place].mean()))
    if len(shown) > FEW_PLACES:
        shown = [shown[0], shown[-1]]
    written = [_written(evidence[place], signed) + (f" at {place}" if place else "") for place in shown]
    joined = (" to " if len(evidence) > FEW_PLACES else ", ").join(written)
    return f"{joined} {unit}".strip()


FEW_PLACES = 2
PRECISION = ((1, 3), (100, 2), (1000, 1))
"""Below so much, so many digits stand after the point."""


def _written(values: Floats, signed: bool) -> str:
    mean, error = mean_and_doubt(values)
    digits = next((digits for size, digits in PRECISION if abs(mean) < size), 0)
    shown = f"{mean:{'+' if signed else ''},.{digits}f}"
    return shown if len(values) == 1 else f"{shown} ({error:,.{digits}f})"
