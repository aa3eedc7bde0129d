"""What makes the memory engine quick changes no count: families, threads, merged rows, sorted cells."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import kernel as blocks
from sfumato.engines import kernel as sorted_cells
from sfumato.engines import kernel as threads
from sfumato.engines import memory
from sfumato.engines import memory as merging
from sfumato.engines.kernel import Families, SortedCells
from sfumato.engines.memory import MemoryEngine, merged
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Counts, Domain, Tally
from trees import growing_trees

SHAPE, CLASSES = (6, 40, 3), 2
SMALL = (3, 5, 2)


def table(rows: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, rows).astype(np.uint8) for size in SHAPE]
    return columns, rng.integers(0, CLASSES, rows).astype(np.uint8)


def stages() -> list[Tree]:
    whole = Tree.whole(SHAPE)
    first = whole.refine([0], [1], [0, 9, 40], [0, 3])
    second = first.refine([1, 2], [0, 1], [0, 1, 2, 6, 9, 30, 40], [0, 4, 7])
    return [whole, first, second, second.refine([4], [2], [0, 1, 3], [0, 3])]


def equal(one: Counts, other: Counts) -> bool:
    same = np.array_equal(one.by_place, other.by_place) and one.by_leaf.keys() == other.by_leaf.keys()
    pairs = [(mine, other.by_leaf[key]) for key, mine in one.by_leaf.items()]
    return same and all(
        np.array_equal(mine.keys, theirs.keys) and np.array_equal(mine.counts, theirs.counts) for mine, theirs in pairs
    )


def newest(tree: Tree, before: Tree) -> Tally:
    return Tally(tree, CLASSES, (0, 1, 2), np.arange(len(before), len(tree)))


def test_the_largest_child_is_not_counted_but_follows() -> None:
    rows = table(5000)
    trees = stages()
    engine = MemoryEngine(*rows)
    engine.tally(Tally(trees[0], CLASSES, (0, 1, 2)))
    for before, tree in itertools.pairwise(trees):
        tally = newest(tree, before)
        sizes = MemoryEngine(*rows).tally(tally).by_place.sum(axis=1)
        known = engine._last
        assert known is not None
        families = Families.of(tally, sizes, known[0])
        parents = tree.parents[tally.nodes]
        for family in np.unique(parents):
            largest = np.flatnonzero(parents == family)[sizes[parents == family].argmax()]
            assert largest in families.derived
        assert len(families.derived) == len(np.unique(parents))
        assert sizes[families.counted].sum() < sizes.sum() / 2
        assert equal(engine.tally(tally), MemoryEngine(*rows).tally(tally))


def test_families_of_which_some_are_not_asked_for_are_counted() -> None:
    trees = stages()
    earlier = Tally(trees[1], CLASSES, (0,))
    tally = Tally(trees[2], CLASSES, (0,), np.array([3, 5, 6, 7]))
    families = Families.of(tally, np.array([9, 1, 5, 7]), earlier)
    assert families.derived.tolist() == [3], "the family of three lacks one child, that of two is whole"
    assert families.parents.tolist() == [1]
    assert not len(Families.of(tally, np.array([9, 1, 5, 7]), Tally(Tree.whole(SHAPE), CLASSES, (0,))).derived)


@settings(deadline=None)
@given(stages=growing_trees(SMALL), data=st.data())
def test_a_tree_that_grows_is_counted_like_one_that_was_always_there(stages: list[Tree], data: st.DataObject) -> None:
    """In any order, with stages left out or asked again, other attributes and some leaves alone; weights or none."""
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 60) for size in (*SMALL, CLASSES)]).astype(np.uint8)
    different, weights = np.unique(rows, axis=1, return_counts=True)
    growing = [MemoryEngine(list(rows[:-1]), rows[-1]), MemoryEngine(list(different[:-1]), different[-1], weights)]
    for stage in data.draw(st.lists(st.sampled_from(stages), max_size=5)):
        some = data.draw(st.none() | st.sets(st.sampled_from(stage.ends.tolist())))
        nodes = None if some is None else np.array(sorted(some), np.int64)
        tally = Tally(stage, CLASSES, data.draw(st.sampled_from([(), (0,), (1, 2), (0, 1, 2)])), nodes)
        afresh = MemoryEngine(list(rows[:-1]), rows[-1]).tally(tally)
        assert all(equal(engine.tally(tally), afresh) for engine in growing)


@pytest.mark.parametrize(("wide", "dense"), [(0, 0), (0, 1 << 21), (1 << 17, 1 << 21)])
def test_few_cells_and_many_are_counted_alike(wide: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(2000)
    tallies = [Tally(tree, CLASSES, (0, 1, 2)) for tree in stages()]
    whole = [MemoryEngine(*rows).tally(tally) for tally in tallies]
    weighted = (*rows, np.ones(2000, np.int64))
    monkeypatch.setattr(memory, "WIDE", wide)
    monkeypatch.setattr(memory, "DENSE", dense)
    for block in (64, 1000):
        monkeypatch.setattr(memory, "BLOCK", block)
        monkeypatch.setattr(memory, "SORTED_BLOCK", block)
        for engine in (MemoryEngine(*rows), MemoryEngine(*weighted)):
            assert all(equal(engine.tally(tally), counts) for tally, counts in zip(tallies, whole, strict=True))


@pytest.mark.parametrize("number", [1, 3])
def test_threads_do_not_matter(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(3000)
    tallies = [Tally(tree, CLASSES, (0, 2)) for tree in stages()] + [
        Tally(Grid.whole(SHAPE).refine(1, (3, 30)), CLASSES, (0, 1))
    ]
    alone = [MemoryEngine(*rows).tally(tally) for tally in tallies]
    monkeypatch.setattr(threads, "cores", lambda: number)
    monkeypatch.setattr(memory, "BLOCK", 64)
    monkeypatch.setattr(memory, "SORTED_BLOCK", 100)
    monkeypatch.setattr(memory, "WIDE", 200)
    engine = MemoryEngine(*rows)
    assert all(equal(engine.tally(tally), counts) for tally, counts in zip(tallies, alone, strict=True))


def test_a_thread_that_fails_is_heard() -> None:
    columns, classes = table(1 << 18)
    with pytest.raises(ValueError):
        MemoryEngine([columns[0][:10], *columns[1:]], classes).tally(Tally(Grid.whole(SHAPE).refine(0, (2,)), CLASSES))


def test_rows_that_are_the_same_become_one_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, classes = table(300_000)
    domain = Domain(SHAPE, CLASSES)
    different, labels, weights = merged(columns, classes, domain)
    assert weights is not None
    assert weights.dtype == np.int64
    assert weights.sum() == 300_000
    assert len(labels) == len(weights) <= 6 * 40 * 3 * 2
    assert [column.dtype for column in different] == [np.uint8] * 3
    for tree in stages():
        tally = Tally(tree, CLASSES, (0, 1, 2))
        assert equal(MemoryEngine(different, labels, weights).tally(tally), MemoryEngine(columns, classes).tally(tally))
    assert merged(columns, classes[:100], domain)[2] is None, "not worth the while"
    wide = [np.arange(300_000, dtype=np.uint32), *columns]
    assert merged(wide, classes, Domain((300_000, *SHAPE), CLASSES))[2] is None, "hardly any are the same"
    assert merged(columns, classes, Domain((2**40, 2**40, 3), CLASSES))[2] is None, "too many cells for 64 bits"
    monkeypatch.setattr(merging, "STRETCH", 1000)
    monkeypatch.setattr(sorted_cells, "PENDING", 10)
    late = columns[0].copy().astype(np.uint32)
    late[100_000:] = np.arange(200_000)
    assert merged([late, *columns[1:]], classes, Domain((200_000, *SHAPE[1:]), CLASSES))[2] is None, "found out late"


def test_counts_beyond_32_bits_are_exact() -> None:
    weights = np.array([2**40, 2**53 + 1, 5], np.int64)
    engine = MemoryEngine([np.array([0, 0, 1], np.uint8)], np.zeros(3, np.uint8), weights)
    counts = engine.tally(Tally(Grid.whole((2,)), 1, (0,)))
    assert counts.by_place.tolist() == [[2**40 + 2**53 + 6]]
    assert counts.by_leaf[0].counts.tolist() == [[2**40 + 2**53 + 1], [5]]


def test_cells_are_put_together_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_cells, "PENDING", 3)
    rng = np.random.default_rng(0)
    cells, weights = rng.integers(0, 50, 1000), rng.integers(1, 2**40, 1000)
    once, many = SortedCells(), SortedCells()
    for start in range(0, 1000, 30):
        once.add(cells[start : start + 30], None)
        many.add(cells[start : start + 30], weights[start : start + 30])
    assert once.found()[1].tolist() == np.bincount(cells).tolist()
    sums = np.zeros(50, np.int64)
    np.add.at(sums, cells, weights)
    assert many.found()[0].tolist() == list(range(50))
    assert many.found()[1].tolist() == sums.tolist()
    assert [len(part) for part in SortedCells().found()] == [0, 0]


def test_a_level_needs_no_copy_of_the_table() -> None:
    """Besides the codes, a tally has what is wanted of it, a node for each row, and the blocks in hand."""
    rows = 2_000_000
    columns, classes = table(rows)
    engine = MemoryEngine(columns, classes)
    trees = stages()
    engine.tally(Tally(trees[0], CLASSES, (0, 1, 2)))
    tracemalloc.start()
    for before, tree in itertools.pairwise(trees):
        engine.tally(newest(tree, before))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000 * threads.cores() < 4 * 4 * rows, "a copy of what is counted would be four times as much"


@pytest.mark.parametrize("weights", [None, np.array([1, 1, 2**40])])
def test_a_grid_of_very_many_cells_costs_no_more_than_its_rows(weights: np.ndarray | None) -> None:
    """A count of few rows does not walk through all cells."""
    counts = np.zeros(10**6, np.int64)
    tracemalloc.start()
    blocks._add(counts, np.array([5, 5, 999_999]), weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**5
    assert np.flatnonzero(counts).tolist() == [5, 999_999]
    assert counts.sum() == (3 if weights is None else weights.sum())
