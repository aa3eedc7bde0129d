"""Thousands of counts at once: each the same as if it were asked alone, by hand, of the dense covariance."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handmade import (
    BOXES,
    RANGES,
    box_releases,
    drafted,
    handmade_tree,
    leaf_weights,
    manifest_of,
    release_of,
    release_over,
    tree_releases,
    weight_by_hand,
)
from sfumato import Release, Schema
from sfumato.errors import QueryError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models import grid as grid_answers
from sfumato.models import regions as region_answers
from sfumato.models.consistency import Consistent
from sfumato.models.intervals import Z95
from sfumato.privacy.measurements import Noisy
from sfumato.release import questions as queries

HANDMADE = release_over(handmade_tree(), [[4, 1], [5, 2], [9, 3]], {2: [1, 9]})
PAPER = "tree with the paper's weights"
BATCHES = st.lists(RANGES, min_size=1, max_size=12)


@pytest.fixture(params=["at once", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as is usual, or with few conditions at a time."""
    if request.param == "in pieces":
        monkeypatch.setattr(region_answers, "MOST_AT_ONCE", 6)
        monkeypatch.setattr(grid_answers, "MOST_AT_ONCE", 4)
        monkeypatch.setattr(queries, "MOST_IN_BLOCK", 5)


def covariance_by_hand(release: Release) -> np.ndarray:
    """Give the covariance of the regions' estimates, one coefficient of a measurement after the other."""
    if isinstance(release.regions, Grid):
        return np.diag(release.model.counts.variances)
    tree, nodes = release.regions, release.model.nodes
    precision = np.zeros(len(tree))
    for bought in release.draft.measurements:
        if bought.question.nodes is not None:
            precision[bought.question.nodes] += 1 / bought.noisy.variances
    reconcile = Consistent.of if release.draft.model == "tree" else Consistent.as_published
    one_by_one = reconcile(tree.parents, np.eye(len(tree)), precision).values[tree.ends]
    seen = precision > 0
    assert nodes.passes.precision[seen] == pytest.approx(precision[seen])
    return one_by_one[:, seen] @ np.diag(1 / precision[seen]) @ one_by_one[:, seen].T


def assert_as_by_hand(release: Release, boxes: list[dict]) -> None:
    answers = release.count_many([leaf_weights(box) for box in boxes])
    covariance, values = covariance_by_hand(release), release.model.values
    for number, box in enumerate(boxes):
        weights = weight_by_hand(release, box)
        variance = sum(one @ covariance @ one for one in weights.T)
        assert answers.values[number] == pytest.approx((weights * values).sum(), abs=1e-5)
        assert answers.noise[number] == pytest.approx(math.sqrt(max(variance, 0)), rel=1e-6, abs=1e-5)
        alone = release.count(leaf_weights(box))
        assert alone.value == pytest.approx(answers[number].value, abs=1e-7)
        assert alone.stddev == pytest.approx(answers[number].stddev, abs=1e-6)
        assert alone.untold == pytest.approx(answers[number].untold, abs=1e-6)


@pytest.mark.usefixtures("pieces")
@settings(max_examples=60)
@given(box_releases(), BATCHES)
def test_counts_of_a_grid_are_those_by_hand(release: Release, boxes: list[dict]) -> None:
    assert_as_by_hand(release, boxes)


@pytest.mark.usefixtures("pieces")
@settings(max_examples=100)
@given(tree_releases(), BATCHES, st.sampled_from(["tree", PAPER]))
@example(release_over(Tree.whole(BOXES.shape), [[40, 10]]), [{}, {"a": (0, 2)}, {"a": (3, 3)}], PAPER)
@example(HANDMADE, [{"a": (1, 4), "b": (1, 3)}], PAPER)
def test_counts_of_a_tree_are_those_by_hand(release: Release, boxes: list[dict], model: str) -> None:
    assert_as_by_hand(replace(release, draft=replace(release.draft, model=model)), boxes)


@settings(max_examples=30)
@given(tree_releases(), BATCHES)
def test_nothing_is_untold_where_regions_are_covered_wholly_or_not_at_all(release: Release, boxes: list[dict]) -> None:
    answers = release.count_many([leaf_weights(box) for box in boxes])
    for answer, box in zip(answers, boxes, strict=True):
        weights = weight_by_hand(release, {name: limits for name, limits in box.items() if name != "class"})[:, 0]
        if not release.model.margins:  # without margins only regions that are wholly covered weigh 1
            whole = np.isclose(weights, 1, rtol=0, atol=1e-12) | (weights == 0)
            assert (answer.untold == 0) or not whole.all()
            assert (answer.model == 0) == (answer.untold == 0)


