"""Neighbouring tables, what is seen in their releases, and how well an event tells them apart.

**Pairs.** The tables lie on a tiny public domain, those on which mistakes are most likely to show. Few cells, so that
every event is frequent; and the one record stands where code is tempted to look: in an empty table, alone in a leaf or
a class, at the end of a range, where it breaks a tie.

**Numbers.** Someone who knows both tables sees numbers in a release that tell on which one it was made, and its shape.
The two tables agree but for one record. So of every measurement the cell that would hold that record tells something:
the noisy count y of a cell that holds c others is exp(rate) times as likely with the record if y > c, and so much less
likely if not. Added up, that is the most that noise can tell; the other numbers do not rely on what is claimed.

**Events.** An event is a threshold on a number that is seen in a release. One more number is learnt: how much more
often a shape was met on one table than on the other, alone and together with the evidence of the counts.

**Bounds.** From how often an event was seen follows what must be true of its probability, with a stated confidence.
They are exact binomial tails (Clopper and Pearson, 1934), so that a bound fails no more often than it says, also for
rare events.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import Debit, Draft, Measurement, Schema
from sfumato.arrays import NONE, Booleans, Floats, Integers

Record = tuple[int, ...]
"""Codes of a record: leaf of job, leaf of age, class."""
SCHEMA = Schema.loads("""
name: neighbours
confirmed: true
attributes:
  job: {kind: categorical, taxonomy: {Office: [Clerk, Judge], Field: [Farmer]}}
  age: {kind: numeric, lower: 0, upper: 3, missing: Unknown}
  class: {kind: class, taxonomy: [Yes, No]}
