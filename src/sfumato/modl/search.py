"""Search for the cheapest grid: by merges, moves and cuts, from several starts.

A descent merges a grid down to the null model, keeps the best grid met, and improves one variable at a time, until
nothing helps. The first starts from the finest grid, if that is affordable. The others start from random grids, from
coarser grids on the best one's way to the null model, and from random refinements of the best.

A variable is improved with all other variables' parts given. A numeric one needs no search: for a fixed number of parts
the cost is a sum over the intervals, so the best cut is found exactly, by dynamic programming. Of a categorical one,
single values are moved between groups, which mends what merges cannot: a value that was merged early into what became
the wrong group.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.modl.grid import Labels, Table, parts_of, sum_parts
from sfumato.modl.merging import best_on_the_way, merges

INTERVAL_WORK = 200_000_000
"""How many logarithms it may take to cut one numeric variable."""
MOST_BORDERS = 1000
"""How many borders of a numeric variable are tried at most."""
NEAR = 3
"""How many neighbours on each side of a present border are tried when there are too many borders to try all."""
WORTHWHILE = 1e-7
"""A gain below this may be rounding, and values could move in circles."""
WORK = 3_000_000_000
"""How many logarithms it may take to merge the finest grid."""
ONE_VARIABLE_WORK = 100_000_000
"""How many logarithms it may take to merge the values of one variable, the others' parts being given."""
REAL = 8
"""How many times longer a logarithm takes that cannot be looked up."""
SWEEPS = 10
"""How often the values of a variable are offered other groups at most."""


def best_intervals(table: Table, labels: Labels, axis: int) -> Labels:
    """Cut one numeric variable anew, into as many intervals as cost least.

    With more values than can be tried as borders, those near the present ones and some spread evenly are tried.
    """
    parts = parts_of(labels)
    profiles = table.profiles(labels, axis)
    units = _units(labels[axis], profiles.shape[1])
    rows = sum_parts(profiles, 0, units)
    costs = _interval_costs(table, axis, rows)
    shapes = table.criterion.shape_costs_along(axis, parts, range(1, len(rows) + 1))
    ends = cheapest_cut(costs, shapes)
    found = np.searchsorted(ends, np.arange(len(rows)), side="right")
    return (*labels[:axis], found[units], *labels[axis + 1 :])


def cheapest_cut(costs: Floats, shapes: Floats) -> Integers:
    """The ends of the intervals that minimise the sum of their costs plus that of their number.

    `costs[l, r - 1]` is the cost of the values l ... r - 1 as one interval, `shapes[k - 1]` that of there being k. An
    interval costs the logarithm of a multinomial coefficient, which never grows when it is split (the number of ways
    to deal a union out is at least that of dealing its parts out one by one; random trials found it true of real
    weights, too): the sum is least for the finest cut. So nothing is to be gained beyond the k whose shape with the
    finest cut costs more than the best that was found.

    >>> cheapest_cut(np.array([[1.0, 9.0], [np.inf, 2.0]]), np.array([0.0, 4.0])).tolist()
    [1, 2]
    """
    size = len(costs)
    finest = float(np.diagonal(costs).sum())
    reached, by_end = costs[0], np.ascontiguousarray(costs[1:].T)
    best, least, arrivals = 1, reached[-1] + shapes[0], []
    for number in range(2, size + 1):
        if np.min(shapes[number - 1 :]) + finest >= least:
            break
        through = reached[:-1] + by_end
        last = through.argmin(axis=1)
        arrivals.append(last + 1)
        reached = through[np.arange(size), last]
        if reached[-1] + shapes[number - 1] < least:
            best, least = number, reached[-1] + shapes[number - 1]
    ends = [size]
    for starts in reversed(arrivals[: best - 1]):
        ends.append(int(starts[ends[-1] - 1]))
    return np.array(ends[::-1])