def test_weights_need_not_be_shares() -> None:
    """Twice the people of one range, minus those of another."""
    release = release_over(handmade_tree(), [[40, 10], [5, -2], [9, 30]], {2: [20, 25], 0: [60, 44]})
    weights = {"b": np.array([2.0, 2.0, -1.0, -1.0])}
    values, covariance = release.model.values, covariance_by_hand(release)
    by_hand = np.array([0.5, 2, -1])
    assert release.count(weights).value == pytest.approx((by_hand @ values).sum())
    assert release.count(weights).noise == pytest.approx(math.sqrt(2 * by_hand @ covariance @ by_hand))


def test_memory_is_bounded_by_what_is_left_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long table whose first attribute is short, few conditions fit: of 6 x 4 x 3 parts by 4 columns 48 numbers
    are left for each when the first is summed out.
    """
    release = release_of(BOXES, tuple(tuple(range(leaves + 1)) for leaves in BOXES.shape))
    conditions = [leaf_weights({"a": (0, 2), "b": (1, 3), "c": (0, 2)}), leaf_weights({"b": (0, 1)}), {}] * 12
    expected = release.count_many(conditions)
    sizes = list[int]()
    ask = grid_answers.GridModel._ask

    def counted(self: object, sums: object, overlaps: dict, asking: np.ndarray, *rest: object) -> None:
        sizes.append(len(asking))
        ask(self, sums, overlaps, asking, *rest)

    monkeypatch.setattr(grid_answers.GridModel, "_ask", counted)
    monkeypatch.setattr(grid_answers, "MOST_AT_ONCE", 96)
    answers = release.count_many(conditions)
    assert sorted(sizes) == [2] * 6 + [12, 12]
    assert answers.values == pytest.approx(expected.values)
    assert answers.stddevs == pytest.approx(expected.stddevs)


# The table, and what is refused.


@pytest.fixture
def people() -> Release:
    return release_of()


def test_answers_are_a_table(people: Release) -> None:
    conditions = ["age < 30", "", "age between 30 and 40 and income = high", {"income": np.array([1.0, 0.0])}]
    answers = people.count_many(conditions)
    table = answers.table
    assert table.column_names == ["condition", "value", "low", "high", "stddev", "noise", "model"]
    assert table["condition"].to_pylist() == [*conditions[:3], "weights of income"]
    assert len(answers) == table.num_rows == 4
    for row, condition, answer in zip(table.to_pylist(), conditions, answers, strict=True):
        assert (row["low"], row["high"]) == pytest.approx(answer.interval)
        assert people.count(condition).value == pytest.approx(row["value"])
        assert people.count(condition).stddev == pytest.approx(row["stddev"])
        assert row["stddev"] ** 2 == pytest.approx(row["noise"] ** 2 + row["model"] ** 2)
    assert answers.table["high"][0].as_py() - answers.values[0] == pytest.approx(Z95 * answers.stddevs[0])


def test_no_conditions_have_no_answers(people: Release) -> None:
    assert len(people.count_many([])) == people.count_many([]).table.num_rows == 0


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("salary > 3", "attribute salary is not in this release"),
        ("job = Juggler", "a value of its taxonomy"),
        ("age <", "at character 6"),
        ("age < 3 or 4", "attribute 4 is not in this release"),
        ("passport = x", "was dropped as an identifier"),
        ({"age": np.ones(3)}, "one for each leaf"),
        ({"passport": np.ones(3)}, "weights of passport must be of an attribute of this release"),
        ({"age": np.ones(74)}, "weights of age (74 numbers) must be 75 finite numbers, one for each leaf"),
        ({"age": np.ones((75, 1))}, "weights of age must be 75 finite numbers"),
        ({"age": np.full(75, np.nan)}, "must be 75 finite numbers"),
        ({"age": [*[0.0] * 74, np.inf]}, "must be 75 finite numbers"),
        ({"age": np.ones(75) * 1j}, "must be 75 finite numbers"),
        ({"age": ["one"] * 75}, "must be 75 finite numbers"),
        ({"age": [[1], [2, 3]]}, "must be 75 finite numbers"),
        ({"age": None}, "must be 75 finite numbers"),
        ({"income": [1]}, "weights of income (1 numbers) must be 2 finite numbers"),
        ({3: np.ones(75)}, "weights of 3 must be of an attribute"),
        (7, "a condition (7) must be text, or weights"),
        (None, "a condition (None) must be text, or weights"),
        ([np.ones(75)], "must be text, or weights"),
    ],
)
def test_a_mistake_is_told_with_its_place(people: Release, condition: object, told: str) -> None:
    with pytest.raises(QueryError, match=r"conditions\[16\]: ") as caught:
        people.count_many([*["age < 30"] * 16, condition, "age <"])
    assert told in caught.value.problem
    with pytest.raises(QueryError) as alone:
        people.count(condition)
    assert caught.value.problem == f"conditions[16]: {alone.value.problem}"


@pytest.mark.parametrize("release", [release_of(), HANDMADE], ids=["grid", "tree"])
def test_a_range_outside_the_domain_has_nobody(release: Release) -> None:
    name = "age" if "age" in release.schema.attributes else "a"
    answers = release.count_many([f"{name} > 1000", f"{name} between -9 and -3", f"{name} > 3 and {name} < 2"])
    assert answers.values.tolist() == answers.stddevs.tolist() == answers.untold.tolist() == [0, 0, 0]


@pytest.mark.parametrize("lone", ["a < 3", {"a": np.ones(6)}, {}])
def test_a_single_condition_is_no_list(lone: object) -> None:
    with pytest.raises(QueryError, match="conditions must be a list of them"):
        HANDMADE.count_many(lone)


def test_weights_may_be_lists_of_any_real_numbers() -> None:
    one = HANDMADE.count({"a": np.array([1.0, 1, 1, 0, 0, 0])})
    assert HANDMADE.count({"a": [1, 1, 1, 0, 0, 0]}) == one
    assert HANDMADE.count({"a": np.arange(6) < 3}) == one


def test_answers_are_sliced_into_answers() -> None:
    answers = HANDMADE.count_many(["a < 3", "b = x", "", "c = 1"])
    some = answers[1:3]
    assert some.conditions == ("b = x", "")
    assert list(some) == [answers[1], answers[2]]
    assert some.table.equals(answers.table.slice(1, 2))
    assert answers[np.int64(-1)] == answers[3]
    assert len(answers[9:]) == 0
    for wrong in ("a < 3", [1, 2], 1.0):
        with pytest.raises(TypeError):
            answers[wrong]


# Size.

WIDE = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 99}
  b: {kind: numeric, lower: 0, upper: 99}
  c: {kind: numeric, lower: 0, upper: 9}
  class: {kind: class, taxonomy: [no, yes]}
""")


