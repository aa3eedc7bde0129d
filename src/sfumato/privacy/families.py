"""Families: which attribute hangs together most with which parents, as integer scores that are safe to choose by.

A candidate is a family of a network: a child, and its parents, each whole or at a level of its taxonomy. Its counts
c(x, p), by child and by combination of parents, are those of one marginal of the tally, so a record lies in one cell of
every candidate. With n the sum of the counts, c(x) and c(p) their sums over parents and over the child:

**R'**, PrivBayes' R times n: how many records stand where they would not, if the child did not depend on its parents,

    R' = 1/2 sum over x and p of |c(x, p) - c(x) c(p) / n|.

Sensitivity 2. It is twice the sum that `scores.Deviation` has for children p and classes x: there the derivation shows
that one more record moves the sum of |...| by 4 (1 - p_k) r < 4, hence R' by less than 2, whatever n. It is rounded
down to the grid, exactly, in integers, which adds less than a unit.

**F'**, for a child of two values, PrivBayes' F times n: how many records would have to be elsewhere for the parents to
tell a child whose values are equally frequent. If parents in a set A are given to the first value, and K_0 and K_1 are
the records of the first value in A and of the second outside it,

    F' = -min over A of ((n/2 - K_0)^+ + (n/2 - K_1)^+).

Sensitivity 1, in halves: for a given A, a record of the first value whose parents are in A changes n - 2 K_0 by -1 and
n - 2 K_1 by +1, so the sum of their positive parts by at most 1 either way; one whose parents are not in A changes both
by +1, and the sum by 0 to 2; for the second value likewise. So twice F' moves by at most 2 for every A, and so does the
least over all A. (n times the mutual information, PrivBayes' first score, moves by about log2 n: it is not offered.)

Neither is monotone: a choice at rate epsilon / (2 sensitivity) is epsilon-private (`selection.permute_and_flip`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.privacy.tally import Counts, Tally

CLASS = -1
"""The number of the class among attributes."""


class FamilyScore(Protocol):
    """A quality of families that is safe to choose by."""

    name: ClassVar[str]
    unit: ClassVar[Fraction]
    sensitivity: ClassVar[Fraction]
    monotone: ClassVar[bool]

    @staticmethod
    def of(table: Integers) -> int:
        """The score of the counts of one family, parents x child, in units."""


class Dependence(FamilyScore):
    """R', as derived above."""

    name: ClassVar[str] = "R'"
    unit: ClassVar[Fraction] = Fraction(1, 2**10)
    sensitivity: ClassVar[Fraction] = 2 + unit
    monotone: ClassVar[bool] = False

    @staticmethod
    def of(table: Integers) -> int:
        """floor(sum |n c(x, p) - c(x) c(p)| / (2 n unit)); 0 without records."""
        counts: NDArray[Any] = table if int(table.sum()) < 2**30 else table.astype(object)
        size = int(counts.sum())
        expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True)
        halves = int(np.abs(size * counts - expected).sum())
        return halves * (Dependence.unit.denominator // 2) // max(size, 1)


class BinaryFit(FamilyScore):
    """F', as derived above."""

    name: ClassVar[str] = "F'"
    unit: ClassVar[Fraction] = Fraction(1, 2)
    sensitivity: ClassVar[Fraction] = Fraction(1)
    monotone: ClassVar[bool] = False

    @staticmethod
    def of(table: Integers) -> int:
        """Find, for every K_0 up to half of the records, the largest K_1, parent by parent; then the best of all."""
        size = int(table.sum())
        half = (size + 1) // 2
        most = np.full(half + 1, -1, np.int64)
        most[0] = 0
        for first, second in table.tolist():
            given = np.full(half + 1, -1, np.int64)
            shift = min(first, half)
            given[shift:] = most[: half + 1 - shift]
            given[half] = max(int(given[half]), int(most[half - shift :].max()))
            most = np.maximum(given, np.where(most >= 0, most + second, -1))
        reached = np.flatnonzero(most >= 0)
        lacking = np.maximum(size - 2 * reached, 0) + np.maximum(size - 2 * most[reached], 0)
        return -int(lacking.min())


FAMILY_SCORES: dict[str, type[FamilyScore]] = {one.name: one for one in (Dependence, BinaryFit)}
"""The scores by name: the only ones that the meter chooses families by."""


@dataclass(frozen=True)
class Family:
    """A child and its parents: the marginal that cuts all of them but the class, and whether the class is one."""

    child: int
    """the attribute, or CLASS"""
    marginal: int
    """its number in the tally"""
    by_class: bool


@dataclass(frozen=True, eq=False)
class Families:
    """Families to choose from, by a score."""

    tally: Tally
    families: Sequence[Family]
    score: str

    def __post_init__(self) -> None:
        """Refuse what the tally does not count, before anything is paid; copy, so that nothing changes."""
        object.__setattr__(self, "families", tuple(self.families))
        if not self.families or self.score not in FAMILY_SCORES:
            raise PrivacyError("there must be families to choose from, and a score of ours to choose by", BLAME)
        if not self.tally.charges_everyone:
            raise PrivacyError("a family must be chosen by a tally for which everyone pays", BLAME)
        if not all(self._is_counted(one) for one in self.families):
            raise PrivacyError("a family must be of a marginal that cuts its child", BLAME)

    def _is_counted(self, one: Family) -> bool:
        if type(one) is not Family or not 0 <= one.marginal < len(self.tally.marginals):
            return False
        grid = self.tally.marginals[one.marginal]
        known = one.by_class if one.child == CLASS else one.child in grid.split_attributes
        return known and (self.score != BinaryFit.name or self._values(one, grid) == 2)

    def _values(self, one: Family, grid: Grid) -> int:
        return self.tally.classes if one.child == CLASS else grid.parts[one.child]

    def __len__(self) -> int:
        """Count the families."""
        return len(self.families)

    def scores(self, counts: Counts) -> Integers:
        """Score every family."""
        score = FAMILY_SCORES[self.score]
        return np.array([score.of(self._table(one, counts)) for one in self.families], np.int64)

    def _table(self, one: Family, counts: Counts) -> Integers:
        """The counts of a family: parents x child."""
        grid = self.tally.marginals[one.marginal]
        cells = counts.marginals[one.marginal]
        if not one.by_class:
            cells = cells.sum(axis=1, keepdims=True)
        table = cells.reshape(*(grid.parts[at] for at in grid.split_attributes), -1)
        axis = -1 if one.child == CLASS else grid.split_attributes.index(one.child)
        moved = np.moveaxis(table, axis, -1)
        return np.asarray(moved.reshape(-1, moved.shape[-1]))
