"""Regions that are the ends of a tree, whose counts on the way inform them.

Counts bought for nodes bring what they know to the ends, by least squares or with the paper's weights; then the ends'
errors hang together, and only here is it known how. A query goes down the tree only where it divides people: where it
covers all regions below a node alike, the node's own count says all. Going up again, each subtree hands its parent what
the parent's count has to know of it. Trees are walked tile by tile: small trees whose ends are regions or the tops of
further tiles, large enough that each step does some work, small enough to stay near the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Booleans, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.halving import Level, levels_of
from sfumato.geometry.regions import Sides
from sfumato.geometry.tree import ROOT, Tree
from sfumato.models.consistency import Consistent, LeastSquares, project
from sfumato.models.fitting import LEAST_SHARE, Margins, shrunk
from sfumato.models.model import UNMEASURED, Branch, Description, Listing, Nonnegative, refuse_unknown
from sfumato.models.regions import (
    CLASS,
    DECIMALS,
    PARTLY,
    UNTOUCHED,
    WHOLE,
    Clauses,
    Overlap,
    RegionModel,
    Share,
    States,
    Sums,
)
from sfumato.privacy.measurements import Draft, Noisy, Question
from sfumato.schema.schema import Schema

NEAR = 2**17
"""So many weights of ends stay near the processor."""
MOST_HELD = 2**22
"""So many are held at most."""
SMALLEST_TILE = 32
"""Below so many ends a step does too little work."""
SHALLOW = 4
"""Half of the nodes that are asked for by themselves have so many cuts at most on the way."""
MOST_LEVELS = 7
THINNEST = 1 / 150
"""Nodes that are narrower than this part of the picture are not drawn, nor is what lies below them."""
MOST_OUTLINED = 60
OUTLINED_LEVELS = 5
INDENT = "\u2003"


class TreeModel(RegionModel):
    """Ends of a tree whose nodes were made to agree by least squares."""

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse a tree of which an end was not measured."""
        super().__init__(schema, draft)
        tree = draft.structure
        measured = [np.zeros(0, np.int64), *(one.question.nodes for one in self.own if one.question.nodes is not None)]
        if not isinstance(tree, Tree) or tree.shape != schema.shape:
            raise ReleaseError(*UNMEASURED)
        if not np.isin(tree.ends, np.concatenate(measured)).all():
            raise ReleaseError(*UNMEASURED)
        self.tree = tree
        self._tiles: dict[int, Tile | None] = {}

    @staticmethod
    def reads(question: Question) -> bool:
        """Read nodes of a tree, and marginals."""
        return question.nodes is not None or question.is_marginal()

    @property
    def counts(self) -> Noisy:
        """The noisy counts of the regions, as they were measured last."""
        return self.own[-1].noisy

    @cached_property
    def nodes(self) -> Consistent:
        """All counts of the tree, made to agree."""
        return self.reconcile(self.tree.parents, *self._means())

    reconcile: Callable[..., Consistent] = staticmethod(Consistent.of)

    def _means(self) -> tuple[Floats, Floats]:
        """Combine the counts of one node by inverse variance: the means of all nodes, and their precisions.

        With mean m of precision P so far, a count c of precision p makes it m + (c - m) p / (P + p): a node that was
        measured once keeps its count exactly.
        """
        mean, precision = np.zeros((len(self.tree), len(self.schema.classes))), np.zeros(len(self.tree))
        for one in reversed(self.own):
            nodes, new = one.question.nodes, 1 / one.noisy.variances
            assert nodes is not None
            precision[nodes] += new
            say = new / precision[nodes]
            mean[nodes] += say[:, None] * (one.counts - mean[nodes])
        return mean, precision

    @cached_property
    def measured(self) -> Floats:
        """The ends' part of the consistent counts."""
        return np.asarray(self.nodes.values[self.tree.ends])

    @cached_property
    def _divided(self) -> Divided:
        margins = self.all_margins
        assert margins is not None
        return divided(self.tree, self.nodes, margins)

    def interacting(self, margins: Margins) -> Floats:  # noqa: ARG002
        """Divide people from the root down, by margins as far as the counts do not say otherwise."""
        return np.asarray(self._divided.people[self.tree.ends, None] * self._divided.classes[self.tree.ends])

    @cached_property
    def estimated(self) -> Consistent:
        """All nodes with their best estimates, which are the sums of their ends'."""
        if self.fitted is None:
            return self.nodes
        values = np.zeros_like(self.nodes.values)
        values[self.tree.ends] = self.fitted.masses
        for level in reversed(self.nodes.passes.levels):
            values[level.heads] = level.sums(values[level.nodes])
        return replace(self.nodes, values=values)

    def region_noise(self, clauses: Clauses) -> Floats:
        """Add up what is left of the noise of every division, of people and of classes.

        A node's departure from its share of its parent moves an answer by how much more of the node the query covers
        than of the parent; one of its classes' shares by how much of it is covered.
        """
        people, nodes = self.estimated.values.sum(axis=1), np.zeros((len(self.tree), clauses.queries))
        covered = np.ones((self.tree.regions, clauses.queries))
        for at, one in clauses.by_attribute.items():
            if at != CLASS:
                covered *= one.shares[self.sides[at].number(np.arange(self.tree.regions))]
        nodes[self.tree.ends] = covered * people[self.tree.ends, None]
        for level in reversed(self.nodes.passes.levels):
            nodes[level.heads] = level.sums(nodes[level.nodes])
        nodes /= np.maximum(people, 1e-9)[:, None]
        apart = nodes[1:] - nodes[self.tree.parents[1:]]
        noise = self._divided.people_errors[1:] @ apart**2
        if CLASS in clauses.by_attribute:
            shares = clauses.by_attribute[CLASS].shares
            beyond = shares - self.estimated.values[ROOT] @ shares / max(people[ROOT], 1e-9)
            reached = (nodes * people[:, None]) ** 2
            noise = noise + np.einsum("nq,nk,kq->q", reached, self._divided.class_errors, beyond**2)
        return np.asarray(noise)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each end's estimate of one class."""
        return np.asarray(self.nodes.variances()[self.tree.ends])

    @property
    def total(self) -> int:
        """The root's people."""
        return round(float(self.estimated.values[ROOT].sum()))

    @property
    def shown(self) -> NDArray[Any]:
        """The estimates, rounded."""
        return np.asarray(np.round(self.values, DECIMALS))

    def people(self, how: Nonnegative) -> Integers:
        """Project from the root down, so that subtrees keep their people too, or clamp the rounded estimates."""
        refuse_unknown(how)
        if how == "clamp":
            return np.asarray(np.maximum(np.rint(self.values), 0), np.int64)
        return np.asarray(project(self.tree.parents, self.estimated.values, self.nodes.passes.shares)[self.tree.ends])

    def covering(self, regions: Booleans) -> tuple[Integers, Floats]:
        """Take the fewest nodes: consistent counts of nodes are the sums of their ends'."""
        nodes = fewest_nodes(self.tree, regions)
        return self.tree.boxes_of(nodes).astype(np.int64), self.estimated.values[nodes]

    def majorities(self) -> Integers:
        """Find the class of the largest share, where an end's counts differ from its parent's beyond the noise."""
        return np.asarray(np.argmax(class_shares(self.nodes, self.tree.parents)[self.tree.ends], axis=1))

    @cached_property
    def _node_sides(self) -> Mapping[int, Sides]:
        """All nodes seen from each attribute, those above the regions, too."""
        return {at: Sides.of_boxes(self.tree.boxes[:, at], leaves) for at, leaves in enumerate(self.tree.shape)}

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges that nodes have of each attribute."""
        return {attribute: sides.ranges for attribute, sides in self._node_sides.items()}

    def sums(self, overlaps: Mapping[int, Overlap], share: Share) -> Sums:
        """Walk down and up the tree."""
        queries = len(share.weights)
        walk = _Walk(self.estimated, overlaps, Sums.none(queries, self.values.shape[1]))
        walk.begin(self._cut_for(queries), share)
        return walk.sums

    def _cut_for(self, queries: int) -> Tile | None:
        """Cut the tree into tiles that so many queries fill: few for a single query."""
        size = max(SMALLEST_TILE, 2 ** int(np.log2(NEAR / queries)))
        if size not in self._tiles:
            self._tiles[size] = tiles_of(self.tree, self._node_sides, size)
        return self._tiles[size]

    def own_query(self, rng: np.random.Generator) -> Mapping[int, Integers] | None:
        """Draw a node, half of the times one near the root."""
        if not self.tree.split_attributes:
            return None
        shallow = np.flatnonzero(self.tree.depths <= SHALLOW)[1:]
        which = int(rng.choice(shallow)) if rng.random() < 0.5 else int(rng.integers(1, len(self.tree)))
        box = self.tree.boxes_of(np.array([which]))[0].tolist()
        return {at: np.arange(*box[at]) for at, leaves in enumerate(self.tree.shape) if box[at] != [0, leaves]}

    def describe(self) -> Description:
        """Tell the top of the tree, and regions by depth."""
        tree, branches = self.tree, tuple(self._branches())
        held = f", of which {self.groups:,} hold someone" if self.counts.is_exact else ""
        return Description(
            title="The tree of cuts",
            words=f"The table was cut {len(tree) - tree.regions:,} times, each region in its own way, into "
            f"{tree.regions:,} regions{held}. Widths are shares of people; what cannot be seen at this size is not "
            "drawn.",
            told_apart=tree.split_attributes,
            branches=branches,
            caption=f"The first {max(node.level for node in branches)} levels. Tinted nodes are cut further.",
            listings=(
                Listing("The same in words", ("node", "cut further by", "people"), tuple(self._outline()), (2,)),
                Listing(
                    "Regions by depth", ("cuts on the way", "regions", "people"), tuple(self._by_depth()), (0, 1, 2)
                ),
            ),
        )

    @cached_property
    def _people(self) -> Floats:
        return np.asarray(self.estimated.values.sum(axis=1))

    def _branch(self, node: int, level: int, begin: float, end: float) -> Branch:
        names, along = list(self.schema.predictors), int(self.tree.split_by[node])
        split_by = "" if along == NONE else names[along]
        if node == ROOT:
            return Branch(level, begin, end, "", "everyone", float(self._people[ROOT]), split_by)
        attribute, column = list(self.schema.predictors.items())[self.tree.attributes[node]]
        name = column.label(int(self.tree.lows[node]), int(self.tree.highs[node]))
        return Branch(level, begin, end, attribute, name, float(self._people[node]), split_by)

    def _branches(self) -> Iterator[Branch]:
        """Lay out the nodes that can be seen: children side by side inside their parent, as wide as their share."""
        places = {ROOT: (0.0, 1.0)}
        yield self._branch(ROOT, 0, 0.0, 1.0)
        for level in range(1, MOST_LEVELS):
            wide = [node for node, (begin, end) in places.items() if end - begin >= THINNEST]
            parents, places = places, {}
            for node in wide:
                children = self._children(node)
                shares = np.maximum(self._people[children], 0.0)
                even = np.full(len(children), 1 / max(len(children), 1))
                shares = shares / shares.sum() if shares.sum() > 0 else even
                begin, end = parents[node]
                borders = (begin + (end - begin) * np.concatenate([[0.0], np.cumsum(shares)])).tolist()
                for child, left, right in zip(children.tolist(), borders[:-1], borders[1:], strict=True):
                    if right - left >= THINNEST / 2:
                        places[child] = (left, right)
                        yield self._branch(child, level, left, right)

    def _children(self, node: int) -> Integers:
        order, parents = self._by_parent
        first, last = (int(np.searchsorted(parents, node, side)) for side in ("left", "right"))
        return np.asarray(order[first:last])

    @cached_property
    def _by_parent(self) -> tuple[Integers, Integers]:
        """All nodes below the root in the order of their parents, and these."""
        order = np.argsort(self.tree.parents[1:], kind="stable") + 1
        return order, self.tree.parents[order].astype(np.int64)

    def _outline(self) -> Iterator[tuple[str, ...]]:
        """Tell the top of the tree line by line, depth first."""
        waiting, told = [(ROOT, 0)], 0
        while waiting and told < MOST_OUTLINED:
            node, depth = waiting.pop(0)
            one = self._branch(node, depth, 0.0, 0.0)
            along = f"{one.attribute}: " if one.attribute else ""
            yield f"{INDENT * depth}{along}{one.name}", one.split_by, f"{one.people:,.0f}"
            told += 1
            if depth + 1 < OUTLINED_LEVELS:
                waiting[:0] = [(child, depth + 1) for child in self._children(node).tolist()]

    def _by_depth(self) -> Iterator[tuple[str, ...]]:
        depths = self.tree.depths[self.tree.ends]
        regions, held = np.bincount(depths), np.bincount(depths, self._people[self.tree.ends])
        for depth in np.flatnonzero(regions).tolist():
            yield f"{depth}", f"{regions[depth]:,}", f"{held[depth]:,.0f}"


class PaperTreeModel(TreeModel):
    """Ends of a tree whose nodes were made to agree with the weights of the CDiffGen paper."""

    reconcile = staticmethod(Consistent.as_published)


class ExactTreeModel(TreeModel):
    """Ends of a tree that were counted exactly: their counts are the truth, and nothing errs."""

    exact: ClassVar[bool] = True

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse more than the ends, or them in another order: nothing can be added to exact counts."""
        super().__init__(schema, draft)
        nodes = draft.final.question.nodes
        if len(draft.measurements) != 1 or nodes is None or not np.array_equal(nodes, self.tree.ends):
            raise ReleaseError(*UNMEASURED)

    @cached_property
    def nodes(self) -> Consistent:
        """The ends summed up to the root."""
        everywhere, measured = np.zeros((len(self.tree), len(self.schema.classes))), np.zeros(len(self.tree))
        everywhere[self.tree.ends], measured[self.tree.ends] = self.counts.counts, 1.0
        agreed = Consistent.of(self.tree.parents, everywhere, measured)
        certain = replace(agreed.passes, upward=np.zeros(len(self.tree)))
        return replace(agreed, passes=certain)

    @property
    def total(self) -> int:
        """The number of people."""
        return int(self.counts.counts.sum())

    @property
    def shown(self) -> Integers:
        """The counts."""
        return self.counts.counts

    def people(self, how: Nonnegative) -> Integers:
        """Take the counts."""
        refuse_unknown(how)
        return self.counts.counts

    def majorities(self) -> Integers:
        """Find the most frequent class, the first of equals; an end with no people follows its parent."""
        majorities, empty = np.argmax(self.nodes.values, axis=1), self.nodes.values.sum(axis=1) == 0
        for level in self.nodes.passes.levels:
            followers = level.nodes[empty[level.nodes]]
            majorities[followers] = majorities[self.tree.parents[followers]]
        return np.asarray(majorities[self.tree.ends])


