"""Regions that are the ends of a tree, whose counts on the way inform them.

Counts bought for nodes bring what they know to the ends, by least squares or with the paper's weights; then the ends'
errors hang together, and the passes of `consistency` know how. Where margins were bought, people are divided from the
root down: by margins, corrected by counts as far as these say more than noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import NONE, Booleans, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.halving import levels_of
from sfumato.geometry.tree import ROOT, Tree
from sfumato.models.consistency import Consistent, project
from sfumato.models.covering import Combinations, Sums, alike
from sfumato.models.fitting import LEAST_SHARE, Margins, Parts, shrunk
from sfumato.models.intervals import CLASS, Clauses
from sfumato.models.model import UNMEASURED, Branch, Description, Listing, Nonnegative, refuse_unknown
from sfumato.models.regions import DECIMALS, FittedModel
from sfumato.privacy.measurements import Draft, Noisy, Question
from sfumato.schema.schema import Schema

SHALLOW = 4
"""Half of the nodes that are asked for by themselves have so many cuts at most on the way."""
MOST_COUNTED = 200
"""Of an attribute that regions cut into more parts, its margin tells better what each has."""
MOST_LEVELS = 7
THINNEST = 1 / 150
"""Nodes that are narrower than this part of the picture are not drawn, nor is what lies below them."""
MOST_OUTLINED = 60
OUTLINED_LEVELS = 5
INDENT = "\u2003"


class TreeModel(FittedModel):
    """Ends of a tree whose nodes were made to agree by least squares."""

    heavier: ClassVar[float] = 2.5

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

    @staticmethod
    def reads(question: Question) -> bool:
        """Read nodes of a tree, marginals, and contrasts of an attribute."""
        return question.nodes is not None or question.is_marginal() or question.contrast is not None

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

    def interacting(self) -> Floats:
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

    @property
    def class_counts(self) -> tuple[Floats, float]:
        """Take the root's."""
        return self.nodes.values[ROOT], float(self.nodes.passes.upward[ROOT])

    def part_sums(self) -> Mapping[int, Parts]:
        """Count parts of an attribute between borders that all regions respect."""
        found = {}
        people, classes = self.measured.sum(axis=1), self.measured.shape[1]
        for at in self.tree.split_attributes:
            ends = self.tree.boxes[self.tree.ends, at].astype(np.int64)
            part_of = _respected(ends, self.tree.shape[at])
            parts = int(part_of[-1]) + 1
            if 1 < parts <= MOST_COUNTED:
                numbers, nodes = part_of[ends[:, 0]], np.zeros((parts, len(self.tree)))
                nodes[numbers, self.tree.ends] = 1.0
                sums = np.bincount(numbers, people, parts).astype(np.float64)
                found[at] = (part_of, sums, classes * self.nodes.passes.variance(nodes))
        return found

    def region_noise(self, clauses: Clauses, sums: Sums) -> Floats:  # noqa: ARG002
        """Add up what is left of the noise of every division, of people and of classes.

        A node's departure from its share of its parent moves an answer by how much more of the node the query covers
        than of the parent; one of its classes' shares by how much of it is covered. What margins settle does not
        count: with c what is covered of a region by each clause, and p of everyone, the product of all c is moved by
        what it has beyond the product of all p and the sum of (c - p) times the other p.
        """
        noise = np.empty(clauses.queries)
        split = {at: one for at, one in clauses.by_attribute.items() if at != CLASS and len(one.shares) > 1}
        for attributes, every in alike({at: one.restricting for at, one in split.items()}, clauses.queries):
            found = self.combinations(attributes)
            for asking in self.blocks(every):
                noise[asking] = self._noise_of(clauses, found, asking)
        return noise

    def _noise_of(self, clauses: Clauses, found: Combinations, asking: Integers) -> Floats:
        """The same for queries that restrict the same attributes."""
        whole = {at: clauses.by_attribute[at].share[asking] for at in found.ranges}
        shares = {at: clauses.by_attribute[at].shares.T[asking] for at in found.ranges}
        covered = found.weigh(shares, np.ones(len(asking)))
        everyone = np.prod([np.ones(len(asking)), *whole.values()], axis=0)[:, None]
        settled = np.zeros(covered.shape)
        for at, share in whole.items():
            apart = shares[at].take(found.ranges[at], axis=1) - share[:, None]
            settled += apart * (everyone / np.maximum(share[:, None], 1e-9))
        outside = {
            at: one.share[asking] for at, one in clauses.by_attribute.items() if at not in (CLASS, *found.ranges)
        }
        others = np.prod([np.ones(len(asking)), *outside.values()], axis=0) ** 2
        beyond = self._by_node(covered - everyone - settled, found)
        steps = beyond[1:] - beyond[self.tree.parents[1:]]
        moved = self._divided.people_errors[1:].astype(np.float32) @ (steps * steps)
        noise = np.asarray(others * moved, np.float64)
        if CLASS not in clauses.by_attribute:
            return noise
        classes = clauses.by_attribute[CLASS]
        some = np.flatnonzero(classes.restricting[asking])
        by_class, root = classes.shares[:, asking[some]], self.estimated.values[ROOT] / max(self._people[ROOT], 1e-9)
        reached = self._by_node((covered - everyone)[some], found) ** 2
        by_people = (self._class_errors @ reached) * (by_class - root @ by_class) ** 2
        noise *= classes.share[asking] ** 2
        noise[some] += others[some] * by_people.sum(axis=0)
        return noise

    @cached_property
    def _class_errors(self) -> NDArray[np.float32]:
        """The variances that are left of all nodes' classes, in people: classes x nodes."""
        return np.asarray((self._divided.class_errors * self._people[:, None] ** 2).T, np.float32)

    def _by_node(self, weights: Floats, found: Combinations) -> NDArray[np.float32]:
        """Average weights of queries for combinations over the people of all nodes: nodes x queries.

        In single precision, which is enough for errors, and half the work.
        """
        single = weights.astype(np.float32)
        few = len(found.squares) < len(weights)
        ends = np.ascontiguousarray((np.eye(len(found.squares), dtype=np.float32) if few else single).T)
        nodes = np.zeros((len(self.tree), ends.shape[1]), np.float32)
        nodes[self.tree.ends] = ends.take(found.of, axis=0)
        nodes[self.tree.ends] *= self._single[self.tree.ends, None]
        for level in reversed(self.nodes.passes.levels):
            nodes[level.heads] = level.sums(nodes[level.nodes])
        nodes /= np.maximum(self._single, 1e-9)[:, None]
        return np.asarray(nodes @ single.T if few else nodes)

    @cached_property
    def _single(self) -> NDArray[np.float32]:
        return self._people.astype(np.float32)

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

    def own_variances(self, weights: Floats, found: Combinations) -> Floats:
        """Let what was measured of nodes on the way bear on the ends; what is left of it in a fit is `region_noise`."""
        if self.fitted is not None:
            return np.zeros((len(weights), 1))
        if len(self.own) == 1:
            return np.asarray(weights**2 @ np.bincount(found.of, self.variances, len(found.squares))[:, None])
        nodes = np.zeros((len(weights), len(self.tree)))
        nodes[:, self.tree.ends] = weights.take(found.of, axis=1)
        return self.nodes.passes.variance(nodes)[:, None]

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
        many = level.sizes[family]
        missing = (people[level.heads] - level.sums(totals[own]))[family] / many
        departures = (totals[own] + missing - share * above) / size
        moved, left = shrunk(departures, noise * (1 - 1 / many) / size**2 + 1e-12, share * (1 - share) + 1e-6)
        wanted = np.maximum(share + moved, LEAST_SHARE * share) * above
        people[own] = wanted * above / np.maximum(level.sums(wanted)[family], 1e-12)
        people_errors[own] = left * above**2
        usual = shares[parents]
        held = np.maximum(totals[own], np.sqrt(noise))[:, None]
        more = (nodes.values[own] - usual * totals[own, None]) / held
        unsure = variances[own, None] * ((1 - usual) ** 2 + (classes - 1) * usual**2) / held**2 + 1e-12
        moved, left = shrunk(more, unsure, usual * (1 - usual) + 1e-6)
        shares[own] = _normal(usual + moved)
        class_errors[own] = left
    return Divided(people, shares, people_errors, class_errors)


def _respected(ranges: Integers, leaves: int) -> Integers:
    """Number the parts between borders that no range crosses, and give the part of each leaf.

    >>> _respected(np.array([[0, 2], [2, 6], [2, 4], [4, 6]]), 6).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    steps = np.zeros(leaves + 1, np.int64)
    np.add.at(steps, ranges[:, 0] + 1, 1)
    np.add.at(steps, ranges[:, 1], -1)
    crossed = np.cumsum(steps)[1:leaves] > 0
    return np.concatenate(([0], np.cumsum(~crossed)))


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
    positive = np.maximum(shares, 1e-9)
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
