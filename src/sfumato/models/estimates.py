"""The share of each class in every node of a tree, as far as the noise lets it differ from the parent's.

A small group's counts are mostly noise, a large one's are not, and its parent's shares are the best guess before they
are looked at. Post-processing of released numbers.

The fewest nodes of a tree that make up a set of its regions (CDiffGen, algorithm 1, as it should read).

A node whose regions all lie in the set is taken, one with none is dropped, and of any other the children are looked at.
No smaller cover exists: a node outside the set's subtrees would bring in a region that is not asked for, so each region
needs a node of its own maximal subtree inside the set, and these are what is taken.

The best estimate of every region's counts from everything that was bought, and how far noise may have moved it.

A grid's regions were measured once and apart. Over a tree counts were bought on the way, too, and bring what they know
to the leaves; then the leaves' errors hang together, and only here is it known how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import ROOT, Tree
from sfumato.models.consistency import Consistency, Consistent
from sfumato.models.projection import Nonnegative, nonnegative, project, refuse_unknown
from sfumato.privacy.measurements import NodeCounts, Noisy

ROUNDS = 20
"""So many rounds settle how much the shares of a level vary; it needs few."""
FIRST = 0.05
"""The guess to begin with."""
LEAST_SHARE = 1e-9
"""No class is ruled out by noise."""


def class_shares(tree: Consistent, parents: NDArray[np.integer]) -> Floats:
    """Give every node's shares of the classes, from the root down: nodes x classes.

    Let a node have m people, estimates x_k of classes with variance v each, and a parent with shares q. What it has
    more of class k than its parent's shares say is e_k = x_k - q_k (x_1 + ... + x_K), whose noise has variance
    w_k = v ((1 - q_k)^2 + (K - 1) q_k^2). Suppose that on its level true shares differ from the parents' with
    variance t. Then e_k has variance t m^2 + w_k, of which the first is real: the best guess of the share is
    q_k + (e_k / m) t m^2 / (t m^2 + w_k). (Normal shrinkage; t is the same for a level, from all its nodes.)
    """
    totals = tree.values.sum(axis=1)
    noise = tree.variances()
    shares = np.empty_like(tree.values)
    shares[0] = _normal(tree.values[0] / max(totals[0], 1.0))
    for level in tree.passes.levels:
        expected, own = shares[parents[level.nodes]], noise[level.nodes, None]
        classes = expected.shape[1]
        people = np.maximum(totals[level.nodes, None], np.sqrt(classes * own))
        more = tree.values[level.nodes] - expected * totals[level.nodes, None]
        unsure = own * ((1 - expected) ** 2 + (classes - 1) * expected**2) / people**2
        real = _variance(more / people, unsure)
        shares[level.nodes] = _normal(expected + more / people * real / (real + unsure))
    return shares


def _variance(differences: Floats, noise: Floats) -> float:
    """Estimate how much differences vary beyond their noise: the mean of d^2 - w, each weighted by its own precision.

    The variance of d^2 is proportional to (t + w)^2, which needs the t that is sought: a few rounds settle it.
    """
    found = FIRST
    for _ in range(ROUNDS):
        weights = 1 / (found + noise) ** 2
        found = max(float(((differences**2 - noise) * weights).sum() / weights.sum()), 0.0)
        if found == 0:
            break
    return found


def _normal(shares: Floats) -> Floats:
    """Make shares of what may be negative."""
    positive = np.maximum(shares, LEAST_SHARE)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))


def minimum_cover(tree: Tree, regions: NDArray[np.bool_]) -> Integers:
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


DECIMALS = 3
"""As many as estimates are shown with."""


class Estimates(ABC):
    """Estimates of the counts of regions, by class: least squares, given the noise of each. Classes err alike and
    apart.
    """

    @property
    @abstractmethod
    def values(self) -> Floats:
        """The estimates: regions x classes."""

    @property
    @abstractmethod
    def variances(self) -> Floats:
        """The variance of each region's estimate of one class."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The estimated number of people, which whole people made from the estimates add up to."""

    @property
    @abstractmethod
    def shown(self) -> NDArray[Any]:
        """The estimates as records show them."""

    @abstractmethod
    def people(self, how: Nonnegative) -> Integers:
        """Give non-negative whole numbers of people: regions x classes."""

    @abstractmethod
    def covering(self, regions: NDArray[np.bool_]) -> tuple[Integers, Floats]:
        """Give the fewest boxes that make up some regions, and the estimates of each by class."""

    @abstractmethod
    def majorities(self) -> Integers:
        """Give each region's most frequent class."""