@dataclass(frozen=True, eq=False)
class Divided:
    """People of every node divided among its children, and their shares of classes; and how far both may err."""

    people: Floats
    classes: Floats
    """nodes x classes: shares"""
    people_errors: Floats
    """nodes: the variance that is left of a node's departure from its share of its parent, in people"""
    class_errors: Floats
    """nodes x classes: that of its classes' departures from its parent's, in shares"""


def divided(tree: Tree, nodes: Consistent, margins: Margins) -> Divided:
    """Divide people from the root down: a child gets its share of the parent by the margin of the attribute along which
    it was cut out, corrected by what its own count departs from that, as far as that is more than noise.

    Departures of all nodes of a level are shrunk together, of people and of classes apart.
    """
    classes, variances, totals = nodes.values.shape[1], nodes.variances(), nodes.values.sum(axis=1)
    people, shares = np.zeros(len(tree)), np.zeros(nodes.values.shape)
    people_errors, class_errors = np.zeros(len(tree)), np.zeros(nodes.values.shape)
    people[ROOT], shares[ROOT] = margins.size.value, margins.classes / margins.classes.sum()
    expected = _expected_shares(tree, margins)
    for level in nodes.passes.levels:
        own, family = level.nodes, level.family
        parents, share = tree.parents[own], expected[own]
        above, noise = people[parents], classes * variances[own]
        size = np.maximum(above, np.sqrt(noise))
        departures = (totals[own] - share * level.sums(totals[own])[family]) / size
        moved, left, _ = shrunk(departures, noise * ((1 - share) ** 2 + share**2) / size**2, share * (1 - share) + 1e-6)
        wanted = np.maximum(share + moved, LEAST_SHARE * share) * above
        people[own] = wanted * above / np.maximum(level.sums(wanted)[family], 1e-12)
        people_errors[own] = left * above**2
        usual = shares[parents]
        held = np.maximum(totals[own], np.sqrt(noise))[:, None]
        more = (nodes.values[own] - usual * totals[own, None]) / held
        unsure = variances[own, None] * ((1 - usual) ** 2 + (classes - 1) * usual**2) / held**2 + 1e-12
        moved, left, _ = shrunk(more, unsure, usual * (1 - usual) + 1e-6)
        shares[own] = _normal(usual + moved)
        class_errors[own] = left
    return Divided(people, shares, people_errors, class_errors)


