"""From counts to the scores of candidates, inside the meter.

Between two leaves that hold someone, all splits of a range divide its records alike. They are scored once, as a run of
copies, so that a level of a deep tree costs as much as its records and not as much as its empty domain. The choice
among the copies is as if each were there (see `selection`): which leaves hold someone stays inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.counts.choices import Choices, Ways, starts_of
from sfumato.counts.tally import Breakdown, Counts
from sfumato.privacy.score import Children, Score
from sfumato.privacy.selection import Scored

Integers = NDArray[np.int64]

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
