"""Moves of single values between the groups of a categorical variable, all other variables' parts being given.

They stand apart because they mend what merges cannot: a value that was merged early into what became the wrong group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.factorials import Floats
from sfumato.modl.table import Labels, Table, parts_of, sum_parts

WORTHWHILE = 1e-7
"""A gain below this may be rounding, and values could move in circles."""


def move_values(table: Table, labels: Labels, axis: int, sweeps: int) -> Labels:
    """Let the values of one variable move to where they cost least, until none does or so many sweeps were made."""
    if len(labels[axis]) == 1:
        return labels
    moving = Moving(table, labels, axis)
    for _ in range(sweeps):
        if not moving.sweep():
            break
    return (*labels[:axis], moving.labels, *labels[axis + 1 :])


class Moving:
    """The groups of one variable while its values move."""

    def __init__(self, table: Table, labels: Labels, axis: int) -> None:
        """Sum the values' profiles by group; there is room for as many groups as values."""
        self._table, self._axis = table, axis
        self._shape = parts_of(labels)
        self.labels = labels[axis].copy()
        self.groups = self._shape[axis]
        self._profiles = table.profiles(labels, axis)
        self._weights: Floats = self._profiles.sum(axis=1) * table.unit
        room = len(self.labels)
        self._sums = np.zeros_like(self._profiles)
        self._sums[: self.groups] = sum_parts(self._profiles, 0, self.labels)
        self._logs = table.log_factorials(self._sums)
        self._group_weights: Floats = np.bincount(self.labels, self._weights, room).astype(np.float64)
        self._sizes = np.bincount(self.labels, minlength=room)
        alone = table.criterion.part_costs(axis, self._weights, np.ones(room, np.int64))
        self._alone: Floats = alone - table.log_factorials(self._profiles).sum(axis=1)
        self._costs = np.zeros(room)
        groups = slice(self.groups)
        self._costs[groups] = table.criterion.part_costs(axis, self._group_weights[groups], self._sizes[groups])
        self._shapes: dict[int, float] = {}

    def sweep(self) -> bool:
        """Offer every value in turn all groups, and one of its own; tell whether any moved."""
        moved = False
        for value in range(len(self.labels)):
            moved |= self._place(value)
        return moved

    def _place(self, value: int) -> bool:
        """Take a value out of its group and put it where it costs least; tell whether that is elsewhere."""
        home, groups = int(self.labels[value]), self.groups
        alone = int(self._sizes[home]) == 1
        filled = np.flatnonzero(self._profiles[value])
        self._shift(value, home, filled, -1)
        prices = np.append(self._prices(value, filled), np.inf)
        own_group = home if alone else groups
        others = groups - alone
        prices[own_group] = self._alone[value] + self._shape_cost(others + 1) - self._shape_cost(others)
        target = int(prices.argmin())
        if prices[target] > prices[home] - WORTHWHILE:
            target = home
        self._shift(value, target, filled, 1)
        self.labels[value] = target
        if target == groups:
            self.groups += 1
        elif alone and target != home:
            self._close(home)
        return target != home

    def _prices(self, value: int, filled: NDArray[np.int64]) -> Floats:
        """Price joining each group: what its part and its cells then cost more."""
        table, groups = self._table, slice(self.groups)
        weights, sizes = self._group_weights[groups] + self._weights[value], self._sizes[groups] + 1
        parts = table.criterion.part_costs(self._axis, weights, sizes) - self._costs[groups]
        joined = table.log_factorials(self._sums[groups, filled] + self._profiles[value, filled])
        return np.asarray(parts - (joined - self._logs[groups, filled]).sum(axis=1))

    def _shift(self, value: int, group: int, filled: NDArray[np.int64], sign: int) -> None:
        """Add a value to a group, or take it away."""
        self._sums[group, filled] += sign * self._profiles[value, filled]
        self._logs[group, filled] = self._table.log_factorials(self._sums[group, filled])
        self._group_weights[group] += sign * self._weights[value]
        self._sizes[group] += sign
        self._costs[group] = self._table.criterion.group_cost(self._group_weights[group], int(self._sizes[group]))

    def _close(self, group: int) -> None:
        """Let the last group take the place of an empty one."""
        self.groups -= 1
        last = self.groups
        for array in (self._sums, self._logs, self._group_weights, self._sizes, self._costs):
            array[group] = array[last]
            array[last] = 0
        self.labels[self.labels == last] = group

    def _shape_cost(self, groups: int) -> float:
        """Give the shape cost of so many groups."""
        if groups not in self._shapes:
            axis, shape = self._axis, self._shape
            self._shapes[groups] = float(self._table.criterion.shape_costs_along(axis, shape, [groups])[0])
        return self._shapes[groups]
