"""The hierarchy of values to which an attribute's leaves can be generalized, up to the root, which is all of them.

A categorical attribute's hierarchy is its taxonomy. A numeric one's has intervals of the widths that its schema names,
with borders at multiples of the width, each width a multiple of the one before. After the last named width (or, where
none is named, from the grid's step on) widths double. Values with the same range are one value, so a level up always
tells less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from sfumato.arrays import NONE, Floats, Integers
from sfumato.schema.attributes import Categorical, Numeric


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nested ranges of leaves, parents before children; the root is all leaves."""

    ranges: Integers
    """values x 2: `[lo, hi)` of each"""
    parents: Integers
    """the value above each, NONE for the root"""
    levels: Integers
    """how many steps each value is below the root"""
    finest: tuple[int, ...]
    """borders of the finest values that may be published"""

    @classmethod
    def of(cls, column: Categorical | Numeric) -> Hierarchy:
        """The hierarchy of an attribute."""
        return _categorical(column) if isinstance(column, Categorical) else _numeric(column)

    @classmethod
    def of_ranges(cls, ranges: Integers, finest: tuple[int, ...]) -> Hierarchy:
        """The hierarchy of ranges that are nested or disjoint; the whole range must be among them.

        >>> age = Hierarchy.of_ranges(np.array([[0, 4], [0, 2], [2, 4], [0, 1], [1, 2], [2, 3], [3, 4]]), (0, 2, 4))
        >>> age.levels.tolist(), age.left_domain_sizes[age.starts].tolist()
        ([0, 1, 2, 2, 1, 2, 2], [3, 3])
        """
        base = int(ranges.max()) + 1
        keys = np.unique(ranges[:, 0] * base + base - 1 - ranges[:, 1])
        ordered = np.stack([keys // base, base - 1 - keys % base], axis=1)
        parents, levels = np.full(len(keys), NONE, np.int64), np.zeros(len(keys), np.int64)
        above: list[tuple[int, int]] = []
        for node, (lo, hi) in enumerate(ordered.tolist()):
            while above and above[-1][1] <= lo:
                above.pop()
            if above:
                parents[node] = above[-1][0]
            levels[node] = len(above)
            above.append((node, hi))
        return cls(ordered, parents, levels, finest)

    def node_of(self, lows: Integers, highs: Integers) -> Integers:
        """The number of each value that has one of these ranges."""
        base = int(self.ranges[0, 1]) + 1
        keys = self.ranges[:, 0] * base + base - 1 - self.ranges[:, 1]
        return np.searchsorted(keys, lows * base + base - 1 - highs)

    @cached_property
    def starts(self) -> Integers:
        """The finest values that may be published, in the order of their ranges."""
        borders = np.asarray(self.finest, np.int64)
        return self.node_of(borders[:-1], borders[1:])

    @cached_property
    def left_domain_sizes(self) -> Integers:
        """The number of values on the level of each value and above it."""
        return np.cumsum(np.bincount(self.levels))[self.levels]

    @cached_property
    def distortions(self) -> Floats:
        """How far each value is on its way to the root: 1 - its level / the deepest level below it.

        It is 0 for a leaf, however near to the root, and 1 for the root, and grows with every step up.
        """
        deepest = self.levels.copy()
        for level in range(int(self.levels.max()), 0, -1):
            nodes = np.flatnonzero(self.levels == level)
            np.maximum.at(deepest, self.parents[nodes], deepest[nodes])
        return np.asarray(1.0 - self.levels / np.maximum(deepest, 1)) * (deepest > 0)


def _categorical(column: Categorical) -> Hierarchy:
    """The taxonomy's nodes; the finest are those on the level that the schema names, and leaves above it."""
    nodes = column.tree.nodes
    least = column.tree.height if column.finest is None else column.finest
    shown = [node.lo for node in nodes if node.depth == least or (node.depth < least and not node.children)]
    return Hierarchy.of_ranges(np.array([(node.lo, node.hi) for node in nodes]), (*sorted(shown), column.leaves))


def _numeric(column: Numeric) -> Hierarchy:
    """Intervals of growing width, and single leaves below them; a leaf for missing values is right below the root."""
    cells, leaves = column.cells, column.leaves
    missing = [cells] if leaves > cells else []
    levels = [np.flatnonzero(np.diff(interval, prepend=interval[0] - 1)) for interval in _intervals(column)]
    borders = [np.array([*starts, *missing, leaves]) for starts in (np.arange(cells), *levels)]
    ranges = [np.stack([ends[:-1], ends[1:]], axis=1) for ends in borders]
    finest = borders[1] if column.intervals else borders[0]
    return Hierarchy.of_ranges(np.concatenate([*ranges, [[0, leaves]]]), tuple(finest.tolist()))


def _intervals(column: Numeric) -> list[Integers]:
    """For each width, the number of the interval in which each cell begins.

    Widths double until two intervals are left: a range on both sides of 0 always has two. The cells of an uneven grid
    are joined in pairs, the pairs in pairs, and so on.
    """
    if column.is_uneven and not column.intervals:
        return _doubled([np.arange(column.cells) // 2])
    widths = [Fraction(str(width)) for width in column.intervals] or [column.width]
    numbers = [_multiples(column, widths[0])]
    for narrow, wide in pairwise(widths):
        numbers.append(numbers[-1] // int(wide / narrow))
    return _doubled(numbers)


def _doubled(numbers: list[Integers]) -> list[Integers]:
    while len(np.unique(numbers[-1])) > 2:
        numbers.append(numbers[-1] // 2)
    return numbers


def _multiples(column: Numeric, width: Fraction) -> Integers:
    """For the beginning of each cell, the largest k for which k times the width is not beyond it, exactly."""
    if column.is_whole:
        return np.asarray(column.edges[:-1] * width.denominator // width.numerator)
    scale = math.lcm(column.origin.denominator, column.width.denominator, width.denominator)
    begins = int(column.origin * scale) + np.arange(column.cells) * int(column.width * scale)
    return np.asarray(begins // int(width * scale))
