"""Hierarchical counts (Hay, Rastogi, Miklau, Suciu 2010): the levels of a tree over an attribute's leaves.

A range of many leaves then rests on few counts. Least squares makes the levels agree, with exact variances
(`models/halvings.py`).

Privacy. The parts of a level are disjoint, so a level is one round; a record is in one part of each. The root is the
round that counts everyone, which all attributes share. So with equal rounds, epsilon / height per level, as published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.errors import MethodError
from sfumato.geometry.halving import borders, height, parts
from sfumato.methods.histograms import Histogram, Histograms, histograms_of
from sfumato.methods.method import number, parameter
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema

BEST = "best"
MOST_BRANCHES = 1024


def _branching(name: str, value: Any) -> int | str:
    """Read a power of two, with which levels are levels of a halving; or the word that leaves it to the length."""
    if value == BEST:
        return BEST
    remedy = f"Give 2, 4, 8, 16 ... or {BEST}."
    found = int(number(remedy, least=2, most=MOST_BRANCHES)(name, value))
    if found & (found - 1):
        raise MethodError(f"{name} ({found}) must be a power of 2", remedy)
    return found


def best_branching(leaves: int) -> int:
    """The branching b of least expected error of ranges: (b - 1) h^3 - 2 (b + 1) h^2 / 3 for h levels (Qardaji, Yang,
    Li 2013), by the number of leaves alone, among powers of two. With one level it is the leaves alone.

    >>> best_branching(10), best_branching(100), best_branching(1_000_000)
    (16, 128, 16)
    """
    powers = [1 << power for power in range(1, max(height(leaves), 1) + 1)]

    def error(branching: int) -> float:
        levels = math.ceil(height(leaves) / height(branching))
        return (min(branching, leaves) - 1) * levels**3 - 2 * (min(branching, leaves) + 1) * levels**2 / 3

    return min(powers, key=error)


@dataclass(frozen=True, kw_only=True)
class Hay(Histograms):
    """The counts of all levels of a tree over each attribute's leaves."""

    name: ClassVar[str] = "hay"
    order: ClassVar[int] = 11
    summary: ClassVar[str] = (
        "counts each attribute apart, level by level of a tree over its leaves, made to agree (Hay et al. 2010)"
    )
    additions: ClassVar[str] = "the best branching for each attribute's length; any number of leaves"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"branching": 4})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    branching: int | str = parameter(
        BEST,
        "Into how many parts a part is divided: a power of 2 (the paper has 2), or best, by each attribute's number of "
        "leaves.",
        read=_branching,
    )

    @classmethod
    def as_published(cls) -> Hay:
        """Make the method as its paper has it: a binary tree, all levels with equal parts of epsilon."""
        return cls(branching=2)

    def depths(self, leaves: int) -> range:
        """The depths of the halving that are measured, from the leaves up; the root is counted for all attributes."""
        step = height(best_branching(leaves) if isinstance(self.branching, str) else self.branching)
        return range(height(leaves), 0, -step)

    def share(self, schema: Schema, one: Histogram) -> Fraction:
        """As many equal parts as levels, of which the root is one more; with the best branching it gets little."""
        if self.branching == BEST:
            return super().share(schema, one)
        every = sum(len(self.depths(each.leaves)) for each in histograms_of(schema))
        return Fraction(len(self.depths(one.leaves)), every + 1)

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """All levels the same."""
        depths = self.depths(one.leaves)
        return {self._label(one, depth): Fraction(1, len(depths)) for depth in depths}

    @staticmethod
    def _label(one: Histogram, depth: int) -> str:
        return f"{parts(one.leaves, depth)} parts of {one.name}"

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Measure level by level."""
        labels = {depth: self._label(one, depth) for depth in self.depths(one.leaves)}
        return tuple(
            meter.measure(Cells(tally, one.attribute, borders(one.leaves, depth)), schedule[label], label)
            for depth, label in labels.items()
        ), ()
