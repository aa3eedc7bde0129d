"""Questions about a table in public terms: which candidates to choose; and how the meter scores these.

There are millions of candidates, so they are arrays, and one entry may stand for all splits of a range. One candidate
of each group is chosen, and a group must not share records with another: that is checked here, because the price
depends on it.

Between two leaves that hold someone, all splits of a range divide its records alike. They are scored once, as a run of
copies, so that a level of a deep tree costs as much as its records and not as much as its empty domain. The choice
among the copies is as if each were there (see `selection`): which leaves hold someone stays inside the meter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Integers, frozen, read_only
from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.candidates import Candidates, starts_of
from sfumato.geometry.tree import Tree
from sfumato.privacy.scores import Children, Score
from sfumato.privacy.selection import Scored
from sfumato.privacy.tally import Breakdown, Counts, Tally

CHUNK = 1 << 20
"""About how many candidates are scored at a time."""


@dataclass(frozen=True, eq=False)
class Choices:
    """Groups of candidates on the counts of one tally, one candidate of each group to be chosen.

    Candidates of one group may overlap: that is one choice. Different groups must be about different records, so that
    all are paid with one debit (parallel composition): they lie in different places, or in disjoint ranges of one
    attribute.
    """

    tally: Tally
    candidates: Candidates
    group_starts: Integers
    """group g has the entries `group_starts[g]` to `group_starts[g + 1]`"""

    @classmethod
    def of(cls, tally: Tally, groups: Sequence[Candidates]) -> Choices:
        """Choices from groups given one by one."""
        return cls(tally, Candidates.join(groups), starts_of(np.array([len(group) for group in groups], np.int64)))

    @classmethod
    def by_place(cls, tally: Tally, candidates: Candidates) -> Choices:
        """One choice in every place that has an entry; candidates come in the order of their places."""
        first = np.flatnonzero(np.diff(candidates.places, prepend=-1))
        return cls(tally, candidates, np.append(first, len(candidates)))

    def __post_init__(self) -> None:
        """Refuse groups that are empty, share records, or ask for what the tally does not count."""
        object.__setattr__(self, "group_starts", frozen(self.group_starts))
        if not self._well_formed():
            raise PrivacyError(
                "candidates must have two borders or more each, and groups must be made of whole candidates", BLAME
            )
        if self.groups < 1 or not (np.diff(self.group_starts) > 0).all() or not (self.candidates.each > 0).all():
            raise PrivacyError("every group must have a candidate", BLAME)
        if not self._countable():
            raise PrivacyError("a candidate must divide a range that the tally counts", BLAME)
        if not self._disjoint():
            raise PrivacyError("groups of candidates must concern different records", BLAME)

    @property
    def groups(self) -> int:
        """The number of groups, which is that of choices."""
        return len(self.group_starts) - 1

    @property
    def places(self) -> Integers:
        """The place of each group; on a tree, where places pay different amounts, each group must have its own."""
        if isinstance(self.tally.partition, Tree) and not self._apart:
            raise PrivacyError("every group must have an end of its own", BLAME)
        return self.candidates.places[self.group_starts[:-1]]

    @cached_property
    def _apart(self) -> bool:
        """Whether every group has a place of its own."""
        places = self.candidates.places[self.group_starts[:-1]]
        alone = np.array_equal(np.repeat(places, np.diff(self.group_starts)), self.candidates.places)
        return alone and len(np.unique(places)) == self.groups

    @property
    def number(self) -> int:
        """The number of single candidates in all entries."""
        return int(self.candidates.each.sum())

    @cached_property
    def candidate_starts(self) -> Integers:
        """Where the candidates of each entry begin, and where the last ends."""
        return read_only(starts_of(self.candidates.each))

    def chosen(self, picks: Integers) -> Candidates:
        """The candidate picked in each group, by its number among the group's single candidates."""
        at = self.candidate_starts[self.group_starts[:-1]] + picks
        candidates = np.searchsorted(self.candidate_starts, at, side="right") - 1
        return self.candidates.pick(candidates, at - self.candidate_starts[candidates])

    def _well_formed(self) -> bool:
        asked, groups = self.candidates, self.group_starts
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
        asked = self.candidates
        if not np.isin(asked.attributes, self.tally.attributes).all():
            return False
        leaves = np.array(self.tally.partition.shape)[asked.attributes]
        step = np.diff(asked.borders) > 0
        step[asked.starts[1:-1] - 1] = True
        places = (asked.places >= 0) & (asked.places < self.tally.places)
        return bool(step.all() and places.all() and ((asked.lows >= 0) & (asked.highs <= leaves)).all())

    def _disjoint(self) -> bool:
        """Whether groups share no record: within a place, their hulls must follow one another on one attribute."""
        if self._apart:
            return True
        asked = self.candidates
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


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of candidates that have one score: the entry each belongs to, how many copies it has, and its score."""

    entries: Integers
    copies: Integers
    scores: Integers


def score_choices(choices: Choices, counts: Counts, score: Score, stakes: Integers) -> Scored:
    """Score every candidate of every group; a group's deficits count as many times as its stakes."""
    pieces = []
    for kind in _alike(choices.candidates):
        breakdown = counts.by_leaf[int(choices.candidates.attributes[kind[0]])]
        for part in _chunks(kind, choices.candidates.each[kind]):
            offered = choices.candidates.take(part)
            score_runs = _split_runs if offered.is_split[0] else _single_runs
            runs = score_runs(offered, breakdown, score)
            pieces.append(_Runs(part[runs.entries], runs.copies, runs.scores))
    return _in_order(choices, pieces, stakes)


