"""Questions about a table in public terms: which specialization to choose.

Candidates come by the million, so they are arrays of ways, and one way may stand for all splits of a range. Groups of
ways are chosen from side by side, and a group must not share records with another: that is checked here, because the
price depends on it.

From counts to the scores of candidates, inside the meter.

Between two leaves that hold someone, all splits of a range divide its records alike. They are scored once, as a run of
copies, so that a level of a deep tree costs as much as its records and not as much as its empty domain. The choice
among the copies is as if each were there (see `selection`): which leaves hold someone stays inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Integers, frozen, read_only
from sfumato.errors import PrivacyError
from sfumato.geometry.candidates import Ways, starts_of
from sfumato.geometry.tree import Tree
from sfumato.privacy.scores import Children, Score
from sfumato.privacy.selection import Scored
from sfumato.privacy.tally import BLAME, Breakdown, Counts, Tally


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


CHUNK = 1 << 20
"""Candidates scored at a time."""


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of candidates that are scored alike: the way each belongs to, its copies and its score."""

    ways: Integers
    copies: Integers
    scores: Integers


def score_choices(choices: Choices, counts: Counts, score: Score, stakes: Integers) -> Scored:
    """Score every candidate of every group; a group's deficits count as many times as its stakes say."""
    pieces = []
    for kind in _alike(choices.ways):
        breakdown = counts.by_leaf[int(choices.ways.attributes[kind[0]])]
        for part in _chunks(kind, choices.ways.candidates[kind]):
            ways = choices.ways.take(part)
            runs = _split_runs(ways, breakdown, score) if ways.is_split[0] else _single_runs(ways, breakdown, score)
            pieces.append(_Runs(part[runs.ways], runs.copies, runs.scores))
    return _in_order(choices, pieces, stakes)


def _alike(ways: Ways) -> Iterator[Integers]:
    """Give the ways of one attribute and one kind at a time."""
    kinds = ways.attributes * 2 + ways.is_split
    for kind in np.unique(kinds):
        yield np.flatnonzero(kinds == kind)


def _chunks(ways: Integers, candidates: Integers) -> Iterator[Integers]:
    """Cut ways into pieces of about CHUNK candidates, as the schema says."""
    piece = np.cumsum(candidates) // CHUNK
    return iter(np.split(ways, np.flatnonzero(np.diff(piece)) + 1))


def _single_runs(ways: Ways, breakdown: Breakdown, score: Score) -> _Runs:
    """Score ways that are one candidate each, divided at their own borders."""
    lows, highs = np.delete(ways.borders, ways.starts[1:] - 1), np.delete(ways.borders, ways.starts[:-1])
    counts = breakdown.between(np.repeat(ways.places, ways.children), lows, highs)
    children = Children(counts, starts_of(ways.children), highs - lows, breakdown.leaves, ways.places)
    return _Runs(np.arange(len(ways)), np.ones(len(ways), np.int64), score.of(children))


def _split_runs(ways: Ways, breakdown: Breakdown, score: Score) -> _Runs:
    """Score every split of every range.

    With leaves v_1 < ... < v_m that hold someone in [lo, hi), the splits lo + 1 ... v_1 have nobody on the left, then
    v_1 + 1 ... v_2 have the records of v_1, and at last v_m + 1 ... hi - 1 have all.
    """
    begin, end = breakdown.position(ways.places, ways.lows), breakdown.position(ways.places, ways.highs)
    sizes = end - begin + 1
    way = np.repeat(np.arange(len(ways)), sizes)
    starts = starts_of(sizes)
    key = begin[way] + np.arange(starts[-1]) - starts[way]
    leaves = breakdown.keys % breakdown.leaves
    before, after = np.empty_like(key), np.empty_like(key)
    inner = np.ones(len(key), np.bool_)
    inner[starts[:-1]] = False
    before[inner], before[starts[:-1]] = leaves[key[inner] - 1], ways.lows
    inner[:] = True
    inner[starts[1:] - 1] = False
    after[inner], after[starts[1:] - 1] = leaves[key[inner]], ways.highs - 1
    copies = after - before
    if score.positional:
        way, key, before = np.repeat(way, copies), np.repeat(key, copies), np.repeat(before, copies)
        runs = starts_of(copies)
        before += np.arange(runs[-1]) - np.repeat(runs[:-1], copies)
        copies = np.ones(len(way), np.int64)
    else:
        kept = np.flatnonzero(copies)
        way, key, before, copies = way[kept], key[kept], before[kept], copies[kept]
    counts = np.empty((len(way), 2, breakdown.running.shape[1]), np.int64)
    counts[:, 0] = breakdown.running[key] - breakdown.running[begin][way]
    counts[:, 1] = breakdown.running[end][way] - breakdown.running[key]
    widths = np.stack([before + 1 - ways.lows[way], ways.highs[way] - before - 1], axis=1).ravel()
    children = Children(
        counts.reshape(2 * len(way), -1), np.arange(len(way) + 1) * 2, widths, breakdown.leaves, ways.places[way]
    )
    return _Runs(way, copies, score.of(children))


def _in_order(choices: Choices, pieces: list[_Runs], stakes: Integers) -> Scored:
    """Put runs in the order of their ways, whole groups one after the other; a piece has whole ways, in order."""
    sizes = np.zeros(len(choices.ways), np.int64)
    for piece in pieces:
        sizes += np.bincount(piece.ways, minlength=len(sizes))
    starts = starts_of(sizes)
    scores, copies = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    for piece in pieces:
        at = np.arange(len(piece.ways))
        first = np.maximum.accumulate(np.where(np.diff(piece.ways, prepend=-1) != 0, at, 0))
        at += starts[piece.ways] - first
        scores[at], copies[at] = piece.scores, piece.copies
    return Scored(scores, copies, starts[choices.group_starts], stakes)
