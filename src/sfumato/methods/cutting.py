"""Methods that cut one attribute value at a time: their parameters, their plan, and the choice of the cuts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.errors import BudgetError, MethodError
from sfumato.methods.cut_growth import CutGrowth
from sfumato.methods.cuts import intervals, most_specializations
from sfumato.methods.margins import margin_parts
from sfumato.methods.parameters import parameter, plain_parameters, read_number, read_share, read_truth, refuse_other
from sfumato.partition import Grid
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.scores import SCORES, Deviation, InfoGain, Max, Score, Selection, WeightedGain
from sfumato.schema import Schema

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
