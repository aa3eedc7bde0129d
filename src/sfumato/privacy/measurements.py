"""Measurements: a question in public terms, and noisy counts with the exact rates of their noise.

Methods receive measurements; drafts and releases are made of them. Whoever has the measurements can add up what they
cost (`most_paid`), without believing the manifest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.arrays import NONE, Codes, Floats, Integers, read_only
from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.contrasts import Contrast
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Regions
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import Debit

LEAST_VARIANCE = 1e-100
"""The least variance of noise: one that is 0 in floating point would give its counts infinite weight."""


def variance_of(rate: Fraction) -> float:
    """The variance of discrete Laplace noise: 2 q / (1 - q)^2 for q = exp(-rate).

    >>> round(variance_of(Fraction(1)), 6)
    1.841347
    """
    return max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, LEAST_VARIANCE)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Counts, a row for each place, with discrete Laplace noise: P(x) is proportional to exp(-rate |x|).

    Negative counts are left negative. Exact counts have no rate.
    """

    counts: Integers
    """places x classes, or places x 1"""
    rates: tuple[Fraction, ...]
    """the different rates"""
    rate_of: Integers
    """which of them each place has"""

    @classmethod
    def even(cls, counts: Integers, rate: Fraction) -> Noisy:
        """Counts that all have the same noise."""
        return cls(counts, (rate,), read_only(np.zeros(len(counts), np.int64)))

    @classmethod
    def exact(cls, counts: Integers) -> Noisy:
        """Counts without noise: what methods without epsilon publish."""
        return cls(counts, (), read_only(np.zeros(len(counts), np.int64)))

    @property
    def is_exact(self) -> bool:
        """Whether there is no noise."""
        return not self.rates

    @property
    def variances(self) -> Floats:
        """The variance of the noise of each place's counts."""
        if self.is_exact:
            return np.zeros(len(self.counts))
        return np.array([variance_of(rate) for rate in self.rates])[self.rate_of]


@dataclass(frozen=True, eq=False)
class Question:
    """Which cells were counted: the regions of a grid or of boxes, or some nodes of a tree; by class or not.

    A grid that is whole in all attributes but a few is a marginal of these. Nodes of one question are disjoint, so a
    record lies in one place at most.
    """

    regions: Regions
    nodes: Integers | None = None
    """the nodes of a tree that were counted"""
    classes: int = 1
    """the number of classes by which each place was counted; 1 if by none"""
    contrast: Contrast | None = None
    """with which weights the regions, parts of one attribute, were summed; none if each was counted by itself"""

    def __post_init__(self) -> None:
        """Refuse nodes that the tree has not, and nodes named twice; and contrasts of other regions than their own."""
        if self.contrast is not None and not self._contrasts(self.contrast):
            raise ValueError("contrasts must be of the parts of one attribute")
        if self.nodes is None:
            return
        nodes, tree = self.nodes, self.regions
        if not isinstance(tree, Tree) or len(np.unique(nodes)) < len(nodes):
            raise ValueError("a question must be about different nodes of a tree")
        if len(nodes) and not (nodes.min() >= 0 and nodes.max() < len(tree)):
            raise ValueError("a question must be about nodes that the tree has")

    def _contrasts(self, contrast: Contrast) -> bool:
        grid = self.regions
        if not isinstance(grid, Grid) or grid.orders or self.nodes is not None or self.classes > 1:
            return False
        cut = [grid.cuts[at] for at in grid.split_attributes]
        return len(cut) == 1 and np.array_equal(cut[0], contrast.borders)

    @property
    def places(self) -> int:
        """The number of places that were counted, or of contrasts."""
        if self.contrast is not None:
            return self.contrast.rows
        return self.regions.regions if self.nodes is None else len(self.nodes)

    @property
    def shape(self) -> tuple[int, int]:
        """Places x classes."""
        return self.places, self.classes

    @property
    def reach(self) -> int:
        """By how much one record moves all counts together, at most: a record lies in one place and counts once."""
        return 1 if self.contrast is None else self.contrast.reach

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that tell places apart."""
        return self.regions.split_attributes

    def is_marginal(self) -> bool:
        """Whether everyone is counted once, by ranges of leaf codes: in a grid that keeps the leaves in their order."""
        return isinstance(self.regions, Grid) and not self.regions.orders and self.contrast is None

    def places_of(self, columns: Sequence[Codes]) -> Integers:
        """The place that holds each coded row; NONE where a row lies in none, or in several contrasts."""
        if self.contrast is not None:
            return np.full(len(columns[0]), NONE)
        if self.nodes is None:
            return self.regions.regions_of(columns)
        tree = self.regions
        assert isinstance(tree, Tree)
        place_of = np.full(len(tree) + 1, NONE)
        place_of[self.nodes] = np.arange(len(self.nodes))
        standing = tree.locate(columns, len(columns[0]) if columns else 0)
        found = place_of[standing]
        while (standing != NONE).any():
            standing = np.where(standing == NONE, NONE, tree.parents[standing])
            found = np.where(found == NONE, place_of[standing], found)
        return found

    def plain(self, structure: Regions) -> dict[str, Any]:
        """Plain values for a file that has the structure: its own regions or nodes, or other regions in full."""
        own = self.regions is structure or self.regions == structure
        weights = {} if self.contrast is None else {"contrast": self.contrast.plain()}
        return {"of": "structure" if own else self.regions.plain(), "by_class": self.classes > 1} | weights


@dataclass(frozen=True, eq=False)
class Measurement:
    """A round's label, its question, and the noisy counts: places x classes."""

    label: str
    question: Question
    noisy: Noisy

    def __post_init__(self) -> None:
        """Refuse counts that are not those of the question."""
        if self.noisy.counts.shape != self.question.shape or len(self.noisy.rate_of) != self.question.places:
            raise ValueError("a measurement must have a count for every cell of its question")

    @property
    def counts(self) -> Integers:
        """The noisy counts: places x classes."""
        return self.noisy.counts

    def answers(self, question: Question) -> bool:
        """Whether these are the counts of a question. Nodes of a tree keep their numbers when it grows."""
        own = self.question
        if own.contrast != question.contrast:
            return False
        if own.classes != question.classes or own.nodes is None or question.nodes is None:
            return own.shape == question.shape and own.regions == question.regions and own.nodes is question.nodes
        return np.array_equal(own.nodes, question.nodes)


