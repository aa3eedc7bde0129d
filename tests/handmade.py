"""Releases built by hand, without a publication, and what it means that two are equal."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from margins_by_hand import CLEAR, assert_same_margin, margins_of, people_by_hand
from sfumato import Release, Schema
from sfumato.geometry.boxes import Boxes, Regions
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import Debit
from sfumato.privacy.measurements import Margin, NodeCounts, Noisy
from sfumato.release.manifest import Manifest
from trees import random_trees

PEOPLE = Schema.loads("""
name: people
confirmed: true
attributes:
  passport: {kind: identifier}
  job:
    kind: categorical
    root: Anyone
    taxonomy: {White-collar: [Engineer, Lawyer], Artist: [Dancer, Writer], Unknown: }
    missing: Unknown
  age: {kind: numeric, lower: 17, upper: 90, missing: Missing}
  wage: {kind: numeric, lower: 0, upper: 100, step: 30}
  height: {kind: numeric, lower: 0.5, upper: 2.4, step: 0.25}
  born: {kind: numeric, lower: 1990-01-01, upper: 1990-02-10, step: 7}
  gain: {kind: numeric, lower: 0, upper: 24, step: 10, points: [0, 13]}
  income: {kind: class, taxonomy: [low, high]}
""")
CUTS = ((0, 2, 4, 5), (0, 21, 75), (0, 4), (0, 3, 8), (0, 2, 6), (0, 1, 6))


def manifest_of(schema: Schema, cells: int, *, secure: bool = True) -> Manifest:
    debit = Debit("counts", "discrete Laplace", Fraction(1, 2), Fraction(1), cells)
    return Manifest("0.1.0", "publication", "test", {"h": 3}, (debit,), secure, schema.digest, ("one step",))


def release_of(
    schema: Schema = PEOPLE,
    cuts: tuple[tuple[int, ...], ...] | None = CUTS,
    counts: np.ndarray | None = None,
    margins: Mapping[int, np.ndarray | Margin] | None = None,
    *,
    secure: bool = True,
) -> Release:
    """Build a release by hand; without counts each cell has its own; a margin given as numbers is beyond doubt."""
    grid = Grid.whole(schema.shape) if cuts is None else Grid(cuts)
    shape = (grid.regions, len(schema.classes))
    given_counts = np.arange(math.prod(shape)).reshape(shape) - 3 if counts is None else counts.reshape(shape)
    return Release(
        schema,
        grid,
        Noisy.even(given_counts.astype(np.int64), Fraction(1, 2)),
        {
            attribute: margin if isinstance(margin, Margin) else Margin.flat(margin, CLEAR)
            for attribute, margin in (margins or {}).items()
        },
        manifest_of(schema, given_counts.size, secure=secure),
    )


BOXES = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 5}
  b: {kind: categorical, taxonomy: {p: [x, y], q: [z, w]}}
  c: {kind: numeric, lower: 0, upper: 2}
  class: {kind: class, taxonomy: [no, yes]}
""")


def cuts(leaves: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(1, leaves - 1)).map(lambda inner: (0, *sorted(inner), leaves))


@st.composite
def box_releases(draw: st.DrawFn) -> Release:
    grid = draw(st.tuples(*map(cuts, BOXES.shape)))
    size = math.prod(len(cut) - 1 for cut in grid) * 2
    counts = draw(st.lists(st.integers(-50, 1000), min_size=size, max_size=size))
    margins = {at: draw(margins_of(leaves)) for at, leaves in enumerate(BOXES.shape) if draw(st.booleans())}
    return release_of(BOXES, grid, np.array(counts), margins)


@st.composite
def noisy(draw: st.DrawFn, places: int) -> Noisy:
    """Give counts of some places by two classes, with noise of different rates."""
    rates = tuple(draw(st.lists(st.fractions(Fraction(1, 20), 3, max_denominator=20), min_size=1, max_size=3)))
    cells = draw(st.lists(st.tuples(st.integers(-50, 1000), st.integers(-50, 100)), min_size=places, max_size=places))
    rate_of = draw(st.lists(st.integers(0, len(rates) - 1), min_size=places, max_size=places))
    return Noisy(np.array(cells, np.int64).reshape(places, 2), rates, np.array(rate_of, np.int64))


@st.composite
def tree_releases(draw: st.DrawFn) -> Release:
    """Give a release over a tree, with earlier counts of some nodes and perhaps margins."""
    tree = draw(random_trees(BOXES.shape))
    rounds = draw(st.lists(st.sets(st.integers(0, len(tree) - 1), min_size=1), max_size=3))
    earlier = tuple(NodeCounts(np.array(sorted(nodes)), draw(noisy(len(nodes)))) for nodes in rounds)
    margins = {at: draw(margins_of(leaves)) for at, leaves in enumerate(BOXES.shape) if draw(st.booleans())}
    return Release(BOXES, tree, draw(noisy(tree.regions)), margins, manifest_of(BOXES, 2 * tree.regions), earlier)


