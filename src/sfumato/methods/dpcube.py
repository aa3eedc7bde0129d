"""DPCube: noisy cells, a kd-tree over them, and fresh counts of its parts (Xiao, Xiong, Fan, Goryczka and Li 2014).

Half of epsilon buys the histogram of all cells. A kd-tree looks for parts of it that are even, so that a part's count
spread evenly says as much as its cells, with the noise of one. The other half counts the parts afresh.

Privacy. Two rounds over disjoint cells. The kd-tree sees the noisy histogram alone: it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.geometry.tree import Tree
from sfumato.methods.laplace import FEWER, histogram
from sfumato.methods.method import Method, number, one_of, optional, parameter, share
from sfumato.privacy.budget import Schedule, grains_of
from sfumato.privacy.measurements import Draft, variance_of
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema, cells_of, refuse_large

Counts = Literal["both", "parts"]
"""What a part's people are told by: its own count and its cells', or its own count alone, as published."""
MOST_PARTS = 200_000
"""The most parts of a kd-tree."""


@dataclass(frozen=True, kw_only=True)
class DPCube(Method):
    """A kd-tree over a noisy histogram."""

    name: ClassVar[str] = "dpcube"
    order: ClassVar[int] = 10
    suits: ClassVar[str] = "counts of few attributes whose cells are mostly empty or even"
    arithmetic: ClassVar[str] = "half for all cells, half for the parts of a kd-tree over them"
    unsuited: ClassVar[str] = "on more than a million cells; where values of categories stand in no telling order"
    summary: ClassVar[str] = (
        "counts all combinations with noise, finds even parts of that by a kd-tree, and counts these again (Xiao et "
        "al. 2014)"
    )
    additions: ClassVar[str] = "both counts of each part combined by inverse variance"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"histogram": "0.3", "parts": 5})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    histogram: Fraction = parameter(
        Fraction(1, 2), "The share of epsilon for the histogram of all combinations.", read=share(least=Fraction(1, 20))
    )
    counts: Counts = parameter(
        "both",
        "Tell a part's people by its own count and by its cells', or by its own count alone (parts).",
        read=one_of(get_args(Counts)),
    )
    parts: int | None = parameter(
        None, "The most parts; if not given, as many as pay.", read=optional(number("Give for example 500."))
    )
    max_cells: int = parameter(
        1_000_000,
        "A domain with more combinations of values than this is refused.",
        read=number("Give what you can store.", least=2, most=10**8),
    )

    @classmethod
    def as_published(cls) -> DPCube:
        """Make the method as published: halves, and parts told by their own counts."""
        return cls(counts="parts")

    @property
    def model(self) -> str:
        """The model of a tree whose cells were counted, too; that of a tree alone as published."""
        return "tree over cells" if self.counts == "both" else "tree"

    def plan(self, schema: Schema, epsilon: Fraction) -> Schedule:
        """Share epsilon between the histogram and the parts."""
        refuse_large(schema, self.max_cells, FEWER)
        parts = {"histogram": epsilon * self.histogram, "counts": epsilon * (1 - self.histogram)}
        return Schedule(parts).in_grains("counts", epsilon)

    def expected_cells(self, schema: Schema) -> int:
        """Bound the cells by twice those of the histogram: no tree has more ends."""
        return 2 * cells_of(schema)

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Measure the histogram, cut it, and count the parts."""
        fine = meter.measure(histogram(schema), schedule["histogram"], "histogram")
        table = fine.counts.reshape(*schema.shape, len(schema.classes)).astype(np.float64)
        tree = KdTree(table, variance_of(schedule["counts"])).grown(min(self.parts or MOST_PARTS, MOST_PARTS))
        spend = np.full(tree.regions, grains_of(schedule["counts"]))
        counts = meter.measure(Cells(Tally(tree, len(schema.classes))), spend, "counts")
        kept = (fine,) if self.counts == "both" else ()
        steps = (f"kd-tree: {tree.regions:,} parts of {math.prod(schema.shape):,} cells",)
        return Draft(tree, (*kept, counts), self.model, steps)


@dataclass(frozen=True, eq=False)
class KdTree:
    """Cuts of a noisy histogram (leaves x leaves ... x classes) into parts that are about even.

    Spread evenly, a part of m cells errs by the sum of squares of its cells around their mean, and by the noise of its
    own count, of variance v: each cell has v / m^2 of it, all of them v / m. A cut pays if both errors together fall.
    Sums of squares of noisy cells also fall where noise alone is cut away. That makes more parts than there need be,
    many of single cells; fewer, by what noise explains, were further from the table (Adult, five attributes).
    """

    table: Floats
    of_part: float
    """the variance that a part's count will have"""

    def grown(self, most: int) -> Tree:
        """Cut level by level until no cut pays, or there are so many parts."""
        tree = Tree.whole(self.table.shape[:-1])
        nodes = tree.ends
        while len(nodes) and tree.regions < most:
            boxes = tree.boxes_of(nodes)
            found = {int(node): cut for node, box in zip(nodes, boxes, strict=True) if (cut := self._best(box))}
            split = list(found)[: most - tree.regions]
            if not split:
                break
            along, borders = [found[node][0] for node in split], [found[node][1] for node in split]
            finer = tree.refine(split, along, np.concatenate(borders), np.arange(len(split) + 1) * 3)
            nodes, tree = np.arange(len(tree), len(finer)), finer
        return tree

    def _best(self, box: Integers) -> tuple[int, list[int]] | None:
        """The cut of a box that pays most; None if none pays."""
        cells = self.table[tuple(slice(low, high) for low, high in box)]
        widths = box[:, 1] - box[:, 0]
        size, classes = int(widths.prod()), cells.shape[-1]
        whole = cells.reshape(-1, classes).sum(axis=0)
        best, found = 0.0, None
        for axis in np.flatnonzero(widths > 1).tolist():
            others = tuple(at for at in range(cells.ndim - 1) if at != axis)
            left = np.cumsum(cells.sum(axis=others), axis=0)[:-1]
            here = np.arange(1, widths[axis]) * (size // int(widths[axis]))
            gained = (left**2).sum(axis=1) / here + ((whole - left) ** 2).sum(axis=1) / (size - here)
            gained -= (whole**2).sum() / size
            gained -= classes * self.of_part * (1 / here + 1 / (size - here) - 1 / size)
            at = int(np.argmax(gained))
            if gained[at] > best:
                low, high = int(box[axis, 0]), int(box[axis, 1])
                best, found = float(gained[at]), (axis, [low, low + at + 1, high])
        return found
