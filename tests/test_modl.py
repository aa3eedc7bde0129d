"""Data grids found: the best of all where all can be tried, planted ones, Adult's, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import grids
from grids import ADULT_KINDS, CATEGORICAL, MIXED, MIXED_KINDS, NUMERIC, SQUARE, table_of
from sfumato.errors import MethodError
from sfumato.modl import Coordinates, DataGrid, Kind, fit
from sfumato.modl.search import best_intervals, cheapest_cut, cheapest_grid

PAIR = [CATEGORICAL, CATEGORICAL]


def test_worked_examples() -> None:
    grid = fit(SQUARE, PAIR, variant="khiops11")
    assert grid.level == pytest.approx(0.2285423723, abs=1e-10)
    mixed = fit(MIXED, MIXED_KINDS)
    assert mixed.parts == (((0, 1), (2,)), ((0, 1), (2, 3)), ((0,), (1,)))
    assert (mixed.shape, mixed.cells) == ((2, 2, 2), 8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CATEGORICAL, NUMERIC])
@pytest.mark.parametrize("shape", [(4, 4), (5, 4)])
@pytest.mark.parametrize("seed", range(5))
def test_no_grid_is_cheaper(shape: tuple[int, int], kind: Kind, seed: int) -> None:
    rng = np.random.default_rng([seed, *shape])
    histogram = 1 + rng.poisson(rng.gamma(0.6, size=shape) * rng.choice([2, 5, 10]))
    table = table_of(histogram, [kind, CATEGORICAL])
    assert fit(histogram, [kind, CATEGORICAL]).cost == pytest.approx(min(map(table.cost, grids.all_grids(table))))


@pytest.mark.parametrize("seed", range(10))
def test_no_cut_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    running = np.concatenate([np.zeros((1, 3)), rng.gamma(0.5, size=(6, 3)).cumsum(axis=0)])
    inside = running[None, 1:] - running[:-1, None]
    costs = np.where(np.tri(6, k=-1) > 0, np.inf, (inside**2).sum(axis=2))
    shapes = np.cumsum(rng.random(6))
    ways = [[*borders, 6] for number in range(6) for borders in itertools.combinations(range(1, 6), number)]

    def cost(ends: list[int]) -> float:
        pieces = zip([0, *ends[:-1]], ends, strict=True)
        return float(sum(costs[start, end - 1] for start, end in pieces) + shapes[len(ends) - 1])

    assert cost(cheapest_cut(costs, shapes).tolist()) == pytest.approx(min(map(cost, ways)))


@pytest.mark.parametrize("seed", range(5))
def test_intervals_are_the_best_of_all(seed: int) -> None:
    histogram, labels = grids.planted((7, 6), (3, 2), 150, [NUMERIC, CATEGORICAL], seed)
    table = table_of(histogram + 1, [NUMERIC, CATEGORICAL])
    given = (np.zeros(7, np.int64), labels[1])
    rivals = [table.cost((cut, labels[1])) for cut in grids.cuts(7)]
    assert table.cost(best_intervals(table, given, 0)) == pytest.approx(min(rivals))


def test_borders_are_found_among_too_many_values_to_try_all() -> None:
    density = np.where(np.arange(3000) < 2345, 0.9, 0.1)
    counts = np.random.default_rng(0).binomial(40, np.stack([density, 1 - density], axis=1))
    grid = fit(counts, [NUMERIC, CATEGORICAL], restarts=0)
    assert grid.parts[0][0][-1] == 2344
    assert grid.shape == (2, 2)


@pytest.mark.parametrize(
    ("shape", "parts", "total", "kinds"),
    [
        ((40, 30, 12), (4, 3, 3), 20_000, (CATEGORICAL, CATEGORICAL, NUMERIC)),
        ((100, 100), (8, 8), 1_000_000, (CATEGORICAL, CATEGORICAL)),
        pytest.param((50, 40, 30, 10), (5, 4, 3, 3), 200_000, (CATEGORICAL,) * 4, marks=pytest.mark.slow),
        pytest.param((300, 300), (8, 6), 200_000, (CATEGORICAL, CATEGORICAL), marks=pytest.mark.slow),
    ],
)
def test_planted_grids_are_found(
    shape: tuple[int, ...], parts: tuple[int, ...], total: int, kinds: tuple[Kind, ...]
) -> None:
    histogram, labels = grids.planted(shape, parts, total, kinds)
    grid = fit(histogram, kinds, restarts=0)
    table = table_of(histogram, kinds)
    truth = tuple(part[seen] for part, seen in zip(labels, table.seen, strict=True))
    assert grid.shape == parts
    assert grid.cost <= table.cost(truth) + 1e-6


def test_random_starts_find_a_planted_grid_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.modl.search.WORK", 0)
    histogram, labels = grids.planted((60, 40), (4, 3), 50_000, PAIR)
    table = table_of(histogram, PAIR)
    assert table.cost(cheapest_grid(table, 3, np.random.default_rng(0))) <= table.cost(labels) + 1e-6


@pytest.fixture(scope="module")
def adult() -> DataGrid:
    histogram = grids.adult()
    assert (histogram.shape, histogram.sum()) == ((74, 8, 16, 6, 2), 46_043)
    return fit(histogram, ADULT_KINDS, variant="khiops11", restarts=0)


def test_adult(adult: DataGrid) -> None:
    assert adult.shape == (7, 2, 5, 6, 2)
    assert adult.cost == pytest.approx(660148.6221, abs=1e-4)


def test_the_hierarchy_of_adult(adult: DataGrid) -> None:
    left = {step.shape: round(100 * step.information, 1) for step in adult.steps}
    assert len(adult.steps) == 17
    assert [left[shape] for shape in [(6, 2, 3, 4, 2), (4, 2, 2, 4, 2), (3, 1, 1, 4, 2), (2, 1, 1, 2, 2)]] == [
        95.8,
        90.8,
        77.4,
        54.8,
    ]
    assert adult.information == 1
    assert adult.steps[-1].information == pytest.approx(0, abs=1e-9)
    assert adult.steps[-1].cost == pytest.approx(adult.null_cost)


def test_cuts_of_the_hierarchy(adult: DataGrid) -> None:
    assert adult.cut(cells=adult.cells) is adult
    assert adult.cut(cells=100).shape == (3, 2, 2, 4, 2)
    assert adult.cut(parts=12).shape == (3, 2, 1, 4, 2)
    half = adult.cut(information=0.9)
    assert half.shape == (4, 2, 2, 4, 2)
    assert half.information == pytest.approx(0.908, abs=1e-3)
    assert half.cut(cells=1).shape == (1, 1, 1, 1, 1)
    assert adult.cut(information=0.9).cost == pytest.approx(
        table_of(grids.adult(), ADULT_KINDS, "khiops11").cost(half.labels)
    )
    with pytest.raises(MethodError, match="one of cells, parts and information"):
        adult.cut(cells=3, parts=4)
    with pytest.raises(MethodError, match=r"parts \(4\) must be at least 5"):
        adult.cut(parts=4)


def test_independent_variables_stay_whole() -> None:
    grid = fit(np.outer(np.arange(1, 9), np.arange(2, 9)), [NUMERIC, CATEGORICAL])
    assert (grid.shape, grid.level, grid.steps) == ((1, 1), 0, ())


def test_one_value_each() -> None:
    grid = fit([[7]], PAIR)
    assert (grid.parts, grid.cost) == ((((0,),), ((0,),)), grid.null_cost)


def test_both_forms_of_a_histogram_give_the_same_grid() -> None:
    codes = np.argwhere(MIXED > 0)
    twice, halves = np.concatenate([codes, codes]), np.tile(MIXED[MIXED > 0] / 2, 2)
    sparse = fit(Coordinates(twice, halves, MIXED.shape), MIXED_KINDS)
    assert sparse.cost == fit(MIXED, MIXED_KINDS).cost


def test_values_that_were_not_seen_have_a_part() -> None:
    histogram = np.zeros((9, 4), np.int64)
    histogram[np.ix_([1, 2, 6], [0, 3])] = [[40, 1], [42, 0], [1, 50]]
    grid = fit(histogram, [NUMERIC, CATEGORICAL])
    assert grid.parts == (((0, 1, 2, 3, 4), (5, 6, 7, 8)), ((0, 1, 2), (3,)))


def test_the_same_seed_gives_the_same_grid() -> None:
    histogram, _ = grids.planted((20, 20), (4, 4), 400, PAIR)
    one, other = fit(histogram, PAIR, seed=3), fit(histogram, PAIR, seed=np.random.default_rng(3))
    assert one.parts == other.parts


def test_real_weights() -> None:
    histogram, _ = grids.planted((12, 10), (3, 2), 3000, PAIR)
    units, reals = fit(histogram, PAIR, dispersion=2.5), fit(histogram / 2.5, PAIR)
    assert units.parts == reals.parts
    assert units.cost == pytest.approx(reals.cost)


HUGE = Coordinates(np.arange(1100)[:, None].repeat(3, axis=1), np.ones(1100), (1100,) * 3)


@pytest.mark.parametrize(
    ("histogram", "kinds", "problem"),
    [
        ([1, 2, 3], [CATEGORICAL], "number of variables"),
        (SQUARE, [CATEGORICAL], "kinds"),
        (SQUARE, [CATEGORICAL, "nominal"], "kinds"),
        ([[1, -1], [2, 3]], PAIR, "not negative"),
        ([[1, np.nan], [2, 3]], PAIR, "finite"),
        ([[0, 0], [0, 0]], PAIR, "some weight"),
        (Coordinates([[0, 2]], [1], (2, 2)), PAIR, "inside the shape"),
        (HUGE, [CATEGORICAL] * 3, "number of cells"),
    ],
)
def test_what_cannot_be_co_clustered(histogram: object, kinds: list[Kind], problem: str) -> None:
    with pytest.raises(MethodError, match=problem):
        fit(histogram, kinds)


@pytest.mark.parametrize(
    ("option", "value"), [("dispersion", 0.0), ("dispersion", np.inf), ("variant", "khiops10"), ("restarts", -1)]
)
def test_options_out_of_bounds(option: str, value: object) -> None:
    with pytest.raises(MethodError, match=option):
        fit(SQUARE, PAIR, **{option: value})
