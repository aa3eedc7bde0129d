"""What queries cover: of the ranges of attributes, and of combinations of ranges.

Many queries are answered at once. Few ranges of one attribute occur however many regions there are, and what a query
covers of a range is the difference of two running sums at its borders; so all of it is found before any region is
looked at. Queries that restrict the same attributes look at the same combinations of their ranges, which are few, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.models.margins import Spread
from sfumato.models.model import Query

States = NDArray[np.uint8]

WHOLE, PARTLY, UNTOUCHED = 0, 1, 2
"""How a query covers a range. Over several attributes the bits are joined: below `PARTLY` all is covered, from
`UNTOUCHED` on nothing is."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """What queries cover of each range of one attribute; the first clause is of those that do not restrict it."""

    shares: Floats
    """ranges x clauses: the share of a range's people whom a clause covers"""
    states: States
    """ranges x clauses: how it covers them"""
    clause_of: Integers
    """the clause of each query"""

    @classmethod
    def of(cls, ranges: Integers, spread: Spread, clauses: Floats, clause_of: Integers) -> Overlap:
        """Weigh ranges by the covered shares of their leaves: clauses x leaves."""
        borders, at = np.unique(ranges, return_inverse=True)
        lo, hi = at.reshape(ranges.shape).T
        weights = np.concatenate([np.ones((1, len(spread.mass))), clauses]).T
        within = _running(spread.mass[:, None] * weights, borders)
        shares = within[hi] - within[lo]
        shares /= shares[:, :1].copy()
        lacking, touched = (_running((weights != share).astype(np.int32), borders) for share in (1, 0))
        partly, untouched = lacking[hi] > lacking[lo], touched[hi] == touched[lo]
        np.copyto(shares, ~untouched, where=untouched | ~partly)
        return cls(shares, np.where(untouched, np.uint8(UNTOUCHED), partly.view(np.uint8)), clause_of)

    def over(self, ranges: Integers, asking: Integers) -> tuple[Floats, States]:
        """Look up what some queries cover of some ranges, and how: ranges x queries."""
        places = ranges[:, None] * self.shares.shape[1] + self.clause_of[asking]
        return self.shares.take(places), self.states.take(places)


def _running(leaves: NDArray[Any], borders: Integers) -> NDArray[Any]:
    """Sum numbers of leaves up to each border, from the first one on."""
    sums = np.zeros((len(borders), *leaves.shape[1:]), leaves.dtype)
    np.cumsum(np.add.reduceat(leaves[: borders[-1]], borders[:-1], axis=0), axis=0, out=sums[1:])
    return sums


@dataclass(frozen=True, eq=False)
class Asked:
    """What a block of queries asks: weights of leaves by attribute, at most 1, and what they were divided by."""

    numbers: Mapping[int, Integers]
    """by attribute: the queries that restrict it"""
    weights: Mapping[int, Floats]
    """by attribute: these queries x leaves, in the order of which regions have ranges"""
    classes: Floats
    """queries x classes"""
    scales: Floats
    plain: Booleans
    """queries: whether they ask for people, and not for a weighted sum"""
    someone: Booleans
    """queries: whether they ask for anyone; of a contradiction it is certain that there is nobody"""

    @classmethod
    def of(cls, queries: Sequence[Query], orders: Sequence[Integers]) -> Asked:
        """Put the weights of all queries together."""
        found: dict[int, tuple[list[int], list[Floats]]] = {}
        for number, query in enumerate(queries):
            for at, weights in query.weights.items():
                numbers, every = found.setdefault(at, ([], []))
                numbers.append(number)
                every.append(weights)
        classes, scales, plain, someone = _scaled(np.stack([query.classes for query in queries]))
        restricting, weights_of = {}, {}
        for at, (numbers, every) in sorted(found.items()):
            restricting[at] = np.array(numbers)
            weights_of[at], most, whole, some = _scaled(np.stack(every).take(orders[at], axis=1))
            scales[numbers] *= most
            plain[numbers] &= whole
            someone[numbers] &= some
        return cls(restricting, weights_of, classes, scales, plain, someone)

    def squared(self) -> Asked:
        """Square all weights; those of plain queries stay."""
        if self.plain.all():
            return self
        return replace(self, weights={at: weights**2 for at, weights in self.weights.items()})

    def overlaps(self, ranges: Mapping[int, Integers], spreads: Sequence[Spread]) -> dict[int, Overlap]:
        """Cover ranges of the attributes that any query restricts."""
        overlaps = {}
        for at, numbers in self.numbers.items():
            clause_of = np.zeros(len(self.scales), np.int64)
            clause_of[numbers] = np.arange(1, len(numbers) + 1)
            overlaps[at] = Overlap.of(ranges[at], spreads[at], self.weights[at], clause_of)
        return overlaps


