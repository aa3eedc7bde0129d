"""Records that people can read: generalized values with counts, or synthetic people with values of the original kind.

Generalized records are made in batches of dictionary codes, so that millions of cells pass through without being held,
and given in the frame library that the analyst uses. For synthetic records, a model draws groups in proportion to their
counts and then each attribute's leaf inside the group by its spread; here leaves become values. All of it is
post-processing of what was paid for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Booleans, Integers
from sfumato.geometry.regions import Sides
from sfumato.models.model import Groups
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import Predictor, Schema

FORMULAS = "^[=+\\-@\\t\\r]"
"""How text begins that spreadsheets take for a formula."""
CHUNK = 1 << 16
"""The most groups of a batch."""


def record_batches(schema: Schema, groups: Groups) -> Iterator[pa.RecordBatch]:
    """Make a row for every group and class, groups in their order and classes inside."""
    columns_and_sides = zip(schema.predictors.values(), groups.sides, strict=True)
    labels = [pa.array(side.names(column), pa.string()) for column, side in columns_and_sides]
    ends = _ends(schema, groups.sides)
    classes, shown, people = len(schema.classes), groups.shown, groups.people
    for start in range(0, len(people), CHUNK):
        regions = np.arange(start, min(start + CHUNK, len(people)))
        columns: dict[str, pa.Array] = {}
        for name, side, names in zip(schema.predictors, groups.sides, labels, strict=True):
            numbers = np.repeat(side.number(regions), classes)
            columns[name] = _named(numbers, names)
            for end, values in ends.get(name, {}).items():
                columns[end] = values.take(pa.array(numbers))
        if schema.target is not None:
            columns[schema.target] = _named(np.tile(np.arange(classes), len(regions)), pa.array(schema.classes))
        counts = (pa.array(shown[regions].ravel()), pa.array(people[regions].ravel()))
        yield pa.RecordBatch.from_pydict(columns | dict(zip(count_names(schema), counts, strict=True)))


def end_names(schema: Schema) -> dict[str, tuple[str, str]]:
    """Name the columns for the ends of intervals of each numeric attribute so that no attribute has the same name.

    >>> age = "{kind: numeric, lower: 17, upper: 90}"
    >>> end_names(Schema.loads(f"attributes: {{age: {age}, age_lower: {{kind: identifier}}}}"))
    {'age': ('age_lower_', 'age_upper_')}
    """
    found = {}
    for name, column in schema.predictors.items():
        tail = ""
        while {f"{name}_lower{tail}", f"{name}_upper{tail}"} & schema.attributes.keys():
            tail += "_"
        if isinstance(column, Numeric):
            found[name] = (f"{name}_lower{tail}", f"{name}_upper{tail}")
    return found


def _ends(schema: Schema, sides: Sequence[Sides]) -> dict[str, dict[str, pa.Array]]:
    """By numeric attribute, the lower and upper ends of its ranges; null where a range is of missing values alone."""
    beside = dict(zip(schema.predictors, sides, strict=True))
    return {
        name: dict(zip(names, _numbers(schema.predictors[name], beside[name]), strict=True))
        for name, names in end_names(schema).items()
    }


def _numbers(column: Predictor, side: Sides) -> tuple[pa.Array, pa.Array]:
    """The numbers at which each range begins, and before which it ends (on decimal grids, at which the last ends)."""
    assert isinstance(column, Numeric)
    lows = np.array([side.order[lo:hi].min() for lo, hi in side.ranges.tolist()], np.int64)
    cells = [side.order[lo:hi][side.order[lo:hi] < column.cells] for lo, hi in side.ranges.tolist()]
    highs = np.array([part.max(initial=-1) + 1 for part in cells], np.int64)
    missing = highs == 0
    begins, ends = (_edges(column, np.where(missing, 0, at), missing) for at in (lows, highs))
    return begins, ends


def _edges(column: Numeric, at: Integers, missing: Booleans) -> pa.Array:
    edges = column.edges[at]
    if column.is_date:
        return pa.array(edges.astype(np.int32), pa.date32(), mask=missing)
    return pa.array(edges, mask=missing)


def held(schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the rows that hold someone, without their noisy counts."""
    noisy, count = count_names(schema)
    return batch.filter(pa.array(batch[count].to_numpy() > 0)).drop_columns([noisy])


def count_names(schema: Schema) -> tuple[str, str]:
    """Name the columns for noisy and non-negative counts so that no attribute has the same name."""
    tail = ""
    while {f"noisy_count{tail}", f"count{tail}"} & schema.attributes.keys():
        tail += "_"
    return f"noisy_count{tail}", f"count{tail}"


def _named(codes: Integers, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


def values(column: Categorical | Numeric, leaves: Integers, rng: np.random.Generator) -> pa.Array:
    """Turn leaves into values: a name, or a number or date drawn evenly inside its cell; null for missing."""
    if isinstance(column, Categorical):
        return pa.DictionaryArray.from_arrays(pa.array(leaves, pa.int32()), pa.array(column.tree.leaves)).cast(
            pa.string()
        )
    missing = leaves >= column.cells
    cells = np.minimum(leaves, column.cells - 1)
    if column.is_whole:
        numbers = rng.integers(column.edges[cells], column.edges[cells + 1])
        return (
            pa.array(numbers.astype(np.int32), pa.date32(), mask=missing)
            if column.is_date
            else pa.array(numbers, mask=missing)
        )
    digits = _decimals(column) + 1
    ticks = np.rint(column.edges * 10.0**digits).astype(np.int64)
    return pa.array(np.round(rng.integers(ticks[cells], ticks[cells + 1]) / 10.0**digits, digits), mask=missing)


def _decimals(column: Numeric) -> int:
    """The number of decimals in which the grid of an attribute is written."""
    bounds = (column.lower, column.upper, column.step)
    exponents = [-int(bound.as_tuple().exponent) for bound in bounds if isinstance(bound, Decimal)]
    return min(max([0, *exponents]), 12)


def defused(rows: pa.Table) -> pa.Table:
    """Put an apostrophe before text, and names of columns, that a spreadsheet would run; numbers stay."""
    plain = plain_text(rows)
    for at, field in enumerate(plain.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            safe = pc.replace_substring_regex(plain.column(at), FORMULAS, "'\\0")
            plain = plain.set_column(at, field, safe)
    return plain.rename_columns([harmless(name) for name in plain.column_names])


def harmless(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run.

    >>> harmless("=1+1"), harmless("a=1")
    ("'=1+1", 'a=1')
    """
    return re.sub(FORMULAS, r"'\g<0>", text)


def plain_text(rows: pa.Table) -> pa.Table:
    """Undo dictionary encoding, which CSV does not know."""
    fields = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
