"""The choice of a marginal: its score moves by one person at most, it is made of integers, and mistakes are refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.local import MemoryEngine
from sfumato.errors import PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.misfits import SENSITIVITY, UNIT, Ladder, Misfits
from sfumato.privacy.tally import Cells, Tally

SHAPE, CLASSES = (4, 3, 5), 2
GRIDS = tuple(
    Grid.marginal(SHAPE, {a: range(SHAPE[a] + 1), b: range(SHAPE[b] + 1)}) for a, b in ((0, 1), (0, 2), (1, 2))
)
TALLY = Tally(Grid.whole(SHAPE), CLASSES, (0, 1, 2), None, GRIDS)
LADDERS = {
    0: Ladder((np.array([0, 0, 1, 1]), np.arange(4))),
    1: Ladder((np.array([0, 1, 0]), np.arange(3))),
    2: Ladder((np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 2, 2]))),
}
EVERY = np.array(list(itertools.product(range(3), range(2), range(2), range(2))))
ROWS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in (*SHAPE, CLASSES))), max_size=12)


def candidates(expected: list[np.ndarray] | None = None, charges: np.ndarray | None = None) -> Misfits:
    none = [np.zeros((grid.regions, CLASSES), np.int64) for grid in GRIDS]
    return Misfits(
        TALLY, LADDERS, EVERY, expected or none, np.zeros(len(EVERY), np.int64) if charges is None else charges
    )


def counts_of(rows: list[tuple[int, ...]]):
    table = np.array(rows, np.uint8).reshape(-1, 4)
    return MemoryEngine([table[:, at] for at in range(3)], table[:, 3]).tally(TALLY)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.tuples(*(st.integers(0, size - 1) for size in (*SHAPE, CLASSES))), st.integers(0, 2**32))
def test_one_record_moves_every_score_by_one_at_most(rows: list, more: tuple, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = [rng.integers(0, 300, (grid.regions, CLASSES)) for grid in GRIDS]
    asked = candidates(expected, rng.integers(0, 500, len(EVERY)))
    moved = asked.scores(counts_of([*rows, more])) - asked.scores(counts_of(rows))
    assert np.abs(moved).max() * UNIT <= SENSITIVITY


def test_scores_by_hand() -> None:
    rows = [(0, 0, 0, 0), (1, 0, 4, 0), (3, 2, 4, 1)]
    expected = [np.zeros((grid.regions, CLASSES), np.int64) for grid in GRIDS]
    expected[0][0, 0] = 3 * 64  # three are expected with a = 0, b = 0 and the first class
    found = dict(zip(map(tuple, EVERY.tolist()), candidates(expected).scores(counts_of(rows)).tolist(), strict=True))
    assert found[0, 1, 1, 1] == (2 + 1 + 1) * 64
    assert found[0, 0, 0, 1] == (1 + 1) * 64  # a in {0, 1} has two of three, and the third is elsewhere
    assert found[2, 0, 0, 0] == 3 * 64


def test_charges_are_taken_off() -> None:
    charges = np.arange(len(EVERY))
    counts = counts_of([(0, 0, 0, 0)])
    assert (candidates().scores(counts) - candidates(charges=charges).scores(counts) == charges).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"expected": [np.zeros((grid.regions, CLASSES)) for grid in GRIDS]},
        {"expected": [np.zeros((grid.regions, 1), np.int64) for grid in GRIDS]},
        {"expected": []},
        {"charges": np.zeros(3, np.int64)},
        {"charges": np.full(len(EVERY), 2**55)},
        {"charges": np.full(len(EVERY), -(2**63))},
        {"tally": Tally(Tree.whole(SHAPE), CLASSES, (0, 1, 2), None, GRIDS)},
        {"candidates": np.zeros((0, 4), np.int64), "charges": np.zeros(0, np.int64)},
        {"candidates": np.array([[3, 0, 0, 0]]), "charges": np.zeros(1, np.int64)},
        {"candidates": np.array([[0, 2, 0, 0]]), "charges": np.zeros(1, np.int64)},
        {"candidates": np.array([[0, 0, 0, 2]]), "charges": np.zeros(1, np.int64)},
        {"ladders": {0: LADDERS[0]}},
        {"ladders": LADDERS | {1: LADDERS[0]}},
    ],
    ids=str,
)
def test_what_could_not_be_scored_is_refused(wrong: dict) -> None:
    with pytest.raises(PrivacyError):
        replace(candidates(), **wrong)


def test_expected_numbers_that_would_wrap_around_in_sums_are_refused() -> None:
    """With 2^14 cells of nearly 2^50 steps each, one record could move the sum from one end of 64 bits to the other."""
    grid = Grid.finest((2**7, 2**7))
    tally = Tally(Grid.whole(grid.shape), 1, (), None, (grid,))
    ladders = {at: Ladder((np.arange(2**7),)) for at in range(2)}
    asked = np.zeros((1, 4), np.int64)
    for steps in (2**49, -(2**49)):
        with pytest.raises(PrivacyError, match="whole steps"):
            Misfits(tally, ladders, asked, [np.full((grid.regions, 1), steps)], np.zeros(1, np.int64))
    Misfits(tally, ladders, asked, [np.full((grid.regions, 1), 2**45)], np.zeros(1, np.int64))


@pytest.mark.parametrize(
    "levels", [(), (np.array([0, 9]),), (np.array([-1, 0]),), (np.arange(2), np.arange(3))], ids=str
)
def test_a_ladder_must_put_every_part_into_a_group(levels: tuple) -> None:
    with pytest.raises(PrivacyError):
        Ladder(levels)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(0, 2**32))
def test_cells_of_a_grid_are_counted_as_by_hand(rows: list, seed: int) -> None:
    rng, counts = np.random.default_rng(seed), counts_of(rows)
    attributes = sorted(rng.choice(3, int(rng.integers(1, 3)), replace=False).tolist())
    grid = Grid.grouped(
        SHAPE, {at: np.unique(rng.integers(0, 3, SHAPE[at]), return_inverse=True)[1] for at in attributes}
    )
    for by in ("class", "place"):
        cells = Cells(TALLY, by, grid=grid)
        found = cells.read(counts)
        by_hand = np.zeros((grid.regions, CLASSES), np.int64)
        for *codes, label in rows:
            by_hand[grid.locate([np.array([code]) for code in codes], 1)[0], label] += 1
        assert found.shape == cells.shape == cells.question.shape
        assert (found == (by_hand if by == "class" else by_hand.sum(axis=1, keepdims=True))).all()


def test_a_grid_that_was_not_counted_is_refused() -> None:
    every = Grid.finest(SHAPE)
    few = Tally(Tree.whole(SHAPE), CLASSES, (), np.zeros(0, np.int64), GRIDS)
    cases = (
        (TALLY, every),
        (Tally(Grid.whole(SHAPE), CLASSES), GRIDS[0]),
        (TALLY, Grid.whole((2, 2))),
        (few, GRIDS[0]),
    )
    for tally, grid in cases:
        with pytest.raises(PrivacyError, match="made up of what the tally counts"):
            Cells(tally, grid=grid)
