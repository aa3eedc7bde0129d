"""Shapes of one attribute's histogram that are safe to choose: where bins end, and how many waves are kept.

A shape sees the records of every part of an attribute, in the whole table, and gives one integer for each of its public
candidates, in multiples of `unit`. Neighbouring tables differ by one record, which lies in one part: one count moves by
1. Each shape has its sensitivity, with the derivation of it, and none is monotone. A method makes a shape of `SHAPES`
from public numbers and cannot pass a function. Parts are the attribute's leaves or, where there are very many, ranges
of them (`geometry.contrasts.parts_of`).

Rounding. |floor(a) - floor(b)| < |a - b| + 1, so a number that is rounded down once adds a unit to the sensitivity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Integers
from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.contrasts import cosines, parts_of
from sfumato.privacy.selection import Scored
from sfumato.privacy.tally import Tally

MOST_IN_A_PART = 2**27
"""Counts above this are taken for it, so that nothing overflows: neighbours' still differ by 1 at most."""
DEAREST = 2**60
"""Prices are below this, so that nothing overflows."""
LARGEST_COUNT = 4_000_000
"""The largest bound of counts with which squares of them, in units, fit into 64 bits."""


@dataclass(frozen=True, eq=False)
class Shape(ABC):
    """Groups of candidates for the shape of one attribute's histogram; one of each group is chosen."""

    name: ClassVar[str]
    unit: ClassVar[Fraction] = Fraction(1, 2**8)
    monotone: ClassVar[bool] = False
    """whether adding a record moves every candidate's score in one direction"""

    tally: Tally
    attribute: int

    def __post_init__(self) -> None:
        """Refuse what the tally does not count, and candidates that are not there."""
        counted = type(self.attribute) is int and self.attribute in self.tally.attributes
        if not counted or self.tally.partition.regions != 1:
            raise PrivacyError("a shape must be of an attribute that the tally counts, in the whole table", BLAME)
        if not self._possible():
            raise PrivacyError("a shape must have candidates, and groups of different records", BLAME)

    @property
    @abstractmethod
    def sensitivity(self) -> Fraction:
        """How far one record can move one candidate's score, in the score's own terms (not in units)."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The number of candidates of each group."""

    @abstractmethod
    def _possible(self) -> bool: ...

    @abstractmethod
    def _scores(self, parts: Integers) -> Integers:
        """The score of each candidate, from the records of each part."""

    @cached_property
    def parts(self) -> int:
        """The number of parts of the attribute."""
        return len(self._borders) - 1

    @cached_property
    def _borders(self) -> Integers:
        return parts_of(self.tally.leaves(self.attribute))

    @property
    def candidates(self) -> int:
        """The number of candidates of all groups."""
        return sum(self.sizes)

    def scored(self, leaves: Integers) -> Scored:
        """Score all candidates by the records of each leaf."""
        parts = np.minimum(np.add.reduceat(leaves, self._borders[:-1]), self.most)
        return Scored.alone(self._scores(parts), np.concatenate(([0], np.cumsum(self.sizes))))

    @property
    def most(self) -> int:
        """Larger counts are taken for this."""
        return MOST_IN_A_PART


