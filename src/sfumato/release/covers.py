"""How much of each range of an attribute many conditions cover, and what they find there.

Few ranges of one attribute occur however many regions there are, and what a condition covers of a range is the
difference of two running sums at its borders; so all of it is found at once, before any region is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.partition import Indices
from sfumato.release.spread import Spread

Floats = NDArray[np.float64]
States = NDArray[np.uint8]

WHOLE, PARTLY, UNTOUCHED = 0, 1, 2
"""How a condition covers a range. Over several attributes the bits are joined: below `PARTLY` all is covered, from
`UNTOUCHED` on nothing is."""


@dataclass(frozen=True, eq=False)
class Cover:
    """What conditions cover of each range of one attribute; the first clause is of those that do not restrict it."""

    shares: Floats
    """ranges x clauses: the share of a range's people whom a clause covers"""
    states: States
    """ranges x clauses: how it covers them"""
    clause_of: Indices
    """the clause of each condition"""

    @classmethod
    def of(cls, ranges: Indices, spread: Spread, clauses: Sequence[Floats], clause_of: Indices) -> Cover:
        """Weigh ranges by the covered shares of their leaves."""
        borders, at = np.unique(ranges, return_inverse=True)
        lo, hi = at.reshape(ranges.shape).T
        weights = np.stack([np.ones(len(spread.mass)), *clauses], axis=1)
        within = _running(spread.mass[:, None] * weights, borders)
        shares = within[hi] - within[lo]
        shares /= shares[:, :1].copy()
        lacking, touched = (_running((weights != share).astype(np.int32), borders) for share in (1, 0))
        partly, untouched = lacking[hi] > lacking[lo], touched[hi] == touched[lo]
        np.copyto(shares, ~untouched, where=untouched | ~partly)
        return cls(shares, np.where(untouched, np.uint8(UNTOUCHED), partly.view(np.uint8)), clause_of)

    def over(self, ranges: Indices, asking: Indices) -> tuple[Floats, States]:
        """Give what some conditions cover of some ranges, and how: ranges x conditions."""
        places = ranges[:, None] * self.shares.shape[1] + self.clause_of[asking]
        return self.shares.take(places), self.states.take(places)


@dataclass(frozen=True, eq=False)
class Share:
    """What conditions have of a place as far as that is settled, and how they cover it."""

    weights: Floats
    states: States

    @classmethod
    def whole(cls, conditions: int) -> Share:
        """Begin with all of it."""
        return cls(np.ones(conditions), np.full(conditions, WHOLE, np.uint8))

    def of(self, shares: Floats, states: States) -> Share:
        """Restrict it by what is covered of one attribute more."""
        return Share(self.weights * shares, self.states | states)

    def among(self, some: Indices) -> Share:
        """Give that of some of the conditions."""
        return Share(self.weights[some], self.states[some])


@dataclass(frozen=True, eq=False)
class Sums:
    """What conditions find in a partition."""

    values: Floats
    """conditions x classes: people in what they cover"""
    resolved: Floats
    """conditions x classes: people in the regions that they cover wholly"""
    variances: Floats
    """conditions x classes, or conditions x 1 where classes err alike: the variance of the value of one class"""
    aligned: NDArray[np.bool_]
    """conditions: whether they cover every region wholly or not at all"""

    @classmethod
    def none(cls, conditions: int, classes: int) -> Sums:
        """Begin with nobody."""
        shape = (conditions, classes)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((conditions, 1)), np.ones(conditions, np.bool_))


def _running(leaves: NDArray[Any], borders: Indices) -> NDArray[Any]:
    """Sum numbers of leaves up to each border, from the first one on."""
    sums = np.zeros((len(borders), *leaves.shape[1:]), leaves.dtype)
    np.cumsum(np.add.reduceat(leaves[: borders[-1]], borders[:-1], axis=0), axis=0, out=sums[1:])
    return sums


def covers_of(
    ranges: Mapping[int, Indices], spreads: Sequence[Spread], conditions: Sequence[Mapping[int, Floats]]
) -> dict[int, Cover]:
    """Cover ranges of the attributes that any condition restricts; conditions are weights of leaves by attribute."""
    covers = {}
    for attribute in sorted({attribute for condition in conditions for attribute in condition}):
        restricting = [number for number, condition in enumerate(conditions) if attribute in condition]
        clause_of = np.zeros(len(conditions), np.int64)
        clause_of[restricting] = np.arange(1, len(restricting) + 1)
        clauses = [conditions[number][attribute] for number in restricting]
        covers[attribute] = Cover.of(ranges[attribute], spreads[attribute], clauses, clause_of)
    return covers
