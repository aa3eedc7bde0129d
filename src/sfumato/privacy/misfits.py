"""Misfits: which marginal is told worst by what is expected of it, as an integer score that is safe to choose by.

A candidate is a marginal of the tally, made coarser in each attribute, by class or not. With counts n of its cells,
numbers e that are expected of them, and a charge for the noise that measuring it would bring, its score is

    S = sum over cells of |n - e| - charge.

**Sensitivity 1.** The expected numbers and the charge are public: they are made from earlier answers and handed over as
integers, in steps of UNIT, before anything is looked at. Cells of one candidate are disjoint, so a record that is added
or removed changes one n by 1, and |n - e| by at most 1; the charge does not move. All is integer arithmetic, hence
exact. The score is not monotone: where more people are expected than there are, one more makes the misfit smaller. So a
choice at rate epsilon / 2 is epsilon-private (`selection.permute_and_flip`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Integers, frozen
from sfumato.errors import BLAME, PrivacyError
from sfumato.privacy.tally import Counts, Tally, coarsened

UNIT = Fraction(1, 2**6)
"""What one step of expected numbers, charges and scores is worth."""
SENSITIVITY = Fraction(1)
"""How far one record can move a score."""
SIDES = 2
"""Scores of different candidates may move in opposite directions: a choice pays for both."""
MOST = 2**55
"""Expected numbers and charges are smaller than this, so that no sum leaves 64 bits."""


@dataclass(frozen=True, eq=False)
class Coarser:
    """A marginal of a tally, made coarser: the group of each part of each attribute that it cuts; by class or not."""

    marginal: int
    """its number in the tally"""
    groups: tuple[Integers, ...]
    by_class: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each attribute."""
        return tuple(int(group.max()) + 1 for group in self.groups)


@dataclass(frozen=True, eq=False)
class Misfits:
    """Candidates for the next marginal, what is expected of them, and what each is charged for its noise."""

    tally: Tally
    candidates: Sequence[Coarser]
    expected: Sequence[Integers]
    """for each marginal of the tally: regions x classes, in steps of UNIT"""
    charges: Integers
    """for each candidate, in steps of UNIT"""

    def __post_init__(self) -> None:
        """Refuse what would not be scored, or be scored by something else than integers; copy, so nothing changes."""
        tally, shapes = self.tally, [(one.regions, self.tally.classes) for one in self.tally.marginals]
        object.__setattr__(self, "candidates", tuple(self.candidates))
        object.__setattr__(self, "expected", tuple(_steps(one) for one in self.expected))
        object.__setattr__(self, "charges", _steps(self.charges))
        if not self.candidates or self.charges.shape != (len(self.candidates),):
            raise PrivacyError("there must be a charge for each of some marginals to choose from", BLAME)
        if [one.shape for one in self.expected] != shapes:
            raise PrivacyError("there must be an expected number for every cell of a tally's marginals", BLAME)
        if not all(_fits(one, tally) for one in self.candidates):
            raise PrivacyError("a candidate must put every part of a marginal into a group", BLAME)

    def __len__(self) -> int:
        """Count the candidates."""
        return len(self.candidates)

    def scores(self, counts: Counts) -> Integers:
        """Score every candidate; those of one marginal, which stand side by side, share their difference."""
        found, last, differences = np.empty(len(self), np.int64), -1, np.zeros(0, np.int64)
        for number, one in enumerate(self.candidates):
            if one.marginal != last:
                last, differences = one.marginal, self._differences(counts, one.marginal)
            table = differences if one.by_class else differences.sum(axis=-1, keepdims=True)
            found[number] = np.abs(coarsened(table, one.groups, one.sizes)).sum()
        return np.asarray(found - self.charges)

    def _differences(self, counts: Counts, marginal: int) -> Integers:
        """What is counted less what is expected, an axis for each attribute and one for the class."""
        grid = self.tally.marginals[marginal]
        table = counts.marginals[marginal] * UNIT.denominator - self.expected[marginal]
        return np.asarray(table.reshape(*(grid.parts[at] for at in grid.split_attributes), -1))


def _steps(given: Integers) -> Integers:
    """Take whole steps that leave room for sums."""
    if not (isinstance(given, np.ndarray) and given.dtype.kind == "i" and (np.abs(given) < MOST).all()):
        raise PrivacyError("what is expected must be whole steps", BLAME)
    return frozen(given)


def _fits(one: Coarser, tally: Tally) -> bool:
    """Tell whether a candidate gives every part of its marginal's attributes one group."""
    if type(one) is not Coarser or not 0 <= one.marginal < len(tally.marginals):
        return False
    grid = tally.marginals[one.marginal]
    parts = [grid.parts[at] for at in grid.split_attributes]
    return [group.shape for group in one.groups] == [(number,) for number in parts] and all(
        group.dtype.kind == "i" and group.min() >= 0 and group.max() < len(group) for group in one.groups
    )
