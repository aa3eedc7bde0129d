"""A tree cut into tiles: small trees whose ends are regions or the tops of further tiles.

Who walks a tree with many questions at once takes it tile by tile: large enough that each step does some work, small
enough that what it works on stays near the processor, and a question that is settled at the top of a tile need not
enter it.

Many weighted sums over the regions of a tree at once, with the exact variance of each.

A condition goes down the tree only where it divides people: where it covers all regions below a node alike, the node's
own count says all. Going up again, each subtree hands its parent what the parent's count has to know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Floats, Integers
from sfumato.geometry.halving import Level, levels_of
from sfumato.geometry.tree import ROOT, Tree
from sfumato.models.consistency import Consistent, LeastSquares
from sfumato.models.estimates import TreeEstimates
from sfumato.models.model import PARTLY, UNTOUCHED, WHOLE, Cause, Cover, Share, States, Sums
from sfumato.models.regions import Sides, sides_of_nodes


@dataclass(frozen=True, eq=False)
class Side:
    """The ranges of one attribute that the ends of a tile have, and which of them each has."""

    ranges: Integers
    """their numbers among those of all nodes"""
    number: Integers


@dataclass(frozen=True, eq=False)
class Tile:
    """A top and what is below it down to the ends, numbered level by level from 0."""

    nodes: Integers
    """their numbers in the tree"""
    levels: tuple[Level, ...]
    ends: Integers
    """places among the nodes"""
    sides: Mapping[int, Side]
    """what the ends have of each attribute along which something is split here or further down"""
    further: Mapping[int, Tile]
    """the tiles that begin at some of the ends"""


def tiles_of(tree: Tree, sides: Mapping[int, Sides], size: int) -> Tile | None:
    """Cut a tree where subtrees come to have at most 1, s, s^2, ... leaves, s being the size; give the tile at the top.

    Tiles are made from the bottom up, so that those further down are there when one needs them. A tree without a split
    has none.
    """
    levels = levels_of(tree.parents.astype(np.int64))
    tops = _tops(tree, levels, size)
    places, made = np.zeros(len(tree), np.int64), dict[int, Tile]()
    homes = tops[tree.parents[1:]]
    order = 1 + np.lexsort((tree.parents[1:], tree.depths[1:], -homes))
    groups = np.split(order, np.flatnonzero(np.diff(homes[order - 1])) + 1) if len(order) else []
    for members in groups:
        places[members] = np.arange(1, len(members) + 1)
    for members in groups:
        parents = tree.parents[members]
        top = int(tops[parents[0]])
        made[top] = _tile(tree, sides, top, members, np.where(parents == top, 0, places[parents]), made)
    return made.get(ROOT)


def _tops(tree: Tree, levels: tuple[Level, ...], size: int) -> Integers:
    """Give the top of the tile in which each node is split: the last on its path with fewer powers than its parent."""
    below = (tree.split_by == NONE).astype(np.float64)
    for level in reversed(levels):
        below[level.heads] = level.sums(below[level.nodes])
    powers = np.ceil(np.round(np.log(below) / np.log(size), 9))
    tops = np.arange(len(tree))
    for level in levels:
        parents = tree.parents[level.nodes]
        within = powers[level.nodes] == powers[parents]
        tops[level.nodes[within]] = tops[parents[within]]
    return tops


def _tile(
    tree: Tree, sides: Mapping[int, Sides], top: int, members: Integers, parents: Integers, made: Mapping[int, Tile]
) -> Tile:
    """Put a tile together; parents are places within it."""
    nodes, above = np.append(top, members), np.append(-1, parents)
    depths = tree.depths[members]
    steps = np.searchsorted(depths, np.arange(depths[0] + 1, depths[-1] + 1))
    levels = tuple(Level.of(places, above) for places in np.split(np.arange(1, len(nodes)), steps))
    inner = np.zeros(len(nodes), np.bool_)
    inner[parents] = True
    ends = np.flatnonzero(~inner)
    further = {end: made[node] for end, node in enumerate(nodes[ends].tolist()) if node in made}
    attributes = {*tree.attributes[members].tolist(), *(at for tile in further.values() for at in tile.sides)}
    held = {at: np.unique(sides[at].number(nodes[ends]), return_inverse=True) for at in sorted(attributes)}
    return Tile(nodes, levels, ends, {at: Side(*one) for at, one in held.items()}, further)


NEAR = 2**17
"""So many weights of ends stay near the processor."""
MOST_HELD = 2**22
"""So many are held at most."""
SMALLEST_TILE = 32
"""Below so many ends a step does too little work."""


@dataclass(frozen=True, eq=False)
class TreeAnswers:
    """A tree that is asked."""

    cause: ClassVar[Cause] = "noise"

    estimates: TreeEstimates
    _tiles: dict[int, Tile | None] = field(default_factory=dict)

    @cached_property
    def _sides(self) -> Mapping[int, Sides]:
        tree = self.estimates.tree
        return {attribute: sides_of_nodes(tree, attribute) for attribute in range(len(tree.shape))}

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges that nodes have of each attribute."""
        return {attribute: sides.ranges for attribute, sides in self._sides.items()}

    def sums(self, covers: Mapping[int, Cover], share: Share) -> Sums:
        """Sum over the regions; the share is what conditions have of attributes that are not split."""
        conditions = len(share.weights)
        walk = _Walk(self.estimates.nodes, covers, Sums.none(conditions, self.estimates.values.shape[1]))
        walk.begin(self._cut_for(conditions), share)
        return walk.sums

    def _cut_for(self, conditions: int) -> Tile | None:
        """Cut the tree into tiles that so many conditions fill: few for a single condition."""
        size = max(SMALLEST_TILE, 2 ** int(np.log2(NEAR / conditions)))
        if size not in self._tiles:
            self._tiles[size] = tiles_of(self.estimates.tree, self._sides, size)
        return self._tiles[size]


