"""Where randomness comes from: the operating system's cryptographic source, or a seed for tests.

It is apart so that nothing else can draw randomness: what is exact above it rests on these words being uniform and
unpredictable. Large blocks of `os.urandom` run at some 250 MB/s, a fraction of what the samplers take.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 16


class Stream(Protocol):
    """A source of independent uniform bytes."""

    secure: bool

    def take(self, size: int) -> bytes | bytearray | memoryview:
        """Give this many bytes, each used once."""


class SystemStream:
    """The operating system's cryptographic generator, drawn in blocks that no thread or forked process shares."""

    secure = True

    def __init__(self) -> None:
        """Start with nothing in store."""
        self._owner = os.getpid()
        self._store = memoryview(b"")
        self._one_at_a_time = threading.Lock()

    def take(self, size: int) -> memoryview:
        """Give bytes from the store, or straight from the system when it does not hold enough."""
        with self._one_at_a_time:
            if size > len(self._store) or self._owner != os.getpid():
                self._owner = os.getpid()
                self._store = memoryview(os.urandom(max(size, BLOCK)))
            taken, self._store = self._store[:size], self._store[size:]
            return taken


class SeededStream:
    """A reproducible stream for tests and benchmarks; what is made with it carries no guarantee."""

    secure = False

    def __init__(self, unsafe_seed: int) -> None:
        """Fix every later draw."""
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
