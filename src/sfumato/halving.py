"""Halving an attribute's leaves level by level, down to single ones: which parts there are, and how they nest.

Public geometry for one-way margins: methods measure whole levels of it, releases estimate along it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.consistency import Level

Integers = NDArray[np.int64]


def height(leaves: int) -> int:
    """Give the depth at which all parts are single leaves; at depth 0 there is one part.

    >>> [height(leaves) for leaves in (1, 2, 4, 5)]
    [0, 1, 2, 3]
    """
    return (leaves - 1).bit_length()


def parts(leaves: int, depth: int) -> int:
    """Count the parts at a depth: twice as many as above, but no more than leaves."""
    return min(1 << depth, leaves)


def borders(leaves: int, depth: int) -> Integers:
    """Give where the parts at a depth begin, and the end.

    Border i of 2^depth is i leaves / 2^depth, rounded down, which is border 2 i of the next depth: so levels nest, and
    the parts of a level differ by one leaf at most. Where parts are fewer than 2^depth, borders coincide.

    >>> [borders(5, depth).tolist() for depth in (1, 2, 3)]
    [[0, 2, 5], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5]]
    """
    if parts(leaves, depth) == leaves:
        return np.arange(leaves + 1)
    return (np.arange((1 << depth) + 1) * leaves) >> depth


def families(leaves: int) -> tuple[Level, ...]:
    """Give the tree of all parts, level by level below the root; nodes are numbered in that order, the root is 0.

    A part of two leaves or more has two children; a single leaf above the last level has itself.

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
