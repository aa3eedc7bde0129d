"""The prices of merging two parts of one variable: of any two groups, or of two intervals side by side.

They stand apart because this is all in which categorical and numeric variables differ while a grid is merged. The price
of a pair is part(p + q) - part(p) - part(q) plus their collisions: what merging them changes in the cost, apart
from the numbers of parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.modl import collisions
from sfumato.modl.criterion import Sizes
from sfumato.modl.factorials import Counts, Floats, LogFactorials

PartCosts = Callable[[Floats, Sizes], Floats]


class Pairs(ABC):
    """Prices of the pairs of one variable's parts that may merge."""

    def __init__(self, log_factorials: LogFactorials, costs: PartCosts) -> None:
        """Keep what prices are made of; there are none yet."""
        self._log_factorials, self._costs = log_factorials, costs
        self._prices: Floats = np.empty(0)

    @abstractmethod
    def price(self, rows: Counts, weights: Floats, sizes: Sizes) -> None:
        """Price all pairs, from each part's row of cells, weight and number of values."""

    @abstractmethod
    def collisions(self, rows: Counts) -> Floats:
        """Give the collisions of the pairs."""

    @abstractmethod
    def cheapest(self) -> tuple[float, int, int]:
        """Give the lowest price, and its pair."""

    @abstractmethod
    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Leave out a part's slice of an array, in place; the result is a view."""

    @abstractmethod
    def merged(self, rows: Counts, weights: Floats, sizes: Sizes, first: int, second: int) -> None:
        """Adapt the prices after `second` went into `first` and its slices were dropped."""

    def add(self, difference: Floats) -> None:
        """Change all prices, because parts of another variable merged."""
        self._prices += difference


class Groups(Pairs):
    """All pairs are neighbours; the last group takes the place of one that is left out."""

    def price(self, rows: Counts, weights: Floats, sizes: Sizes) -> None:
        """Price all pairs, as a symmetric matrix."""
        own = self._costs(weights, sizes)
        joint = self._costs(weights[:, None] + weights, sizes[:, None] + sizes)
        self._prices = joint - own[:, None] - own + self.collisions(rows)
        np.fill_diagonal(self._prices, np.inf)

    def collisions(self, rows: Counts) -> Floats:
        """Give the collisions of any two rows."""
        return collisions.of_all(rows, self._log_factorials)

    def cheapest(self) -> tuple[float, int, int]:
        """Give the lowest price, and its pair in increasing order."""
        first, second = sorted(divmod(int(self._prices.argmin()), len(self._prices)))
        return float(self._prices[first, second]), first, second

    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Let the last slice take the place."""
        array[place] = array[-1]
        return array[:-1]

    def merged(self, rows: Counts, weights: Floats, sizes: Sizes, first: int, second: int) -> None:
        """Price the merged group with every other."""
        prices = self._prices = self.drop(self.drop(self._prices, second).T, second)
        own = self._costs(weights, sizes)
        joint = self._costs(weights + weights[first], sizes + sizes[first])
        row = joint - own - own[first] + collisions.of_one(rows[first], rows, self._log_factorials)
        prices[first], prices[:, first] = row, row
        prices[first, first] = np.inf


class Intervals(Pairs):
    """An interval merges with the next; the later ones move up when one is left out."""

    def price(self, rows: Counts, weights: Floats, sizes: Sizes) -> None:
        """Price each interval with the next."""
        own = self._costs(weights, sizes)
        joint = self._costs(weights[:-1] + weights[1:], sizes[:-1] + sizes[1:])
        self._prices = joint - own[:-1] - own[1:] + self.collisions(rows)

    def collisions(self, rows: Counts) -> Floats:
        """Give the collisions of each row with the next."""
        return collisions.of_neighbours(rows, self._log_factorials)

    def cheapest(self) -> tuple[float, int, int]:
        """Give the lowest price, and its pair."""
        first = int(self._prices.argmin())
        return float(self._prices[first]), first, first + 1

    def drop(self, array: NDArray[Any], place: int) -> NDArray[Any]:
        """Move the later slices up."""
        array[place:-1] = array[place + 1 :]
        return array[:-1]

    def merged(self, rows: Counts, weights: Floats, sizes: Sizes, first: int, second: int) -> None:
        """Price the merged interval with the one before and the one after."""
        kept = np.delete(self._prices, first)
        near = slice(max(0, first - 1), second + 1)
        self.price(rows[near], weights[near], sizes[near])
        kept[near.start : near.start + len(self._prices)] = self._prices
        self._prices = kept
