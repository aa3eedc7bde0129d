"""What a score is: a quality of candidates, as integers, that is safe to choose by.

A score sees the class counts of the children of every candidate and gives one integer per candidate, in multiples of
`unit`. Neighbouring tables differ by one record, which falls into at most one child of a candidate, in one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Children:
    """The children of candidates that divide ranges of one attribute: those of candidate i are `starts[i]` to
    `starts[i + 1]`.
    """

    counts: Integers
    """children x classes"""
    starts: Integers
    widths: Integers
    """how many leaves each child covers; of a run of splits, the first one's"""
    leaves: int
    """how many leaves the attribute has"""
    places: Integers
    """where each candidate lies"""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Children(...)"

    @cached_property
    def fans(self) -> Integers:
        """How many children each candidate has."""
        return np.diff(self.starts)

    @cached_property
    def _in_pairs(self) -> bool:
        return bool((self.fans == 2).all())

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of children over each candidate."""
        if self._in_pairs:
            return np.asarray(values[::2] + values[1::2])
        return np.asarray(np.add.reduceat(values, self.starts[:-1]))

    def repeat(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give each child its candidate's value."""
        return np.repeat(values, 2 if self._in_pairs else self.fans, axis=0)

    @cached_property
    def parents(self) -> Integers:
        """The class counts of the ranges that are divided: candidates x classes."""
        return self.sum(self.counts)


class Score(Protocol):
    """A quality of candidates that is safe to choose by. Scores are values: a method cannot pass a function."""

    name: ClassVar[str]
    """what users call it"""
    unit: ClassVar[Fraction]
    """what one step of the integer score is worth"""
    monotone: ClassVar[bool]
    """whether adding a record moves every candidate's score in one direction, or not at all"""
    positional: ClassVar[bool]
    """whether splits that divide the records alike may still differ, by where they are"""
    needs_classes: ClassVar[bool]
    """whether it says anything only about a table with a class attribute"""

    def sensitivity(self, classes: int, /) -> Fraction:
        """Give how far one record can move one candidate's score, in the score's own terms (not in units)."""

    def of(self, children: Children) -> Integers:
        """Score candidates."""

    def fits(self, _places: int, _classes: int, /) -> bool:
        """Tell whether it can score candidates in so many places, of so many classes.

        A meter asks before anything is paid: what does not fit might fail or not, depending on who is counted.
        """
        return True
