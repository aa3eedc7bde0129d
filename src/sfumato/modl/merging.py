"""Greedy merges, all the way from a grid to a single cell.

They stand apart because they keep the price of every possible merge up to date, which makes the whole way cost little
more than its first step. Merging two parts of a variable changes the cost by the pair's own price, plus the change of
the shape cost, which is the same for all its pairs. A merge of parts a and b changes the prices of another variable's
pairs only in columns where both a and b hold something: by the collisions in the slice a + b, less those in a and b.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.factorials import Counts
from sfumato.modl.pairs import Groups, Intervals
from sfumato.modl.table import Labels, Table


@dataclass(frozen=True, eq=False)
class Merge:
    """Two parts of a variable became one."""

    variable: int
    first: NDArray[np.int64]
    """The values of the one part, and of the other, by their places among the seen ones."""
    second: NDArray[np.int64]
    labels: Labels
    """The parts after the merge, and their cost."""
    cost: float


class Merging:
    """A grid on its way to one cell, with the prices of all merges of the variables that are free to."""

    def __init__(self, table: Table, labels: Labels, free: Collection[int]) -> None:
        """Start from a grid, at a cost of so many logarithms that all later merges are cheap."""
        self.labels = list(labels)
        self._criterion = table.criterion
        self._counts: Counts = table.grid(labels).copy()
        self._sizes = [np.bincount(part) for part in labels]
        others = [tuple(other for other in range(len(labels)) if other != axis) for axis in range(len(labels))]
        self._weights = [self._counts.sum(axis=axes) * table.unit for axes in others]
        self._pairs = {
            axis: (Groups if table.kinds[axis] == "categorical" else Intervals)(
                table.log_factorials, partial(self._criterion.part_costs, axis)
            )
            for axis in free
        }
        for axis in free:
            self._pairs[axis].price(self._rows(axis), self._weights[axis], self._sizes[axis])

    def cheapest(self) -> tuple[float, int, int, int] | None:
        """Give what the cheapest merge adds to the cost, its variable and its two parts."""
        shape = self._counts.shape
        now = self._criterion.shape_cost(shape)
        merges = []
        for axis, pairs in self._pairs.items():
            if shape[axis] > 1:
                after = self._criterion.shape_cost((*shape[:axis], shape[axis] - 1, *shape[axis + 1 :]))
                price, first, second = pairs.cheapest()
                merges.append((price + after - now, axis, first, second))
        return min(merges, default=None)

    def merge(self, axis: int, first: int, second: int) -> None:
        """Let the second part of a variable go into the first."""
        front = np.moveaxis(self._counts, axis, 0)
        self._reprice_others(axis, front[first], front[second])
        drop = self._pairs[axis].drop
        for array in (front, self._sizes[axis], self._weights[axis]):
            array[first] += array[second]
        self._sizes[axis] = drop(self._sizes[axis], second)
        self._weights[axis] = drop(self._weights[axis], second)
        numbers = drop(np.arange(len(front)), second)
        places = np.full(len(front), first)
        places[numbers] = np.arange(len(numbers))
        self.labels[axis] = places[self.labels[axis]]
        self._counts = np.moveaxis(drop(front, second), 0, axis)
        if self._counts.base is not None and 2 * self._counts.size < self._counts.base.size:
            self._counts = self._counts.copy()
        self._pairs[axis].merged(self._rows(axis), self._weights[axis], self._sizes[axis], first, second)

    def _reprice_others(self, axis: int, first: Counts, second: Counts) -> None:
        for other, pairs in self._pairs.items():
            if other != axis and self._counts.shape[other] > 1:
                place = other - (other > axis)
                parts = self._counts.shape[other]
                one = np.moveaxis(first, place, 0).reshape(parts, -1)
                two = np.moveaxis(second, place, 0).reshape(parts, -1)
                meeting = np.flatnonzero(one.any(axis=0) & two.any(axis=0))
                one, two = one[:, meeting], two[:, meeting]
                pairs.add(pairs.collisions(one + two) - pairs.collisions(one) - pairs.collisions(two))

    def _rows(self, axis: int) -> Counts:
        return np.moveaxis(self._counts, axis, 0).reshape(self._counts.shape[axis], -1)


def merges(table: Table, labels: Labels, free: Collection[int] | None = None) -> Iterator[Merge]:
    """Merge whatever is cheapest, even at a loss, until each free variable (all, unless told) has one part."""
    merging = Merging(table, labels, range(len(labels)) if free is None else free)
    cost = table.cost(labels)
    while (cheapest := merging.cheapest()) is not None:
        added, axis, first, second = cheapest
        values = [np.flatnonzero(merging.labels[axis] == part) for part in (first, second)]
        merging.merge(axis, first, second)
        cost += added
        yield Merge(axis, values[0], values[1], tuple(merging.labels), cost)


def best_on_the_way(table: Table, labels: Labels, free: Collection[int] | None = None) -> Labels:
    """Merge to the end and give the grid that cost least, be it the first."""
    best, least = labels, table.cost(labels)
    for merge in merges(table, labels, free):
        if merge.cost < least:
            best, least = merge.labels, merge.cost
    return best
