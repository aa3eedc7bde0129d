"""The steps from the nodes of a tree to their children, as small tables that an engine can look things up in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import Integers
from sfumato.tree import NONE, Tree

Columns = dict[str, NDArray[np.integer]]
"""A small table by column."""


def splits_of(tree: Tree, known: int) -> Columns:
    """Give for each split node the attribute that divides it, its first child, and the border if there is only one.

    Children of one family have numbers side by side. Where there are more than two, the way they divide their parent
    has a number, which is the same for all parents that are divided alike: a taxonomy has few.
    """
    first, sizes = _families(tree, known)
    alike = _numbers_of_ways(tree, first, sizes)
    ways = [alike.get(_way(tree, one, size), NONE) for one, size in zip(first, sizes, strict=True)]
    return {
        "parent": tree.parents[first],
        "attribute": tree.attributes[first],
        "born": first.astype(np.int32),
        "border": np.where(sizes == 2, tree.highs[first], 0).astype(np.int32),
        "way": np.array(ways, np.int32),
    }


def ways_of(tree: Tree, known: int) -> Columns:
    """Give for each way to divide a range in more than two, leaf by leaf, which part it is in."""
    alike = _numbers_of_ways(tree, *_families(tree, known))
    columns: dict[str, list[NDArray[np.integer]]] = {"way": [], "leaf": [], "part": []}
    for (_, *borders), number in alike.items():
        widths = np.diff(borders)
        columns["way"].append(np.full(borders[-1] - borders[0], number))
        columns["leaf"].append(np.arange(borders[0], borders[-1]))
        columns["part"].append(np.repeat(np.arange(len(widths)), widths))
    return {name: np.concatenate([np.empty(0, np.int32), *pieces]).astype(np.int32) for name, pieces in columns.items()}


def _families(tree: Tree, known: int) -> tuple[Integers, Integers]:
    """Give the first child of each family from a number of nodes on, and how many children it has."""
    parents = tree.parents[known:]
    first = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
    return known + first, np.diff(first, append=len(parents))


def _way(tree: Tree, first: int, size: int) -> tuple[int, ...]:
    """Give the attribute and the borders of a family."""
    return (int(tree.attributes[first]), *tree.lows[first : first + size].tolist(), int(tree.highs[first + size - 1]))


def _numbers_of_ways(tree: Tree, first: Integers, sizes: Integers) -> dict[tuple[int, ...], int]:
    many = np.flatnonzero(sizes > 2)
    ways = dict.fromkeys(_way(tree, int(first[one]), int(sizes[one])) for one in many)
    return {way: number for number, way in enumerate(ways)}
