"""Trees of boxes: disjoint, covering, found again, and refused when they are not."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.geometry.tree import Tree
from trees import growing_trees, random_trees

SHAPE = (3, 5, 4)
POINTS = np.array(list(product(*map(range, SHAPE))), np.uint8)
trees = random_trees(SHAPE)


@settings(max_examples=40)
@given(trees)
def test_every_point_lies_in_exactly_one_end_and_is_located_there(tree: Tree) -> None:
    boxes = tree.boxes[tree.ends]
    inside = ((POINTS[:, None, :] >= boxes[None, :, :, 0]) & (POINTS[:, None, :] < boxes[None, :, :, 1])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert np.array_equal(tree.ends[inside.argmax(axis=1)], tree.locate(list(POINTS.T), len(POINTS)))


@settings(max_examples=40)
@given(growing_trees(SHAPE))
def test_one_step_from_the_coarser_tree_is_the_way_from_the_root(stages: list[Tree]) -> None:
    nodes = stages[0].locate(list(POINTS.T), len(POINTS))
    for coarser, tree in pairwise(stages):
        tree.walk(coarser.stage.nodes).step(list(POINTS.T), nodes)
        assert np.array_equal(nodes, tree.locate(list(POINTS.T), len(POINTS)))
        assert tree.refines(coarser.stage)
        assert not coarser.refines(tree.stage)


@settings(max_examples=40)
@given(trees)
def test_children_are_searched_for_as_they_are_looked_up(tree: Tree) -> None:
    """And rows are moved in blocks of any size."""
    looked_up = tree.locate(list(POINTS.T), len(POINTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.geometry.walk.LONGEST_ROW", 0)
        patch.setattr("sfumato.geometry.walk.BLOCK", 7)
        again = Tree(tree.shape, tree.parents, tree.attributes, tree.lows, tree.highs)
        assert np.array_equal(again.locate(list(POINTS.T), len(POINTS)), looked_up)


@settings(max_examples=40)
@given(trees)
def test_the_boxes_of_some_nodes_are_among_all_boxes(tree: Tree) -> None:
    nodes = np.arange(len(tree))[::2]
    assert np.array_equal(tree.boxes_of(nodes), tree.boxes[nodes])


@settings(max_examples=40)
@given(trees)
def test_a_tree_is_known_by_its_nodes(tree: Tree) -> None:
    again = Tree.of_nodes(tree.shape, tree.parents, tree.attributes, np.stack([tree.lows, tree.highs], axis=1))
    assert np.array_equal(again.boxes, tree.boxes)
    assert np.array_equal(again.depths, tree.depths)
    assert np.array_equal(again.ends, tree.ends)


@settings(max_examples=40)
@given(trees, st.data())
def test_a_tree_with_a_wrong_number_is_refused(tree: Tree, data: st.DataObject) -> None:
    if len(tree) == 1:
        return
    fields = [tree.parents.copy(), tree.attributes.copy(), np.stack([tree.lows, tree.highs], axis=1)]
    which, node = data.draw(st.integers(0, 2)), data.draw(st.integers(1, len(tree) - 1))
    wrong = data.draw(st.sampled_from([-1, 1]))
    fields[which][node] += wrong if which < 2 else [wrong, 0]
    try:
        other = Tree.of_nodes(tree.shape, *fields)
    except ValueError:
        return
    boxes = other.boxes[other.ends]
    inside = ((POINTS[:, None, :] >= boxes[None, :, :, 0]) & (POINTS[:, None, :] < boxes[None, :, :, 1])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all(), "what is not refused is a partition all the same"


@pytest.mark.parametrize(
    ("nodes", "attributes", "borders", "starts"),
    [
        ([1, 1], [0, 0], [0, 1, 3, 0, 1, 3], [0, 3, 6]),
        ([2, 1], [0, 0], [0, 1, 3, 0, 1, 3], [0, 3, 6]),
        ([0], [0], [0, 1, 3], [0, 3]),
        ([1], [0], [0, 3], [0, 2]),
        ([1], [0], [0, 1, 2], [0, 3]),
        ([1], [0], [1, 2, 3], [0, 3]),
        ([1], [1], [0, 2, 5], [0, 3]),
        ([1], [0], [0, 2, 1, 3], [0, 4]),
        ([1], [-3], [0, 1, 3], [0, 3]),
        ([1], [3], [0, 1, 3], [0, 3]),
    ],
)
def test_refinements_that_do_not_fill_an_end_are_refused(nodes, attributes, borders, starts) -> None:
    tree = Tree.whole(SHAPE).refine([0], [1], [0, 2, 5], [0, 3])
    with pytest.raises(ValueError, match="ends must be split"):
        tree.refine(nodes, attributes, borders, starts)


@pytest.mark.parametrize(
    ("parents", "attributes", "ranges"),
    [
        ([], [], np.empty((0, 2))),
        ([0], [-1], [[-1, -1]]),
        ([-1, 0, 0], [-1, 0, 1], [[-1, -1], [0, 2], [2, 3]]),
        ([-1, 0, 0], [-1, 0, 0], [[-1, -1], [0, 2], [1, 3]]),
        ([-1, 0, 0], [-1, 0, 0], [[-1, -1], [0, 2], [2, 4]]),
        ([-1, 0, 0], [-1, 3, 3], [[-1, -1], [0, 2], [2, 3]]),
        ([-1, 0], [-1, 0], [[-1, -1], [0, 3]]),
        ([-1, 2, 0, 0], [-1, 0, 0, 0], [[-1, -1], [0, 2], [0, 2], [2, 3]]),
        ([-1, 0, 0, 0, 0], [-1, 0, 0, 1, 1], [[-1, -1], [0, 2], [2, 3], [0, 2], [2, 5]]),
        ([-1, 0, 0, 1, 1, 0, 0], [-1, 0, 0, 1, 1, 2, 2], [[-1, -1], [0, 2], [2, 3], [0, 1], [1, 5], [0, 1], [1, 4]]),
    ],
)
def test_nodes_that_are_no_tree_are_refused(parents, attributes, ranges) -> None:
    with pytest.raises(ValueError, match="the children of every node"):
        Tree.of_nodes(SHAPE, np.array(parents), np.array(attributes), np.array(ranges, np.int64).reshape(-1, 2))


def test_without_attributes_all_rows_lie_on_the_root() -> None:
    assert Tree.whole(()).locate([], 3).tolist() == [0, 0, 0]


def test_borders_that_are_not_those_of_their_own_end_are_refused() -> None:
    """With starts that count backwards, each end would get the children of the other."""
    tree = Tree.whole((8,)).refine([0], [0], [0, 4, 8], [0, 3])
    with pytest.raises(ValueError, match="ends must be split"):
        tree.refine([1, 2], [0, 0], [4, 6, 8, 0, 2, 4], [-3, 0, 3])


@pytest.mark.parametrize(
    ("parents", "lows", "highs"),
    [
        ([-1, 0, 0], [-1, 0, 3], [-1, 4, 8]),
        ([-1, 0, 0], [-1, 0, 4], [-1, 4, 2**32 + 8]),
        ([-1, 0, 0], [-1, 0], [-1, 4]),
        ([[-1, 0, 0]], [[-1, 0, 4]], [[-1, 4, 8]]),
    ],
)
def test_a_tree_cannot_be_made_of_nodes_that_do_not_fill_their_parents(parents, lows, highs) -> None:
    attributes = np.minimum(parents, 0)
    with pytest.raises(ValueError, match="the children of every node"):
        Tree((8,), np.array(parents), attributes, np.array(lows), np.array(highs))


def test_a_tree_cannot_be_told_the_boxes_of_its_newest_nodes() -> None:
    """Growth believes them: with other boxes, ends would be refined outside of what their records paid for."""
    nodes = [np.array(one, np.int32) for one in ([-1, 0, 0], [-1, 0, 0], [-1, 0, 4], [-1, 4, 8])]
    with pytest.raises(TypeError, match="positional arguments"):
        Tree((8,), *nodes, np.array([[[0, 4]], [[6, 8]]], np.int32))


def test_a_tree_stays_as_it_was_checked() -> None:
    nodes = [np.array(one, np.int32) for one in ([-1, 0, 0], [-1, 0, 0], [-1, 0, 4], [-1, 4, 8])]
    tree = Tree((np.int8(8),), *(one[:] for one in nodes))
    nodes[2][2] = 0
    assert tree.boxes.tolist() == [[[0, 8]], [[0, 4]], [[4, 8]]]
    assert type(tree.shape[0]) is int
    for kept in (tree.lows, tree.ends, tree.split_by, tree.depths, tree.boxes, tree.newest):
        assert not kept.flags.writeable
