"""The queries that a release should answer well, and how a budget is best split over a tree's levels to answer them.

A workload comes from the schema, the public regions or the holder, never from rows; queries that look random are the
same for everyone. It is written as weights of regions, which are the ends of a tree. Tree and workload are public, so
the split of a budget costs nothing and is made before any count is looked at. All nodes of a level are measured at one
rate; an end is measured last, with all that its path has left.

The answer to a query is a sum of measurements with coefficients c, of variance 2 c^2 / rate^2 each (the noise being
Laplace). For given rates, least squares finds the c of least variance; for given c, `cheapest` finds the rates of least
variance. In turn, they go down to a split that neither can better. What is hardly measured counts for little and so
deserves still less: which levels to measure at all is tried out, one after the other.

Where names below speak of the `leaves` of a tree, they mean its ends: nodes without children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arrays import Booleans, Floats, Integers
from sfumato.errors import MethodError
from sfumato.geometry.halving import Level, levels_of
from sfumato.models.consistency import LeastSquares
from sfumato.privacy.budget import GRAIN, grains_of
from sfumato.privacy.measurements import variance_of
from sfumato.schema.conditions import read_condition
from sfumato.schema.schema import Schema

Query = Mapping[str, NDArray[Any]]
"""Weights of leaves, by attribute; one left out is not restricted."""
Workload = Literal["ranges", "marginals"] | tuple[str, ...]
"""A workload by name, or the holder's own: conditions such as `age >= 40 and sex = 'Female'`."""
T = TypeVar("T")

QUERIES = 64
"""The number of range queries that stand for all."""
ATTRIBUTES = (2, 3, 4)
"""How many attributes range queries restrict, in turn."""
MOST_MARGINS = 256
"""The most ranges of single attributes: more are thinned out evenly."""
MOST_CONDITIONS = 1000
"""The most conditions of a holder's own workload: all of them are published in the manifest."""
EXPECTED = f"ranges, marginals, or from 1 to {MOST_CONDITIONS:,} conditions"
"""What a workload must be, for refusals."""
LEAST_SIZE = 0.001
"""The share of the domain below which a query becomes no more important by covering less."""

FOR_LEAVES = 0.01
"""The least share of the ends on the longest path: every region must have counts, whoever asks for them."""
DUST = 1e-4
"""The least share of a level that is measured."""
ENOUGH = 1e-3
"""A descent ends at a step that gains less than this part."""
HOPE = 4
"""A descent is given up where this many steps like the last would not lead below what is known already."""
SWEEPS = 3
"""How often each level may be taken in or left out."""
LEAST_VARIANCE = 1e-100
"""The variance of noise so small that in floating point it would be 0: its counts keep a finite say."""


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


def refuse_unreadable(workload: Workload, schema: Schema) -> None:
    """Refuse conditions that have no meaning for a schema, before anything is paid."""
    for condition in () if isinstance(workload, str) else workload:
        read_condition(schema, condition)


def queries_of(workload: Workload, schema: Schema, boxes: Integers) -> list[Query]:
    """The queries that a workload asks of regions (regions x attributes x 2)."""
    if workload == "ranges":
        return range_queries(schema)
    if workload == "marginals":
        return margin_queries(schema, boxes)
    return [read_condition(schema, condition) for condition in workload]


def range_queries(schema: Schema, queries: int = QUERIES) -> list[Query]:
    """Make conjunctions of ranges on two to four attributes, between any two borders of their leaves."""
    names = [name for name, column in schema.predictors.items() if column.leaves > 1]
    drawn = scattered(queries * len(names) * 3).reshape(queries, len(names), 3)
    ranks = np.argsort(drawn[..., 0], axis=1)
    return [
        {names[at]: _range(schema.predictors[names[at]].leaves, *drawn[query, at, 1:]) for at in ranks[query, :size]}
        for query in range(queries)
        for size in [ATTRIBUTES[query % len(ATTRIBUTES)]]
    ]


def scattered(count: int) -> Floats:
    """Numbers in [0, 1) that look random and are the same for everyone: SplitMix64 of the numbers from 1 on.

    >>> scattered(3).round(6).tolist()
    [0.883311, 0.431528, 0.026434]
    """
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((state ^ (state >> np.uint64(31))) >> np.uint64(11)) / 2.0**53)


