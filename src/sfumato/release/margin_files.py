"""The file of a release's margins: the noisy count of every part of every measured level, for everyone to read.

The rates of the levels' noise are in `geometry.json`, as for all counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric
from sfumato.errors import ReleaseError
from sfumato.exact import read_whole
from sfumato.halving import borders, height
from sfumato.privacy.noisy import Groups, Margin
from sfumato.release.manifest import AGAIN
from sfumato.release.reading import equal_to, read_columns, read_rate, whole_numbers
from sfumato.schema import Schema

Integers = NDArray[np.int64]

FILE = "margins.parquet"
RATES = "margins_epsilon"
FIELDS = pa.schema(
    [
        ("attribute", pa.string()),
        ("level", pa.int64()),
        ("first_leaf", pa.int64()),
        ("value", pa.string()),
        ("noisy_count", pa.int64()),
    ]
)


def write_margins(staging: Path, schema: Schema, margins: Mapping[int, Margin]) -> None:
    """Write all counts, attribute by attribute and level by level, the coarsest first."""
    tables = [
        _table(*list(schema.predictors.items())[attribute], margin.leaves, groups)
        for attribute, margin in margins.items()
        for groups in margin.levels
    ]
    pq.write_table(pa.concat_tables([FIELDS.empty_table(), *tables]), staging / FILE, compression="zstd")


def _table(name: str, column: Categorical | Numeric, leaves: int, groups: Groups) -> pa.Table:
    ends = borders(leaves, groups.depth).tolist()
    return pa.table(
        [
            pa.array([name] * len(groups.counts)),
            pa.array([groups.depth] * len(groups.counts)),
            pa.array(ends[:-1]),
            pa.array([_value(column, lo, hi) for lo, hi in pairwise(ends)]),
            pa.array(groups.counts),
        ],
        schema=FIELDS,
    )


def _value(column: Categorical | Numeric, lo: int, hi: int) -> str:
    """Name a part; one of many categories by its first and last."""
    if isinstance(column, Numeric) or hi - lo == 1:
        return column.label(lo, hi)
    return f"{column.label(lo, lo + 1)} to {column.label(hi - 1, hi)}"


def margin_rates(schema: Schema, margins: Mapping[int, Margin]) -> dict[str, Any]:
    """Give the rates of each margin's levels, with their depths."""
    names = list(schema.predictors)
    return {
        RATES: {
            names[attribute]: [[groups.depth, str(groups.rate)] for groups in margin.levels]
            for attribute, margin in margins.items()
        }
    }


def read_margins(place: Path, schema: Schema, geometry: Mapping[str, Any]) -> dict[int, Margin]:
    """Read margins that fit the schema: every part of every level that has a rate is counted, and nothing else is."""
    names = ["attribute", "level", "first_leaf", "noisy_count"]
    table = read_columns(place / FILE, names)
    owners = table["attribute"]
    levels, firsts, counts = (whole_numbers(table[name]) for name in names[1:])
    margins, rows = {}, 0
    for attribute, name in enumerate(schema.predictors):
        if name in geometry[RATES]:
            own = equal_to(owners, name)
            given = geometry[RATES][name]
            margins[attribute] = _margin(schema.shape[attribute], given, levels[own], firsts[own], counts[own])
            rows += int(own.sum())
    if rows < len(owners):
        raise ReleaseError("the release's margins must be of attributes that have epsilons", AGAIN)
    return margins


def _margin(leaves: int, rates: Any, levels: Integers, firsts: Integers, counts: Integers) -> Margin:
    depths = [_depth(depth, leaves) for depth, _ in rates]
    starts = [borders(leaves, depth)[:-1] for depth in depths]
    if not (
        np.array_equal(levels, np.repeat(depths, [len(one) for one in starts]))
        and np.array_equal(firsts, np.concatenate(starts))
    ):
        raise ReleaseError("the release's margins must have a count for every part of every level", AGAIN)
    pieces = np.split(counts, np.cumsum([len(one) for one in starts])[:-1])
    groups = [
        Groups(depth, piece, read_rate(rate)) for depth, piece, (_, rate) in zip(depths, pieces, rates, strict=True)
    ]
    return Margin(leaves, tuple(groups))


def _depth(depth: Any, leaves: int) -> int:
    whole = read_whole(depth)
    if whole is None or not 0 <= whole <= height(leaves):
        raise ReleaseError("the levels of the release's margins must be those of its attributes", AGAIN)
    return whole
