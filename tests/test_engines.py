"""The laws of every engine: exact, dense, one answer whatever the order of rows, and nothing else to ask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.counts import memory
from sfumato.counts.memory import MemoryEngine
from sfumato.counts.tally import CountEngine, Tally
from sfumato.partition import Grid

SHAPE, CLASSES = (3, 5, 2), 3
Make = Callable[[np.ndarray], CountEngine]


def in_memory(rows: np.ndarray) -> CountEngine:
    return MemoryEngine(list(rows.T[:-1].astype(np.uint8)), rows.T[-1].astype(np.uint8))


ENGINES = pytest.mark.parametrize("make", [in_memory])

tables = st.lists(st.tuples(*(st.integers(0, size - 1) for size in (*SHAPE, CLASSES))), max_size=40).map(
    lambda rows: np.array(rows, np.int64).reshape(len(rows), 4)
)
borders = st.lists(st.integers(1, 2))
grids = st.builds(lambda first, second: Grid.whole(SHAPE).refine(0, first).refine(1, second), borders, borders)


@ENGINES
@settings(deadline=None)
@given(rows=tables, grid=grids, wanted=st.sets(st.integers(0, 2)))
def test_counts_are_exact_and_dense(make: Make, rows: np.ndarray, grid: Grid, wanted: set[int]) -> None:
    counts = make(rows).tally(Tally(grid, CLASSES, tuple(sorted(wanted))))
    boxes = grid.boxes(0, grid.regions)
    expected = np.zeros((grid.regions, CLASSES), np.int64)
    by_leaf = {attribute: np.zeros((grid.regions, SHAPE[attribute], CLASSES), np.int64) for attribute in wanted}
    for row in rows:
        region = next(
            i for i, box in enumerate(boxes) if all(lo <= code < hi for code, (lo, hi) in zip(row, box, strict=False))
        )
        expected[region, row[3]] += 1
        for attribute in wanted:
            by_leaf[attribute][region, row[attribute], row[3]] += 1
    assert counts.by_region.dtype == np.int64
    assert np.array_equal(counts.by_region, expected)
    assert counts.by_leaf.keys() == by_leaf.keys()
    assert all(np.array_equal(counts.by_leaf[attribute], by_leaf[attribute]) for attribute in wanted)


@ENGINES
def test_blocks_and_order_do_not_matter(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 1000) for size in (*SHAPE, CLASSES)], axis=1)
    tally = Tally(Grid.whole(SHAPE).refine(1, (2,)), CLASSES, (0, 1))
    whole = make(rows).tally(tally)
    for block in (7, 64):
        monkeypatch.setattr(memory, "BLOCK", block)
        shuffled = make(rng.permutation(rows)).tally(tally)
        assert np.array_equal(whole.by_region, shuffled.by_region)
        assert all(np.array_equal(whole.by_leaf[key], shuffled.by_leaf[key]) for key in (0, 1))


@ENGINES
def test_an_engine_has_one_verb_and_says_nothing(make: Make) -> None:
    engine = make(np.array([[2, 4, 1, 2]] * 7919))
    assert [name for name in dir(engine) if not name.startswith("_")] == ["tally"]
    assert not hasattr(engine, "__len__")
    assert "7919" not in repr(engine) + repr(engine.tally(Tally(Grid.whole(SHAPE), CLASSES)))
