"""The columns by which SQL sees the leaves of a schema's attributes.

A category is its name, and `education@1` the name one level below the root, `education@2` two, for those who group by
a taxonomy's inner nodes. A number is itself where cells are single numbers, else the middle of its cell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Identifier, Numeric
from sfumato.errors import QueryError
from sfumato.release.weighing import WEIGHT
from sfumato.schema import Schema

MOST_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class CellColumn:
    """What one column says of each leaf of an attribute."""

    attribute: str
    values: pa.Array


def cell_columns(schema: Schema) -> dict[str, CellColumn]:
    """Give all columns by name; an attribute's own name goes before a level of another."""
    known = {name: column for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    _refuse_case_clash(known)
    levels = {
        f"{name}@{depth}": CellColumn(name, pa.array([path[-1 - depth] for path in column.tree.hierarchy]))
        for name, column in known.items()
        if isinstance(column, Categorical)
        for depth in range(1, column.tree.height)
    }
    own = {name: CellColumn(name, leaf_values(column)) for name, column in known.items()}
    taken = {name.lower() for name in own}
    return own | {name: column for name, column in levels.items() if name.lower() not in taken}


def leaf_values(column: Categorical | Numeric) -> pa.Array:
    """Give a value for each leaf: a name, or a number or date in the middle of its cell; null for missing.

    >>> leaf_values(Numeric(lower=0, upper=1499, step=500, points=[0])).to_pylist()
    [0.0, 250.0, 749.5, 1249.5]
    """
    if isinstance(column, Categorical):
        return pa.array(column.tree.leaves)
    first, end = column.edges[:-1], column.edges[1:]
    last = end - 1 if column.is_whole else end
    if column.is_date:
        values = pa.array(((first + last) // 2).astype(np.int32), pa.date32())
    elif column.is_whole and (first == last).all():
        values = pa.array(first)
    else:
        values = pa.array((first + last) / 2)
    return values if column.missing is None else pa.concat_arrays([values, pa.nulls(1, values.type)])


def _refuse_case_clash(names: Mapping[str, object]) -> None:
    """Refuse names that SQL, which does not see case, would confuse."""
    if len({name.lower() for name in names}) < len(names):
        raise QueryError(
            "attributes must differ in more than case to be asked in SQL, and some do not", "Use count or records."
        )


def refuse_too_many(schema: Schema, names: Collection[str]) -> None:
    """Refuse to make more cells than fit in memory."""
    leaves = {
        name: column.leaves
        for name, column in schema.attributes.items()
        if name in names and not isinstance(column, Identifier)
    }
    if math.prod(leaves.values()) > MOST_CELLS:
        listed = ", ".join(f"{name} {number:,}" for name, number in leaves.items())
        raise QueryError(
            f"the columns of one SQL question must have at most {MOST_CELLS:,} combinations of leaves, and these have "
            f"more ({listed})",
            "Mention fewer columns, or use count.",
        )


def cell_table(estimates: NDArray[np.float64], axes: Sequence[str], columns: Mapping[str, CellColumn]) -> pa.Table:
    """Give cells as rows: whatever columns tell of each axis' attribute, and the estimate."""
    leaves: Sequence[NDArray[np.int32]] = np.indices(estimates.shape, np.int32, sparse=True)
    codes = dict(zip(axes, leaves, strict=True))
    table = {
        name: _column(np.broadcast_to(codes[column.attribute], estimates.shape).ravel(), column.values)
        for name, column in columns.items()
        if column.attribute in codes
    }
    return pa.table(table | {WEIGHT: estimates.ravel()})


def _column(codes: NDArray[np.int32], values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return pa.DictionaryArray.from_arrays(pa.array(codes), values)
    return values.take(pa.array(codes))
