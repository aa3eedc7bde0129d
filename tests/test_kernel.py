"""What makes the kernel quick changes no count: families, threads, merged rows, sorted cells; and sums add up."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import kernel, local, rounds
from sfumato.engines.kernel import Block, DenseSum, Layout, SparseSum, Sums, count, gathered, merged
from sfumato.engines.local import MemoryEngine
from sfumato.engines.rounds import Answer, Asked, Families
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Counts, Tally
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
    """Also where it is not the widest."""
    rows = table(5000)
    rows[0][1] = (rows[0][1].astype(int) ** 3 // 40**2).astype(np.uint8)
    trees = stages()
    engine = MemoryEngine(*rows)
    engine.tally(Tally(trees[0], CLASSES, (0, 1, 2)))
    for before, tree in itertools.pairwise(trees):
        tally = newest(tree, before)
        sizes = MemoryEngine(*rows).tally(tally).by_place.sum(axis=1)
        assert engine._last is not None
        families = Families.of(tally, engine._last)
        parents = tree.parents[tally.nodes]
        for family in np.unique(parents):
            largest = np.flatnonzero(parents == family)[sizes[parents == family].argmax()]
            assert largest in families.derived
        assert len(families.derived) == len(np.unique(parents))
        assert sizes[families.counted].sum() < sizes.sum() / 2
        assert equal(engine.tally(tally), MemoryEngine(*rows).tally(tally))


def test_families_of_which_some_are_not_asked_for_are_counted() -> None:
    trees, engine = stages(), MemoryEngine(*table(5000))
    asked = [Tally(trees[1], CLASSES, (0,)), Tally(Tree.whole(SHAPE), CLASSES, (0,))]
    earlier, other = (Answer(tally, engine.tally(tally)) for tally in asked)
    tally = Tally(trees[2], CLASSES, (0,), np.array([3, 5, 6, 7]))
    families = Families.of(tally, earlier)
    assert families.derived.tolist() == [2], "the family of three lacks one child, that of two is whole"
    assert families.parents.tolist() == [1]
    assert not len(Families.of(tally, other).derived)


def test_without_a_breakdown_by_its_attribute_the_widest_child_follows() -> None:
    trees, engine = stages(), MemoryEngine(*table(5000))
    earlier = Tally(trees[0], CLASSES, (0, 2))
    families = Families.of(newest(trees[1], trees[0]), Answer(earlier, engine.tally(earlier)))
    assert families.derived.tolist() == [1], "31 of 40 leaves"


def test_the_child_that_follows_is_not_looked_at() -> None:
    columns, classes = table(5000)
    trees, engine = stages(), MemoryEngine(columns, classes)
    engine.tally(Tally(trees[0], CLASSES, (0, 1, 2)))
    asked = newest(trees[1], trees[0])
    expected = MemoryEngine(*table(5000)).tally(asked)
    columns[2][columns[1] >= 9] = 0
    assert equal(engine.tally(asked), expected)


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


@pytest.mark.parametrize(("dense", "in_all"), [(0, 0), (1 << 21, 100), (1 << 21, 1 << 23)])
def test_few_cells_and_many_are_counted_alike(dense: int, in_all: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(2000)
    tallies = [Tally(tree, CLASSES, (0, 1, 2)) for tree in stages()]
    whole = [MemoryEngine(*rows).tally(tally) for tally in tallies]
    weighted = (*rows, np.ones(2000, np.int64))
    monkeypatch.setattr(rounds, "DENSE", dense)
    monkeypatch.setattr(rounds, "DENSE_IN_ALL", in_all)
    for block in (64, 1000):
        monkeypatch.setattr(local, "BLOCK", block)
        for engine in (MemoryEngine(*rows), MemoryEngine(*weighted)):
            assert all(equal(engine.tally(tally), counts) for tally, counts in zip(tallies, whole, strict=True))


@pytest.mark.parametrize("number", [1, 3])
def test_threads_do_not_matter(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(3000)
    tallies = [Tally(tree, CLASSES, (0, 2)) for tree in stages()] + [
        Tally(Grid.whole(SHAPE).refine(1, (3, 30)), CLASSES, (0, 1))
    ]
    alone = [MemoryEngine(*rows).tally(tally) for tally in tallies]
    monkeypatch.setattr(local, "cores", lambda: number)
    monkeypatch.setattr(local, "BLOCK", 64)
    engine = MemoryEngine(*rows)
    assert all(equal(engine.tally(tally), counts) for tally, counts in zip(tallies, alone, strict=True))


@settings(max_examples=30)
@given(
    stages=growing_trees(SMALL),
    size=st.integers(1, 30),
    pieces=st.integers(1, 5),
    dense=st.sampled_from([0, 1 << 21]),
    weighted=st.booleans(),
)
def test_sums_of_blocks_add_up_also_in_pieces_and_after_a_journey(
    stages: list[Tree], size: int, pieces: int, dense: int, weighted: bool
) -> None:
    """As on a cluster: each block is counted apart, sums are cut, sent, added up piece by piece, and joined."""
    rng = np.random.default_rng(size)
    *columns, classes = (rng.integers(0, one, 60).astype(np.uint8) for one in (*SMALL, CLASSES))
    weights = rng.integers(1, 2**40, 60) if weighted else None
    tally = Tally(stages[-1], CLASSES, (0, 2), marginals=(Grid.finest(SMALL),))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rounds, "DENSE", dense)
        asked = Asked.of(tally, None, None)
    sent = []
    for start in range(0, 60, size):
        cut = slice(start, start + size)
        block = Block(tuple(one[cut] for one in columns), classes[cut], None if weights is None else weights[cut])
        packed = Layout.of(block).unpacked(block.packed())
        travelled = pickle.loads(pickle.dumps(asked.round))
        sums = Sums.none(travelled)
        count(travelled, packed, travelled.located(packed, None), sums)
        sent.append([pickle.loads(pickle.dumps(piece)) for piece in sums.cut(pieces)])
    first, *others = sent
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            mine.include(theirs)
    assert equal(asked.counts(Sums.joined(first)), MemoryEngine(columns, classes, weights).tally(tally))


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 12))
def test_parts_of_any_length_become_blocks(lengths: list[int], size: int) -> None:
    rows = np.arange(sum(lengths), dtype=np.uint16)
    parts = [(part, part + 1) for part in np.split(rows, np.cumsum(lengths)[:-1])] if lengths else []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel, "BLOCK", size)
        blocks = list(gathered(parts))
    assert {len(block) for block in blocks[:-1]} <= {size}
    assert [code for block in blocks for code in block.columns[0].tolist()] == rows.tolist()
    assert all(np.array_equal(block.classes, block.columns[0] + 1) for block in blocks)


def test_a_thread_that_fails_is_heard() -> None:
    columns, classes = table(1 << 18)
    with pytest.raises(ValueError):
        MemoryEngine([columns[0][:10], *columns[1:]], classes).tally(Tally(Grid.whole(SHAPE).refine(0, (2,)), CLASSES))


def merge(columns: Sequence[np.ndarray], classes: np.ndarray, sizes: tuple[int, ...], most: int) -> list[Block] | None:
    return merged(list(gathered([(*columns, classes)])), len(classes), sizes, most)


def test_rows_that_are_the_same_become_one_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, classes = table(300_000)
    sizes, most = (*SHAPE, CLASSES), 10**6
    found = merge(columns, classes, sizes, most)
    assert found is not None
    (block,) = found
    assert block.weights is not None
    assert block.weights.dtype == np.int64
    assert block.weights.sum() == 300_000
    assert len(block) <= 6 * 40 * 3 * 2
    assert [column.dtype for column in block.columns] == [np.uint8] * 3
    for tree in stages():
        tally = Tally(tree, CLASSES, (0, 1, 2))
        fewer = MemoryEngine(block.columns, block.classes, block.weights)
        assert equal(fewer.tally(tally), MemoryEngine(columns, classes).tally(tally))
    assert merge([one[:100] for one in columns], classes[:100], sizes, most) is None, "not worth the while"
    assert merge(columns, classes, sizes, 100) is None, "no room for them"
    wide = [np.arange(300_000, dtype=np.uint32), *columns]
    assert merge(wide, classes, (300_000, *sizes), most) is None, "hardly any are the same"
    assert merge(columns, classes, (2**40, 2**40, 3, 2), most) is None, "too many cells for 64 bits"
    monkeypatch.setattr(kernel, "PENDING", 10)
    late = columns[0].copy().astype(np.uint32)
    late[100_000:] = np.arange(200_000)
    assert merge([late, *columns[1:]], classes, (200_000, *sizes[1:]), most) is None, "found out late"


def test_counts_beyond_32_bits_are_exact() -> None:
    weights = np.array([2**40, 2**53 + 1, 5], np.int64)
    engine = MemoryEngine([np.array([0, 0, 1], np.uint8)], np.zeros(3, np.uint8), weights)
    counts = engine.tally(Tally(Grid.whole((2,)), 1, (0,)))
    assert counts.by_place.tolist() == [[2**40 + 2**53 + 6]]
    assert counts.by_leaf[0].counts.tolist() == [[2**40 + 2**53 + 1], [5]]


def test_cells_are_put_together_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PENDING", 3)
    rng = np.random.default_rng(0)
    cells, weights = rng.integers(0, 50, 1000), rng.integers(1, 2**40, 1000)
    once, many = SparseSum.none(50), SparseSum.none(50)
    for start in range(0, 1000, 30):
        once.add(cells[start : start + 30], None)
        many.add(cells[start : start + 30], weights[start : start + 30])
    assert once.found()[1].tolist() == np.bincount(cells).tolist()
    sums = np.zeros(50, np.int64)
    np.add.at(sums, cells, weights)
    assert many.found()[0].tolist() == list(range(50))
    assert many.found()[1].tolist() == sums.tolist()
    assert [len(part) for part in SparseSum.none(9).found()] == [0, 0]


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
    assert peak < 12_000_000 * local.cores() < 4 * 4 * rows, "a copy of what is counted would be four times as much"


@pytest.mark.parametrize("weights", [None, np.array([1, 1, 2**40])])
def test_a_grid_of_very_many_cells_costs_no_more_than_its_rows(weights: np.ndarray | None) -> None:
    """A count of few rows does not walk through all cells."""
    found = DenseSum.none(10**6)
    counts = found.counts
    tracemalloc.start()
    found.add(np.array([5, 5, 999_999]), weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**5
    assert np.flatnonzero(counts).tolist() == [5, 999_999]
    assert counts.sum() == (3 if weights is None else weights.sum())
