"""What co-clustering takes and gives: a histogram (`Table`), and a grid of groups and intervals (`DataGrid`).

A `Table` is made from any form of histogram, dense or by coordinates, of whole or real weights. It has the weights of
the combinations of values that were seen, and sums them for any partition of the values. A `DataGrid` knows values by
their codes, seen or not, and the coarser grids that it merges into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.modl.criterion import Counts, Criterion, Kind, LogFactorials, Variant

MOST_CELLS = 1 << 25
"""No table has more combinations of seen values."""
COARSER = "Use fewer variables, or bin their values more coarsely."
"""The remedy for a table that is too large."""

Labels = tuple[Integers, ...]
"""For each variable, the part of each value: 0, 1, ... with none left out, and increasing if it is numeric."""
Seen = tuple[Floats, tuple[int, ...], tuple[Integers, ...]]
"""Weights of the combinations of seen values, how many values there are in all, and which of them were seen."""


@dataclass(frozen=True, eq=False)
class Step:
    """A merge on the way to the null model: two parts of a variable, and the grid after it."""

    variable: int
    first: tuple[int, ...]
    """the values of the one part"""
    second: tuple[int, ...]
    """the values of the other part"""
    shape: tuple[int, ...]
    """the numbers of parts after the merge"""
    cost: float
    """of the grid after the merge"""
    information: float
    """that the grid after the merge keeps"""
    labels: Labels
    """of the grid after the merge"""


@dataclass(frozen=True, eq=False)
class DataGrid:
    """A partition of each variable's values; their cross product is the grid.

    Costs are in nats; differences of costs are differences of log-probability.
    """

    labels: Labels
    """the part of each value, seen or not

    Unseen values of a numeric variable are in the part of the nearest seen one; those of a categorical one in the part
    that has the most values.
    """
    cost: float
    null_cost: float
    """what the null model costs, in which each variable has one part"""
    information: float
    """the share of the best grid's gain over the null model that this one keeps: 1 for the best, 0 for the null one"""
    steps: tuple[Step, ...]
    """the cheapest merges, one after the other, down to the null model"""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of parts of each variable."""
        return tuple(int(part.max()) + 1 for part in self.labels)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def level(self) -> float:
        """How much cheaper than the null model it is, from 0 to 1; it compares only grids of the same data."""
        return max(0.0, 1 - self.cost / self.null_cost) if self.null_cost > 0 else 0.0

    @property
    def parts(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The parts of each variable, each as the codes of its values."""
        return tuple(
            tuple(tuple(np.flatnonzero(part == number).tolist()) for number in range(parts))
            for part, parts in zip(self.labels, self.shape, strict=True)
        )

    def cut(self, *, cells: int | None = None, parts: int | None = None, information: float | None = None) -> DataGrid:
        """The first coarser grid, by `steps`, with at most this many cells, or parts in all.

        With `information`, the last that is followed by one that keeps less than this share.
        """
        if (cells, parts, information).count(None) != 2:
            raise MethodError("a cut must be given one of cells, parts and information", "Leave out the others.")
        shapes = [self.shape, *(step.shape for step in self.steps)]
        if cells is not None:
            fits = [math.prod(shape) <= cells for shape in shapes]
        elif parts is not None:
            fits = [sum(shape) <= parts for shape in shapes]
        else:
            fits = [step.information < (information or 0.0) for step in self.steps] + [True]
        if not any(fits):
            asked, least = (f"cells ({cells})", 1) if cells is not None else (f"parts ({parts})", len(self.labels))
            raise MethodError(f"{asked} must be at least {least}", "Give a larger number.")
        return self.after(fits.index(True))

    def after(self, merges: int) -> DataGrid:
        """The grid after the first of its `steps`, this many."""
        if merges == 0:
            return self
        step = self.steps[merges - 1]
        return DataGrid(step.labels, step.cost, self.null_cost, step.information, self.steps[merges:])


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A histogram by its cells that are not empty, a row for each. Rows with the same codes add up."""

    codes: ArrayLike
    """rows x variables: the values"""
    weights: ArrayLike
    """of each row"""
    shape: tuple[int, ...]
    """how many values each variable has"""


@dataclass(frozen=True, eq=False)
class Table:
    """The weights of all combinations of seen values, and what their grids cost.

    Whole weights are kept as integers in units of 1 / dispersion, because logarithms of their factorials can be looked
    up.
    """

    counts: Counts
    """one axis per variable; a value that was never seen has no place in it"""
    unit: float
    """what a count of 1 weighs"""
    kinds: tuple[Kind, ...]
    variant: Variant
    seen: tuple[Integers, ...]
    """the codes of the values that were seen, for each variable"""
    shape: tuple[int, ...]
    """how many values each variable has, seen or not"""

    @classmethod
    def of(
        cls, histogram: ArrayLike | Coordinates, kinds: Sequence[Kind], variant: Variant, dispersion: float
    ) -> Table:
        """Read a histogram, refusing what cannot be co-clustered."""
        if not (math.isfinite(dispersion) and dispersion > 0):
            raise MethodError(f"dispersion ({dispersion}) must be a positive number", "Give 1 for exact counts.")
        if variant not in ("boulle2010", "khiops11"):
            raise MethodError(f"variant ({variant}) must be boulle2010 or khiops11", "Leave it out for boulle2010.")
        weights, shape, seen = _sparse(histogram) if isinstance(histogram, Coordinates) else _dense(histogram)
        _check_kinds(kinds, shape)
        counts, unit = _in_units(weights, dispersion)
        return cls(counts, unit, tuple(kinds), variant, seen, shape)

    @cached_property
    def criterion(self) -> Criterion:
        """What grids of this table cost."""
        total = float(self.counts.sum()) * self.unit
        return Criterion(self.variant, self.kinds, self.counts.shape, total)

    @cached_property
    def log_factorials(self) -> LogFactorials:
        """The logarithms of factorials of this table's counts and of their sums."""
        largest = float(self.counts.sum()) if self.counts.dtype.kind == "i" else 0.0
        return LogFactorials(largest, self.unit)

    @cached_property
    def constant(self) -> float:
        """What all grids pay: minus the sum of ln n_v! over the values of categorical variables."""
        return -sum(
            float(self.log_factorials(self.margin(axis)).sum())
            for axis, kind in enumerate(self.kinds)
            if kind == "categorical"
        )

    @cached_property
    def filled(self) -> int:
        """The number of combinations that are not empty."""
        return int(np.count_nonzero(self.counts))

    @property
    def null(self) -> Labels:
        """One part for each variable."""
        return tuple(np.zeros(values, np.int64) for values in self.counts.shape)

    @property
    def finest(self) -> Labels:
        """One part for each value."""
        return tuple(np.arange(values) for values in self.counts.shape)

    def margin(self, axis: int) -> Counts:
        """The counts of one variable's values."""
        return np.asarray(self.counts.sum(axis=tuple(other for other in range(self.counts.ndim) if other != axis)))

    def grid(self, labels: Labels) -> Counts:
        """Sum the counts by part of every variable, those that shrink most first."""
        parts = parts_of(labels)
        counts = self.counts
        for axis in sorted(range(counts.ndim), key=lambda axis: parts[axis] / counts.shape[axis]):
            counts = sum_parts(counts, axis, labels[axis])
        return counts

    def profiles(self, labels: Labels, axis: int) -> Counts:
        """A row for each value of one variable: its counts in the cells of the other variables' parts."""
        fine = (*labels[:axis], np.arange(self.counts.shape[axis]), *labels[axis + 1 :])
        return np.ascontiguousarray(np.moveaxis(self.grid(fine), axis, 0).reshape(self.counts.shape[axis], -1))

    def cost(self, labels: Labels) -> float:
        """The cost of the grid of these parts."""
        counts = self.grid(labels)
        cost = self.constant + self.criterion.shape_cost(counts.shape) - float(self.log_factorials(counts).sum())
        for axis, part in enumerate(labels):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            weights: Floats = counts.sum(axis=others) * self.unit
            cost += float(self.criterion.part_costs(axis, weights, np.bincount(part)).sum())
        return cost


