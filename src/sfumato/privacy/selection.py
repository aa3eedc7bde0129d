"""Choosing one of many candidates privately, for many disjoint groups of candidates at once.

Scores are integers and the rate at which a deficit becomes improbable is an exact fraction, so both mechanisms are
flips of the exact coins of `noise`. Groups lie one after the other in a flat array: group g is `starts[g]` to
`starts[g + 1]`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.noise import Flags, Integers, coins
from sfumato.privacy.stream import Stream, uniform_below


def permute_and_flip(stream: Stream, scores: Integers, starts: Integers, rate: Fraction) -> Integers:
    """Choose in each group as permute-and-flip does (McKenna and Sheldon, 2020); give indices within the groups.

    The mechanism visits candidates in random order and takes the first whose coin of probability exp(-rate (best -
    score)) shows heads. That is a uniform choice among all heads: the best candidate's coin is certain, and an order
    that is uniform on all candidates is uniform on the heads.

    Privacy. It is the same as adding exponential noise of mean 1/rate to every score and taking the largest (Ding et
    al., 2021). Fix the noise of all candidates but i, and let M be the best of the others: i wins when its noise
    exceeds M - u_i. Between neighbours M and u_i each move by at most s, so the threshold moves by at most 2 s, or by
    at most s if all scores move in one direction; the tail of the exponential changes by a factor of at most exp(rate
    * that). With rate = epsilon / (2 s), or epsilon / s for monotone scores, the choice is epsilon-private.
    """
    heads = _coins_of_deficits(stream, _deficits(scores, starts), rate)
    picks = _uniform_among(stream, heads, starts)
    return picks - starts[:-1]


def exponential(stream: Stream, scores: Integers, starts: Integers, rate: Fraction) -> Integers:
    """Choose in each group with probability proportional to exp(rate * score), by rejection; give indices within the
    groups.

    A candidate drawn uniformly and accepted with probability exp(-rate (best - score)) is distributed as stated, and
    the best one is accepted at once, so a group of k candidates needs at most k tries on average.
    """
    deficits = _deficits(scores, starts)
    chosen = np.full(len(starts) - 1, -1, np.int64)
    waiting = np.arange(len(starts) - 1)
    while len(waiting):
        proposals = _proposals(stream, starts, waiting)
        accepted = _coins_of_deficits(stream, deficits[proposals.ravel()], rate).reshape(proposals.shape)
        first = accepted.argmax(axis=1)
        done = accepted.any(axis=1)
        chosen[waiting[done]] = proposals[done, first[done]] - starts[waiting[done]]
        waiting = waiting[~done]
    return chosen


def _deficits(scores: Integers, starts: Integers) -> Integers:
    """Give how far each score is below the best of its group."""
    best = np.maximum.reduceat(scores, starts[:-1])
    return np.repeat(best, np.diff(starts)) - scores


def _coins_of_deficits(stream: Stream, deficits: Integers, rate: Fraction) -> Flags:
    """Flip coins of probability exp(-rate * deficit), in Python's integers should 64 bits not hold the products."""
    largest = int(deficits.max(initial=0)) * rate.numerator
    exact: NDArray[Any] = deficits if largest < 2**62 else deficits.astype(object)
    scaled = exact * rate.numerator
    whole, rest = scaled // rate.denominator, scaled % rate.denominator
    return coins(stream, whole.astype(np.int64), rest.astype(np.int64), rate.denominator)


def _uniform_among(stream: Stream, heads: Flags, starts: Integers) -> Integers:
    """Pick one head per group: the one whose rank among the group's heads is drawn uniformly."""
    ranked = np.concatenate(([0], np.cumsum(heads)))
    before, number = ranked[starts[:-1]], ranked[starts[1:]] - ranked[starts[:-1]]
    ranks = np.empty(len(number), np.int64)
    for size in np.unique(number):
        same = np.flatnonzero(number == size)
        ranks[same] = uniform_below(stream, int(size), len(same))
    positions: Integers = np.flatnonzero(heads)[before + ranks]
    return positions


def _proposals(stream: Stream, starts: Integers, groups: Integers) -> Integers:
    """Draw a row of uniform candidates for each group."""
    sizes = starts[groups + 1] - starts[groups]
    width = int(min(64, sizes.max()))
    drawn = np.empty((len(groups), width), np.int64)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        drawn[same] = uniform_below(stream, int(size), len(same) * width).reshape(-1, width)
    return drawn + starts[groups][:, None]