def _expected_shares(tree: Tree, margins: Margins) -> Floats:
    """Work out the share of its parent that each node has by the margin of the attribute along which it was cut out."""
    running = [np.concatenate(([0.0], np.cumsum(people))) for people in margins.people]
    shares = np.ones(len(tree))
    for at, sums in enumerate(running):
        cut = np.flatnonzero(tree.attributes == at)
        parents = tree.boxes[tree.parents[cut], at]
        shares[cut] = (sums[tree.highs[cut]] - sums[tree.lows[cut]]) / (sums[parents[:, 1]] - sums[parents[:, 0]])
    return shares


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


def fewest_nodes(tree: Tree, regions: Booleans) -> Integers:
    """Find the fewest nodes whose regions are exactly these: one flag for each region, in their order.

    CDiffGen's algorithm 1, as it should read: a node whose regions all lie in the set is taken, one with none is
    dropped, and of any other the children are looked at. No fewer do: a node outside the set's subtrees would bring in
    a region that is not asked for, so each region needs a node of its own maximal subtree inside the set, and these are
    what is taken.

    >>> halves = Tree.whole((4,)).refine([0], [0], [0, 2, 4], [0, 3])
    >>> letters = halves.refine([1, 2], [0, 0], [0, 1, 2, 2, 3, 4], [0, 3, 6])
    >>> fewest_nodes(letters, np.array([False, True, True, True])).tolist()
    [2, 4]
    """
    missing = np.zeros(len(tree), np.int64)
    missing[tree.ends] = ~regions
    for level in reversed(levels_of(tree.parents.astype(np.int64))):
        missing[level.heads] = np.add.reduceat(missing[level.nodes], level.starts)
    whole = missing == 0
    return np.flatnonzero(whole & ~np.where(np.arange(len(tree)) == ROOT, False, whole[tree.parents]))


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


