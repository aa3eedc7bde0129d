"""Narrowing the intervals of groups to what their records fill: the ends where nobody is are cut off.

Groups stay as they are, so whatever is promised of their counts stays, too; but now it is known of every interval that
someone has its first value and someone its last.
"""

from __future__ import annotations

import numpy as np

from sfumato.attributes import Numeric
from sfumato.counts.exact_counts import ExactCounts
from sfumato.counts.tally import Tally
from sfumato.schema import Schema
from sfumato.syntactic.information import Integers
from sfumato.tree import Tree


def narrow_intervals(tree: Tree, counts: ExactCounts, schema: Schema) -> Tree:
    """Cut off the ends, one attribute after the other: a pass for each."""
    groups, label = tree.leaves, "ends of intervals"
    for attribute, column in enumerate(schema.predictors.values()):
        if isinstance(column, Numeric) and column.leaves > 1:
            seen = counts.tally(Tally(tree, len(schema.classes), (attribute,), groups), label)
            held = np.flatnonzero(seen.by_place.any(axis=1))
            first, last = seen.by_leaf[attribute].ends(held)
            tree, groups = _cut_off(tree, groups[held], attribute, first, last)
    return tree


def _cut_off(tree: Tree, groups: Integers, attribute: int, first: Integers, last: Integers) -> tuple[Tree, Integers]:
    """Divide groups along an attribute into what lies before, inside and after [first, last]; give those inside."""
    low, high = tree.boxes_of(groups)[:, attribute].astype(np.int64).T
    marks = np.stack([low, first, last + 1, high], axis=1)
    drawn = np.stack([np.ones_like(low), first > low, last + 1 < high, np.ones_like(low)], axis=1).astype(np.bool_)
    wide = np.flatnonzero(drawn[:, 1] | drawn[:, 2])
    drawn = drawn[wide]
    starts = np.append(0, np.cumsum(drawn.sum(axis=1)))
    finer = tree.refine(groups[wide], np.full(len(wide), attribute), marks[wide][drawn], starts)
    children = np.diff(starts) - 1
    inside = len(tree) + np.cumsum(children) - children + drawn[:, 1]
    return finer, np.sort(np.concatenate((np.delete(groups, wide), inside)))