def parts_of(labels: Labels) -> tuple[int, ...]:
    """The number of parts of each variable."""
    return tuple(int(part.max()) + 1 for part in labels)


def sum_parts(counts: Counts, axis: int, labels: Integers) -> Counts:
    """Sum the slices along an axis by the part they belong to.

    >>> sum_parts(np.array([[1, 2, 4]]), 1, np.array([0, 1, 0])).tolist()
    [[5, 2]]
    """
    parts = int(labels.max()) + 1
    if parts == len(labels):
        return counts.take(np.argsort(labels), axis=axis) if (np.diff(labels) < 0).any() else counts
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(parts))
    ordered = counts if (order[1:] > order[:-1]).all() else counts.take(order, axis=axis)
    return np.asarray(np.add.reduceat(ordered, starts, axis=axis))


def _dense(histogram: ArrayLike) -> Seen:
    weights = _weights(histogram)
    axes = range(weights.ndim)
    seen = [np.flatnonzero(weights.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]
    _check_size(seen)
    return weights[np.ix_(*seen)], weights.shape, tuple(seen)


def _sparse(histogram: Coordinates) -> Seen:
    weights, codes, shape = _weights(histogram.weights), np.asarray(histogram.codes), tuple(histogram.shape)
    if codes.shape != (len(weights), len(shape)) or (codes < 0).any() or (codes >= np.array(shape)).any():
        raise MethodError("codes must have a row for each weight, inside the shape", "Number values from 0.")
    codes, weights = codes[weights > 0], weights[weights > 0]
    seen = [np.unique(column).astype(np.int64) for column in codes.T]
    _check_size(seen)
    inner = tuple(len(values) for values in seen)
    places = tuple(np.searchsorted(values, column) for values, column in zip(seen, codes.T, strict=True))
    dense: Floats = np.bincount(np.ravel_multi_index(places, inner), weights, math.prod(inner)).astype(np.float64)
    return dense.reshape(inner), shape, tuple(seen)


def _weights(given: ArrayLike) -> Floats:
    weights = np.asarray(given, np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise MethodError("weights must be finite and not negative", "Clip noisy counts at 0 first.")
    if not weights.any():
        raise MethodError("the histogram must hold some weight", "Give counts that are not all zero.")
    return weights


def _check_size(seen: Sequence[Integers]) -> None:
    cells = math.prod(len(values) for values in seen)
    if cells > MOST_CELLS:
        raise MethodError(f"the number of cells ({cells:,}) must be at most {MOST_CELLS:,}", COARSER)


def _check_kinds(kinds: Sequence[Kind], shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise MethodError(f"the number of variables ({len(shape)}) must be at least 2", "Add a variable.")
    if len(kinds) != len(shape) or not set(kinds) <= {"categorical", "numeric"}:
        raise MethodError(
            f"kinds ({', '.join(map(str, kinds))}) must say categorical or numeric for each of {len(shape)} variables",
            "Give one kind per axis of the histogram.",
        )


def _in_units(weights: Floats, dispersion: float) -> tuple[Counts, float]:
    """Weights divided by the dispersion, and their unit; whole ones stay integers, in units of 1 / dispersion."""
    if weights.sum() < 2**53 and (weights == np.rint(weights)).all():
        return weights.astype(np.int64), 1 / dispersion
    return weights / dispersion, 1.0