@dataclass(frozen=True, eq=False)
class _Walk:
    """A way down and up the tree.

    A query's sum over the regions below a node is a x + D: the node's final x times the weight a that gathers at
    it, and a sum D of what was measured below. With the words of `Passes`, children have x_c = u_c + s_c (x - U), so
    a = m, the sum of s_c a_c, and D is the sum of (a_c - m) u_c + D_c. Subtrees of siblings share no noise, so with
    v = var(u) and b = cov(D, u), the variance of D is the sum of (a_c - m)^2 v_c + 2 (a_c - m) b_c + var(D_c); and
    since u holds U l times, b = l times the sum of (a_c - m) v_c + b_c. At the root, all of it has the variance
    a^2 v + 2 a b + var(D). Where all regions below a node weigh the same, D is 0. With least squares v_c = s_c B, so
    that the (a_c - m) v_c sum to 0, and so is every b.
    """

    nodes: Consistent
    overlaps: Mapping[int, Overlap]
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
        """Sum over a tile, and give each query's a and b at its top; too many queries go one after the other."""
        most = max(1, (MOST_HELD if tile.further else NEAR) // len(tile.ends))
        if len(asking) <= most:
            return self._through(tile, asking, share)
        pieces = np.split(np.arange(len(asking)), np.arange(most, len(asking), most))
        found = [self._through(tile, asking[piece], share.among(piece)) for piece in pieces]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def _through(self, tile: Tile, asking: Integers, share: Share) -> tuple[Floats, Floats]:
        """Weigh the ends; where regions below one weigh differently, let those who divide them look further."""
        covered = {
            at: _Held(side.number, *self.overlaps[at].over(side.ranges, asking))
            for at, side in tile.sides.items()
            if at in self.overlaps
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
    """What queries cover of one attribute's ranges in a tile, and which range each end has."""

    number: Integers
    shares: Floats
    states: States

    def shares_at(self, end: int) -> Floats:
        return np.asarray(self.shares[self.number[end]])

    def states_at(self, end: int) -> States:
        return np.asarray(self.states[self.number[end]])


def _partly(states: Iterable[States], queries: int) -> NDArray[np.bool_]:
    """Tell which queries cover only a part along any attribute."""
    partly = np.zeros(queries, np.bool_)
    for state in states:
        partly |= state == PARTLY
    return partly
