"""Replicates differ as answers may err, and what is estimated from them is combined into intervals that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from handmade import BOXES, box_releases, release_of, tree_releases
from kinds import EVERY_KIND, SMALL
from sfumato import DiffGen, Release, Schema, seeded_release
from sfumato.errors import ReleaseError
from sfumato.models.intervals import CLASS
from sfumato.models.replicates import Axis, AxisDoubt, Combined, Doubt, student

AXES = [0, 1, 2, CLASS]
MADE = Schema.loads("""
confirmed: true
attributes:
  age: {kind: numeric, lower: 18, upper: 89}
  hours: {kind: numeric, lower: 0, upper: 79}
  sex: {kind: categorical, taxonomy: [Female, Male]}
  income: {kind: class, taxonomy: [low, high]}
""")


def made(seed: int, rows: int = 4000) -> pa.Table:
    """Make a table up whose attributes hang together, each time otherwise."""
    rng = np.random.default_rng([1, seed])
    age = np.clip(np.rint(18 + rng.gamma(3, 10, rows)), 18, 89).astype(int)
    sex = rng.random(rows) < 0.5
    hours = 38 + rng.normal(0, 0.1) * (age - 45) + rng.normal(0, 2) * sex + rng.normal(0, 9, rows)
    high = rng.random(rows) < 1 / (1 + np.exp(-rng.normal(0, 0.4) * sex - rng.normal(0, 0.01) * (age - 45)))
    names = [np.array(words)[one.astype(int)] for words, one in ((("Female", "Male"), sex), (("low", "high"), high))]
    columns = [age, np.clip(np.rint(hours), 0, 79).astype(int), *names]
    return pa.table(dict(zip(MADE.attributes, columns, strict=True)))


def slope(table: pa.Table) -> tuple[float, float]:
    """Estimate by how much hours grow with age, and the variance of that."""
    found = stats.linregress(table["age"].to_numpy(), table["hours"].to_numpy())
    return found.slope, found.stderr**2


def mean_age(table: pa.Table) -> tuple[float, float]:
    age = table["age"].to_numpy()
    return age.mean(), age.var(ddof=1) / len(age)


# Every kind of model has replicates.


@EVERY_KIND
def test_every_kind_has_replicates_that_a_seed_gives_again(kind: str) -> None:
    release = SMALL[kind]()
    drawn = release.sample(50, replicates=3, seed=1)
    assert [one.num_rows for one in drawn] == [50] * 3
    assert all(one.column_names == release.sample(1).column_names for one in drawn)
    again = release.sample(50, replicates=3, seed=1)
    assert all(one.equals(other) for one, other in zip(drawn, again, strict=True))
    assert not drawn[0].equals(drawn[1])


@EVERY_KIND
def test_every_kind_has_as_many_rows_as_a_replicate_has_people(kind: str) -> None:
    release = SMALL[kind]()
    sizes = [one.num_rows for one in release.sample(replicates=20, seed=1)]
    everyone = release.count()
    assert np.mean(sizes) == pytest.approx(everyone.value, abs=1 + 3 * everyone.stddev)
    assert (len(set(sizes)) > 1) == (everyone.stddev > 0.5)


def test_only_named_columns_are_drawn(people: Release) -> None:
    assert people.sample(3, columns=["job", "age"]).column_names == ["job", "age"]
    assert [one.column_names for one in people.sample(3, columns=["age"], replicates=2)] == [["age"]] * 2
    assert people.sample(3, "pandas", columns="age", replicates=2)[0].columns.tolist() == ["age"]
    with pytest.raises(ReleaseError, match=r"columns \(passport\) must be attributes of this release"):
        people.sample(3, columns=["passport"])


@pytest.mark.parametrize("number", [0, 1, -3, 1001, 2.5, "two"])
def test_a_number_of_replicates_that_says_nothing_is_refused(people: Release, number) -> None:
    with pytest.raises(ReleaseError, match=r"replicates \(.*\) must be a whole number from 2 to 1,000"):
        people.sample(5, replicates=number)


def test_a_release_without_class_and_one_of_a_single_leaf_have_replicates() -> None:
    schema = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 5}, b: {kind: categorical, taxonomy: [x]}}")
    release = release_of(schema, ((0, 3, 6), (0, 1)), np.array([300, 100]))
    assert [one.num_rows for one in release.sample(9, replicates=2, seed=1)] == [9, 9]
    nobody = release_of(schema, ((0, 3, 6), (0, 1)), np.array([-3, -1]))
    assert [one.num_rows for one in nobody.sample(9, replicates=2, seed=1)] == [9, 9]


# They differ as answers may err.


def test_margins_are_moved_as_far_as_is_said_and_stay_where_they_were() -> None:
    axis = Axis.of(np.array([400.0, 30.0, 0.0, 170.0, 250.0]))
    errors = np.linspace(5, 20, len(axis.splits))
    rng, doubt = np.random.default_rng(1), AxisDoubt(errors, 0 * errors)
    moved = np.stack([axis.moved(doubt, 850.0, rng) for _ in range(4000)])
    assert (moved >= 0).all()
    assert moved.sum(axis=1) == pytest.approx(850.0)
    assert moved.mean(axis=0) == pytest.approx(axis.people, abs=1.5)
    found = moved @ axis.contrasts().T
    roomy = axis.shares * (1 - axis.shares) > 0.01
    assert roomy.sum() > 1
    assert found.std(axis=0)[roomy] == pytest.approx(errors[roomy], rel=0.15)
    assert axis.moved(AxisDoubt(0 * errors, 0 * errors), 850.0, rng) == pytest.approx(axis.people)


@settings(max_examples=20, deadline=None)
@given(st.one_of(box_releases(), tree_releases()), st.integers(0, 1000))
def test_weights_are_raked_to_the_margins_of_a_replicate(release: Release, seed: int) -> None:
    replicate = Doubt.of(release.model).replicate(AXES, np.random.default_rng(seed))
    shape = (*BOXES.shape, 2)
    codes = dict(zip(AXES, (one.ravel() for one in np.indices(shape)), strict=True))
    weights = replicate.weighed(codes, np.ones(shape).ravel())
    assert (weights >= 0).all()
    for at, shares in replicate.shares.items():
        assert np.bincount(codes[at], weights) == pytest.approx(shares * replicate.size, abs=1e-3 * replicate.size)


def spread_of(release: Release, box: dict[int, np.ndarray], number: int = 300) -> float:
    """How much a count differs between replicates that move the attributes that it is about."""
    doubt, rng = Doubt.of(release.model), np.random.default_rng(1)
    shape = [doubt.leaves(at) for at in box]
    codes = dict(zip(box, (one.ravel() for one in np.indices(shape)), strict=True))
    cells = release.model.marginal([at for at in box if at != CLASS], by_class=CLASS in box).ravel()
    inside = np.prod([box[at][codes[at]] for at in box], axis=0)
    return float(np.std([doubt.replicate([*box], rng).weighed(codes, cells) @ inside for _ in range(number)]))


@pytest.fixture(scope="module")
def published() -> Release:
    return seeded_release(made(1), MADE, DiffGen(), "1", 1)


@pytest.mark.parametrize("leaves", [10, 22, 30, 45])
def test_margins_differ_between_replicates_as_their_errors_say(published: Release, leaves: int) -> None:
    inside = (np.arange(72) <= leaves).astype(float)
    told = published.count({"age": inside}).stddev
    assert 0.75 < spread_of(published, {0: inside}) / told < 1.5, "more where a border of what was measured is hit"


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (0, CLASS), (1, 2), (1, CLASS), (2, CLASS)])
def test_pairs_differ_between_replicates_as_their_errors_say(published: Release, pair: tuple[int, int]) -> None:
    doubt = Doubt.of(published.model)
    names = [*MADE.predictors, MADE.target]
    box = {at: doubt.directions[at].asked[0] for at in pair}
    asked = {names[at]: one for at, one in box.items()}
    assert 0.6 < spread_of(published, box) / published.count(asked).stddev < 1.4


def test_exact_counts_do_not_differ() -> None:
    release = SMALL["exact tree"]()
    doubt = Doubt.of(release.model)
    assert doubt.size_error == 0
    assert {one.num_rows for one in release.sample(replicates=5, seed=1)} == {release.total}


# What was estimated from replicates is combined.


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.floats(0, 1e6))
def test_combining_follows_rubin(estimates: list[float], within: float) -> None:
    number = len(estimates)
    found = Combined.of(estimates, [within] * number)
    between = (1 + 1 / number) * np.var(estimates, ddof=1)
    assert found.estimate == pytest.approx(np.mean(estimates), abs=1e-6)
    assert found.variance == pytest.approx(within + between)
    if between > 1e-12:
        assert found.degrees == pytest.approx((number - 1) * (1 + within / between) ** 2, rel=1e-6)
    half = stats.t.ppf(0.975, min(found.degrees, 1e9)) * found.stddev
    assert found.interval == pytest.approx((found.estimate - half, found.estimate + half), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("degrees", [1, 1.7, 4, 9, 99, 5000, 1e7, np.inf])
def test_quantiles_of_student_are_those_of_others(level: float, degrees: float) -> None:
    assert student(level, degrees) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=1e-3)


def test_estimates_that_agree_are_certain_of_the_table(people: Release) -> None:
    assert people.combine([3.0, 3.0]).interval == (3.0, 3.0)
    assert str(people.combine([3.0, 3.0])) == "3.00 ± 0.00 (95 %)"
    assert people.combine([3.0, 3.0], [1.0, 1.0]).interval == pytest.approx((3 - 1.96, 3 + 1.96), abs=1e-3)
    assert str(people.combine([30_000.0, 31_000.0, 29_500.0])) == "30,167 ± 3,795 (95 %)"


@pytest.mark.parametrize(
    ("estimates", "variances", "sentence"),
    [
        ([1.0], None, r"estimates \(1\) must be at least two"),
        ([], None, r"estimates \(0\) must be at least two"),
        ([1.0, np.nan], None, "estimates must be finite numbers"),
        ([[1.0], [2.0]], None, "estimates must be finite numbers"),
        (["one", "two"], None, "estimates must be finite numbers"),
        ([1.0, 2.0], [1.0], r"variances \(1\) must be as many as estimates \(2\)"),
        ([1.0, 2.0], [1.0, -1.0], "none negative"),
        ([1.0, 2.0], [1.0, None], "variances must be finite numbers"),
    ],
)
def test_what_cannot_be_combined_is_refused(people: Release, estimates, variances, sentence: str) -> None:
    with pytest.raises(ReleaseError, match=sentence):
        people.combine(estimates, variances)


# Intervals hold the truth.


def held(estimate, releases: int, *, moved: bool = True) -> float:
    """Tell how often the interval from ten replicates holds what the table says; without moving them, or so."""
    inside = 0
    for seed in range(releases):
        table = made(seed)
        release = seeded_release(table, MADE, DiffGen(), "1", seed)
        if not moved:
            doubt = Doubt.of(release.model)
            still = {at: AxisDoubt(0 * one.errors, 0 * one.errors) for at, one in doubt.margins.items()}
            pairs = {pair: 0 * errors for pair, errors in doubt.pairs.items()}
            vars(release)["_doubt"] = replace(doubt, size_error=0.0, margins=still, pairs=pairs)
        drawn = release.sample(replicates=10, seed=seed, columns=["age", "hours"])
        low, high = release.combine([estimate(one)[0] for one in drawn]).interval
        inside += low <= estimate(table)[0] <= high
    return inside / releases


@pytest.mark.slow
@pytest.mark.parametrize("estimate", [mean_age, slope])
def test_intervals_from_replicates_hold_the_truth(estimate) -> None:
    assert held(estimate, 25) >= 0.88


def test_intervals_from_samples_that_do_not_differ_hold_it_seldom() -> None:
    assert held(slope, 8, moved=False) < 0.7
