"""Mondrian: strict multidimensional k-anonymity (LeFevre, DeWitt, Ramakrishnan, ICDE 2006; with a class: KDD 2006).

Every region is split in its own way until no split leaves k records in each child. All regions of a level are split at
once: a pass for each level, whatever the number of regions. A categorical split that leaves all records in one child
costs nothing and tells more, so values narrow down to the lowest category of their group; intervals, at last, to what
its records fill. Scores choose in the open, so they need no sensitivities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.errors import MethodError
from sfumato.geometry.candidates import NO_SPLIT, Candidates, Divisions, describe_level
from sfumato.geometry.tree import Tree
from sfumato.methods.method import number, one_of, parameter, truth, words
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Draft
from sfumato.privacy.tally import Breakdown, Counts, Tally
from sfumato.release.promises import KAnonymity
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Predictor, Schema
from sfumato.without_epsilon.method import KAnonymous

DECIMALS = 9
"""To how many decimals doubts are compared: floating point must not decide between candidates."""

SplitScore = Literal["median", "infogain"]
"""How a region is split: at the median of its widest attribute, or where the class is told best."""


@dataclass(frozen=True, kw_only=True)
class Mondrian(KAnonymous):
    """Multidimensional k-anonymity, for any use or, with score infogain, for classification."""

    name: ClassVar[str] = "mondrian"
    order: ClassVar[int] = 2
    suits: ClassVar[str] = "where the law asks for k-anonymity, with regions of their own"
    arithmetic: ClassVar[str] = "no epsilon: exact counts, k people or more in each group"
    unsuited: ClassVar[str] = "where privacy must hold against someone who knows more than the quasi-identifiers"
    summary: ClassVar[str] = (
        "k-anonymity, **no epsilon**: splits every region in its own way while each part keeps k records, optionally l "
        "sensitive values (LeFevre et al.)"
    )
    additions: ClassVar[str] = "all regions of a level at once: a few passes per level"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"k": 3},
        {"k": 2, "score": "infogain", "diversity": 2},
        {"k": 3, "narrow": False},
    )

    score: SplitScore = parameter(
        "median",
        "Split the widest attribute, intervals at their median (median), or where the class is told best (infogain).",
        read=one_of(get_args(SplitScore)),
    )
    sensitive: str | None = parameter(
        None,
        "The attribute that is published as it is, in place of the class, which is then one like the others.",
        read=words,
    )
    diversity: int = parameter(
        1,
        "l, how many different values of the sensitive attribute (or the class) every group has at least.",
        read=number("Give for example 2."),
    )
    narrow: bool = parameter(
        True,
        "Whether intervals are narrowed to what the records of their group fill, as usual, or left as they split.",
        read=truth,
    )

    def check(self) -> None:
        """Refuse to ask for more different values than records."""
        if self.diversity > self.k:
            raise MethodError(f"diversity ({self.diversity}) must be at most k ({self.k})", "Use a larger k.")

    def narrowed(self, schema: Schema) -> Schema:
        """Put the sensitive attribute in the place of the class; refuse a class with too few values."""
        if self.sensitive is not None and self.sensitive in (self.quasi or ()):
            raise MethodError(
                f"sensitive ({self.sensitive}) must not be a quasi-identifier, too", "Leave it out of --quasi."
            )
        kept = super().narrowed(schema if self.sensitive is None else schema.with_target(self.sensitive))
        if self.score == "infogain" and len(kept.classes) < 2:
            raise MethodError(
                "score (infogain) must have a class attribute of two values or more",
                "Name one with --target or in the schema, or use score median.",
            )
        if self.diversity > len(kept.classes):
            raise MethodError(
                f"diversity ({self.diversity}) must be at most the number of values of the class or sensitive "
                f"attribute, {len(kept.classes)}",
                "Use a smaller diversity, or name an attribute with --sensitive.",
            )
        return kept

    def promise(self, schema: Schema) -> KAnonymity:
        """Promise k records, and l sensitive values, in every group."""
        return KAnonymity(self.k, tuple(schema.predictors), schema.target, self.diversity)

    def publish(self, counts: ExactCounts, schema: Schema) -> Draft:
        """Split level by level, narrow the intervals, and count the groups."""
        tree, steps = self._split(counts, schema)
        if self.narrow:
            tree = narrow_intervals(tree, counts, schema)
        groups = counts.tally(Tally(tree, len(schema.classes)), "counts of groups").by_place
        return self.draft(tree, groups, tuple(steps))

    def _split(self, counts: ExactCounts, schema: Schema) -> tuple[Tree, list[str]]:
        """Grow the tree until no region has an allowed split; describe each level."""
        attributes, steps = list(schema.predictors.values()), list[str]()
        along = tuple(index for index, leaves in enumerate(schema.shape) if leaves > 1)
        divisions, classes = Divisions(attributes), len(schema.classes)
        tree = Tree.whole(schema.shape)
        live = tree.ends
        while True:
            tally = Tally(tree, classes, along, live)
            level = LevelSplits(
                attributes, tally, counts.tally(tally, "regions to split"), self.promise(schema), self.score
            )
            chosen = level.best(divisions, tree.boxes_of(live))
            if not len(chosen):
                return tree, steps
            steps.append(describe_level(len(steps) + 1, chosen, list(schema.predictors)))
            older = len(tree)
            tree = tree.refine(live[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
            live = np.arange(older, len(tree))


@dataclass(frozen=True, eq=False)
class LevelSplits:
    """The counted regions of one level: which splits the promise allows, and which of those is best, for all at once.

    A categorical value is divided as its taxonomy says, an interval in two at the border that is best by the score. A
    split is allowed if the promise holds of every child that holds someone.
    """

    attributes: Sequence[Predictor]
    tally: Tally
    counts: Counts
    promise: KAnonymity
    score: SplitScore

    def best(self, divisions: Divisions, boxes: NDArray[np.int32]) -> Candidates:
        """The best allowed split of every region that has one.

        By `median` it is the one along the widest attribute; by `infogain` the one that leaves least doubt about the
        class and, of those, the one along the widest.
        """
        candidates = divisions.candidates(boxes[self._held], self._held, self._borders()[self._held])
        allowed, doubts, spans = self._judge(candidates)
        kept = np.flatnonzero(allowed)
        order = kept[np.lexsort((-spans[kept], doubts[kept], candidates.places[kept]))]
        return candidates.take(order[np.flatnonzero(np.diff(candidates.places[order], prepend=-1))])

    @cached_property
    def _held(self) -> Integers:
        """The places that hold someone."""
        return np.flatnonzero(self.counts.by_place.any(axis=1))

    def _borders(self) -> Integers:
        """The best border of every interval: places x attributes."""
        borders = np.full((self.tally.places, len(self.attributes)), NO_SPLIT, np.int64)
        for attribute, breakdown in self.counts.by_leaf.items():
            if isinstance(self.attributes[attribute], Numeric):
                places, found = self._best_borders(breakdown)
                borders[places, attribute] = found
        return borders

    def _best_borders(self, breakdown: Breakdown) -> tuple[Integers, Integers]:
        """The places with an allowed border, and the best border of each.

        By `median` it is the allowed one nearest to the median: it has most records on its smaller side. Borders in a
        gap divide alike; the one in its middle tells least of who is on either side.
        """
        place, leaf = np.divmod(breakdown.keys, breakdown.leaves)
        first = np.flatnonzero(np.diff(place, prepend=-1))
        left = breakdown.running[1:] - np.repeat(breakdown.running[first], np.diff(first, append=len(place)), axis=0)
        right = self.counts.by_place[place] - left
        kept = np.flatnonzero(self.promise.holds(left) & self.promise.holds(right))
        below, above = leaf[kept], np.append(leaf, NO_SPLIT)[kept + 1]
        place, left, right = place[kept], left[kept], right[kept]
        worth = self._worth(left, right)
        first = np.flatnonzero(np.diff(place, prepend=-1))
        if not len(first):
            return first, first
        most = np.repeat(np.maximum.reduceat(worth, first), np.diff(first, append=len(place)))
        at = np.flatnonzero(worth == most)
        at = at[np.flatnonzero(np.diff(place[at], prepend=-1))]
        return place[at], (below[at] + 1 + above[at]) // 2

    def _worth(self, left: Integers, right: Integers) -> Floats:
        """How good borders are, from the counts on either side: more is better."""
        if self.score == "median":
            return np.asarray(np.minimum(left.sum(axis=1), right.sum(axis=1)), np.float64)
        return np.asarray(-np.round(doubt(left) + doubt(right), DECIMALS))

    def _judge(self, candidates: Candidates) -> tuple[Booleans, Floats, Floats]:
        """For each candidate: whether it is allowed, the doubt that it leaves (if asked for), its attribute's span."""
        allowed, doubts, spans = (
            np.zeros(len(candidates), np.bool_),
            np.zeros(len(candidates)),
            np.zeros(len(candidates)),
        )
        for attribute, breakdown in self.counts.by_leaf.items():
            these = np.flatnonzero(candidates.attributes == attribute)
            if not len(these):
                continue
            children, starts = counts_of_children(breakdown, candidates.take(these))
            fine = self.promise.holds(children) | ~children.any(axis=1)
            allowed[these] = np.logical_and.reduceat(fine, starts)
            spans[these] = _spans(breakdown, candidates.places[these])
            if self.score == "infogain":
                doubts[these] = np.round(np.add.reduceat(doubt(children), starts), DECIMALS)
        return allowed, doubts, spans


