"""The best intervals of a numeric variable, all other variables' parts being given: exact, by dynamic programming.

They stand apart because for intervals, and only for them, no search is needed: for a fixed number of parts the cost is
a sum over the intervals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.factorials import Floats
from sfumato.modl.table import Labels, Table, parts_of, sum_parts

WORK = 200_000_000
"""How many logarithms one search may look up."""
MOST_BORDERS = 1000
NEAR = 3
"""How many neighbours of each present border are tried when there are too many borders to try all."""


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


def cheapest_cut(costs: Floats, shapes: Floats) -> NDArray[np.int64]:
    """Give the ends of the intervals that minimise the sum of their costs plus that of their number.

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


def _interval_costs(table: Table, axis: int, rows: NDArray[np.int64] | Floats) -> Floats:
    """Price every interval of rows from differences of running sums; those that end before they start are infinite."""
    running = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows, axis=0)])
    costs = np.full((len(rows), len(rows)), np.inf)
    for start in range(len(rows)):
        inside = running[start + 1 :] - running[start]
        weights = inside.sum(axis=1) * table.unit
        parts = table.criterion.part_costs(axis, weights, np.arange(1, len(inside) + 1))
        costs[start, start:] = parts - table.log_factorials(inside).sum(axis=1)
    return costs


def _units(part: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """Put neighbouring values together that no border will be tried between."""
    values = len(part)
    most = max(2, min(MOST_BORDERS, int((2 * WORK / cells) ** 0.5)))
    if values <= most:
        return np.arange(values)
    borders = np.flatnonzero(np.diff(part)) + 1
    near = (borders[:, None] + np.arange(-NEAR, NEAR + 1)).ravel()
    spread = np.linspace(0, values, max(2, most - len(near)), endpoint=False, dtype=np.int64)
    tried = np.zeros(values, np.int64)
    tried[near[(near > 0) & (near < values)]] = 1
    tried[spread[1:]] = 1
    return np.cumsum(tried)
