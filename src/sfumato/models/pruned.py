"""A tree of regions that was learnt as a classifier: it counts as any tree does, and is pruned where it classifies.

Pruning is C4.5's, on the noisy counts as they were made to agree: an inner node becomes an end where, taken
pessimistically, that would err no more often than its subtree does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.models.tree import TreeModel

DOUBT = 0.6744897501960817
"""C4.5's confidence of 25 %, as a quantile of the normal distribution: errors are taken at the upper end of theirs."""


class PrunedTreeModel(TreeModel):
    """Ends of a tree that predict what the nodes predict at which the tree is pruned."""

    doubt: ClassVar[float] = DOUBT

    def majorities(self) -> Integers:
        """Find the most frequent class of the highest pruned node above each end."""
        counts = np.maximum(self.nodes.values, 0.0)
        for level in reversed(self.nodes.passes.levels):
            counts[level.heads] = level.sums(counts[level.nodes])
        alone = pessimistic_errors(counts, self.doubt)
        errors, pruned = alone.copy(), np.zeros(len(self.tree), np.bool_)
        for level in reversed(self.nodes.passes.levels):
            below = level.sums(errors[level.nodes])
            pruned[level.heads] = alone[level.heads] <= below
            errors[level.heads] = np.minimum(alone[level.heads], below)
        predicted = np.argmax(counts, axis=1)
        for level in self.nodes.passes.levels:
            above = self.tree.parents[level.nodes]
            settled = pruned[above] | (counts[level.nodes].sum(axis=1) <= 0)
            predicted[level.nodes] = np.where(settled, predicted[above], predicted[level.nodes])
            pruned[level.nodes] |= pruned[above]
        return np.asarray(predicted[self.tree.ends])


def pessimistic_errors(counts: Floats, doubt: float) -> Floats:
    """Bound from above how many of a node's people are not of its most frequent class (nodes x classes).

    With a share f of n people, Wilson's upper bound at the quantile z is
    (f + z^2 / 2n + z sqrt(f (1 - f) / n + z^2 / 4n^2)) / (1 + z^2 / n).

    >>> pessimistic_errors(np.array([[6.0, 0.0], [90.0, 10.0]]), DOUBT).round(2).tolist()
    [0.42, 12.21]
    """
    people = np.maximum(counts.sum(axis=1), 1e-9)
    share, squared = 1 - counts.max(axis=1) / people, doubt * doubt
    width = doubt * np.sqrt(np.maximum(share * (1 - share) / people + squared / (4 * people * people), 0.0))
    return np.asarray(people * (share + squared / (2 * people) + width) / (1 + squared / people))