def _interval_costs(table: Table, axis: int, rows: Integers | Floats) -> Floats:
    """The cost of every interval of rows, from differences of running sums; infinite where it ends before it starts."""
    running = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows, axis=0)])
    costs = np.full((len(rows), len(rows)), np.inf)
    for start in range(len(rows)):
        inside = running[start + 1 :] - running[start]
        weights = inside.sum(axis=1) * table.unit
        parts = table.criterion.part_costs(axis, weights, np.arange(1, len(inside) + 1))
        costs[start, start:] = parts - table.log_factorials(inside).sum(axis=1)
    return costs


def _units(part: Integers, cells: int) -> Integers:
    """Number runs of values between which no border will be tried."""
    values = len(part)
    most = max(2, min(MOST_BORDERS, int((2 * INTERVAL_WORK / cells) ** 0.5)))
    if values <= most:
        return np.arange(values)
    borders = np.flatnonzero(np.diff(part)) + 1
    near = (borders[:, None] + np.arange(-NEAR, NEAR + 1)).ravel()
    spread = np.linspace(0, values, max(2, most - len(near)), endpoint=False, dtype=np.int64)
    tried = np.zeros(values, np.int64)
    tried[near[(near > 0) & (near < values)]] = 1
    tried[spread[1:]] = 1
    return np.cumsum(tried)


def move_values(table: Table, labels: Labels, axis: int, sweeps: int) -> Labels:
    """Move the values of one variable to where they cost least, until none moves or this many sweeps were made."""
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
        """Sum the values' profiles by group, with room for as many groups as values."""
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
        """Offer every value in turn all groups, and one of its own; return whether any moved."""
        moved = False
        for value in range(len(self.labels)):
            moved |= self._place(value)
        return moved

    def _place(self, value: int) -> bool:
        """Take a value out of its group and put it where it costs least; return whether that is elsewhere."""
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

    def _prices(self, value: int, filled: Integers) -> Floats:
        """The price of joining each group: what its part and its cells then cost more."""
        table, groups = self._table, slice(self.groups)
        weights, sizes = self._group_weights[groups] + self._weights[value], self._sizes[groups] + 1
        parts = table.criterion.part_costs(self._axis, weights, sizes) - self._costs[groups]
        joined = table.log_factorials(self._sums[groups, filled] + self._profiles[value, filled])
        return np.asarray(parts - (joined - self._logs[groups, filled]).sum(axis=1))

    def _shift(self, value: int, group: int, filled: Integers, sign: int) -> None:
        """Add a value to a group, or take it away."""
        self._sums[group, filled] += sign * self._profiles[value, filled]
        self._logs[group, filled] = self._table.log_factorials(self._sums[group, filled])
        self._group_weights[group] += sign * self._weights[value]
        self._sizes[group] += sign
        self._costs[group] = self._table.criterion.group_cost(self._group_weights[group], int(self._sizes[group]))

    def _close(self, group: int) -> None:
        """Put the last group in the place of an empty one."""
        self.groups -= 1
        last = self.groups
        for array in (self._sums, self._logs, self._group_weights, self._sizes, self._costs):
            array[group] = array[last]
            array[last] = 0
        self.labels[self.labels == last] = group

    def _shape_cost(self, groups: int) -> float:
        """The shape cost of this many groups."""
        if groups not in self._shapes:
            axis, shape = self._axis, self._shape
            self._shapes[groups] = float(self._table.criterion.shape_costs_along(axis, shape, [groups])[0])
        return self._shapes[groups]


def cheapest_grid(table: Table, restarts: int, rng: np.random.Generator) -> Labels:
    """The cheapest grid that was found by one descent and this many restarts."""
    best = table.null
    least = table.cost(best)
    for attempt in range(restarts + 1):
        found = _descend(table, _start(table, best, attempt, rng), rng)
        cost = table.cost(found)
        if cost < least - WORTHWHILE:
            best, least = found, cost
    return best


def _start(table: Table, best: Labels, attempt: int, rng: np.random.Generator) -> Labels:
    """Where a descent starts: at the finest grid, or a random one; later at coarser, random and finer ones in turn."""
    most = _most_parts(table)
    if attempt == 0:
        affordable = _work(table, table.counts.shape) <= _limit(table, WORK)
        return table.finest if affordable else _improve(table, _refined(table, table.null, most, rng), rng)
    added = round(most ** rng.random())
    if attempt % 3 == 0:
        return _refined(table, best, added, rng)
    coarser = [merge.labels for merge in merges(table, best)] if attempt % 3 == 1 else []
    start = coarser[rng.integers(len(coarser))] if coarser else _refined(table, table.null, added, rng)
    return _improve(table, start, rng)