def _range(leaves: int, one: float, other: float) -> Booleans:
    """Weigh the leaves between two different borders, from two numbers in [0, 1): all pairs are alike."""
    first, second = int(one * (leaves + 1)), int(other * leaves)
    second += second >= first
    return _covering(leaves, min(first, second), max(first, second))


def _covering(leaves: int, lo: int, hi: int) -> Booleans:
    """Weigh the leaves from `lo` to before `hi` by 1, all others by 0."""
    weights = np.zeros(leaves, np.bool_)
    weights[lo:hi] = True
    return weights


def margin_queries(schema: Schema, boxes: Integers) -> list[Query]:
    """Ask for every range of a single attribute that some region has; the whole table, if no attribute was split."""
    found = [
        (name, lo, hi)
        for attribute, (name, column) in enumerate(schema.predictors.items())
        for lo, hi in np.unique(boxes[:, attribute], axis=0).tolist()
        if hi - lo < column.leaves
    ]
    kept = thinned(found, MOST_MARGINS)
    return [{name: _covering(schema.predictors[name].leaves, lo, hi)} for name, lo, hi in kept] or [{}]


def thinned(items: Sequence[T], most: int) -> list[T]:
    """Keep at most so many items, evenly spread.

    >>> thinned("abcdefg", 3)
    ['a', 'd', 'g']
    """
    kept = np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(np.int64)
    return [items[one] for one in kept]


def sizes_of(queries: Sequence[Query]) -> Floats:
    """The share of the domain that each query covers, or the least that counts.

    An error matters relative to the answer. How many people a query has is not public; were they spread evenly, they
    would be this share, and of answers below a thousandth of the table nobody expects precision.

    >>> sizes_of([{"a": np.array([1, 0, 0, 0]), "b": np.array([1, 1])}, {}, {"a": np.zeros(4)}]).tolist()
    [0.25, 1.0, 0.001]
    """
    shares = [np.prod([np.mean(weights) for weights in query.values()]) for query in queries]
    return np.asarray(np.maximum(shares, LEAST_SIZE), np.float64)


def region_weights(schema: Schema, boxes: Integers, queries: Sequence[Query]) -> NDArray[np.float32]:
    """The weights that queries give to regions (regions x attributes x 2): queries x regions.

    A query weighs a region by the product over attributes of the share that it covers of the region's range, people
    being spread evenly inside. A query adds up classes with weights w, whose noise is alike and independent, so the
    root of the sum of w^2 multiplies it all.
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


def level_grains(parents: ArrayLike, workload: ArrayLike, budget: Fraction) -> tuple[int, ...]:
    """Split a budget over the levels of a tree, root first, in whole grains, for a workload of queries x ends weights.

    Never worse for the workload than all for the ends, or the same for each level: those are among the splits that are
    compared at last, each as it would be paid, with the variance that discrete noise has.
    """
    asked = TreeQueries.of(parents, workload)
    if asked.height == 1:
        return (grains_of(budget),)
    splits = [best_split(asked), leaves_only(asked.height), even(asked.height)]
    paid = [whole_grains(split, grains_of(budget)) for split in splits]
    return min(paid, key=lambda grains: expected_variance(asked, grains))


def best_split(asked: TreeQueries) -> Floats:
    """The best split found from the ends alone by taking in or leaving out one level after the other."""
    best, split = lowest(asked, leaves_only(asked.height))
    levels, in_vain = range(asked.height - 1), 0
    for level in [*levels] * SWEEPS:
        if in_vain == len(levels):
            break
        lower, other = lowest(asked, without(split, level) if split[level] else with_a_part(split, level), best)
        in_vain = 0 if lower < best else in_vain + 1
        best, split = (lower, other) if lower < best else (best, split)
    return split


def lowest(asked: TreeQueries, split: Floats, rival: float = np.inf) -> tuple[float, Floats]:
    """The variance and split at which a descent ends, or at which there is no hope that it ends below a rival."""
    end = (np.inf, split)
    for found in descent(asked.bundled(np.flatnonzero(split)), split):
        if found[0] - rival > HOPE * (end[0] - found[0]):
            return found
        end = found
    return end


def descent(bundles: Bundles, split: Floats) -> Iterator[tuple[float, Floats]]:
    """Improve coefficients and rates in turn, and yield the variance and the split of every step."""
    best = np.inf
    while True:
        inner, ends = _laplace(split), _laplace(np.cumsum(split[::-1])[::-1])
        demand = bundles.demand(inner, ends)
        variance = demand.variance(inner, ends)
        if not variance < best * (1 - ENOUGH):
            return
        yield variance, split
        best, split = variance, cheapest(demand)


def cheapest(demand: Demand) -> Floats:
    """The split of the least sum of c^2 / rate^2.

    Let paths that come to level d with T to spend cost a_d / T^2 from there on, at best. Those that end there cost
    leaves_d / T^2. The others spend t there and the rest below: inner_d / t^2 + a_(d+1) / (T - t)^2, least if t is
    to T - t as the cube root of inner_d to that of a_(d+1), and then the cube of the roots' sum over T^2. So
    a_d = leaves_d + (inner_d^(1/3) + a_(d+1)^(1/3))^3, from the last level up. If all ends are on the last level,
    each level gets in proportion to the cube root of its demand.
    """
    below, left = demand.leaves[-1], 1.0
    kept = np.zeros(len(demand.inner))
    for level in reversed(range(len(kept) - 1)):
        here, later = np.cbrt(demand.inner[level]), np.cbrt(below)
        kept[level] = here / (here + later) if here else 0.0
        below = demand.leaves[level] + (here + later) ** 3
    for level, part in enumerate(kept):
        kept[level], left = left * part, left * (1 - part)
    return _payable(kept[:-1])


def _payable(above: Floats) -> Floats:
    """Leave out dust, and keep for the last level what it must have."""
    above = np.where(above < DUST, 0.0, above)
    above *= min(1.0, (1 - FOR_LEAVES) / max(above.sum(), DUST))
    return np.append(above, 1 - above.sum())


def _laplace(rates: Floats) -> Floats:
    """The variances of Laplace noise at some rates; 0 for what is not measured."""
    return np.divide(2.0, rates**2, out=np.zeros(len(rates)), where=rates > 0)


def leaves_only(height: int) -> Floats:
    """The split that gives all to the ends: DiffGen's counts."""
    return np.asarray(np.eye(height)[-1])


