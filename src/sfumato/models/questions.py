"""Which estimates a release has: the one place that chooses among them by the regions and by what was bought.

It stands apart because it alone knows all kinds. What does not fit the regions is refused rather than left out: counts
that were paid for and are not used would make answers worse without a word.

Questions to a release, one or a hundred thousand: read, then answered block by block.

A block is as many conditions as fit into a given memory, whatever they restrict; one condition is a block of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.errors import QueryError
from sfumato.geometry.boxes import Boxes, Regions
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models.boxes import BoxAnswers, BoxEstimates
from sfumato.models.coclusters import CoclusterEstimates
from sfumato.models.consistency import Consistency
from sfumato.models.estimates import Estimates, ExactEstimates, GridEstimates, TreeEstimates, reconciled
from sfumato.models.grid import GridAnswers
from sfumato.models.margins import Spread
from sfumato.models.model import WHOLE, Answers, Cover, Share, covers_of
from sfumato.models.regions import Sides
from sfumato.models.tree import TreeAnswers
from sfumato.privacy.measurements import NodeCounts, Noisy
from sfumato.schema.conditions import read_condition
from sfumato.schema.schema import Schema


def estimates_of(
    partition: Regions,
    counts: Noisy,
    *,
    earlier: Sequence[NodeCounts] = (),
    consistency: Consistency = "least squares",
    histogram: Noisy | None = None,
    sampling: Fraction = Fraction(1),
) -> Estimates:
    """Combine the counts of the regions with whatever else was bought, or refuse what does not fit them."""
    if earlier and not isinstance(partition, Tree):
        raise ValueError("earlier counts must be those of a tree's nodes")
    if histogram is not None and not isinstance(partition, Grid):
        raise ValueError("a histogram must be that of a grid's cells")
    if counts.is_exact != isinstance(partition, Boxes) and not isinstance(partition, Tree):
        raise ValueError("exact counts must be those of a tree or of boxes, and noisy ones of a tree or a grid")
    if counts.is_exact and earlier:
        raise ValueError("exact counts must stand alone, because nothing can be added to them")
    if isinstance(partition, Boxes):
        return BoxEstimates(partition, counts.counts, sampling)
    if isinstance(partition, Grid):
        return CoclusterEstimates(partition, counts, histogram) if histogram else GridEstimates(partition, counts)
    if counts.is_exact:
        return ExactEstimates.of_leaves(partition, counts)
    return TreeEstimates(partition, reconciled(partition, counts, earlier, consistency))


Condition = str | Mapping[str, Floats]
"""Words, or weights of leaves by attribute; an attribute left out is not restricted."""

BLOCK_BYTES = 2**29
MOST_IN_BLOCK = 2**14
BYTES = 16
"""What a leaf or a range takes for each clause, about: weights, shares and states."""


@dataclass(frozen=True, eq=False)
class Question:
    """One condition as weights: of the leaves of attributes, by their number, and of classes."""

    text: str
    weights: Mapping[int, Floats]
    classes: Floats


@dataclass(frozen=True, eq=False)
class Questions:
    """Reads conditions and answers them from estimates."""

    schema: Schema
    sides: Sequence[Sides]
    spreads: Sequence[Spread]
    """both in the order of which regions have ranges"""
    answers: GridAnswers | TreeAnswers | BoxAnswers

    @classmethod
    def to(cls, schema: Schema, sides: Sequence[Sides], spreads: Sequence[Spread], estimates: Estimates) -> Questions:
        """Ask the regions of a grid or of a tree, or boxes that overlap."""
        if isinstance(estimates, BoxEstimates):
            return cls(schema, sides, spreads, BoxAnswers(estimates, sides))
        if isinstance(estimates, TreeEstimates):
            return cls(schema, sides, spreads, TreeAnswers(estimates))
        assert isinstance(estimates, GridEstimates)
        return cls(schema, sides, spreads, GridAnswers(estimates))

    def ask(self, conditions: Sequence[Condition], place: Callable[[int], str]) -> Answers:
        """Answer conditions; a mistake in one is told with its place."""
        if isinstance(conditions, str | Mapping):
            raise QueryError("conditions must be a list of them, and are a single one", "Use count, or a list of one.")
        return Answers.joined([self._answer(block) for block in self._blocks(conditions, place)])

    def read(self, condition: Condition) -> Question:
        """Read words, or check weights."""
        if not isinstance(condition, str | Mapping):
            raise QueryError(
                f"a condition ({condition!r:.40}) must be text, or weights of leaves by attribute",
                "Write for example: age >= 40 and sex = 'Female'.",
            )
        weights = self._checked(read_condition(self.schema, condition) if isinstance(condition, str) else condition)
        text = condition if isinstance(condition, str) else f"weights of {', '.join(weights) or 'nothing'}"
        everyone = np.ones(len(self.schema.classes))
        numbered = {
            at: weights[name][self.sides[at].order] for at, name in enumerate(self.schema.predictors) if name in weights
        }
        return Question(text, numbered, weights.get(self.schema.target or "", everyone))

    def wholly_covered(self, question: Question, regions: Integers) -> Booleans:
        """Tell which regions a condition covers wholly."""
        whole = np.ones(len(regions), np.bool_)
        ranges = {at: side.ranges for at, side in enumerate(self.sides)}
        for at, cover in covers_of(ranges, self.spreads, [question.weights]).items():
            whole &= cover.states[self.sides[at].number(regions), 1] == WHOLE
        return whole

    def _blocks(self, conditions: Sequence[Condition], place: Callable[[int], str]) -> Iterator[list[Question]]:
        """Read conditions until they fill a block."""
        block: list[Question] = []
        size = 0
        for number, condition in enumerate(conditions):
            try:
                question = self.read(condition)
            except QueryError as error:
                raise QueryError(f"{place(number)}{error.problem}", error.remedy) from None
            needed = sum(BYTES * (self.schema.shape[at] + len(self.answers.ranges[at])) for at in question.weights)
            if block and (size + needed > BLOCK_BYTES or len(block) == MOST_IN_BLOCK):
                yield block
                block, size = [], 0
            block.append(question)
            size += needed
        if block:
            yield block

    def _answer(self, block: Sequence[Question]) -> Answers:
        covers = covers_of(self.answers.ranges, self.spreads, [question.weights for question in block])
        sums = self.answers.sums(covers, self._settled(covers, len(block)))
        texts = [question.text for question in block]
        return Answers.of(texts, sums, np.stack([question.classes for question in block]), self.answers.cause)

    def _settled(self, covers: Mapping[int, Cover], conditions: int) -> Share:
        """Give what conditions cover of attributes of which all regions have the same range."""
        share, everyone = Share.whole(conditions), np.arange(conditions)
        for cover in covers.values():
            if len(cover.shares) == 1:
                shares, states = cover.over(np.zeros(1, np.int64), everyone)
                share = share.of(shares[0], states[0])
        return share

    def _checked(self, weights: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Give weights as numbers, of which each leaf of an attribute has one."""
        leaves = {name: column.leaves for name, column in self.schema.predictors.items()}
        if self.schema.target is not None:
            leaves[self.schema.target] = len(self.schema.classes)
        for name in weights:
            if name not in leaves:
                known = f"It has {', '.join(list(leaves)[:20])}."
                raise QueryError(f"weights of {str(name)[:40]} must be of an attribute of this release", known)
        return {name: _finite(name, given, leaves[name]) for name, given in weights.items()}


def _finite(name: str, given: ArrayLike, leaves: int) -> Floats:
    """Read the weights of one attribute. Truth values are weights, too: 0 and 1."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty((0, 0), object)
    if found.dtype.kind not in "biuf" or found.shape != (leaves,) or not np.isfinite(found).all():
        told = f" ({len(found):,} numbers)" if found.dtype.kind in "biufc" and found.ndim == 1 else ""
        raise QueryError(
            f"weights of {name[:40]}{told} must be {leaves:,} finite numbers, one for each leaf",
            "Give 1 for a leaf that is meant and 0 for others.",
        )
    return found.astype(np.float64)
