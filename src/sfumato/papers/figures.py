"""Figures and claims: which runs they need, what is drawn of them, and what they decide.

A run is a key, as `sfumato.evaluate.runs` has it: `work` names what is done, `method` by which variant, `run` which
split of the table and which seed, and the rest are the settings. Figures that need the same run share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.stated import Stated
from sfumato.papers.verdicts import Between, Floats, Judgement, Rule, mean_and_doubt
from sfumato.pictures.curves import Curve, Panel

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Effort:
    """How much is done: a number of runs that someone asked for, and all settings or a few."""

    runs: int | None = None
    quick: bool = False

    def runs_of(self, full: int, quick: int) -> range:
        """Give the numbers of the runs."""
        return range(self.runs or (quick if self.quick else full))

    def some(self, full: Sequence[Setting], quick: Sequence[Setting]) -> Sequence[Setting]:
        """Give the settings."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Found:
    """What came of some runs."""

    runs: tuple[tuple[Key, Outcome], ...]

    def values(self, measure: str, **setting: Any) -> Floats:
        """Give a measure of all runs of one setting, in the order of their numbers."""
        chosen = [(key["run"], outcome[measure]) for key, outcome in self.runs if _fits(key, outcome, measure, setting)]
        return np.array([value for _, value in sorted(chosen)], np.float64)

    def places(self, name: str, measure: str, **setting: Any) -> list[Any]:
        """Give the values of one part of the setting at which there are runs, in order."""
        found = {key[name] for key, outcome in self.runs if name in key and _fits(key, outcome, measure, setting)}
        return sorted(found, key=float)

    def means(self, measure: str, over: str, **setting: Any) -> dict[Any, float]:
        """Give the means over runs, by place."""
        return {
            place: float(self.values(measure, **setting, **{over: place}).mean())
            for place in self.places(over, measure, **setting)
        }

    def curve(self, name: str, measure: str, over: str, **setting: Any) -> Curve:
        """Give means and standard errors over a quantity."""
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
    in_part: bool = False
    """whether the claim compares with a method that does not exist here, so that only a part of it is judged"""
    also: tuple[str, ...] = ()
    """other variants of interest"""

    @classmethod
    def near(
        cls, stated: Stated, evidence: Callable[[Found, str], Any], published: str, ours: str | None = None
    ) -> Claim:
        """Give the claim that a number of percentage points is what was stated."""
        return cls(stated, Between.near(stated.number), evidence, published, ours)

    def judge(self, found: Found) -> Judgement:
        """Judge the method as published."""
        return self.rule.judge(self.evidence(found, self.published))

    def judge_others(self, found: Found) -> dict[str, Judgement]:
        """Judge our variant, and others of interest, by the same rule."""
        others = (*((self.ours,) if self.ours else ()), *self.also)
        return {name: self.rule.judge(self.evidence(found, name)) for name in others}


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
        """Give the name of its files."""
        return f"{self.paper}-{self.name}"


@dataclass(frozen=True)
class Paper:
    """All figures of a paper that are drawn again, and all that it claims."""

    name: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
