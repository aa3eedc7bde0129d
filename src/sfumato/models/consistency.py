"""Counts of a tree of regions made to agree: every node the sum of its children, as near the measured as can be.

All of it is post-processing of released numbers, or planning before there are any: it reads no row and costs no
budget, so floats are allowed here. Each node's noise is independent of the others'; the columns are classes, treated
alike and apart.

From noisy counts, which may be negative, to counts that a table can have.

Noise is symmetric, clamping is not: with many empty cells, cutting at zero invents people. The projections here take
back from the positive counts what the cut added, so the noisy total stands, and in a tree every subtree's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arrays import Floats, Integers
from sfumato.geometry.halving import Level, levels_of
from sfumato.models.model import Nonnegative, refuse_unknown

Consistency = Literal["least squares", "paper"]
"""How counts are made to agree: with the least variance, or with the weights of the CDiffGen paper."""


@dataclass(frozen=True, eq=False)
class Passes:
    """A linear, unbiased way to make measurements agree: one pass up the tree, one down.

    *Upward.* u = y + l (U - y): a node's measurement y leaves the part l of the say to U, the sum of its children's u,
    and keeps k = 1 - l. A leaf's y keeps all of it, one that was not measured none.

    *Downward.* The root's u is final: x = u. Children share what their parent's final x has more than they:
    x_c = u_c + s_c (x - U). The shares of a family sum to 1, so its x sum to their parent's.
    """

    levels: tuple[Level, ...]
    precision: Floats
    """N: 1 / the variance of each node's measurement; 0 if there is none."""
    left: Floats
    """N: the l of each node."""
    shares: Floats
    """N: the s of each node; 0 for the root, which has no parent."""
    upward: Floats
    """N: the variance of each node's u, its count as seen from its own subtree."""

    def values(self, measured: ArrayLike) -> Floats:
        """Give the final x of each node and class from N x K measurements."""
        given = rows(measured, len(self.precision))
        estimates = np.where(self.precision[:, None] > 0, given, 0.0)
        if not np.isfinite(estimates).all():
            raise ValueError("what was measured must be finite")
        for level in reversed(self.levels):
            missing = level.sums(estimates[level.nodes]) - estimates[level.heads]
            estimates[level.heads] += self.left[level.heads, None] * missing
        for level in self.levels:
            excess = estimates[level.heads] - level.sums(estimates[level.nodes])
            estimates[level.nodes] += self.shares[level.nodes, None] * level.of_family(excess)
        return estimates

    def coefficients(self, weights: ArrayLike) -> NDArray[np.floating]:
        """Give what each node's own y counts for in a weighted sum of N nodes' x, or in Q of them for Q x N weights.

        The passes run backwards, handing the weight of each result to what it was made from. From
        x_c = u_c + s_c (x - U), leaves first: of the weights a_c that have gathered at a family's x, the parent's x
        gets m, the sum of s_c a_c, and each u_c gets a_c - m. From u = k y + l U, root first: of the weight b that has
        gathered at u, its y gets k b, and each child's u gets l b more. Single precision stays single.
        """
        given = self._weights(weights)
        gathered = np.array(np.atleast_2d(given).T, order="C")
        left, shares = (one[:, None].astype(given.dtype) for one in (self.left, self.shares))
        for level in reversed(self.levels):
            own = gathered.take(level.nodes, axis=0)
            mean = level.sums(shares.take(level.nodes, axis=0) * own)
            gathered[level.heads] += mean
            gathered[level.nodes] = own - level.of_family(mean)
        for level in self.levels:
            more = left[level.heads] * gathered.take(level.heads, axis=0)
            gathered[level.nodes] += level.of_family(more)
        gathered *= 1 - left
        return np.asarray(gathered.T.reshape(given.shape))

    def variance(self, weights: ArrayLike) -> Floats:
        """Give the variance of a weighted sum of N nodes' values in one class, or of Q of them for Q x N weights."""
        seen = self.precision > 0
        return np.asarray(self.coefficients(weights)[..., seen] ** 2 @ (1 / self.precision[seen]))

    def variances(self) -> Floats:
        """Give the variance of every node's value in one class, leaves' and others'.

        A family's subtrees reach their parent's x only through its u, say r times, and u through U, l times. With
        v = var(u_c) and B = var(U), the sum of the v, cov(u_c, x) = r l v. So x_c = u_c + s (x - U) has variance
        v - 2 s v + s^2 B + s^2 var(x) + 2 s r l (v - s B) = v (1 - s) + s^2 var(x) + s (2 r l - 1) (v - s B), and holds
        its own u_c 1 + s (r l - 1) times. Both from the root down; with least squares v = s B, and the last term is 0.
        """
        variances, reach = self.upward.copy(), np.ones(len(self.upward))
        for level in self.levels:
            own, share = self.upward[level.nodes], self.shares[level.nodes]
            through = level.of_family((reach * self.left)[level.heads])
            whole = level.of_family(level.sums(own))
            uneven = share * (2 * through - 1) * (own - share * whole)
            variances[level.nodes] = own * (1 - share) + share**2 * level.of_family(variances[level.heads]) + uneven
            reach[level.nodes] = 1 + share * (through - 1)
        return variances

    def _weights(self, weights: ArrayLike) -> NDArray[np.floating]:
        given = np.asarray(weights)
        if given.shape[-1:] != self.upward.shape:
            raise ValueError("there must be one weight per node")
        return given if given.dtype == np.float32 else given.astype(np.float64)


