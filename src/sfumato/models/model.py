"""How much of each range of an attribute many conditions cover, and what they find there.

Few ranges of one attribute occur however many regions there are, and what a condition covers of a range is the
difference of two running sums at its borders; so all of it is found at once, before any region is looked at.

Range counts from a release, each with the deviation that the noise of the counts gives it.

An answer is a weighted sum of the regions' estimates, so the variance from their noise is known exactly, no matter how
many regions. What that does not cover, spreading people inside regions (and the noise of the margins by which they are
spread), is told beside it: how much of the answer rests on it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.models.margins import Spread

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
    clause_of: Integers
    """the clause of each condition"""

    @classmethod
    def of(cls, ranges: Integers, spread: Spread, clauses: Sequence[Floats], clause_of: Integers) -> Cover:
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

    def over(self, ranges: Integers, asking: Integers) -> tuple[Floats, States]:
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

    def among(self, some: Integers) -> Share:
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


def _running(leaves: NDArray[Any], borders: Integers) -> NDArray[Any]:
    """Sum numbers of leaves up to each border, from the first one on."""
    sums = np.zeros((len(borders), *leaves.shape[1:]), leaves.dtype)
    np.cumsum(np.add.reduceat(leaves[: borders[-1]], borders[:-1], axis=0), axis=0, out=sums[1:])
    return sums


def covers_of(
    ranges: Mapping[int, Integers], spreads: Sequence[Spread], conditions: Sequence[Mapping[int, Floats]]
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


Z95 = 1.959963984540054
Cause = Literal["noise", "sampling"]


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""
    aligned: bool
    """Whether the condition covers every region wholly or not at all, so that nothing is assumed."""
    cause: Cause = "noise"
    """What the deviation comes from."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise or the sampling, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval, and what it leaves out."""
        spread = "" if self.aligned else f"; {self.assumed:,.0f} rests on spreading inside groups"
        if not self.stddev:
            return f"{self.value:,.0f} (no noise{spread})"
        named = " for sampling, no noise" if self.cause == "sampling" else " for noise" if spread else ""
        return f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %{named}{spread})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many estimates, in the order of their conditions."""

    conditions: tuple[str, ...]
    values: Floats
    stddevs: Floats
    assumed: Floats
    aligned: Booleans
    cause: Cause = "noise"

    @classmethod
    def of(cls, conditions: Sequence[str], sums: Sums, classes: Floats, cause: Cause) -> Answers:
        """Weigh the classes, conditions x classes, which err apart."""
        values, resolved = ((one * classes).sum(axis=1) for one in (sums.values, sums.resolved))
        variances = (np.maximum(sums.variances, 0) * classes**2).sum(axis=1)
        assumed = np.where(sums.aligned, 0.0, values - resolved)
        return cls(tuple(conditions), values, np.sqrt(variances), assumed, sums.aligned, cause)

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put answers one after the other."""
        arrays = ("values", "stddevs", "assumed", "aligned")
        joined = [np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in arrays]
        conditions = tuple(condition for part in parts for condition in part.conditions)
        cause = parts[0].cause if parts else "noise"
        return cls(conditions, joined[0], joined[1], joined[2], joined[3].astype(np.bool_), cause)

    def __len__(self) -> int:
        """Count them."""
        return len(self.values)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Estimate: ...

    @overload
    def __getitem__(self, number: slice) -> Answers: ...

    def __getitem__(self, number: SupportsIndex | slice) -> Estimate | Answers:
        """Give one of them, or those of a slice."""
        if isinstance(number, slice):
            arrays = (self.values[number], self.stddevs[number], self.assumed[number], self.aligned[number])
            return Answers(self.conditions[number], *arrays, self.cause)
        number = operator.index(number)
        value, stddev, assumed = (float(one[number]) for one in (self.values, self.stddevs, self.assumed))
        return Estimate(value, stddev, assumed, bool(self.aligned[number]), self.cause)

    def __iter__(self) -> Iterator[Estimate]:
        """Give one after the other."""
        return (self[number] for number in range(len(self)))

    @property
    def table(self) -> pa.Table:
        """All of it as a table, with the 95 % interval for the noise."""
        return pa.table(
            {
                "condition": pa.array(self.conditions, pa.string()),
                "count": self.values,
                "stddev": self.stddevs,
                "low": self.values - Z95 * self.stddevs,
                "high": self.values + Z95 * self.stddevs,
                "assumed": self.assumed,
                "aligned": self.aligned,
            }
        )
