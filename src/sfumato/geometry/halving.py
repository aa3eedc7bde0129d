"""Halve an attribute's leaves level by level, down to single ones; and sum along the levels of any tree.

Halvings are the geometry of margins: methods measure whole levels of one, models estimate along it. A `Level` is the
nodes of a tree at one depth, siblings side by side: sums run up it, and shares run down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes at one depth below the root, siblings side by side; a family is the children of one parent."""

    nodes: Integers
    starts: Integers
    """where each family begins among the nodes"""
    family: Integers
    """the family of each node"""
    heads: Integers
    """the parent of each family"""

    @classmethod
    def of(cls, nodes: Integers, parents: Integers) -> Level:
        """The families of nodes that come parent by parent."""
        first = np.diff(parents[nodes], prepend=-1) != 0
        starts = np.flatnonzero(first)
        return cls(nodes, starts, np.cumsum(first) - 1, parents[nodes[starts]])

    @cached_property
    def sizes(self) -> Integers:
        """The number of children of each family."""
        return np.diff(self.starts, append=len(self.nodes))

    @cached_property
    def widest(self) -> int:
        """The number of children of the largest family."""
        return int(self.sizes.max())

    def sums(self, children: NDArray[Real]) -> NDArray[Real]:
        """Sum rows by family. Unless one is large, it is fastest to add all first children, then all second ones."""
        if self.widest == 2 and len(self.nodes) == 2 * len(self.starts):
            return children[::2] + children[1::2]
        if self.widest**2 > len(self.nodes):
            return np.add.reduceat(children, self.starts)
        sums = children.take(self.starts, axis=0)
        for rank in range(1, self.widest):
            larger = np.flatnonzero(self.sizes > rank)
            sums[larger] += children.take(self.starts[larger] + rank, axis=0)
        return sums

    def of_family(self, heads: NDArray[Real]) -> NDArray[Real]:
        """For every node, the row of its family."""
        return heads.take(self.family, axis=0)


def levels_of(parents: Integers) -> tuple[Level, ...]:
    """Group the nodes below the root by depth, then by parent.

    >>> [level.nodes.tolist() for level in levels_of(np.array([-1, 0, 1, 0, 1]))]
    [[1, 3], [2, 4]]
    """
    if parents.ndim != 1 or not len(parents) or parents[0] != -1:
        raise ValueError("the first node must be the root, with parent -1")
    if (parents[1:] < 0).any() or (parents[1:] >= np.arange(1, len(parents))).any():
        raise ValueError("every parent must precede its children")
    depths = depths_of(parents)
    order = np.lexsort((parents, depths))
    return tuple(Level.of(nodes, parents) for nodes in np.split(order, np.cumsum(np.bincount(depths))[:-1])[1:])


def depths_of(parents: NDArray[np.integer]) -> Integers:
    """Count the steps from each node up to the root, whose parent is -1.

    By doubling: a node's depth is the way to its 2^i-th ancestor plus that ancestor's own way of 2^i. So a tree that is
    one long path takes no longer than others.

    >>> depths_of(np.array([-1, 0, 1, 0, 1])).tolist()
    [0, 1, 2, 1, 2]
    """
    ancestors, depths = np.maximum(parents, 0), (parents >= 0).astype(np.int64)
    while ancestors.any():
        depths, ancestors = depths + depths[ancestors], ancestors[ancestors]
    return depths


def height(leaves: int) -> int:
    """The depth at which all parts are single leaves; at depth 0 there is one part.

    >>> [height(leaves) for leaves in (1, 2, 4, 5)]
    [0, 1, 2, 3]
    """
    return (leaves - 1).bit_length()


def parts(leaves: int, depth: int) -> int:
    """Count the parts at a depth: twice as many as above, but no more than leaves."""
    return min(1 << depth, leaves)


def borders(leaves: int, depth: int) -> Integers:
    """Where the parts at a depth begin, and where the last ends.

    Border i of 2^depth is i leaves / 2^depth, rounded down, which is border 2 i of the next depth: so levels nest, and
    the parts of a level differ by one leaf at most. Where there are fewer parts than 2^depth, borders coincide.

    >>> [borders(5, depth).tolist() for depth in (1, 2, 3)]
    [[0, 2, 5], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5]]
    """
    if parts(leaves, depth) == leaves:
        return np.arange(leaves + 1)
    return (np.arange((1 << depth) + 1) * leaves) >> depth


def families(leaves: int) -> tuple[Level, ...]:
    """The tree of all parts, level by level below the root; nodes are numbered in that order, the root is 0.

    A part of two leaves or more has two children; a part of a single leaf above the last level has itself as its child.

    >>> [level.nodes.tolist() for level in families(3)], families(3)[-1].heads.tolist()
    ([[1, 2], [3, 4, 5]], [1, 2])
    """
    return tuple(_level(leaves, depth) for depth in range(1, height(leaves) + 1))


def _level(leaves: int, depth: int) -> Level:
    above, here = parts(leaves, depth - 1), parts(leaves, depth)
    starts = np.searchsorted(borders(leaves, depth), borders(leaves, depth - 1))
    return Level(
        (1 << depth) - 1 + np.arange(here),
        starts[:-1],
        np.repeat(np.arange(above), np.diff(starts)),
        (1 << (depth - 1)) - 1 + np.arange(above),
    )
