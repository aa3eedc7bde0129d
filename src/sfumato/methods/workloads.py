"""The questions that a release should answer well, as weights of its regions: what a method may plan for.

They come from the schema, the public regions or the holder, never from rows; those that look random are the same for
everyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.conditions import read_condition
from sfumato.errors import MethodError
from sfumato.partition import Indices
from sfumato.schema import Schema

Floats = NDArray[np.float64]
Query = Mapping[str, NDArray[Any]]
"""Weights of leaves, by attribute; one left out is not restricted."""

Workload = Literal["ranges", "marginals"] | tuple[str, ...]
"""A workload by name, or the holder's own: conditions such as `age >= 40 and sex = 'Female'`."""

T = TypeVar("T")

QUERIES = 64
"""As many range queries stand for all."""
MOST_MARGINS = 256
"""More ranges of single attributes than this are thinned out evenly."""
MOST_CONDITIONS = 1000
"""So many conditions a holder's own workload may have: all of them are published in the manifest."""
EXPECTED = f"ranges, marginals, or from 1 to {MOST_CONDITIONS:,} conditions"
LEAST_SIZE = 0.001
"""The share of the domain below which a query does not become more important."""
ATTRIBUTES = (2, 3, 4)
"""How many attributes range queries restrict, in turn."""


def read_workload(value: object) -> Workload:
    """Read a name, a sequence of conditions, or text with one on each line.

    >>> read_workload("age >= 40\\n\\n sex = 'Female' ")
    ('age >= 40', "sex = 'Female'")
    """
    if value == "ranges" or value == "marginals":
        return value
    lines = value.splitlines() if isinstance(value, str) else value
    if not isinstance(lines, Sequence) or not all(isinstance(line, str) for line in lines):
        raise MethodError(f"workload ({str(value)[:40]}) must be {EXPECTED}", "Give text, or a list of texts.")
    conditions = tuple(line.strip() for line in lines if line.strip())
    if not 1 <= len(conditions) <= MOST_CONDITIONS:
        raise MethodError(
            f"workload ({len(conditions):,} conditions) must be {EXPECTED}", "Keep those that matter most."
        )
    return conditions


def queries_of(workload: Workload, schema: Schema, boxes: Indices) -> list[Query]:
    """Give the queries that a workload asks of regions."""
    if workload == "ranges":
        return range_queries(schema)
    if workload == "marginals":
        return margin_queries(schema, boxes)
    return [read_condition(schema, condition) for condition in workload]


def refuse_unreadable(workload: Workload, schema: Schema) -> None:
    """Refuse conditions that a schema gives no meaning, before anything is paid."""
    for condition in () if isinstance(workload, str) else workload:
        read_condition(schema, condition)


def range_queries(schema: Schema, queries: int = QUERIES) -> list[Query]:
    """Give conjunctions of ranges on two to four attributes, between any two borders of their leaves."""
    names = [name for name, column in schema.predictors.items() if column.leaves > 1]
    drawn = scattered(queries * len(names) * 3).reshape(queries, len(names), 3)
    ranks = np.argsort(drawn[..., 0], axis=1)
    return [
        {names[at]: _range(schema.predictors[names[at]].leaves, *drawn[query, at, 1:]) for at in ranks[query, :size]}
        for query in range(queries)
        for size in [ATTRIBUTES[query % len(ATTRIBUTES)]]
    ]


def scattered(count: int) -> Floats:
    """Give numbers in [0, 1) that look random and are the same for everyone: SplitMix64 of the numbers from 1 on.

    >>> scattered(3).round(6).tolist()
    [0.883311, 0.431528, 0.026434]
    """
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((state ^ (state >> np.uint64(31))) >> np.uint64(11)) / 2.0**53)


def _range(leaves: int, one: float, other: float) -> NDArray[np.bool_]:
    """Cover the leaves between two different borders, all pairs being alike."""
    first, second = int(one * (leaves + 1)), int(other * leaves)
    second += second >= first
    return _covering(leaves, min(first, second), max(first, second))


def _covering(leaves: int, lo: int, hi: int) -> NDArray[np.bool_]:
    weights = np.zeros(leaves, np.bool_)
    weights[lo:hi] = True
    return weights


def margin_queries(schema: Schema, boxes: Indices) -> list[Query]:
    """Give every range of a single attribute that some region has; the whole table, if no attribute was split."""
    found = [
        (name, lo, hi)
        for attribute, (name, column) in enumerate(schema.predictors.items())
        for lo, hi in np.unique(boxes[:, attribute], axis=0).tolist()
        if hi - lo < column.leaves
    ]
    kept = thinned(found, MOST_MARGINS)
    return [{name: _covering(schema.predictors[name].leaves, lo, hi)} for name, lo, hi in kept] or [{}]


def thinned(items: Sequence[T], most: int) -> list[T]:
    """Keep at most so many, evenly spread.

    >>> thinned("abcdefg", 3)
    ['a', 'd', 'g']
    """
    kept = np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(np.int64)
    return [items[one] for one in kept]


def sizes_of(queries: Sequence[Query]) -> Floats:
    """Give the share of the domain that each query covers, or the least that counts.

    An error matters relative to the answer. How many people a query has is not public; were they spread evenly, they
    would be this share, and of answers below a thousandth of the table nobody expects precision.

    >>> sizes_of([{"a": np.array([1, 0, 0, 0]), "b": np.array([1, 1])}, {}, {"a": np.zeros(4)}]).tolist()
    [0.25, 1.0, 0.001]
    """
    shares = [np.prod([np.mean(weights) for weights in query.values()]) for query in queries]
    return np.asarray(np.maximum(shares, LEAST_SIZE), np.float64)


def region_weights(schema: Schema, boxes: Indices, queries: Sequence[Query]) -> NDArray[np.float32]:
    """Weigh regions (regions x attributes x 2) for queries: queries x regions.

    A region has of a query the product over attributes of the share covered of its range, uniform inside. A query adds
    up classes with weights w, whose noise is alike and independent, so the root of the sum of w^2 multiplies it all.
    """
    _refuse_strangers(schema, queries)
    classes = [np.linalg.norm(query.get(schema.target or "", np.ones(len(schema.classes)))) for query in queries]
    weights = np.repeat(np.array(classes, np.float32)[:, None], len(boxes), axis=1)
    for attribute, (name, column) in enumerate(schema.predictors.items()):
        asking = [number for number, query in enumerate(queries) if name in query]
        if asking:
            keys, range_of = np.unique(boxes[:, attribute] @ (column.leaves + 1, 1), return_inverse=True)
            lo, hi = np.divmod(keys, column.leaves + 1)
            for number in asking:
                sums = np.concatenate(([0.0], np.cumsum(queries[number][name])))
                weights[number] *= ((sums[hi] - sums[lo]) / (hi - lo))[range_of]
    return weights


def _refuse_strangers(schema: Schema, queries: Sequence[Query]) -> None:
    known = {*schema.predictors, schema.target}
    for name in (name for query in queries for name in query if name not in known):
        raise MethodError(f"the workload's attribute ({name}) must be one that is published", "Leave it out.")
