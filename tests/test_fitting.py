"""One distribution for all that was measured: it agrees with the margins, is no worse than any part, and ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import METHODS, Rehearsal, Schema
from sfumato.models import model_of
from sfumato.models.fitting import CLOSE, MOST_SWEEPS, Size, interactions_of, shrunk
from sfumato.models.margins import people_of
from sfumato.models.regions import FittedModel

SCHEMA = Schema.parse(
    {
        "confirmed": True,
        "attributes": {
            "age": {"kind": "numeric", "lower": 0, "upper": 39},
            "town": {"kind": "categorical", "taxonomy": {"North": ["a", "b", "c"], "South": ["d", "e"]}},
            "work": {"kind": "categorical", "taxonomy": ["x", "y", "z"]},
            "ill": {"kind": "class", "taxonomy": ["no", "yes"]},
        },
    }
)
FITTED = pytest.mark.parametrize("name", ["diffgen", "cdiffgen", "diffmulti", "dpcocgen"])


def people(rows: int = 4000) -> tuple[list[np.ndarray], np.ndarray]:
    """Make up people whose attributes hang together."""
    draw = np.random.default_rng(7)
    town = draw.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    age = np.clip(draw.normal(8 + 6 * town, 5), 0, 39).astype(int)
    work = np.where(draw.random(rows) < 0.8, town % 3, draw.integers(0, 3, rows))
    ill = (draw.random(rows) < 0.1 + 0.6 * (age > 20)).astype(int)
    return [one.astype(np.uint8) for one in (age, town, work)], ill.astype(np.uint8)


def models(name: str, epsilon: str, releases: int) -> Iterator[FittedModel]:
    columns, classes = people()
    for seed in range(releases):
        draft, _ = Rehearsal(METHODS[name](), SCHEMA, Fraction(epsilon), seed).run(columns, classes)
        model = model_of(SCHEMA, draft)
        assert isinstance(model, FittedModel)
        yield model


# The whole of it.


@FITTED
@pytest.mark.parametrize("epsilon", ["0.05", "1"])
def test_one_way_answers_are_the_margins_and_the_total_the_size(name: str, epsilon: str) -> None:
    (model,) = models(name, epsilon, 1)
    assert model.fitted is not None
    margins = model.fitted.margins
    assert model.fitted.sweeps < MOST_SWEEPS
    for at in range(3):
        told = model.marginal([at], by_class=False)[..., 0]
        assert np.abs(told - margins.people[at]).sum() < 1e-3 * margins.size.value
    assert model.values.sum() == pytest.approx(margins.size.value, rel=10 * CLOSE)
    assert (model.values >= 0).all()


@FITTED
def test_a_one_way_count_is_at_least_as_precise_as_the_margin_alone(name: str) -> None:
    """Over many releases; a twentieth more is allowed for chance."""
    columns, _ = people()
    truths = [np.bincount(codes, minlength=leaves) for codes, leaves in zip(columns, SCHEMA.shape, strict=True)]
    fitted, alone = np.zeros(3), np.zeros(3)
    for model in models(name, "0.3", 25):
        for at, truth in enumerate(truths):
            running = np.cumsum(model.marginal([at], by_class=False)[..., 0] - truth)
            fitted[at] += (running**2).mean()
            alone[at] += (np.cumsum(people_of(model.margins[at]) - truth) ** 2).mean()
    assert (np.sqrt(fitted) <= 1.05 * np.sqrt(alone)).all()


@pytest.mark.parametrize("name", ["diffgen", "cdiffgen", "diffmulti"])
def test_groups_are_counted_at_least_as_precisely_as_by_their_own_counts(name: str) -> None:
    columns, classes = people()
    fitted = own = 0.0
    for model in models(name, "0.3", 15):
        regions = model.structure.regions_of(columns).astype(np.int64)
        truth = np.bincount(regions * 2 + classes, minlength=2 * model.structure.regions).reshape(-1, 2)
        fitted += float(((model.values - truth) ** 2).mean())
        own += float(((model.measured - truth) ** 2).mean())
    assert fitted <= own


@FITTED
def test_intervals_hold_the_truth_about_as_often_as_they_say(name: str) -> None:
    """Every question on one or two values of different attributes, at two levels; too narrow ones are noticed."""
    columns, classes = people()
    codes, leaves = [*columns, classes], [*SCHEMA.shape, 2]
    names = [*SCHEMA.predictors, "ill"]
    held, inner, narrow, asked = 0, 0, 0, 0
    for model in models(name, "0.5", 8):
        for one, other in itertools.combinations(range(4), 2):
            truth = np.zeros((leaves[one], leaves[other]))
            np.add.at(truth, (codes[one], codes[other]), 1)
            queries = [_query(names, {one: a, other: b}) for a, b in np.ndindex(truth.shape)]
            answers = model.answer(queries)
            for level in (0.95, 0.5):
                low, high = answers.between(level)
                count = int(((low <= truth.ravel()) & (truth.ravel() <= high)).sum())
                held, inner = held + count * (level == 0.95), inner + count * (level == 0.5)
            narrow += int((np.abs(answers.values - truth.ravel()) <= 0.15 * answers.stddevs).sum())
            asked += truth.size
    assert 0.9 <= held / asked <= 0.998
    assert 0.33 <= inner / asked <= 0.9
    assert narrow / asked < 0.6


def _query(names: list[str], chosen: dict[int, int]):
    from sfumato.release.questions import read_question

    sizes = [*SCHEMA.shape, 2]
    return read_question(SCHEMA, {names[at]: np.eye(sizes[at])[leaf] for at, leaf in chosen.items()}).inside[0]


# Its parts.


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=30), st.floats(0.1, 100))
def test_departures_are_shrunk_and_never_turned(found: list[float], noise: float) -> None:
    departures = np.array(found)
    moved, left = shrunk(departures, np.full(len(found), noise), np.ones(len(found)))
    assert (moved * departures >= 0).all()
    assert (np.abs(moved) <= np.abs(departures) + 1e-9).all()
    assert (left >= 0).all()
    assert (left <= noise + departures**2 + 1e-9).all()


def test_what_is_noise_alone_is_levelled_and_what_is_more_is_kept() -> None:
    draw = np.random.default_rng(3)
    noise = np.full(400, 9.0)
    levelled, _ = shrunk(draw.normal(0, 3, 400), noise, np.ones(400))
    assert np.abs(levelled).mean() < 0.6
    real = draw.normal(0, 60, 400)
    kept, left = shrunk(real + draw.normal(0, 3, 400), noise, np.ones(400))
    assert np.abs(kept - real).mean() < 3
    assert left.mean() == pytest.approx(9, rel=0.1)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.lists(st.integers(2, 4), min_size=1, max_size=4))
def test_without_noise_a_grids_counts_come_back(seed: int, shape: list[int]) -> None:
    draw = np.random.default_rng(seed)
    counts = draw.integers(1, 200, shape).astype(np.float64)
    axes = range(counts.ndim)
    shares = [counts.sum(axis=tuple(one for one in axes if one != at)) / counts.sum() for at in axes]
    found = interactions_of(counts, np.full(shape, 1e-9), shares, counts.sum())
    assert found.masses == pytest.approx(counts, rel=0.02, abs=0.5)


def test_totals_are_averaged_by_precision() -> None:
    size = Size.of([(90.0, 1.0), (100.0, 4.0)])
    assert (size.value, size.variance) == (92.0, 0.8)
    assert Size.of([(-40.0, 1.0)]).value == 1.0