@dataclass(frozen=True, eq=False)
class Bisections(Shape):
    """Where to divide ranges of parts in two, or not at all (P-HPartition: Acs, Castelluccia, Chen 2012).

    A range [lo, hi) of w parts with counts x deviates from evenness by D = sum |x_i - mean|. A candidate scores minus
    the deviations of the bins it leaves, and minus `price` for each of these: what the noise of one more count costs.
    The first candidate leaves the range whole; the others divide it after its first, second, ... part.

    Sensitivity 2. Add a record to part i: the mean rises by 1/w, so |x_i - mean| moves by at most 1 - 1/w and the w - 1
    others by at most 1/w each: 2 (1 - 1/w) < 2 in all. The record lies in one bin of a candidate; prices are public. D
    is rounded down once, from an integer over w: one unit more. Ranges are disjoint, so a record moves one group's.
    """

    name: ClassVar[str] = "bisection"

    ranges: tuple[tuple[int, int], ...]
    price: int
    """in units"""

    def _possible(self) -> bool:
        ends = [end for one in self.ranges for end in one]
        inside = bool(ends) and ends[0] >= 0 and ends[-1] <= self.parts
        return inside and ends == sorted(ends) and all(lo < hi for lo, hi in self.ranges) and _is_price(self.price)

    @property
    def sensitivity(self) -> Fraction:
        """2 plus the rounding."""
        return 2 + self.unit

    @property
    def sizes(self) -> tuple[int, ...]:
        """The range as a whole, and its inner borders."""
        return tuple(hi - lo for lo, hi in self.ranges)

    def _scores(self, parts: Integers) -> Integers:
        return np.concatenate([self._divided(parts[lo:hi]) for lo, hi in self.ranges])

    def _divided(self, counts: Integers) -> Integers:
        first, second = self._deviations(counts), self._deviations(counts[::-1])[::-1]
        whole = -first[-1] - self.price
        return np.asarray(np.concatenate(([whole], -(first[:-1] + second[1:]) - 2 * self.price)))

    def _deviations(self, counts: Integers) -> Integers:
        """The deviations of the first part, the first two, ..., all: floor(sum |w x_i - s| / (w unit))."""
        widths, sums = np.arange(1, len(counts) + 1), np.cumsum(counts)
        apart = np.tril(np.abs(widths[:, None] * counts - sums[:, None])).sum(axis=1)
        return np.asarray(apart * self.unit.denominator // widths)


@dataclass(frozen=True, eq=False)
class LastBoundary(Shape):
    """Where the last of several bins begins (StructureFirst: Xu, Zhang, Xiao, Yang, Yu 2013).

    Of the parts before `end`, q stay for `bins` bins, the best there are, and the others are the last bin. A candidate
    q scores minus (E(q) + S(q, end)) / (2 F + 1): S is the sum of squares around a bin's mean, E the least sum of S
    over `bins` bins of the first q parts, and F a *public* bound of counts; larger counts are taken for F.

    Sensitivity 1. Add a record to part i of a bin of w parts with sum s. If x_i = F nothing moves. Else S moves by
    2 x_i + 1 - (2 s + 1) / w. That is at most 2 F + 1, and since s <= x_i + (w - 1) F it is more than -2 F. For one way
    to divide, one S moves; the least sum of several moves no further than the one that moves most. S is rounded down to
    a whole number, and then divided by 2 F + 1 and rounded down to a unit: 1 / (2 F + 1) and a unit more.
    """

    name: ClassVar[str] = "boundary"

    end: int
    bins: int
    largest: int
    """F"""

    def _possible(self) -> bool:
        whole = all(type(one) is int for one in (self.end, self.bins, self.largest))
        return whole and 1 <= self.bins < self.end <= self.parts and 1 <= self.largest <= LARGEST_COUNT

    @property
    def most(self) -> int:
        """F."""
        return self.largest

    @property
    def sensitivity(self) -> Fraction:
        """1 plus the rounding, rounded up to the grid."""
        return math.ceil((1 + Fraction(1, 2 * self.largest + 1)) / self.unit + 1) * self.unit

    @property
    def sizes(self) -> tuple[int, ...]:
        """The last bin may begin after so many parts as there are bins before it, or after more."""
        return (self.end - self.bins,)

    def _scores(self, parts: Integers) -> Integers:
        inside = self._squares(parts[: self.end])
        best = inside[0]
        for _ in range(1, self.bins):
            best = (best[:, None] + inside).min(axis=0)
        begins = np.arange(self.bins, self.end)
        return np.asarray(-(best[begins] + inside[begins, self.end]))

    def _squares(self, counts: Integers) -> Integers:
        """S of every range [i, j), in units; where there is none, far too much."""
        size = len(counts)
        running, squared = (np.concatenate(([0], np.cumsum(one))) for one in (counts, counts**2))
        widths = np.arange(size + 1) - np.arange(size + 1)[:, None]
        sums, squares = (one[None, :] - one[:, None] for one in (running, squared))
        apart = (np.maximum(widths, 1) * squares - sums**2) // np.maximum(widths, 1)
        return np.where(widths > 0, apart * self.unit.denominator // (2 * self.largest + 1), 2**53)


@dataclass(frozen=True, eq=False)
class WavesKept(Shape):
    """How many waves, of frequencies from 0 on, tell the counts (EFPA: Acs, Castelluccia, Chen 2012).

    A candidate k scores minus the length of what the other waves would tell, sqrt(sum of c_f^2 for f >= k) with c the
    orthonormal cosine coefficients, and minus `prices[k - 1]`: how long the noise of k waves is, which is public.

    Sensitivity 1. A record adds a vector of length 1 to the counts, whose part in the directions f >= k has length 1 at
    most, and lengths differ by no more than their difference's length. c is computed in floats: with m <= 512 parts of
    at most 2^27 people, a scalar product errs by at most m 2^-53 times both lengths, all of them together, as a length,
    by sqrt(m) times that: below 5e-3, which is two units, for each of two neighbours. With the rounding that is five.
    """

    name: ClassVar[str] = "waves"

    prices: tuple[int, ...]
    """in units, for 1, 2, ... waves"""

    def _possible(self) -> bool:
        return len(self.prices) == self.parts and all(map(_is_price, self.prices))

    @property
    def sensitivity(self) -> Fraction:
        """1 plus the rounding."""
        return 1 + 5 * self.unit

    @property
    def sizes(self) -> tuple[int, ...]:
        """One wave, two, ... as many as parts."""
        return (self.parts,)

    def _scores(self, parts: Integers) -> Integers:
        scale = np.full(self.parts, math.sqrt(2 / self.parts))
        scale[0] = math.sqrt(1 / self.parts)
        energy = (scale * (cosines(self.parts) @ parts)) ** 2
        left = np.sqrt(np.append(np.cumsum(energy[::-1])[::-1][1:], 0.0))
        return np.asarray(-np.floor(left * self.unit.denominator).astype(np.int64) - np.array(self.prices, np.int64))


def _is_price(given: object) -> bool:
    """Tell whether a price is whole, as scores must be, and leaves them room in 64 bits."""
    return type(given) is int and 0 <= given < DEAREST


SHAPES: dict[str, type[Shape]] = {one.name: one for one in (Bisections, LastBoundary, WavesKept)}
"""The shapes by name: the only ones that the meter chooses by."""
