"""DiffP-C4.5: a decision tree that is learnt privately, and pruned afterwards (Friedman and Schuster, KDD 2010).

On every level each node buys its noisy size; a node too small for the noise is an end. For the others a split point of
each interval is chosen, then the attribute. At last the ends' classes are counted. Pruning looks at noisy counts alone
and costs nothing: the model does it when it classifies (`models/pruned.py`).

Privacy. Nodes of a level hold different records, so what is asked of all of them is one round; rounds along a path add
up, and the meter keeps what each path has paid. As published, candidates for split points come from the data; here
they are all grid points of the declared range, of which the exponential mechanism takes intervals between two values
that occur as often as the published one does: in proportion to their lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import NO_SPLIT, Candidates, Divisions, describe_level
from sfumato.geometry.tree import Tree
from sfumato.methods.method import Method, number, one_of, parameter, truth
from sfumato.privacy.budget import GRAIN, Schedule
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Draft, Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import SCORES, Gini, Max, Score, Selection, WeightedGain
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Categorical
from sfumato.schema.schema import Predictor, Schema

Choice = Literal["joint", "separate"]
"""Whether attribute and split point are chosen at once, or a split point of each interval first, as published."""
Categories = Literal["taxonomy", "leaves"]
"""Whether a category is divided as its taxonomy says, or into all of its leaves at once, as published."""
DEEPEST = 20
"""The most levels."""


@dataclass(frozen=True, kw_only=True)
class DiffPC45(Method):
    """A private decision tree."""

    name: ClassVar[str] = "diffp-c45"
    order: ClassVar[int] = 12
    suits: ClassVar[str] = "predicting the class, and nothing else"
    arithmetic: ClassVar[str] = "equal parts for sizes and choices of each level and, twice that, for the ends"
    unsuited: ClassVar[str] = "for counts: what the tree does not cut is spread evenly, and there are no margins"
    summary: ClassVar[str] = (
        "learns a decision tree privately, split by split, and prunes it by its noisy counts (Friedman and Schuster "
        "2010)"
    )
    additions: ClassVar[str] = (
        "one choice of attribute and split point, taxonomies, sizes by class that inform the ends, and each end's "
        "counts get what its path left"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"depth": 2},
        {"score": "max", "categories": "leaves", "depth": 3},
        {"score": "weighted-gain", "rows": 10, "choice": "separate", "depth": 2},
    )
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({"depth": 3}, {"score": "gini", "depth": 2})

    depth: int = parameter(8, "The most splits on a path.", read=number("Give for example 5.", most=DEEPEST))
    score: str = parameter(
        "gini",
        "What a good split is: gini, max or weighted-gain (as published, max or gini).",
        read=one_of((Max.name, Gini.name, WeightedGain.name)),
    )
    rows: int = parameter(
        1_000_000,
        "For weighted-gain: the table's order of magnitude, as publicly known.",
        read=number("Give the table's order of magnitude."),
    )
    choice: Choice = parameter(
        "joint",
        "Choose attribute and split point at once (joint), or first a split point for each interval (separate).",
        read=one_of(get_args(Choice)),
    )
    categories: Categories = parameter(
        "taxonomy",
        "Divide a category as its taxonomy says, or into all of its leaves at once.",
        read=one_of(get_args(Categories)),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How splits are chosen; exponential is the paper's.", read=one_of(get_args(Selection))
    )
    leftover: bool = parameter(
        True,
        "Whether nodes are counted by class, and ends get what their paths leave over; the paper's are not and do not.",
        read=truth,
    )

    @classmethod
    def as_published(cls, *, depth: int | str = 5, score: str = "max") -> DiffPC45:
        """Make the method as published, with candidates for split points that do not depend on the data."""
        return cls(
            depth=number("Give for example 5.", most=DEEPEST)("depth", depth),
            score=score,
            choice="separate",
            categories="leaves",
            selection="exponential",
            leftover=False,
        )

    @property
    def model(self) -> str:
        """The model of a tree that is pruned where it classifies."""
        return "pruned tree"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon among the rounds of all levels and the counts: as published, ((2 + numeric) depth + 2) parts.

        Ours has as many parts as there are rounds, and the counts get two: they are what is published.
        """
        if len(schema.classes) < 2:
            raise MethodError(
                f"{self.name} must have a class attribute of two values or more", "Name one with --target."
            )
        if not any(leaves > 1 for leaves in schema.shape):
            raise MethodError(f"{self.name} must have an attribute besides the class to split", "Declare more.")
        rounds = [label for level in range(1, self.depth + 1) for label in self._rounds(schema, level)]
        part = epsilon / (len(rounds) + 2)
        if part < GRAIN:
            raise BudgetError("epsilon must be large enough to be shared among the levels", "Use a larger epsilon.")
        counts = epsilon - part * len(rounds) if self.leftover else part
        planned = Schedule(dict.fromkeys(rounds, part) | {"counts": counts})
        return planned.in_grains("counts", epsilon) if self.leftover else planned

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Grow level by level, and count the ends."""
        classes, every = len(schema.classes), tuple(range(len(schema.shape)))
        attributes = [_flat(one) if self.categories == "leaves" else one for one in schema.predictors.values()]
        divisions = Divisions(attributes)
        tree, steps, sizes = Tree.whole(schema.shape), list[str](), list[Measurement]()
        nodes = tree.ends
        for level in range(1, self.depth + 1):
            tally = Tally(tree, classes, every, nodes)
            by: Literal["class", "place"] = "class" if self.leftover else "place"
            label = f"sizes {level}"
            sizes.append(meter.measure(Cells(tally, by), schedule[label], label))
            offered = divisions.candidates(tree.boxes_of(nodes), np.arange(len(nodes)))
            going = self._going(sizes[-1], offered, classes)
            if self.choice == "separate":
                splits = self._splits(meter, schema, schedule, tally, offered.take(going[offered.places]), level)
                live = np.flatnonzero(going)
                offered = divisions.candidates(tree.boxes_of(nodes[live]), live, splits[live])
            offered = offered.take(going[offered.places])
            if not len(offered):
                break
            chosen = self._choose(meter, schedule, tally, offered, f"choice {level}")
            steps.append(describe_level(level, chosen, list(schema.predictors)))
            finer = tree.refine(nodes[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
            nodes, tree = np.arange(len(tree), len(finer)), finer
        ends = Cells(Tally(tree, classes))
        if self.leftover:
            return Draft(tree, (*sizes, meter.measure_with_rest(ends, "counts")), self.model, tuple(steps))
        return Draft(tree, (meter.measure(ends, schedule["counts"], "counts"),), self.model, tuple(steps))

    def expected_cells(self, schema: Schema) -> int:
        """Estimate the cells: eight children for each of four nodes of a level."""
        return len(schema.classes) << min(3 * self.depth, 18)

    def _rounds(self, schema: Schema, level: int) -> list[str]:
        """Name the rounds of a level."""
        splits = [_split_label(level, schema, at) for at in _numeric(schema)] if self.choice == "separate" else []
        return [f"sizes {level}", *splits, f"choice {level}"]

    @staticmethod
    def _going(sizes: Measurement, offered: Candidates, classes: int) -> Any:
        """Tell which nodes are split: a class of the widest split would hold more than the noise's deviation.

        By noisy sizes and public candidates alone.
        """
        counts, cells = sizes.counts, sizes.counts.shape[1]
        widest = np.zeros(len(counts), np.int64)
        np.maximum.at(widest, offered.places, offered.children)
        deviations = np.sqrt(cells * sizes.noisy.variances)
        return (widest > 0) & (counts.sum(axis=1) > deviations * widest * classes)

    def _splits(
        self, meter: Meter, schema: Schema, schedule: Schedule, tally: Tally, offered: Candidates, level: int
    ) -> Integers:
        """Choose a split point of every interval of the nodes that are split: nodes x attributes."""
        splits = np.full((tally.places, len(schema.shape)), NO_SPLIT, np.int64)
        for at in _numeric(schema):
            every = offered.take(offered.attributes == at)
            if len(every):
                chosen = self._choose(meter, schedule, tally, every, _split_label(level, schema, at))
                splits[chosen.places, at] = chosen.borders[1::3]
        return splits

    def _choose(self, meter: Meter, schedule: Schedule, tally: Tally, offered: Candidates, label: str) -> Candidates:
        score: Score = WeightedGain(rows=self.rows) if self.score == WeightedGain.name else SCORES[self.score]()
        return meter.select(Choices.by_place(tally, offered), score, schedule[label], label, self.selection)


def _numeric(schema: Schema) -> Sequence[int]:
    """The numbers of the numeric attributes that can be split."""
    columns = enumerate(schema.predictors.values())
    return [at for at, column in columns if column.kind == "numeric" and column.leaves > 1]


def _split_label(level: int, schema: Schema, attribute: int) -> str:
    return f"split {level} of {list(schema.predictors)[attribute]}"


def _flat(column: Predictor) -> Predictor:
    """A category whose root has all leaves for children."""
    return Categorical(taxonomy=list(column.tree.leaves)) if isinstance(column, Categorical) else column
