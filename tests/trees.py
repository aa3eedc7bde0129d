"""Random trees of boxes, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from sfumato.geometry.tree import Tree


def random_trees(shape: Sequence[int], most_levels: int = 4) -> st.SearchStrategy[Tree]:
    """Give a tree that grew level by level, some ends at each, at random borders."""
    return growing_trees(shape, most_levels).map(lambda stages: stages[-1])


@st.composite
def growing_trees(draw: st.DrawFn, shape: Sequence[int], most_levels: int = 4) -> list[Tree]:
    """Give the stages of such a tree."""
    stages = [tree := Tree.whole(shape)]
    for _ in range(draw(st.integers(0, most_levels))):
        ready = [node for node in tree.ends.tolist() if (np.diff(tree.boxes[node])[:, 0] > 1).any()]
        if not ready:
            break
        nodes = sorted(draw(st.sets(st.sampled_from(ready), min_size=1, max_size=3)))
        attributes, borders = [], []
        for node in nodes:
            wide = np.flatnonzero(np.diff(tree.boxes[node])[:, 0] > 1).tolist()
            attribute = draw(st.sampled_from(wide))
            lo, hi = tree.boxes[node, attribute].tolist()
            attributes.append(attribute)
            borders.append([lo, *sorted(draw(st.sets(st.integers(lo + 1, hi - 1), min_size=1, max_size=3))), hi])
        starts = np.concatenate(([0], np.cumsum([len(one) for one in borders])))
        stages.append(tree := tree.refine(nodes, attributes, np.concatenate(borders), starts))
    return stages
