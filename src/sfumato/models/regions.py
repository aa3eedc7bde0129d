"""The regions of any release, seen attribute by attribute: which ranges occur, and who has which.

Few ranges of one attribute occur however many regions there are, so whatever is costly (a name, a covered share) is
done once per range and then handed to the regions by number.

Estimates of single cells: every combination of leaves of a few attributes, with the people that are seen there.

A cell's estimate is the sum over the regions of their estimates times the shares that the cell's leaves have of the
regions' ranges. Attributes that are not asked for are summed out first; the others are spread over their leaves one by
one, all regions at once: along an axis of a grid, or range by range where regions are no grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Codes, Floats, Integers, row_keys
from sfumato.errors import ReleaseError
from sfumato.geometry.boxes import Boxes, Regions
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models.margins import Spread, sums_within
from sfumato.schema.attributes import Categorical, Numeric, label_leaves


@dataclass(frozen=True, eq=False)
class Sides:
    """The ranges of one attribute that occur among the regions, and the number of the one that each region has."""

    ranges: Integers
    """distinct ranges x 2: [lo, hi) of places in the order"""
    number: Callable[[Integers], Integers]
    """from regions to rows of `ranges`"""
    order: Integers
    """the attribute's leaves in the order of which these are ranges: of their codes, or group after group"""

    def of(self, regions: Integers) -> Integers:
        """Give the range of each region: regions x 2."""
        return self.ranges[self.number(regions)]

    def label(self, column: Categorical | Numeric, lo: int, hi: int) -> str:
        """Name the leaves of a range."""
        return label_leaves(column, self.order[lo:hi].tolist())

    def labels(self, column: Categorical | Numeric, ranges: Integers) -> pa.Array:
        """Name the leaves of each of many ranges, few of which are different: every name is made once.

        >>> column = Numeric(kind="numeric", lower=0, upper=9)
        >>> sides = Sides(np.array([[0, 10]]), np.zeros_like, np.arange(10))
        >>> sides.labels(column, np.array([[0, 4], [4, 10], [0, 4]])).to_pylist()
        ['[0, 4)', '[4, 10)', '[0, 4)']
        """
        distinct = _sides(ranges, len(self.order))
        names = [self.label(column, lo, hi) for lo, hi in distinct.ranges.tolist()]
        numbers = pa.array(distinct.number(np.arange(len(ranges))), pa.int32())
        return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string())).cast(pa.string())


def sides_of(partition: Regions, attribute: int) -> Sides:
    """See regions from one attribute.

    >>> tree = Tree.whole((4, 47)).refine([0], [1], [0, 22, 47], [0, 3]).refine([2], [0], [0, 2, 4], [0, 3])
    >>> jobs = sides_of(tree, 0)
    >>> jobs.ranges.tolist(), jobs.number(np.arange(3)).tolist()
    ([[0, 2], [0, 4], [2, 4]], [1, 0, 2])
    """
    if isinstance(partition, Grid):
        cut = np.asarray(partition.cuts[attribute], np.int64)
        ranges, order = np.stack([cut[:-1], cut[1:]], axis=1), partition.order_of(attribute)
        return Sides(ranges, partial(partition.parts_at, attribute), order)
    boxes = partition.ranges if isinstance(partition, Boxes) else partition.boxes[partition.leaves]
    return _sides(boxes[:, attribute], partition.shape[attribute])


def sides_of_nodes(tree: Tree, attribute: int) -> Sides:
    """See all nodes of a tree from one attribute, those above the regions, too."""
    return _sides(tree.boxes[:, attribute], tree.shape[attribute])


def _sides(boxes: NDArray[np.integer], leaves: int) -> Sides:
    base = leaves + 1
    keys, numbers = np.unique(boxes[:, 0] * np.int64(base) + boxes[:, 1], return_inverse=True)
    return Sides(np.stack(np.divmod(keys, base), axis=1), numbers.__getitem__, np.arange(leaves))


def regions_of(partition: Regions, columns: Sequence[Codes]) -> Integers:
    """Give the region that holds each coded row; where regions overlap there is no such thing."""
    if isinstance(partition, Boxes):
        raise ReleaseError(
            "a person must lie in one group only, and the groups of this release overlap",
            "Draw records with sample, or see explain.",
        )
    rows = len(columns[0]) if columns else 0
    if isinstance(partition, Grid):
        return partition.locate(columns, rows)
    return np.searchsorted(partition.leaves, partition.locate(columns, rows))


MOST_HELD = 2**24
"""So many numbers on the way to cells are held at a time, or as many as there are cells."""


def cell_estimates(
    partition: Grid | Tree | Boxes,
    counts: Floats,
    sides: Sequence[Sides],
    spreads: Sequence[Spread],
    asked: Sequence[int],
) -> Floats:
    """Give the estimates of all cells of some attributes, named in ascending order: leaves x leaves ... x classes.

    Sides and spreads are those of all attributes; leaves, and spreads, are in the order of their codes.
    """
    if isinstance(partition, Grid):
        return cells_of_grid(partition, counts, {at: spreads[at] for at in asked})
    return cells_of_boxes(counts, [sides[at] for at in asked], [spreads[at] for at in asked])


