"""The share of each class in every node of a tree, as far as the noise lets it differ from the parent's.

A small group's counts are mostly noise, a large one's are not, and its parent's shares are the best guess before they
are looked at. Post-processing of released numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.consistency import Consistent

Floats = NDArray[np.float64]

ROUNDS = 20
"""So many rounds settle how much the shares of a level vary; it needs few."""
FIRST = 0.05
"""The guess to begin with."""
LEAST_SHARE = 1e-9
"""No class is ruled out by noise."""


def class_shares(tree: Consistent, parents: NDArray[np.integer]) -> Floats:
    """Give every node's shares of the classes, from the root down: nodes x classes.

    Let a node have m people, estimates x_k of classes with variance v each, and a parent with shares q. What it has
    more of class k than its parent's shares say is e_k = x_k - q_k (x_1 + ... + x_K), whose noise has variance
    w_k = v ((1 - q_k)^2 + (K - 1) q_k^2). Suppose that on its level true shares differ from the parents' with
    variance t. Then e_k has variance t m^2 + w_k, of which the first is real: the best guess of the share is
    q_k + (e_k / m) t m^2 / (t m^2 + w_k). (Normal shrinkage; t is the same for a level, from all its nodes.)
    """
    totals = tree.values.sum(axis=1)
    noise = tree.variances()
    shares = np.empty_like(tree.values)
    shares[0] = _normal(tree.values[0] / max(totals[0], 1.0))
    for level in tree.passes.levels:
        expected, own = shares[parents[level.nodes]], noise[level.nodes, None]
        classes = expected.shape[1]
        people = np.maximum(totals[level.nodes, None], np.sqrt(classes * own))
        more = tree.values[level.nodes] - expected * totals[level.nodes, None]
        unsure = own * ((1 - expected) ** 2 + (classes - 1) * expected**2) / people**2
        real = _variance(more / people, unsure)
        shares[level.nodes] = _normal(expected + more / people * real / (real + unsure))
    return shares


def _variance(differences: Floats, noise: Floats) -> float:
    """Estimate how much differences vary beyond their noise: the mean of d^2 - w, each weighted by its own precision.

    The variance of d^2 is proportional to (t + w)^2, which needs the t that is sought: a few rounds settle it.
    """
    found = FIRST
    for _ in range(ROUNDS):
        weights = 1 / (found + noise) ** 2
        found = max(float(((differences**2 - noise) * weights).sum() / weights.sum()), 0.0)
        if found == 0:
            break
    return found


def _normal(shares: Floats) -> Floats:
    """Make shares of what may be negative."""
    positive = np.maximum(shares, LEAST_SHARE)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))