# Answers by hand.

RANGES = st.fixed_dictionaries(
    {}, optional={name: st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted) for name in BOXES.attributes}
)


def leaf_weights(box: Mapping[str, tuple[int, int]]) -> dict[str, np.ndarray]:
    sizes = {name: column.leaves for name, column in BOXES.attributes.items()}
    return {name: np.array([float(lo <= leaf < hi) for leaf in range(sizes[name])]) for name, (lo, hi) in box.items()}


def ranges_by_hand(release: Release) -> list[list[list[int]]]:
    """Give every region's ranges."""
    partition = release.partition
    boxes = partition.boxes(0, partition.regions) if isinstance(partition, Grid) else partition.boxes[partition.leaves]
    return boxes.tolist()


def mass_by_hand(release: Release, attribute: int) -> np.ndarray:
    """Give each leaf a piece, and 2^40 pieces to all in proportion to their people; without a margin the piece only."""
    if attribute not in release.margins:
        return np.ones(release.schema.shape[attribute])
    people = people_by_hand(release.margins[attribute])
    return np.rint(people / max(people.sum(), 1.0) * 2**40) + 1


def weight_by_hand(release: Release, box: Mapping[str, tuple[int, int]]) -> np.ndarray:
    """Give the weight of every region and class in a box, leaf by leaf."""
    names = list(BOXES.predictors)
    masses = [mass_by_hand(release, attribute) for attribute in range(len(names))]
    weights = np.zeros((release.groups, 2))
    lo_class, hi_class = box.get("class", (0, 2))
    for region, ranges in enumerate(ranges_by_hand(release)):
        inside = 1.0
        for attribute, (lo, hi) in enumerate(ranges):
            left, right = box.get(names[attribute], (lo, hi))
            mass = masses[attribute][lo:hi]
            inside *= mass[[left <= leaf < right for leaf in range(lo, hi)]].sum() / mass.sum()
        weights[region, lo_class:hi_class] = inside
    return weights


SOME_RELEASES = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)


def reloaded(release: Release, place: Path) -> Release:
    """Save a release, over an older one, and load it."""
    shutil.rmtree(place, ignore_errors=True)
    release.save(place)
    return Release.load(place)


def assert_equal(one: Release, other: Release) -> None:
    assert one.schema == other.schema
    assert_same_regions(one.partition, other.partition)
    assert one.manifest == other.manifest.with_files(one.manifest.files or {})
    assert_same_noisy(one.counts, other.counts)
    assert one.margins.keys() == other.margins.keys()
    for attribute, margin in one.margins.items():
        assert_same_margin(margin, other.margins[attribute])
    assert one.consistency == other.consistency
    for bought, again in zip(one.earlier, other.earlier, strict=True):
        assert np.array_equal(bought.nodes, again.nodes)
        assert_same_noisy(bought.noisy, again.noisy)


def assert_same_regions(one: Regions, other: Regions) -> None:
    if isinstance(one, Boxes):
        assert isinstance(other, Boxes)
        assert one.shape == other.shape
        assert np.array_equal(one.ranges, other.ranges)
        return
    if isinstance(one, Grid):
        assert one == other
        return
    assert isinstance(other, Tree)
    assert one.shape == other.shape
    for facts in ("parents", "attributes", "lows", "highs"):
        assert np.array_equal(getattr(one, facts), getattr(other, facts))


def assert_same_noisy(one: Noisy, other: Noisy) -> None:
    assert one.rates == other.rates
    assert np.array_equal(one.rate_of, other.rate_of)
    assert one.counts.dtype == other.counts.dtype == np.int64
    assert np.array_equal(one.counts, other.counts)


def handmade_tree() -> Tree:
    """Split a into [0, 2) and [2, 6), and the latter by b into {x, y} and {z, w}."""
    return Tree.whole(BOXES.shape).refine([0], [0], [0, 2, 6], [0, 3]).refine([2], [1], [0, 2, 4], [0, 3])


def release_over(
    tree: Tree, counts: list[list[int]], earlier: dict[int, list[int]] | None = None, rate: Fraction = Fraction(1, 2)
) -> Release:
    """Release counts of regions, and earlier ones of some nodes, all with the same noise."""
    bought = Noisy.even(np.array(list((earlier or {}).values()), np.int64).reshape(-1, 2), rate)
    return Release(
        BOXES,
        tree,
        Noisy.even(np.array(counts, np.int64), rate),
        {0: Margin.flat(np.array([9, 3, -1, -2, 4, 0]), CLEAR)},
        manifest_of(BOXES, 2 * tree.regions),
        (NodeCounts(np.array(list(earlier), np.int64), bought),) if earlier else (),
    )
