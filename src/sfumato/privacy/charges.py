"""What the records of each place have paid so far.

A round that asks some ends of a tree charges the records on those ends and nobody else (parallel composition); rounds
that meet the same record add up (sequential composition). So what a record has paid is the sum along its path. Which
rounds are asked, where and at what price depends on earlier answers only, hence between neighbouring tables the
probability of a sequence of answers changes by at most exp(what the path of their one different record has paid): the
most that any record has paid is what the publication has cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Integers
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import GRAIN
from sfumato.privacy.tally import Tally


@dataclass(frozen=True, eq=False)
class Charges:
    """What everyone has paid and, once a tree was asked about, how many grains more each of its ends has paid."""

    common: Fraction = Fraction(0)
    """what everyone has paid"""
    tree: Tree | None = None
    grains: Integers | None = None
    """by node of the tree; those of inner nodes do not matter"""

    @property
    def most(self) -> Fraction:
        """The most that any record has paid."""
        if self.tree is None or self.grains is None:
            return self.common
        return self.common + int(self.grains[self.tree.ends].max()) * GRAIN

    def after_everyone(self, spend: Fraction) -> Charges:
        """The charges after a round that asks everyone."""
        return Charges(self.common + spend, self.tree, self.grains)

    def after_places(self, tally: Tally, places: Integers, spends: Integers) -> Charges:
        """The charges after a round in which some places of a tree pay grains: `spends[i]` in `places[i]`."""
        known = self.grown_to(tally)
        assert known.grains is not None
        assert tally.ends_asked is not None
        grains = known.grains.copy()
        grains[tally.ends_asked[places]] += spends
        return Charges(known.common, known.tree, grains)

    def rest(self, tally: Tally, epsilon: Fraction) -> Integers:
        """How many grains of epsilon the places of a tree have left."""
        known = self.grown_to(tally)
        assert known.grains is not None
        assert tally.ends_asked is not None
        return np.asarray((epsilon - known.common) // GRAIN - known.grains[tally.ends_asked])

    def grown_to(self, tally: Tally) -> Charges:
        """The charges on the tally's tree: new nodes have paid what their parents had.

        If it does not refine the known tree, everyone is taken to have paid the most.
        """
        tree = tally.partition
        assert isinstance(tree, Tree)
        if self.tree is tree:
            return self
        if self.tree is None or self.grains is None or not tree.refines(self.tree.stage):
            return Charges(self.most, tree, np.zeros(len(tree), np.int64))
        grains = self.grains
        for stage in reversed(tree.stages_since(self.tree.stage)):
            grains = np.concatenate((grains, grains[tree.parents[len(grains) : stage.nodes]]))
        return Charges(self.common, tree, grains)
