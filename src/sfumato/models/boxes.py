"""Groups that overlap, made of a sample of the records: no noise, but the luck of the draw.

Each record was drawn with probability b, apart from all others. A published count c stands for c / b people; the number
drawn is binomial, so the variance of that is about c (1 - b) / b^2, and of a sum of groups weighted by w the sum of
w^2 c (1 - b) / b^2. Records that were suppressed are not stood for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.errors import ReleaseError
from sfumato.geometry.regions import Boxes
from sfumato.models.covering import Combinations
from sfumato.models.model import UNMEASURED, Cause, Description, Listing, Nonnegative, Ribbon, percent, refuse_unknown
from sfumato.models.regions import RegionModel
from sfumato.privacy.measurements import Draft, Noisy, Question
from sfumato.schema.schema import Schema

MOST_AT_ONCE = 2**22
"""So many numbers of queries and groups are held at a time."""
KINDS = ("single value", "range or category", "anything")


class BoxModel(RegionModel):
    """Exact counts of a sample in groups that may overlap."""

    cause: ClassVar[Cause] = "sampling"
    exact: ClassVar[bool] = True

    def __init__(self, schema: Schema, draft: Draft) -> None:
        """Refuse groups without people."""
        super().__init__(schema, draft)
        boxes = draft.structure
        if not isinstance(boxes, Boxes) or len(self.own) != 1 or not self.own[0].counts.any(axis=1).all():
            raise ReleaseError(*UNMEASURED)
        self.boxes, self.sampling = boxes, float(boxes.sampling)

    @staticmethod
    def reads(question: Question) -> bool:
        """Read counts of boxes."""
        return not question.regions.disjoint

    @property
    def counts(self) -> Noisy:
        """The published counts."""
        return self.own[0].noisy

    @cached_property
    def values(self) -> Floats:
        """The people for whom the published records stand."""
        return np.asarray(self.counts.counts / self.sampling)

    @property
    def variances(self) -> Floats:
        """The variance of a group's count, all classes together."""
        rate = self.boxes.sampling
        return np.asarray(self.counts.counts.sum(axis=1) * float((1 - rate) / rate**2))

    @property
    def total(self) -> int:
        """The people of whom the published records are a sample."""
        return round(int(self.counts.counts.sum()) / self.boxes.sampling)

    @property
    def shown(self) -> Integers:
        """The published counts."""
        return self.counts.counts

    def people(self, how: Nonnegative) -> Integers:
        """Take the published counts."""
        refuse_unknown(how)
        return self.counts.counts

    def covering(self, regions: Booleans) -> tuple[Integers, Floats]:
        """Take the groups themselves, which have nothing above them."""
        return self.boxes.ranges[regions], self.values[regions]

    def majorities(self) -> Integers:
        """Find the class of the largest count, the first of equals."""
        return np.asarray(np.argmax(self.counts.counts, axis=1))

    def own_variances(self, weights: Floats, found: Combinations) -> Floats:
        """Add up what the draw of each group's records may be off by, by class."""
        rate = self.boxes.sampling
        return np.asarray(weights**2 @ found.values * float((1 - rate) / rate))

    def own_query(self, _: np.random.Generator) -> Mapping[int, Integers] | None:
        """Have none: who lies in a group may lie in another."""
        return None

    def describe(self) -> Description:
        """Tell how general the published records are, attribute by attribute."""
        people = np.maximum(self.counts.counts.sum(axis=1), 0).astype(np.float64)
        widths = self.boxes.ranges[:, :, 1] - self.boxes.ranges[:, :, 0]
        total, ribbons = max(float(people.sum()), 1.0), []
        for at, (name, leaves) in enumerate(zip(self.schema.predictors, self.boxes.shape, strict=True)):
            single = widths[:, at] == 1
            whole = ~single & (widths[:, at] == leaves)
            shares = [float(people[which].sum()) / total for which in (single, ~single & ~whole, whole)]
            ribbons.append(Ribbon(name, tuple(zip(KINDS, shares, strict=True)), len(KINDS)))
        rows = tuple((one.attribute, *(percent(share) for _, share in one.parts)) for one in ribbons)
        return Description(
            title="The groups",
            words=f"{self.groups:,} groups of records, each generalized just as far as its records needed. Groups may "
            "overlap: a person may fit several. Below, how generally each attribute was published, in shares of "
            "records.",
            told_apart=self.boxes.split_attributes,
            ribbons=tuple(ribbons),
            caption="Plain: a single value. Striped: a range or category. Dotted: anything.",
            textures=True,
            listings=(Listing("The same in numbers", ("attribute", *KINDS), rows, (1, 2, 3)),),
        )
