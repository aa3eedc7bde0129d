"""Counts of a tree of regions made to agree: every node the sum of its children, as near the measured as can be.

All of it is post-processing of released numbers: it reads no row and costs no budget, so floats are allowed here. Each
node's noise is independent of the others'; the columns are classes, treated alike and apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes at one depth below the root, siblings side by side."""

    nodes: Integers
    starts: Integers
    """Where each family begins among the nodes."""
    family: Integers
    """The family of each node."""
    heads: Integers
    """The parent of each family."""

    def sums(self, children: Floats) -> Floats:
        """Sum the rows of the nodes, family by family."""
        return np.asarray(np.add.reduceat(children, self.starts))


def levels_of(parents: Integers) -> tuple[Level, ...]:
    """Group the nodes below the root by depth, then by parent.

    A node's depth is found by doubling: it is the way to its 2^i-th ancestor plus that ancestor's own way of 2^i.

    >>> [level.nodes.tolist() for level in levels_of(np.array([-1, 0, 1, 0, 1]))]
    [[1, 3], [2, 4]]
    """
    if parents.ndim != 1 or not len(parents) or parents[0] != -1:
        raise ValueError("the first node must be the root, with parent -1")
    if (parents[1:] < 0).any() or (parents[1:] >= np.arange(1, len(parents))).any():
        raise ValueError("every parent must precede its children")
    ancestors, depths = np.maximum(parents, 0), (parents >= 0).astype(np.int64)
    while ancestors.any():
        depths, ancestors = depths + depths[ancestors], ancestors[ancestors]
    order = np.lexsort((parents, depths))
    return tuple(_level(nodes, parents) for nodes in np.split(order, np.cumsum(np.bincount(depths))[:-1])[1:])


def _level(nodes: Integers, parents: Integers) -> Level:
    first = np.diff(parents[nodes], prepend=-1) != 0
    starts = np.flatnonzero(first)
    return Level(nodes, starts, np.cumsum(first) - 1, parents[nodes[starts]])


@dataclass(frozen=True, eq=False)
class Consistent:
    """The weighted least-squares estimates of all nodes' counts, given that parents are the sums of their children.

    *Upward.* Let u be a node's best estimate from its own subtree and v the variance of u. A leaf has its measurement
    y, of variance 1 / p. Subtrees of siblings share no noise, so U, the sum of the children's u, estimates their parent
    with variance B, the sum of their v. Combined with the parent's own y by inverse variance, v = 1 / (p + 1 / B) = k B
    and u = y + k (U - y), where k = 1 / (1 + p B) is the say that y leaves to the children: all of it if p is 0.

    *Downward.* The root's u rests on everything, so it is final: x = u. Given a parent's final x, least squares
    minimizes the sum of (x_c - u_c)^2 / v_c over children that sum to x; the multiplier moves each in proportion to
    its v: x_c = u_c + s_c (x - U), with shares s_c = v_c / B.

    *Errors.* Write x_c = d_c + s_c x, with d_c = u_c - s_c U. The d of a family are uncorrelated with its U, since
    cov(u_c, U) = v_c = cov(s_c U, U). Their subtrees reach every u above, and so x, only through U: the d are
    uncorrelated with x and with the d of all other families. Inside a family, cov(d) = diag(v) - v v' / B.
    Every variance below follows from this.
    """

    values: Floats
    """N x K: the final x of each node and class."""
    upward: Floats
    """N: the v of each node, the variance of its count as seen from its own subtree. See `project`."""
    shares: Floats
    """N: the s of each node; 0 for the root, which has no parent."""
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, parents: ArrayLike, measured: ArrayLike, precision: ArrayLike) -> Consistent:
        """Reconcile N x K measurements of N precisions, 1 / variance; those of precision 0 are ignored.

        >>> tree = Consistent.of(np.array([-1, 0, 0]), [[9.0], [3.0], [3.0]], [1, 1, 1])
        >>> tree.values.ravel().tolist()
        [8.0, 4.0, 4.0]
        """
        parents, precision = np.asarray(parents, np.int64), np.asarray(precision, np.float64)
        levels = levels_of(parents)
        estimates = _checked(parents, np.asarray(measured, np.float64), precision)
        leaves = np.bincount(parents[1:], minlength=len(parents)) == 0
        if not (precision[leaves] > 0).all():
            raise ValueError("every leaf must be measured")
        upward, shares = np.zeros(len(parents)), np.zeros(len(parents))
        upward[leaves] = 1 / precision[leaves]
        for level in reversed(levels):
            below = level.sums(upward[level.nodes])
            left = 1 / (1 + precision[level.heads] * below)
            shares[level.nodes] = upward[level.nodes] / below[level.family]
            upward[level.heads] = left * below
            missing = level.sums(estimates[level.nodes]) - estimates[level.heads]
            estimates[level.heads] += left[:, None] * missing
        for level in levels:
            excess = estimates[level.heads] - level.sums(estimates[level.nodes])
            estimates[level.nodes] += shares[level.nodes, None] * excess[level.family]
        return cls(estimates, upward, shares, levels)

    def variance(self, weights: ArrayLike) -> Floats:
        """Give the variance of the weighted sum of N nodes' values in one class, or of Q such sums for Q x N weights.

        Replace each x_c, leaves first, by d_c + s_c x: the weight a_c that has gathered at a child passes on to its
        parent as s_c a_c, so the parent gathers m, the mean of its children's a by their v. The sum is now one of
        uncorrelated terms: the root's a u, and per family the sum of a_c d_c, of variance
        sum of v_c a_c^2 - (sum of v_c a_c)^2 / B = sum of v_c (a_c - m)^2.

        >>> tree = Consistent.of(np.array([-1, 0, 0]), [[9.0], [3.0], [3.0]], [1, 1, 1])
        >>> tree.variance([[1, 0, 0], [0, 1, -1], [0, 1, 1]]).round(9).tolist()
        [0.666666667, 2.0, 0.666666667]
        """
        weights = np.asarray(weights, np.float64)
        if weights.shape[-1:] != self.upward.shape:
            raise ValueError("there must be one weight per node")
        gathered = np.atleast_2d(weights).T.copy()
        spread = np.zeros(gathered.shape[1])
        for level in reversed(self.levels):
            own = gathered[level.nodes]
            mean = level.sums(self.shares[level.nodes, None] * own)
            spread += self.upward[level.nodes] @ (own - mean[level.family]) ** 2
            gathered[level.heads] += mean
        return np.asarray(spread + self.upward[0] * gathered[0] ** 2).reshape(weights.shape[:-1])

    def variances(self) -> Floats:
        """Give the variance of every node's value in one class, leaves' and others'.

        x_c = d_c + s_c x with d_c uncorrelated with x, so var(x_c) = (v_c - v_c^2 / B) + s_c^2 var(x)
        = v_c (1 - s_c) + s_c^2 var(x), from the root's v down.
        """
        variances = self.upward * (1 - self.shares)
        for level in self.levels:
            variances[level.nodes] += self.shares[level.nodes] ** 2 * variances[level.heads][level.family]
        return np.asarray(variances)