""")
"""The public domain of the tables."""
COMMON, OTHER, LAST, UNKNOWN = (0, 0, 0), (1, 1, 0), (2, 3, 1), (2, 4, 1)
"""Records that the tables are made of."""
CROWD = (COMMON,) * 60 + (LAST,) * 60
"""Many records on two sides."""
NUMBERS = (
    "the evidence of all counts",
    "the evidence of the groups' counts",
    "the count of the record's cell",
    "the number of counts of the record's group that exceed the others there",
    "the total of all counts",
    "the largest count",
    "the smallest count",
    "the number of counts that are 0",
    "the number of groups",
    "the epsilon that was paid",
)
"""What is seen in a release, by number."""
LEARNT = ("the shape", "the shape and the evidence of all counts")
"""The numbers that are learnt from shapes, after those."""
HALVINGS = 60
"""How often an interval is halved to find a probability."""
MOST_THRESHOLDS = 200
"""The most thresholds that are tried on a number."""
FEW = 2.0
"""How many sightings are added to those of every shape."""


@dataclass(frozen=True)
class Pair:
    """A table, and one record more."""

    name: str
    rows: tuple[Record, ...]
    record: Record

    def table(self, *, complete: bool) -> NDArray[np.uint8]:
        """The coded rows of the table with the record, or without it."""
        rows = [*self.rows, self.record] if complete else [*self.rows]
        return np.array(rows, np.uint8).reshape(len(rows), len(self.record))


PAIRS = (
    Pair("nobody, and one record", (), COMMON),
    Pair("one record, and two alike", (COMMON,), COMMON),
    Pair("ten alike, and one of another class in a leaf of its own", (COMMON,) * 10, LAST),
    Pair("ten alike, and one whose number is missing", (COMMON,) * 10, UNKNOWN),
    Pair("two of two classes, and one that breaks the tie", ((0, 0, 0), (0, 2, 1)), (1, 1, 1)),
    Pair("a crowd, and one more on its side", CROWD, COMMON),
    Pair("a crowd, and one between", CROWD, OTHER),
)
"""The pairs that an attack tries."""


@dataclass(frozen=True, eq=False)
class Observations:
    """What was seen in several releases: runs x numbers, and the shape of each."""

    numbers: Floats
    shapes: tuple[bytes, ...]

    def __len__(self) -> int:
        """The number of releases."""
        return len(self.shapes)

    def every_other(self, first: int) -> Observations:
        """Keep every second release, from the first or the second one on."""
        return Observations(self.numbers[first::2], self.shapes[first::2])


def observed(draft: Draft, debits: tuple[Debit, ...], pair: Pair) -> tuple[list[float], bytes]:
    """The numbers and the shape of one release: every measurement is looked at alike, whatever its question."""
    counts = draft.final.counts
    own = [_own_cell(one, pair) for one in reversed(draft.measurements)]
    evidence = [float(rate) if count > others else -float(rate) for count, others, rate in filter(None, own)]
    numbers = [
        sum(evidence),
        evidence[0] if evidence else 0.0,
        float(own[0][0]) if own[0] else 0.0,
        float(_exceeding(draft.final, pair)),
        float(counts.sum()),
        float(counts.max()),
        float(counts.min()),
        float((counts == 0).sum()),
        float(len(counts)),
        float(sum((debit.epsilon for debit in debits), Fraction(0))),
    ]
    return numbers, shape_of(draft, debits)


def shape_of(draft: Draft, debits: tuple[Debit, ...]) -> bytes:
    """Digest all that a release tells apart from numbers: structure, questions, steps and rounds."""
    told = (
        draft.model,
        draft.structure.plain(),
        [(one.label, one.question.plain(draft.structure), one.question.shape) for one in draft.measurements],
        draft.steps,
        [(debit.label, debit.mechanism.split(",")[0], debit.sensitivity, debit.cells) for debit in debits],
    )
    return hashlib.blake2b(repr(told).encode(), digest_size=8).digest()


def _own_cell(one: Measurement, pair: Pair) -> tuple[int, int, Fraction] | None:
    """The noisy count of the record's cell, how many others it holds, and its rate; None if the record lies in none.

    Of contrasts, that on which the record weighs most; counted so that the record adds to it.
    """
    if one.question.contrast is not None:
        return _own_contrast(one, one.question.contrast, pair)
    places = _places(one, pair)
    mine, label = int(places[-1]), pair.record[-1] if one.question.classes > 1 else 0
    if mine == NONE:
        return None
    alike = [
        int(place) == mine and (one.question.classes == 1 or row[-1] == label)
        for place, row in zip(places[:-1].tolist(), pair.rows, strict=True)
    ]
    return int(one.counts[mine, label]), sum(alike), one.noisy.rates[one.noisy.rate_of[mine]]


def _own_contrast(one: Measurement, contrast: Any, pair: Pair) -> tuple[int, int, Fraction] | None:
    (attribute,) = one.question.attributes
    codes = pair.table(complete=True)[:, attribute]
    own, others = (
        contrast.of(np.add.reduceat(np.bincount(some, minlength=contrast.leaves), contrast.borders[:-1]))
        for some in (codes[-1:], codes[:-1])
    )
    row = int(np.abs(own).argmax())
    sign = int(np.sign(own[row]))
    return (
        (sign * int(one.counts[row, 0]), sign * int(others[row]), one.noisy.rates[0] * abs(int(own[row])))
        if sign
        else None
    )


def _exceeding(one: Measurement, pair: Pair) -> int:
    """The number of classes that the record's group counts more of than the others there are."""
    places = _places(one, pair)
    mine = int(places[-1])
    labels = [row[-1] for row, place in zip(pair.rows, places[:-1].tolist(), strict=True) if place == mine]
    counts = one.counts[mine]
    return int((counts > np.bincount(labels, minlength=len(counts))[: len(counts)]).sum())


def _places(one: Measurement, pair: Pair) -> Integers:
    """The place that holds each of the others, and the record last."""
    table = pair.table(complete=True)
    return one.question.places_of(list(table.T[:-1]))


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

    def happens(self, seen: Observations) -> Booleans:
        """In which releases the event happens."""
        numbers = numbers_of(seen, self.weights)[:, self.number]
        return np.asarray(numbers >= self.threshold if self.above else numbers <= self.threshold)

    @property
    def words(self) -> str:
        """What happens, in words."""
        name = (*NUMBERS, *LEARNT)[self.number]
        return f"{name} is at {'least' if self.above else 'most'} {self.threshold:.6g}"


