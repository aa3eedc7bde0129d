"""Releases over trees: everything that was bought informs every answer."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sfumato.geometry.regions import Boxes
from sfumato.models.estimates import class_shares
from sfumato.models.questions import estimates_of

from handmade import (
    BOXES,
    RANGES,
    handmade_tree,
    leaf_weights,
    noisy,
    ranges_by_hand,
    release_over,
    tree_releases,
    weight_by_hand,
)
from sfumato import Release
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models.regions import regions_of, sides_of
from sfumato.privacy.measurements import NodeCounts, Noisy
from trees import random_trees


@pytest.fixture
def release() -> Release:
    return release_over(handmade_tree(), [[40, 10], [5, -2], [9, 30]], {2: [20, 25], 0: [60, 44], 3: [3, 1]})


# Estimates.


def dense(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """Give the weighted least-squares estimates of the regions and their covariance, by matrices."""
    tree = release.regions
    ancestors = np.zeros((len(tree), tree.regions))
    for region, leaf in enumerate(tree.ends.tolist()):
        while leaf >= 0:
            ancestors[leaf, region] = 1
            leaf = int(tree.parents[leaf])
    bought = [NodeCounts(tree.ends, release.model.counts), *release.earlier]
    design = np.concatenate([ancestors[one.nodes] for one in bought])
    measured = np.concatenate([one.noisy.counts for one in bought])
    precision = 1 / np.concatenate([one.noisy.variances for one in bought])
    covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
    return covariance @ design.T @ (precision[:, None] * measured), covariance


@given(tree_releases())
def test_estimates_are_the_least_squares_of_everything_bought(release: Release) -> None:
    values, covariance = dense(release)
    assert release.model.values == pytest.approx(values, abs=1e-6)
    assert release.model.variances == pytest.approx(np.diag(covariance), rel=1e-6)


@given(st.data())
def test_regions_measured_once_keep_their_counts(data: st.DataObject) -> None:
    tree = data.draw(random_trees(BOXES.shape))
    counts = data.draw(noisy(tree.regions))
    estimates = estimates_of(tree, counts)
    assert np.array_equal(estimates.values, counts.counts)
    assert estimates.variances == pytest.approx(counts.variances)
    grid = Grid(((0, *range(1, tree.regions + 1)),))
    assert np.array_equal(estimates_of(grid, counts).values, counts.counts)
    assert estimates_of(grid, counts).variances == pytest.approx(counts.variances)


def test_two_measurements_of_a_leaf_are_averaged_by_precision() -> None:
    fine, coarse = Noisy.even(np.array([[100, 0]]), Fraction(1)), Noisy.even(np.array([[200, 0]]), Fraction(1, 10))
    estimates = estimates_of(Tree.whole(BOXES.shape), fine, earlier=[NodeCounts(np.array([0]), coarse)])
    small, large = fine.variances[0], coarse.variances[0]
    assert estimates.values[0, 0] == pytest.approx((100 * large + 200 * small) / (small + large))
    assert estimates.variances[0] == pytest.approx(1 / (1 / small + 1 / large))


def test_noise_too_small_to_see_leaves_counts_as_they_are() -> None:
    release = release_over(handmade_tree(), [[40, 10], [5, 2], [9, 30]], {2: [14, 32]}, rate=Fraction(10**6))
    assert release.model.values.tolist() == [[40, 10], [5, 2], [9, 30]]
    assert release.count().stddev == pytest.approx(0)


@pytest.mark.parametrize("nodes", [[0, 0], [7]])
def test_earlier_counts_must_be_of_different_nodes(nodes: list[int]) -> None:
    bought = NodeCounts(np.array(nodes), Noisy.even(np.ones((len(nodes), 2), np.int64), Fraction(1)))
    with pytest.raises((ValueError, IndexError)):
        estimates_of(handmade_tree(), Noisy.even(np.ones((3, 2), np.int64), Fraction(1)), earlier=[bought])


@given(tree_releases())
def test_the_papers_weights_are_offered_by_name(release: Release) -> None:
    published = replace(release, consistency="paper")
    values = published.model.nodes.values
    children = np.zeros_like(values)
    np.add.at(children, release.regions.parents[1:], values[1:])
    inner = np.setdiff1d(np.arange(len(values)), release.regions.ends)
    assert children[inner] == pytest.approx(values[inner], abs=1e-6)
    assert (release.model.variances <= published.model.variances * (1 + 1e-9) + 1e-12).all()
    assert published.model.people("projection").sum() == max(published.total, 0)


def test_the_papers_weights_do_not_look_at_noise(release: Release) -> None:
    """The root counts 3/5 of 60 and 44, and 2/5 of what its children have, the inner one of which has 2/3 and 1/3."""
    counts = Noisy.even(np.array([[40, 10], [5, -2], [9, 30]]), Fraction(1, 2))
    bought = NodeCounts(np.array([2, 0]), Noisy.even(np.array([[20, 25], [60, 44]]), Fraction(3)))
    found = estimates_of(release.regions, counts, earlier=[bought], consistency="paper").nodes.values[0]
    below = np.array([40 + 2 / 3 * 20 + 1 / 3 * 14, 10 + 2 / 3 * 25 + 1 / 3 * 28])
    assert found == pytest.approx(3 / 5 * np.array([60, 44]) + 2 / 5 * below)


def test_a_grid_has_no_earlier_counts() -> None:
    counts = Noisy.even(np.ones((1, 2), np.int64), Fraction(1))
    with pytest.raises(ValueError, match="tree"):
        estimates_of(Grid.whole(BOXES.shape), counts, earlier=[NodeCounts(np.array([0]), counts)])


def test_what_does_not_fit_the_regions_is_refused(release: Release) -> None:
    histogram = Noisy.even(np.ones((72, 2), np.int64), Fraction(1))
    with pytest.raises(ValueError, match="a histogram must be that of a grid"):
        _ = replace(release, histogram=histogram).total
    with pytest.raises(ValueError, match="exact counts must be those of a tree or of boxes"):
        estimates_of(Grid.whole(BOXES.shape), Noisy.exact(np.ones((1, 2), np.int64)))
    boxes = Boxes(BOXES.shape, np.array([[[0, 6], [0, 4], [0, 3]]]))
    with pytest.raises(ValueError, match="noisy ones of a tree or a grid"):
        estimates_of(boxes, Noisy.even(np.ones((1, 2), np.int64), Fraction(1)))
    earlier = [NodeCounts(np.array([0]), Noisy.even(np.ones((1, 2), np.int64), Fraction(1)))]
    with pytest.raises(ValueError, match="exact counts must stand alone"):
        estimates_of(handmade_tree(), Noisy.exact(np.ones((3, 2), np.int64)), earlier=earlier)


# Regions.


@given(random_trees(BOXES.shape))
def test_sides_give_the_ranges_of_every_region(tree: Tree) -> None:
    regions = np.arange(tree.regions)
    for attribute in range(3):
        side = sides_of(tree, attribute)
        assert side.of(regions).tolist() == tree.boxes[tree.ends, attribute].tolist()
        assert len(np.unique(side.ranges, axis=0)) == len(side.ranges)


@given(random_trees(BOXES.shape))
def test_every_row_has_the_region_whose_box_holds_it(tree: Tree) -> None:
    rows = np.array(list(itertools.product(*map(range, BOXES.shape))), np.uint8)
    boxes = tree.boxes[tree.ends]
    inside = ((rows[:, None] >= boxes[..., 0]) & (rows[:, None] < boxes[..., 1])).all(axis=2)
    assert np.array_equal(regions_of(tree, list(rows.T)), inside.argmax(axis=1))


# Counting.


@given(tree_releases(), RANGES)
def test_a_count_is_the_sum_over_regions_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    weights = weight_by_hand(release, box)
    values, covariance = dense(release)
    variance = sum(one @ covariance @ one for one in weights.T)
    assert answer.value == pytest.approx((weights * values).sum(), abs=1e-5)
    assert answer.stddev == pytest.approx(math.sqrt(variance), rel=1e-6, abs=1e-6)


@given(tree_releases(), RANGES)
def test_nothing_is_assumed_only_where_regions_lie_inside_or_outside(release: Release, box: dict) -> None:
    names, classes = list(BOXES.predictors), slice(*box.get("class", (0, 2)))
    whole, outside = [], []
    for ranges in ranges_by_hand(release):
        limits = [box.get(name, (lo, hi)) for name, (lo, hi) in zip(names, ranges, strict=True)]
        pairs = list(zip(ranges, limits, strict=True))
        whole.append(all(left <= lo and hi <= right for (lo, hi), (left, right) in pairs))
        outside.append(any(max(lo, left) >= min(hi, right) for (lo, hi), (left, right) in pairs))
    answer = release.count(leaf_weights(box))
    resolved = release.model.values[whole, classes].sum()
    assert answer.aligned == all(np.array(whole) | np.array(outside))
    assert answer.assumed == pytest.approx(0 if answer.aligned else answer.value - resolved, abs=1e-6)
    if answer.aligned:
        assert answer.value == pytest.approx(resolved, abs=1e-6)


@given(tree_releases())
def test_everyone_is_the_estimated_total(release: Release) -> None:
    assert release.count().value == pytest.approx(release.model.values.sum(), abs=1e-6)
    assert abs(release.total - release.count().value) <= 0.5 + 1e-6


def test_what_was_bought_on_the_way_narrows_the_answer(release: Release) -> None:
    alone = Release(BOXES, release.regions, release.model.counts, release.model.margins, release.manifest)
    assert release.count("a >= 2").stddev < alone.count("a >= 2").stddev
    assert alone.count("a >= 2").value == 42


# Records and samples.


@given(tree_releases())
def test_records_hold_the_estimated_total(release: Release) -> None:
    assert sum(release.records()["count"].to_pylist()) == max(release.total, 0)


@given(tree_releases())
def test_clamping_rounds_and_cuts_at_zero(release: Release) -> None:
    people = release.model.people("clamp")
    assert np.array_equal(people, np.maximum(np.rint(release.model.values), 0))
    with pytest.raises(ReleaseError, match="nonnegative"):
        release.records(how="wish")


def test_records_name_the_regions(release: Release) -> None:
    rows = release.records().to_pylist()
    assert {(row["a"], row["b"], row["c"]) for row in rows} == {
        ("[0, 2)", "Any", "[0, 3)"),
        ("[2, 6)", "p", "[0, 3)"),
        ("[2, 6)", "q", "[0, 3)"),
    }


@settings(deadline=None)
@given(tree_releases())
def test_samples_lie_in_regions_that_have_people(release: Release) -> None:
    drawn = release.sample_codes(200, seed=1)
    regions = regions_of(release.regions, [drawn[name] for name in BOXES.predictors])
    people = release.model.people("projection")
    assert all((drawn[name] < column.leaves).all() for name, column in BOXES.attributes.items())
    assert not people.sum() or (people[regions, drawn["class"]] > 0).all()


def test_samples_follow_counts_and_margins(release: Release) -> None:
    drawn = release.sample_codes(50_000, seed=2)
    people = release.model.people("projection")
    first = drawn["a"] < 2
    share = people[0].sum() / people.sum()
    assert first.mean() == pytest.approx(share, abs=6 * math.sqrt(share * (1 - share) / 50_000))
    inside = (drawn["a"][first] == 0).mean()
    wanted = leaf_weights({"a": (0, 1)})["a"]
    expected = release.count({"a": wanted}).value / release.model.values[0].sum()
    assert inside == pytest.approx(expected, abs=6 * math.sqrt(0.25 / first.sum()))
    assert not np.isin(drawn["a"], [2, 3]).any()


def test_codes_and_values_are_the_same_sample(release: Release) -> None:
    assert release.sample(100, seed=3)["a"].to_pylist() == release.sample_codes(100, seed=3)["a"].tolist()


# Classes.


@given(tree_releases())
def test_a_row_gets_the_class_of_the_largest_share_in_its_region(release: Release) -> None:
    tree = release.regions
    rows = np.array(list(itertools.product(*map(range, BOXES.shape))), np.uint8)
    shares = class_shares(release.model.nodes, tree.parents)[tree.locate(list(rows.T), len(rows))]
    found = release.classify_codes(dict(zip(BOXES.predictors, rows.T, strict=True)))
    assert found.tolist() == np.argmax(shares, axis=1).tolist()


def test_a_tie_or_nobody_follows_those_above() -> None:
    release = release_over(handmade_tree(), [[400, 100], [7, 7], [-3, -1]])
    rows = {"a": np.array([0, 3, 3]), "b": np.array([0, 0, 2]), "c": np.zeros(3, int)}
    assert release.classify_codes(rows).tolist() == [0, 0, 0]
    release = release_over(handmade_tree(), [[400, 100], [70, 170], [-3, -1]])
    assert release.classify_codes(rows).tolist() == [0, 1, 1]
