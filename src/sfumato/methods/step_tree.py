"""From the specializations of a grid to the tree that they grow: one node for each specialization on a path.

A specialization of a value splits every region that has the value, so the leaves of the tree are the regions of the
grid. The tree is given level by level, because the nodes of one level are the disjoint cells of one round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.counts.choices import Specialization, Ways
from sfumato.partition import Indices
from sfumato.tree import Tree


def stages_of(shape: Sequence[int], steps: Sequence[Specialization]) -> list[Tree]:
    """Grow the tree level by level: stage d has all nodes down to depth d.

    >>> steps = [Specialization(0, 0, (0, 2, 4)), Specialization(0, 1, (0, 9, 47)), Specialization(0, 0, (2, 3, 4))]
    >>> [stage.regions for stage in stages_of((4, 47), steps)]
    [1, 2, 4, 6]
    """
    stages, ways = [Tree.whole(shape)], Ways.join([Ways.one(0, step.attribute, step.borders) for step in steps])
    nodes, passed = np.zeros(1, np.int64), np.zeros(1, np.int64)
    while True:
        tree = stages[-1]
        next_step = _next_steps(tree, nodes, passed, steps)
        splitting = np.flatnonzero(next_step < len(steps))
        if not len(splitting):
            return stages
        chosen = ways.take(next_step[splitting])
        stages.append(tree.refine(nodes[splitting], chosen.attributes, chosen.borders, chosen.starts))
        passed = np.repeat(next_step[splitting] + 1, chosen.children)
        nodes = np.arange(len(tree), len(stages[-1]))


def _next_steps(tree: Tree, nodes: Indices, passed: Indices, steps: Sequence[Specialization]) -> Indices:
    """Give for each node the first step, of those not passed on its path, that specializes a value of it."""
    boxes = tree.boxes_of(nodes)
    found = np.full(len(nodes), len(steps))
    for number, step in reversed(list(enumerate(steps))):
        concerns = (boxes[:, step.attribute] == (step.borders[0], step.borders[-1])).all(axis=1)
        found[concerns & (passed <= number)] = number
    return found
