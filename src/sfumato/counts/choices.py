"""Questions about a table in public terms: which specialization to choose.

Candidates come by the thousand, so they are arrays: candidate i divides, in region `regions[i]`, a range of attribute
`attributes[i]` at the borders `borders[starts[i]:starts[i + 1]]`, outer ones included. Groups of them are chosen from
side by side, and a group must not share records with another: that is checked here, because the price depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import BLAME, Counts, Tally
from sfumato.errors import PrivacyError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Specialization:
    """One candidate: inside one region, one attribute's range, divided at these borders (outer ones included)."""

    region: int
    attribute: int
    borders: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A batch of specializations.

    >>> ways = Candidates.join([Candidates.one(0, 1, (0, 2, 4)), Candidates.splits(0, 2, 3, 6)])
    >>> len(ways), ways[2]
    (3, Specialization(region=0, attribute=2, borders=(3, 5, 6)))
    """

    regions: Integers
    attributes: Integers
    borders: Integers
    starts: Integers

    @classmethod
    def one(cls, region: int, attribute: int, borders: Sequence[int]) -> Candidates:
        """Give the single candidate that draws these borders."""
        return cls(np.array([region]), np.array([attribute]), np.array(borders), np.array([0, len(borders)]))

    @classmethod
    def splits(cls, region: int, attribute: int, lo: int, hi: int) -> Candidates:
        """Give every way to split a range in two: at each grid point of the declared range, whatever the data."""
        at = np.arange(lo + 1, hi)
        borders = np.stack([np.full_like(at, lo), at, np.full_like(at, hi)], axis=1).ravel()
        return cls(np.full_like(at, region), np.full_like(at, attribute), borders, np.arange(len(at) + 1) * 3)

    @classmethod
    def join(cls, batches: Sequence[Candidates]) -> Candidates:
        """Put batches one after the other."""
        if not batches:
            none = np.empty(0, np.int64)
            return cls(none, none, none, np.zeros(1, np.int64))
        widths = np.concatenate([np.diff(batch.starts) for batch in batches])
        return cls(
            np.concatenate([batch.regions for batch in batches]),
            np.concatenate([batch.attributes for batch in batches]),
            np.concatenate([batch.borders for batch in batches]),
            starts_of(widths),
        )

    def __len__(self) -> int:
        """Count the candidates."""
        return len(self.regions)

    def __getitem__(self, index: int) -> Specialization:
        """Take one out."""
        borders = self.borders[self.starts[index] : self.starts[index + 1]]
        return Specialization(int(self.regions[index]), int(self.attributes[index]), tuple(borders.tolist()))

    @property
    def children(self) -> Integers:
        """How many children each candidate has."""
        return np.diff(self.starts) - 1

    @property
    def outer(self) -> tuple[Integers, Integers]:
        """The range that each candidate divides."""
        return self.borders[self.starts[:-1]], self.borders[self.starts[1:] - 1]

    def where(self, kept: NDArray[np.bool_]) -> Candidates:
        """Keep some of them."""
        widths = np.diff(self.starts)
        return Candidates(
            self.regions[kept], self.attributes[kept], self.borders[np.repeat(kept, widths)], starts_of(widths[kept])
        )


@dataclass(frozen=True, eq=False)
class Choices:
    """Groups of candidates on the counts of one tally, one of each group to be chosen.

    Candidates of one group may overlap: that is one choice. Different groups must concern different records, so that
    all are paid with one debit (parallel composition): they lie in different regions, or in disjoint ranges of one
    attribute.
    """

    tally: Tally
    groups: tuple[Candidates, ...]

    def __post_init__(self) -> None:
        """Refuse groups that are empty, share records, or ask for what the tally does not count."""
        if not self.groups or not all(len(group) for group in self.groups):
            raise PrivacyError("every group must have a candidate", BLAME)
        if not self._countable():
            raise PrivacyError("a candidate must divide a range that the tally counts", BLAME)
        if not self._disjoint():
            raise PrivacyError("groups of candidates must concern different records", BLAME)

    @cached_property
    def candidates(self) -> Candidates:
        """All groups' candidates, one after the other."""
        return Candidates.join(self.groups)

    @cached_property
    def group_starts(self) -> Integers:
        """Where each group begins among the candidates, and the end."""
        return starts_of(np.array([len(group) for group in self.groups]))

    @cached_property
    def child_starts(self) -> Integers:
        """Where each candidate begins among the children, and the end."""
        return starts_of(self.candidates.children)

    def _countable(self) -> bool:
        asked = self.candidates
        if not np.isin(asked.attributes, self.tally.attributes).all():
            return False
        lo, hi = asked.outer
        leaves = np.array(self.tally.partition.shape)[asked.attributes]
        step = np.diff(asked.borders) > 0
        step[asked.starts[1:-1] - 1] = True
        regions = (asked.regions >= 0) & (asked.regions < self.tally.partition.regions)
        return bool(step.all() and regions.all() and ((lo >= 0) & (hi <= leaves) & (asked.children >= 2)).all())

    def _disjoint(self) -> bool:
        """Compare, within each region, the hulls of the groups: they must follow one another on one attribute."""
        asked = self.candidates
        if len(self.groups) == 1:
            return True
        group = np.repeat(np.arange(len(self.groups)), np.diff(self.group_starts))
        pairs, member = np.unique(np.stack([asked.regions, group], axis=1), axis=0, return_inverse=True)
        member = member.ravel()
        lo, hi = asked.outer
        low, high = np.full(len(pairs), np.iinfo(np.int64).max), np.zeros(len(pairs), np.int64)
        first, last = low.copy(), high.copy()
        np.minimum.at(low, member, lo)
        np.maximum.at(high, member, hi)
        np.minimum.at(first, member, asked.attributes)
        np.maximum.at(last, member, asked.attributes)
        order = np.lexsort((low, pairs[:, 0]))
        left, right = order[:-1], order[1:]
        apart = (first[left] == last[left]) & (first[right] == last[right]) & (first[left] == first[right])
        return bool(((pairs[left, 0] != pairs[right, 0]) | (apart & (high[left] <= low[right]))).all())

    def child_counts(self, counts: Counts) -> Integers:
        """Give the class counts of every candidate's children: children x classes."""
        asked = self.candidates
        attribute, region = np.repeat(asked.attributes, asked.children), np.repeat(asked.regions, asked.children)
        lo = np.delete(asked.borders, asked.starts[1:] - 1)
        hi = np.delete(asked.borders, asked.starts[:-1])
        children = np.empty((len(lo), self.tally.classes), np.int64)
        for which in np.unique(asked.attributes):
            own = attribute == which
            below = counts.below[int(which)]
            children[own] = below[region[own], hi[own]] - below[region[own], lo[own]]
        return children


def starts_of(sizes: Integers) -> Integers:
    """Give where each of several runs of these sizes begins, and the end."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
