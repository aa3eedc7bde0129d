"""How near a release is to its table: distances of marginals, what generalization hides, and errors of range counts.

**Marginals.** Distances are of shares of rows, over the cells that either table fills: cells that both leave empty add
nothing. Where a table has more marginals of one size than are measured, a seeded selection stands for them.

**Groups.** Discernibility, NCP and precision measure how much generalization hides, whatever the noise: they say
nothing about counts, so a release is to be judged by its answers, too. The rows are the true ones; where groups
overlap, so that a row has no group, they are the published ones (`sizes_of`).

**Range counts.** A query restricts a few attributes, each to a contiguous range of its leaves; the error is relative
with a floor under the truth, so that near-empty ranges do not decide the average.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import Answers, Categorical, Identifier, Predictor, Regions, Release, Schema, Sides
from sfumato.arrays import CodedRows, Codes, Floats, Integers, row_keys

WAYS = (1, 2, 3)
"""The sizes of marginals that are measured."""
MOST_MARGINALS = 200
"""The most marginals of one size that are measured."""
QUERIES = 1000
"""The number of random range counts that are asked of a release."""
SMALL, LARGE = 0.01, 0.1
"""A query is small if it holds less than this share of the rows, and large if it holds more than that."""
FLOOR = 0.001
"""The sanity bound: a truth below this share of the rows counts as this share."""
MOST_AT_ONCE = 2**24
"""The most weights of leaves that are held at a time, whatever the grids."""


@dataclass(frozen=True)
class MarginalDistance:
    """One distance over the marginals of one size."""

    ways: int
    distance: str
    mean: float
    worst: float
    worst_of: tuple[str, ...]
    """the attributes of the marginal that is farthest"""
    measured: int
    """how many marginals were measured"""
    of: int
    """how many there are"""


def marginal_distances(schema: Schema, table: CodedRows, drawn: CodedRows, seed: int = 0) -> list[MarginalDistance]:
    """Measure every size of marginals that the table has; the class is an attribute like the others."""
    names = [name for name, column in schema.attributes.items() if not isinstance(column, Identifier)]
    found = []
    for ways in WAYS[: len(names)]:
        marginals = chosen_marginals(names, ways, MOST_MARGINALS, seed)
        measured = [distances(schema, table, drawn, each) for each in marginals]
        for distance in measured[0]:
            far = np.array([one[distance] for one in measured])
            found.append(
                MarginalDistance(
                    *(ways, distance, float(far.mean()), float(far.max()), marginals[int(far.argmax())]),
                    *(len(marginals), math.comb(len(names), ways)),
                )
            )
    return found


def chosen_marginals(names: Sequence[str], ways: int, most: int, seed: int) -> list[tuple[str, ...]]:
    """All sets of so many names, or `most` of them drawn by lot, each set at most once.

    >>> chosen_marginals("abc", 2, 9, seed=0)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    if math.comb(len(names), ways) <= most:
        return list(itertools.combinations(names, ways))
    rng, chosen = np.random.default_rng(seed), set[tuple[int, ...]]()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(len(names), ways, replace=False).tolist())))
    return [tuple(names[one] for one in each) for each in sorted(chosen)]


