"""Range counts from groups that overlap, made of a sample of the records: no noise, but the luck of the draw.

Each record was drawn with probability b, apart from all others. A published count c stands for c / b people; the number
drawn is binomial, so the variance of that is about c (1 - b) / b^2, and of a sum of groups weighted by w the sum of
w^2 c (1 - b) / b^2. Records that were suppressed are not stood for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.geometry.boxes import Boxes
from sfumato.models.estimates import Estimates
from sfumato.models.model import PARTLY, WHOLE, Cause, Cover, Share, Sums
from sfumato.models.projection import Nonnegative, refuse_unknown
from sfumato.models.regions import Sides

MOST_AT_ONCE = 2**22
"""So many numbers of conditions and groups are held at a time."""


@dataclass(frozen=True, eq=False)
class BoxEstimates(Estimates):
    """Exact counts of a sample in groups that may overlap."""

    boxes: Boxes
    counts: Integers
    sampling: Fraction

    @cached_property
    def values(self) -> Floats:
        """The people for whom the published records stand."""
        return np.asarray(self.counts / float(self.sampling))

    @property
    def variances(self) -> Floats:
        """The variance of a group's count, all classes together."""
        return np.asarray(self.counts.sum(axis=1) * float((1 - self.sampling) / self.sampling**2))

    @property
    def total(self) -> int:
        """The people of whom the published records are a sample."""
        return round(int(self.counts.sum()) / self.sampling)

    @property
    def shown(self) -> Integers:
        """The published counts."""
        return self.counts

    def people(self, how: Nonnegative) -> Integers:
        """Give the published counts."""
        refuse_unknown(how)
        return self.counts

    def covering(self, regions: NDArray[np.bool_]) -> tuple[Integers, Floats]:
        """Give the groups themselves, which have nothing above them."""
        return self.boxes.ranges[regions], self.values[regions]

    def majorities(self) -> Integers:
        """Give the class of the largest count, the first of equals."""
        return np.asarray(np.argmax(self.counts, axis=1))


@dataclass(frozen=True, eq=False)
class BoxAnswers:
    """Groups that are asked."""

    cause: ClassVar[Cause] = "sampling"

    estimates: BoxEstimates
    sides: Sequence[Sides]

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges that groups have of each attribute."""
        return {attribute: side.ranges for attribute, side in enumerate(self.sides)}

    def sums(self, covers: Mapping[int, Cover], share: Share) -> Sums:
        """Weigh every group by the product of its ranges' covers; the share is what all groups have alike."""
        people = self.estimates.values
        values, resolved, variances = (np.zeros((len(share.weights), people.shape[1])) for _ in range(3))
        sums = Sums(values, resolved, variances, np.ones(len(share.weights), np.bool_))
        most = max(1, MOST_AT_ONCE // max(len(people), 1))
        everyone = np.arange(len(share.weights))
        for asking in np.split(everyone, np.arange(most, len(everyone), most)):
            self._ask(sums, covers, asking, share.among(asking))
        return sums

    def _ask(self, sums: Sums, covers: Mapping[int, Cover], asking: Integers, share: Share) -> None:
        people, sampling = self.estimates.values, self.estimates.sampling
        groups = np.arange(len(people))
        weights, states = np.tile(share.weights, (len(groups), 1)), np.tile(share.states, (len(groups), 1))
        for attribute, cover in covers.items():
            if len(self.ranges[attribute]) > 1:
                shares, covered = cover.over(self.sides[attribute].number(groups), asking)
                weights *= shares
                states |= covered
        sums.values[asking] = weights.T @ people
        sums.resolved[asking] = (states == WHOLE).astype(np.float64).T @ people
        sums.variances[asking] = (weights**2).T @ people * float((1 - sampling) / sampling)
        sums.aligned[asking] = ~(states == PARTLY).any(axis=0)
