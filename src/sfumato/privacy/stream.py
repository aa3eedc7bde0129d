"""Where randomness comes from: the operating system's cryptographic source, or a seed for tests.

It is apart so that nothing else can draw randomness: what is exact above it rests on these words being uniform and
unpredictable. `os.urandom` runs at some 250 MB/s in large pieces, which is no bottleneck: samplers ask for whole
arrays.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MethodError


class Stream(Protocol):
    """A source of independent uniform bytes."""

    secure: bool

    def take(self, size: int) -> bytes:
        """Give this many bytes, each used once."""


class SystemStream:
    """The operating system's cryptographic generator, asked anew each time: nothing is kept that could be used
    twice.
    """

    secure = True

    def take(self, size: int) -> bytes:
        """Give bytes straight from the system."""
        return os.urandom(size)


class SeededStream:
    """A reproducible stream for tests and benchmarks; what is made with it carries no guarantee."""

    secure = False

    def __init__(self, unsafe_seed: int) -> None:
        """Fix every later draw."""
        if unsafe_seed < 0:
            raise MethodError(f"unsafe_seed ({unsafe_seed}) must be 0 or more", "Give another seed, or none.")
        self._generator = np.random.Generator(np.random.Philox(unsafe_seed))

    def take(self, size: int) -> bytes:
        """Give the next bytes of the sequence."""
        return self._generator.bytes(size)


def uniform_below(stream: Stream, bound: int, count: int) -> NDArray[np.int64]:
    """Draw integers uniform on `[0, bound)`: the low bits of each word, those that reach the bound drawn again.

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


def uniform_below_each(stream: Stream, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
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
    """Give the least number of all ones that is not below each of these."""
    for shift in (1, 2, 4, 8, 16, 32):
        largest = largest | (largest >> np.uint64(shift))
    return largest
