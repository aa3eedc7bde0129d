"""DiffMulti: multidimensional generalization, every region split in its own way (Al-Hussaeni, Fung et al.).

Here are its parameters and its plan; how a tree grows is in `published` (the paper's schedule) and `adaptive` (ours).

Privacy. The regions of a level hold different records, so a round that asks them all charges each record once, in its
own region (parallel composition); the rounds along a path add up (sequential composition). The meter keeps what each
path has paid and refuses to go beyond epsilon on any. Where to go on, and at what price, is decided from noisy counts
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

from sfumato.counts.meter import Meter
from sfumato.counts.tally import Tally
from sfumato.errors import BudgetError, MethodError
from sfumato.methods.adaptive import ROOT_SHARE, AdaptiveGrowth
from sfumato.methods.base import Draft
from sfumato.methods.boxes import longest_path, most_specializations_of_boxes
from sfumato.methods.margins import buy_margins, margin_parts
from sfumato.methods.parameters import parameter, plain_parameters, read_number, read_share, refuse_other
from sfumato.methods.published import PublishedGrowth, rounds_of_level
from sfumato.partition import Grid
from sfumato.privacy.budget import GRAIN, Schedule
from sfumato.privacy.scores import (
    SCORES,
    BalancedMax,
    CertaintyGain,
    Discernibility,
    Max,
    PenaltyLeft,
    Selection,
    WeightedGain,
)
from sfumato.schema import Schema

NUMERIC_HEIGHT = 7
"""The height that the paper assumes for the taxonomy of a numeric attribute."""
PATHS = "choices, sizes and counts of each path"
DEEPEST = 60
"""No path is longer than this when what it finds decides."""

ScheduleName = Literal["adaptive", "paper"]
Choice = Literal["joint", "separate"]
Distribution = Literal["fair", "even"]


@dataclass(frozen=True, kw_only=True)
class DiffMulti:
    """Multidimensional generalization, for classification or for any use."""

    name: ClassVar[str] = "diffmulti"

    specializations: int = parameter(
        100_000, "h, how many regions may be specialized; the adaptive schedule stops by itself."
    )
    score: str = parameter(
        "auto",
        "What a good specialization is: balanced (ours), max (the paper's), deviation or gain with a class attribute; "
        "ncp, discernibility or ncp-left (ncp as the paper has it) with or without one; auto is balanced or ncp.",
    )
    schedule: ScheduleName = parameter(
        "adaptive",
        "Pay for each choice what the region's noisy counts call for (adaptive), or the same on every level (paper).",
    )
    choice: Choice = parameter(
        "joint",
        "Choose value and split point at once (joint), or first a split point for each interval (separate; only with "
        "schedule paper).",
    )
    selection: Selection = parameter("permute-and-flip", "How candidates are chosen; exponential is the paper's.")
    distribution: Distribution = parameter("fair", "Share out specializations by noisy sizes (fair), or evenly (even).")
    depth: int | None = parameter(
        None, "The longest path allowed; the paper's schedule takes the sum of the taxonomies' heights."
    )
    margins: Fraction = parameter(
        Fraction(1, 10),
        "The share of epsilon spent on one-way margins, which spread counts inside groups; 0 is the paper's way.",
    )

    @classmethod
    def as_published(cls, *, specializations: int | str = 1000, score: str = "max") -> DiffMulti:
        """Give the method as the paper has it: with its scores max, discernibility or ncp."""
        refuse_other("score", score, (Max.name, Discernibility.name, CertaintyGain.name))
        return cls(
            specializations=read_number("specializations", specializations, "Give for example 1000."),
            score=PenaltyLeft.name if score == CertaintyGain.name else score,
            schedule="paper",
            choice="separate",
            selection="exponential",
            margins=Fraction(0),
        )

    def __post_init__(self) -> None:
        """Read parameters that came as text; refuse those that make no sense for any table."""
        steps = read_number("specializations", self.specializations, "Give for example 1000.")
        object.__setattr__(self, "specializations", steps)
        if self.depth is not None:
            object.__setattr__(self, "depth", read_number("depth", self.depth, "Give for example 16.", most=1000))
        object.__setattr__(self, "margins", read_share("margins", self.margins, Fraction(0)))
        refuse_other("score", self.score, ["auto", *(name for name in SCORES if name != WeightedGain.name)])
        refuse_other("schedule", self.schedule, get_args(ScheduleName))
        refuse_other("choice", self.choice, get_args(Choice))
        refuse_other("selection", self.selection, get_args(Selection))
        refuse_other("distribution", self.distribution, get_args(Distribution))
        if self.schedule == "adaptive" and self.choice == "separate":
            raise MethodError("choice (separate) must go with the paper's schedule", "Give --schedule paper.")
        if self.schedule == "paper" and self.score == BalancedMax.name:
            raise MethodError(
                "score (balanced) must go with the adaptive schedule, which buys the class counts that it needs",
                "Use max or deviation, or the adaptive schedule.",
            )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Give the parameters as plain values."""
        return plain_parameters(self)

    def score_for(self, schema: Schema) -> str:
        """Give the name of the score on this schema."""
        if self.score != "auto":
            return self.score
        if len(schema.classes) < 2:
            return CertaintyGain.name
        return BalancedMax.name if self.schedule == "adaptive" else Max.name

    def depth_for(self, schema: Schema) -> int:
        """Give the longest path allowed on this schema: g."""
        if self.depth is not None:
            return self.depth
        if self.schedule == "adaptive":
            return DEEPEST
        return longest_path(list(schema.predictors.values()), NUMERIC_HEIGHT)

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon: the paper's schedule level by level; ours leaves it to each path what it buys with its own."""
        self._refuse_schema(schema)
        parts = dict(margin_parts(schema, epsilon * self.margins))
        rest = epsilon - sum(parts.values(), Fraction(0))
        if self.schedule == "adaptive":
            parts["size of the table"] = rest * ROOT_SHARE
        else:
            parts |= dict.fromkeys(rounds := self._rounds(schema), rest / 2 / len(rounds))
        _refuse_crumbs(parts)
        grows = PATHS if self.schedule == "adaptive" else None
        last = grows or "counts"
        return Schedule(parts | {last: rest / 2}, grows).in_grains(last, epsilon)

    def _rounds(self, schema: Schema) -> list[str]:
        """Name the paper's rounds: split points of the numeric attributes, then those of each level."""
        names = [name for name, column in schema.predictors.items() if column.kind == "numeric" and column.leaves > 1]
        first = [f"first split of {name}" for name in names] if self.choice == "separate" else []
        levels = range(1, self.depth_for(schema) + 1)
        return first + [label for level in levels for label in rounds_of_level(level, self.choice)]

    def _refuse_schema(self, schema: Schema) -> None:
        if not any(leaves > 1 for leaves in schema.shape):
            raise MethodError(
                "diffmulti must have an attribute besides the class that can be specialized",
                "Declare more attributes.",
            )
        name = self.score_for(schema)
        if SCORES[name].needs_classes and len(schema.classes) < 2:
            raise MethodError(
                f"score ({name}) must have a class attribute of two values or more: it looks at the classes alone",
                "Name one with --target or in the schema, or use score ncp or discernibility.",
            )

    def expected_cells(self, schema: Schema) -> int:
        """Take four children for each specialization, up to what is common."""
        most = most_specializations_of_boxes(list(schema.predictors.values()))
        return 4 * min(self.specializations, most, 1 << 18) * len(schema.classes)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Buy the margins, grow the tree, count its leaves."""
        every = tuple(range(len(schema.shape)))
        histograms = Tally(Grid.whole(schema.shape), len(schema.classes), every)
        margins = buy_margins(meter, schema, schedule, histograms, every)
        if self.schedule == "adaptive":
            tree = AdaptiveGrowth(
                meter=meter,
                schema=schema,
                score=self.score_for(schema),
                selection=self.selection,
                fair=self.distribution == "fair",
                depth=self.depth_for(schema),
                budget=schedule[PATHS],
            ).grow(self.specializations, schedule["size of the table"])
        else:
            tree = PublishedGrowth(
                meter=meter,
                schema=schema,
                score=SCORES[self.score_for(schema)](),
                selection=self.selection,
                fair=self.distribution == "fair",
                prices=schedule.parts,
                separate=self.choice == "separate",
            ).grow(self.specializations, self.depth_for(schema))
        return Draft(tree.tree, tree.counts, margins, tree.steps, tree.earlier)


def _refuse_crumbs(parts: Mapping[str, Fraction]) -> None:
    for label, part in parts.items():
        if part < GRAIN:
            raise BudgetError(
                f"the part of epsilon for {label} must be at least {float(GRAIN):g}, and is less",
                "Use a larger epsilon, no margins or, with the paper's schedule, a smaller depth.",
            )