def distances(schema: Schema, table: CodedRows, drawn: CodedRows, names: Sequence[str]) -> dict[str, float]:
    """Every distance of one marginal, by name."""
    leaves = {name: column.leaves for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    mine, theirs = joint_counts(table, drawn, names)
    return {
        "Hellinger": hellinger_distance(mine, theirs),
        "Kullback-Leibler": kullback_leibler(mine, theirs, math.prod(leaves[name] for name in names)),
        "city-block": city_block(mine, theirs),
        "total variation": total_variation(mine, theirs),
    }


def joint_counts(one: CodedRows, other: CodedRows, names: Sequence[str]) -> tuple[Integers, Integers]:
    """Count the rows of two tables in the cells of some attributes that either fills.

    >>> joint_counts({"a": np.array([0, 0, 5])}, {"a": np.array([5, 9])}, ["a"])
    (array([2, 1, 0]), array([0, 1, 1]))
    """
    columns = [np.concatenate([one[name], other[name]]).astype(np.int64) for name in names]
    first = len(one[names[0]])
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    keys = row_keys(columns, sizes)
    if math.prod(sizes) > 2 * len(keys):
        keys = np.unique(keys, return_inverse=True)[1].ravel()
    cells = int(keys.max(initial=0)) + 1
    mine, theirs = (np.bincount(part, minlength=cells) for part in (keys[:first], keys[first:]))
    filled = mine + theirs > 0
    return mine[filled], theirs[filled]


def hellinger(one: CodedRows, other: CodedRows, names: Sequence[str]) -> float:
    """The Hellinger distance of two tables' joint distributions of some attributes: 0 if equal, 1 if disjoint.

    >>> left, right = {"a": np.array([0, 0, 1, 1])}, {"a": np.array([1, 1, 2, 2])}
    >>> round(hellinger(left, right, ["a"]), 9)
    0.707106781
    """
    return hellinger_distance(*joint_counts(one, other, names))


def hellinger_distance(one: Integers, other: Integers) -> float:
    """The root of half the sum of (sqrt(p) - sqrt(q))^2, that is of 1 - sum of sqrt(p q); 1 if a table has no rows."""
    if not (one.any() and other.any()):
        return 1.0
    return math.sqrt(max(1.0 - float(np.sqrt(one / one.sum() * (other / other.sum())).sum()), 0.0))


def city_block(one: Integers, other: Integers) -> float:
    """The sum of |p - q|, from 0 to 2.

    >>> city_block(np.array([2, 2, 0]), np.array([0, 5, 5]))
    1.0
    """
    return float(np.abs(one / max(one.sum(), 1) - other / max(other.sum(), 1)).sum())


def total_variation(one: Integers, other: Integers) -> float:
    """The largest difference that any set of cells can have, half the city-block distance, from 0 to 1."""
    return city_block(one, other) / 2 if one.any() and other.any() else 1.0


def kullback_leibler(one: Integers, other: Integers, cells: int) -> float:
    """The nats lost by taking the other table for the first: the sum of p ln(p / q).

    So that it stays finite, one record more is added to the other table, spread evenly over all `cells` of the
    marginal, filled or not: q = (count + 1 / cells) / (rows + 1). The first table is taken as it is.

    >>> round(kullback_leibler(np.array([3, 1]), np.array([0, 3]), 2), 6)
    1.030629
    """
    shares = one[one > 0] / max(one.sum(), 1)
    smoothed = (other[one > 0] + 1 / cells) / (other.sum() + 1)
    return max(float((shares * np.log(shares / smoothed)).sum()), 0.0)


def sizes_of(release: Release, columns: Sequence[Codes], rows: int) -> Integers:
    """Count the true rows in each group, or the published ones where groups overlap. Without attributes there is one
    group.
    """
    if not columns:
        return np.array([rows])
    if not release.disjoint:
        return np.asarray(release.draft.final.counts.sum(axis=1))
    return _sizes(release.regions, columns)


def _sizes(partition: Regions, columns: Sequence[Codes]) -> Integers:
    return np.bincount(partition.regions_of(columns), minlength=partition.regions)


def discernibility_of(sizes: Integers) -> int:
    """The sum of squared group sizes: every row pays the number of rows that look like it (DiffMulti, eq. 4)."""
    return int((sizes**2).sum())


def certainty_penalty_of(partition: Regions, sizes: Integers) -> float:
    """NCP, the average share of its domain that a generalized value covers: 0 if a leaf (DiffMulti, eq. 5 and 7).

    Numeric ranges are measured in cells of their grid. All attributes weigh the same, so it lies between 0 and 1; a
    table without rows or attributes pays nothing.
    """
    return _average(partition, sizes, [_penalties(partition.sides(at)) for at in range(len(partition.shape))])


def precision_of(columns: Sequence[Predictor], partition: Regions, sizes: Integers) -> float:
    """1 - the average height to which values are generalized, each as a share of the way to the root (Sweeney).

    A table without rows or attributes is precise.
    """
    heights = [heights_of(column, partition.sides(at)) for at, column in enumerate(columns)]
    return 1.0 - _average(partition, sizes, heights)


def discernibility(partition: Regions, columns: Sequence[Codes]) -> int:
    """The discernibility of rows in their groups.

    >>> from sfumato.geometry.grid import Grid
    >>> discernibility(Grid(((0, 2, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    10
    """
    return discernibility_of(_sizes(partition, columns))


def certainty_penalty(partition: Regions, columns: Sequence[Codes]) -> float:
    """The NCP of rows in their groups.

    >>> from sfumato.geometry.grid import Grid
    >>> certainty_penalty(Grid(((0, 2, 3, 4),)), [np.array([0, 1, 1, 3], np.uint8)])
    0.375
    """
    return certainty_penalty_of(partition, _sizes(partition, columns))


def heights_of(column: Predictor, side: Sides) -> Floats:
    """The height of each range: 0 for a leaf, 1 for the root.

    A group of categories is as high as the lowest value of the taxonomy that holds all of it, in shares of the longest
    way from the root down through that value. Numbers have no taxonomy: an interval is as high as in one that halves
    the grid again and again, log(width) / log(leaves).
    """
    widths = np.diff(side.ranges, axis=1)[:, 0]
    if not isinstance(column, Categorical):
        return np.asarray(np.log(widths) / np.log(max(column.leaves, 2)))
    groups = [side.order[lo:hi] for lo, hi in side.ranges.tolist()]
    return np.array([0.0 if len(one) == 1 else _height(column, int(one.min()), int(one.max())) for one in groups])


def _height(column: Categorical, first: int, last: int) -> float:
    holding = [node for node in column.tree.nodes if node.lo <= first and last < node.hi]
    lowest = max(holding, key=lambda node: node.depth)
    return 1.0 - lowest.depth / max(node.depth for node in lowest.walk())


def _penalties(side: Sides) -> Floats:
    widths = np.diff(side.ranges, axis=1)[:, 0]
    return np.where(widths == 1, 0.0, widths / len(side.order))


def _average(partition: Regions, sizes: Integers, lost: Sequence[Floats]) -> float:
    """Average what each attribute's ranges lose over all rows and attributes."""
    held = np.flatnonzero(sizes)
    losses = [one[partition.sides(attribute).number(held)] @ sizes[held] for attribute, one in enumerate(lost)]
    return float(np.sum(losses) / max(len(lost) * sizes.sum(), 1))


@dataclass(frozen=True)
class RangeQuery:
    """A conjunction of ranges of leaf codes, by attribute."""

    ranges: Mapping[str, tuple[int, int]]

    def weights(self, schema: Schema) -> dict[str, Floats]:
        """The ranges as weights of leaves; one of the class is of class values."""
        leaves = {name: np.arange(leaves_of(schema, name)) for name in self.ranges}
        return {
            name: ((leaves[name] >= lo) & (leaves[name] < hi)).astype(np.float64)
            for name, (lo, hi) in self.ranges.items()
        }

    def truth(self, rows: CodedRows) -> int:
        """Count the coded rows inside."""
        inside = np.ones(len(next(iter(rows.values()))), np.bool_)
        for name, (lo, hi) in self.ranges.items():
            inside &= (rows[name] >= lo) & (rows[name] < hi)
        return int(inside.sum())


def leaves_of(schema: Schema, name: str) -> int:
    """The number of leaves of an attribute, or of class values."""
    return len(schema.classes) if name == schema.target else schema.predictors[name].leaves


def random_queries(schema: Schema, count: int, seed: int, attributes: tuple[int, int] = (2, 4)) -> list[RangeQuery]:
    """Draw queries on a random number of random attributes, each range between two random borders of its leaves."""
    rng = np.random.default_rng(seed)
    names = [name for name, column in schema.predictors.items() if column.leaves > 1]
    queries = []
    for _ in range(count):
        size = min(int(rng.integers(attributes[0], attributes[1] + 1)), len(names))
        chosen = rng.choice(len(names), size, replace=False)
        queries.append(RangeQuery({names[one]: _range(schema.predictors[names[one]].leaves, rng) for one in chosen}))
    return queries


def _range(leaves: int, rng: np.random.Generator) -> tuple[int, int]:
    lo, hi = sorted(rng.choice(leaves + 1, 2, replace=False).tolist())
    return int(lo), int(hi)


def relative_errors(release: Release, queries: Sequence[RangeQuery], rows: CodedRows, size: int) -> Floats:
    """Ask a release, and measure the error of each answer."""
    truths = np.array([query.truth(rows) for query in queries], np.float64)
    return floored_errors(answers_to(release, queries).values, truths, size)


def answers_to(release: Release, queries: Sequence[RangeQuery]) -> Answers:
    """Ask a release, as many queries at a time as fit in memory."""
    most = max(1, MOST_AT_ONCE // max(sum(release.schema.shape), 1))
    parts = [queries[start : start + most] for start in range(0, len(queries), most)]
    return Answers.joined([release.count_many([one.weights(release.schema) for one in part]) for part in parts])


def floored_errors(answers: Floats, truths: Floats, rows: int) -> Floats:
    """|answer - truth| / max(truth, floor), the floor being a share of the rows."""
    return np.asarray(np.abs(answers - truths) / np.maximum(truths, FLOOR * rows))


@dataclass(frozen=True)
class QueryErrors:
    """The relative errors of queries of one size."""

    size: str
    queries: int
    mean: float
    median: float


def errors_by_size(release: Release, queries: Sequence[RangeQuery], rows: CodedRows, size: int) -> list[QueryErrors]:
    """The relative errors of all queries, of the small and of the large ones; a size that none has is left out."""
    errors = relative_errors(release, queries, rows, size)
    shares = np.array([query.truth(rows) for query in queries]) / max(size, 1)
    kinds = {"all": shares >= 0, "small (< 1 %)": shares < SMALL, "large (> 10 %)": shares > LARGE}
    return [
        QueryErrors(name, int(of.sum()), float(errors[of].mean()), float(np.median(errors[of])))
        for name, of in kinds.items()
        if of.any()
    ]
