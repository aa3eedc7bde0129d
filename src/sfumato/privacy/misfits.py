"""Misfits: which marginal is told worst by what is expected of it, as an integer score that is safe to choose by.

A candidate is a marginal of two attributes of the tally, made coarser along each, by class or not. With counts n of its
cells, numbers e that are expected of them, and a charge for the noise that measuring it would bring, its score is

    S = sum over cells of |n - e| - charge.

**Sensitivity 1.** The expected numbers and the charge are public: they are made from earlier answers and handed over as
integers, in steps of UNIT, before anything is looked at. Cells of one candidate are disjoint, so a record that is added
or removed changes one n by 1, and |n - e| by at most 1; the charge does not move. All is integer arithmetic, hence
exact. The score is not monotone: where more people are expected than there are, one more makes the misfit smaller. So a
choice at rate epsilon / 2 is epsilon-private (`selection.permute_and_flip`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sfumato.arrays import Integers, frozen
from sfumato.errors import BLAME, PrivacyError
from sfumato.privacy.tally import Counts, Tally

UNIT = Fraction(1, 2**6)
"""What one step of expected numbers, charges and scores is worth."""
SENSITIVITY = Fraction(1)
"""How far one record can move a score."""
SIDES = 2
"""Scores of different candidates may move in opposite directions: a choice pays for both."""
MOST = 2**50
"""Expected numbers and charges are smaller than this,"""
TOGETHER = 2**60
"""and their sums smaller than this: so what is added up of a marginal, people included, keeps to 64 bits."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Ways to put the parts of an attribute into groups, the coarsest first: on every level each part has one group."""

    levels: tuple[Integers, ...]
    sums: Integers = field(init=False)
    """groups of all levels x parts: 1 where the group has the part"""
    starts: Integers = field(init=False)
    """where the groups of each level begin"""

    def __post_init__(self) -> None:
        """Lay out the groups of all levels; refuse a level that gives some part no group, or several."""
        given = [frozen(level) for level in self.levels]
        if not given or {one.shape for one in given} != {given[0].shape} or any(_is_odd(one) for one in given):
            raise PrivacyError("a level must put every part of an attribute into a group", BLAME)
        sizes = [int(level.max()) + 1 for level in given]
        sums = [np.arange(size)[:, None] == level for level, size in zip(given, sizes, strict=True)]
        object.__setattr__(self, "levels", tuple(given))
        object.__setattr__(self, "sums", frozen(np.concatenate(sums)))
        object.__setattr__(self, "starts", frozen(np.cumsum([0, *sizes[:-1]])))

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.levels[0])


def _is_odd(level: Integers) -> bool:
    return level.ndim != 1 or not len(level) or int(level.min()) < 0 or int(level.max()) >= len(level)


@dataclass(frozen=True, eq=False)
class Misfits:
    """Candidates for the next marginal, what is expected of them, and what each is charged for its noise."""

    tally: Tally
    ladders: Mapping[int, Ladder]
    """of attributes"""
    candidates: Integers
    """candidates x 4: the marginal's number in the tally, the levels of its two attributes, 1 if by class and else 0"""
    expected: Sequence[Integers]
    """for each marginal of the tally: regions x classes, in steps of UNIT"""
    charges: Integers
    """for each candidate, in steps of UNIT"""

    def __post_init__(self) -> None:
        """Refuse what would not be scored, or by something else than integers; copy all, so that nothing changes."""
        object.__setattr__(self, "candidates", frozen(self.candidates))
        object.__setattr__(self, "expected", tuple(_steps(one) for one in self.expected))
        object.__setattr__(self, "charges", _steps(self.charges))
        object.__setattr__(self, "ladders", dict(self.ladders))
        marginals = self.tally.marginals
        if not len(self.candidates) or self.charges.shape != (len(self.candidates),):
            raise PrivacyError("there must be a charge for each of some marginals to choose from", BLAME)
        if not self.tally.charges_everyone:
            raise PrivacyError("a marginal must be chosen by a tally for which everyone pays", BLAME)
        if [one.shape for one in self.expected] != [(one.regions, self.tally.classes) for one in marginals]:
            raise PrivacyError("there must be an expected number for every cell of a tally's marginals", BLAME)
        if not all(self._can_be_scored(marginal) for marginal in np.unique(self.candidates[:, 0]).tolist()):
            raise PrivacyError("a candidate must be a marginal of two attributes, each with levels of its parts", BLAME)

    def _can_be_scored(self, marginal: int) -> bool:
        if not 0 <= marginal < len(self.tally.marginals):
            return False
        grid = self.tally.marginals[marginal]
        ladders = [self.ladders.get(at) for at in grid.split_attributes]
        asked = self.candidates[self.candidates[:, 0] == marginal]
        if len(ladders) != 2 or not ((asked[:, 3] == 0) | (asked[:, 3] == 1)).all():
            return False
        return all(
            type(ladder) is Ladder
            and ladder.parts == grid.parts[at]
            and bool(((asked[:, axis] >= 0) & (asked[:, axis] < len(ladder.levels))).all())
            for axis, (at, ladder) in enumerate(zip(grid.split_attributes, ladders, strict=True), 1)
        )

    def __len__(self) -> int:
        """Count the candidates."""
        return len(self.candidates)

    def scores(self, counts: Counts) -> Integers:
        """Score every candidate: of each marginal, all levels at once."""
        found = np.empty(len(self), np.int64)
        for marginal in np.unique(self.candidates[:, 0]).tolist():
            asked = np.flatnonzero(self.candidates[:, 0] == marginal)
            _, first, second, by_class = self.candidates[asked].T
            found[asked] = self._misfits(counts, marginal)[by_class, first, second]
        return np.asarray(found - self.charges)

    def _misfits(self, counts: Counts, marginal: int) -> Integers:
        """Sum |n - e| without and by class, for all levels of the first attribute and of the second."""
        grid = self.tally.marginals[marginal]
        one, other = (self.ladders[at] for at in grid.split_attributes)
        table = (counts.marginals[marginal] * UNIT.denominator - self.expected[marginal]).reshape(one.parts, -1)
        rows = (one.sums @ table).reshape(len(one.sums), other.parts, -1)
        cells = np.einsum("apc,bp->abc", rows, other.sums)
        apart = np.stack([np.abs(cells.sum(axis=2)), np.abs(cells).sum(axis=2)])
        return np.asarray(np.add.reduceat(np.add.reduceat(apart, one.starts, axis=1), other.starts, axis=2))


def _steps(given: Integers) -> Integers:
    """Take whole steps that leave room for sums. They are public: floats, which do not wrap, may tell their size."""
    whole = isinstance(given, np.ndarray) and given.dtype.kind == "i"
    sizes = np.abs(given.astype(np.float64)) if whole else np.full(1, MOST)
    if not ((sizes < MOST).all() and sizes.sum() < TOGETHER):
        raise PrivacyError("what is expected must be whole steps", BLAME)
    return frozen(given)
