"""The fewest nodes of a tree that make up a set of its regions (CDiffGen, algorithm 1, as it should read).

A node whose regions all lie in the set is taken, one with none is dropped, and of any other the children are looked at.
No smaller cover exists: a node outside the set's subtrees would bring in a region that is not asked for, so each region
needs a node of its own maximal subtree inside the set, and these are what is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Indices
from sfumato.tree import ROOT, Tree


def minimum_cover(tree: Tree, regions: NDArray[np.bool_]) -> Indices:
    """Give the fewest nodes whose regions are exactly these: one flag for each region, in their order.

    >>> halves = Tree.whole((4,)).refine([0], [0], [0, 2, 4], [0, 3])
    >>> letters = halves.refine([1, 2], [0, 0], [0, 1, 2, 2, 3, 4], [0, 3, 6])
    >>> minimum_cover(letters, np.array([False, True, True, True])).tolist()
    [2, 4]
    """
    missing = np.zeros(len(tree), np.int64)
    missing[tree.leaves] = ~regions
    for depth in range(int(tree.depths.max()), 0, -1):
        nodes = np.flatnonzero(tree.depths == depth)
        np.add.at(missing, tree.parents[nodes], missing[nodes])
    whole = missing == 0
    return np.flatnonzero(whole & ~np.where(np.arange(len(tree)) == ROOT, False, whole[tree.parents]))
