"""Merge parts of a grid greedily, down to the null model, which is a single cell.

The *collisions* of two parts are what their cells lose when they become one: ln x! + ln y! - ln (x + y)!, summed over
the cells of the two rows. The *price* of a pair is part(p + q) - part(p) - part(q) plus its collisions: what merging it
changes in the cost, apart from the numbers of parts. Categorical variables have a price for any two groups, numeric
ones for two intervals side by side; in all else they are merged alike.

`Merging` keeps the price of every possible merge up to date, so that all merges together cost little more than the
first. Merging two parts of a variable changes the cost by the pair's own price, plus the change of the shape cost,
which is the same for all its pairs. A merge of parts a and b changes the prices of another variable's pairs only in
columns where both a and b hold something: by the collisions in the slice a + b, less those in a and b.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.modl.criterion import Counts, LogFactorials
from sfumato.modl.grid import DataGrid, Labels, Step, Table, parts_of

AT_ONCE = 1 << 16
"""How many logarithms are looked up at once, so that they stay in a processor's cache."""
SPARSE = 0.2
"""Below this share of cells that are not empty it pays to pick them out."""


def of_all(rows: Counts, log_factorials: LogFactorials) -> Floats:
    """The collisions of every pair of rows, as a symmetric matrix."""
    parts, cells = rows.shape
    if parts * parts * cells <= AT_ONCE:
        return _of_block(rows, rows, log_factorials)
    result = np.zeros((parts, parts))
    sparse = np.count_nonzero(rows) < SPARSE * rows.size
    step = 1 if sparse else max(1, AT_ONCE // (parts * cells))
    for start in range(0, parts, step):
        block, others = rows[start : start + step], rows[start:]
        if sparse:
            filled = np.flatnonzero(block[0])
            block, others = block[:, filled], others[:, filled]
        width = max(1, AT_ONCE // max(1, block.size))
        for other in range(0, len(others), width):
            priced = _of_block(block, others[other : other + width], log_factorials)
            result[start : start + step, start + other : start + other + width] = priced
    upper = np.triu(result, 1)
    return upper + upper.T


def of_one(row: Counts, rows: Counts, log_factorials: LogFactorials) -> Floats:
    """The collisions of one row with each of others."""
    filled = np.flatnonzero(row)
    if len(filled) < SPARSE * len(row):
        row, rows = row[filled], rows[:, filled]
    width = max(1, AT_ONCE // max(1, len(row)))
    blocks = (rows[start : start + width] for start in range(0, len(rows), width))
    return np.concatenate([_of_block(row[None], block, log_factorials)[0] for block in blocks])


def of_neighbours(rows: Counts, log_factorials: LogFactorials) -> Floats:
    """The collisions of each row with the next."""
    own = log_factorials(rows).sum(axis=1)
    joint: Floats = log_factorials(rows[:-1] + rows[1:]).sum(axis=1)
    return np.asarray(own[:-1] + own[1:] - joint)


def _of_block(rows: Counts, others: Counts, log_factorials: LogFactorials) -> Floats:
    own, theirs = log_factorials(rows).sum(axis=1), log_factorials(others).sum(axis=1)
    joint = log_factorials(rows[:, None, :] + others[None, :, :]).sum(axis=2)
    return np.asarray(own[:, None] + theirs[None, :] - joint)


PartCosts = Callable[[Floats, Integers], Floats]


class Pairs(ABC):
    """Prices of the pairs of one variable's parts that may merge."""

    def __init__(self, log_factorials: LogFactorials, costs: PartCosts) -> None:
        """Keep what prices are made of; there are none yet."""
        self._log_factorials, self._costs = log_factorials, costs
        self._prices: Floats = np.empty(0)

    @abstractmethod
    def price(self, rows: Counts, weights: Floats, sizes: Integers) -> None:
        """Price all pairs, from each part's row of cells, weight and number of values."""

    @abstractmethod
    def collisions(self, rows: Counts) -> Floats:
        """The collisions of the pairs."""

    @abstractmethod
    def cheapest(self) -> tuple[float, int, int]:
        """The lowest price, and its pair."""

    @abstractmethod
    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Remove a part's slice from an array, in place; the result is a view."""

    @abstractmethod
    def merged(self, rows: Counts, weights: Floats, sizes: Integers, first: int, second: int) -> None:
        """Update the prices after `second` went into `first` and its slices were dropped."""

    def add(self, difference: Floats) -> None:
        """Change all prices, because parts of another variable merged."""
        self._prices += difference


class Groups(Pairs):
    """Any two groups may merge; the last group takes the place of one that is removed."""

    def price(self, rows: Counts, weights: Floats, sizes: Integers) -> None:
        """Price all pairs, as a symmetric matrix."""
        own = self._costs(weights, sizes)
        joint = self._costs(weights[:, None] + weights, sizes[:, None] + sizes)
        self._prices = joint - own[:, None] - own + self.collisions(rows)
        np.fill_diagonal(self._prices, np.inf)

    def collisions(self, rows: Counts) -> Floats:
        """The collisions of any two rows."""
        return of_all(rows, self._log_factorials)

    def cheapest(self) -> tuple[float, int, int]:
        """The lowest price, and its pair in increasing order."""
        first, second = sorted(divmod(int(self._prices.argmin()), len(self._prices)))
        return float(self._prices[first, second]), first, second

    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Put the last slice in the place."""
        array[place] = array[-1]
        return array[:-1]

    def merged(self, rows: Counts, weights: Floats, sizes: Integers, first: int, second: int) -> None:
        """Price the merged group with every other."""
        prices = self._prices = self.drop(self.drop(self._prices, second).T, second)
        own = self._costs(weights, sizes)
        joint = self._costs(weights + weights[first], sizes + sizes[first])
        row = joint - own - own[first] + of_one(rows[first], rows, self._log_factorials)
        prices[first], prices[:, first] = row, row
        prices[first, first] = np.inf


class Intervals(Pairs):
    """An interval may merge with the next; the later ones move up when one is removed."""

    def price(self, rows: Counts, weights: Floats, sizes: Integers) -> None:
        """Price each interval with the next."""
        own = self._costs(weights, sizes)
        joint = self._costs(weights[:-1] + weights[1:], sizes[:-1] + sizes[1:])
        self._prices = joint - own[:-1] - own[1:] + self.collisions(rows)

    def collisions(self, rows: Counts) -> Floats:
        """The collisions of each row with the next."""
        return of_neighbours(rows, self._log_factorials)

    def cheapest(self) -> tuple[float, int, int]:
        """The lowest price, and its pair."""
        first = int(self._prices.argmin())
        return float(self._prices[first]), first, first + 1

    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Move the later slices up."""
        array[place:-1] = array[place + 1 :]
        return array[:-1]

    def merged(self, rows: Counts, weights: Floats, sizes: Integers, first: int, second: int) -> None:
        """Price the merged interval with the one before and the one after."""
        kept = np.delete(self._prices, first)
        near = slice(max(0, first - 1), second + 1)
        self.price(rows[near], weights[near], sizes[near])
        kept[near.start : near.start + len(self._prices)] = self._prices
        self._prices = kept


@dataclass(frozen=True, eq=False)
class Merge:
    """Two parts of a variable that became one; values are told by their places among the seen ones."""

    variable: int
    first: Integers
    """the values of the one part"""
    second: Integers
    """the values of the other part"""
    labels: Labels
    """the parts after the merge"""
    cost: float
    """of the grid after the merge"""


class Merging:
    """A grid while it is merged, with the prices of all merges of the variables that are free to merge."""

    def __init__(self, table: Table, labels: Labels, free: Collection[int]) -> None:
        """Start from a grid. This takes many logarithms; later merges take few."""
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
        """What the cheapest merge adds to the cost, its variable and its two parts; None if there is no merge left."""
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
        """Merge the second part of a variable into the first."""
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
    """Merge whatever is cheapest, even at a loss, until each free variable (all, unless named) has one part."""
    merging = Merging(table, labels, range(len(labels)) if free is None else free)
    cost = table.cost(labels)
    while (cheapest := merging.cheapest()) is not None:
        added, axis, first, second = cheapest
        values = [np.flatnonzero(merging.labels[axis] == part) for part in (first, second)]
        merging.merge(axis, first, second)
        cost += added
        yield Merge(axis, values[0], values[1], tuple(merging.labels), cost)


def best_on_the_way(table: Table, labels: Labels, free: Collection[int] | None = None) -> Labels:
    """The cheapest of a grid and all those that merging it to the end goes through."""
    best, least = labels, table.cost(labels)
    for merge in merges(table, labels, free):
        if merge.cost < least:
            best, least = merge.labels, merge.cost
    return best


def describe(table: Table, labels: Labels) -> DataGrid:
    """A grid with the merges that lead from it to the null model, on all values, seen or not.

    A merge leaves the information (cost - null cost) / (cost of the grid - null cost).
    """
    labels = tuple(_numbered(part) for part in labels)
    cost, null_cost = table.cost(labels), table.cost(table.null)
    hosts = tuple(
        _hosts(part, seen, values, kind == "numeric")
        for part, seen, values, kind in zip(labels, table.seen, table.shape, table.kinds, strict=True)
    )
    steps = []
    for merge in merges(table, labels):
        numbered = tuple(_numbered(part) for part in merge.labels)
        seen = table.seen[merge.variable]
        steps.append(
            Step(
                merge.variable,
                tuple(seen[merge.first].tolist()),
                tuple(seen[merge.second].tolist()),
                parts_of(merge.labels),
                merge.cost,
                (merge.cost - null_cost) / (cost - null_cost),
                tuple(part[host] for part, host in zip(numbered, hosts, strict=True)),
            )
        )
    everywhere = tuple(part[host] for part, host in zip(labels, hosts, strict=True))
    return DataGrid(everywhere, cost, null_cost, 1.0, tuple(steps))


def _numbered(part: Integers) -> Integers:
    """Number parts in the order of their first values.

    >>> _numbered(np.array([2, 0, 2, 1])).tolist()
    [0, 1, 0, 2]
    """
    _, firsts, inverse = np.unique(part, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(firsts))[inverse])


def _hosts(part: Integers, seen: Integers, values: int, ordered: bool) -> Integers:
    """For each value, the place of the seen one whose part it shares: its own, if it was seen.

    >>> _hosts(np.array([0, 1]), np.array([1, 4]), 6, ordered=True).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if ordered:
        return np.searchsorted((seen[:-1] + seen[1:]) / 2, np.arange(values), side="left")
    hosts = np.full(values, int(np.argmax(part == np.bincount(part).argmax())))
    hosts[seen] = np.arange(len(seen))
    return hosts
