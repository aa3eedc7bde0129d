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

from margins_by_hand import CLEAR, SEEDS, borders_by_hand, people_by_hand, random_margin
from sfumato import Release, Schema
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Regions
from sfumato.geometry.tree import Tree
from sfumato.models.margins import Margin
from sfumato.privacy.budget import Debit
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
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


def margin_measurements(shape: tuple[int, ...], margins: Mapping[int, Margin]) -> list[Measurement]:
    """Measure every level of margins, as a release has them."""
    return [
        Measurement(
            f"margin {attribute} at depth {level.depth}",
            Question(Grid.marginal(shape, {attribute: borders_by_hand(shape[attribute], level.depth)})),
            Noisy.even(level.counts[:, None], level.rate),
        )
        for attribute, margin in margins.items()
        for level in margin.levels
    ]


def region_measurement(
    regions: Regions, noisy: Noisy, label: str = "counts", nodes: np.ndarray | None = None
) -> Measurement:
    """Measure regions, or nodes of a tree, by class."""
    ends = regions.ends if isinstance(regions, Tree) else None
    return Measurement(label, Question(regions, ends if nodes is None else nodes, noisy.counts.shape[1]), noisy)


def drafted(
    regions: Regions,
    counts: Noisy,
    margins: Mapping[int, Margin] | None = None,
    earlier: Mapping[str, tuple[np.ndarray, Noisy]] | None = None,
    model: str | None = None,
) -> Draft:
    """Put a draft together: margins, what was bought on the way, and the counts of the regions."""
    measured = margin_measurements(regions.shape, margins or {})
    measured += [region_measurement(regions, noisy, name, nodes) for name, (nodes, noisy) in (earlier or {}).items()]
    exact = counts.is_exact and regions.kind == "tree"
    kind = model or ("exact tree" if exact else regions.kind)
    return Draft(regions, (*measured, region_measurement(regions, counts)), kind)


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
    known = {
        attribute: margin if isinstance(margin, Margin) else Margin.flat(margin, CLEAR)
        for attribute, margin in (margins or {}).items()
    }
    draft = drafted(grid, Noisy.even(given_counts.astype(np.int64), Fraction(1, 2)), known)
    return Release(schema, draft, manifest_of(schema, given_counts.size, secure=secure))


def released(schema: Schema, regions: Regions, counts: np.ndarray) -> Release:
    """Release counts of regions x classes, said to have noise of rate 1."""
    return Release(schema, drafted(regions, Noisy.even(counts, Fraction(1))), manifest_of(schema, counts.size))


BOXES = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 5}
  b: {kind: categorical, taxonomy: {p: [x, y], q: [z, w]}}
  c: {kind: numeric, lower: 0, upper: 2}
  class: {kind: class, taxonomy: [no, yes]}
""")


def random_margins(rng: np.random.Generator) -> dict[int, Margin]:
    """Give margins of some attributes."""
    return {at: random_margin(rng, leaves) for at, leaves in enumerate(BOXES.shape) if rng.random() < 0.5}


def random_cuts(rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    inner = [1 + np.flatnonzero(rng.random(leaves - 1) < rng.random()) for leaves in BOXES.shape]
    return tuple((0, *one.tolist(), leaves) for one, leaves in zip(inner, BOXES.shape, strict=True))


@st.composite
def box_releases(draw: st.DrawFn) -> Release:
    rng = draw(SEEDS)
    cuts = random_cuts(rng)
    counts = rng.integers(-50, 1001, math.prod(len(cut) - 1 for cut in cuts) * 2)
    return release_of(BOXES, cuts, counts, random_margins(rng))


def noisy(places: int) -> st.SearchStrategy[Noisy]:
    """Give counts of some places by two classes, with noise of different rates."""
    return SEEDS.map(lambda rng: random_noisy(rng, places))


def random_noisy(rng: np.random.Generator, places: int) -> Noisy:
    rates = tuple(Fraction(int(rng.integers(1, 61)), 20) for _ in range(rng.integers(1, 4)))
    cells = np.stack([rng.integers(-50, most, places) for most in (1001, 101)], axis=1)
    return Noisy(cells, rates, rng.integers(0, len(rates), places))


@st.composite
def tree_releases(draw: st.DrawFn) -> Release:
    """Give a release over a tree, with earlier counts of some nodes and perhaps margins."""
    tree, rng = draw(random_trees(BOXES.shape)), draw(SEEDS)
    earlier = {}
    for at in range(draw(st.integers(0, 3))):
        nodes = np.sort(rng.choice(len(tree), rng.integers(1, len(tree) + 1), replace=False))
        earlier[f"round {at}"] = (nodes, random_noisy(rng, len(nodes)))
    draft = drafted(tree, random_noisy(rng, tree.regions), random_margins(rng), earlier)
    return Release(BOXES, draft, manifest_of(BOXES, 2 * tree.regions))


# Answers by hand.

RANGES = st.fixed_dictionaries(
    {}, optional={name: st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted) for name in BOXES.attributes}
)


def leaf_weights(box: Mapping[str, tuple[int, int]]) -> dict[str, np.ndarray]:
    sizes = {name: column.leaves for name, column in BOXES.attributes.items()}
    return {name: np.array([float(lo <= leaf < hi) for leaf in range(sizes[name])]) for name, (lo, hi) in box.items()}


def ranges_by_hand(release: Release) -> list[list[list[int]]]:
    """Give every region's ranges."""
    partition = release.regions
    boxes = partition.boxes(0, partition.regions) if isinstance(partition, Grid) else partition.boxes[partition.ends]
    return boxes.tolist()


def mass_by_hand(release: Release, attribute: int) -> np.ndarray:
    """Give each leaf a piece, and 2^40 pieces to all in proportion to their people; without a margin the piece only."""
    if attribute not in release.model.margins:
        return np.ones(release.schema.shape[attribute])
    people = people_by_hand(release.model.margins[attribute])
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
    assert one.manifest == other.manifest.with_files(one.manifest.files or {})
    assert_same_draft(one.draft, other.draft)


def assert_same_draft(one: Draft, other: Draft) -> None:
    """Fail unless nothing that was found or measured tells two drafts apart."""
    assert (one.model, one.structure.kind) == (other.model, other.structure.kind)
    assert one.structure.plain() == other.structure.plain()
    for mine, theirs in zip(one.measurements, other.measurements, strict=True):
        assert mine.label == theirs.label
        assert mine.question.plain(one.structure) == theirs.question.plain(other.structure)
        assert mine.question.shape == theirs.question.shape
        assert np.array_equal(mine.question.nodes, theirs.question.nodes)
        assert_same_noisy(mine.noisy, theirs.noisy)


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
    on_the_way = {"earlier": (np.array(list(earlier), np.int64), bought)} if earlier else {}
    margins = {0: Margin.flat(np.array([9, 3, -1, -2, 4, 0]), CLEAR)}
    draft = drafted(tree, Noisy.even(np.array(counts, np.int64), rate), margins, on_the_way)
    return Release(BOXES, draft, manifest_of(BOXES, 2 * tree.regions))


def on_the_way(release: Release) -> list[Measurement]:
    """Give what was bought for nodes of a tree before its regions."""
    return [one for one in release.draft.measurements[:-1] if one.question.nodes is not None]
