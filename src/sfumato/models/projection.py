"""From noisy counts, which may be negative, to counts that a table can have.

Noise is symmetric, clamping is not: with many empty cells, cutting at zero invents people. The projections here take
back from the positive counts what the cut added, so the noisy total stands, and in a tree every subtree's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arrays import Floats, Integers
from sfumato.geometry.halving import levels_of
from sfumato.models.consistency import rows
from sfumato.models.model import Nonnegative, refuse_unknown


def threshold(counts: NDArray[np.int64]) -> float:
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
