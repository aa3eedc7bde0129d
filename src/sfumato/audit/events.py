"""Events by which releases of two neighbouring tables may be told apart, and the choice of the most telling one.

An event is a threshold on a number that is seen in a release. One more number is learnt: how much more often a shape
was met on one table than on the other, alone and together with the evidence of the counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bounds import epsilons_hinted
from sfumato.audit.observations import NUMBERS, Observations

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEARNT = ("the shape", "the shape and the evidence of all counts")
MOST_THRESHOLDS = 200
FEW = 2.0


@dataclass(frozen=True, eq=False)
class Event:
    """A number of a release reaches a threshold, from above or from below."""

    number: int
    threshold: float
    above: bool
    complete: bool
    """whether it should be more probable on the table with the record"""
    weights: Mapping[bytes, float]
    """what shapes count, if they do"""

    def happens(self, seen: Observations) -> Flags:
        """Tell in which releases it happens."""
        numbers = numbers_of(seen, self.weights)[:, self.number]
        return np.asarray(numbers >= self.threshold if self.above else numbers <= self.threshold)

    @property
    def words(self) -> str:
        """Say what happens."""
        name = (*NUMBERS, *LEARNT)[self.number]
        return f"{name} is at {'least' if self.above else 'most'} {self.threshold:.6g}"


@dataclass(frozen=True)
class Hint:
    """The most telling event among some releases, and about what it would show."""

    event: Event
    epsilon: float


def numbers_of(seen: Observations, weights: Mapping[bytes, float]) -> Floats:
    """Put what shapes count beside the other numbers; a shape that was never met counts nothing."""
    learnt = np.array([weights.get(shape, 0.0) for shape in seen.shapes])
    return np.column_stack([seen.numbers, learnt, learnt + seen.numbers[:, 0]])


def most_telling(complete: Observations, without: Observations) -> Hint:
    """Choose the event that would show most, of all thresholds on all numbers in both directions.

    What shapes count is learnt from every other release, and thresholds are compared on the rest: a shape that was met
    once by chance would else seem to tell something. What the event really shows is for other releases to tell.
    """
    weights = shape_weights(complete.every_other(0), without.every_other(0))
    both = [numbers_of(seen.every_other(1), weights) for seen in (complete, without)]
    hints = [
        hint
        for number in range(both[0].shape[1])
        for above in (True, False)
        for hint in _hints(both[0][:, number], both[1][:, number], number, above, weights)
    ]
    return max(hints, key=lambda hint: hint.epsilon)


def shape_weights(complete: Observations, without: Observations) -> dict[bytes, float]:
    """Give the logarithm of how many times more often each shape was met with the record; a few are added to both, so
    that rare shapes count little.
    """
    more, less = Counter(complete.shapes), Counter(without.shapes)
    return {shape: math.log((more[shape] + FEW) / (less[shape] + FEW)) for shape in more | less}


def _hints(complete: Floats, without: Floats, number: int, above: bool, weights: Mapping[bytes, float]) -> list[Hint]:
    """Give the best event of one number and direction, for either table."""
    thresholds = np.unique(np.concatenate([complete, without]))
    if len(thresholds) > MOST_THRESHOLDS:
        thresholds = np.unique(np.quantile(thresholds, np.linspace(0, 1, MOST_THRESHOLDS), method="nearest"))
    more, less = (_times(numbers, thresholds, above) for numbers in (complete, without))
    found = []
    for with_record, one, other in ((True, more, less), (False, less, more)):
        hinted = epsilons_hinted(one, other, len(complete))
        best = int(hinted.argmax())
        event = Event(number, float(thresholds[best]), above, with_record, weights)
        found.append(Hint(event, float(hinted[best])))
    return found


def _times(numbers: Floats, thresholds: Floats, above: bool) -> Floats:
    """Count how often each threshold is reached."""
    ordered = np.sort(numbers)
    if above:
        return np.asarray(len(ordered) - np.searchsorted(ordered, thresholds, side="left"), np.float64)
    return np.asarray(np.searchsorted(ordered, thresholds, side="right"), np.float64)
