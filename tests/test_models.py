"""What every model is held to, whatever its kind: it answers from what was measured, and its faces agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import BOXES, release_of, reloaded
from kinds import BY_METHOD, EVERY_KIND, RANDOM, SMALL
from sfumato import DPCocGen, Release, Schema, seeded_release
from sfumato.errors import ReleaseError
from sfumato.models import MODELS, model_of, model_type
from sfumato.models.model import Answers, Description, Query

NAMES = [*BOXES.predictors]
CLASSES = len(BOXES.classes)
OF_REGIONS = [kind for kind in MODELS if hasattr(SMALL[kind]().model, "values")]
"""Kinds whose people are counted in regions; the others tell them by a distribution."""
FEW = settings(max_examples=15, deadline=None)
SEEDS = st.integers(0, 2**32)


def over(kind: str, law: Callable[[Release, np.random.Generator], None]) -> None:
    """Try a law on random releases of a kind."""

    @FEW
    @given(RANDOM[kind], SEEDS)
    def holds(release: Release, seed: int) -> None:
        law(release, np.random.default_rng(seed))

    holds()


def some_attributes(rng: np.random.Generator) -> list[int]:
    return sorted(rng.choice(len(NAMES), int(rng.integers(0, len(NAMES) + 1)), replace=False).tolist())


def some_query(rng: np.random.Generator, attributes: list[int]) -> Query:
    """Weigh the leaves of some attributes, many of them by 0 or 1, and the classes."""
    sizes = {at: BOXES.shape[at] for at in attributes}
    weights = {at: rng.choice([0.0, 1.0, 1.0, 0.5, -2.0], size) for at, size in sizes.items()}
    return Query("random", weights, rng.choice([0.0, 1.0, 1.0, 3.0], CLASSES))


def near(release: Release) -> float:
    """How far sums in floating point may be apart."""
    return 1e-7 * max(float(np.abs(release.model.marginal([0, 1], by_class=True)).sum()), 1.0)


def test_every_model_has_a_case() -> None:
    assert set(SMALL) == set(RANDOM) == set(MODELS)
    for kind, make in SMALL.items():
        assert type(make().model) is model_type(kind)


@EVERY_KIND
def test_an_answer_is_the_sum_of_marginal_cells_under_its_weights(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        attributes = some_attributes(rng)
        query = some_query(rng, attributes)
        cells = release.model.marginal(attributes, by_class=True)
        assert cells.shape == (*(BOXES.shape[at] for at in attributes), CLASSES)
        weights = reduce(np.multiply.outer, [*(query.weights[at] for at in attributes), query.classes])
        answer = release.model.answer([query])[0]
        assert answer.value == pytest.approx((cells * weights).sum(), abs=near(release))
        assert answer.stddev >= 0
        assert answer.interval[0] <= answer.value <= answer.interval[1]

    over(kind, law)


@EVERY_KIND
def test_marginals_sum_to_those_of_fewer_attributes(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        attributes = some_attributes(rng)
        fine = release.model.marginal(attributes, by_class=True)
        by_none = release.model.marginal(attributes, by_class=False)
        assert by_none[..., 0] == pytest.approx(fine.sum(axis=-1), abs=near(release))
        everyone = release.model.marginal([], by_class=False)
        assert everyone.shape == (1,)
        assert fine.sum() == pytest.approx(everyone[0], abs=near(release))

    over(kind, law)


@EVERY_KIND
def test_the_total_is_what_everyone_is_and_what_people_add_up_to(kind: str) -> None:
    def law(release: Release, _: np.random.Generator) -> None:
        model = release.model
        assert type(model.total) is int
        assert abs(release.count().value - model.total) <= 0.5 + near(release)
        people = model.generalized("projection").people
        assert (people >= 0).all()
        assert round(int(people.sum()) / release.draft.structure.sampling) == max(model.total, 0)
        assert (model.generalized("clamp").people >= 0).all()

    over(kind, law)


@EVERY_KIND
def test_people_that_are_drawn_are_as_many_as_asked_for_and_have_leaves(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        for size in (0, 1, int(rng.integers(2, 40))):
            for how in ("projection", "clamp"):
                leaves, classes = release.model.draw(size, rng, how)
                assert len(leaves) == len(NAMES)
                for codes, bound in zip((*leaves, classes), (*BOXES.shape, CLASSES), strict=True):
                    assert codes.shape == (size,)
                    assert ((codes >= 0) & (codes < bound)).all()
        with pytest.raises(ReleaseError, match="nonnegative"):
            release.model.draw(1, rng, "wish")

    over(kind, law)


@EVERY_KIND
def test_rows_are_classified_by_a_code_or_refused_where_groups_overlap(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        rows = [rng.integers(0, leaves, 30).astype(np.uint8) for leaves in BOXES.shape]
        if release.disjoint or release.model.regions is None:
            found = release.model.classify(rows)
            assert found.shape == (30,)
            assert ((found >= 0) & (found < CLASSES)).all()
        else:
            with pytest.raises(ReleaseError, match="groups of this release overlap"):
                release.model.classify(rows)

    over(kind, law)


def assert_well_formed(told: Description) -> None:
    assert told.title
    assert told.words.endswith((".", ". "))
    assert list(told.told_apart) == sorted({*told.told_apart})
    assert all(0 <= at < len(NAMES) for at in told.told_apart)
    for ribbon in told.ribbons:
        assert ribbon.attribute in NAMES
        assert len(ribbon.parts) in (0, ribbon.number)
        assert sum(share for _, share in ribbon.parts) == pytest.approx(1) or not any(dict(ribbon.parts).values())
        assert all(name and 0 <= share <= 1 + 1e-9 for name, share in ribbon.parts)
    for listing in told.listings:
        assert listing.title
        assert all(len(row) == len(listing.header) for row in listing.rows)
        assert all(isinstance(cell, str) for row in listing.rows for cell in row)
        assert set(listing.numbers) <= set(range(len(listing.header)))
    for branch in told.branches:
        assert 0 <= branch.begin <= branch.end <= 1 + 1e-9
        assert (branch.attribute in NAMES) is (branch.level > 0)
        assert branch.split_by in (*NAMES, "")
    assert told.caption


@EVERY_KIND
def test_a_model_describes_itself(kind: str) -> None:
    def law(release: Release, _: np.random.Generator) -> None:
        told = release.describe()
        assert_well_formed(told)
        assert {*release.draft.structure.split_attributes} <= {*told.told_apart}
        assert told.branches or told.ribbons or told.listings or not told.told_apart

    over(kind, law)


@EVERY_KIND
def test_a_question_of_its_own_assumes_nothing(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        own = release.model.own_query(rng)
        if own is None:
            assert not release.disjoint or not release.draft.structure.split_attributes
            return
        weights = {at: np.isin(np.arange(BOXES.shape[at]), leaves).astype(float) for at, leaves in own.items()}
        assert own
        assert all(one.any() for one in weights.values())
        answer = release.model.answer([Query("own", weights, np.ones(CLASSES))])[0]
        assert answer.untold == answer.model == 0

    over(kind, law)


@pytest.mark.parametrize("kind", ["network"])
def test_without_regions_an_explanation_sums_to_the_bins_that_are_covered_wholly(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        attributes, sides = some_attributes(rng), release.model.generalized("projection").sides
        chosen = {at: rng.choice([0.0, 1.0, 1.0], BOXES.shape[at]) for at in attributes}
        whole = {}
        for at, weights in chosen.items():
            parts = [sides[at].order[lo:hi] for lo, hi in sides[at].ranges]
            held = [part for part in parts if (weights[part] == 1).all()]
            whole[at] = np.isin(np.arange(len(weights)), np.concatenate([[], *held])).astype(float)
        named, estimates = release.model.explain(Query("random", chosen, np.array([1.0, 2.0])))
        assert list(named) == [NAMES[at] for at in attributes]
        assert all(len(names) == len(estimates) and all(names) for names in named.values())
        answer = release.model.answer([Query("whole", whole, np.array([1.0, 2.0]))])[0]
        assert estimates.sum() == pytest.approx(answer.value, abs=near(release))

    over(kind, law)


@pytest.mark.parametrize("kind", OF_REGIONS)
def test_an_explanation_sums_to_the_regions_that_are_covered_wholly(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        attributes = some_attributes(rng)
        chosen = {at: rng.choice([0.0, 1.0, 1.0], BOXES.shape[at]) for at in attributes}
        query = Query("random", chosen, np.array([1.0, 2.0]))
        whole = np.ones(release.regions.regions, bool)
        for at, weights in chosen.items():
            side = release.sides[at]
            covered = [bool((weights[side.order[lo:hi]] == 1).all()) for lo, hi in side.ranges]
            whole &= np.array(covered)[side.number(np.arange(len(whole)))]
        named, estimates = release.model.explain(query)
        assert list(named) == [NAMES[at] for at in release.draft.structure.split_attributes]
        assert all(len(names) == len(estimates) and all(names) for names in named.values())
        assert estimates.sum() == pytest.approx((release.model.values[whole] @ query.classes).sum(), abs=near(release))

    over(kind, law)


def same(one: Answers, other: Answers) -> bool:
    arrays = ("values", "noise", "untold", "most")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


@EVERY_KIND
def test_made_again_from_its_files_a_model_answers_the_same(kind: str, tmp_path: Path) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        loaded = reloaded(release, tmp_path / "release")
        queries = [some_query(rng, some_attributes(rng)) for _ in range(5)]
        assert same(loaded.model.answer(queries), release.model.answer(queries))
        assert loaded.model.cause == release.model.cause
        assert np.array_equal(*(one.model.marginal([0, 2], by_class=True) for one in (loaded, release)))
        assert np.array_equal(*(one.model.generalized("projection").people for one in (loaded, release)))
        drawn = [one.model.draw(20, np.random.default_rng(1), "projection") for one in (loaded, release)]
        assert all(map(np.array_equal, (*drawn[0][0], drawn[0][1]), (*drawn[1][0], drawn[1][1])))
        assert loaded.describe() == release.describe()

    over(kind, law)


@EVERY_KIND
def test_answers_do_not_depend_on_what_is_asked_with_them(kind: str) -> None:
    def law(release: Release, rng: np.random.Generator) -> None:
        queries = [some_query(rng, some_attributes(rng)) for _ in range(6)]
        together = release.model.answer(queries)
        alone = Answers.joined([release.model.answer([query]) for query in queries])
        assert together.values == pytest.approx(alone.values, abs=near(release))
        close = 1e-3 if kind in BY_METHOD else 1e-6  # networks of families are summed in another order
        assert together.stddevs == pytest.approx(alone.stddevs, rel=close, abs=1e-6)
        assert together.untold == pytest.approx(alone.untold, rel=close, abs=1e-6)
        assert all(release.model.bytes_for(query) >= 0 for query in queries)

    over(kind, law)


@EVERY_KIND
def test_a_model_is_made_from_what_was_measured_alone(kind: str) -> None:
    release = SMALL[kind]()
    again, every = model_of(release.schema, release.draft), range(len(NAMES))
    assert np.array_equal(again.marginal(every, by_class=True), release.model.marginal(every, by_class=True))
    if kind in OF_REGIONS:
        assert release.model.groups == (
            release.model.counts.counts.any(axis=1).sum() if release.is_exact else release.regions.regions
        )


def test_a_model_that_there_is_not_is_refused() -> None:
    with pytest.raises(ReleaseError, match="must be one of grid, coclusters, tree"):
        model_type("wish")


def test_a_grid_of_more_attributes_than_arrays_have_axes_answers() -> None:
    names = [f"a{number}" for number in range(70)]
    schema = Schema.parse({"attributes": {name: {"kind": "categorical", "taxonomy": ["x", "y"]} for name in names}})
    cuts = tuple((0, 1, 2) if at in (3, 69) else (0, 2) for at in range(70))
    release = release_of(schema, cuts, np.array([5, 1, 2, 8]))
    assert release.model.marginal([3, 69], by_class=False)[..., 0].tolist() == [[5, 1], [2, 8]]
    assert release.model.marginal([0, 69], by_class=False)[..., 0].tolist() == [[3.5, 4.5], [3.5, 4.5]]
    assert [ribbon.attribute for ribbon in release.describe().ribbons] == ["a3", "a69"]
    assert [share for _, share in release.describe().ribbons[0].parts] == [6 / 16, 10 / 16]


def test_a_histogram_of_a_single_attribute_is_no_margin_of_co_clusters() -> None:
    schema = Schema.parse(
        {
            "confirmed": True,
            "attributes": {
                "a": {"kind": "numeric", "lower": 0, "upper": 9},
                "b": {"kind": "categorical", "taxonomy": ["x"]},
            },
        }
    )
    table = pd.DataFrame({"a": np.arange(500) % 10, "b": "x"})
    release = seeded_release(table, schema, DPCocGen(), "1", 1)
    assert release.draft.measurements[0].label == "histogram"
    assert release.model.margins[0].levels[-1].counts.size == 10
    assert abs(release.count().value - 500) < 60
    assert len(release.sample(7, seed=1)) == 7
