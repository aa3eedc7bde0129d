"""Many weighted sums over the regions of a grid at once, with the exact variance of each.

Regions are all combinations of ranges, so attributes are summed out one after the other: first those that a condition
does not restrict, which it shares with others, then its own. Regions were measured apart: variances add up, times
squared weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.models.estimates import GridEstimates
from sfumato.models.model import PARTLY, UNTOUCHED, WHOLE, Cause, Cover, Share, Sums

Marginal = tuple[Integers, tuple[int, ...], Floats]
"""Conditions, the attributes that they restrict, and the table of these attributes' parts x columns."""

MOST_AT_ONCE = 2**22
"""So many numbers are held at a time: a condition takes the parts of the first attribute that it restricts, and then
what is left of the table when that is summed out."""


@dataclass(frozen=True, eq=False)
class GridAnswers:
    """A grid that is asked."""

    cause: ClassVar[Cause] = "noise"

    estimates: GridEstimates

    @cached_property
    def ranges(self) -> Mapping[int, Integers]:
        """The ranges of each attribute: its parts."""
        cuts = [np.asarray(cut, np.int64) for cut in self.estimates.grid.cuts]
        return {attribute: np.stack([cut[:-1], cut[1:]], axis=1) for attribute, cut in enumerate(cuts)}

    @cached_property
    def _table(self) -> Floats:
        """The regions x their estimates by class, and their variance."""
        return np.column_stack([self.estimates.values, self.estimates.variances])

    def sums(self, covers: Mapping[int, Cover], share: Share) -> Sums:
        """Sum over the regions; the share is what conditions have of attributes that are not split."""
        sums = Sums.none(len(share.weights), self._table.shape[1] - 1)
        split = self.estimates.grid.split_attributes
        for asking, attributes, table in self._marginals(covers, np.arange(len(share.weights)), (), split, self._table):
            first = self.estimates.grid.parts[attributes[0]] if attributes else 1
            most = max(1, MOST_AT_ONCE // max(first, table.size // first))
            for some in np.split(asking, np.arange(most, len(asking), most)):
                self._ask(sums, {at: covers[at] for at in attributes}, some, table, share.among(some))
        return sums

    def _marginals(
        self, covers: Mapping[int, Cover], asking: Integers, kept: tuple[int, ...], rest: Sequence[int], table: Floats
    ) -> Iterator[Marginal]:
        """Sum out what conditions do not restrict, attribute by attribute, for all of them that go the same way."""
        if not rest:
            yield asking, kept, table.reshape(-1, self._table.shape[1])
            return
        first, later = rest[0], rest[1:]
        restricting = covers[first].clause_of[asking] > 0 if first in covers else np.zeros(len(asking), np.bool_)
        if not restricting.all():
            parts = self.estimates.grid.parts
            summed = table.reshape(math.prod(parts[at] for at in kept), parts[first], -1).sum(axis=1)
            yield from self._marginals(covers, asking[~restricting], kept, later, summed)
        if restricting.any():
            yield from self._marginals(covers, asking[restricting], (*kept, first), later, table)

    def _ask(self, sums: Sums, covers: Mapping[int, Cover], asking: Integers, table: Floats, share: Share) -> None:
        """Weigh the parts of restricted attributes by what conditions cover of them."""
        found = [cover.over(np.arange(len(cover.shares)), asking) for cover in covers.values()]
        weights, states = [shares for shares, _ in found], [state for _, state in found]
        whole = [(state == WHOLE).astype(np.float64) for state in states]
        sums.values[asking] = share.weights[:, None] * _contract(table[:, :-1], weights, len(asking))
        resolved = _contract(table[:, :-1], whole, len(asking))
        sums.resolved[asking] = (share.states == WHOLE)[:, None] * resolved
        squares = [one**2 for one in weights]
        sums.variances[asking, 0] = share.weights**2 * _contract(table[:, -1:], squares, len(asking))[:, 0]
        partly, nobody = share.states == PARTLY, share.states >= UNTOUCHED
        for state in states:
            partly, nobody = partly | (state == PARTLY).any(axis=0), nobody | (state == UNTOUCHED).all(axis=0)
        sums.aligned[asking] = nobody | ~partly


def _contract(table: Floats, factors: Sequence[Floats], conditions: int) -> Floats:
    """Weigh and sum a table axis by axis, outermost first: conditions x columns. Factors are parts x conditions."""
    if not factors:
        return np.repeat(table, conditions, axis=0)
    sums = factors[0].T @ table.reshape(len(factors[0]), -1)
    for factor in factors[1:]:
        sums = np.matmul(factor.T[:, None], sums.reshape(conditions, len(factor), -1))[:, 0]
    return np.asarray(sums.reshape(conditions, -1))