class LeastSquares(Passes):
    """The passes of least variance: exact weighted least squares, given that parents are the sums of their children.

    *Upward.* Let v be the variance of u, 1 / p for a leaf measured with precision p. Subtrees of siblings share no
    noise, so U has variance B, the sum of their v. Combined with the parent's own y by inverse variance,
    v = 1 / (p + 1 / B) = l B with l = 1 / (1 + p B): all of the say goes to the children if p is 0.

    *Downward.* The root's u rests on everything, so it is final. Given a parent's final x, least squares minimizes the
    sum of (x_c - u_c)^2 / v_c over children that sum to x; the multiplier moves each in proportion to its v:
    s_c = v_c / B.

    *Errors.* Write x_c = d_c + s_c x, with d_c = u_c - s_c U. The d of a family are uncorrelated with its U, since
    cov(u_c, U) = v_c = cov(s_c U, U). Their subtrees reach every u above, and so x, only through U: the d are
    uncorrelated with x and with the d of all other families. Inside a family, cov(d) = diag(v) - v v' / B.
    """

    @classmethod
    def of(cls, levels: tuple[Level, ...], precision: Floats) -> LeastSquares:
        """Weigh measurements by their precisions."""
        upward = 1 / np.where(precision > 0, precision, 1.0)
        left, shares = np.zeros(len(precision)), np.zeros(len(precision))
        for level in reversed(levels):
            below = level.sums(upward[level.nodes])
            shares[level.nodes] = upward[level.nodes] / level.of_family(below)
            left[level.heads] = 1 / (1 + precision[level.heads] * below)
            upward[level.heads] = left[level.heads] * below
        return cls(levels, precision, left, shares, upward)

    def variance(self, weights: ArrayLike) -> Floats:
        """Give the variances in one pass, without the coefficients.

        Replace each x_c, leaves first, by d_c + s_c x: the weight a_c that has gathered at a child passes on to its
        parent as s_c a_c, so the parent gathers m, the mean of its children's a by their v. The sum is now one of
        uncorrelated terms: the root's a u, and per family the sum of a_c d_c, of variance
        sum of v_c a_c^2 - (sum of v_c a_c)^2 / B = sum of v_c (a_c - m)^2.
        """
        given = self._weights(weights)
        gathered = np.atleast_2d(given).T.astype(np.float64, order="C")
        spread = np.zeros(gathered.shape[1])
        for level in reversed(self.levels):
            own = gathered[level.nodes]
            mean = level.sums(self.shares[level.nodes, None] * own)
            spread += self.upward[level.nodes] @ (own - level.of_family(mean)) ** 2
            gathered[level.heads] += mean
        return np.asarray(spread + self.upward[0] * gathered[0] ** 2).reshape(given.shape[:-1])