@dataclass(frozen=True, eq=False)
class GridEstimates(Estimates):
    """Counts of regions that were measured once, each with its own noise: they are their own best estimates."""

    grid: Grid
    counts: Noisy

    @cached_property
    def values(self) -> Floats:
        """The counts."""
        return self.counts.counts.astype(np.float64)

    @cached_property
    def variances(self) -> Floats:
        """The variances of their noise."""
        return self.counts.variances

    @property
    def total(self) -> int:
        """The noisy number of people."""
        return int(self.counts.counts.sum())

    @property
    def shown(self) -> NDArray[Any]:
        """The noisy counts as they were measured."""
        return self.counts.counts

    def people(self, how: Nonnegative) -> Integers:
        """Project all counts at once, or clamp them."""
        return nonnegative(self.counts.counts, how)

    def covering(self, regions: NDArray[np.bool_]) -> tuple[Integers, Floats]:
        """Give the regions themselves, which have nothing above them."""
        return self.grid.boxes_of(np.flatnonzero(regions)), self.values[regions]

    def majorities(self) -> Integers:
        """Give the class of the largest count, the first of equals."""
        return np.asarray(np.argmax(self.counts.counts, axis=1))


@dataclass(frozen=True, eq=False)
class TreeEstimates(Estimates):
    """Leaves of a tree whose nodes were made to agree: a leaf's estimate knows what its ancestors' counts say."""

    tree: Tree
    nodes: Consistent

    @cached_property
    def values(self) -> Floats:
        """The leaves' part of the consistent counts."""
        return np.asarray(self.nodes.values[self.tree.leaves])

    @cached_property
    def variances(self) -> Floats:
        """The variance of each leaf's estimate of one class."""
        return np.asarray(self.nodes.variances()[self.tree.leaves])

    @property
    def total(self) -> int:
        """The root's people."""
        return round(float(self.nodes.values[0].sum()))

    @property
    def shown(self) -> NDArray[Any]:
        """The estimates, rounded."""
        return np.asarray(np.round(self.values, DECIMALS))

    def people(self, how: Nonnegative) -> Integers:
        """Project from the root down, so that subtrees keep their people too, or clamp the rounded estimates."""
        refuse_unknown(how)
        if how == "clamp":
            return np.asarray(np.maximum(np.rint(self.values), 0), np.int64)
        return np.asarray(project(self.tree.parents, self.nodes.values, self.nodes.passes.shares)[self.tree.leaves])

    def covering(self, regions: NDArray[np.bool_]) -> tuple[Integers, Floats]:
        """Give the minimum cover: consistent counts of nodes are the sums of their leaves'."""
        nodes = minimum_cover(self.tree, regions)
        return self.tree.boxes_of(nodes).astype(np.int64), self.nodes.values[nodes]

    def majorities(self) -> Integers:
        """Give the class of the largest share, where a leaf's counts differ from its parent's beyond the noise."""
        return np.asarray(np.argmax(class_shares(self.nodes, self.tree.parents)[self.tree.leaves], axis=1))


@dataclass(frozen=True, eq=False)
class ExactEstimates(TreeEstimates):
    """Leaves of a tree that were counted exactly: their counts are the truth, and nothing errs."""

    counts: Integers

    @classmethod
    def of_leaves(cls, tree: Tree, counts: Noisy) -> ExactEstimates:
        """Sum the leaves up to the root."""
        everywhere = np.zeros((len(tree), counts.counts.shape[1]))
        everywhere[tree.leaves] = counts.counts
        measured = np.zeros(len(tree))
        measured[tree.leaves] = 1.0
        agreed = Consistent.of(tree.parents, everywhere, measured)
        certain = replace(agreed.passes, upward=np.zeros(len(tree)))
        return cls(tree, replace(agreed, passes=certain), counts.counts)

    @property
    def total(self) -> int:
        """The number of people."""
        return int(self.counts.sum())

    @property
    def shown(self) -> Integers:
        """The counts."""
        return self.counts

    def people(self, how: Nonnegative) -> Integers:
        """Give the counts."""
        refuse_unknown(how)
        return self.counts

    def majorities(self) -> Integers:
        """Give the most frequent class, the first of equals; a leaf with no people follows its parent."""
        majorities, empty = np.argmax(self.nodes.values, axis=1), self.nodes.values.sum(axis=1) == 0
        for level in self.nodes.passes.levels:
            followers = level.nodes[empty[level.nodes]]
            majorities[followers] = majorities[self.tree.parents[followers]]
        return np.asarray(majorities[self.tree.leaves])


def reconciled(tree: Tree, counts: Noisy, earlier: Sequence[NodeCounts], consistency: Consistency) -> Consistent:
    """Make all counts of a tree agree, those of one node first combined by inverse variance.

    With mean m of precision P so far, a count c of precision p makes it m + (c - m) p / (P + p): a node that was
    measured once keeps its count exactly.
    """
    mean, precision = np.zeros((len(tree), counts.counts.shape[1])), np.zeros(len(tree))
    for bought in (NodeCounts(tree.leaves, counts), *earlier):
        if len(np.unique(bought.nodes)) < len(bought.nodes):
            raise ValueError("a round must count a node once")
        new = 1 / bought.noisy.variances
        precision[bought.nodes] += new
        say = new / precision[bought.nodes]
        mean[bought.nodes] += say[:, None] * (bought.noisy.counts - mean[bought.nodes])
    reconcile = Consistent.of if consistency == "least squares" else Consistent.as_published
    return reconcile(tree.parents, mean, precision)
