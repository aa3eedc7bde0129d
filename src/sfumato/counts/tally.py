"""Questions about a table in public terms: what to count.

A `Tally` is one pass over the data; `Cells` is a way to read it in which every record counts once. Shapes follow from
the schema alone, so a question can be described, checked and priced before anything is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyError
from sfumato.partition import Grid

Integers = NDArray[np.int64]

BLAME = "Report this: it is a mistake of the method."


@dataclass(frozen=True)
class Tally:
    """For every region of a partition: its records by class and, for the named attributes, by leaf and class."""

    partition: Grid
    classes: int
    attributes: tuple[int, ...] = ()

    def leaves(self, attribute: int) -> int:
        """Give the number of leaves of an attribute."""
        return self.partition.shape[attribute]


@dataclass(frozen=True)
class Counts:
    """An engine's answer to a tally, dense, zeros present. It never leaves the meter."""

    by_region: Integers
    """regions x classes"""
    by_leaf: dict[int, Integers]
    """attribute -> regions x leaves x classes"""

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "Counts(...)"

    @cached_property
    def below(self) -> dict[int, Integers]:
        """For each attribute the records with a leaf below each border: regions x (leaves + 1) x classes."""
        return {
            attribute: np.concatenate((np.zeros_like(leaves[:, :1]), leaves.cumsum(axis=1)), axis=1)
            for attribute, leaves in self.by_leaf.items()
        }


class CountEngine(Protocol):
    """Something that holds a table and can count it, and can do nothing else."""

    def tally(self, tally: Tally) -> Counts:
        """Count everything the tally asks for, exactly, in one pass."""


@dataclass(frozen=True)
class Cells:
    """A reading of a tally in which every record counts in exactly one cell, so one record moves one count by 1.

    Without an attribute the cells are region x class; with one they are region x leaf, whatever the class.
    """

    tally: Tally
    attribute: int | None = None

    def __post_init__(self) -> None:
        """Refuse to read what the tally does not count."""
        if self.attribute is not None and self.attribute not in self.tally.attributes:
            raise PrivacyError("cells must be of an attribute that the tally counts", BLAME)

    @property
    def shape(self) -> tuple[int, int]:
        """Give the shape of the answer, from the schema alone."""
        across = self.tally.classes if self.attribute is None else self.tally.leaves(self.attribute)
        return self.tally.partition.regions, across

    def read(self, counts: Counts) -> Integers:
        """Take the cells from an engine's answer."""
        if self.attribute is None:
            return counts.by_region
        by_leaf: Integers = counts.by_leaf[self.attribute].sum(axis=2)
        return by_leaf
