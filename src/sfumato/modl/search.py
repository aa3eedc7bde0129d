"""The search for the cheapest grid: merges, moves and cuts, from several starts.

It stands apart because it only decides what is tried, and when: every step is another module's. A descent merges a grid
down to the null model, keeps the best grid met, and improves one variable at a time, until nothing helps. The first
starts from the finest grid, if that is affordable. The others start from random grids, from coarser grids on the
best one's way to the null model, and from random refinements of the best.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.intervals import best_intervals
from sfumato.modl.merging import best_on_the_way, merges
from sfumato.modl.moves import WORTHWHILE, move_values
from sfumato.modl.table import Labels, Table, parts_of

WORK = 3_000_000_000
"""How many logarithms it may take to merge the finest grid."""
ONE_VARIABLE_WORK = 100_000_000
"""How many it may take to merge the values of one variable, the others' parts being given."""
REAL = 8
"""How many times longer a logarithm takes that cannot be looked up."""
SWEEPS = 10


def cheapest_grid(table: Table, restarts: int, rng: np.random.Generator) -> Labels:
    """Give the cheapest grid that was found by one descent and so many more."""
    best = table.null
    least = table.cost(best)
    for attempt in range(restarts + 1):
        found = _descend(table, _start(table, best, attempt, rng), rng)
        cost = table.cost(found)
        if cost < least - WORTHWHILE:
            best, least = found, cost
    return best


def _start(table: Table, best: Labels, attempt: int, rng: np.random.Generator) -> Labels:
    """Begin with the finest grid, or a random one; then try coarser, random and finer grids by turns."""
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
    """Give so many parts that cells of random parts hold something, and that all variables can be rebuilt."""
    dimensions, values = table.counts.ndim, max(table.counts.shape)
    filled = table.filled ** (1 / dimensions)
    affordable = (2 * _limit(table, ONE_VARIABLE_WORK) / values**2) ** (1 / (dimensions - 1))
    return float(max(2.0, min(filled, affordable)))


def _refined(table: Table, labels: Labels, added: float, rng: np.random.Generator) -> Labels:
    """Cut the parts of every variable at about so many random places."""
    return tuple(
        _refine(part, round(added), kind == "numeric", rng) for part, kind in zip(labels, table.kinds, strict=True)
    )


def _refine(part: NDArray[np.int64], added: int, ordered: bool, rng: np.random.Generator) -> NDArray[np.int64]:
    """Cut a variable's parts at so many random places; the values of a group come in random order first."""
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
    """Rebuild each variable in turn, the others fixed, until a round over all of them gains nothing."""
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
    """Give the best parts found for one variable: exact for intervals; from the finest and from the present groups."""
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
    """Count the logarithms that the prices of all pairs take: for groups, half as many per cell as there are groups.

    Looking for the lowest price before each merge adds up to a sixth of the groups' third power in pairs.
    """
    cells = math.prod(parts)
    axes = range(len(parts)) if axis is None else [axis]
    groups = [parts[one] for one in axes if table.kinds[one] == "categorical"]
    return sum(cells * number / 2 + number**3 / 6 for number in groups) + cells * (len(axes) - len(groups))


def _limit(table: Table, work: float) -> float:
    return work if table.counts.dtype.kind == "i" else work / REAL
