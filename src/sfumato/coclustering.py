"""A data grid seen through a schema: which attributes its variables are, and what its parts are called.

It stands apart because co-clustering knows values by their codes, and people know them by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric, label_leaves
from sfumato.modl import Coordinates, DataGrid, Kind
from sfumato.schema import Predictor, Schema

Codes = Sequence[NDArray[Any]]
"""For each variable, the leaf code of every row."""
NOT_PRIVATE = "NOT PRIVATE: exact counts of the table, for the holder's eyes. Do not publish them."


def variables_of(schema: Schema) -> dict[str, Predictor]:
    """Give the attributes that are co-clustered, in the order of their axes: all but identifiers, the class last."""
    if schema.target is None:
        return dict(schema.predictors)
    target = schema.attributes[schema.target]
    assert isinstance(target, Categorical)
    return {**schema.predictors, schema.target: target}


def kinds_of(schema: Schema) -> list[Kind]:
    """Tell which variables have an order: numbers do, with those that are missing at its end."""
    return ["numeric" if isinstance(column, Numeric) else "categorical" for column in variables_of(schema).values()]


def histogram_of(schema: Schema, codes: Codes) -> Coordinates:
    """Count coded rows by combination of leaves."""
    shape = tuple(column.leaves for column in variables_of(schema).values())
    cells, rows = np.unique(np.ravel_multi_index(tuple(codes), shape), return_counts=True)
    return Coordinates(np.stack(np.unravel_index(cells, shape), axis=1), rows, shape)


@dataclass(frozen=True)
class Part:
    """A group of values, or an interval, and how many rows lie in it."""

    name: str
    values: tuple[str, ...]
    """The values that occur, the most frequent first; an interval is one value."""
    rows: int = field(repr=False)


@dataclass(frozen=True, eq=False)
class Coclustering:
    """The grid of a table's own rows. NOT private."""

    schema: Schema
    grid: DataGrid
    counts: NDArray[np.int64] = field(repr=False)
    """How many rows lie in each cell of the grid: one axis per variable."""
    leaf_counts: tuple[NDArray[np.int64], ...] = field(repr=False)
    """How many rows have each leaf, per variable."""

    @classmethod
    def of(cls, schema: Schema, codes: Codes, grid: DataGrid) -> Coclustering:
        """Count coded rows by the cells of a grid."""
        places = np.ravel_multi_index(
            tuple(labels[column] for labels, column in zip(grid.labels, codes, strict=True)), grid.shape
        )
        counts = np.bincount(places, minlength=grid.cells).reshape(grid.shape)
        leaves = tuple(
            np.bincount(column, minlength=len(labels)) for labels, column in zip(grid.labels, codes, strict=True)
        )
        return cls(schema, grid, counts, leaves)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the grid's axes."""
        return tuple(variables_of(self.schema))

    @property
    def informative(self) -> tuple[int, ...]:
        """The variables that are cut into parts: the others tell nothing of each other."""
        return tuple(axis for axis, parts in enumerate(self.grid.shape) if parts > 1)

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each variable, by name."""
        return {
            name: tuple(self.part(axis, leaves) for leaves in self.grid.parts[axis])
            for axis, name in enumerate(self.variables)
        }

    def part(self, axis: int, leaves: Sequence[int]) -> Part:
        """Name and count some leaves of a variable; of a numeric one, all from the first to the last."""
        column, rows = variables_of(self.schema)[self.variables[axis]], self.leaf_counts[axis]
        if isinstance(column, Numeric):
            interval = column.label(leaves[0], leaves[-1] + 1)
            return Part(interval, (interval,), int(rows[leaves[0] : leaves[-1] + 1].sum()))
        seen = sorted((leaf for leaf in leaves if rows[leaf]), key=lambda leaf: -rows[leaf])
        values = tuple(column.label(leaf, leaf + 1) for leaf in seen)
        return Part(label_leaves(column, leaves), values, int(rows[list(leaves)].sum()))
