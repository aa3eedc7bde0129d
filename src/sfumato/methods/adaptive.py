"""Growing a tree as far as its budget can tell: our schedule for DiffMulti.

Every region pays for its choice what the choice needs, and no more. Let `mass` be the records that a specialization
could still put right: outside the majority class for scores that look at classes, all of them for the others; a noisy
count plus one standard deviation, so that noise alone ends no branch. Among N candidates, permute-and-flip loses more
than ln(N) / rate with small probability, so a rate of

    SHARPNESS * ln(N) / mass

tells gains of 1 / SHARPNESS of the mass apart (twice that for scores which are not monotone). Masses shrink along a
path, so prices grow, and a region stops when its price is more than PATIENCE of what its path has left, or would touch
the RESERVE for its counts, which all the rest then buys. Depth, size and purity need no parameters: they follow from n,
epsilon and what was found. The class counts that are bought on the way decide prices and weights, and make the final
counts more precise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.choices import Choices, Ways
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.methods.boxes import Divisions
from sfumato.methods.levels import Grown, Level, describe_level
from sfumato.privacy.budget import GRAIN, grains_of
from sfumato.privacy.noisy import NodeCounts, Noisy
from sfumato.privacy.scores import SCORES, BalancedMax, Score, Selection, sides
from sfumato.schema import Schema

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ROOT_SHARE = Fraction(1, 50)
"""Of the budget without margins, for the class counts of the whole table, where everything begins."""
SHARPNESS = 2
"""A choice should tell gains of one part in so many of a region's mass apart: of a half, which an even specialization
always gains;"""
SHARPNESS_OF_CLASSES = 8
"""of an eighth where a score looks at classes, which a specialization parts only a little."""
PATIENCE = Fraction(3, 4)
"""A choice may cost at most this share of what its path has left,"""
RESERVE = Fraction(1, 5)
"""and must leave this share of the budget for the counts."""
SIZE_PRECISION = 10
"""Children's class counts should have noise of about one part in so many of their parent's mass,"""
SIZE_SHARE = Fraction(1, 5)
"""for at most this share of what their path has left."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the places of a level: noisy counts by class, each with the same variance."""

    counts: Floats
    variances: Floats

    @classmethod
    def of(cls, noisy: Noisy) -> Known:
        """Begin with a measurement."""
        return cls(noisy.counts.astype(np.float64), noisy.variances)

    def of_children(self, parents: Integers, noisy: Noisy) -> Known:
        """Combine the children's own counts with their parents': the discrepancy is shared in proportion to variance.

        With D = parent - sum of children, of variance w = v_parent + sum of v, child c moves by D v_c / w, and its
        variance falls by v_c^2 / w: the best linear estimate.
        """
        own = Known.of(noisy)
        sums = np.zeros_like(self.counts)
        np.add.at(sums, parents, own.counts)
        spread = self.variances + np.bincount(parents, own.variances, len(self.variances))
        part = own.variances / spread[parents]
        return Known(own.counts + (self.counts - sums)[parents] * part[:, None], own.variances - own.variances * part)

    @property
    def sizes(self) -> Floats:
        """The number of records, plus one standard deviation, at least 1."""
        deviations = np.sqrt(self.variances * self.counts.shape[1])
        return np.asarray(np.maximum(np.maximum(self.counts.sum(axis=1), 0) + deviations, 1.0))

    @property
    def outside_majority(self) -> Floats:
        """The number of records outside the majority class, plus one standard deviation, at least 1."""
        outside = self.counts.sum(axis=1) - self.counts.max(axis=1)
        return np.asarray(np.maximum(np.maximum(outside, 0) + np.sqrt(self.variances), 1.0))


@dataclass(frozen=True, kw_only=True)
class AdaptiveGrowth:
    """The loop: price, choose, refine, measure."""

    meter: Meter
    schema: Schema
    score: str
    selection: Selection
    fair: bool
    depth: int
    budget: Fraction

    def grow(self, specializations: int, root: Fraction) -> Grown:
        """Grow until no region can pay for another choice, or may have one."""
        level = Level.first(self.schema, specializations)
        noisy = self.meter.measure(Cells(level.tally), root, "size of the table")
        known, earlier = Known.of(noisy), [NodeCounts(level.tree.leaves, noisy)]
        steps: list[str] = []
        for number in range(1, self.depth + 1):
            ways, prices = self._affordable(level, known)
            if not len(ways):
                break
            choices = Choices.by_place(level.tally, ways)
            chosen = self.meter.select(choices, self._score(known), prices, f"choice {number}", self.selection)
            steps.append(describe_level(number, chosen, list(self.schema.predictors)))
            tally, parents = level.refined(chosen)
            noisy = self.meter.measure(Cells(tally), self._size_prices(tally, known, parents), f"sizes {number}")
            known = known.of_children(parents, noisy)
            earlier.append(NodeCounts(np.asarray(tally.nodes), noisy))
            level = Level(tally, level.shared(chosen, self._sizes(known), self.meter.lots(tally.places)))
        counts = self.meter.measure_with_rest(Cells(Tally(level.tree, level.tally.classes)), "counts")
        return Grown(level.tree, counts, tuple(steps), tuple(earlier))

    def _affordable(self, level: Level, known: Known) -> tuple[Ways, Integers]:
        """Give the ways of the places that can and may be specialized, and what each place pays to choose."""
        live = np.flatnonzero(level.shares > 0)
        ways = self._divisions.ways(level.boxes[live], live)
        candidates = np.bincount(ways.places, ways.candidates, level.tally.places)
        score = SCORES[self.score]
        sharpness = sides(score, self.selection) * (SHARPNESS_OF_CLASSES if score.needs_classes else SHARPNESS)
        prices = self._in_grains(sharpness * np.log(np.maximum(candidates, 2)) / self._mass(known))
        rest = self.meter.rest(level.tally)
        going = (candidates > 0) & (prices <= rest * PATIENCE.numerator // PATIENCE.denominator)
        going &= prices <= rest - self._reserve
        return ways.take(going[ways.places]), prices[going]

    def _size_prices(self, tally: Tally, known: Known, parents: Integers) -> Integers:
        wanted = self._in_grains(SIZE_PRECISION / self._mass(known))[parents]
        limit = self.meter.rest(tally) * SIZE_SHARE.numerator // SIZE_SHARE.denominator
        return np.minimum(wanted, limit)

    def _sizes(self, known: Known) -> Integers:
        """Give what specializations are shared out by."""
        return np.asarray(np.rint(known.sizes) if self.fair else np.ones(len(known.counts)), np.int64)

    @cached_property
    def _divisions(self) -> Divisions:
        return Divisions(list(self.schema.predictors.values()))

    @property
    def _reserve(self) -> int:
        return grains_of(self.budget * RESERVE)

    def _mass(self, known: Known) -> Floats:
        return known.outside_majority if SCORES[self.score].needs_classes else known.sizes

    def _score(self, known: Known) -> Score:
        if self.score != BalancedMax.name:
            return SCORES[self.score]()
        return BalancedMax.halfway(np.maximum(known.counts, np.sqrt(known.variances)[:, None]))

    @staticmethod
    def _in_grains(prices: Floats) -> Integers:
        return np.asarray(np.ceil(prices / float(GRAIN)), np.int64)