def wide_tree(leaves: int) -> Tree:
    """Halve the widest range of every leaf, round after round."""
    tree = Tree.whole(WIDE.shape)
    while tree.regions < leaves:
        boxes = tree.boxes_of(tree.ends)
        along = (boxes[:, :, 1] - boxes[:, :, 0]).argmax(axis=1)
        lo, hi = boxes[np.arange(len(boxes)), along].T
        borders = np.stack([lo, (lo + hi) // 2, hi], axis=1).ravel()
        tree = tree.refine(tree.ends, along, borders, np.arange(len(along) + 1) * 3)
    return tree


@pytest.mark.parametrize("kind", ["grid", "tree"])
def test_tens_of_thousands_of_conditions(kind: str) -> None:
    partition = (
        wide_tree(256) if kind == "tree" else Grid((tuple(range(0, 101, 10)), tuple(range(0, 101, 20)), (0, 5, 10)))
    )
    rng = np.random.default_rng(0)
    counts = Noisy.even(rng.integers(-3, 90, (partition.regions, 2)), Fraction(1, 2))
    release = Release(WIDE, drafted(partition, counts), manifest_of(WIDE, counts.counts.size))
    above, near = ([(np.arange(100) >= lo) & (np.arange(100) < lo + width) for lo in range(90)] for width in (100, 10))
    starts = rng.integers(0, 90, (40_000, 2)).tolist()
    conditions = [{"a": above[one].astype(float), "b": near[other].astype(float)} for one, other in starts]
    answers = release.count_many(conditions)
    assert len(answers) == 40_000
    for number in range(0, 40_000, 3_999):
        alone = release.count(conditions[number])
        assert (alone.value, alone.stddev) == pytest.approx((answers.values[number], answers.stddevs[number]))
