"""Exact discrete Laplace noise, built on one primitive: a coin that shows heads with probability exp(-x), x rational.

Everything here is integer arithmetic on uniform integers (Canonne, Kamath, Steinke, "The Discrete Gaussian for
Differential Privacy", 2020, algorithms 1 and 2), whole arrays at a time. No float is ever compared, added or rounded,
so the distributions are the stated ones and not approximations of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.stream import Stream, uniform_below

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

CHUNK = 1 << 17
"""Draws made at a time, so that the working arrays stay in the cache."""


def coins_within_one(stream: Stream, numerators: Integers, denominator: int) -> Flags:
    """Flip coins with heads probability exp(-a/b), 0 <= a <= b.

    Let K be the first k at which a draw of Bernoulli(a/(b k)) fails. P(K > k) = (a/b)^k / k!, so
    P(K odd) = sum over k of (-1)^k (a/b)^k / k! = exp(-a/b).
    """
    failed_at = np.empty(len(numerators), np.int64)
    running = np.arange(len(numerators))
    k = 0
    while len(running):
        k += 1
        succeeded = uniform_below(stream, denominator * k, len(running)) < numerators[running]
        failed_at[running[~succeeded]] = k
        running = running[succeeded]
    return np.asarray(failed_at % 2 == 1)


def coins(stream: Stream, whole: Integers, rest: Integers, denominator: int) -> Flags:
    """Flip coins with heads probability exp(-(w + a/b)): one coin of exp(-1) per whole unit w, one for the rest a/b.

    A coin whose first unit shows tails is tails, so the expected number of units flipped is below two whatever w is.
    """
    heads = np.ones(len(whole), np.bool_)
    running, flipped = np.flatnonzero(whole), 0
    while len(running):
        survived = coins_within_one(stream, np.ones(len(running), np.int64), 1)
        heads[running[~survived]] = False
        flipped += 1
        running = running[survived & (whole[running] > flipped)]
    alive = np.flatnonzero(heads)
    heads[alive] = coins_within_one(stream, rest[alive], denominator)
    return heads


def discrete_laplace(stream: Stream, rate: Fraction, count: int) -> Integers:
    """Draw integers with P(x) proportional to exp(-rate |x|).

    With rate = s/t: X = U + t V, where U on [0, t) is kept with probability exp(-U/t) and V counts heads of exp(-1)
    before the first tail, has P(X = x) proportional to exp(-x/t), so Y = floor(X/s) has P(Y = y) proportional to
    exp(-y s/t). A fair sign makes it two-sided; minus zero is drawn again, since zero would be counted twice.
    """
    noise = np.empty(count, np.int64)
    filled = 0
    while filled < count:
        drawn = _signed(stream, rate, min(CHUNK, int((count - filled) * 1.7) + 16))[: count - filled]
        noise[filled : filled + len(drawn)] = drawn
        filled += len(drawn)
    return noise


def discrete_laplace_each(stream: Stream, numerators: Integers, denominator: int) -> Integers:
    """Draw one integer for each rate `numerators[i] / denominator`, in the same way: U and V do not depend on s."""
    noise = np.empty(len(numerators), np.int64)
    waiting = np.arange(len(numerators))
    while len(waiting):
        offset = uniform_below(stream, denominator, len(waiting))
        kept = coins_within_one(stream, offset, denominator)
        negative = uniform_below(stream, 2, len(waiting)) == 1
        magnitude = (offset + denominator * _heads_in_a_row(stream, len(waiting))) // numerators[waiting]
        kept &= ~(negative & (magnitude == 0))
        noise[waiting[kept]] = np.where(negative, -magnitude, magnitude)[kept]
        waiting = waiting[~kept]
    return noise


def _signed(stream: Stream, rate: Fraction, tries: int) -> Integers:
    """Run this many tries of the sampler; what comes out is how many of them are kept, each independent."""
    offset = uniform_below(stream, rate.denominator, tries)
    offset = offset[coins_within_one(stream, offset, rate.denominator)]
    magnitude = (offset + rate.denominator * _heads_in_a_row(stream, len(offset))) // rate.numerator
    negative = uniform_below(stream, 2, len(magnitude)) == 1
    kept = ~(negative & (magnitude == 0))
    return np.asarray(np.where(negative, -magnitude, magnitude)[kept], np.int64)


def _heads_in_a_row(stream: Stream, count: int) -> Integers:
    """Count heads of exp(-1) before the first tail."""
    heads = np.zeros(count, np.int64)
    running = np.arange(count)
    while len(running):
        running = running[coins_within_one(stream, np.ones(len(running), np.int64), 1)]
        heads[running] += 1
    return heads