def even(height: int) -> Floats:
    """The split that gives every level the same: the paper's CDiffGen."""
    return np.full(height, 1 / height)


def without(split: Floats, level: int) -> Floats:
    """The split without a level, whose part the others share."""
    rest = np.where(np.arange(len(split)) == level, 0.0, split)
    return np.asarray(rest / rest.sum())


def with_a_part(split: Floats, level: int) -> Floats:
    """The split with one more level, which gets a part like that of the others."""
    part = np.eye(len(split))[level]
    return np.asarray(split + (part - split) / (np.count_nonzero(split) + 1))


def whole_grains(split: Floats, grains: int) -> tuple[int, ...]:
    """Round shares down to whole grains; the last level gets what that leaves over.

    >>> whole_grains(np.array([0.3, 0.0, 0.7]), 11)
    (3, 0, 8)
    """
    above = [int(share * grains) for share in split[:-1]]
    return (*above, grains - sum(above))


def expected_variance(asked: TreeQueries, grains: tuple[int, ...]) -> float:
    """The sum of the queries' variances, exact for discrete noise, when levels get so many grains."""
    noise = [
        np.array([max(variance_of(one * GRAIN), LEAST_VARIANCE) if one else 0.0 for one in rates])
        for rates in (grains, [sum(grains[level:]) for level in range(len(grains))])
    ]
    return asked.bundled(np.flatnonzero(grains)).demand(noise[0], noise[1]).variance(noise[0], noise[1])


