"""A workload on a tree of which only some levels are measured, folded up so far that trying out splits is fast.

Of the inner nodes, only those that are measured matter. Leaves below the same of these that are measured at the same
rate make a bundle. A query's weights on them are their mean, for which the sum of the bundle's measurements is all that
matters, plus deviations from it, which sum to 0 and for which nothing matters but each leaf's own measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.consistency import LeastSquares, Level, levels_of
from sfumato.partition import Indices

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Demand:
    """The sum of squared coefficients over queries and over the inner nodes, or the leaves, of each level."""

    inner: Floats
    leaves: Floats

    def variance(self, inner: Floats, leaves: Floats) -> float:
        """Give the sum of the queries' variances, from those of one measurement on each level."""
        return float(self.inner @ inner + self.leaves @ leaves)


@dataclass(frozen=True, eq=False)
class Bundles:
    """Measured nodes, and bundles below them."""

    levels: tuple[Level, ...]
    depths: Indices
    """the level at whose rate each is measured"""
    sizes: Indices
    """how many leaves a bundle has; 0 for an inner node"""
    queries: NDArray[np.float32]
    """bundles and nodes x queries: the mean weights of leaves"""
    deviations: Floats
    """the squares of the leaves' deviations from those, by level"""

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
class Workload:
    """Queries on the leaves of a tree."""

    parents: Indices
    levels: tuple[Level, ...]
    leaves: Indices
    depths: Indices
    """the level of each node"""
    weights: Floats
    """leaves x queries"""

    @classmethod
    def of(cls, parents: ArrayLike, weights: ArrayLike) -> Workload:
        """Ask queries x leaves weights of a tree."""
        above = np.asarray(parents, np.int64)
        levels = levels_of(above)
        leaves = np.flatnonzero(np.bincount(above[1:], minlength=len(above)) == 0)
        asked = np.atleast_2d(np.asarray(weights, np.float64))
        if asked.shape[1:] != leaves.shape or not np.isfinite(asked).all():
            raise ValueError("there must be one finite weight per query and leaf")
        depths = np.zeros(len(above), np.int64)
        for depth, level in enumerate(levels, 1):
            depths[level.nodes] = depth
        return cls(above, levels, leaves, depths, np.ascontiguousarray(asked.T))

    @property
    def height(self) -> int:
        """The number of levels."""
        return len(self.levels) + 1

    @cached_property
    def _squares(self) -> Floats:
        """The sum over queries of each leaf's squared weights."""
        return np.asarray(np.einsum("nq,nq->n", self.weights, self.weights))

    def bundled(self, measured: Indices) -> Bundles:
        """Fold up the tree for splits over these levels, the last among them."""
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

    def _heads(self, measured: Indices) -> Indices:
        """Give each node itself if it is inner and measured, else the last such on its path, or else the root."""
        heads = np.where(np.isin(self.depths, measured), np.arange(len(self.depths)), 0)
        heads[self.leaves] = 0
        for level in self.levels:
            heads[level.nodes] = np.maximum(heads[level.nodes], heads[self.parents[level.nodes]])
        return heads


def sums_by(places: Indices, numbers: NDArray[np.floating], size: int) -> Floats:
    """Sum numbers by their places."""
    return np.bincount(places, numbers, size).astype(np.float64)