def counts_of_children(breakdown: Breakdown, candidates: Candidates) -> tuple[Integers, Integers]:
    """Count the children of candidates along one attribute (children x classes); where each candidate's begin."""
    lows, highs = (
        np.delete(candidates.borders, candidates.starts[1:] - 1),
        np.delete(candidates.borders, candidates.starts[:-1]),
    )
    counts = breakdown.between(np.repeat(candidates.places, candidates.children), lows, highs)
    return counts, np.cumsum(candidates.children) - candidates.children


def _spans(breakdown: Breakdown, places: Integers) -> Floats:
    """The width that the records of places fill: from the first to the last leaf, 1 being the whole attribute."""
    first, last = breakdown.ends(places)
    return (last - first) / (breakdown.leaves - 1)


def narrow_intervals(tree: Tree, counts: ExactCounts, schema: Schema) -> Tree:
    """Narrow the intervals of groups to what their records fill, one attribute after the other: a pass for each.

    Groups stay as they are, so whatever is promised of their counts stays, too; but now it is known of every interval
    that someone has its first value and someone its last.
    """
    groups, label = tree.ends, "ends of intervals"
    for attribute, column in enumerate(schema.predictors.values()):
        if isinstance(column, Numeric) and column.leaves > 1:
            seen = counts.tally(Tally(tree, len(schema.classes), (attribute,), groups), label)
            held = np.flatnonzero(seen.by_place.any(axis=1))
            first, last = seen.by_leaf[attribute].ends(held)
            tree, groups = _cut_off(tree, groups[held], attribute, first, last)
    return tree


