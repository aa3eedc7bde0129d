"""Choose one of many candidates privately, in many disjoint groups of candidates at once.

Scores are integers and the rate at which a deficit becomes improbable is an exact fraction, so both mechanisms are
flips of the exact coins of `noise`. Candidates with the same score may stand together as copies; the choice is the
same as if each stood alone, and neither mechanism looks at more of them than it must.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Integers
from sfumato.privacy.noise import Stream, coins, uniform_below_each

TRIES = 8
"""How many candidates permute-and-flip visits one by one before it flips the coins of all that are left."""
AT_ONCE = 1 << 20
"""About how many coins are flipped at once, in whole groups."""
MOST_TRIES = 64
"""How many candidates the exponential mechanism proposes at a time, after the first TRIES."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of groups of candidates, one group after the other.

    Run r is `copies[r]` candidates of score `scores[r]`. Group g has the runs `starts[g]` to `starts[g + 1]`; its
    deficits count `stakes[g]` times, in proportion to what it pays.
    """

    scores: Integers
    copies: Integers
    starts: Integers
    stakes: Integers

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return "Scored(...)"

    @classmethod
    def alone(cls, scores: Integers, starts: Integers) -> Scored:
        """Candidates that are each a run of their own, with stakes of 1."""
        return cls(scores, np.ones(len(scores), np.int64), starts, np.ones(len(starts) - 1, np.int64))

    @cached_property
    def ends(self) -> Integers:
        """Where the candidates of each run end, counted over all groups."""
        return np.cumsum(self.copies)

    @cached_property
    def group_ends(self) -> Integers:
        """Where the candidates of each group begin, and where the last ends."""
        return np.concatenate(([0], self.ends))[self.starts]

    @cached_property
    def deficits(self) -> NDArray[Any]:
        """How far each run's score is below the best of its group, times the group's stakes."""
        sizes = np.diff(self.starts)
        deficits = np.repeat(np.maximum.reduceat(self.scores, self.starts[:-1]), sizes) - self.scores
        if int(deficits.max(initial=0)) * int(self.stakes.max(initial=1)) >= 2**62:
            deficits = deficits.astype(object)
        return np.asarray(deficits * np.repeat(self.stakes, sizes))

    def propose(self, stream: Stream, groups: Integers, tries: int) -> Integers:
        """Draw candidates uniformly from each of some groups, with replacement: groups x tries."""
        sizes = np.diff(self.group_ends)[groups]
        drawn = uniform_below_each(stream, np.repeat(sizes, tries)).reshape(-1, tries)
        return drawn + self.group_ends[groups][:, None]

    def flip(self, stream: Stream, candidates: Integers, rate: Fraction) -> Booleans:
        """Flip a coin of probability exp(-rate * deficit) for each candidate."""
        runs = np.searchsorted(self.ends, candidates, side="right")
        return _coins_of_deficits(stream, self.deficits[runs], rate)


def permute_and_flip(stream: Stream, scored: Scored, rate: Fraction) -> Integers:
    """Choose in each group by permute-and-flip (McKenna and Sheldon, 2020); returns indices within the groups.

    The mechanism visits candidates in random order and takes the first whose coin of probability exp(-rate (best -
    score)) shows heads. Drawing with replacement and passing over candidates that were visited before *is* a random
    order, so that is how it begins. In groups that have no head after some tries, all coins that were not flipped are
    flipped at once: the first head in random order is a uniform choice among all heads. There is one, because the best
    candidate's coin is certain.

    Privacy. It is the same as adding exponential noise of mean 1/rate to every score and taking the largest (Ding et
    al., 2021). Fix the noise of all candidates but i, and let M be the best of the others: i wins when its noise
    exceeds M - u_i. Between neighbours M and u_i each move by at most s, so the threshold moves by at most 2 s, or by
    at most s if all scores move in one direction; the tail of the exponential changes by a factor of at most exp(rate
    * that). With rate = epsilon / (2 s), or epsilon / s for monotone scores, the choice is epsilon-private.
    """
    every = np.arange(len(scored.starts) - 1)
    visited = scored.propose(stream, every, TRIES)
    heads = scored.flip(stream, visited.ravel(), rate).reshape(visited.shape) & ~_repeated(visited)
    chosen = np.asarray(visited[every, heads.argmax(axis=1)])
    waiting = np.flatnonzero(~heads.any(axis=1))
    flipped = np.cumsum(np.diff(scored.group_ends)[waiting])
    for some in np.split(waiting, np.flatnonzero(np.diff(flipped // AT_ONCE)) + 1):
        chosen[some] = _among_the_rest(stream, scored, some, visited[some], rate)
    return chosen - scored.group_ends[:-1]


def _repeated(visited: Integers) -> Booleans:
    """Whether each visit goes to a candidate that an earlier one of its row went to."""
    repeated = np.zeros(visited.shape, np.bool_)
    for later in range(1, visited.shape[1]):
        repeated[:, later] = (visited[:, :later] == visited[:, later, None]).any(axis=1)
    return repeated


def _among_the_rest(stream: Stream, scored: Scored, groups: Integers, visited: Integers, rate: Fraction) -> Integers:
    """Flip the coins of all candidates that were not visited, and take one of the heads of each group."""
    sizes = np.diff(scored.group_ends)[groups]
    ends = np.cumsum(sizes, dtype=np.int64)
    shift = scored.group_ends[groups] - (ends - sizes)
    candidates = np.arange(sizes.sum()) + np.repeat(shift, sizes)
    heads = scored.flip(stream, candidates, rate)
    heads[visited - shift[:, None]] = False
    positions = _uniform_among(stream, heads, np.concatenate(([0], ends)))
    return np.asarray(candidates[positions])


def exponential(stream: Stream, scored: Scored, rate: Fraction) -> Integers:
    """Choose in each group with probability proportional to exp(rate * score); returns indices within the groups.

    By rejection: a candidate drawn uniformly and accepted with probability exp(-rate (best - score)) is distributed as
    stated, and the best one is accepted at once, so a group of k candidates needs at most k tries on average.
    """
    chosen = np.full(len(scored.starts) - 1, -1, np.int64)
    waiting = np.arange(len(chosen))
    tries = TRIES
    while len(waiting):
        proposals = scored.propose(stream, waiting, tries)
        accepted = scored.flip(stream, proposals.ravel(), rate).reshape(proposals.shape)
        done = accepted.any(axis=1)
        chosen[waiting[done]] = proposals[done, accepted[done].argmax(axis=1)]
        waiting, tries = waiting[~done], MOST_TRIES
    return chosen - scored.group_ends[:-1]


def _coins_of_deficits(stream: Stream, deficits: NDArray[Any], rate: Fraction) -> Booleans:
    """Flip coins of probability exp(-rate * deficit), in Python's integers if 64 bits do not hold the products."""
    largest = int(deficits.max(initial=0)) * rate.numerator
    exact: NDArray[Any] = deficits if largest < 2**62 else deficits.astype(object)
    scaled = exact * rate.numerator
    whole, rest = scaled // rate.denominator, scaled % rate.denominator
    return coins(stream, whole.astype(np.int64), rest.astype(np.int64), rate.denominator)


def _uniform_among(stream: Stream, heads: Booleans, starts: Integers) -> Integers:
    """Pick one head per group: the one whose rank among the group's heads is drawn uniformly."""
    ranked = np.concatenate(([0], np.cumsum(heads)))
    before, number = ranked[starts[:-1]], ranked[starts[1:]] - ranked[starts[:-1]]
    positions: Integers = np.flatnonzero(heads)[before + uniform_below_each(stream, number)]
    return positions