@dataclass(frozen=True, eq=False)
class Draft:
    """What a method hands over: a structure, all that was measured, which model reads it, and how it was found."""

    structure: Regions
    measurements: tuple[Measurement, ...]
    model: str
    """the name of the model that turns all of it into answers"""
    steps: tuple[str, ...] = ()
    """lines for people on how the structure was found"""
    notes: tuple[str, ...] = ()
    """for the eyes of the holder who has just made it, exact: never written, and gone when a release is read"""

    def __post_init__(self) -> None:
        """Turn questions about earlier stages of a tree into questions about the tree: nodes keep their numbers."""
        seen = tuple(replace(one, question=self._about_structure(one.question)) for one in self.measurements)
        object.__setattr__(self, "measurements", seen)
        labels = [one.label for one in self.measurements]
        if len(set(labels)) < len(labels):
            raise PrivacyError("measurements must have labels of their own", BLAME)

    def _about_structure(self, question: Question) -> Question:
        if question.regions is self.structure or isinstance(question.regions, Grid):
            return question
        tree, stage = self.structure, question.regions
        if not (isinstance(tree, Tree) and isinstance(stage, Tree) and tree.refines(stage.stage)):
            raise PrivacyError("what was measured must be marginals, or nodes of the tree that is published", BLAME)
        return replace(question, regions=tree)

    @cached_property
    def is_exact(self) -> bool:
        """Whether any of the measurements has no noise."""
        return any(one.noisy.is_exact for one in self.measurements if one.question.places)

    @property
    def final(self) -> Measurement:
        """The last measurement: for a structure of regions, their counts."""
        return self.measurements[-1]

    @property
    def cells(self) -> int:
        """The number of all counts."""
        return sum(one.counts.size for one in self.measurements)


def each_is_paid(draft: Draft, debits: Sequence[Debit], records: int = 1) -> bool:
    """Tell whether every measurement has one debit of its own name, which pays for its noise, for so many records.

    On a grid that is at least the rate of the noise times what one record moves. For nodes of a tree a debit tells only
    by how much the round has raised the most that anyone has paid, so there the name must do; `most_paid` adds up the
    paths.
    """
    for one in draft.measurements:
        paid = [debit.epsilon for debit in debits if debit.label == one.label]
        if len(paid) != 1 or (one.question.nodes is None and records * _cost(one) > paid[0]):
            return False
    return True


def _cost(one: Measurement) -> Fraction:
    """What a measurement of regions costs everyone: the rate of its noise times what one record moves."""
    return max(one.noisy.rates, default=Fraction(0)) * one.question.reach


def most_paid(draft: Draft, records: int = 1) -> Fraction:
    """The most that the measurements have cost any person of so many records, by the rates of their noise.

    A count with noise of rate r costs r to everyone counted in it. A grid counts everyone once, so it costs the largest
    of its rates at most, and contrasts cost that times the sum of a record's weights; the nodes of a tree cost their
    rates to those on the path through them. Choices leave no noise behind, so they are not in the sum.
    """
    on_grids = [_cost(one) for one in draft.measurements if one.question.nodes is None]
    return records * (sum(on_grids, Fraction(0)) + _most_on_a_path(draft))


def _most_on_a_path(draft: Draft) -> Fraction:
    on_nodes = [one for one in draft.measurements if one.question.nodes is not None]
    tree = draft.structure
    if not on_nodes or not isinstance(tree, Tree):
        return Fraction(0)
    unit = math.lcm(*(rate.denominator for one in on_nodes for rate in one.noisy.rates))
    paid = np.zeros(len(tree), object)
    for one in on_nodes:
        wholes = np.array([int(rate * unit) for rate in one.noisy.rates] or [0], object)
        paid[one.question.nodes] += wholes[one.noisy.rate_of]
    order = np.argsort(tree.depths, kind="stable")
    for nodes in np.split(order, np.searchsorted(tree.depths[order], np.arange(1, tree.depths.max() + 1)))[1:]:
        paid[nodes] += paid[tree.parents[nodes]]
    return Fraction(max(paid[tree.ends]), unit)
