"""Growing a tree as the DiffMulti paper does: the same price on every level down to a depth fixed before.

Two things differ from its algorithm, because it would leak: noisy sizes alone share out specializations (equation 10
asks whether a child is empty and divides by exact sizes), and split points are grid points of the declared range. As
in its experiments, the leaves' counts also get what the longest path did not use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Numeric
from sfumato.counts.choices import Choices, Ways
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.methods.boxes import NO_SPLIT, Divisions
from sfumato.methods.levels import Grown, Level, describe_level
from sfumato.privacy.budget import payable
from sfumato.privacy.scores import Score, Selection
from sfumato.schema import Predictor, Schema

Integers = NDArray[np.int64]


def rounds_of_level(number: int, choice: str) -> tuple[str, ...]:
    """Name the rounds of a level."""
    rounds = (f"choice {number}", f"size {number}")
    return (f"split {number}", *rounds) if choice == "separate" else rounds


@dataclass(frozen=True, kw_only=True)
class PublishedGrowth:
    """The loop: find split points, choose, refine, measure sizes."""

    meter: Meter
    schema: Schema
    score: Score
    selection: Selection
    fair: bool
    prices: Mapping[str, Fraction]
    separate: bool

    def grow(self, specializations: int, depth: int) -> Grown:
        """Grow to the depth, or until no region can or may be specialized; then spend on the counts all that the
        longest path left.
        """
        level = Level.first(self.schema, specializations)
        splits = self._first_splits(level)
        steps: list[str] = []
        for number in range(1, depth + 1):
            live = np.flatnonzero(level.shares > 0)
            own = splits[live] if self.separate else None
            ways = self._divisions.ways(level.boxes[live], live, own)
            if not len(ways):
                break
            chosen = self._choose(level.tally, ways, f"choice {number}")
            steps.append(describe_level(number, chosen, list(self.schema.predictors)))
            tally, parents = level.refined(chosen)
            level = Level(tally, level.shared(chosen, self._sizes(tally, number), self.meter.lots(tally.places)))
            splits = self._inherited(splits[parents], chosen, level, number)
        counts = self.meter.measure(Cells(Tally(level.tree, level.tally.classes)), payable(self.meter.left), "counts")
        return Grown(level.tree, counts, tuple(steps))

    @cached_property
    def _divisions(self) -> Divisions:
        return Divisions(self._attributes)

    @property
    def _attributes(self) -> Sequence[Predictor]:
        return list(self.schema.predictors.values())

    def _choose(self, tally: Tally, ways: Ways, label: str) -> Ways:
        return self.meter.select(Choices.by_place(tally, ways), self.score, self.prices[label], label, self.selection)

    def _first_splits(self, level: Level) -> Integers:
        """Choose a split point for every numeric attribute of the root."""
        splits = np.full((1, len(self._attributes)), NO_SPLIT, np.int64)
        for index, (name, attribute) in enumerate(self.schema.predictors.items()):
            if self.separate and isinstance(attribute, Numeric) and attribute.leaves > 1:
                every = Ways.splits(0, index, 0, attribute.leaves)
                splits[0, index] = self._choose(level.tally, every, f"first split of {name}").borders[1]
        return splits

    def _inherited(self, splits: Integers, chosen: Ways, level: Level, number: int) -> Integers:
        """Let children keep their parents' split points, but for an interval that was just divided choose anew."""
        if not self.separate:
            return splits
        places = np.arange(level.tally.places)
        divided = np.repeat(chosen.attributes, chosen.children)
        splits[places, divided] = NO_SPLIT
        numeric = np.array([isinstance(attribute, Numeric) for attribute in self._attributes])
        ranges = level.boxes[places, divided].astype(np.int64)
        new = np.flatnonzero(numeric[divided] & (ranges[:, 1] - ranges[:, 0] > 1) & (level.shares > 0))
        label = f"split {number + 1}"
        if len(new) and label in self.prices:
            ways = Ways(new, divided[new], ranges[new].ravel(), np.arange(len(new) + 1) * 2)
            splits[new, divided[new]] = self._choose(level.tally, ways, label).borders[1::3]
        return splits

    def _sizes(self, tally: Tally, number: int) -> Integers:
        """Buy what specializations are shared out by, unless evenly."""
        if not self.fair:
            return np.ones(tally.places, np.int64)
        label = f"size {number}"
        return self.meter.measure(Cells(tally, "place"), self.prices[label], label).counts[:, 0]
