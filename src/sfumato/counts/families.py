"""What need not be counted: of the children of a place whose counts are known, the largest is the parent less the rest.

On a tree that grows level by level this spares more than half of the rows at every level. The counts are the same
integers; it stands apart because it is arithmetic on answers, whoever counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.counts.tally import Breakdown, Integers, Tally
from sfumato.tree import NONE, Tree


@dataclass(frozen=True, eq=False)
class Families:
    """The places of a tally: those to be counted, and those that follow from a parent and the counted siblings."""

    places: int
    counted: Integers
    derived: Integers
    """one child of each family"""
    parents: Integers
    """for each of these, the place of its parent in the earlier tally"""
    runs: Integers
    """where the siblings of one parent begin among the counted places"""
    families: Integers
    """which of these runs belong to the derived places, in their order"""

    @classmethod
    def none(cls, places: int) -> Families:
        """Nothing is known: everything must be counted."""
        nothing = np.empty(0, np.int64)
        return cls(places, np.arange(places), nothing, nothing, nothing, nothing)

    @classmethod
    def of(cls, tally: Tally, sizes: Integers, earlier: Tally) -> Families:
        """Find the children of places counted earlier, whose whole families are asked for; leave out the largest, by
        sizes that are theirs or are guessed: the counts are the same.

        Children of one parent have numbers side by side, so they are neighbours among the places.
        """
        tree, before = tally.partition, earlier.partition
        assert isinstance(tree, Tree)
        if not (isinstance(before, Tree) and tree.refines(before.stage) and tally.domain == earlier.domain):
            return cls.none(tally.places)
        parents = tree.parents[tally.leaves_asked]
        starts = np.flatnonzero(np.diff(parents, prepend=NONE - 1))
        asked, heads = np.diff(starts, append=len(parents)), parents[starts]
        known = np.full(len(tree) + 1, NONE)
        known[: len(before)] = earlier.place_of_node
        children = np.bincount(tree.parents[1:], minlength=len(tree) + 1)
        whole = (known[heads] != NONE) & (asked == children[heads]) & (heads != NONE)
        family = np.repeat(np.arange(len(starts)), asked)
        order = np.lexsort((-sizes, family))
        derived = order[starts[whole]] if len(starts) else np.empty(0, np.int64)
        counted = np.setdiff1d(np.arange(tally.places), derived, assume_unique=True)
        runs = np.flatnonzero(np.diff(family[counted], prepend=NONE))
        families = np.flatnonzero(whole[family[counted[runs]]]) if len(runs) else np.empty(0, np.int64)
        return cls(tally.places, counted, derived, known[heads[whole]], runs, families)

    def of_parents(self, earlier: Breakdown) -> Integers:
        """Give what was counted before in the parents of the derived places: parents x leaves x classes."""
        cells = earlier.take(self.parents)
        return cells.dense(len(self.parents)) if len(self.parents) else cells.counts[:, None]

    def completed(self, counts: Integers, parents: Integers | None) -> Integers:
        """Give the counts of all places from those of the counted, and from those that the parents had before."""
        full = np.empty((self.places, *counts.shape[1:]), np.int64)
        full[self.counted] = counts
        if len(self.derived):
            assert parents is not None
            siblings = np.add.reduceat(counts, self.runs, axis=0)[self.families]
            full[self.derived] = parents - siblings
        return full