@dataclass(frozen=True, eq=False)
class _Walk:
    """A way down and up the tree.

    A condition's sum over the regions below a node is a x + D: the node's final x times the weight a that gathers at
    it, and a sum D of what was measured below. With the words of `Passes`, children have x_c = u_c + s_c (x - U), so
    a = m, the sum of s_c a_c, and D is the sum of (a_c - m) u_c + D_c. Subtrees of siblings share no noise, so with
    v = var(u) and b = cov(D, u), the variance of D is the sum of (a_c - m)^2 v_c + 2 (a_c - m) b_c + var(D_c); and
    since u holds U l times, b = l times the sum of (a_c - m) v_c + b_c. At the root, all of it has the variance
    a^2 v + 2 a b + var(D). Where all regions below a node weigh the same, D is 0. With least squares v_c = s_c B, so
    that the (a_c - m) v_c sum to 0, and so is every b.
    """

    nodes: Consistent
    covers: Mapping[int, Cover]
    sums: Sums

    @cached_property
    def _tangled(self) -> bool:
        """Whether a b may differ from 0."""
        return not isinstance(self.nodes.passes, LeastSquares)

    def begin(self, top: Tile | None, share: Share) -> None:
        """Walk from the root, which is the only region if there is no tile."""
        everyone = np.arange(len(share.weights))
        if top is None:
            self._take(everyone, self.nodes.values, share.weights[None], share.states[None])
            gathered, tangle = share.weights, np.zeros(len(everyone))
        else:
            gathered, tangle = self._below(top, everyone, share)
        self.sums.variances[:, 0] += gathered**2 * self.nodes.passes.upward[0] + 2 * gathered * tangle

    def _below(self, tile: Tile, asking: Integers, share: Share) -> tuple[Floats, Floats]:
        """Sum over a tile, and give each condition's a and b at its top; too many conditions go one after the other."""
        most = max(1, (MOST_HELD if tile.further else NEAR) // len(tile.ends))
        if len(asking) <= most:
            return self._through(tile, asking, share)
        pieces = np.split(np.arange(len(asking)), np.arange(most, len(asking), most))
        found = [self._through(tile, asking[piece], share.among(piece)) for piece in pieces]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def _through(self, tile: Tile, asking: Integers, share: Share) -> tuple[Floats, Floats]:
        """Weigh the ends; where regions below one weigh differently, let those who divide them look further."""
        covered = {
            at: _Held(side.number, *self.covers[at].over(side.ranges, asking))
            for at, side in tile.sides.items()
            if at in self.covers
        }
        weights = np.tile(share.weights, (len(tile.ends), 1))
        states = np.tile(share.states, (len(tile.ends), 1))
        for held in covered.values():
            weights *= held.shares[held.number]
            states |= held.states[held.number]
        deeper = []
        for end, further in tile.further.items():
            below = [held.states_at(end) for at, held in covered.items() if at in further.sides]
            entering = np.flatnonzero(_partly(below, len(asking)) & (states[end] < UNTOUCHED))
            if len(entering):
                settled = share.among(entering)
                for held in (held for at, held in covered.items() if at not in further.sides):
                    settled = settled.of(held.shares_at(end)[entering], held.states_at(end)[entering])
                deeper.append((end, entering, *self._below(further, asking[entering], settled)))
                weights[end, entering], states[end, entering] = 0.0, UNTOUCHED
        self._take(asking, self.nodes.values[tile.nodes[tile.ends]], weights, states)
        tangles = np.zeros(weights.shape if self._tangled else (len(tile.ends), 0))
        for end, entering, gathered, tangle in deeper:
            weights[end, entering] = gathered
            if self._tangled:
                tangles[end, entering] = tangle
        return self._gather(tile, asking, weights, tangles)

    def _take(self, asking: Integers, counts: Floats, weights: Floats, states: States) -> None:
        """Add up the ends below which everything weighs the same."""
        self.sums.values[asking] += weights.T @ counts
        self.sums.resolved[asking] += (states == WHOLE).astype(np.float64).T @ counts
        self.sums.aligned[asking] &= ~(states == PARTLY).any(axis=0)

    def _gather(self, tile: Tile, asking: Integers, weights: Floats, tangles: Floats) -> tuple[Floats, Floats]:
        """Go up a tile, family by family."""
        passes = self.nodes.passes
        shares, upward, left = (one[tile.nodes, None] for one in (passes.shares, passes.upward, passes.left))
        gathered, tangle = (np.empty((len(tile.nodes), one.shape[1])) for one in (weights, tangles))
        gathered[tile.ends], tangle[tile.ends] = weights, tangles
        spread = np.zeros(len(asking))
        for level in reversed(tile.levels):
            rows = slice(level.nodes[0], level.nodes[-1] + 1)
            apart = gathered[rows]
            gathered[level.heads] = mean = level.sums(shares[rows] * apart)
            apart -= level.of_family(mean)
            if self._tangled:
                spread += 2 * np.einsum("nq,nq->q", apart, tangle[rows])
                tangle[level.heads] = left[level.heads] * level.sums(upward[rows] * apart + tangle[rows])
            apart *= apart
            spread += upward[rows, 0] @ apart
        self.sums.variances[asking, 0] += spread
        return gathered[0], tangle[0] if self._tangled else np.zeros(len(asking))


@dataclass(frozen=True, eq=False)
class _Held:
    """What conditions cover of one attribute's ranges in a tile, and which range each end has."""

    number: Integers
    shares: Floats
    states: States

    def shares_at(self, end: int) -> Floats:
        return np.asarray(self.shares[self.number[end]])

    def states_at(self, end: int) -> States:
        return np.asarray(self.states[self.number[end]])


def _partly(states: Iterable[States], conditions: int) -> NDArray[np.bool_]:
    """Tell which conditions cover only a part along any attribute."""
    partly = np.zeros(conditions, np.bool_)
    for state in states:
        partly |= state == PARTLY
    return partly