def _alike(offered: Candidates) -> Iterator[Integers]:
    """The entries of one attribute and one kind (splits or single candidates) at a time."""
    kinds = offered.attributes * 2 + offered.is_split
    for kind in np.unique(kinds):
        yield np.flatnonzero(kinds == kind)


def _chunks(entries: Integers, each: Integers) -> Iterator[Integers]:
    """Cut entries into pieces of about CHUNK single candidates; their number follows from the schema."""
    piece = np.cumsum(each) // CHUNK
    return iter(np.split(entries, np.flatnonzero(np.diff(piece)) + 1))


def _single_runs(offered: Candidates, breakdown: Breakdown, score: Score) -> _Runs:
    """Score entries that are one candidate each, divided at their own borders."""
    lows = np.delete(offered.borders, offered.starts[1:] - 1)
    highs = np.delete(offered.borders, offered.starts[:-1])
    counts = breakdown.between(np.repeat(offered.places, offered.children), lows, highs)
    children = Children(counts, starts_of(offered.children), highs - lows, breakdown.leaves, offered.places)
    return _Runs(np.arange(len(offered)), np.ones(len(offered), np.int64), score.of(children))


def _split_runs(offered: Candidates, breakdown: Breakdown, score: Score) -> _Runs:
    """Score every split of every range.

    With leaves v_1 < ... < v_m that hold someone in [lo, hi), the splits lo + 1 ... v_1 have nobody on the left, then
    v_1 + 1 ... v_2 have the records of v_1, and at last v_m + 1 ... hi - 1 have all.
    """
    begin = breakdown.position(offered.places, offered.lows)
    end = breakdown.position(offered.places, offered.highs)
    sizes = end - begin + 1
    entry = np.repeat(np.arange(len(offered)), sizes)
    starts = starts_of(sizes)
    key = begin[entry] + np.arange(starts[-1]) - starts[entry]
    leaves = breakdown.keys % breakdown.leaves
    before, after = np.empty_like(key), np.empty_like(key)
    inner = np.ones(len(key), np.bool_)
    inner[starts[:-1]] = False
    before[inner], before[starts[:-1]] = leaves[key[inner] - 1], offered.lows
    inner[:] = True
    inner[starts[1:] - 1] = False
    after[inner], after[starts[1:] - 1] = leaves[key[inner]], offered.highs - 1
    copies = after - before
    if score.positional:
        entry, key, before = np.repeat(entry, copies), np.repeat(key, copies), np.repeat(before, copies)
        runs = starts_of(copies)
        before += np.arange(runs[-1]) - np.repeat(runs[:-1], copies)
        copies = np.ones(len(entry), np.int64)
    else:
        kept = np.flatnonzero(copies)
        entry, key, before, copies = entry[kept], key[kept], before[kept], copies[kept]
    counts = np.empty((len(entry), 2, breakdown.running.shape[1]), np.int64)
    counts[:, 0] = breakdown.running[key] - breakdown.running[begin][entry]
    counts[:, 1] = breakdown.running[end][entry] - breakdown.running[key]
    widths = np.stack([before + 1 - offered.lows[entry], offered.highs[entry] - before - 1], axis=1).ravel()
    children = Children(
        counts.reshape(2 * len(entry), -1),
        np.arange(len(entry) + 1) * 2,
        widths,
        breakdown.leaves,
        offered.places[entry],
    )
    return _Runs(entry, copies, score.of(children))


def _in_order(choices: Choices, pieces: list[_Runs], stakes: Integers) -> Scored:
    """Put runs in the order of their entries, group after group; a piece has whole entries, in order."""
    sizes = np.zeros(len(choices.candidates), np.int64)
    for piece in pieces:
        sizes += np.bincount(piece.entries, minlength=len(sizes))
    starts = starts_of(sizes)
    scores, copies = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    for piece in pieces:
        at = np.arange(len(piece.entries))
        first = np.maximum.accumulate(np.where(np.diff(piece.entries, prepend=-1) != 0, at, 0))
        at += starts[piece.entries] - first
        scores[at], copies[at] = piece.scores, piece.copies
    return Scored(scores, copies, starts[choices.group_starts], stakes)
