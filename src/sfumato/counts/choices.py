"""Questions about a table in public terms: which specialization to choose.

Candidates come by the million, so they are arrays of ways, and one way may stand for all splits of a range. Groups of
ways are chosen from side by side, and a group must not share records with another: that is checked here, because the
price depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.tally import BLAME, Tally, frozen
from sfumato.errors import PrivacyError
from sfumato.partition import read_only
from sfumato.tree import Tree

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Specialization:
    """One candidate: inside one place, one attribute's range, divided at these borders (outer ones included)."""

    place: int
    attribute: int
    borders: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ways:
    """Ways to specialize: way i concerns attribute `attributes[i]` in place `places[i]`.

    Its borders `borders[starts[i]:starts[i + 1]]`, outer ones included, are one candidate; outer borders alone stand
    for every split of their range in two: at each grid point of the declared range, whatever the data.

    >>> ways = Ways.join([Ways.one(0, 1, (0, 2, 4)), Ways.splits(0, 2, 3, 6)])
    >>> ways.candidates.tolist(), ways.pick(np.array([0, 1]), np.array([0, 1]))[1]
    ([1, 2], Specialization(place=0, attribute=2, borders=(3, 5, 6)))
    """

    places: Integers
    attributes: Integers
    borders: Integers
    starts: Integers

    def __post_init__(self) -> None:
        """Keep them as they are now, in integers that do not wrap."""
        for name in ("places", "attributes", "borders", "starts"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def one(cls, place: int, attribute: int, borders: Sequence[int]) -> Ways:
        """Give the single candidate that draws these borders."""
        return cls(np.array([place]), np.array([attribute]), np.array(borders), np.array([0, len(borders)]))

    @classmethod
    def splits(cls, place: int, attribute: int, lo: int, hi: int) -> Ways:
        """Give every way to split a range in two."""
        return cls.one(place, attribute, (lo, hi))

    @classmethod
    def join(cls, batches: Sequence[Ways]) -> Ways:
        """Put batches one after the other."""
        none = np.empty(0, np.int64)
        return cls(
            np.concatenate([none, *(batch.places for batch in batches)]),
            np.concatenate([none, *(batch.attributes for batch in batches)]),
            np.concatenate([none, *(batch.borders for batch in batches)]),
            starts_of(np.concatenate([none, *(np.diff(batch.starts) for batch in batches)])),
        )

    def __len__(self) -> int:
        """Count the ways."""
        return len(self.places)

    def __getitem__(self, index: int) -> Specialization:
        """Take one out."""
        borders = self.borders[self.starts[index] : self.starts[index + 1]]
        return Specialization(int(self.places[index]), int(self.attributes[index]), tuple(borders.tolist()))

    @cached_property
    def lows(self) -> Integers:
        """Where the range of each way begins."""
        return read_only(self.borders[self.starts[:-1]])

    @cached_property
    def highs(self) -> Integers:
        """Where it ends."""
        return read_only(self.borders[self.starts[1:] - 1])

    @cached_property
    def is_split(self) -> NDArray[np.bool_]:
        """Whether a way stands for every split of its range."""
        return read_only(np.asarray(np.diff(self.starts) == 2))

    @property
    def children(self) -> Integers:
        """How many children each candidate of a way has."""
        return np.where(self.is_split, 2, np.diff(self.starts) - 1)

    @cached_property
    def candidates(self) -> Integers:
        """How many candidates each way stands for: public, from the declared ranges."""
        return read_only(np.where(self.is_split, self.highs - self.lows - 1, 1))

    def take(self, ways: Integers | NDArray[np.bool_]) -> Ways:
        """Keep some, in this order."""
        chosen = np.arange(len(self))[ways]
        widths = np.diff(self.starts)[chosen]
        starts = starts_of(widths)
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1], widths)
        return Ways(
            self.places[chosen],
            self.attributes[chosen],
            self.borders[np.repeat(self.starts[chosen], widths) + inside],
            starts,
        )

    def pick(self, ways: Integers, offsets: Integers) -> Ways:
        """Give single candidates: of each named way the one at its offset."""
        picked = self.take(ways)
        at = picked.lows + 1 + offsets
        borders = np.insert(picked.borders, picked.starts[1:][picked.is_split] - 1, at[picked.is_split])
        return Ways(picked.places, picked.attributes, borders, starts_of(np.diff(picked.starts) + picked.is_split))


