"""Random trees of boxes, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from margins_by_hand import SEEDS
from sfumato.geometry.tree import Tree


def random_trees(shape: Sequence[int], most_levels: int = 4) -> st.SearchStrategy[Tree]:
    """Give a tree that grew level by level, some ends at each, at random borders."""
    return growing_trees(shape, most_levels).map(lambda stages: stages[-1])


@st.composite
def growing_trees(draw: st.DrawFn, shape: Sequence[int], most_levels: int = 4) -> list[Tree]:
    """Give the stages of such a tree."""
    stages, rng = [Tree.whole(shape)], draw(SEEDS)
    for _ in range(draw(st.integers(0, most_levels))):
        tree = stages[-1]
        widths = np.diff(tree.boxes[tree.ends])[..., 0]
        ready = np.flatnonzero((widths > 1).any(axis=1))
        if not len(ready):
            break
        chosen = np.sort(rng.choice(ready, min(rng.integers(1, 4), len(ready)), replace=False))
        attributes = [int(rng.choice(np.flatnonzero(widths[one] > 1))) for one in chosen]
        borders = [_cut(rng, *tree.boxes[tree.ends[one], at]) for one, at in zip(chosen, attributes, strict=True)]
        starts = np.concatenate(([0], np.cumsum([len(one) for one in borders])))
        stages.append(tree.refine(tree.ends[chosen], attributes, np.concatenate(borders), starts))
    return stages


def _cut(rng: np.random.Generator, lo: int, hi: int) -> list[int]:
    inner = rng.choice(np.arange(lo + 1, hi), min(rng.integers(1, 4), hi - lo - 1), replace=False)
    return [lo, *sorted(inner.tolist()), hi]
