"""Estimates of single cells: every combination of leaves of a few attributes, with the people that are seen there.

A cell's estimate is the sum over the regions of their estimates times the shares that the cell's leaves have of the
regions' ranges. Attributes that are not asked for are summed out first; the others are spread over their leaves one by
one, all regions at once: along an axis of a grid, or range by range where regions are no grid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.grouping import row_keys
from sfumato.partition import Grid, Indices
from sfumato.release.regions import Sides
from sfumato.release.spread import Spread, sums_within
from sfumato.tree import Tree

Floats = NDArray[np.float64]

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
    counts: Floats, numbers: Sequence[Indices], sides: Sequence[Sides], spreads: Sequence[Spread]
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


def _joined(counts: Floats, numbers: Sequence[Indices], sides: Sequence[Sides]) -> tuple[Floats, list[Indices]]:
    """Add up the rows that have the same ranges, and put them in the order of these."""
    groups, group_of = _grouped(numbers, sides, len(counts))
    if len(groups) == len(counts):
        return counts[groups], [one[groups] for one in numbers]
    order = np.argsort(group_of, kind="stable")
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    return np.add.reduceat(counts[order], starts, axis=0), [one[groups] for one in numbers]


def _grouped(numbers: Sequence[Indices], sides: Sequence[Sides], rows: int) -> tuple[Indices, Indices]:
    """Give a row of each group of rows with the same ranges, and the group of each row; without sides all are one."""
    keys = row_keys(numbers, [len(side.ranges) for side in sides]) if sides else np.zeros(rows, np.int64)
    _, groups, group_of = np.unique(keys, return_index=True, return_inverse=True)
    return groups, group_of
