"""Questions about a table in public terms: what to count, and which choices to make from it.

A `Tally` is one pass over the data; `Cells` is a way to read it in which every record counts once; `Choices` are groups
of candidate specializations whose records are disjoint. Shapes follow from the schema alone, so a question can be
described, checked and priced before anything is looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyError
from sfumato.partition import Grid

Integers = NDArray[np.int64]


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
            raise PrivacyError(
                "cells must be of an attribute that the tally counts",
                "Report this: it is a mistake of the method.",
            )

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


@dataclass(frozen=True)
class Candidate:
    """A specialization: inside one region, one attribute's range, divided at these borders (outer ones included)."""

    region: int
    attribute: int
    borders: tuple[int, ...]


@dataclass(frozen=True)
class Choices:
    """Groups of candidates, one of each to be chosen, on the counts of one tally.

    Candidates of one group may overlap: that is one choice. Different groups must concern different records, so that
    all are paid with one debit (parallel composition): they lie in different regions, or in disjoint ranges of one
    attribute.
    """

    tally: Tally
    groups: tuple[tuple[Candidate, ...], ...]

    def __post_init__(self) -> None:
        """Refuse groups that share records, are empty, or ask for what the tally does not count."""
        for candidate in self._candidates:
            borders = candidate.borders
            inside = borders[0] >= 0 and borders[-1] <= self.tally.leaves(candidate.attribute)
            increasing = all(left < right for left, right in itertools.pairwise(borders))
            if not (inside and increasing and len(borders) > 2 and candidate.attribute in self.tally.attributes):
                raise PrivacyError(
                    "a candidate must divide a range that the tally counts",
                    "Report this: it is a mistake of the method.",
                )
        if not all(self.groups) or not _disjoint(self.groups):
            raise PrivacyError(
                "groups of candidates must be non-empty and concern different records",
                "Report this: it is a mistake of the method.",
            )

    @property
    def _candidates(self) -> Iterable[Candidate]:
        return (candidate for group in self.groups for candidate in group)

    @cached_property
    def group_starts(self) -> Integers:
        """Where each group begins among the candidates, and the end."""
        return _starts([len(group) for group in self.groups])

    @cached_property
    def child_starts(self) -> Integers:
        """Where each candidate begins among the children, and the end."""
        return _starts([len(candidate.borders) - 1 for candidate in self._candidates])

    def children(self, counts: Counts) -> Integers:
        """Give the class counts of every candidate's children: children x classes."""
        candidates = list(self._candidates)
        sizes = [len(candidate.borders) - 1 for candidate in candidates]
        attribute = np.repeat([candidate.attribute for candidate in candidates], sizes)
        region = np.repeat([candidate.region for candidate in candidates], sizes)
        lo = np.concatenate([candidate.borders[:-1] for candidate in candidates])
        hi = np.concatenate([candidate.borders[1:] for candidate in candidates])
        children = np.empty((len(lo), self.tally.classes), np.int64)
        for which in np.unique(attribute):
            own = attribute == which
            below = counts.below[int(which)]
            children[own] = below[region[own], hi[own]] - below[region[own], lo[own]]
        return children


def _starts(sizes: Sequence[int]) -> Integers:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _disjoint(groups: Sequence[Sequence[Candidate]]) -> bool:
    """Tell whether no record can fall under candidates of two groups."""
    scopes: dict[int, list[tuple[int, int, int]]] = {}
    for group in groups:
        for region in {candidate.region for candidate in group}:
            own = [candidate for candidate in group if candidate.region == region]
            attribute = own[0].attribute if all(one.attribute == own[0].attribute for one in own) else -1
            lo, hi = min(one.borders[0] for one in own), max(one.borders[-1] for one in own)
            scopes.setdefault(region, []).append((attribute, lo, hi))
    return all(len(scope) == 1 or _apart(scope) for scope in scopes.values())


def _apart(scopes: list[tuple[int, int, int]]) -> bool:
    ordered = sorted(scopes)
    same = {attribute for attribute, _, _ in ordered}
    return len(same) == 1 and -1 not in same and all(left[2] <= right[1] for left, right in itertools.pairwise(ordered))
