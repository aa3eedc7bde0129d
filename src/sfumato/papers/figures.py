"""Figures and claims of a paper: which runs they need, what is drawn of them, and what decides whether a claim holds.

A run is a key, as `sfumato.evaluate.runs` has it: `work` names what is done, `method` by which variant, `run` which
split of the table and which seed, and the rest are the settings. Figures that need the same run share it.

What a paper's text states stands in `figures.csv`, row by row, with where it is stated. A rule judges a claim by
evidence: an array for every place (a budget, a number of specializations) with one number per run, all runs of a place
paired with those of the others. Every rule says in words what it does.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from sfumato.arrays import Floats
from sfumato.evaluate.runs import Key, Outcome, mean_and_error
from sfumato.pictures.canvas import Curve, Panel

Evidence = Mapping[str, Floats]
"""The numbers of each place, by run."""
Setting = TypeVar("Setting")
TITLES = {
    "diffgen": "Mohammed, Chen, Fung, Yu. Differentially Private Data Release for Data Mining. KDD 2011",
    "cdiffgen": "Qian, Song, Liang. The Optimization of the Range-Count Queries in Differential Privacy",
    "diffmulti": "Al-Hussaeni, Fung, Iqbal, Liu, Hung. Differentially-Private Multidimensional Data Publishing",
    "dpcocgen": "Benkhelif, Fessant, Clérot, Raschia. Co-clustering for Differentially Private Synthetic Data "
    "Generation. 2017",
    "confidence": "Sattar, Li, Ding, Liu, Vincent. A General Framework for Privacy Preserving Data Publishing",
}
"""The papers, as they are cited."""
FEW_PLACES = 2
"""The most places that are told one by one."""
PRECISION = ((1, 3), (100, 2), (1000, 1))
"""The digits after the point of numbers below a bound."""


@dataclass(frozen=True)
class Paper:
    """All figures of a paper that are drawn again, and all that it claims."""

    name: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, or what its text says without one."""

    paper: str
    name: str
    title: str
    keys: Callable[[Effort], list[Key]]
    panels: Callable[[Found], list[Panel]]

    @property
    def slug(self) -> str:
        """The name of its files, without the suffix."""
        return f"{self.paper}-{self.name}"


@dataclass(frozen=True)
class Claim:
    """What a paper states, and what decides whether it is so."""

    stated: Stated
    rule: Rule
    evidence: Callable[[Found, str], Any]
    """what the rule looks at, for a variant of the method"""
    published: str
    """the variant as the paper has it"""
    ours: str | None = None
    """the variant with our defaults, where there is one"""
    note: str = ""
    """what is otherwise than in the paper, and why"""
    also: tuple[str, ...] = ()
    """other variants of interest"""

    @classmethod
    def near(
        cls, stated: Stated, evidence: Callable[[Found, str], Any], published: str, ours: str | None = None
    ) -> Claim:
        """The claim that a number of percentage points is what was stated."""
        return cls(stated, Between.near(stated.number), evidence, published, ours)

    def judge(self, found: Found) -> Judgement:
        """Judge the method as published."""
        return self.rule.judge(self.evidence(found, self.published))

    def judge_others(self, found: Found) -> dict[str, Judgement]:
        """Judge our variant, and others of interest, by the same rule."""
        others = (*((self.ours,) if self.ours else ()), *self.also)
        return {name: self.rule.judge(self.evidence(found, name)) for name in others}


@dataclass(frozen=True)
class Stated:
    """One row of `figures.csv`: what a paper says that a measure is in a setting, in a number or in words."""

    paper: str
    figure: str
    setting: str
    measure: str
    value: float | None
    note: str
    source: str

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures that show it; `4-5` is two."""
        return tuple(self.figure.split("-"))

    @property
    def number(self) -> float:
        """The number, where there is one."""
        assert self.value is not None, "stated in words alone"
        return self.value

    @property
    def better(self) -> str:
        """The side of the stated number on which a better one lies."""
        return "below" if self.measure.startswith("BA-CA") or self.measure == "seconds" else "above"

    @property
    def words(self) -> str:
        """What is stated, as far as possible in the paper's words."""
        number = "" if self.value is None else f"{self.value:g}"
        return ", ".join(part for part in (number, self.note) if part)


