"""Sharing out a region's specializations among its children, in proportion to noisy sizes (DiffMulti, equation 10).

Growing a tree of regions level by level: one pass over the data and a fixed number of debits for each level.

The ways to grow have in common the nodes of the newest level, their children, and what is known of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Tally
from sfumato.schema.schema import Schema


def share_out(shares: Integers, families: Integers, sizes: Integers, lots: Integers) -> Integers:
    """Give every child its part of what its family shares; none are lost.

    Child i belongs to family `families[i]` (in increasing order), which shares `shares[family]` specializations in
    proportion to the children's noisy `sizes`, negative ones counting as 0; if all are 0, evenly. Parts are rounded
    down, and what that leaves goes by lot to children whose part was rounded.

    >>> share_out(np.array([20]), np.array([0, 0]), np.array([8, 2]), np.array([0, 1])).tolist()
    [16, 4]
    """
    weights = np.maximum(sizes, 0)
    totals = np.bincount(families, weights, len(shares)).astype(np.int64)
    weights = np.where(totals[families] > 0, weights, 1)
    totals = np.maximum(np.where(totals > 0, totals, np.bincount(families, minlength=len(shares))), 1)
    parts, rests = np.divmod(shares[families] * weights, totals[families])
    left = shares - np.bincount(families, parts, len(shares)).astype(np.int64)
    order = np.lexsort((lots, rests == 0, families))
    rank = np.empty(len(families), np.int64)
    rank[order] = np.arange(len(families)) - np.searchsorted(families, families[order])
    return np.asarray(parts + ((rank < left[families]) & (rests > 0)))


@dataclass(frozen=True, eq=False)
class Level:
    """The newest nodes of a tree: the places of one tally. Place i may have `shares[i]` specializations, itself and
    below.
    """

    tree: Tree
    """the tree so far"""
    nodes: Integers
    tally: Tally
    shares: Integers

    @classmethod
    def first(cls, schema: Schema, specializations: int) -> Level:
        """Begin with one region that holds everything."""
        tree, every = Tree.whole(schema.shape), tuple(range(len(schema.shape)))
        return cls(tree, tree.ends, Tally(tree, len(schema.classes), every, tree.ends), np.array([specializations]))

    @cached_property
    def boxes(self) -> NDArray[np.int32]:
        """The ranges of the places."""
        return self.tree.boxes_of(self.nodes)

    def refined(self, chosen: Candidates) -> tuple[Level, Integers]:
        """Specialize places as chosen: the level of the children, without shares yet, and where each came from."""
        tree = self.tree.refine(self.nodes[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
        children = np.arange(len(self.tree), len(tree))
        tally = Tally(tree, self.tally.classes, self.tally.attributes, children)
        finer = Level(tree, children, tally, np.zeros(len(children), np.int64))
        return finer, np.repeat(chosen.places, chosen.children)

    def shared(self, chosen: Candidates, sizes: Integers, lots: Integers) -> Integers:
        """Share out what the chosen places have left among their children, in proportion to sizes."""
        families = np.repeat(np.arange(len(chosen)), chosen.children)
        return share_out(self.shares[chosen.places] - 1, families, sizes, lots)


def describe_level(number: int, chosen: Candidates, names: Sequence[str]) -> str:
    """Say in a line what a level did.

    >>> describe_level(1, Candidates.one(0, 1, (0, 22, 47)), ["job", "age"])
    'level 1: 1 specialization (age 1)'
    """
    by_name = Counter(names[attribute] for attribute in chosen.attributes.tolist())
    along = ", ".join(f"{name} {count:,}" for name, count in by_name.most_common())
    return f"level {number}: {len(chosen):,} specialization{'s' if len(chosen) > 1 else ''} ({along})"
