"""A release of every kind, small and built by hand, and random ones: what laws of models and of files are tried on.

Whoever adds a model adds it here; a test sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

from groups_by_hand import group_releases, groups_of
from handmade import BOXES, box_releases, drafted, handmade_tree, release_of, release_over, tree_releases
from margins_by_hand import CLEAR
from networks import network_of, network_releases
from sfumato import Release
from sfumato.geometry.regions import Boxes, Regions
from sfumato.geometry.tree import Tree
from sfumato.models import MODELS
from sfumato.models.margins import Margin, MarginLevel
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.measurements import Noisy
from sfumato.release.manifest import Manifest
from sfumato.release.promises import ConfidenceCap, KAnonymity, Knowledge, Promise
from trees import random_trees

PAPER = "tree with the paper's weights"
K = 3
CAPPED = Fraction(9, 10)
EVERYONE = Knowledge(tuple(np.full(leaves, 1 / leaves) for leaves in BOXES.shape), np.array([0.5, 0.5]))


def openly(regions: Regions, counts: np.ndarray, promise: Promise) -> Release:
    """Release exact counts under a promise."""
    looks = (NonPrivate("groups", "they are counted exactly"),)
    sealed = {"secure": True, "schema_digest": BOXES.digest, "steps": ("one step",), "promise": promise, "looks": looks}
    manifest = Manifest("0.1.0", "publication", "test", {"k": K}, (), **sealed)
    return Release(BOXES, drafted(regions, Noisy.exact(counts.astype(np.int64))), manifest)


def exact_tree(tree: Tree, counts: np.ndarray) -> Release:
    return openly(tree, counts, KAnonymity(K, tuple(BOXES.predictors), BOXES.target))


def boxes(ranges: np.ndarray, counts: np.ndarray, sampling: Fraction = CAPPED) -> Release:
    """Release a sample in boxes: records are so many that each kind of them is expected."""
    cap = ConfidenceCap(tuple(BOXES.predictors), "class", sampling, EVERYONE)
    return openly(Boxes(BOXES.shape, ranges, sampling), counts, cap)


def ungrouped() -> Release:
    """Release a grid whose leaves are in another order, without the histogram of its cells."""
    return without_histogram(groups_of())


def without_histogram(release: Release) -> Release:
    return replace(release, draft=replace(release.draft, measurements=release.draft.measurements[1:], model="grid"))


def with_paper_weights(release: Release) -> Release:
    return replace(release, draft=replace(release.draft, model=PAPER))


def small_tree() -> Release:
    return release_over(handmade_tree(), [[40, 10], [5, -2], [9, 30]], {2: [20, 25], 0: [60, 44], 3: [3, 1]})


def small_grid() -> Release:
    """Release a grid with margins of two levels, each with noise of its own."""
    levels = (MarginLevel(1, np.array([5, 6]), Fraction(1, 9)), MarginLevel(3, np.arange(6) - 2, Fraction(1, 4)))
    margins = {0: Margin(6, levels), 1: Margin.flat(np.array([9, -3, 4, 1]), CLEAR)}
    return release_of(BOXES, ((0, 2, 6), (0, 2, 4), (0, 3)), margins=margins)


SMALL: Mapping[str, Callable[[], Release]] = {
    "grid": small_grid,
    "coclusters": groups_of,
    "tree": small_tree,
    PAPER: lambda: with_paper_weights(small_tree()),
    "exact tree": lambda: exact_tree(handmade_tree(), np.array([[4, 1], [0, 0], [7, 9]])),
    "boxes": lambda: boxes(
        np.array([[[0, 2], [0, 4], [0, 3]], [[0, 6], [0, 2], [0, 3]], [[1, 4], [1, 3], [2, 3]]]),
        np.array([[900, 300], [0, 700], [400, 1]]),
    ),
    "network": lambda: network_of(5),
}
"""One of each kind."""


@st.composite
def exact_trees(draw: st.DrawFn) -> Release:
    tree = draw(random_trees(BOXES.shape))
    held = st.sampled_from([(0, 0), (K, 0), (0, K), (1, 2), (90, 17), (4, 400)])
    return exact_tree(tree, np.array(draw(st.lists(held, min_size=tree.regions, max_size=tree.regions))))


@st.composite
def overlapping_boxes(draw: st.DrawFn) -> Release:
    sides = [st.sets(st.integers(0, leaves), min_size=2, max_size=2).map(sorted) for leaves in BOXES.shape]
    ranges = draw(st.lists(st.tuples(*sides), min_size=1, max_size=6, unique_by=str))
    held = st.tuples(st.integers(0, 5000), st.integers(4000, 9000))
    counts = draw(st.lists(held, min_size=len(ranges), max_size=len(ranges)))
    return boxes(np.array(ranges), np.array(counts), draw(st.sampled_from([CAPPED, Fraction(1, 3), Fraction(1)])))


RANDOM: Mapping[str, st.SearchStrategy[Release]] = {
    "grid": box_releases() | group_releases().map(without_histogram),
    "coclusters": group_releases(),
    "tree": tree_releases(),
    PAPER: tree_releases().map(with_paper_weights),
    "exact tree": exact_trees(),
    "boxes": overlapping_boxes(),
    "network": network_releases(),
}
"""Any of each kind."""

EVERY_KIND = pytest.mark.parametrize("kind", MODELS)
NOISY = [kind for kind in MODELS if kind in SMALL and not SMALL[kind]().is_exact]
EXACT = [kind for kind in MODELS if kind in SMALL and SMALL[kind]().is_exact]