@cache
def stated() -> tuple[Stated, ...]:
    """All rows of `figures.csv`."""
    text = (resources.files(__package__) / "figures.csv").read_text("utf-8")
    return tuple(
        Stated(**{key: row[key] for key in row if key != "value"}, value=float(row["value"]) if row["value"] else None)
        for row in csv.DictReader(text.splitlines())
    )


def statement(paper: str, figure: str, measure: str, setting: str = "") -> Stated:
    """Find the one row of a figure and a measure, told from others by how its setting begins."""
    (found,) = (
        one
        for one in stated()
        if (one.paper, one.figure, one.measure) == (paper, figure, measure) and one.setting.startswith(setting)
    )
    return found


@dataclass(frozen=True)
class Effort:
    """How much is done: a number of runs that someone asked for, and all settings or a few."""

    runs: int | None = None
    quick: bool = False

    def runs_of(self, full: int, quick: int) -> range:
        """The numbers of the runs."""
        return range(self.runs or (quick if self.quick else full))

    def some(self, full: Sequence[Setting], quick: Sequence[Setting]) -> Sequence[Setting]:
        """The settings: all, or a few."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Found:
    """What came of some runs."""

    runs: tuple[tuple[Key, Outcome], ...]

    def values(self, measure: str, **setting: Any) -> Floats:
        """A measure of all runs of one setting, in the order of their numbers."""
        chosen = [(key["run"], outcome[measure]) for key, outcome in self.runs if _fits(key, outcome, measure, setting)]
        return np.array([value for _, value in sorted(chosen)], np.float64)

    def places(self, name: str, measure: str, **setting: Any) -> list[Any]:
        """The values of one part of the setting at which there are runs, in order."""
        found = {key[name] for key, outcome in self.runs if name in key and _fits(key, outcome, measure, setting)}
        return sorted(found, key=float)

    def means(self, measure: str, over: str, **setting: Any) -> dict[Any, float]:
        """The means over runs, by place."""
        return {
            place: float(self.values(measure, **setting, **{over: place}).mean())
            for place in self.places(over, measure, **setting)
        }

    def curve(self, name: str, measure: str, over: str, **setting: Any) -> Curve:
        """The means and standard errors over a quantity."""
        places = self.places(over, measure, **setting)
        found = [mean_and_doubt(self.values(measure, **setting, **{over: place})) for place in places]
        return Curve(
            name,
            tuple(float(place) for place in places),
            tuple(mean for mean, _ in found),
            tuple(error for _, error in found),
        )


def _fits(key: Key, outcome: Outcome, measure: str, setting: dict[str, Any]) -> bool:
    return measure in outcome and all(key.get(name) == value for name, value in setting.items())


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
    """What decides whether a claim was reproduced."""

    @property
    def words(self) -> str:
        """When it gives which verdict, in words."""

    def judge(self, evidence: Any) -> Judgement:
        """Judge the evidence."""


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
        """The rule for a stated number."""
        return cls(value - within, value + within, roughly - within, unit)

    @property
    def words(self) -> str:
        """The bounds, in words."""
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
        """What pairs of runs must show, in words."""
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
        """The rule of each part, in words."""
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


def mean_and_doubt(values: Floats) -> tuple[float, float]:
    """The mean over runs and its standard error, which is taken for 0 where there is one run."""
    mean, error = mean_and_error(values)
    return mean, error or 0.0


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


def _written(values: Floats, signed: bool) -> str:
    mean, error = mean_and_doubt(values)
    digits = next((digits for size, digits in PRECISION if abs(mean) < size), 0)
    shown = f"{mean:{'+' if signed else ''},.{digits}f}"
    return shown if len(values) == 1 else f"{shown} ({error:,.{digits}f})"
