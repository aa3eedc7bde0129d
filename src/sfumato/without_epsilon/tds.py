"""Top-down specialization for k-anonymity (Fung, Wang, Yu, "Top-Down Specialization for Information and Privacy
Preservation", ICDE 2005).

The cut of every attribute is the same for all records, as in DiffGen, whose candidates and cuts these are; the score
and the constraint are not. Each step takes the valid value with the largest information gain per loss of anonymity,
InfoGain / (AnonyLoss + 1); an interval is split where the gain is largest. It ends when no valid, beneficial value is
left.

Specializing a value divides every group that has it. What that would leave of the smallest group is kept for each
candidate and only ever falls: when groups are divided by another value, their would-be children are divided, too. So
after a step only the new groups are counted, and each candidate takes the minimum of what it knew and what they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import MethodError
from sfumato.geometry.candidates import (
    WHOLE,
    Candidates,
    Interval,
    Specialization,
    describe_all,
    intervals,
    taxonomy_candidates,
)
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.measurements import Draft
from sfumato.privacy.tally import Breakdown, Counts, Tally
from sfumato.schema.schema import Schema
from sfumato.without_epsilon.method import KAnonymous
from sfumato.without_epsilon.mondrian import DECIMALS, counts_of_children, doubt

Value = tuple[int, int, int]
"""An attribute and a range of its leaves."""
NO_GROUP = int(np.iinfo(np.int64).max)
"""The size of the smallest group where there is none."""


@dataclass(frozen=True, kw_only=True)
class TDS(KAnonymous):
    """Single-dimensional k-anonymity for classification."""

    name: ClassVar[str] = "tds"
    order: ClassVar[int] = 3
    suits: ClassVar[str] = "k-anonymity for classification, with the same generalization for all"
    arithmetic: ClassVar[str] = "no epsilon: exact counts, k people or more in each group"
    unsuited: ClassVar[str] = "as mondrian"
    summary: ClassVar[str] = (
        "k-anonymity, **no epsilon**: specializes one value at a time by information gain per loss of anonymity (Fung "
        "et al., ICDE 2005)"
    )
    additions: ClassVar[str] = "only new groups are counted after a step"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({"k": 3},)

    def narrowed(self, schema: Schema) -> Schema:
        """Refuse a schema without a class to choose by."""
        if schema.target is None or len(schema.classes) < 2:
            raise MethodError(
                "tds must have a class attribute of two values or more to choose by",
                "Name one with --target or in the schema.",
            )
        return super().narrowed(schema)

    def publish(self, counts: ExactCounts, schema: Schema) -> Draft:
        """Grow the cuts, then count the groups: the ends of the tree that the cuts make, empty ones undivided."""
        growth = TopDown(counts=counts, schema=schema, k=self.k)
        growth.run()
        groups = counts.tally(Tally(growth.tree, len(schema.classes)), "counts of groups").by_place
        return self.draft(growth.tree, groups, describe_all(schema.predictors, growth.steps))


@dataclass(kw_only=True)
class TopDown:
    """The growth of the cuts: the cuts and the groups so far, and the candidates that are left."""

    counts: ExactCounts
    schema: Schema
    k: int
    grid: Grid = field(init=False)
    """the cuts"""
    tree: Tree = field(init=False)
    """the groups that the cuts make, as ends"""
    steps: list[Specialization] = field(default_factory=list, init=False)
    histograms: Counts = field(init=False)
    anonymity: int = field(init=False)
    """the size of the smallest group"""
    nodes: Integers = field(init=False)
    """the groups that hold someone, as nodes of the tree"""
    boxes: NDArray[np.int32] = field(init=False)
    """the ranges of those"""
    candidates: dict[Value, Candidate] = field(default_factory=dict, init=False)
    seen: set[Value] = field(default_factory=set, init=False)
    """the values that were on the cuts before"""

    def run(self) -> None:
        """Specialize the best candidate until there is none."""
        shape, every = self.schema.shape, tuple(range(len(self.schema.shape)))
        self.grid, self.tree = Grid.whole(shape), Tree.whole(shape)
        self.histograms = self.counts.tally(Tally(self.grid, len(self.schema.classes), every), "histograms")
        self.anonymity = int(self.histograms.by_place.sum())
        self.nodes, self.boxes = self.tree.ends, self.tree.boxes_of(self.tree.ends)
        self._meet(self.nodes, self.boxes)
        while self.candidates:
            self._specialize(max(self.candidates.values(), key=lambda one: one.score(self.anonymity)))

    def _specialize(self, best: Candidate) -> None:
        """Divide every group that has the candidate's value."""
        chosen = self.candidates.pop(best.value).specialization
        self.steps.append(chosen)
        self.anonymity = min(self.anonymity, best.smallest)
        self.grid = self.grid.refine(chosen.attribute, chosen.borders)
        concerned = (self.boxes[:, chosen.attribute] == best.value[1:]).all(axis=1)
        split, older = self.nodes[concerned], len(self.tree)
        self.tree = self.tree.refine(
            split,
            np.full(len(split), chosen.attribute),
            np.tile(chosen.borders, len(split)),
            np.arange(len(split) + 1) * len(chosen.borders),
        )
        nodes = np.arange(older, len(self.tree))
        boxes = self.tree.boxes_of(nodes)
        held = self._meet(nodes, boxes)
        self.nodes = np.concatenate((self.nodes[~concerned], nodes[held]))
        self.boxes = np.concatenate((self.boxes[~concerned], boxes[held]))

    def _meet(self, nodes: Integers, boxes: NDArray[np.int32]) -> Integers:
        """Let all candidates, new ones included, take account of new groups, and keep the valid ones.

        A candidate is valid if every group that it would make has k records. One that is not never will be. Returns
        which of the new groups hold someone.
        """
        self.candidates |= {one.value: one for one in self._new_candidates()}
        along = tuple(sorted({attribute for attribute, _, _ in self.candidates}))
        counts = self.counts.tally(Tally(self.tree, len(self.schema.classes), along, nodes), "groups to divide")
        held = np.flatnonzero(counts.by_place.any(axis=1))
        for attribute, breakdown in counts.by_leaf.items():
            mine = sorted((one for one in self.candidates.values() if one.value[0] == attribute), key=_low)
            for one, size in zip(mine, _smallest(mine, breakdown, held, boxes[held, attribute]), strict=True):
                self.candidates[one.value] = replace(one, smallest=min(one.smallest, size))
        self.candidates = {value: one for value, one in self.candidates.items() if one.smallest >= self.k}
        return held

    def _new_candidates(self) -> Iterator[Candidate]:
        """Make candidates of the values that are new on the cuts and beneficial: of records of several classes."""
        attributes = list(self.schema.predictors.values())
        fresh = [candidates[0] for candidates in taxonomy_candidates(attributes, self.grid)]
        fresh += [self._best_split(one) for one in intervals(attributes, self.grid) if one not in self.seen]
        for one in fresh:
            value = (one.attribute, one.borders[0], one.borders[-1])
            if value not in self.seen and (doubt(self._records(one.attribute, value[1:])) > 0).any():
                yield Candidate(one, self._gain(one))
            self.seen.add(value)

    def _records(self, attribute: int, borders: Sequence[int]) -> Integers:
        """Count the records between borders, in the whole table: parts x classes."""
        marks = np.array(borders)
        places = np.full(len(marks) - 1, WHOLE)
        return self.histograms.by_leaf[attribute].between(places, marks[:-1], marks[1:])

    def _gain(self, one: Specialization) -> float:
        """The information gain of a specialization, in bits per record that has the value."""
        children = self._records(one.attribute, one.borders)
        whole = children.sum(axis=0)
        return float((doubt(whole) - doubt(children).sum()) / whole.sum())

    def _best_split(self, interval: Interval) -> Specialization:
        """Split an interval where the gain is largest, in the middle of the gap: its borders all divide alike."""
        attribute, low, high = interval
        borders = np.arange(low + 1, high)
        everywhere = np.full(len(borders), WHOLE)
        breakdown = self.histograms.by_leaf[attribute]
        left = breakdown.between(everywhere, np.full_like(borders, low), borders)
        right = breakdown.between(everywhere, borders, np.full_like(borders, high))
        best = np.argmin(np.round(doubt(left) + doubt(right), DECIMALS))
        alike = borders[(left == left[best]).all(axis=1)]
        return Specialization(WHOLE, attribute, (low, int(alike[0] + alike[-1]) // 2, high))


@dataclass(frozen=True)
class Candidate:
    """A value on the cuts, how it would be specialized, and what that would bring and cost."""

    specialization: Specialization
    gain: float
    """by how much the children lower the entropy of the class, in bits per record that has the value"""
    smallest: int = NO_GROUP
    """the size of the smallest group that it would make"""

    @property
    def value(self) -> Value:
        """What is specialized."""
        return self.specialization.attribute, self.specialization.borders[0], self.specialization.borders[-1]

    def score(self, anonymity: int) -> float:
        """The information gain per loss of anonymity: gain / (loss + 1).

        `anonymity` is the smallest group now, the loss is by how much it would fall. The groups that the value does not
        concern stay, and those that it does are no smaller than what becomes of them: the smallest group would be
        min(smallest, anonymity).

        >>> Candidate(Specialization(0, 0, (0, 2, 4)), gain=0.6, smallest=8).score(10)
        0.19999999999999998
        """
        return self.gain / (anonymity - min(self.smallest, anonymity) + 1)


def _low(candidate: Candidate) -> int:
    return candidate.value[1]


def _smallest(
    candidates: Sequence[Candidate], breakdown: Breakdown, places: Integers, ranges: NDArray[np.int32]
) -> list[int]:
    """The size of the smallest group that each candidate of one attribute would make of the places with its value.

    Candidates come by their ranges, which are disjoint; a place has the value of one of them, or of none.
    """
    lows, highs = (np.array([one.value[side] for one in candidates]) for side in (1, 2))
    which = np.clip(np.searchsorted(lows, ranges[:, 0], side="right") - 1, 0, None)
    has = (lows[which] == ranges[:, 0]) & (highs[which] == ranges[:, 1])
    places, which = places[has], which[has]
    found = np.full(len(candidates), NO_GROUP)
    if len(places):
        split = Candidates.join(
            [Candidates.one(WHOLE, one.value[0], one.specialization.borders) for one in candidates]
        ).take(which)
        children, starts = counts_of_children(breakdown, replace(split, places=places))
        sizes = children.sum(axis=1)
        np.minimum.at(found, which, np.minimum.reduceat(np.where(sizes > 0, sizes, NO_GROUP), starts))
    return [int(size) for size in found]
