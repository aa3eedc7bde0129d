"""Intervals held against the truth: natural questions, how often it lies inside, and a score that nobody can cheat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counted_rows import GRID, exact_release
from counted_rows import ROWS as COUNTED_ROWS
from handmade import drafted, manifest_of
from sfumato import Answers, DiffGen, Release, Schema, seeded_release
from sfumato.evaluate.coverage import (
    BY_ATTRIBUTES,
    KINDS,
    LEVELS,
    QUESTIONS,
    SIZED,
    Intervals,
    holding,
    interval_scores,
    measured_intervals,
    natural_questions,
)
from sfumato.geometry.tree import Tree
from sfumato.privacy.measurements import Noisy

SCHEMA = Schema.loads("""
attributes:
  id: {kind: identifier}
  age: {kind: numeric, lower: 0, upper: 19, missing: unknown}
  pay: {kind: numeric, lower: 0, upper: 1}
  job: {kind: categorical, taxonomy: {art: [dancer, writer], office: {desk: [clerk, boss], door: [guard]}, none: }}
  only: {kind: categorical, taxonomy: [one]}
  class: {kind: class, taxonomy: [no, yes]}
""")
LEAVES = {"age": 21, "pay": 2, "job": 6, "class": 2}
NODES = {(node.lo, node.hi) for node in SCHEMA.predictors["job"].tree.nodes} - {(0, 6)}
SIZE = 4000


def rows_of(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shares = {name: rng.dirichlet(np.ones(leaves)) for name, leaves in (*LEAVES.items(), ("only", 1))}
    return {name: rng.choice(len(one), SIZE, p=one).astype(np.uint8) for name, one in shares.items()}


ROWS = rows_of(0)

# Natural questions.


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(BY_ATTRIBUTES)))
def test_questions_are_reproducible_and_restrict_what_they_name(seed: int, ways: int) -> None:
    asked = natural_questions(SCHEMA, ROWS, ways, 40, seed)
    assert asked == natural_questions(SCHEMA, ROWS, ways, 40, seed)
    assert len(asked) == 40
    for one in asked:
        assert len(one.ranges) == ways
        assert one.ranges.keys() <= LEAVES.keys()
        for name, (lo, hi) in one.ranges.items():
            assert 0 <= lo < hi <= LEAVES[name]
            assert (lo, hi) != (0, LEAVES[name])
        assert one.ranges.get("job", (0, 1)) in NODES
        lo, hi = one.ranges.get("age", (0, 1))
        assert hi <= 20 or (lo, hi) == (20, 21), "who has no age is asked about alone"


def test_every_kind_of_question_is_asked() -> None:
    asked = [one.ranges for one in natural_questions(SCHEMA, ROWS, 1, 2000, 0)]
    assert {one["job"] for one in asked if "job" in one} == NODES
    assert {one["class"] for one in asked if "class" in one} == {(0, 1), (1, 2)}
    assert (20, 21) in {one["age"] for one in asked if "age" in one}
    assert len({one["age"] for one in asked if "age" in one}) > 100
    assert {name for one in asked for name in one} == LEAVES.keys()


def test_half_of_the_questions_are_about_what_rows_have() -> None:
    alike = {name: np.full(10, leaves // 2, np.uint8) for name, leaves in LEAVES.items()}
    asked = [one.ranges for one in natural_questions(SCHEMA, alike, 1, 4000, 1)]
    ages = [one["age"] for one in asked if "age" in one]
    assert np.mean([one == (10, 11) for one in ages]) == pytest.approx(0.5, abs=0.06)
    holding_clerks = [lo <= 3 < hi for lo, hi in (one["job"] for one in asked if "job" in one)]
    by_any = np.mean([lo <= 3 < hi for lo, hi in NODES])
    assert np.mean(holding_clerks) == pytest.approx(0.5 + by_any / 2, abs=0.06)


def test_there_are_no_questions_on_more_attributes_than_there_are() -> None:
    few = SCHEMA.only(["pay", "only", "class"])
    assert [len(natural_questions(few, ROWS, ways, 5, 0)) for ways in BY_ATTRIBUTES] == [5, 5, 0]
    assert natural_questions(SCHEMA.only(["only"]), ROWS, 1, 5, 0) == []


# The score.


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=60),
    st.floats(-60, 60),
    st.floats(0, 60),
    st.sampled_from([0.5, 0.8, 0.95]),
)
def test_no_interval_scores_better_than_that_between_the_true_quantiles(
    drawn: list[int], low: float, width: float, level: float
) -> None:
    truths = np.array(drawn, np.float64)
    ends = np.quantile(truths, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    best, other = (
        interval_scores(np.full(len(drawn), lo), np.full(len(drawn), hi), truths, level).mean()
        for lo, hi in (ends, (low, low + width))
    )
    assert best <= other + 1e-9


def test_ends_belong_to_an_interval_and_what_is_missed_is_paid_for() -> None:
    low, high, truths = np.array([1.0, 1.0, 1.0, 1.0]), np.full(4, 3.0), np.array([1.0, 3.0, 0.5, 4.0])
    assert holding(low, high, truths).tolist() == [True, True, False, False]
    assert interval_scores(low, high, truths, 0.95) == pytest.approx([2, 2, 2 + 40 * 0.5, 2 + 40 * 1])


# Releases, and what their intervals are found to be worth.


@dataclass(frozen=True, eq=False)
class Noised:
    """Answers the true counts with normal noise, and states another."""

    stated: float
    true: float = 20.0
    schema: Schema = SCHEMA
    total: int = SIZE

    def count_many(self, conditions: Sequence[dict[str, np.ndarray]]) -> Answers:
        """Count, and add noise."""
        truths = np.array([self._count(one) for one in conditions])
        noise = np.random.default_rng(1).normal(0, self.true, len(truths))
        stated, most = np.full(len(truths), self.stated), np.full(len(truths), np.inf)
        return Answers(("",) * len(truths), truths + noise, stated, 0 * stated, most)

    def _count(self, weights: dict[str, np.ndarray]) -> float:
        return float(np.prod([one[ROWS[name]] for name, one in weights.items()], axis=0).sum())


def found_of(release: Release | Noised, rows: dict[str, np.ndarray] = ROWS) -> dict[tuple[str, float], Intervals]:
    return {(one.questions_of, one.level): one for one in measured_intervals(release, rows, SIZE, 3)}


def test_honest_intervals_hold_as_often_as_they_say_and_score_best() -> None:
    honest, narrow, wide = (found_of(Noised(stated)) for stated in (20.0, 4.0, 60.0))
    for kind in BY_ATTRIBUTES.values():
        assert 0.91 < honest[kind, 0.95].coverage < 0.99
        assert 0.42 < honest[kind, 0.5].coverage < 0.62
        assert narrow[kind, 0.95].coverage < 0.5, "what is too narrow must be found to cover too little"
        assert narrow[kind, 0.5].coverage < 0.25
        assert wide[kind, 0.95].coverage > 0.99
        for level in LEVELS:
            assert narrow[kind, level].width < honest[kind, level].width < wide[kind, level].width
            assert honest[kind, level].score < min(narrow[kind, level].score, wide[kind, level].score)
            assert honest[kind, level].score >= honest[kind, level].width
    two = honest["2 attributes", 0.95]
    assert two.questions == QUESTIONS
    assert 1.5 * 20 / SIZE < two.width <= 2 * 1.96 * 20 / SIZE + 1e-9


def test_kinds_by_attributes_and_by_size_each_hold_all_questions() -> None:
    found = found_of(Noised(20.0))
    assert [kind for kind, level in found if level == LEVELS[0]] == list(KINDS)
    for kinds in (BY_ATTRIBUTES.values(), SIZED):
        several = [found[kind, 0.95] for kind in kinds]
        assert sum(one.questions for one in several) == 3 * QUESTIONS
        assert sum(one.questions * one.coverage for one in several) == pytest.approx(
            sum(found[kind, 0.95].questions * found[kind, 0.95].coverage for kind in KINDS) / 2
        )


def narrowed(release: Release, by: float) -> Release:
    """Let a release state errors that are too small."""

    class Narrow(Release):
        def count_many(self, conditions: Sequence, place: Callable[[int], str] = "{}".format) -> Answers:
            answers = super().count_many(conditions, place)
            return replace(answers, noise=answers.noise / by, untold=answers.untold / by)

    return Narrow(release.schema, release.draft, release.manifest)


def test_a_release_that_states_too_little_is_found_out(adult, adult_codes) -> None:
    release = seeded_release(adult.table, adult.schema, DiffGen(), "1", 2)
    columns, classes = adult_codes
    rows = dict(zip(adult.schema.predictors, columns, strict=True)) | {str(adult.schema.target): classes}
    size = len(classes)
    honest, narrow = (
        {(one.questions_of, one.level): one for one in measured_intervals(each, rows, size, 0)}
        for each in (release, narrowed(release, 5))
    )
    for kind in BY_ATTRIBUTES.values():
        assert honest[kind, 0.95].coverage > 0.85
        assert narrow[kind, 0.95].coverage < 0.75
        assert narrow[kind, 0.95].score > honest[kind, 0.95].score


def test_exact_counts_of_leaves_are_held_by_intervals_of_no_width() -> None:
    schema = SCHEMA.only(["age", "class"])
    leaves = Tree.whole(schema.shape).refine([0], [0], [*range(22)], [0, 22])
    counts = np.bincount(ROWS["age"].astype(int) * 2 + ROWS["class"], minlength=42).reshape(-1, 2)
    release = Release(schema, drafted(leaves, Noisy.exact(counts)), manifest_of(schema, 42))
    for one in measured_intervals(release, ROWS, SIZE, 0):
        assert (one.coverage, one.width, one.score) == (1, pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))


def test_a_release_without_anything_to_restrict_has_no_intervals() -> None:
    release = exact_release(GRID, np.zeros(500, np.uint8))
    assert measured_intervals(release, COUNTED_ROWS | {"class": np.zeros(500, np.uint8)}, 500, 0)
    assert measured_intervals(replace(Noised(20.0), schema=SCHEMA.only(["only"])), ROWS, SIZE, 0) == []
