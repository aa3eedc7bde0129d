"""Exact discrete Laplace noise, built on one primitive: a coin that shows heads with probability exp(-x), x rational.

Everything here is integer arithmetic on uniform integers (Canonne, Kamath, Steinke, "The Discrete Gaussian for
Differential Privacy", 2020, algorithms 1 and 2), whole arrays at a time. No float is ever compared, added or rounded,
so the distributions are the stated ones and not approximations of them.

Randomness comes from the operating system's cryptographic source, or from a seed for tests. No other module draws
randomness that an epsilon rests on, and all proofs rest on these bytes being uniform and unpredictable. `os.urandom`
gives some 250 MB/s in large pieces, which is no bottleneck, because samplers ask for whole arrays.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Integers
from sfumato.errors import MethodError

CHUNK = 1 << 17
"""How many draws are made at a time, so that the working arrays stay in the cache."""


class Stream(Protocol):
    """A source of independent uniform bytes."""

    secure: bool
    """whether nobody can predict the bytes"""

    def take(self, size: int) -> bytes:
        """The next bytes, this many; each is used once."""


class SystemStream:
    """The operating system's cryptographic generator, asked anew each time: no byte is kept, so none is used twice."""

    secure = True

    def take(self, size: int) -> bytes:
        """Bytes straight from the system."""
        return os.urandom(size)


class SeededStream:
    """A reproducible stream for tests and benchmarks; what is made with it has no guarantee."""

    secure = False

    def __init__(self, unsafe_seed: int) -> None:
        """Begin the sequence of this seed."""
        if unsafe_seed < 0:
            raise MethodError(f"unsafe_seed ({unsafe_seed}) must be 0 or more", "Give another seed, or none.")
        self._generator = np.random.Generator(np.random.Philox(unsafe_seed))

    def take(self, size: int) -> bytes:
        """The next bytes of the sequence."""
        return self._generator.bytes(size)


def uniform_below(stream: Stream, bound: int, count: int) -> Integers:
    """Draw integers uniform on `[0, bound)`: the low bits of each word; those that reach the bound are drawn again.

    Each accepted value has the same number of words behind it, so the result is exactly uniform.
    """
    if not 0 < bound <= 2**62:
        raise OverflowError("a uniform draw is limited to 62 bits")
    if bound == 1:
        return np.zeros(count, np.int64)
    bits = (bound - 1).bit_length()
    word = np.dtype(np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64)
    mask = word.type((1 << bits) - 1)
    drawn = np.empty(count, np.int64)
    filled = 0
    while filled < count:
        wanted = count - filled
        tries = wanted if bound == 1 << bits else int(wanted * (1 << bits) / bound * 1.02) + 8
        words = np.frombuffer(stream.take(tries * word.itemsize), word) & mask
        kept = words[words < bound][:wanted] if bound < 1 << bits else words
        drawn[filled : filled + len(kept)] = kept
        filled += len(kept)
    return drawn


def uniform_below_each(stream: Stream, bounds: Integers) -> Integers:
    """Draw an integer uniform on `[0, bound)` for each bound, in the same way."""
    if not ((bounds > 0) & (bounds <= 2**62)).all():
        raise OverflowError("a uniform draw is limited to 62 bits")
    word = np.dtype(np.uint32 if int(bounds.max(initial=1)) <= 2**32 else np.uint64)
    masks = _masks(bounds.astype(np.uint64) - np.uint64(1)).astype(word)
    drawn = np.empty(len(bounds), np.int64)
    waiting = np.arange(len(bounds))
    while len(waiting):
        words = (np.frombuffer(stream.take(len(waiting) * word.itemsize), word) & masks[waiting]).astype(np.int64)
        kept = words < bounds[waiting]
        drawn[waiting[kept]] = words[kept]
        waiting = waiting[~kept]
    return drawn


def _masks(largest: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each number, the least one not below it whose binary digits are all ones."""
    for shift in (1, 2, 4, 8, 16, 32):
        largest = largest | (largest >> np.uint64(shift))
    return largest


def coins_within_one(stream: Stream, numerators: Integers, denominator: int) -> Booleans:
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


def coins(stream: Stream, whole: Integers, rest: Integers, denominator: int) -> Booleans:
    """Flip coins with heads probability exp(-(w + a/b)): one coin of exp(-1) per whole unit of w, one for the rest a/b.

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
    """Run the sampler this many times; only the draws that it keeps are returned, all independent."""
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
