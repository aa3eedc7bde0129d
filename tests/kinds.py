"""A release of every kind, small and built by hand, and random ones: what laws of models and of files are tried on.

Whoever adds a model adds it here; a test sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

from groups_by_hand import group_releases, groups_of
from handmade import BOXES, box_releases, drafted, handmade_tree, manifest_of, release_of, release_over, tree_releases
from margins_by_hand import CLEAR, SEEDS
from networks import network_of, network_releases
from sfumato import DiffPC45, DPCube, Method, PrivBayes, Rehearsal, Release
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


MERGED = "merged grid"


def with_paper_weights(release: Release) -> Release:
    return replace(release, draft=replace(release.draft, model=PAPER))


def small_tree() -> Release:
    return release_over(handmade_tree(), [[40, 10], [5, -2], [9, 30]], {2: [20, 25], 0: [60, 44], 3: [3, 1]})


def small_grid() -> Release:
    """Release a grid with margins of two levels, each with noise of its own."""
    levels = (MarginLevel(1, np.array([5, 6]), Fraction(1, 9)), MarginLevel(3, np.arange(6) - 2, Fraction(1, 4)))
    margins = {0: Margin(6, levels), 1: Margin.flat(np.array([9, -3, 4, 1]), CLEAR)}
    return release_of(BOXES, ((0, 2, 6), (0, 2, 4), (0, 3)), margins=margins)


def merged_grid(rng: np.random.Generator) -> Release:
    """Release a grid with margins of leaves, which its model merges."""
    margins = {at: Margin.flat(rng.integers(-5, 60, leaves), Fraction(1, 9)) for at, leaves in enumerate(BOXES.shape)}
    release = release_of(BOXES, ((0, 2, 6), (0, 2, 4), (0, 3)), margins=margins)
    return replace(release, draft=replace(release.draft, model=MERGED))


BY_METHOD: Mapping[str, Method] = {
    "pruned tree": DiffPC45(depth=2),
    "tree over cells": DPCube(),
    "network of families": PrivBayes(candidates=60),
    "network of clipped families": PrivBayes.as_published(),
}
"""Kinds whose releases are made by a method, of rows that are nobody's."""


def by_method(kind: str, seed: int) -> Release:
    """Let a method draft a release of random rows."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, 60))
    columns = [rng.integers(0, leaves, rows).astype(np.uint8) for leaves in BOXES.shape]
    classes = rng.integers(0, len(BOXES.classes), rows).astype(np.uint8)
    draft, _ = Rehearsal(BY_METHOD[kind], BOXES, Fraction(3), seed).run(columns, classes)
    return Release(BOXES, draft, manifest_of(BOXES, draft.cells))


SMALL: Mapping[str, Callable[[], Release]] = {
    "grid": small_grid,
    "coclusters": groups_of,
    "tree": small_tree,
    PAPER: lambda: with_paper_weights(small_tree()),
    MERGED: lambda: merged_grid(np.random.default_rng(1)),
    "exact tree": lambda: exact_tree(handmade_tree(), np.array([[4, 1], [0, 0], [7, 9]])),
    "boxes": lambda: boxes(
        np.array([[[0, 2], [0, 4], [0, 3]], [[0, 6], [0, 2], [0, 3]], [[1, 4], [1, 3], [2, 3]]]),
        np.array([[900, 300], [0, 700], [400, 1]]),
    ),
    "network": lambda: network_of(5),
    **{kind: partial(by_method, kind, 3) for kind in BY_METHOD},
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
    MERGED: SEEDS.map(merged_grid),
    "exact tree": exact_trees(),
    "boxes": overlapping_boxes(),
    "network": network_releases(),
    **{kind: st.integers(0, 2**32).map(partial(by_method, kind)) for kind in BY_METHOD},
}
"""Any of each kind."""

EVERY_KIND = pytest.mark.parametrize("kind", MODELS)
NOISY = [kind for kind in MODELS if kind in SMALL and not SMALL[kind]().is_exact]
EXACT = [kind for kind in MODELS if kind in SMALL and SMALL[kind]().is_exact]
