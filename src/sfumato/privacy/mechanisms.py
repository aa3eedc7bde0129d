"""The two acts that touch true counts with randomness: adding noise, and choosing.

They are one object so that it can be stood in for: the tests record and replay what goes in and comes out of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from sfumato.privacy.noise import Integers, discrete_laplace
from sfumato.privacy.scores import Selection
from sfumato.privacy.selection import exponential, permute_and_flip
from sfumato.privacy.stream import Stream, SystemStream

CHOOSERS = {"permute-and-flip": permute_and_flip, "exponential": exponential}


class Mechanisms(Protocol):
    """What the meter needs of randomness."""

    @property
    def secure(self) -> bool:
        """Whether the randomness is unpredictable."""

    def add_noise(self, counts: Integers, rate: Fraction) -> Integers:
        """Add independent noise with P(x) proportional to exp(-rate |x|) to every count."""

    def choose(self, selection: Selection, scores: Integers, starts: Integers, rate: Fraction) -> Integers:
        """Choose one candidate per group, a deficit of one score unit being exp(-rate) as likely."""


class Exact:
    """The real thing, on a stream of random bytes."""

    def __init__(self, stream: Stream | None = None) -> None:
        """Draw from the operating system unless a test says otherwise."""
        self._stream = stream or SystemStream()

    @property
    def secure(self) -> bool:
        """Whether the stream is cryptographic."""
        return self._stream.secure

    def add_noise(self, counts: Integers, rate: Fraction) -> Integers:
        """Add discrete Laplace noise: if one record changes the counts by s in all, this is (rate s)-private."""
        return counts + discrete_laplace(self._stream, rate, counts.size).reshape(counts.shape)

    def choose(self, selection: Selection, scores: Integers, starts: Integers, rate: Fraction) -> Integers:
        """Choose by the named mechanism."""
        return CHOOSERS[selection](self._stream, scores, starts, rate)
