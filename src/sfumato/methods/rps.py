"""RPS: recursive partition at private medians, for classification (Qardaji and Li 2012).

Every region is cut in two at a private median of an attribute that lots choose, level by level, so that regions hold
about equally many records; then their classes are counted. How many levels there are is decided by a noisy size.

Privacy. The regions of a level hold different records, so a level is one round. Lots do not depend on the data, and
the depth follows from the noisy size alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, get_args

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import Candidates, describe_level
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.margins import WithMargins, buy_margins, margin_parts
from sfumato.methods.method import Method, number, one_of, optional, parameter, share
from sfumato.privacy.budget import GRAIN, Schedule, grains_of
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Balance, Selection
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

SIZE = Fraction(1, 50)
"""The share of the budget without margins for the noisy size of the table."""
REGION = 20
"""A region should hold so many times the scale of its counts' noise, for each class."""
DEEPEST = 18
"""The most levels: 262,144 regions."""


@dataclass(frozen=True, kw_only=True)
class RPS(WithMargins, Method):
    """Recursive partition at private medians."""

    name: ClassVar[str] = "rps"
    order: ClassVar[int] = 11
    suits: ClassVar[str] = "a simple baseline: balanced regions, whatever the attributes"
    arithmetic: ClassVar[str] = (
        "a fiftieth for the size, about half for the medians of all levels, half for the regions; margins first"
    )
    unsuited: ClassVar[str] = "where accuracy matters: cuts do not look at the class"
    summary: ClassVar[str] = (
        "cuts every region at a private median of an attribute drawn by lot, so that regions are balanced, and counts "
        "classes (Qardaji and Li 2012)"
    )
    additions: ClassVar[str] = "depth by a noisy size, permute-and-flip, one-way margins that all answers agree with"
    MARGINS: ClassVar[Fraction] = Fraction(1, 5)
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"depth": 3, "margins": 0, "growth": "0.2"})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({"depth": 4},)

    depth: int | None = parameter(
        None,
        "How often a path is cut; if not given, as often as keeps regions above the noise, by a noisy size.",
        read=optional(number("Give for example 8.", most=DEEPEST)),
    )
    growth: Fraction = parameter(
        Fraction(1, 2), "The share of the rest that is spent on medians.", read=share(least=Fraction(1, 20))
    )
    selection: Selection = parameter(
        "permute-and-flip", "How medians are chosen; exponential is the paper's.", read=one_of(get_args(Selection))
    )

    @classmethod
    def as_published(cls, *, depth: int | str | None = None) -> RPS:
        """Make the method as published: halves for medians and counts, the exponential mechanism, no margins."""
        return cls(
            depth=None if depth is None else number("Give for example 8.", most=DEEPEST)("depth", depth),
            selection="exponential",
            margins=Fraction(0),
        )

    @property
    def model(self) -> str:
        """The model of a tree: groups are its ends."""
        return "tree"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among margins, the size, medians and counts."""
        if not any(leaves > 1 for leaves in schema.shape):
            raise MethodError(
                "rps must have an attribute besides the class that can be cut", "Declare more attributes."
            )
        parts = dict(margin_parts(schema, epsilon * self.margin_share, self.margins_by))
        rest = epsilon - sum(parts.values(), Fraction(0))
        parts |= {"size": rest * SIZE, "medians": rest * (self.growth - SIZE)}
        if parts["medians"] / DEEPEST < GRAIN:
            raise BudgetError("epsilon must be large enough to be shared among the levels", "Use a larger epsilon.")
        return Schedule(parts | {"counts": rest * (1 - self.growth)}, "medians").in_grains("counts", epsilon)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure margins and the size, cut level by level, count the ends with all that is left."""
        classes, every = len(schema.classes), tuple(range(len(schema.shape)))
        histograms = Tally(Grid.whole(schema.shape), classes, every)
        margins = buy_margins(meter, schema, schedule, histograms, self.margins_by)
        size = meter.measure(Cells(histograms), schedule["size"], "size")
        depth = self.depth or self._bearable(int(size.counts.sum()), schedule["counts"], classes)
        price = grains_of(schedule["medians"] / depth) * GRAIN
        tree, steps = Tree.whole(schema.shape), list[str]()
        for level in range(1, depth + 1):
            tally = Tally(tree, classes, every)
            drawn = self._drawn(tree, meter.lots(tree.regions))
            if not len(drawn):
                break
            cuts = Choices.by_place(tally, drawn)
            chosen = meter.select(cuts, Balance(), price, f"medians {level}", self.selection)
            steps.append(describe_level(level, chosen, list(schema.predictors)))
            tree = tree.refine(tree.ends[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
        counts = meter.measure_with_rest(Cells(Tally(tree, classes)), "counts")
        return Draft(tree, (*margins, size, counts), self.model, tuple(steps))

    def expected_cells(self, schema: Schema) -> int:
        """Bound the cells by those of all levels."""
        return len(schema.classes) << min(self.depth or 13, 18)

    @staticmethod
    def _bearable(size: int, counts: Fraction, classes: int) -> int:
        """How many halvings leave REGION times the noise's scale of each class in a region: by the noisy size."""
        regions = max(size, 1) * float(counts) / (REGION * classes)
        return min(max(round(math.log2(max(regions, 2.0))), 1), DEEPEST)

    @staticmethod
    def _drawn(tree: Tree, lots: Integers) -> Candidates:
        """All cuts in two, between any leaves, of one attribute of each end that has more than one leaf left of it."""
        boxes = tree.boxes_of(tree.ends).astype(np.int64)
        open_ranges = boxes[:, :, 1] - boxes[:, :, 0] > 1
        number_open = open_ranges.sum(axis=1)
        places = np.flatnonzero(number_open)
        rank = lots[places] % number_open[places]
        along = np.argmax(np.cumsum(open_ranges[places], axis=1) > rank[:, None], axis=1)
        return Candidates(places, along, boxes[places, along].ravel(), np.arange(len(places) + 1) * 2)
