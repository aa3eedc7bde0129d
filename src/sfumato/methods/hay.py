"""Hierarchical counts (Hay, Rastogi, Miklau, Suciu 2010): the levels of a tree over an attribute's leaves.

A range of many leaves then rests on few counts. Least squares makes the levels agree, with exact variances
(`models/halvings.py`).

Privacy. The parts of a level are disjoint, so a level is one round; a record is in one part of each. The root is the
round that counts everyone, which all attributes share. So with equal rounds, epsilon / height per level, as published;
the best branching, and the shares of its levels, follow from the number of leaves alone, which is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.errors import MethodError
from sfumato.geometry.halving import borders, height, parts
from sfumato.methods.histograms import Histogram, Histograms, histograms_of
from sfumato.methods.margins import FINENESS, plan_levels
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


@dataclass(frozen=True, kw_only=True)
class Hay(Histograms):
    """The counts of all levels of a tree over each attribute's leaves."""

    name: ClassVar[str] = "hay"
    order: ClassVar[int] = 11
    summary: ClassVar[str] = (
        "counts each attribute apart, level by level of a tree over its leaves, made to agree (Hay et al. 2010)"
    )
    additions: ClassVar[str] = (
        "the best branching for each attribute's length, and the best shares for its levels; any number of leaves"
    )
    suits: ClassVar[str] = "ranges of a long attribute, such as ages or amounts, one attribute at a time"
    arithmetic: ClassVar[str] = (
        "each attribute has a part, shared among the levels of its tree; the class one like it, the size a twentieth"
    )
    unsuited: ClassVar[str] = "for what binds attributes: they are taken for independent; short attributes gain nothing"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"branching": 4})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    branching: int | str = parameter(
        BEST,
        "Into how many parts a part is divided: a power of 2 (the paper has 2), or best: by each attribute's number of "
        "leaves, which also decides how levels share its budget.",
        read=_branching,
    )

    @classmethod
    def as_published(cls) -> Hay:
        """Make the method as its paper has it: a binary tree, all levels with equal parts of epsilon."""
        return cls(branching=2)

    def shares(self, leaves: int) -> Mapping[int, Fraction]:
        """The depths of the halving that are measured, and their shares: the best plan for this number of leaves, or
        all levels alike, from the leaves up. The root is counted for all attributes.
        """
        if isinstance(self.branching, str):
            weights = {depth: max(round(FINENESS * share), 1) for depth, share in plan_levels(leaves).shares.items()}
        else:
            weights = dict.fromkeys(range(height(leaves), 0, -height(self.branching)), 1)
        return {depth: Fraction(weight, sum(weights.values())) for depth, weight in weights.items()}

    def share(self, schema: Schema, one: Histogram) -> Fraction:
        """As many equal parts as levels, of which the root is one more; with the best branching it gets little."""
        if self.branching == BEST:
            return super().share(schema, one)
        every = sum(len(self.shares(each.leaves)) for each in histograms_of(schema))
        return Fraction(len(self.shares(one.leaves)), every + 1)

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """A round for each level."""
        return {self._label(one, depth): share for depth, share in self.shares(one.leaves).items()}

    @staticmethod
    def _label(one: Histogram, depth: int) -> str:
        return f"{parts(one.leaves, depth)} parts of {one.name}"

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Measure level by level."""
        labels = {depth: self._label(one, depth) for depth in self.shares(one.leaves)}
        return tuple(
            meter.measure(Cells(tally, one.attribute, borders(one.leaves, depth)), schedule[label], label)
            for depth, label in labels.items()
        ), ()
