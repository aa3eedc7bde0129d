"""Which split of every region of a level a promise allows, and which of those is best: all regions at once.

A categorical value is divided as its taxonomy says, an interval in two at the border that is best by the score. A split
is allowed if the promise holds of every child that holds someone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Numeric
from sfumato.counts.choices import Ways
from sfumato.counts.tally import Breakdown, Counts, Tally
from sfumato.methods.boxes import NO_SPLIT, Divisions
from sfumato.promises import KAnonymity
from sfumato.schema import Predictor
from sfumato.syntactic.information import DECIMALS, Floats, Integers, doubt

SplitScore = Literal["median", "infogain"]


@dataclass(frozen=True, eq=False)
class LevelSplits:
    """The regions of one level, counted, and what may be done with each."""

    attributes: Sequence[Predictor]
    tally: Tally
    counts: Counts
    promise: KAnonymity
    score: SplitScore

    def best(self, divisions: Divisions, boxes: NDArray[np.int32]) -> Ways:
        """Give the best allowed split of every region that has one.

        By `median` it is the one along the widest attribute; by `infogain` the one that leaves least doubt about the
        class and, of those, the one along the widest.
        """
        ways = divisions.ways(boxes[self._held], self._held, self._borders()[self._held])
        allowed, doubts, spans = self._judge(ways)
        kept = np.flatnonzero(allowed)
        order = kept[np.lexsort((-spans[kept], doubts[kept], ways.places[kept]))]
        return ways.take(order[np.flatnonzero(np.diff(ways.places[order], prepend=-1))])

    @cached_property
    def _held(self) -> Integers:
        """The places that hold someone."""
        return np.flatnonzero(self.counts.by_place.any(axis=1))

    def _borders(self) -> Integers:
        """Give the best border of every interval: places x attributes."""
        borders = np.full((self.tally.places, len(self.attributes)), NO_SPLIT, np.int64)
        for attribute, breakdown in self.counts.by_leaf.items():
            if isinstance(self.attributes[attribute], Numeric):
                places, found = self._best_borders(breakdown)
                borders[places, attribute] = found
        return borders

    def _best_borders(self, breakdown: Breakdown) -> tuple[Integers, Integers]:
        """Give places with an allowed border, and the best border of each.

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
        if self.score == "median":
            return np.asarray(np.minimum(left.sum(axis=1), right.sum(axis=1)), np.float64)
        return np.asarray(-np.round(doubt(left) + doubt(right), DECIMALS))

    def _judge(self, ways: Ways) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """Tell of each way whether it is allowed, the doubt that it leaves (if asked for), and its attribute's span."""
        allowed, doubts, spans = np.zeros(len(ways), np.bool_), np.zeros(len(ways)), np.zeros(len(ways))
        for attribute, breakdown in self.counts.by_leaf.items():
            these = np.flatnonzero(ways.attributes == attribute)
            if not len(these):
                continue
            children, starts = counts_of_children(breakdown, ways.take(these))
            fine = self.promise.holds(children) | ~children.any(axis=1)
            allowed[these] = np.logical_and.reduceat(fine, starts)
            spans[these] = _spans(breakdown, ways.places[these])
            if self.score == "infogain":
                doubts[these] = np.round(np.add.reduceat(doubt(children), starts), DECIMALS)
        return allowed, doubts, spans


def counts_of_children(breakdown: Breakdown, ways: Ways) -> tuple[Integers, Integers]:
    """Count the children of ways along one attribute (children x classes), and tell where each way's begin."""
    lows, highs = np.delete(ways.borders, ways.starts[1:] - 1), np.delete(ways.borders, ways.starts[:-1])
    counts = breakdown.between(np.repeat(ways.places, ways.children), lows, highs)
    return counts, np.cumsum(ways.children) - ways.children


def _spans(breakdown: Breakdown, places: Integers) -> Floats:
    """Give the width that the records of places have: from the first to the last leaf, 1 being the whole attribute."""
    first, last = breakdown.ends(places)
    return (last - first) / (breakdown.leaves - 1)