@dataclass(frozen=True, eq=False)
class TreeQueries:
    """Queries on the ends of a tree."""

    parents: Integers
    levels: tuple[Level, ...]
    leaves: Integers
    """the ends of the tree"""
    depths: Integers
    """the level of each node"""
    weights: Floats
    """ends x queries"""

    @classmethod
    def of(cls, parents: ArrayLike, weights: ArrayLike) -> TreeQueries:
        """Put queries x ends weights to a tree that is told by the parents of its nodes."""
        above = np.asarray(parents, np.int64)
        levels = levels_of(above)
        ends = np.flatnonzero(np.bincount(above[1:], minlength=len(above)) == 0)
        asked = np.atleast_2d(np.asarray(weights, np.float64))
        if asked.shape[1:] != ends.shape or not np.isfinite(asked).all():
            raise ValueError("there must be one finite weight per query and leaf")
        depths = np.zeros(len(above), np.int64)
        for depth, level in enumerate(levels, 1):
            depths[level.nodes] = depth
        return cls(above, levels, ends, depths, np.ascontiguousarray(asked.T))

    @property
    def height(self) -> int:
        """The number of levels."""
        return len(self.levels) + 1

    @cached_property
    def _squares(self) -> Floats:
        """The sum over queries of each end's squared weights."""
        return np.asarray(np.einsum("nq,nq->n", self.weights, self.weights))

    def bundled(self, measured: Integers) -> Bundles:
        """Fold up the tree for splits over the measured levels, of which the last is always one."""
        heads = self._heads(measured)
        kept = np.flatnonzero(heads == np.arange(len(heads)))
        rated = measured[np.searchsorted(measured, self.depths[self.leaves])]
        keys = heads[self.leaves] * self.height + rated
        bundles = Level.of(np.argsort(keys, kind="stable"), keys)
        above, rates = np.divmod(bundles.heads, self.height)
        means = bundles.sums(self.weights.take(bundles.nodes, axis=0)) / bundles.sizes[:, None]
        squares = bundles.sizes * np.einsum("nq,nq->n", means, means)
        parents = np.searchsorted(kept, np.concatenate((heads[self.parents[kept]], above)))
        return Bundles(
            levels_of(np.where(np.arange(len(parents)) > 0, parents, -1)),
            np.concatenate((self.depths[kept], rates)),
            np.concatenate((np.zeros(len(kept), np.int64), bundles.sizes)),
            np.concatenate((np.zeros((len(kept), means.shape[1]), np.float32), means.astype(np.float32))),
            np.maximum(sums_by(rated, self._squares, self.height) - sums_by(rates, squares, self.height), 0),
        )

    def _heads(self, measured: Integers) -> Integers:
        """For each node: itself if it is inner and measured, else the last such on its path, or else the root."""
        heads = np.where(np.isin(self.depths, measured), np.arange(len(self.depths)), 0)
        heads[self.leaves] = 0
        for level in self.levels:
            heads[level.nodes] = np.maximum(heads[level.nodes], heads[self.parents[level.nodes]])
        return heads


@dataclass(frozen=True, eq=False)
class Bundles:
    """A workload folded up for a tree of which only some levels are measured, so that trying out splits is fast.

    Of the inner nodes, only those that are measured matter. Ends below the same of these that are measured at the same
    rate make a bundle. A query's weights on them are their mean, for which the sum of the bundle's measurements is all
    that matters, plus deviations from it, which sum to 0 and for which nothing matters but each end's own measurement.
    """

    levels: tuple[Level, ...]
    """the folded tree: measured inner nodes, and bundles below them"""
    depths: Integers
    """by node or bundle, the level at whose rate it is measured"""
    sizes: Integers
    """how many ends a bundle has; 0 for an inner node"""
    queries: NDArray[np.float32]
    """nodes and bundles x queries: the mean weights of ends"""
    deviations: Floats
    """by level, the sum of the squares of the ends' deviations from the mean weights"""

    def demand(self, inner: Floats, leaves: Floats) -> Demand:
        """Sum the squares of the best coefficients, given the variance of a measurement on each level, 0 for none.

        A bundle's sum of n measurements has n times their variance, and its coefficient is that of each of them.
        """
        bundle = self.sizes > 0
        noise = np.where(bundle, self.sizes * leaves[self.depths], inner[self.depths])
        precision = np.divide(1.0, noise, out=np.zeros(len(noise)), where=noise > 0)
        coefficients = LeastSquares.of(self.levels, precision).coefficients(self.queries.T)
        squares = np.einsum("qn,qn->n", coefficients, coefficients).astype(np.float64)
        return Demand(
            sums_by(self.depths, np.where(bundle, 0.0, squares), len(self.deviations)),
            sums_by(self.depths, self.sizes * squares, len(self.deviations)) + self.deviations,
        )


@dataclass(frozen=True, eq=False)
class Demand:
    """The sum of squared coefficients over queries and over the inner nodes, or the ends, of each level."""

    inner: Floats
    leaves: Floats

    def variance(self, inner: Floats, leaves: Floats) -> float:
        """The sum of the queries' variances, from those of one measurement on each level."""
        return float(self.inner @ inner + self.leaves @ leaves)


def sums_by(places: Integers, numbers: NDArray[np.floating], size: int) -> Floats:
    """Sum numbers by place: as many sums as `size`."""
    return np.bincount(places, numbers, size).astype(np.float64)
