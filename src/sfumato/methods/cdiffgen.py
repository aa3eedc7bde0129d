"""CDiffGen: DiffGen's tree with noise on every level, made consistent (Qian, Song, Liang).

Privacy. The tree is public once its cuts are chosen. A record lies in one node of each level, so the rounds of the
levels add up along its path, to the count budget at most (the paper's sensitivity: the nodes on the longest path); the
ends are counted last, each with all that its path has left. How the budget is shared among the levels follows from
the tree and the workload alone, before a count is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import BudgetError
from sfumato.geometry.candidates import describe_all, stages_of
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.diffgen import DiffGen
from sfumato.methods.margins import buy_margins
from sfumato.methods.method import number, one_of, parameter
from sfumato.methods.workloads import (
    Workload,
    level_grains,
    queries_of,
    read_workload,
    refuse_unreadable,
    region_weights,
    sizes_of,
    thinned,
)
from sfumato.privacy.budget import GRAIN, Schedule, grains_of
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

Levels = Literal["workload", "equal", "leaves"]
"""How the levels share the budget of the counts: for a workload, in equal parts, or all of it to the tree's ends."""
Consistency = Literal["least squares", "paper"]
"""How counts are made to agree: with the least variance, or with the weights of the paper."""

AUTO_DEEPEST = 72
"""The most h that `auto` can come to: the logarithm of what a table can hold."""
MOST_WEIGHTS = 1 << 25
"""The most queries times regions of a workload: where there are many regions, fewer queries stand for all."""


@dataclass(frozen=True, kw_only=True)
class CDiffGen(DiffGen):
    """Single-dimensional generalization whose range counts add up little noise."""

    name: ClassVar[str] = "cdiffgen"
    order: ClassVar[int] = 2
    suits: ClassVar[str] = "counts of ranges along the cuts that DiffGen makes, for a workload that you name"
    arithmetic: ClassVar[str] = "as diffgen; the part of the groups is shared among the levels of the tree"
    unsuited: ClassVar[str] = "where classification is all that matters: diffgen is as good and faster"
    summary: ClassVar[str] = "DiffGen's tree with noise on its levels, made consistent, for range counts (Qian et al.)"
    additions: ClassVar[str] = (
        "exact least squares with exact variances, the budget of the levels chosen for a workload before counts are "
        "looked at"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"specializations": 3},
        {"specializations": "auto", "workload": "marginals"},
        {"specializations": 3, "levels": "equal"},
        {"specializations": 4, "levels": "leaves", "leftover": False},
        {"specializations": 3, "score": "max", "choice": "separate", "levels": "leaves", "consistency": "paper"},
        {"specializations": "auto", "selection": "exponential", "levels": "equal", "margins": 0},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({"specializations": 3},)

    levels: Levels = parameter(
        "workload",
        "How the budget of the counts is shared among the levels of the tree: for the least expected relative variance "
        "of the workload, in equal parts (the paper), or all of it to the leaves.",
        read=one_of(get_args(Levels)),
    )
    workload: Workload = parameter(
        "ranges",
        "The queries that matter: ranges (random ones on two to four attributes), marginals (every range of each "
        "attribute), or your own conditions, one on each line (@FILE reads them from a file); the manifest tells them.",
        read=lambda _, value: read_workload(value),
    )
    consistency: Consistency = parameter(
        "least squares",
        "How the levels are made consistent: by least squares, or with the paper's weights.",
        read=one_of(get_args(Consistency)),
    )
    max_cells: int = parameter(
        2_000_000,
        "Specializations that would lead to more groups times classes than this are not offered.",
        read=number("Give what you can store.", least=4),
    )

    @classmethod
    def as_published(cls, *, specializations: int | str = 10, score: str = "max") -> Self:
        """Make the method as the paper has it, errata mended: with its scores max or gain."""
        published = super().as_published(specializations=specializations, score=score)
        return replace(published, levels="equal", consistency="paper")

    @property
    def model(self) -> str:
        """The model of a tree: groups are its ends."""
        return "tree" if self.consistency == "least squares" else "tree with the paper's weights"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon as DiffGen does, in whole grains; the levels share the counts' part when the tree is known."""
        schedule = super().plan(schema, epsilon).in_grains("counts", epsilon)
        refuse_unreadable(self.workload, schema)
        if self.specializations == "auto":
            self.refuse_crumbs(schema, schedule["growth"])
        deepest = AUTO_DEEPEST if self.specializations == "auto" else self.specializations
        if self.levels == "equal" and grains_of(schedule["counts"]) <= deepest:
            raise BudgetError(
                f"the part of epsilon for the counts must be enough for {deepest + 1} levels, and is not",
                "Use a larger epsilon or fewer specializations.",
            )
        return schedule

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Grow the cuts, measure the margins, count the inner nodes level by level, and then the ends."""
        classes = len(schema.classes)
        histograms = Tally(Grid.whole(schema.shape), classes, tuple(range(len(schema.shape))))
        cuts = self.grow(meter, schema, schedule, histograms)
        margins = buy_margins(meter, schema, schedule, histograms, self.margins_by)
        stages = stages_of(schema.shape, cuts.steps)
        budget = grains_of(meter.left if self.leftover else schedule["counts"])
        rates = self._rates(stages[-1], schema, budget)
        levels: list[Measurement] = []
        for depth, stage in enumerate(stages[:-1]):
            if rates[depth]:
                cells = Cells(Tally(stage, classes, (), _inner_nodes(stages[-1], depth)))
                levels.append(meter.measure(cells, int(rates[depth]) * GRAIN, f"level {depth}"))
        ends = Cells(Tally(stages[-1], classes))
        counts = meter.measure(ends, self._end_rates(stages[-1], rates, budget), "counts")
        steps = describe_all(schema.predictors, cuts.steps)
        return Draft(stages[-1], (*cuts.measured, *margins, *levels, counts), self.model, steps)

    def _rates(self, tree: Tree, schema: Schema, budget: int) -> Integers:
        """Share the budget, in grains, among the levels."""
        depth = int(tree.depths.max())
        if self.levels == "equal":
            return np.full(depth + 1, budget // (depth + 1))
        if self.levels == "leaves":
            return np.zeros(depth + 1, np.int64)
        boxes = tree.boxes_of(tree.ends).astype(np.int64)
        queries = thinned(queries_of(self.workload, schema, boxes), max(MOST_WEIGHTS // len(boxes), 8))
        weights = region_weights(schema, boxes, queries) / sizes_of(queries)[:, None]
        return np.array(level_grains(tree.parents, weights, budget * GRAIN), np.int64)

    def _end_rates(self, tree: Tree, rates: Integers, budget: int) -> Integers:
        """The grains of each end: what the levels above it did not take or, in equal parts, the same as all nodes."""
        if self.levels == "equal":
            return np.full(tree.regions, rates[0])
        above = np.concatenate(([0], np.cumsum(rates)))[tree.depths[tree.ends]]
        return np.asarray(budget - above)


def _inner_nodes(tree: Tree, depth: int) -> Integers:
    """The nodes of a level that have children."""
    return np.flatnonzero((tree.depths == depth) & (tree.split_by >= 0))
