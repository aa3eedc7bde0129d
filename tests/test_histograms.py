"""Histograms of single attributes: what is asked is as safe as it says, answers follow, and mistakes are caught."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import LONE
from replay import Purse, Recorder, compare, domain_of, run
from sfumato import (
    EFPA,
    METHODS,
    DiffGen,
    DiffMulti,
    Hay,
    NoiseFirst,
    PHPartition,
    Privelet,
    Release,
    Schema,
    StructureFirst,
)
from sfumato.account import seeded_release
from sfumato.audit import PAIRS, events
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError, PrivacyError
from sfumato.geometry.contrasts import Halves, Waves, contrast_of, parts_of
from sfumato.geometry.grid import Grid
from sfumato.geometry.halving import borders, height
from sfumato.methods.histograms import everyone
from sfumato.methods.margins import plan_margin
from sfumato.models.halvings import HalvingSquares
from sfumato.models.margins import Margin, MarginLevel
from sfumato.models.merged import Beside, Counted, Merged, best_bins
from sfumato.models.model import Query
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question, most_paid, variance_of
from sfumato.privacy.meter import Meter
from sfumato.privacy.shapes import Bisections, LastBoundary, Shape, WavesKept
from sfumato.privacy.tally import Cells, Contrasts, Tally

ONE = Schema.loads("confirmed: true\nattributes: {age: {kind: numeric, lower: 0, upper: 12}}")
"""One attribute of 13 leaves."""
LEAVES = ONE.shape[0]
PEOPLE = np.array([30, 31, 29, 30, 80, 81, 79, 2, 1, 2, 0, 0, 55])
SINGLE = {"hay", "privelet", "noisefirst", "structurefirst", "p-hpartition", "efpa"}

counts_of = st.lists(st.integers(0, 9), min_size=2, max_size=20).map(np.array)
contrasts = st.integers(2, 40).flatmap(
    lambda leaves: st.one_of(
        st.integers(0, height(leaves) - 1).map(lambda depth: Halves(leaves, depth)),
        st.integers(1, leaves).map(lambda kept: Waves(leaves, kept)),
    )
)


def tally_of(leaves: int) -> Tally:
    return Tally(Grid.whole((leaves,)), 1, (0,))


def engine_of(counts: np.ndarray) -> MemoryEngine:
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)
    return MemoryEngine([codes], np.zeros(len(codes), np.uint8))


def columns_of(contrast: Halves | Waves) -> np.ndarray:
    """Give the weights of every leaf, by asking what one record adds."""
    leaves = np.eye(contrast.leaves, dtype=np.int64)
    return np.stack([contrast.of(np.add.reduceat(one, contrast.borders[:-1])) for one in leaves])


@given(contrasts)
def test_one_record_moves_contrasts_by_their_reach_at_most_and_some_do(contrast: Halves | Waves) -> None:
    moved = np.abs(columns_of(contrast)).sum(axis=1)
    assert moved.max() == contrast.reach <= 2**17
    assert columns_of(contrast).shape == (contrast.leaves, contrast.rows)
    assert contrast_of(contrast.leaves, contrast.plain()) == contrast


def test_the_halves_of_all_depths_and_everyone_tell_all_leaves() -> None:
    for leaves in range(2, 20):
        rows = [columns_of(Halves(leaves, depth)).T for depth in range(height(leaves))]
        assert np.linalg.matrix_rank(np.concatenate([np.ones((1, leaves)), *rows])) == leaves
        assert sum(len(one) for one in rows) == leaves - 1


@pytest.mark.parametrize(
    "plain", [{"kind": "halves", "depth": 4}, {"kind": "waves", "kept": 0}, {"kind": "halves", "depth": 1.0}]
)
def test_contrasts_that_there_are_not_are_refused(plain: dict) -> None:
    with pytest.raises(ValueError, match="must"):
        contrast_of(13, plain)


def test_a_meter_takes_its_own_contrasts_alone() -> None:
    tally = tally_of(LEAVES)
    for wrong in (Halves(LEAVES + 1, 0), object()):
        with pytest.raises(PrivacyError, match="contrasts must be our own"):
            Contrasts(tally, 0, wrong)
    with pytest.raises(PrivacyError, match="an attribute that the tally counts"):
        Contrasts(Tally(Grid.whole((LEAVES,)), 1), 0, Halves(LEAVES, 0))
    with pytest.raises(PrivacyError, match="of the whole table"):
        Contrasts(Tally(Grid.finest((LEAVES,)), 1, (0,)), 0, Halves(LEAVES, 0))
    with pytest.raises(ValueError, match="parts of one attribute"):
        Question(Grid.finest((LEAVES,)), contrast=Halves(LEAVES, 1))


def test_contrasts_cost_their_reach_times_the_rate_of_their_noise() -> None:
    meter = Meter(engine_of(PEOPLE), purse := Purse(Fraction(1)), Recorder(1), domain_of(ONE))
    waves = Waves(LEAVES, 3)
    found = meter.measure(Contrasts(tally_of(LEAVES), 0, waves), Fraction(1, 2), "waves")
    assert found.noisy.rates == (Fraction(1, 2) / waves.reach,)
    assert purse.debits[0].sensitivity == waves.reach
    assert most_paid(Draft(Grid.whole((LEAVES,)), (found,), "grid")) == Fraction(1, 2)


def shapes_of(leaves: int, ends: tuple[int, int, int]) -> list[Shape]:
    """Make shapes of every kind for an attribute of so many leaves."""
    tally, (low, middle, high) = tally_of(leaves), sorted(ends)
    ranges = tuple((lo, hi) for lo, hi in itertools.pairwise((low, middle, high)) if lo < hi) or ((0, leaves),)
    boundaries = [
        LastBoundary(tally, 0, end, bins, 5) for end, bins in ((leaves, 1), (leaves, leaves // 2)) if bins < end
    ]
    return [
        Bisections(tally, 0, ranges, 100),
        *boundaries,
        LastBoundary(tally, 0, leaves, 1, 1),
        WavesKept(tally, 0, tuple(range(leaves))),
    ]


@settings(max_examples=60)
@given(counts=counts_of, place=st.integers(0, 10**6), ends=st.tuples(*[st.integers(0, 10**6)] * 3))
def test_one_record_moves_no_shape_further_than_it_says(counts: np.ndarray, place: int, ends: tuple) -> None:
    more = counts.copy()
    more[place % len(counts)] += 1
    for shape in shapes_of(len(counts), tuple(end % (len(counts) + 1) for end in ends)):
        one, other = shape.scored(counts), shape.scored(more)
        moved = np.abs(one.scores - other.scores)
        assert moved.max() <= shape.sensitivity / shape.unit
        touched = {np.searchsorted(one.starts, at, side="right") for at in np.flatnonzero(moved)}
        assert len(touched) <= 1


@given(counts_of)
def test_divisions_score_by_what_deviates_from_evenness(counts: np.ndarray) -> None:
    def deviation(some: np.ndarray) -> Fraction:
        mean = Fraction(int(some.sum()), len(some))
        return sum((abs(int(one) - mean) for one in some), Fraction(0))

    found = Bisections(tally_of(len(counts)), 0, ((0, len(counts)),), 256).scored(counts).scores
    expected = [deviation(counts) + 1]
    expected += [deviation(counts[:at]) + deviation(counts[at:]) + 2 for at in range(1, len(counts))]
    assert found / 256 == pytest.approx([-float(one) for one in expected], abs=2 / 256)


@given(counts_of.filter(lambda counts: len(counts) <= 9), st.integers(1, 4))
def test_the_last_bin_begins_where_all_bins_are_best(counts: np.ndarray, bins: int) -> None:
    bins = min(bins, len(counts) - 1)

    def squares(lo: int, hi: int) -> float:
        some = counts[lo:hi]
        return float(((some - some.mean()) ** 2).sum())

    def best(end: int) -> float:
        inner = itertools.combinations(range(1, end), bins - 1)
        return min(sum(itertools.starmap(squares, itertools.pairwise((0, *some, end)))) for some in inner)

    found = LastBoundary(tally_of(len(counts)), 0, len(counts), bins, 9).scored(counts).scores
    expected = [-(best(at) + squares(at, len(counts))) / 19 for at in range(bins, len(counts))]
    assert found / 256 == pytest.approx(expected, abs=(bins + 1) * (1 / 19 + 1 / 256))


def test_waves_are_kept_as_long_as_they_tell_more_than_noise() -> None:
    wave = np.rint(100 + 90 * np.cos(np.pi * 2 * (np.arange(16) + 0.5) / 16)).astype(np.int64)
    found = WavesKept(tally_of(16), 0, tuple(256 * 5 * at for at in range(16))).scored(wave).scores
    assert found.argmax() == 2


def test_shapes_of_other_records_or_without_candidates_are_refused() -> None:
    tally = tally_of(8)
    for make in (
        lambda: Bisections(tally, 0, ((0, 4), (3, 8)), 0),
        lambda: Bisections(tally, 0, (), 0),
        lambda: Bisections(tally, 0, ((0, 9),), 0),
        lambda: Bisections(tally, 0, ((0, 8),), 0.5),
        lambda: Bisections(tally, 0, ((0, 8),), 2**62),
        lambda: LastBoundary(tally, 0, 8, 8, 5),
        lambda: LastBoundary(tally, 0, 8, 2, 0),
        lambda: LastBoundary(tally, 0, 8, 2, 2.5),
        lambda: WavesKept(tally, 0, (1, 2)),
        lambda: WavesKept(tally, 0, (2**63 - 1,) * 8),
        lambda: Bisections(Tally(Grid.whole((8,)), 1), 0, ((0, 8),), 0),
    ):
        with pytest.raises(PrivacyError, match="a shape must"):
            make()
    meter = Meter(engine_of(np.ones(8, np.int64)), Purse(Fraction(1)), Recorder(1), domain_of(ONE))
    with pytest.raises(PrivacyError, match="one of our shapes"):
        meter.select_shape(object(), Fraction(1), "x", "exponential")


@given(st.integers(1, 24), st.integers(0, 2**32), st.booleans())
def test_sums_and_differences_are_reconciled_by_least_squares(leaves: int, seed: int, levels: bool) -> None:
    rng, last = np.random.default_rng(seed), height(leaves)
    nodes = (1 << last) - 1 + leaves
    precision, apart, sums, differences = (
        np.zeros(nodes),
        np.zeros(nodes),
        rng.normal(size=nodes),
        rng.normal(size=nodes),
    )
    rows, weights, seen = [], [], []

    def note(row: np.ndarray, node: int, into: np.ndarray, values: np.ndarray) -> None:
        into[node] = rng.uniform(0.1, 2)
        rows.append(row)
        weights.append(into[node])
        seen.append(values[node])

    for depth in [0, *range(1, last + 1)] if levels else [0]:
        for number, (lo, hi) in enumerate(itertools.pairwise(borders(leaves, depth))):
            note(np.isin(np.arange(leaves), np.arange(lo, hi)) * 1.0, (1 << depth) - 1 + number, precision, sums)
    for depth in range(last):
        halves = Halves(leaves, depth)
        parents = np.searchsorted(borders(leaves, depth), halves.borders[halves.first])
        for row, part in zip(columns_of(halves).T, parents, strict=True):
            note(row, (1 << depth) - 1 + part, apart, differences)
    design, given_weights = np.array(rows, float), np.array(weights)
    covariance = np.linalg.inv(design.T @ (given_weights[:, None] * design))
    passes = HalvingSquares(leaves, precision, apart)
    expected = covariance @ design.T @ (given_weights * np.array(seen))
    assert passes.leaf_values(sums, differences) == pytest.approx(expected, abs=1e-7)
    asked = rng.normal(size=(3, leaves))
    assert passes.covariances(asked) == pytest.approx(covariance @ asked.T, abs=1e-7)


def test_the_paper_s_variance_of_a_leaf_is_that_of_its_wavelets() -> None:
    rate, leaves = Fraction(1, 10), 16
    halves = tuple(MarginLevel(at, np.zeros(2**at, np.int64), rate) for at in range(4))
    found = Margin(leaves, (), halves).estimator(Beside.everyone(leaves, 0.0, variance_of(rate)))
    expected = variance_of(rate) * (4.0**-4 + sum(4.0**-depth for depth in range(1, 5)))
    assert found.variances(np.eye(leaves)) == pytest.approx([expected] * leaves)


def test_a_margin_of_halves_must_have_all_of_them() -> None:
    one = MarginLevel(0, np.zeros(1, np.int64), Fraction(1))
    with pytest.raises(ValueError, match="end with the leaves"):
        Margin(4, (), (one,))
    with pytest.raises(ValueError, match="each part that has two"):
        Margin(2, (), (replace(one, counts=np.zeros(2, np.int64)),))


@given(counts_of.filter(lambda counts: len(counts) <= 9), st.floats(0.1, 50))
def test_bins_are_the_best_of_all(counts: np.ndarray, price: float) -> None:
    def cost(ends: tuple[int, ...]) -> float:
        some = [counts[lo:hi] for lo, hi in itertools.pairwise(ends)]
        return sum(float(((one - one.mean()) ** 2).sum()) + price for one in some)

    size = len(counts)
    every = [(0, *inner, size) for number in range(size) for inner in itertools.combinations(range(1, size), number)]
    assert cost(tuple(best_bins(counts, price).tolist())) == pytest.approx(min(map(cost, every)))


def test_what_is_known_besides_is_one_more_measurement_of_merged_margins() -> None:
    margin = Merged.of_bins(np.array([0, 2, 6]), np.array([10, 20]), np.array([4.0, 4.0]))
    known = Beside.everyone(6, 33.0, 1.0).with_parts(
        np.array([0, 0, 0, 1, 1, 1]), np.array([16.0, 18.0]), np.full(2, 2.0)
    )
    design = np.array([[1, 0], [0, 1], [1, 1], [1, 0.25], [0, 0.75]])
    weights = 1 / np.array([4, 4, 1, 2, 2])
    covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
    expected = covariance @ design.T @ (weights * np.array([10, 20, 33, 16, 18]))
    found = margin.estimator(known)
    assert found.parts == pytest.approx(expected)
    assert found.variances(np.array([[1.0, 1, 0, 0, 0, 0]])) == pytest.approx(covariance[0, 0])
    assert margin.people(known).sum() == pytest.approx(expected.sum())


def test_merging_tells_what_it_does_not_know() -> None:
    bins = Merged.of_bins(np.array([0, 4, 8]), np.array([400, 40]), np.array([1.0, 1.0]))
    whole, cut = np.array([[1.0] * 4 + [0.0] * 4]), np.array([[1.0, 1, 0, 0, 0, 0, 0, 0]])
    found = bins.estimator(Beside.everyone(8))
    assert found.untold(whole) == pytest.approx([0.0])
    assert found.untold(cut) > 50
    counted = Merged.of_counted(Counted(np.arange(9), np.array([50.0, 50, 51, 49, 5, 5, 5, 5]), 1.0))
    assert counted.borders.tolist() == [0, 4, 8]
    assert counted.estimator(Beside.everyone(8)).untold(cut) < 3


def released(method: object, counts: np.ndarray, epsilon: str, seed: int) -> Release:
    ages = np.repeat(np.arange(len(counts)), counts).astype(str).tolist()
    return seeded_release(pa.table({"age": ages}), ONE, method, epsilon, seed)


@pytest.mark.parametrize(
    "method", [Hay(), Hay(branching=4), Hay.as_published(), Privelet(), Privelet.as_published(), NoiseFirst()], ids=repr
)
def test_without_noise_to_speak_of_answers_are_the_counts(method: object) -> None:
    found = released(method, PEOPLE, "900", 1).model.marginal([0], by_class=False)[:, 0]
    assert found == pytest.approx(PEOPLE, abs=0.6)


def test_waves_find_the_counts_again_when_epsilon_is_large() -> None:
    found = released(EFPA(), PEOPLE, "1000", 1).model.marginal([0], by_class=False)[:, 0]
    assert found == pytest.approx(PEOPLE, abs=4)


@pytest.mark.parametrize("method", [StructureFirst(largest=100, bins=5), PHPartition()], ids=["structurefirst", "php"])
def test_bins_end_where_counts_change(method: object) -> None:
    release = released(method, PEOPLE, "500", 2)
    assert {4, 7, 12} <= set(release.draft.measurements[0].question.regions.cuts[0])


@pytest.mark.parametrize(
    "method",
    [
        Hay(),
        Hay.as_published(),
        Privelet.as_published(),
        NoiseFirst(),
        PHPartition(),
        EFPA(),
        StructureFirst(largest=100),
    ],
    ids=lambda one: one.name,
)
def test_intervals_hold_the_truth_as_often_as_they_say(method: object) -> None:
    ranges = [(lo, hi) for lo in range(LEAVES) for hi in range(lo + 1, LEAVES + 1)]
    weights = [np.isin(np.arange(LEAVES), np.arange(*one)) * 1.0 for one in ranges]
    truths = np.array([PEOPLE @ one for one in weights])
    held = []
    for seed in range(30):
        answers = released(method, PEOPLE, "1", seed).model.answer([Query("", {0: one}, np.ones(1)) for one in weights])
        low, high = answers.between(0.95)
        held.append(((low <= truths) & (truths <= high)).mean())
    assert np.mean(held) > 0.9


def test_levels_and_parts_of_epsilon_are_as_published() -> None:
    schedule = Hay.as_published().plan(ONE, Fraction(1))
    assert list(schedule.parts) == ["13 parts of age", "8 parts of age", "4 parts of age", "2 parts of age", "counts"]
    assert set(schedule.parts.values()) == {Fraction(1, 5)}
    wavelets = Privelet.as_published().plan(ONE, Fraction(1))
    assert len(wavelets.parts) == 5
    assert set(wavelets.parts.values()) == {Fraction(1, 5)}
    assert list(Privelet().plan(ONE, Fraction(1)).parts) == ["leaves of age", "counts"]


def test_the_best_branching_follows_from_the_length_alone() -> None:
    assert [len(Hay().shares(leaves)) for leaves in (2, 40, 150, 1000, 10**6)] == [1, 1, 2, 3, 5]
    assert list(Hay(branching=4).shares(1000)) == [10, 8, 6, 4, 2]


def test_very_long_attributes_are_merged_by_parts_of_a_halving() -> None:
    assert len(parts_of(10**6)) == 513
    assert Waves(10**6, 5).borders[-1] == 10**6


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Hay(branching=3), r"branching \(3\) must be a power of 2"),
        (lambda: Hay(branching="many"), r"branching \(many\) must be a whole number"),
        (lambda: StructureFirst(largest=0), r"largest \(0\) must be a whole number"),
        (lambda: Privelet(shortest=1), r"shortest \(1\) must be"),
        (lambda: PHPartition(depth=10), r"depth \(10\) must be"),
        (lambda: DiffGen(margins_by="guess"), r"margins_by \(guess\) must be one of best, flat, levels, wavelets"),
    ],
)
def test_what_makes_no_sense_is_refused(make, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        make()


def test_every_histogram_method_is_registered() -> None:
    assert set(METHODS) >= SINGLE


@pytest.mark.parametrize("by", ["flat", "levels", "wavelets", "best"])
def test_margins_are_measured_as_asked_and_read_again(by: str, tmp_path) -> None:
    ages = np.repeat(np.arange(LEAVES), PEOPLE).astype(str).tolist()
    release = seeded_release(
        pa.table({"age": ages}), ONE, DiffMulti(specializations=1, margins_by=by), "800", 1, tmp_path / "out"
    )
    again = Release.load(tmp_path / "out")
    halves = [one for one in again.draft.measurements if one.question.contrast is not None]
    assert len(halves) == (height(LEAVES) if by == "wavelets" else 0)
    for one in (release, again):
        assert one.model.marginal([0], by_class=False)[:, 0] == pytest.approx(PEOPLE, abs=1)


def test_levels_are_never_worse_than_wavelets_for_long_margins() -> None:
    assert not any(plan_margin(leaves, "best").halves for leaves in (*range(2, 64), 100, 201, 1000, 4096))
    assert plan_margin(2, "wavelets").error < plan_margin(2, "flat").error


class Exact(EFPA):
    """EFPA that keeps a coefficient as it is, as the authors' code keeps phases."""

    def ask(self, meter, tally, one, schedule):
        (found,), steps = super().ask(meter, tally, one, schedule)
        true = found.question.contrast.of(np.asarray(meter._look(tally).by_leaf[0].dense(1)[0].sum(axis=1)))
        counts = found.counts.copy()
        counts[-1, 0] = true[-1]
        return (Measurement(found.label, found.question, Noisy.even(counts, found.noisy.rates[0])),), steps


