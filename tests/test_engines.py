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
from sfumato.tree import Partition, Tree
from trees import growing_trees, random_trees

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
trees = random_trees(SHAPE)


def by_hand(rows: np.ndarray, box: np.ndarray, attribute: int | None = None) -> np.ndarray:
    """Count a box by class, or by leaf and class."""
    inside = rows[((rows[:, :3] >= box[:, 0]) & (rows[:, :3] < box[:, 1])).all(axis=1)]
    if attribute is None:
        return np.bincount(inside[:, 3], minlength=CLASSES)
    cells = np.zeros((SHAPE[attribute], CLASSES), np.int64)
    np.add.at(cells, (inside[:, attribute], inside[:, 3]), 1)
    return cells


@ENGINES
@settings(deadline=None)
@given(rows=tables, partition=st.one_of(grids, trees), wanted=st.sets(st.integers(0, 2)))
def test_counts_are_exact_and_dense(make: Make, rows: np.ndarray, partition: Partition, wanted: set[int]) -> None:
    boxes = partition.boxes[partition.leaves] if isinstance(partition, Tree) else partition.boxes(0, partition.regions)
    counts = make(rows).tally(Tally(partition, CLASSES, tuple(sorted(wanted))))
    assert counts.by_place.dtype == np.int64
    assert np.array_equal(counts.by_place, np.stack([by_hand(rows, box) for box in boxes]))
    assert counts.by_leaf.keys() == wanted
    for attribute in wanted:
        dense = counts.by_leaf[attribute].dense(partition.regions)
        assert np.array_equal(dense, np.stack([by_hand(rows, box, attribute) for box in boxes]))
        assert counts.by_leaf[attribute].counts.any(axis=1).all(), "only what holds someone is listed"


@ENGINES
@settings(deadline=None)
@given(rows=tables, tree=trees, data=st.data())
def test_some_leaves_of_a_tree_are_counted_alone(make: Make, rows: np.ndarray, tree: Tree, data: st.DataObject) -> None:
    nodes = np.array(sorted(data.draw(st.sets(st.sampled_from(tree.leaves.tolist())))), np.int64)
    counts = make(rows).tally(Tally(tree, CLASSES, (0, 1, 2), nodes))
    assert counts.by_place.shape == (len(nodes), CLASSES)
    for place, node in enumerate(nodes):
        assert np.array_equal(counts.by_place[place], by_hand(rows, tree.boxes[node]))
        dense = counts.by_leaf[1].dense(len(nodes))[place]
        assert np.array_equal(dense, by_hand(rows, tree.boxes[node], 1))


@ENGINES
@settings(deadline=None)
@given(rows=tables, stages=growing_trees(SHAPE), data=st.data())
def test_a_tree_that_grows_is_counted_like_one_that_was_always_there(
    make: Make, rows: np.ndarray, stages: list[Tree], data: st.DataObject
) -> None:
    """In any order, also with stages left out or asked again."""
    growing = make(rows)
    for stage in data.draw(st.lists(st.sampled_from(stages), max_size=6)):
        grown = growing.tally(Tally(stage, CLASSES, (0,)))
        afresh = make(rows).tally(Tally(stage, CLASSES, (0,)))
        assert np.array_equal(grown.by_place, afresh.by_place)
        assert np.array_equal(grown.by_leaf[0].keys, afresh.by_leaf[0].keys)


@ENGINES
@pytest.mark.parametrize("dense", [0, 1 << 18])
def test_blocks_and_order_do_not_matter(make: Make, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 1000) for size in (*SHAPE, CLASSES)], axis=1)
    tally = Tally(Grid.whole(SHAPE).refine(1, (2,)), CLASSES, (0, 1))
    whole = make(rows).tally(tally)
    monkeypatch.setattr(memory, "DENSE", dense)
    for block in (7, 64):
        monkeypatch.setattr(memory, "BLOCK", block)
        monkeypatch.setattr(memory, "SORTED_BLOCK", block)
        shuffled = make(rng.permutation(rows)).tally(tally)
        assert np.array_equal(whole.by_place, shuffled.by_place)
        for key in (0, 1):
            assert np.array_equal(whole.by_leaf[key].keys, shuffled.by_leaf[key].keys)
            assert np.array_equal(whole.by_leaf[key].counts, shuffled.by_leaf[key].counts)


@ENGINES
@pytest.mark.parametrize("partition", [Grid.whole(()), Tree.whole(())], ids=["grid", "tree"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_a_table_of_classes_alone_is_counted(make: Make, partition: Partition, rows: int) -> None:
    table = np.ones((rows, 1), np.int64)
    assert make(table).tally(Tally(partition, CLASSES)).by_place.tolist() == [[0, rows, 0]]


@ENGINES
def test_an_engine_has_one_verb_and_says_nothing(make: Make) -> None:
    engine = make(np.array([[2, 4, 1, 2]] * 7919))
    assert [name for name in dir(engine) if not name.startswith("_")] == ["tally"]
    assert not hasattr(engine, "__len__")
    assert "7919" not in repr(engine) + repr(engine.tally(Tally(Grid.whole(SHAPE), CLASSES)))