@dataclass(frozen=True)
class Hint:
    """The most telling event among some releases, and about what it would show."""

    event: Event
    epsilon: float


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


def numbers_of(seen: Observations, weights: Mapping[bytes, float]) -> Floats:
    """Put what shapes count beside the other numbers; a shape that was never met counts nothing."""
    learnt = np.array([weights.get(shape, 0.0) for shape in seen.shapes])
    return np.column_stack([seen.numbers, learnt, learnt + seen.numbers[:, 0]])


def shape_weights(complete: Observations, without: Observations) -> dict[bytes, float]:
    """The logarithm of how many times more often each shape was met with the record than without.

    A few sightings are added to both, so that rare shapes count little.
    """
    more, less = Counter(complete.shapes), Counter(without.shapes)
    return {shape: math.log((more[shape] + FEW) / (less[shape] + FEW)) for shape in more | less}


def _hints(complete: Floats, without: Floats, number: int, above: bool, weights: Mapping[bytes, float]) -> list[Hint]:
    """The best event of one number and direction, for either table."""
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
    """How often each threshold is reached."""
    ordered = np.sort(numbers)
    if above:
        return np.asarray(len(ordered) - np.searchsorted(ordered, thresholds, side="left"), np.float64)
    return np.asarray(np.searchsorted(ordered, thresholds, side="right"), np.float64)


def epsilon_shown(more: int, less: int, runs: int, confidence: float) -> float:
    """A lower bound of epsilon, from how often an event was seen on two neighbouring tables.

    Each of the two probabilities may be beyond its bound with half of the doubt, so both hold with the confidence.

    >>> round(epsilon_shown(7310, 2690, 10_000, 0.95), 2)
    0.96
    """
    doubt = (1 - confidence) / 2
    low, high = lower_chance(more, runs, doubt), upper_chance(less, runs, doubt)
    return max(math.log(low / high), 0.0) if low > 0 else 0.0


def lower_chance(seen: int, runs: int, doubt: float) -> float:
    """A lower bound of an event's probability that fails with probability `doubt` at most.

    Were the probability smaller, the event would be seen so often, or more often, with probability `doubt` at most.

    >>> round(lower_chance(5, 10, 0.025), 4), lower_chance(0, 10, 0.025)
    (0.1871, 0.0)
    """
    if seen == 0:
        return 0.0
    low, high = 0.0, seen / runs
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(seen, runs, middle) <= doubt else (low, middle)
    return low


def upper_chance(seen: int, runs: int, doubt: float) -> float:
    """An upper bound of an event's probability that fails with probability `doubt` at most."""
    return 1.0 - lower_chance(runs - seen, runs, doubt)


def epsilons_hinted(more: Floats, less: Floats, runs: int) -> Floats:
    """About what events would show, of all events at once, to rank them: Wilson's bounds at three deviations."""
    low, high = _wilson(more / runs, runs, -3.0), _wilson(less / runs, runs, 3.0)
    return np.log(np.maximum(low, 1e-12) / high)


def _wilson(share: Floats, runs: int, deviations: float) -> Floats:
    square = deviations**2
    middle = share + square / (2 * runs)
    reach = deviations * np.sqrt(share * (1 - share) / runs + square / (4 * runs**2))
    return np.asarray((middle + reach) / (1 + square / runs))


def _at_least(seen: int, runs: int, chance: float) -> float:
    """The probability that an event of this chance is seen so often or more often."""
    if chance == 0.0:
        return 0.0
    times = np.arange(seen, runs + 1)
    return float(
        np.exp(_log_binomials(runs)[seen:] + times * math.log(chance) + (runs - times) * math.log1p(-chance)).sum()
    )


@lru_cache(maxsize=4)
def _log_binomials(runs: int) -> Floats:
    """The logarithms of the binomial coefficients: how many sets of 0, 1, 2, ... runs there are."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, runs + 1)))))
    return np.asarray(factorials[-1] - factorials - factorials[::-1])