def project(parents: ArrayLike, values: ArrayLike, variances: ArrayLike) -> Integers:
    """Make N x K estimates non-negative whole numbers of people that are consistent, from the root down.

    The root's people, its values' rounded sum (none if that is negative), are shared among its classes; then each
    class's people at a node among the node's children, by the estimates that are nearest to theirs in the metric
    1 / variance, and by largest remainders to whole people. Post-processing, like everything here.

    The metric to use is `Consistent.upward`: siblings that must sum to a given number err like independent ones of
    variances v, since cov(d) = diag(v) - v v' / B is the covariance of such, given their sum. Values and upward
    estimates then give the same people, for they differ by a multiple of v, which the multiplier absorbs.

    >>> project(np.array([-1, 0, 0, 0]), [[7.2], [6.1], [3.1], [-2.0]], np.ones(4)).ravel().tolist()
    [7, 5, 2, 0]
    """
    levels = levels_of(parents := np.asarray(parents, np.int64))
    variances = np.asarray(variances, np.float64)
    values = _checked(parents, np.asarray(values, np.float64), variances)
    if not (variances > 0).all():
        raise ValueError("variances must be greater than 0")
    people = np.zeros(values.shape, np.int64)
    classes = np.zeros(values.shape[1], np.int64)
    total = np.array([max(round(float(values[0].sum())), 0)], np.int64)
    people[0] = whole(nearest(values[0], np.ones(len(classes)), classes, total), classes, total)
    for level in levels:
        metric = variances[level.nodes]
        for label in range(len(classes)):
            totals = people[level.heads, label]
            wanted = nearest(values[level.nodes, label], metric, level.family, totals)
            people[level.nodes, label] = whole(wanted, level.family, totals)
    return people


def nearest(estimates: Floats, variances: Floats, family: Integers, totals: Integers) -> Floats:
    """Give the non-negative numbers nearest to the estimates, in the metric 1 / variance, that sum to families' totals.

    Stationarity makes them max(u - t v, 0), with t such that a family's sum to its total. Were the positive ones known,
    t would be (sum of their u - total) / (sum of their v). Supposing all positive gives a t that is too small; whoever
    is not positive at it is not at any larger one, so drop them, find t again, and stop when nobody drops out: exact,
    after a few rounds.
    """
    positive = totals[family] > 0
    while True:
        sums = np.bincount(family, estimates * positive, len(totals)) - totals
        spread = np.bincount(family, variances * positive, len(totals))
        numbers = estimates - (sums / np.where(spread > 0, spread, 1.0))[family] * variances
        still = positive & (numbers > 0)
        if still.sum() == positive.sum():
            return np.where(positive, numbers, 0.0)
        positive = still


def whole(wanted: Floats, family: Integers, totals: Integers) -> Integers:
    """Round non-negative numbers, family by family, to whole ones of exactly the given totals, by largest remainders.

    Numbers are first scaled to their total, which takes away what rounding errors added; where nothing is wanted, the
    total is shared evenly. Ties go to the earlier.
    """
    sizes, sums = np.bincount(family, minlength=len(totals)), np.bincount(family, wanted, len(totals))
    empty = (sums == 0)[family]
    scaled = (wanted + empty) * (totals / np.where(sums > 0, sums, sizes))[family]
    numbers = np.floor(scaled).astype(np.int64)
    short = totals - np.bincount(family, numbers, len(totals)).astype(np.int64)
    order = np.lexsort((numbers - scaled, family))
    rank = np.arange(len(family)) - (np.cumsum(sizes) - sizes)[family]
    numbers[order] += rank < short[family]
    return np.asarray(numbers)


def _checked(parents: Integers, numbers: Floats, precision: Floats) -> Floats:
    """Copy the N x K numbers, 0 where the precision is; refuse shapes that do not fit and what is not finite."""
    if numbers.ndim != 2 or len(numbers) != len(parents) or precision.shape != parents.shape:
        raise ValueError("there must be one row of numbers and one precision or variance per node")
    numbers = np.where(precision[:, None] > 0, numbers, 0.0)
    if not (np.isfinite(numbers).all() and np.isfinite(precision).all() and (precision >= 0).all()):
        raise ValueError("numbers must be finite; precisions and variances, finite and not negative")
    return numbers
