"""Growing the cuts of a grid: the loop of propose, choose and refine that DiffGen and CDiffGen share.

All choices are rounds on the one-dimensional class histograms of the whole table, so they cost one pass.

Methods that cut one attribute value at a time: their parameters, their plan, and the choice of the cuts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import (
    WHOLE,
    Interval,
    Specialization,
    Ways,
    intervals,
    most_specializations,
    regions_after,
    taxonomy_candidates,
)
from sfumato.geometry.grid import Grid
from sfumato.methods.margins import margin_parts
from sfumato.methods.method import parameter, plain_parameters, read_number, read_share, read_truth, refuse_other
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.choices import Choices
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import SCORES, Deviation, InfoGain, Max, Score, Selection, WeightedGain
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Predictor, Schema


@dataclass(kw_only=True)
class CutGrowth:
    """One growth: what it may do and pay, and how far it has come."""

    meter: Meter
    attributes: Mapping[str, Predictor]
    histograms: Tally
    prices: Mapping[str, Fraction]
    score: Score
    selection: Selection
    separate: bool
    most_regions: int
    grid: Grid = field(init=False)
    steps: list[Specialization] = field(default_factory=list, init=False)
    chosen_splits: dict[Interval, Specialization] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin with one region that holds everything."""
        self.grid = Grid.whole([attribute.leaves for attribute in self.attributes.values()])

    def run(self) -> None:
        """Specialize until the prices are paid or nothing is left to specialize."""
        if self.separate:
            names = list(self.attributes)
            for interval in list(self._intervals):
                self._choose_splits([interval], f"first split of {names[interval[0]]}")
        step = 0
        while f"choice {step + 1}" in self.prices and len(candidates := self._candidates()):
            step += 1
            self._specialize(self._choose([candidates], f"choice {step}")[0], step)

    @property
    def _intervals(self) -> list[Interval]:
        return list(intervals(list(self.attributes.values()), self.grid))

    def _candidates(self) -> Ways:
        """Give all that may be chosen: categorical values, and intervals with every split or with their chosen one."""
        numeric = [
            Ways.one(WHOLE, interval[0], self.chosen_splits[interval].borders)
            if self.separate
            else Ways.splits(WHOLE, *interval)
            for interval in self._intervals
        ]
        found = Ways.join([*taxonomy_candidates(list(self.attributes.values()), self.grid), *numeric])
        return found.take(regions_after(self.grid, found) <= self.most_regions)

    def _specialize(self, chosen: Specialization, step: int) -> None:
        self.grid = self.grid.refine(chosen.attribute, chosen.borders)
        self.steps.append(chosen)
        if self.separate:
            new = [interval for interval in self._intervals if interval not in self.chosen_splits]
            if new:
                self._choose_splits(new, f"split {step}")

    def _choose_splits(self, new: list[Interval], label: str) -> None:
        chosen = self._choose([Ways.splits(WHOLE, *interval) for interval in new], label)
        self.chosen_splits |= zip(new, chosen, strict=True)

    def _choose(self, groups: list[Ways], label: str) -> list[Specialization]:
        choices = Choices.of(self.histograms, groups)
        chosen = self.meter.select(choices, self.score, self.prices[label], label, self.selection)
        return [chosen[group] for group in range(len(chosen))]


AUTO_COUNT = 4
"""With h = auto, a cell should hold on average at least this many times the scale of its noise."""


SIZE = Fraction(1, 50)
"""The share of the budget without margins that h = auto pays for a noisy size of the table."""

