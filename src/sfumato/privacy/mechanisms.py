"""All that uses randomness, in one object: adding noise to counts, choosing, and drawing lots.

Tests put another object in its place, which records and replays what goes in and comes out.
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
    """The random operations that the meter needs."""

    @property
    def secure(self) -> bool:
        """Whether the randomness is unpredictable."""

    def add_noise(self, counts: Integers, rates: Sequence[Fraction], rate_of: Integers) -> Integers:
        """Add independent noise to every count: in row i, P(x) is proportional to exp(-rates[rate_of[i]] |x|)."""

    def choose(self, selection: Selection, scored: Scored, rate: Fraction) -> Integers:
        """Choose one candidate per group; exp(-rate) is the weight of a deficit of one unit of the score."""

    def lots(self, count: int) -> Integers:
        """Draw large uniform numbers, which do not depend on the data."""


class Exact:
    """The mechanisms as they are proved, on a stream of random bytes."""

    def __init__(self, stream: Stream | None = None) -> None:
        """Draw from a stream; from the operating system if none is given."""
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
