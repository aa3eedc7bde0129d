"""DiffGen: generalize one attribute value at a time, chosen privately, then count the groups with noise.

Mohammed, Chen, Fung, Yu, "Differentially Private Data Release for Data Mining", KDD 2011. A step proposes all
specializations of the cuts so far, chooses one of them and refines the cuts (`Cuts`); after h steps the groups are
counted (`DiffGen.publish`). A candidate's score depends on its own attribute's (leaf x class) histogram only, so every
choice is played on one tally of d histograms, and one more pass counts the groups: two passes in all, whatever the
number of specializations.

Privacy. Choices, margins and counts are rounds of the meter, one after the other, and their debits sum to at most
epsilon (sequential composition); the halves of a split interval hold different records and share a debit (parallel
composition). Which rounds are asked depends on earlier answers only, so what they leave over may be spent on the
counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import (
    WHOLE,
    Candidates,
    Interval,
    Specialization,
    describe_all,
    intervals,
    most_specializations,
    regions_after,
    taxonomy_candidates,
)
from sfumato.geometry.grid import Grid
from sfumato.methods.margins import WithMargins, buy_margins, margin_parts
from sfumato.methods.method import Method, number, one_of, parameter, share, truth
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import SCORES, Deviation, InfoGain, Max, Score, Selection, WeightedGain
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

AUTO_COUNT = 4
"""With h = auto, a cell should hold on average at least this many times the scale of its noise."""
SIZE = Fraction(1, 50)
"""The share of the budget without margins that h = auto pays for a noisy size of the table."""

Choice = Literal["joint", "separate"]
"""Whether value and split point are chosen at once, or a split point for each interval first, as in the paper."""
PUBLISHED_SCORES = (Max.name, InfoGain.name)
"""The scores of the paper."""
CLASS_SCORES = (Deviation.name, *PUBLISHED_SCORES, WeightedGain.name)
"""All scores that look at classes, one of which DiffGen chooses by."""

read_steps = number("Give for example 10.")


def steps_or_auto(name: str, value: Any) -> int | Literal["auto"]:
    """Read h: a number, or `auto`."""
    return "auto" if value == "auto" else int(number("Or give auto.")(name, value))


@dataclass
class Cuts:
    """The cuts of a grid while they grow: each step proposes candidates, chooses one and refines the grid.

    All choices are rounds on the one-dimensional class histograms of the whole table, so they cost one pass.
    """

    method: DiffGen
    meter: Meter
    schema: Schema
    histograms: Tally
    prices: Mapping[str, Fraction]
    """the epsilon of each round of growth"""
    measured: tuple[Measurement, ...]
    """what was measured before the first step"""
    grid: Grid = field(init=False)
    steps: list[Specialization] = field(default_factory=list, init=False)
    chosen_splits: dict[Interval, Specialization] = field(default_factory=dict, init=False)
    """the split point of each interval, where split points are chosen separately"""

    def __post_init__(self) -> None:
        """Begin with one region that holds everything."""
        self.attributes = list(self.schema.predictors.values())
        self.grid = Grid.whole(self.schema.shape)

    def propose(self) -> Candidates:
        """List the candidates: categorical values, and intervals with every split point or with their chosen one."""
        numeric = [
            Candidates.one(WHOLE, interval[0], self.chosen_splits[interval].borders)
            if self.method.choice == "separate"
            else Candidates.splits(WHOLE, *interval)
            for interval in intervals(self.attributes, self.grid)
        ]
        found = Candidates.join([*taxonomy_candidates(self.attributes, self.grid), *numeric])
        most = self.method.max_cells // len(self.schema.classes)
        return found.take(regions_after(self.grid, found) <= most)

    def choose(self, lists: list[Candidates], label: str) -> list[Specialization]:
        """Let the meter choose one candidate of each list, for one debit."""
        choices, score = Choices.of(self.histograms, lists), self.method.score_value()
        chosen = self.meter.select(choices, score, self.prices[label], label, self.method.selection)
        return [chosen[at] for at in range(len(chosen))]

    def refine(self, chosen: Specialization, step: int) -> None:
        """Specialize as chosen; where split points are chosen separately, choose those of the new intervals."""
        self.grid = self.grid.refine(chosen.attribute, chosen.borders)
        self.steps.append(chosen)
        if self.method.choice == "separate":
            every = list(intervals(self.attributes, self.grid))
            new = [interval for interval in every if interval not in self.chosen_splits]
            if new:
                self._choose_splits(new, f"split {step}")

    def choose_first_splits(self) -> None:
        """Choose a split point for every numeric attribute, as the paper does before anything else."""
        names = list(self.schema.predictors)
        for interval in list(intervals(self.attributes, self.grid)):
            self._choose_splits([interval], f"first split of {names[interval[0]]}")

    def _choose_splits(self, new: list[Interval], label: str) -> None:
        chosen = self.choose([Candidates.splits(WHOLE, *interval) for interval in new], label)
        self.chosen_splits |= zip(new, chosen, strict=True)


@dataclass(frozen=True, kw_only=True)
class DiffGen(WithMargins, Method):
    """Single-dimensional generalization for classification."""

    name: ClassVar[str] = "diffgen"
    order: ClassVar[int] = 1
    suits: ClassVar[str] = "one table that serves classification and counts, with a class attribute"
    arithmetic: ClassVar[str] = (
        "half of the rest for h choices, half for the groups; margins first (half of epsilon, by `--for`)"
    )
    unsuited: ClassVar[str] = "without a class attribute; for the joint distribution of many attributes"
    summary: ClassVar[str] = (
        "generalizes one attribute value at a time, chosen privately, then counts the groups (Mohammed et al., KDD "
        "2011)"
    )
    additions: ClassVar[str] = (
        "a score that sees class shares, joint choice of value and split point, permute-and-flip, leftover budget "
        "spent on counts, one-way margins that all answers agree with, `--specializations auto`"
    )
    MARGINS: ClassVar[Fraction] = Fraction(1, 5)
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"specializations": 3},
        {"specializations": 3, "score": "max"},
        {"specializations": 3, "score": "max", "choice": "separate"},
        {"specializations": 3, "score": "weighted-gain", "rows": 10},
        {"specializations": "auto"},
        {"specializations": "auto", "choice": "separate"},
        {"specializations": 4, "max_cells": 60, "margins_by": "wavelets"},
        {"specializations": 3, "score": "gain", "margins": 0, "leftover": False},
        {"specializations": 2, "score": "weighted-gain", "selection": "exponential", "growth": "0.9"},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"specializations": 3},
        {"specializations": 3, "score": "gain"},
    )

    specializations: int | Literal["auto"] = parameter(
        "auto",
        "h, how many values are specialized; auto pays for a noisy size of the table and takes what its counts can "
        "bear.",
        read=steps_or_auto,
    )
    score: str = parameter(
        "deviation",
        "What a good specialization is: deviation (ours), max or gain (the paper's), or weighted-gain.",
        read=one_of(CLASS_SCORES),
    )
    rows: int = parameter(
        1_000_000,
        "For weighted-gain: the table's order of magnitude, as publicly known.",
        read=number("Give the table's order of magnitude."),
    )
    choice: Choice = parameter(
        "joint",
        "Choose value and split point at once (joint), or first a split point for each interval and then a value, as "
        "the paper does (separate).",
        read=one_of(get_args(Choice)),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How candidates are chosen; exponential is the paper's.", read=one_of(get_args(Selection))
    )
    growth: Fraction = parameter(
        Fraction(1, 2),
        "The share of the rest that is spent on choosing specializations.",
        read=share(least=Fraction(1, 20)),
    )
    leftover: bool = parameter(
        True, "Whether what the choices leave over is spent on the counts; the paper does not.", read=truth
    )
    max_cells: int = parameter(
        10_000_000,
        "Specializations that would lead to more groups times classes than this are not offered.",
        read=number("Give what you can store.", least=4),
    )

    @classmethod
    def as_published(cls, *, specializations: int | str = 10, score: str = "max") -> Self:
        """Make the method exactly as the paper has it: with its scores max or gain."""
        return cls(
            specializations=read_steps("specializations", specializations),
            score=one_of(PUBLISHED_SCORES)("score", score),
            choice="separate",
            selection="exponential",
            margins=Fraction(0),
            leftover=False,
        )

    @property
    def model(self) -> str:
        """The model of a grid: groups are its regions."""
        return "grid"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, choices and counts."""
        self._refuse_schema(schema)
        parts = dict(margin_parts(schema, epsilon * self.margin_share, self.margins_by))
        rest = epsilon - sum(parts.values(), Fraction(0))
        if self.specializations == "auto":
            parts |= {"size": rest * SIZE, "growth": rest * (self.growth - SIZE)}
            self.refuse_crumbs(schema, parts["growth"])
        else:
            rounds = self._rounds(schema, self.specializations)
            parts |= dict.fromkeys(rounds, rest * self.growth / len(rounds))
        parts["counts"] = rest * (1 - self.growth)
        return Schedule(parts)

    def grow(self, meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally) -> Cuts:
        """Propose, choose and refine until all rounds are paid or nothing is left to specialize."""
        size: tuple[Measurement, ...] = ()
        prices: Mapping[str, Fraction] = schedule.parts
        if self.specializations == "auto":
            size = (meter.measure(Cells(histograms), schedule["size"], "size"),)
            prices = self._prices(schema, schedule, int(size[0].counts.sum()))
        cuts = Cuts(self, meter, schema, histograms, prices, size)
        if self.choice == "separate":
            cuts.choose_first_splits()
        step = 0
        while f"choice {step + 1}" in prices and len(candidates := cuts.propose()):
            step += 1
            (chosen,) = cuts.choose([candidates], f"choice {step}")
            cuts.refine(chosen, step)
        return cuts

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Grow the cuts, measure the margins, count the groups."""
        histograms = Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))
        cuts = self.grow(meter, schema, schedule, histograms)
        margins = buy_margins(meter, schema, schedule, histograms, self.margins_by)
        spend = payable(meter.left) if self.leftover else schedule["counts"]
        counts = meter.measure(Cells(Tally(cuts.grid, len(schema.classes))), spend, "counts")
        steps = describe_all(schema.predictors, cuts.steps)
        return Draft(cuts.grid, (*cuts.measured, *margins, counts), self.model, steps)

    def score_value(self) -> Score:
        """The score of candidates, made from its name."""
        return WeightedGain(rows=self.rows) if self.score == WeightedGain.name else SCORES[self.score]()

    def expected_cells(self, schema: Schema) -> int:
        """Estimate the cells: four times those of h doublings."""
        steps = 16 if self.specializations == "auto" else min(self.specializations, 40)
        return min(self.max_cells, len(schema.classes) << (steps + 2))

    def _rounds(self, schema: Schema, specializations: int) -> list[str]:
        """Name the rounds of growth: a choice for each step and, if separate, the split points that it needs."""
        choices = [f"choice {step}" for step in range(1, specializations + 1)]
        if self.choice == "joint":
            return choices
        attributes, names = list(schema.predictors.values()), list(schema.predictors)
        first = [f"first split of {names[index]}" for index, _, _ in intervals(attributes, Grid.whole(schema.shape))]
        return first + [label for step, choice in enumerate(choices, 1) for label in (choice, f"split {step}")]

    def _prices(self, schema: Schema, schedule: Schedule, size: int) -> Mapping[str, Fraction]:
        """Price each round of growth with h = auto, where h follows from a noisy size and public facts.

        A specialization about doubles the groups, and groups x classes should stay below the size times the epsilon
        of the counts over AUTO_COUNT.
        """
        bearable = max(size, 1) * schedule["counts"] / (AUTO_COUNT * len(schema.classes))
        most = most_specializations(list(schema.predictors.values()))
        steps = min(max(1, round(math.log2(max(float(bearable), 2.0)))), most)
        rounds = self._rounds(schema, steps)
        return dict.fromkeys(rounds, payable(schedule["growth"] / len(rounds)))

    def refuse_crumbs(self, schema: Schema, growth: Fraction) -> None:
        """Refuse, before h is known, a budget that the largest number of rounds would grind to nothing."""
        rounds = self._rounds(schema, most_specializations(list(schema.predictors.values())))
        if payable(growth / len(rounds)) <= 0:
            raise BudgetError("epsilon must be large enough to be shared among the choices", "Use a larger epsilon.")

    def _refuse_schema(self, schema: Schema) -> None:
        if schema.target is None:
            raise MethodError(
                f"{self.name} must have a class attribute to choose by",
                "Name one with --target or in the schema, or use --method diffmulti, which needs none.",
            )
        if len(schema.classes) < 2:
            raise MethodError(f"class {schema.target} must have two values or more", "Choose another with --target.")
        most = most_specializations(list(schema.predictors.values()))
        if most == 0:
            raise MethodError(
                f"{self.name} must have an attribute besides the class that can be specialized",
                "Declare more attributes.",
            )
        if self.specializations != "auto" and self.specializations > most:
            raise MethodError(
                f"specializations ({self.specializations}) must be at most {most:,}, which publishes every leaf",
                "Ask for fewer.",
            )
        fewest = self._fewest_cells(schema)
        if fewest > self.max_cells:
            raise MethodError(
                f"specializations ({self.specializations}) must lead to at most {self.max_cells:,} cells, "
                f"and lead to {fewest:,} or more",
                "Ask for fewer specializations, or raise max_cells.",
            )

    def _fewest_cells(self, schema: Schema) -> int:
        """Bound from below the cells that h specializations lead to: each adds a part to some attribute.

        The product of part counts, their sum being given, is least when one attribute takes all it can, then the next.
        """
        left = self.specializations if self.specializations != "auto" else 1
        regions = 1
        for leaves in sorted(schema.shape, reverse=True):
            taken = min(left, leaves - 1)
            regions *= taken + 1
            left -= taken
        return regions * len(schema.classes)