Choice = Literal["joint", "separate"]
PUBLISHED_SCORES = (Max.name, InfoGain.name)
CLASS_SCORES = (Deviation.name, *PUBLISHED_SCORES, WeightedGain.name)


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """What DiffGen and CDiffGen have in common: how cuts are chosen, and what is left for the counts."""

    name: ClassVar[str]

    specializations: int | Literal["auto"] = parameter(
        10,
        "h, how many values are specialized; auto pays for a noisy size of the table and takes what its counts can "
        "bear.",
    )
    score: str = parameter(
        "deviation", "What a good specialization is: deviation (ours), max or gain (the paper's), or weighted-gain."
    )
    rows: int = parameter(1_000_000, "For weighted-gain: the table's order of magnitude, as publicly known.")
    choice: Choice = parameter(
        "joint",
        "Choose value and split point at once (joint), or first a split point for each interval and then a value, as "
        "the paper does (separate).",
    )
    selection: Selection = parameter("permute-and-flip", "How candidates are chosen; exponential is the paper's.")
    margins: Fraction = parameter(
        Fraction(1, 5),
        "The share of epsilon spent on one-way margins, which spread counts inside groups; 0 is the paper's way.",
    )
    growth: Fraction = parameter(Fraction(1, 2), "The share of the rest that is spent on choosing specializations.")
    leftover: bool = parameter(True, "Whether what the choices leave over is spent on the counts; the paper does not.")
    max_cells: int = parameter(
        10_000_000, "Specializations that would lead to more groups times classes than this are not offered."
    )

    def __post_init__(self) -> None:
        """Read parameters that came as text; refuse those that make no sense for any table."""
        object.__setattr__(self, "specializations", read_steps(self.specializations))
        object.__setattr__(self, "margins", read_share("margins", self.margins, Fraction(0)))
        object.__setattr__(self, "growth", read_share("growth", self.growth, Fraction(1, 20)))
        refuse_other("score", self.score, CLASS_SCORES)
        refuse_other("choice", self.choice, get_args(Choice))
        refuse_other("selection", self.selection, get_args(Selection))
        object.__setattr__(self, "rows", read_number("rows", self.rows, "Give the table's order of magnitude."))
        object.__setattr__(self, "max_cells", read_number("max_cells", self.max_cells, "Give what you can store.", 4))
        object.__setattr__(self, "leftover", read_truth("leftover", self.leftover))
        self.score_value()

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values."""
        return plain_parameters(self)

    def score_value(self) -> Score:
        """Give the score by value."""
        return WeightedGain(rows=self.rows) if self.score == WeightedGain.name else SCORES[self.score]()

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, choices and counts."""
        self._refuse_schema(schema)
        parts = dict(margin_parts(schema, epsilon * self.margins))
        rest = epsilon - sum(parts.values(), Fraction(0))
        if self.specializations == "auto":
            parts |= {"size": rest * SIZE, "growth": rest * (self.growth - SIZE)}
            self.refuse_crumbs(schema, parts["growth"])
        else:
            rounds = self._rounds(schema, self.specializations)
            parts |= dict.fromkeys(rounds, rest * self.growth / len(rounds))
        parts["counts"] = rest * (1 - self.growth)
        return Schedule(parts)

    def refuse_crumbs(self, schema: Schema, growth: Fraction) -> None:
        """Refuse a budget that the largest number of rounds would grind to nothing, before the number is known."""
        rounds = self._rounds(schema, most_specializations(list(schema.predictors.values())))
        if payable(growth / len(rounds)) <= 0:
            raise BudgetError("epsilon must be large enough to be shared among the choices", "Use a larger epsilon.")

    def expected_cells(self, schema: Schema) -> int:
        """Take four times the groups that h doublings make."""
        steps = 16 if self.specializations == "auto" else min(self.specializations, 40)
        return min(self.max_cells, len(schema.classes) << (steps + 2))

    def _refuse_schema(self, schema: Schema) -> None:
        if schema.target is None:
            raise MethodError(
                f"{self.name} must have a class attribute to choose by", "Name one with --target or in the schema."
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

    def _rounds(self, schema: Schema, specializations: int) -> list[str]:
        choices = [f"choice {step}" for step in range(1, specializations + 1)]
        if self.choice == "joint":
            return choices
        attributes = list(schema.predictors.values())
        names = list(schema.predictors)
        first = [f"first split of {names[index]}" for index, _, _ in intervals(attributes, Grid.whole(schema.shape))]
        return first + [label for step, choice in enumerate(choices, 1) for label in (choice, f"split {step}")]

    def grow(self, meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally) -> CutGrowth:
        """Choose the cuts."""
        growth = CutGrowth(
            meter=meter,
            attributes=schema.predictors,
            histograms=histograms,
            prices=self._prices(meter, schema, schedule, histograms),
            score=self.score_value(),
            selection=self.selection,
            separate=self.choice == "separate",
            most_regions=self.max_cells // len(schema.classes),
        )
        growth.run()
        return growth

    def _prices(self, meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally) -> Mapping[str, Fraction]:
        """Give the price of each round of growth; with auto, h follows from a noisy size and public facts.

        A specialization about doubles the groups, and groups x classes should stay below the size times the epsilon
        of the counts over AUTO_COUNT.
        """
        if self.specializations != "auto":
            return schedule.parts
        size = meter.measure(Cells(histograms), schedule["size"], "size")
        bearable = max(int(size.counts.sum()), 1) * schedule["counts"] / (AUTO_COUNT * len(schema.classes))
        most = most_specializations(list(schema.predictors.values()))
        steps = min(max(1, round(math.log2(max(float(bearable), 2.0)))), most)
        rounds = self._rounds(schema, steps)
        return dict.fromkeys(rounds, payable(schedule["growth"] / len(rounds)))


def read_steps(value: object) -> int | Literal["auto"]:
    """Read h."""
    return "auto" if value == "auto" else read_number("specializations", value, "Or give auto.")


def read_number_of_steps(value: object) -> int:
    """Read h for a published method, which does not choose it itself."""
    return read_number("specializations", value, "Give for example 10.")
