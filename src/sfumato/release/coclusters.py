"""Groups of a grid that were counted twice: as groups, and cell by cell in a histogram of the whole domain.

Both are unbiased, so a group's people are their mean by inverse variance. A cell's people are what its group and the
margins expect there, corrected by its own count as far as that is more than noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.modl.table import sum_parts
from sfumato.privacy.noisy import Noisy
from sfumato.release.cells import cells_of_grid, over_leaves
from sfumato.release.estimates import DECIMALS, GridEstimates
from sfumato.release.projection import Nonnegative, nearest, refuse_unknown, whole
from sfumato.release.refinement import refined
from sfumato.release.spread import Spread

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoclusterEstimates(GridEstimates):
    """The parts of a grid, by their own counts and by those of their cells."""

    histogram: Noisy
    """cells x classes, in the order of the domain's leaf codes"""

    def __post_init__(self) -> None:
        """Refuse a histogram of another domain."""
        if self.histogram.counts.shape != (math.prod(self.grid.shape), self.counts.counts.shape[1]):
            raise ValueError("the histogram must have a count for every cell and class")

    @cached_property
    def values(self) -> Floats:
        """The mean of both counts, by inverse variance: m cells err m times as much as one."""
        say = self.variances / self.counts.variances
        return np.asarray(say[:, None] * self.counts.counts + (1 - say)[:, None] * self._sums)

    @cached_property
    def variances(self) -> Floats:
        """The variances of these means."""
        return np.asarray(1 / (1 / self.counts.variances + 1 / (self._cells * self.histogram.variances[0])))

    @cached_property
    def _sums(self) -> Integers:
        """The histogram's counts summed by region: regions x classes."""
        table = self.histogram.counts.reshape(*self.grid.shape, -1)
        for axis in range(len(self.grid.shape)):
            table = sum_parts(table, axis, self.grid.part_of(axis))
        return table.reshape(self.grid.regions, -1)

    @cached_property
    def _cells(self) -> Floats:
        """The number of cells of each region."""
        cells = np.ones(1)
        for cut in self.grid.cuts:
            cells = np.multiply.outer(cells, np.diff(cut)).ravel()
        return cells

    @property
    def total(self) -> int:
        """The estimated number of people."""
        return round(float(self.values.sum()))

    @property
    def shown(self) -> NDArray[Any]:
        """The estimates, rounded."""
        return np.asarray(np.round(self.values, DECIMALS))

    def people(self, how: Nonnegative) -> Integers:
        """Give the numbers nearest to the estimates, given their variances, that sum to the total; or clamp them."""
        refuse_unknown(how)
        if how == "clamp":
            return np.asarray(np.maximum(np.rint(self.values), 0), np.int64)
        everyone, total = np.zeros(self.values.size, np.int64), np.array([max(self.total, 0)])
        variances = np.repeat(self.variances, self.values.shape[1])
        wanted = nearest(self.values.ravel(), variances, everyone, total)
        return whole(wanted, everyone, total).reshape(self.values.shape)

    def majorities(self) -> NDArray[np.int64]:
        """Give the class of the largest estimate, the first of equals."""
        return np.asarray(np.argmax(self.values, axis=1))

    def cell_people(self, spreads: Sequence[Spread], how: Nonnegative) -> Floats:
        """Give the people expected in every cell, by class, so that groups keep theirs: shape of the domain x classes.

        The spreads are in the order of leaf codes.
        """
        people = self.people(how)
        (rate,) = self.histogram.rates
        guess = cells_of_grid(self.grid, people, dict(enumerate(spreads)))
        cells = refined(self.histogram.counts.reshape(guess.shape), rate, guess)
        sums = cells
        for axis in range(len(self.grid.shape)):
            sums = sum_parts(sums, axis, self.grid.part_of(axis))
        wanted = people.reshape(sums.shape)
        factors = np.divide(wanted, sums, out=np.zeros(sums.shape), where=sums > 0)
        return cells * over_leaves(self.grid, factors, range(len(self.grid.shape)))