def _cut_off(tree: Tree, groups: Integers, attribute: int, first: Integers, last: Integers) -> tuple[Tree, Integers]:
    """Divide groups along an attribute into what lies before, inside and after [first, last]; return those inside."""
    low, high = tree.boxes_of(groups)[:, attribute].astype(np.int64).T
    marks = np.stack([low, first, last + 1, high], axis=1)
    drawn = np.stack([np.ones_like(low), first > low, last + 1 < high, np.ones_like(low)], axis=1).astype(np.bool_)
    wide = np.flatnonzero(drawn[:, 1] | drawn[:, 2])
    drawn = drawn[wide]
    starts = np.append(0, np.cumsum(drawn.sum(axis=1)))
    finer = tree.refine(groups[wide], np.full(len(wide), attribute), marks[wide][drawn], starts)
    children = np.diff(starts) - 1
    inside = len(tree) + np.cumsum(children) - children + drawn[:, 1]
    return finer, np.sort(np.concatenate((np.delete(groups, wide), inside)))


def doubt(counts: Integers) -> Floats:
    """The entropy of the classes, in bits, times the number of records, for each row of counts by class.

    n H = n log n - sum of c log c, so the doubt of a set of groups is the sum of theirs, and a specialization's
    information gain is by how much it lowers the doubt, per record.

    >>> doubt(np.array([[1, 1], [4, 0], [2, 2], [0, 0]])).tolist()
    [2.0, 0.0, 4.0, 0.0]
    """
    return np.asarray(_n_log_n(counts.sum(axis=-1)) - _n_log_n(counts).sum(axis=-1))


def _n_log_n(counts: Integers) -> Floats:
    numbers = counts.astype(np.float64)
    return np.asarray(numbers * np.log2(np.maximum(numbers, 1.0)))
