"""The laws of every engine: exact, dense, one answer whatever the order of rows, and nothing else to ask."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines_under_test import ENGINES, OPENERS, Open, assert_same, coded_table, in_memory
from sfumato.engines import kernel, rounds
from sfumato.engines.local import MemoryEngine
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree
from sfumato.privacy.tally import CountEngine, Tally
from trees import growing_trees, random_trees

SHAPE, CLASSES = (3, 5, 2), 3
EXAMPLES = 4 if "spark" in OPENERS else 25


def opened(open_engine: Open, rows: np.ndarray) -> AbstractContextManager[CountEngine]:
    return open_engine(*coded_table(rows, SHAPE, CLASSES))


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
@settings(max_examples=EXAMPLES)
@given(rows=tables, partition=st.one_of(grids, trees), wanted=st.sets(st.integers(0, 2)))
def test_counts_are_exact_and_dense(
    open_engine: Open, rows: np.ndarray, partition: Partition, wanted: set[int]
) -> None:
    boxes = partition.boxes[partition.ends] if isinstance(partition, Tree) else partition.boxes(0, partition.regions)
    with opened(open_engine, rows) as engine:
        counts = engine.tally(Tally(partition, CLASSES, tuple(sorted(wanted))))
    assert counts.by_place.dtype == np.int64
    assert np.array_equal(counts.by_place, np.stack([by_hand(rows, box) for box in boxes]))
    assert counts.by_leaf.keys() == wanted
    for attribute in wanted:
        dense = counts.by_leaf[attribute].dense(partition.regions)
        assert np.array_equal(dense, np.stack([by_hand(rows, box, attribute) for box in boxes]))
        assert counts.by_leaf[attribute].counts.any(axis=1).all(), "only what holds someone is listed"


@ENGINES
@settings(max_examples=EXAMPLES)
@given(rows=tables, tree=trees, data=st.data())
def test_some_leaves_of_a_tree_are_counted_alone(
    open_engine: Open, rows: np.ndarray, tree: Tree, data: st.DataObject
) -> None:
    nodes = np.array(sorted(data.draw(st.sets(st.sampled_from(tree.ends.tolist())))), np.int64)
    with opened(open_engine, rows) as engine:
        counts = engine.tally(Tally(tree, CLASSES, (0, 1, 2), nodes))
    assert counts.by_place.shape == (len(nodes), CLASSES)
    for place, node in enumerate(nodes):
        assert np.array_equal(counts.by_place[place], by_hand(rows, tree.boxes[node]))
        dense = counts.by_leaf[1].dense(len(nodes))[place]
        assert np.array_equal(dense, by_hand(rows, tree.boxes[node], 1))


@ENGINES
@settings(max_examples=EXAMPLES)
@given(rows=tables, stages=growing_trees(SHAPE), data=st.data())
def test_a_tree_that_grows_is_counted_like_one_that_was_always_there(
    open_engine: Open, rows: np.ndarray, stages: list[Tree], data: st.DataObject
) -> None:
    """In any order, also with stages left out or asked again."""
    with opened(open_engine, rows) as engine:
        asked = data.draw(st.lists(st.sampled_from(stages), max_size=6))
        answers = [engine.tally(Tally(stage, CLASSES, (0,))) for stage in asked]
    for stage, grown in zip(asked, answers, strict=True):
        with opened(in_memory, rows) as engine:
            afresh = engine.tally(Tally(stage, CLASSES, (0,)))
        assert np.array_equal(grown.by_place, afresh.by_place)
        assert np.array_equal(grown.by_leaf[0].keys, afresh.by_leaf[0].keys)


def random_rows(number: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, size, number) for size in (*SHAPE, CLASSES)], axis=1)


ASKED = Tally(Grid.whole(SHAPE).refine(1, (2,)), CLASSES, (0, 1))


@ENGINES
def test_order_does_not_matter(open_engine: Open) -> None:
    rows = random_rows(1000)
    with opened(in_memory, rows) as engine:
        whole = engine.tally(ASKED)
    for seed in range(2):
        with opened(open_engine, np.random.default_rng(seed).permutation(rows)) as engine:
            assert_same(whole, engine.tally(ASKED))


@pytest.mark.parametrize("dense", [0, 1 << 18])
def test_blocks_do_not_matter(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(1000)
    with opened(in_memory, rows) as engine:
        whole = engine.tally(ASKED)
    monkeypatch.setattr(rounds, "DENSE", dense)
    for block in (7, 64):
        monkeypatch.setattr(kernel, "BLOCK", block)
        with opened(in_memory, rows) as engine:
            assert_same(whole, engine.tally(ASKED))


@ENGINES
@settings(max_examples=EXAMPLES)
@given(rows=tables, partition=st.one_of(grids, trees), data=st.data())
def test_marginals_are_counted_beside_the_places(
    open_engine: Open, rows: np.ndarray, partition: Partition, data: st.DataObject
) -> None:
    """All pairs of attributes, cut anywhere, in the pass that counts the places."""
    cuts = [sorted({0, leaves, *data.draw(st.sets(st.integers(0, leaves)))}) for leaves in SHAPE]
    pairs = [Grid.marginal(SHAPE, {one: cuts[one], other: cuts[other]}) for one, other in combinations(range(3), 2)]
    with opened(open_engine, rows) as engine:
        counts = engine.tally(Tally(partition, CLASSES, (0,), marginals=tuple(pairs)))
    assert counts.by_place.sum() == len(rows)
    for grid, found in zip(pairs, counts.marginals, strict=True):
        assert np.array_equal(found, np.stack([by_hand(rows, box) for box in grid.boxes(0, grid.regions)]))


@ENGINES
def test_groups_of_leaves_in_any_order_are_regions(open_engine: Open) -> None:
    rows = random_rows(300)
    asked = Tally(Grid.of_groups([[[0, 2], [1]], [[4, 0], [1, 3], [2]], [[0], [1]]]), CLASSES, (1,))
    with opened(open_engine, rows) as engine, opened(in_memory, rows) as reference:
        assert_same(engine.tally(asked), reference.tally(asked))


@ENGINES
def test_rows_that_are_alike_count_as_often_as_there_are(open_engine: Open) -> None:
    rows = np.repeat(random_rows(20), 50, axis=0)
    tree = Tree.whole(SHAPE).refine([0], [1], [0, 1, 3, 5], [0, 4])
    with opened(open_engine, rows) as engine, opened(in_memory, rows) as reference:
        for asked in (ASKED, Tally(tree, CLASSES, (0, 1, 2)), Tally(Tree.whole(SHAPE), CLASSES)):
            assert_same(engine.tally(asked), reference.tally(asked))


def test_counts_have_64_bits() -> None:
    """Three rows that stand for more records than 32 bits can tell, and than a double can."""
    codes, classes = np.array([1, 1, 0], np.uint8), np.array([2, 2, 0], np.uint8)
    engine = MemoryEngine([codes], classes, np.array([2**60 + 1, 2**31 - 1, 5_000_000_000]))
    for whole in (Grid.whole((2,)), Tree.whole((2,))):
        counts = engine.tally(Tally(whole, 3, (0,), marginals=(Grid.finest((2,)),)))
        assert counts.by_place.tolist() == [[5_000_000_000, 0, 2**60 + 2**31]]
        assert counts.by_leaf[0].counts.tolist() == [[5_000_000_000, 0, 0], [0, 0, 2**60 + 2**31]]
        assert counts.marginals[0].tolist() == [[5_000_000_000, 0, 0], [0, 0, 2**60 + 2**31]]


@ENGINES
@pytest.mark.parametrize("partition", [Grid.whole(()), Tree.whole(())], ids=["grid", "tree"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_a_table_of_classes_alone_is_counted(open_engine: Open, partition: Partition, rows: int) -> None:
    table = np.ones((rows, 1), np.int64)
    with opened(open_engine, table) as engine:
        assert engine.tally(Tally(partition, CLASSES)).by_place.tolist() == [[0, rows, 0]]


@ENGINES
def test_an_engine_has_one_verb_and_says_nothing(open_engine: Open) -> None:
    with opened(open_engine, np.array([[2, 4, 1, 2]] * 7919)) as engine:
        assert [name for name in dir(engine) if not name.startswith("_")] == ["tally"]
        assert not hasattr(engine, "__len__")
        assert "7919" not in repr(engine) + repr(engine.tally(Tally(Grid.whole(SHAPE), CLASSES)))
