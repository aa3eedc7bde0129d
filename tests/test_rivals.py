"""RPS, DiffP-C4.5 and DPCube: where they cut, when they stop, and how they read what they bought."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replay import Recorder, run
from sfumato import RPS, DiffPC45, DPCube, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError, ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.dpcube import KdTree
from sfumato.models import model_of
from sfumato.models.pruned import DOUBT, pessimistic_errors
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question, variance_of

SCHEMA = Schema.loads("""
attributes:
  age: {kind: numeric, lower: 0, upper: 15}
  town: {kind: categorical, taxonomy: {North: [A, B], South: [C, D]}}
  class: {kind: class, taxonomy: [Y, N]}
""")


def table(rows: int = 4000) -> MemoryEngine:
    """Draw people of whom those from 12 up are all Y, and the others all N."""
    rng = np.random.default_rng(1)
    age, town = rng.integers(0, 16, rows).astype(np.uint8), rng.integers(0, 4, rows).astype(np.uint8)
    return MemoryEngine([age, town], (age < 12).astype(np.uint8))


def test_rps_cuts_at_medians() -> None:
    draft, purse = run(RPS(depth=3, margins=0), SCHEMA, table(), Fraction(20), Recorder(0))
    people = draft.final.counts.sum(axis=1)
    assert len(people) == 8
    assert people.max() / people.min() < 1.3
    assert sum(debit.epsilon for debit in purse.debits) == 20


def test_the_depth_of_rps_follows_from_the_noisy_size() -> None:
    drafts = [run(RPS.as_published(), SCHEMA, table(rows), Fraction(2), Recorder(0))[0] for rows in (0, 400, 4000)]
    assert [len(draft.steps) for draft in drafts] == [1, 3, 6]


def test_a_private_tree_finds_the_split_and_stops_where_nothing_is_left() -> None:
    draft, _ = run(DiffPC45(), SCHEMA, table(), Fraction(8), Recorder(0))
    tree, model = draft.structure, model_of(SCHEMA, draft)
    assert isinstance(tree, Tree)
    assert tree.boxes[1, 0].tolist() == [0, 12]
    ages = np.arange(16, dtype=np.uint8)
    assert model.classify([ages, np.zeros(16, np.uint8)]).tolist() == [1] * 12 + [0] * 4


def test_small_nodes_become_ends() -> None:
    few, _ = run(DiffPC45.as_published(depth=5), SCHEMA, table(20), Fraction(1), Recorder(0))
    many, _ = run(DiffPC45.as_published(depth=5), SCHEMA, table(40_000), Fraction(1), Recorder(0))
    assert few.structure.regions == 1
    assert many.structure.regions > 4


def test_categories_are_divided_into_leaves_as_published() -> None:
    def children(method: DiffPC45) -> set[int]:
        columns = [np.zeros(4000, np.uint8), np.tile(np.arange(4), 1000).astype(np.uint8)]
        draft, _ = run(method, SCHEMA, MemoryEngine(columns, columns[1] // 2), Fraction(50), Recorder(0))
        return set(np.bincount(draft.structure.parents[1:])[:1].tolist())

    assert children(DiffPC45(depth=1)) == {2}
    assert children(DiffPC45(depth=1, categories="leaves")) == {4}


def test_a_subtree_that_errs_as_often_as_its_root_is_pruned() -> None:
    """The right half says N by 41 to 40: a rule of its own would err one time less, and pessimistically more often."""
    schema = SCHEMA.only(["age", "class"])
    tree = Tree.whole((16,)).refine([0], [0], [0, 8, 16], [0, 3])
    counts = Noisy.even(np.array([[60, 40], [40, 41]]), Fraction(5))
    drafts = [
        Draft(tree, (Measurement("counts", Question(tree, tree.ends, 2), one),), "pruned tree")
        for one in (counts, Noisy.even(np.array([[60, 40], [40, 80]]), Fraction(5)))
    ]
    ages = [np.array([0, 15], np.uint8)]
    assert [model_of(schema, one).classify(ages).tolist() for one in drafts] == [[0, 0], [0, 1]]
    alone, halves = pessimistic_errors(np.array([[100.0, 81.0]]), DOUBT), pessimistic_errors(counts.counts * 1.0, DOUBT)
    assert alone.sum() <= halves.sum()


def test_a_kd_tree_cuts_where_cells_differ_and_not_where_they_are_even() -> None:
    cells = np.zeros((8, 4, 1))
    cells[:3] = 50.0
    tree = KdTree(cells, of_part=2.0).grown(100)
    assert tree.regions == 2
    assert tree.boxes[1].tolist() == [[0, 3], [0, 4]]
    assert KdTree(np.ones((8, 4, 1)), of_part=2.0).grown(100).regions == 1
    noise = np.random.default_rng(0).normal(0, 50, (8, 4, 1))
    assert KdTree(noise, of_part=2.0).grown(5).regions == 5


def cube(counts: list[int], histogram: list[int]) -> Draft:
    """A tree of two ends, of one cell and of three, counted twice."""
    tree = Tree.whole((4,)).refine([0], [0], [0, 1, 4], [0, 3])
    parts = Noisy.even(np.array(counts).reshape(2, 1), Fraction(1))
    cells = Noisy.even(np.array(histogram).reshape(4, 1), Fraction(1, 2))
    finest = Question(Grid.finest((4,)), None, 1)
    return Draft(
        tree,
        (Measurement("histogram", finest, cells), Measurement("counts", Question(tree, tree.ends, 1), parts)),
        "tree over cells",
    )


def test_parts_are_told_by_both_counts() -> None:
    schema = Schema.loads("attributes: {town: {kind: categorical, taxonomy: [A, B, C, D]}}")
    model = model_of(schema, cube([10, 30], [99, 12, 12, 12]))
    own, summed = 1 / variance_of(Fraction(1)), 2 / 3 / (3 * variance_of(Fraction(1, 2)))
    assert model.values[:, 0] == pytest.approx([10, (30 * own + 36 * summed) / (own + summed)])
    draft = cube([10, 30], [99, 12, 12, 12])
    alone = Draft(draft.structure, draft.measurements[1:], draft.model)
    with pytest.raises(ReleaseError):
        model_of(schema, alone)


def test_what_cannot_be_published_is_refused_in_the_plan(adult) -> None:
    with pytest.raises(MethodError, match="cells"):
        DPCube().plan(adult.schema, Fraction(1))
    with pytest.raises(MethodError, match="class attribute"):
        DiffPC45().plan(SCHEMA.only(["age", "town"]), Fraction(1))
