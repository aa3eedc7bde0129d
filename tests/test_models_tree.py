"""Models of trees: everything that was bought informs every answer, and the classes of the ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import (
    BOXES,
    RANGES,
    drafted,
    handmade_tree,
    leaf_weights,
    noisy,
    ranges_by_hand,
    region_measurement,
    release_over,
    tree_releases,
    weight_by_hand,
)
from sfumato import Release
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Boxes, Regions
from sfumato.geometry.tree import Tree
from sfumato.models import model_of
from sfumato.models.consistency import Consistent
from sfumato.models.regions import RegionModel
from sfumato.models.tree import class_shares, fewest_nodes
from sfumato.privacy.measurements import Noisy, Question
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
    bought = [one for one in release.draft.measurements if one.question.nodes is not None]
    design = np.concatenate([ancestors[one.question.nodes] for one in bought])
    measured = np.concatenate([one.noisy.counts for one in bought])
    precision = 1 / np.concatenate([one.noisy.variances for one in bought])
    covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
    return covariance @ design.T @ (precision[:, None] * measured), covariance


@given(tree_releases())
def test_estimates_are_the_least_squares_of_everything_bought(release: Release) -> None:
    values, covariance = dense(release)
    assert release.model.values == pytest.approx(values, abs=1e-6)
    assert release.model.variances == pytest.approx(np.diag(covariance), rel=1e-6)


def modelled(
    regions: Regions, counts: Noisy, earlier: Mapping[str, tuple[np.ndarray, Noisy]] | None = None, *, name: str
) -> RegionModel:
    model = model_of(BOXES, drafted(regions, counts, earlier=earlier, model=name))
    assert isinstance(model, RegionModel)
    return model


@given(st.data())
def test_regions_measured_once_keep_their_counts(data: st.DataObject) -> None:
    tree = data.draw(random_trees(BOXES.shape))
    counts = data.draw(noisy(tree.regions))
    model = modelled(tree, counts, name="tree")
    assert np.array_equal(model.values, counts.counts)
    assert model.variances == pytest.approx(counts.variances)


def test_two_measurements_of_an_end_are_averaged_by_precision() -> None:
    fine, coarse = Noisy.even(np.array([[100, 0]]), Fraction(1)), Noisy.even(np.array([[200, 0]]), Fraction(1, 10))
    model = modelled(Tree.whole(BOXES.shape), fine, {"before": (np.array([0]), coarse)}, name="tree")
    small, large = fine.variances[0], coarse.variances[0]
    assert model.values[0, 0] == pytest.approx((100 * large + 200 * small) / (small + large))
    assert model.variances[0] == pytest.approx(1 / (1 / small + 1 / large))


def test_noise_too_small_to_see_leaves_counts_as_they_are() -> None:
    release = release_over(handmade_tree(), [[40, 10], [5, 2], [9, 30]], {2: [14, 32]}, rate=Fraction(10**6))
    assert release.model.values.tolist() == [[40, 10], [5, 2], [9, 30]]
    assert release.count().stddev == pytest.approx(0)


@pytest.mark.parametrize("nodes", [[0, 0], [7], [-1]])
def test_a_question_is_about_different_nodes_of_its_tree(nodes: list[int]) -> None:
    with pytest.raises(ValueError, match="a question must be about"):
        Question(handmade_tree(), np.array(nodes), 2)
    with pytest.raises(ValueError, match="a question must be about"):
        Question(Grid.whole(BOXES.shape), np.array([0]), 2)


def published_way(release: Release) -> Release:
    return replace(release, draft=replace(release.draft, model="tree with the paper's weights"))


@given(tree_releases())
def test_the_papers_weights_are_offered_by_name(release: Release) -> None:
    published = published_way(release)
    values = published.model.nodes.values
    children = np.zeros_like(values)
    np.add.at(children, release.regions.parents[1:], values[1:])
    inner = np.setdiff1d(np.arange(len(values)), release.regions.ends)
    assert children[inner] == pytest.approx(values[inner], abs=1e-6)
    assert (release.model.variances <= published.model.variances * (1 + 1e-9) + 1e-12).all()
    assert published.model.people("projection").sum() == max(published.total, 0)


def test_the_papers_weights_do_not_look_at_noise() -> None:
    """The root counts 3/5 of 60 and 44, and 2/5 of what its children have, the inner one of which has 2/3 and 1/3."""
    counts = Noisy.even(np.array([[40, 10], [5, -2], [9, 30]]), Fraction(1, 2))
    bought = {"before": (np.array([2, 0]), Noisy.even(np.array([[20, 25], [60, 44]]), Fraction(3)))}
    found = modelled(handmade_tree(), counts, bought, name="tree with the paper's weights").nodes.values[0]
    below = np.array([40 + 2 / 3 * 20 + 1 / 3 * 14, 10 + 2 / 3 * 25 + 1 / 3 * 28])
    assert found == pytest.approx(3 / 5 * np.array([60, 44]) + 2 / 5 * below)


# What is refused.


def even(places: int) -> Noisy:
    return Noisy.even(np.ones((places, 2), np.int64), Fraction(1))


def exact(places: int) -> Noisy:
    return Noisy.exact(np.ones((places, 2), np.int64))


@pytest.mark.parametrize(
    ("regions", "counts", "name"),
    [
        (Grid.whole(BOXES.shape), exact(1), "grid"),
        (Grid.whole(BOXES.shape), exact(1), "coclusters"),
        (handmade_tree(), exact(3), "tree"),
        (handmade_tree(), exact(3), "tree with the paper's weights"),
        (handmade_tree(), even(3), "exact tree"),
        (Boxes(BOXES.shape, np.array([[[0, 6], [0, 4], [0, 3]]])), even(1), "boxes"),
    ],
)
def test_exact_counts_are_read_by_models_of_such_only(regions: Regions, counts: Noisy, name: str) -> None:
    with pytest.raises(ReleaseError, match="must have noise, or none"):
        modelled(regions, counts, name=name)


def test_exact_counts_stand_alone_and_in_order() -> None:
    tree = handmade_tree()
    with pytest.raises(ReleaseError, match="counts of all of its regions"):
        modelled(tree, exact(3), {"before": (np.array([0]), exact(1))}, name="exact tree")
    draft = drafted(tree, exact(3))
    for nodes in (tree.ends[::-1], np.array([0, *tree.ends])):
        backwards = region_measurement(tree, exact(len(nodes)), nodes=nodes)
        with pytest.raises(ReleaseError, match="counts of all of its regions"):
            model_of(BOXES, replace(draft, measurements=(backwards,)))


def test_a_tree_of_which_an_end_was_not_measured_is_refused() -> None:
    tree = handmade_tree()
    some = region_measurement(tree, even(2), nodes=tree.ends[:2])
    with pytest.raises(ReleaseError, match="counts of all of its regions"):
        model_of(BOXES, replace(drafted(tree, even(3)), measurements=(some,)))


def test_what_is_of_no_use_to_a_tree_is_refused(release: Release) -> None:
    """Paid for and left out, it would make answers worse without a word."""
    histogram = region_measurement(Grid.finest(BOXES.shape), even(72), "histogram")
    with pytest.raises(ReleaseError, match=r"what was measured \(histogram\) must be used"):
        model_of(BOXES, replace(release.draft, measurements=(histogram, *release.draft.measurements)))


# Regions.


@given(random_trees(BOXES.shape))
def test_sides_give_the_ranges_of_every_region(tree: Tree) -> None:
    regions = np.arange(tree.regions)
    for attribute in range(3):
        side = tree.sides(attribute)
        assert side.of(regions).tolist() == tree.boxes[tree.ends, attribute].tolist()
        assert len(np.unique(side.ranges, axis=0)) == len(side.ranges)


@given(random_trees(BOXES.shape))
def test_every_row_has_the_region_whose_box_holds_it(tree: Tree) -> None:
    rows = np.array(list(itertools.product(*map(range, BOXES.shape))), np.uint8)
    boxes = tree.boxes[tree.ends]
    inside = ((rows[:, None] >= boxes[..., 0]) & (rows[:, None] < boxes[..., 1])).all(axis=2)
    assert np.array_equal(tree.regions_of(list(rows.T)), inside.argmax(axis=1))


# Counting.


@given(tree_releases(), RANGES)
def test_a_count_is_the_sum_over_regions_of_their_share_inside(release: Release, box: dict) -> None:
    answer = release.count(leaf_weights(box))
    weights = weight_by_hand(release, box)
    values, covariance = dense(release)
    variance = sum(one @ covariance @ one for one in weights.T)
    assert answer.value == pytest.approx((weights * values).sum(), abs=1e-5)
    assert answer.noise == pytest.approx(math.sqrt(variance), rel=1e-6, abs=1e-6)


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
    if all(np.array(whole) | np.array(outside)):
        assert answer.untold == 0
        assert answer.value == pytest.approx(resolved, abs=1e-6)


@given(tree_releases())
def test_everyone_is_the_estimated_total(release: Release) -> None:
    assert release.count().value == pytest.approx(release.model.values.sum(), abs=1e-6)
    assert abs(release.total - release.count().value) <= 0.5 + 1e-6


def test_what_was_bought_on_the_way_narrows_the_answer(release: Release) -> None:
    alone = replace(release, draft=drafted(release.regions, release.model.counts, release.model.margins))
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


@given(tree_releases())
def test_samples_lie_in_regions_that_have_people(release: Release) -> None:
    drawn = release.sample_codes(200, seed=1)
    regions = release.regions.regions_of([drawn[name] for name in BOXES.predictors])
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


CHILDREN = 200
STAR = np.array([-1, *[0] * CHILDREN])


def measured(truth: np.ndarray, variance: float, seed: int) -> Consistent:
    """Add normal noise to the leaves of a star, and much less to the root."""
    nodes = np.concatenate([truth.sum(axis=0, keepdims=True), truth]).astype(np.float64)
    noise = np.random.default_rng(seed).normal(size=nodes.shape) * np.sqrt(variance)
    noise[0] *= 0.01
    return Consistent.of(STAR, nodes + noise, [1e4 / variance, *[1 / variance] * CHILDREN])


def test_without_noise_shares_are_those_of_the_counts() -> None:
    truth = np.random.default_rng(1).integers(1, 50, (CHILDREN, 3))
    shares = class_shares(measured(truth, 1e-12, 2), STAR)
    assert shares[1:] == pytest.approx(truth / truth.sum(axis=1, keepdims=True), abs=1e-6)
    assert shares[0] == pytest.approx(truth.sum(axis=0) / truth.sum())


def test_where_all_groups_have_the_same_shares_noise_does_not_part_them() -> None:
    truth = np.tile([30, 10], (CHILDREN, 1))
    shares = class_shares(measured(truth, 400.0, 3), STAR)
    assert np.abs(shares[1:, 0] - 0.75).mean() < 0.05
    assert (shares[1:, 0] > 0.5).all()


def test_shrunk_shares_are_nearer_to_the_truth_and_large_groups_keep_theirs() -> None:
    rng = np.random.default_rng(4)
    true, people = rng.beta(4, 2, CHILDREN), rng.integers(5, 60, CHILDREN)
    people[0], true[0] = 5000, 0.1
    truth = np.stack([true * people, (1 - true) * people], axis=1)
    tree = measured(truth, 50.0, 5)
    raw = np.clip(tree.values[1:, 0] / np.maximum(tree.values[1:].sum(axis=1), 1), 0, 1)
    shares = class_shares(tree, STAR)[1:, 0]
    assert np.abs(shares - true).mean() < 0.9 * np.abs(raw - true).mean()
    assert shares[0] == pytest.approx(0.1, abs=0.01)


@given(
    st.lists(st.lists(st.integers(-30, 30), min_size=3, max_size=3), min_size=6, max_size=6),
    st.floats(1e-100, 1e6),
)
def test_whatever_was_measured_gives_shares(counts: list[list[int]], variance: float) -> None:
    parents = np.array([-1, 0, 0, 1, 1, 1])
    shares = class_shares(Consistent.of(parents, np.array(counts, np.float64), [1 / variance] * 6), parents)
    assert (shares >= 0).all()
    assert shares.sum(axis=1) == pytest.approx(np.ones(6))


# The fewest nodes.

ABCD = Tree.whole((4,)).refine([0], [0], [0, 2, 4], [0, 3]).refine([1, 2], [0, 0], [0, 1, 2, 2, 3, 4], [0, 3, 6])
NAMES = {0: "ABCD", 1: "AB", 2: "CD", 3: "A", 4: "B", 5: "C", 6: "D"}


@pytest.mark.parametrize(
    ("asked", "cover"),
    [("ABCD", {"ABCD"}), ("BCD", {"B", "CD"}), ("AD", {"A", "D"}), ("BC", {"B", "C"}), ("AB", {"AB"}), ("", set())],
)
def test_example_3_and_figure_3(asked: str, cover: set[str]) -> None:
    flags = np.array([letter in asked for letter in "ABCD"])
    assert {NAMES[node] for node in fewest_nodes(ABCD, flags)} == cover


def regions_below(tree: Tree, node: int) -> set[int]:
    found = set()
    for leaf in tree.ends.tolist():
        at = leaf
        while at not in (node, -1):
            at = int(tree.parents[at])
        if at == node:
            found.add(leaf)
    return found


@settings(max_examples=40)
@given(random_trees((3, 3), most_levels=3), st.data())
def test_a_cover_is_exact_and_no_smaller_one_exists(tree: Tree, data: st.DataObject) -> None:
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=tree.regions, max_size=tree.regions)))
    wanted = set(tree.ends[flags].tolist())
    cover = fewest_nodes(tree, flags).tolist()
    below = {node: regions_below(tree, node) for node in range(len(tree))}
    assert set().union(*(below[node] for node in cover)) == wanted
    assert sum(len(below[node]) for node in cover) == len(wanted)
    usable = [node for node in below if below[node] <= wanted]
    for size in range(min(len(cover), 4)):
        for other in itertools.combinations(usable, size):
            assert set().union(*(below[node] for node in other)) != wanted