class FromData(EFPA):
    """EFPA over the values that occur."""

    def ask(self, meter, tally, one, schedule):
        present = int(meter._look(tally).by_leaf[0].keys.max(initial=1)) + 1
        cut = np.unique([0, min(present, one.leaves - 1), one.leaves])
        return (meter.measure(Cells(tally, 0, cut), schedule["waves of age"], "waves of age"),), ()


class Small(Contrasts):
    """Contrasts that say that a record moves them by a tenth of what it does: noise ten times too small."""

    @property
    def reach(self) -> int:
        return max(super().reach // 10, 1)


def test_coefficients_kept_exact_are_caught() -> None:
    with pytest.raises(AssertionError):
        compare_tables(Exact())


def test_a_domain_read_from_the_data_is_caught() -> None:
    with pytest.raises(AssertionError):
        compare_tables(FromData())


def test_the_honest_method_passes() -> None:
    compare_tables(EFPA())


def compare_tables(method: EFPA) -> None:
    for place in (0, 5, 12):
        more = PEOPLE.copy() if place != 12 else np.array([*PEOPLE[:7], *[0] * 6])
        less = more.copy()
        more[place] += 1
        compare(method, ONE, engine_of(less), engine_of(more), epsilon=Fraction(1), seed=place)


def test_noise_that_is_too_small_is_refused_by_the_meter_and_caught_by_the_sum() -> None:
    meter = Meter(engine_of(PEOPLE), Purse(Fraction(1)), Recorder(1), domain_of(ONE))
    small = Small(tally_of(LEAVES), 0, Waves(LEAVES, 4))
    with pytest.raises(PrivacyError, match="our own cells or contrasts"):
        meter.measure(small, Fraction(1), "waves")
    draft, _ = run(EFPA(), ONE, engine_of(PEOPLE), Fraction(1), Recorder(1))
    waves = draft.measurements[0]
    loud = replace(waves, noisy=Noisy.even(waves.counts, waves.noisy.rates[0] * 10))
    assert most_paid(replace(draft, measurements=(loud, *draft.measurements[1:]))) > 1 >= most_paid(draft)


def test_all_rounds_of_a_table_are_one_pass() -> None:
    tally = everyone(ONE)
    assert (tally.places, tally.attributes) == (1, (0,))


def test_an_attack_looks_at_the_contrast_on_which_the_record_weighs_most() -> None:
    pair = next(pair for pair in PAIRS if pair.name == LONE.name)
    schema = events.SCHEMA
    leaves, code = schema.shape[0], pair.record[0]
    halves = Halves(leaves, 0)
    question = Contrasts(Tally(Grid.whole(schema.shape), len(schema.classes), (0,)), 0, halves).question
    sign = 1 if code < halves.borders[1] else -1
    found = events._own_cell(Measurement("halves", question, Noisy.even(np.array([[7 * sign]]), Fraction(1, 3))), pair)
    others = sum(1 if row[0] < halves.borders[1] else -1 for row in pair.rows)
    assert found == (7, sign * others, Fraction(1, 3))
