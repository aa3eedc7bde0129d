"""CDiffGen: DiffGen's tree with noise on every level, made consistent (Qian, Song, Liang).

Privacy. The tree is public once its cuts are chosen. A record lies in one node of each level, so the rounds of the
levels add up along its path, to the count budget at most (the paper's sensitivity: the nodes on the longest path); the
leaves are counted last, each with all that its path has left. How the budget is shared among the levels follows from
the tree and the workload alone, before a count is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import BudgetError
from sfumato.geometry.candidates import describe_all, stages_of
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.cutting import PUBLISHED_SCORES, Cutting, read_number_of_steps
from sfumato.methods.margins import buy_margins
from sfumato.methods.method import Draft, parameter, refuse_other
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
from sfumato.models.consistency import Consistency
from sfumato.privacy.budget import GRAIN, Schedule, grains_of
from sfumato.privacy.measurements import NodeCounts
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

Levels = Literal["workload", "equal", "leaves"]

AUTO_DEEPEST = 72
"""With h = auto, h is the logarithm of what a table can hold, at most."""
MOST_WEIGHTS = 1 << 25
"""A workload has at most so many queries times regions: fewer queries stand for all where there are many regions."""


@dataclass(frozen=True, kw_only=True)
class CDiffGen(Cutting):
    """Single-dimensional generalization whose range counts add up little noise."""

    name: ClassVar[str] = "cdiffgen"

    levels: Levels = parameter(
        "workload",
        "How the budget of the counts is shared among the levels of the tree: for the least expected relative variance "
        "of the workload, in equal parts (the paper), or all of it to the leaves.",
    )
    workload: Workload = parameter(
        "ranges",
        "The queries that matter: ranges (random ones on two to four attributes), marginals (every range of each "
        "attribute), or your own conditions, one on each line (@FILE reads them from a file); the manifest tells them.",
    )
    consistency: Consistency = parameter(
        "least squares", "How the levels are made consistent: by least squares, or with the paper's weights."
    )
    max_cells: int = parameter(
        2_000_000, "Specializations that would lead to more groups times classes than this are not offered."
    )

    @classmethod
    def as_published(cls, *, specializations: int | str = 10, score: str = "max") -> CDiffGen:
        """Give the method as the paper has it, errata mended: with its scores max or gain."""
        refuse_other("score", score, PUBLISHED_SCORES)
        return cls(
            specializations=read_number_of_steps(specializations),
            score=score,
            choice="separate",
            selection="exponential",
            margins=Fraction(0),
            leftover=False,
            levels="equal",
            consistency="paper",
        )

    def __post_init__(self) -> None:
        """Read parameters that came as text; refuse those that make no sense for any table."""
        super().__post_init__()
        refuse_other("levels", self.levels, get_args(Levels))
        object.__setattr__(self, "workload", read_workload(self.workload))
        refuse_other("consistency", self.consistency, get_args(Consistency))

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon as DiffGen does, in whole grains; the levels share the counts' part once they are known."""
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
        """Choose the cuts, measure the margins, count the inner nodes level by level, and then the leaves."""
        classes = len(schema.classes)
        histograms = Tally(Grid.whole(schema.shape), classes, tuple(range(len(schema.shape))))
        growth = self.grow(meter, schema, schedule, histograms)
        margins = buy_margins(meter, schema, schedule, histograms, growth.grid.unresolved)
        stages = stages_of(schema.shape, growth.steps)
        budget = grains_of(meter.left if self.leftover else schedule["counts"])
        rates = self._rates(stages[-1], schema, budget)
        earlier = []
        for depth, stage in enumerate(stages[:-1]):
            if rates[depth]:
                nodes = _inner_nodes(stages[-1], depth)
                cells = Cells(Tally(stage, classes, (), nodes))
                earlier.append(NodeCounts(nodes, meter.measure(cells, int(rates[depth]) * GRAIN, f"level {depth}")))
        leaves = Tally(stages[-1], classes)
        counts = meter.measure(Cells(leaves), self._leaf_rates(stages[-1], rates, budget), "counts")
        steps = describe_all(schema.predictors, growth.steps)
        return Draft(stages[-1], counts, margins, steps, tuple(earlier), self.consistency)

    def _rates(self, tree: Tree, schema: Schema, budget: int) -> Integers:
        """Give the grains of each level."""
        depth = int(tree.depths.max())
        if self.levels == "equal":
            return np.full(depth + 1, budget // (depth + 1))
        if self.levels == "leaves":
            return np.zeros(depth + 1, np.int64)
        boxes = tree.boxes_of(tree.leaves).astype(np.int64)
        queries = thinned(queries_of(self.workload, schema, boxes), max(MOST_WEIGHTS // len(boxes), 8))
        weights = region_weights(schema, boxes, queries) / sizes_of(queries)[:, None]
        return np.array(level_grains(tree.parents, weights, budget * GRAIN), np.int64)

    def _leaf_rates(self, tree: Tree, rates: Integers, budget: int) -> Integers:
        """Give each leaf what the levels above it leave; in equal parts all nodes get the same."""
        if self.levels == "equal":
            return np.full(tree.regions, rates[0])
        above = np.concatenate(([0], np.cumsum(rates)))[tree.depths[tree.leaves]]
        return np.asarray(budget - above)


def _inner_nodes(tree: Tree, depth: int) -> Integers:
    return np.flatnonzero((tree.depths == depth) & (tree.split_by >= 0))