def _most_parts(table: Table) -> float:
    """The most parts for which cells of random parts still hold something, and all variables can be rebuilt."""
    dimensions, values = table.counts.ndim, max(table.counts.shape)
    filled = table.filled ** (1 / dimensions)
    affordable = (2 * _limit(table, ONE_VARIABLE_WORK) / values**2) ** (1 / (dimensions - 1))
    return float(max(2.0, min(filled, affordable)))


def _refined(table: Table, labels: Labels, added: float, rng: np.random.Generator) -> Labels:
    """Cut the parts of every variable at about this many random places."""
    return tuple(
        _refine(part, round(added), kind == "numeric", rng) for part, kind in zip(labels, table.kinds, strict=True)
    )


def _refine(part: Integers, added: int, ordered: bool, rng: np.random.Generator) -> Integers:
    """Cut a variable's parts at this many random places; the values of a group are put in random order first."""
    order = np.arange(len(part)) if ordered else np.lexsort((rng.random(len(part)), part))
    cuts = np.diff(part[order], prepend=part[order[0]]) != 0
    free = np.flatnonzero(~cuts[1:]) + 1
    cuts[rng.choice(free, min(added, len(free)), replace=False)] = True
    refined = np.empty_like(part)
    refined[order] = np.cumsum(cuts)
    return refined


def _descend(table: Table, start: Labels, rng: np.random.Generator) -> Labels:
    """Merge a grid, then improve one variable at a time, until neither helps."""
    labels = best_on_the_way(table, start)
    cost = table.cost(labels)
    while True:
        improved = best_on_the_way(table, _improve(table, labels, rng))
        lower = table.cost(improved)
        if lower >= cost - WORTHWHILE:
            return labels
        labels, cost = improved, lower


def _improve(table: Table, labels: Labels, rng: np.random.Generator) -> Labels:
    """Rebuild each variable in turn, the others fixed, until none of them gains."""
    cost = table.cost(labels)
    gained = True
    while gained:
        gained = False
        for axis in rng.permutation(len(labels)).tolist():
            rebuilt = _rebuild(table, labels, axis)
            lower = table.cost(rebuilt)
            if lower < cost - WORTHWHILE:
                labels, cost, gained = rebuilt, lower, True
    return labels


def _rebuild(table: Table, labels: Labels, axis: int) -> Labels:
    """The best parts found for one variable: exact for intervals; for groups, from the finest and the present ones."""
    if all(number == 1 for other, number in enumerate(parts_of(labels)) if other != axis):
        return labels
    if table.kinds[axis] == "numeric":
        return best_intervals(table, labels, axis)
    moved = move_values(table, labels, axis, SWEEPS)
    finest = (*labels[:axis], np.arange(len(labels[axis])), *labels[axis + 1 :])
    if _work(table, parts_of(finest), axis) > _limit(table, ONE_VARIABLE_WORK):
        return moved
    rebuilt = move_values(table, best_on_the_way(table, finest, [axis]), axis, SWEEPS)
    return min(moved, rebuilt, key=table.cost)


def _work(table: Table, parts: tuple[int, ...], axis: int | None = None) -> float:
    """How many logarithms the prices of all pairs take: for groups, half as many per cell as there are groups.

    Looking for the lowest price before each merge adds up to a sixth of the groups' third power in pairs.
    """
    cells = math.prod(parts)
    axes = range(len(parts)) if axis is None else [axis]
    groups = [parts[one] for one in axes if table.kinds[one] == "categorical"]
    return sum(cells * number / 2 + number**3 / 6 for number in groups) + cells * (len(axes) - len(groups))


def _limit(table: Table, work: float) -> float:
    return work if table.counts.dtype.kind == "i" else work / REAL