@dataclass(frozen=True, eq=False)
class Choices:
    """Groups of ways on the counts of one tally, one candidate of each group to be chosen.

    Candidates of one group may overlap: that is one choice. Different groups must concern different records, so that
    all are paid with one debit (parallel composition): they lie in different places, or in disjoint ranges of one
    attribute. Group g has the ways `group_starts[g]` to `group_starts[g + 1]`.
    """

    tally: Tally
    ways: Ways
    group_starts: Integers

    @classmethod
    def of(cls, tally: Tally, groups: Sequence[Ways]) -> Choices:
        """Choose from groups given one by one."""
        return cls(tally, Ways.join(groups), starts_of(np.array([len(group) for group in groups], np.int64)))

    @classmethod
    def by_place(cls, tally: Tally, ways: Ways) -> Choices:
        """Choose once in every place that has a way; ways are in the order of their places."""
        first = np.flatnonzero(np.diff(ways.places, prepend=-1))
        return cls(tally, ways, np.append(first, len(ways)))

    def __post_init__(self) -> None:
        """Refuse groups that are empty, share records, or ask for what the tally does not count; keep the others."""
        object.__setattr__(self, "group_starts", frozen(self.group_starts))
        if not self._well_formed():
            raise PrivacyError("ways must have two borders or more each, and groups must be made of whole ways", BLAME)
        if self.groups < 1 or not (np.diff(self.group_starts) > 0).all() or not (self.ways.candidates > 0).all():
            raise PrivacyError("every group must have a candidate", BLAME)
        if not self._countable():
            raise PrivacyError("a candidate must divide a range that the tally counts", BLAME)
        if not self._disjoint():
            raise PrivacyError("groups of candidates must concern different records", BLAME)

    @property
    def groups(self) -> int:
        """How many choices are made."""
        return len(self.group_starts) - 1

    @property
    def places(self) -> Integers:
        """The place of each group; on a tree, where places pay by themselves, each group must have its own."""
        if isinstance(self.tally.partition, Tree) and not self._apart:
            raise PrivacyError("every group must have a leaf of its own", BLAME)
        return self.ways.places[self.group_starts[:-1]]

    @cached_property
    def _apart(self) -> bool:
        """Whether every group has a place of its own."""
        places = self.ways.places[self.group_starts[:-1]]
        alone = np.array_equal(np.repeat(places, np.diff(self.group_starts)), self.ways.places)
        return alone and len(np.unique(places)) == self.groups

    @property
    def candidates(self) -> int:
        """How many candidates there are in all."""
        return int(self.ways.candidates.sum())

    @cached_property
    def candidate_starts(self) -> Integers:
        """Where the candidates of each way begin, and the end."""
        return read_only(starts_of(self.ways.candidates))

    def chosen(self, picks: Integers) -> Ways:
        """Give the picked candidate of each group; a pick counts the candidates of its group."""
        at = self.candidate_starts[self.group_starts[:-1]] + picks
        ways = np.searchsorted(self.candidate_starts, at, side="right") - 1
        return self.ways.pick(ways, at - self.candidate_starts[ways])

    def _well_formed(self) -> bool:
        asked, groups = self.ways, self.group_starts
        arrays = (asked.places, asked.attributes, asked.borders, asked.starts, groups)
        return bool(
            all(array.ndim == 1 for array in arrays)
            and len(asked.places) == len(asked.attributes) == len(asked.starts) - 1
            and asked.starts[0] == 0
            and asked.starts[-1] == len(asked.borders)
            and (np.diff(asked.starts) >= 2).all()
            and len(groups)
            and groups[0] == 0
            and groups[-1] == len(asked)
        )

    def _countable(self) -> bool:
        asked = self.ways
        if not np.isin(asked.attributes, self.tally.attributes).all():
            return False
        leaves = np.array(self.tally.partition.shape)[asked.attributes]
        step = np.diff(asked.borders) > 0
        step[asked.starts[1:-1] - 1] = True
        places = (asked.places >= 0) & (asked.places < self.tally.places)
        return bool(step.all() and places.all() and ((asked.lows >= 0) & (asked.highs <= leaves)).all())

    def _disjoint(self) -> bool:
        """Compare, within each place, the hulls of the groups: they must follow one another on one attribute."""
        if self._apart:
            return True
        asked = self.ways
        group = np.repeat(np.arange(self.groups), np.diff(self.group_starts))
        order = np.lexsort((group, asked.places))
        places, group = asked.places[order], group[order]
        first = np.flatnonzero((np.diff(places, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        low, high = np.minimum.reduceat(asked.lows[order], first), np.maximum.reduceat(asked.highs[order], first)
        along = np.minimum.reduceat(asked.attributes[order], first)
        narrow = along == np.maximum.reduceat(asked.attributes[order], first)
        hulls = np.lexsort((low, places[first]))
        left, right = hulls[:-1], hulls[1:]
        apart = narrow[left] & narrow[right] & (along[left] == along[right]) & (high[left] <= low[right])
        return bool(((places[first][left] != places[first][right]) | apart).all())


def starts_of(sizes: Integers) -> Integers:
    """Give where each of several runs of these sizes begins, and the end."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