def as_published(levels: tuple[Level, ...], precision: Floats) -> Passes:
    """Give the passes of the CDiffGen paper as its Algorithm 2 should read: sums over adjusted children, even shares.

    A measurement keeps the say N_leaf / N_total, the leaves and the measured nodes of its subtree, whatever the noise.
    On a full k-ary tree of m levels that is k^(m - 1) / ((k^m - 1) / (k - 1)), the weight of Hay et al., and with equal
    noise that of least squares: there a node has v = say / p, so B = k say_c / p, and 1 / say = 1 + 1 / (p B)
    = 1 + (1 / say_c) / k = 1 + 1 / k + ... + 1 / k^(m - 1). Elsewhere least squares is better.
    """
    measured = precision > 0
    nodes, leaves = measured.astype(np.float64), np.ones(len(precision))
    upward = 1 / np.where(measured, precision, 1.0)
    left, shares = np.zeros(len(precision)), np.zeros(len(precision))
    for level in reversed(levels):
        shares[level.nodes] = 1 / level.of_family(level.sizes.astype(np.float64))
        leaves[level.heads] = level.sums(leaves[level.nodes])
        nodes[level.heads] += level.sums(nodes[level.nodes])
        say = np.where(measured[level.heads], leaves[level.heads] / nodes[level.heads], 0.0)
        left[level.heads] = 1 - say
        upward[level.heads] = say**2 * upward[level.heads] + (1 - say) ** 2 * level.sums(upward[level.nodes])
    return Passes(levels, precision, left, shares, upward)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Estimates of all nodes' counts in which parents are the sums of their children."""

    values: Floats
    """N x K: the final x of each node and class."""
    passes: Passes
    """How they came from what was measured, and so how far noise may have moved them."""

    @classmethod
    def of(cls, parents: ArrayLike, measured: ArrayLike, precision: ArrayLike) -> Consistent:
        """Reconcile N x K measurements of N precisions, 1 / variance, by least squares; precision 0: not measured.

        >>> tree = Consistent.of([-1, 0, 0], [[9.0], [3.0], [3.0]], [1, 1, 1])
        >>> tree.values.ravel().tolist()
        [8.0, 4.0, 4.0]
        >>> tree.variance([[1, 0, 0], [0, 1, -1], [0, 1, 1]]).round(9).tolist()
        [0.666666667, 2.0, 0.666666667]
        """
        passes = LeastSquares.of(*_measurable(parents, precision))
        return cls(passes.values(measured), passes)

    @classmethod
    def as_published(cls, parents: ArrayLike, measured: ArrayLike, precision: ArrayLike) -> Consistent:
        """Reconcile with the weights of the CDiffGen paper; precisions tell what was measured, and how errors spread.

        >>> Consistent.as_published([-1, 0, 0], [[9.0], [3.0], [3.0]], [1, 1, 1]).values.ravel().tolist()
        [8.0, 4.0, 4.0]
        """
        passes = as_published(*_measurable(parents, precision))
        return cls(passes.values(measured), passes)

    def coefficients(self, weights: ArrayLike) -> NDArray[np.floating]:
        """Give what each measurement counts for in weighted sums: see `Passes`."""
        return self.passes.coefficients(weights)

    def variance(self, weights: ArrayLike) -> Floats:
        """Give the variance of weighted sums: see `Passes`."""
        return self.passes.variance(weights)

    def variances(self) -> Floats:
        """Give the variance of every node's value: see `Passes`."""
        return self.passes.variances()


