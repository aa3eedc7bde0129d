"""Noisy grids: how coarse one is made, whether its structure can be told from noise, and what is taken for noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import grids
from grids import CATEGORICAL, NUMERIC
from handmade import BOXES
from sfumato.geometry.grid import Grid
from sfumato.methods.dpcocgen import (
    NO_STRUCTURE,
    Parts,
    best_granularity,
    clipped,
    clipped_dispersion,
    corrected,
    describe_groups,
    grid_of,
    structure,
)
from sfumato.modl import DataGrid, fit
from sfumato.privacy.measurements import Noisy
from sfumato.privacy.noise import SeededStream, discrete_laplace
from sfumato.release.manifest import WARNING

# The expected error.


def test_the_error_of_a_tiny_grid_by_hand() -> None:
    parts = Parts(np.array([[100, 2]]), np.array([[4, 1]]))
    large, small = 1 / (1 / 8 + 1 / (4 * 6)), 1 / (1 / 8 + 1 / 6)
    assert parts.noise_error(of_cell=6, of_part=8) == pytest.approx(
        large / (8 * 100) + small / (8 * max(2, math.sqrt(small)))
    )


def test_negative_counts_err_like_empty_ones() -> None:
    one = Parts(np.array([-50]), np.array([1]))
    assert one.noise_error(2, 2) == Parts(np.array([0]), np.array([1])).noise_error(2, 2) == pytest.approx(1 / 8)


def test_parts_are_sums_of_cells() -> None:
    histogram = np.arange(12).reshape(3, 4)
    labels = (np.array([0, 1, 0]), np.array([1, 0, 0, 1]))
    parts = Parts.of(histogram, labels)
    assert parts.counts.tolist() == [[1 + 2 + 9 + 10, 0 + 3 + 8 + 11], [5 + 6, 4 + 7]]
    assert parts.cells.tolist() == [[4, 4], [2, 2]]
    again = parts.merged((np.array([0, 0]), np.array([0, 0])))
    assert (again.counts.item(), again.cells.item()) == (66, 12)


@pytest.fixture(scope="module")
def planted() -> tuple[np.ndarray, DataGrid]:
    histogram, _ = grids.planted((12, 10), (4, 3), 20_000, [CATEGORICAL, NUMERIC])
    return histogram, fit(histogram, [CATEGORICAL, NUMERIC], restarts=0)


def test_without_noise_the_finest_is_best_and_with_much_a_single_cell(planted: tuple[np.ndarray, DataGrid]) -> None:
    histogram, grid = planted
    assert best_granularity(grid, 1.0, histogram, 1e-6, 1e-6) is grid
    assert best_granularity(grid, 1.0, histogram, 1e12, 1e12).cells == 1


def test_more_noise_never_calls_for_a_finer_grid(planted: tuple[np.ndarray, DataGrid]) -> None:
    histogram, grid = planted
    cells = [best_granularity(grid, 1.0, histogram, 10.0**power, 10.0**power).cells for power in range(-6, 13)]
    assert cells == sorted(cells, reverse=True)
    assert len(set(cells)) > 2


def test_a_grid_without_merges_is_kept() -> None:
    histogram = np.outer(np.arange(1, 9), np.arange(2, 9))
    grid = fit(histogram, [NUMERIC, CATEGORICAL], restarts=0)
    assert best_granularity(grid, 1.0, histogram, 4.0, 4.0) is grid


# Structure, or noise.

RATE = Fraction(1, 2)
FOURS = Grid(((0, 1, 2, 3, 4), (0, 1, 2, 3, 4)))


def noise(seed: int, cells: int) -> np.ndarray:
    return discrete_laplace(SeededStream(seed), RATE, cells)


def warned(grid: Grid, table: np.ndarray, rate: Fraction = RATE) -> bool:
    said = structure(grid, Noisy.even(table.reshape(grid.regions, -1).astype(np.int64), rate))
    assert said in ((), (NO_STRUCTURE,))
    return bool(said)


@pytest.mark.parametrize("seed", range(20))
def test_pure_noise_is_warned_of(seed: int) -> None:
    assert warned(FOURS, noise(seed, 16))
    assert warned(FOURS, noise(seed, 32))


@pytest.mark.parametrize("seed", range(20))
def test_independent_attributes_are_warned_of(seed: int) -> None:
    shares = np.outer([0.5, 0.3, 0.15, 0.05], [0.4, 0.3, 0.2, 0.1])
    people = np.random.default_rng(seed).multinomial(20_000, shares.ravel())
    assert warned(FOURS, people + noise(seed, 16))


@pytest.mark.parametrize("seed", range(20))
def test_strong_structure_is_not_warned_of(seed: int) -> None:
    assert not warned(FOURS, 100 * np.eye(4, dtype=np.int64).ravel() + noise(seed, 16))


def test_the_class_is_part_of_the_structure() -> None:
    halves = Grid(((0, 1, 2), (0, 4)))
    assert not warned(halves, np.array([[900, 100], [100, 900]]))
    assert warned(halves, np.array([[500, 500], [500, 500]]))


@pytest.mark.parametrize("table", [np.zeros(16), np.full(16, -40), np.eye(1, 16)[0] * 10**12])
def test_strange_tables_break_nothing(table: np.ndarray) -> None:
    assert warned(FOURS, table)
    assert warned(FOURS, table, Fraction(1000))


def test_a_warning_is_known_as_one() -> None:
    assert NO_STRUCTURE.startswith(WARNING)


# Groups as regions.


def test_nothing_learnt_is_a_single_region() -> None:
    assert grid_of(BOXES, None) == Grid.whole(BOXES.shape)


def test_groups_are_described() -> None:
    grid = Grid.of_groups([[[0, 1, 2], [3, 4, 5]], [[0, 2], [1], [3]], [[0, 1, 2]]])
    assert describe_groups(BOXES, grid) == ("a: 2 intervals", "b: 3 groups", "c: 1 interval")


def test_the_class_has_no_parts_of_its_own() -> None:
    labels = (np.arange(6) // 3, np.array([0, 1, 0, 1]), np.zeros(3, np.int64), np.array([0, 1]))
    found = DataGrid(labels, 1.0, 2.0, 1.0, ())
    assert grid_of(BOXES, found) == Grid(((0, 3, 6), (0, 2, 4), (0, 3)), (None, (0, 2, 1, 3), None))


# Noisy counts made fit for co-clustering: what is taken for noise, and by how much the rest is discounted.

RATES = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)]


@pytest.mark.parametrize("rate", RATES)
def test_the_dispersion_is_variance_over_mean_of_clipped_noise(rate: Fraction) -> None:
    values = np.arange(1, int(60 / rate) + 2)
    chances = np.exp(-float(rate) * values)
    chances /= 1 + 2 * chances.sum()
    mean = float(values @ chances)
    assert clipped_dispersion(rate) == pytest.approx((values**2 @ chances - mean**2) / mean)


def test_counts_are_never_made_larger() -> None:
    rates = [Fraction(number, 10) for number in range(1, 400)]
    dispersions = [clipped_dispersion(rate) for rate in rates]
    assert min(dispersions) >= 1
    assert dispersions == sorted(dispersions, reverse=True)
    assert dispersions[-1] == pytest.approx(1)


def test_without_any_noise_nothing_is_discounted_and_with_the_most_nothing_breaks() -> None:
    assert clipped_dispersion(Fraction(1000)) == 1
    assert math.isfinite(clipped_dispersion(Fraction(1, 10**9)))


def test_counts_that_noise_reaches_easily_are_taken_for_none() -> None:
    noisy = np.array([[-9, 0, 4], [5, 6, 700]])
    threshold = math.log(3) / (2 * 0.1)
    assert 5 < threshold < 6
    known = corrected(noisy, Fraction(1, 10))
    assert known.counts.tolist() == [[0, 0, 0], [0, 6, 700]]
    assert known.dispersion == clipped_dispersion(Fraction(1, 10))


def test_about_the_root_of_all_empty_cells_are_left() -> None:
    rng, rate = np.random.default_rng(0), 0.5
    noise = rng.geometric(-math.expm1(-rate), 1_000_000) - rng.geometric(-math.expm1(-rate), 1_000_000)
    left = np.count_nonzero(corrected(noise, Fraction(1, 2)).counts)
    assert 300 < left < 1500


def test_two_cells_have_no_threshold() -> None:
    assert corrected(np.array([[1, -1]]), Fraction(1, 10)).counts.tolist() == [[1, 0]]


def test_the_papers_way_clips_and_believes() -> None:
    known = clipped(np.array([-3, 0, 5]))
    assert (known.counts.tolist(), known.dispersion) == ([0, 0, 5], 1.0)
