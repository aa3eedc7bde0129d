"""Contrasts: sums of an attribute's parts with whole, public weights, some of them negative.

A plain count weighs the leaves of its part by 1. A contrast weighs them by whole numbers that follow from the number of
leaves alone: *halves* are what the first half of a part has more than the second (Haar's wavelets), *waves* are cosines
of growing frequency, rounded. Everything is in integers, so that what one record changes is known exactly: its `reach`,
the most that the weights of one leaf sum to, signs left aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers, read_only
from sfumato.geometry.halving import borders, height

MOST_PARTS = 512
"""Of an attribute with more leaves, waves and bins are of so many parts at most: of a level of its halving."""
MOST_REACH = 2**16
"""Waves are rounded so that no leaf's weights sum to more: the samplers have room for twice as much."""


def parts_of(leaves: int) -> Integers:
    """Where the parts begin of which waves and bins are made, and where the last ends: leaves, or ranges of them.

    >>> len(parts_of(100)) - 1, len(parts_of(1_000_000)) - 1
    (100, 512)
    """
    return borders(leaves, min(height(leaves), height(MOST_PARTS)))


@dataclass(frozen=True)
class Halves:
    """For every part at a depth of the halving that has two halves: the people of the first less those of the second.

    A leaf lies in one half of one part at most, so its weights sum to 1 at most: `reach` is 1.
    """

    kind: ClassVar[str] = "halves"
    leaves: int
    depth: int

    def __post_init__(self) -> None:
        """Refuse a depth at which no part has two halves."""
        if not 0 <= self.depth < height(self.leaves):
            raise ValueError("there must be two halves of a part at this depth")

    @property
    def borders(self) -> Integers:
        """Where the halves begin, and where the last ends: the parts of the next depth."""
        return borders(self.leaves, self.depth + 1)

    @cached_property
    def first(self) -> Integers:
        """The first half of each part that has two, by its number among the halves; the second is the next one."""
        above = np.searchsorted(self.borders, borders(self.leaves, self.depth))
        return read_only(above[:-1][np.diff(above) == 2])

    @property
    def rows(self) -> int:
        """The number of contrasts."""
        return len(self.first)

    @property
    def reach(self) -> int:
        """1, as derived above."""
        return 1

    def of(self, counts: Integers) -> Integers:
        """The contrasts of the halves' counts.

        >>> Halves(5, 1).of(np.array([1, 2, 4, 8])).tolist()
        [-1, -4]
        """
        return np.asarray(counts[self.first] - counts[self.first + 1])

    def plain(self) -> dict[str, Any]:
        """Plain values for a file: the rest follows from the attribute."""
        return {"kind": self.kind, "depth": self.depth}


@dataclass(frozen=True)
class Waves:
    """Sums of the parts weighted by cosines: row f by scale cos(pi f (i + 1/2) / m) for part i of m, rounded.

    Rows are of the frequencies 0, 1, ... below `kept`. With scale = MOST_REACH / kept no weight exceeds scale, so a
    part's weights sum to `kept` times that at most; `reach` is the sum that the largest has. The weights are what is
    measured, not an approximation of it: whoever reads the answer uses the same whole numbers.
    """

    kind: ClassVar[str] = "waves"
    leaves: int
    kept: int

    def __post_init__(self) -> None:
        """Refuse more rows than parts."""
        if not 1 <= self.kept <= len(self.borders) - 1:
            raise ValueError("there must be as many parts as waves, or more")

    @property
    def borders(self) -> Integers:
        """Where parts begin, and where the last ends."""
        return parts_of(self.leaves)

    @property
    def rows(self) -> int:
        """The number of contrasts."""
        return self.kept

    @cached_property
    def weights(self) -> Integers:
        """Rows x parts."""
        scale = MOST_REACH // self.kept
        return read_only(np.rint(scale * cosines(len(self.borders) - 1)[: self.kept]).astype(np.int64))

    @property
    def reach(self) -> int:
        """The most that the weights of one part sum to, signs left aside."""
        return int(np.abs(self.weights).sum(axis=0).max())

    def of(self, counts: Integers) -> Integers:
        """The contrasts of the parts' counts.

        >>> Waves(4, 2).of(np.array([1, 0, 0, 1])).tolist()
        [65536, 0]
        """
        return np.asarray(self.weights @ counts)

    def plain(self) -> dict[str, Any]:
        """Plain values for a file: the rest follows from the attribute."""
        return {"kind": self.kind, "kept": self.kept}


Contrast = Halves | Waves


def contrast_of(leaves: int, plain: Mapping[str, Any]) -> Contrast:
    """Read a contrast of an attribute with so many leaves from plain values."""
    kinds: dict[str, type[Halves] | type[Waves]] = {one.kind: one for one in (Halves, Waves)}
    ((_, number),) = ((name, value) for name, value in plain.items() if name != "kind")
    if type(number) is not int:
        raise ValueError("a contrast must have a whole number")
    found = kinds[plain["kind"]](leaves, number)
    if found.plain() != dict(plain):
        raise ValueError("a contrast must say what is read from it, and nothing else")
    return found


def cosines(size: int) -> Floats:
    """The cosines cos(pi f (i + 1/2) / size): frequencies x parts. Their rows are orthogonal.

    >>> (cosines(4) @ cosines(4).T).round(9).diagonal().tolist()
    [4.0, 2.0, 2.0, 2.0]
    """
    return np.asarray(np.cos(np.pi / size * np.arange(size)[:, None] * (np.arange(size) + 0.5)))
