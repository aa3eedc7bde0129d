"""The acts that use randomness: adding noise to counts, choosing, and drawing lots.

They are one object so that it can be stood in for: the tests record and replay what goes in and comes out of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from sfumato.arrays import Integers
from sfumato.privacy.noise import Stream, SystemStream, discrete_laplace, discrete_laplace_each, uniform_below
from sfumato.privacy.scores import Selection
from sfumato.privacy.selection import Scored, exponential, permute_and_flip

CHOOSERS = {"permute-and-flip": permute_and_flip, "exponential": exponential}


class Mechanisms(Protocol):
    """What the meter needs of randomness."""

    @property
    def secure(self) -> bool:
        """Whether the randomness is unpredictable."""

    def add_noise(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        """Add independent noise to every count: in row i with P(x) proportional to exp(-rate |x|), where the rate is
        `rates[rate_of[i]]`.
        """

    def choose(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        """Choose one candidate per group, a deficit of one score unit being exp(-rate) as likely."""

    def lots(self, count: int) -> Integers:
        """Draw large uniform numbers, which have nothing to do with the data."""


class Exact:
    """The real thing, on a stream of random bytes."""

    def __init__(self, stream: Stream | None = None) -> None:
        """Draw from the operating system unless a test says otherwise."""
        self._stream = stream or SystemStream()

    @property
    def secure(self) -> bool:
        """Whether the stream is cryptographic."""
        return self._stream.secure

    def add_noise(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        """Add discrete Laplace noise: if one record changes a row by s in all, that row is (rate s)-private."""
        if len(rates) == 1:
            return counts + discrete_laplace(self._stream, rates[0], counts.size).reshape(counts.shape)
        denominator = math.lcm(*(rate.denominator for rate in rates))
        numerators = np.array([int(rate * denominator) for rate in rates], np.int64)[rate_of]
        noise = discrete_laplace_each(self._stream, np.repeat(numerators, counts.shape[1]), denominator)
        return counts + noise.reshape(counts.shape)

    def choose(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        """Choose by the named mechanism."""
        return CHOOSERS[selection](self._stream, scored, rate)

    def lots(self, count: int) -> Integers:
        """Draw numbers below 2^62."""
        return uniform_below(self._stream, 2**62, count)
