"""From the best grid down to the null model, on the values that callers know.

It stands apart because it translates: the search numbers the values that were seen, callers number all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.grid import DataGrid, Step
from sfumato.modl.merging import merges
from sfumato.modl.table import Labels, Table, parts_of


def describe(table: Table, labels: Labels) -> DataGrid:
    """Give a grid with the merges that lead from it to the null model, and the information that each of them leaves.

    The information left is (cost - null cost) / (cost of the grid - null cost).
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


def _numbered(part: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number parts in the order of their first values.

    >>> _numbered(np.array([2, 0, 2, 1])).tolist()
    [0, 1, 0, 2]
    """
    _, firsts, inverse = np.unique(part, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(firsts))[inverse])


def _hosts(part: NDArray[np.int64], seen: NDArray[np.int64], values: int, ordered: bool) -> NDArray[np.int64]:
    """Give for each value the seen one (by its place) whose part it shares: itself, if it was seen.

    >>> _hosts(np.array([0, 1]), np.array([1, 4]), 6, ordered=True).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if ordered:
        return np.searchsorted((seen[:-1] + seen[1:]) / 2, np.arange(values), side="left")
    hosts = np.full(values, int(np.argmax(part == np.bincount(part).argmax())))
    hosts[seen] = np.arange(len(seen))
    return hosts