def _measurable(parents: ArrayLike, precision: ArrayLike) -> tuple[tuple[Level, ...], Floats]:
    """Give the levels of a tree and its nodes' precisions, refusing leaves that were not measured."""
    above, given = np.asarray(parents, np.int64), np.asarray(precision, np.float64)
    levels = levels_of(above)
    if given.shape != above.shape or not (np.isfinite(given).all() and (given >= 0).all()):
        raise ValueError("there must be one precision per node, finite and not negative")
    if not (given[np.bincount(above[1:], minlength=len(above)) == 0] > 0).all():
        raise ValueError("every leaf must be measured")
    return levels, given


def rows(numbers: ArrayLike, nodes: int) -> Floats:
    """Give N x K numbers, refusing what has not one row per node."""
    table = np.asarray(numbers, np.float64)
    if table.ndim != 2 or len(table) != nodes:
        raise ValueError("there must be one row of numbers per node")
    return table


def threshold(counts: Integers | Floats) -> float:
    """Find the t at which the positive parts of (count - t) sum to the counts' total (to 0 if that is negative).

    Among the k largest counts, t = (their sum - total) / k; the right k is the last whose count exceeds its t.
    """
    falling = np.sort(counts, axis=None)[::-1].astype(np.float64)
    total = max(float(counts.sum()), 0.0)
    steps = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    above = np.flatnonzero(falling > steps)
    return float(steps[above[-1]]) if above.size else float(falling[0])


def nonnegative(counts: Integers, how: Nonnegative) -> Integers:
    """Make counts non-negative integers: the projection that keeps the noisy total, or the papers' clamping at 0.

    >>> nonnegative(np.array([6, 3, -2, 0]), "projection").tolist()
    [5, 2, 0, 0]
    >>> nonnegative(np.array([6, 3, -2, 0]), "clamp").tolist()
    [6, 3, 0, 0]
    """
    refuse_unknown(how)
    if how == "clamp":
        return np.asarray(np.maximum(counts, 0), np.int64)
    wanted = np.maximum(counts - threshold(counts), 0.0).ravel()
    whole = np.floor(wanted).astype(np.int64)
    short = max(int(counts.sum()), 0) - int(whole.sum())
    rounded_up = np.argsort(whole - wanted, kind="stable")[: max(short, 0)]
    whole[rounded_up] += 1
    return np.asarray(whole.reshape(counts.shape))


def project(parents: ArrayLike, values: ArrayLike, shares: ArrayLike) -> Integers:
    """Make N x K estimates of a tree non-negative whole numbers of people that are consistent, from the root down.

    The root's people, its values' rounded sum (none if that is negative), are shared among its classes; then each
    class's people at a node among the node's children, by the numbers nearest to their estimates in the metric
    1 / share, and by largest remainders to whole people.

    The shares are those of the downward pass, `Passes.shares`: whoever moves more to agree with the parent moves more
    to be non-negative, too. Estimates from before and from after that pass then give the same people, for they differ
    by a multiple of the shares, which the multiplier absorbs. With the paper's weights that is the plain distance.
    With least squares shares are in proportion to the variances v, and the metric is that of the errors: siblings
    that must sum to a given number err like independent ones of variances v, since cov(d) = diag(v) - v v' / B is the
    covariance of such, given their sum.

    >>> project(np.array([-1, 0, 0, 0]), [[7.2], [6.1], [3.1], [-2.0]], np.ones(4)).ravel().tolist()
    [7, 5, 2, 0]
    """
    levels = levels_of(above := np.asarray(parents, np.int64))
    values, shares = rows(values, len(above)), np.asarray(shares, np.float64)
    if shares.shape != above.shape or not (np.isfinite(shares).all() and (shares[1:] > 0).all()):
        raise ValueError("there must be one share per node, greater than 0 below the root")
    people = np.zeros(values.shape, np.int64)
    classes = np.zeros(values.shape[1], np.int64)
    total = np.array([max(round(float(values[0].sum())), 0)], np.int64)
    people[0] = whole(nearest(values[0], np.ones(len(classes)), classes, total), classes, total)
    for level in levels:
        metric = shares[level.nodes]
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