def _scaled(weights: Floats) -> tuple[Floats, Floats, Booleans, Booleans]:
    """Divide weights by the largest of each query; and tell that, whether all are 0 or 1, and whether any is not 0."""
    most, someone = np.abs(weights).max(axis=1), np.asarray(weights.any(axis=1))
    most[~someone] = 1.0
    plain = ((weights == 0) | (weights == 1)).all(axis=1)
    return weights / most[:, None], most, plain, someone


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of ranges that regions have of some attributes: few, however many regions there are."""

    of: Integers
    """the combination of each region"""
    ranges: Mapping[int, Integers]
    """by attribute: the range of each combination"""
    values: Floats
    """combinations x classes: people of all their regions"""
    squares: Floats
    """combinations: the sum of their regions' squared people"""

    def weigh(self, shares: Mapping[int, NDArray[Any]], weights: NDArray[Any]) -> NDArray[Any]:
        """Multiply weights of queries by what they cover of each combination: queries x combinations.

        Shares are queries x ranges, by attribute.
        """
        found = np.repeat(weights[:, None], len(self.squares), axis=1)
        for at, covered in shares.items():
            found *= covered.take(self.ranges[at], axis=1)
        return found

    def join(self, states: Mapping[int, States], settled: States) -> States:
        """Join how queries cover the ranges of each combination: queries x combinations."""
        found = np.repeat(settled[:, None], len(self.squares), axis=1)
        for at, covered in states.items():
            found |= covered.take(self.ranges[at], axis=1)
        return found


def alike(restricting: Mapping[int, Booleans], queries: int) -> Iterator[tuple[tuple[int, ...], Integers]]:
    """Group queries that restrict the same attributes."""
    flags = np.stack([np.zeros(queries, np.bool_), *restricting.values()], axis=1)
    _, first, group_of = np.unique(np.packbits(flags, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group_of.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(group_of.ravel()))
    names = list(restricting)
    for one, asking in zip(first.tolist(), np.split(order, ends[:-1]), strict=True):
        yield tuple(at for at, flag in zip(names, flags[one, 1:].tolist(), strict=True) if flag), asking


@dataclass(frozen=True, eq=False)
class Share:
    """What queries have of a place as far as that is settled, and how they cover it."""

    weights: Floats
    states: States

    @classmethod
    def whole(cls, queries: int) -> Share:
        """Begin with all of it."""
        return cls(np.ones(queries), np.full(queries, WHOLE, np.uint8))

    def of(self, shares: Floats, states: States) -> Share:
        """Restrict it by what is covered of one attribute more."""
        return Share(self.weights * shares, self.states | states)

    def among(self, some: Integers) -> Share:
        """Keep that of some of the queries."""
        return Share(self.weights[some], self.states[some])


@dataclass(frozen=True, eq=False)
class Sums:
    """What queries find in regions."""

    values: Floats
    """queries x classes: people in what they cover"""
    variances: Floats
    """queries x classes, or queries x 1 where classes err alike: the variance of the value of one class"""
    aligned: Booleans
    """queries: whether they cover every region wholly or not at all"""
    uneven: Floats
    """queries: the sum of w (1 - w) times the squared people of regions of which they cover the part w"""

    @classmethod
    def none(cls, queries: int, classes: int) -> Sums:
        """Begin with nobody."""
        shape = (queries, classes)
        return cls(np.zeros(shape), np.zeros(shape), np.ones(queries, np.bool_), np.zeros(queries))


def settled(overlaps: Mapping[int, Overlap], queries: int) -> Share:
    """Say what queries cover of attributes of which all regions have the same range."""
    share, everyone = Share.whole(queries), np.arange(queries)
    for overlap in overlaps.values():
        if len(overlap.shares) == 1:
            shares, states = overlap.over(np.zeros(1, np.int64), everyone)
            share = share.of(shares[0], states[0])
    return share