def over_leaves(grid: Grid, parts: Floats, attributes: Sequence[int]) -> Floats:
    """Give every cell the number of its parts: the first axes are those of some attributes."""
    for axis, attribute in enumerate(attributes):
        parts = parts.take(grid.part_of(attribute), axis=axis)
    return parts


def cells_of_grid(grid: Grid, counts: NDArray[np.number], spreads: Mapping[int, Spread]) -> Floats:
    """Bring regions x classes to leaves x leaves ... x classes of the attributes that have spreads, in that order of
    leaf codes in which the spreads are.

    >>> grid = Grid.of_groups([[[0, 2], [1]], [[0, 1]]])
    >>> cells_of_grid(grid, np.array([[6.0], [2.0]]), {0: Spread.of(3)}).tolist()
    [[3.0], [2.0], [3.0]]
    """
    others = tuple(attribute for attribute in range(len(grid.parts)) if attribute not in spreads)
    table = counts.reshape(*grid.parts, counts.shape[1]).sum(axis=others).astype(np.float64)
    asked = sorted(spreads)
    cells = over_leaves(grid, table, asked)
    for axis, attribute in enumerate(asked):
        parts, mass = grid.part_of(attribute), spreads[attribute].mass
        cells *= (mass / np.bincount(parts, mass)[parts]).reshape(-1, *(1,) * (cells.ndim - axis - 1))
    return cells


def cells_of_boxes(counts: Floats, sides: Sequence[Sides], spreads: Sequence[Spread]) -> Floats:
    """Bring regions of any kind x classes to leaves x leaves ... x classes of the attributes that the sides are of.

    >>> sides = Sides(np.array([[0, 2], [2, 4]]), np.array([0, 1]).__getitem__, np.arange(4))
    >>> cells_of_boxes(np.array([[6.0, 1.0], [2.0, 0.0]]), [sides], [Spread.of(4)]).tolist()
    [[3.0, 0.5], [3.0, 0.5], [1.0, 0.0], [1.0, 0.0]]
    """
    numbers = [side.number(np.arange(len(counts))) for side in sides]
    cells = _spread_last(counts, numbers, sides, spreads)
    return cells.reshape(*(len(spread.mass) for spread in spreads), counts.shape[1])


def _spread_last(
    counts: Floats, numbers: Sequence[Integers], sides: Sequence[Sides], spreads: Sequence[Spread]
) -> Floats:
    """Spread rows over the leaves of the last attribute, then of those before it; rows that have the same range of
    every attribute are one. What is spread already lies in the columns.

    Two halves of the rows are brought to cells one after the other where both together would take more memory than the
    cells themselves.
    """
    if not sides:
        return np.asarray(counts.sum(axis=0))
    counts, numbers = _joined(counts, numbers, sides)
    groups, group_of = _grouped(numbers[:-1], sides[:-1], len(counts))
    size = len(spreads[-1].mass) * counts.shape[1]
    if len(groups) > 1 and len(groups) * size > max(MOST_HELD, size * math.prod(len(one.mass) for one in spreads[:-1])):
        one, other = np.array_split(np.arange(len(counts)), 2)
        cells = _spread_last(counts[one], [number[one] for number in numbers], sides, spreads)
        cells += _spread_last(counts[other], [number[other] for number in numbers], sides, spreads)
        return cells
    spread = np.zeros((len(groups), len(spreads[-1].mass), counts.shape[1]))
    mass = sums_within(spreads[-1].mass, sides[-1].ranges)
    order = np.argsort(numbers[-1], kind="stable")
    starts = np.flatnonzero(np.diff(numbers[-1][order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        number = numbers[-1][rows[0]]
        first, end = sides[-1].ranges[number]
        shares = spreads[-1].mass[first:end] / mass[number]
        spread[group_of[rows], first:end] += shares[:, None] * counts[rows, None]
    kept = [one[groups] for one in numbers[:-1]]
    return _spread_last(spread.reshape(len(groups), -1), kept, sides[:-1], spreads[:-1])


def _joined(counts: Floats, numbers: Sequence[Integers], sides: Sequence[Sides]) -> tuple[Floats, list[Integers]]:
    """Add up the rows that have the same ranges, and put them in the order of these."""
    groups, group_of = _grouped(numbers, sides, len(counts))
    if len(groups) == len(counts):
        return counts[groups], [one[groups] for one in numbers]
    order = np.argsort(group_of, kind="stable")
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    return np.add.reduceat(counts[order], starts, axis=0), [one[groups] for one in numbers]


def _grouped(numbers: Sequence[Integers], sides: Sequence[Sides], rows: int) -> tuple[Integers, Integers]:
    """Give a row of each group of rows with the same ranges, and the group of each row; without sides all are one."""
    keys = row_keys(numbers, [len(side.ranges) for side in sides]) if sides else np.zeros(rows, np.int64)
    _, groups, group_of = np.unique(keys, return_index=True, return_inverse=True)
    return groups, group_of
