"""Grids: disjoint, covering, and found again."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.geometry.grid import Grid

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    shape = draw(shapes)
    grid = Grid.whole(shape)
    for attribute, leaves in enumerate(shape):
        if leaves > 1:
            grid = grid.refine(attribute, draw(st.lists(st.integers(1, leaves - 1), max_size=3)))
    return grid


@given(grids())
def test_every_point_lies_in_exactly_one_box_and_is_located_there(grid: Grid) -> None:
    points = np.array(list(product(*(range(leaves) for leaves in grid.shape))), np.uint8)
    boxes = grid.boxes(0, grid.regions)
    inside = ((points[:, None, :] >= boxes[None, :, :, 0]) & (points[:, None, :] < boxes[None, :, :, 1])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert np.array_equal(inside.argmax(axis=1), grid.locate(list(points.T), len(points)))


@given(st.data())
def test_groups_of_any_leaves_are_parts(data: st.DataObject) -> None:
    groups = []
    for leaves in data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)):
        owners = data.draw(st.lists(st.integers(0, 3), min_size=leaves, max_size=leaves))
        groups.append([[leaf for leaf in range(leaves) if owners[leaf] == owner] for owner in sorted({*owners})])
    grid = Grid.of_groups(groups)
    points = list(product(*map(range, grid.shape)))
    located = grid.locate([np.array(column, np.uint8) for column in zip(*points, strict=True)], len(points))
    boxes = grid.boxes(0, grid.regions)
    for point, region in zip(points, located, strict=True):
        parts = [grid.parts_at(attribute, np.array([region]))[0] for attribute in range(len(groups))]
        for attribute, (part, leaf) in enumerate(zip(parts, point, strict=True)):
            lo, hi = boxes[region, attribute]
            assert leaf in groups[attribute][part]
            assert leaf in grid.order_of(attribute)[lo:hi]


@pytest.mark.parametrize("orders", [((0, 0, 1),), ((0, 1),), ((0, 1, 2), None)])
def test_an_order_that_does_not_name_every_leaf_once_is_refused(orders: tuple) -> None:
    with pytest.raises(ValueError, match="order"):
        Grid(((0, 1, 3),), orders)


@given(grids())
def test_parts_are_the_digits_of_a_region(grid: Grid) -> None:
    regions = np.arange(grid.regions)
    expected = np.stack(np.unravel_index(regions, grid.parts), axis=1)
    found = np.stack([grid.parts_at(attribute, regions) for attribute in range(len(grid.cuts))], axis=1)
    assert np.array_equal(expected, found)


@pytest.mark.parametrize("cut", [(1, 4), (0, 3, 3), (0, 4, 2), (0,)])
def test_cuts_that_do_not_cover_are_refused(cut: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing borders"):
        Grid((cut,))


@pytest.mark.parametrize("border", [-1, 5])
def test_borders_outside_are_refused(border: int) -> None:
    with pytest.raises(ValueError, match="border"):
        Grid.whole((4,)).refine(0, (border,))


def test_without_attributes_all_rows_lie_in_the_only_region() -> None:
    assert Grid.whole(()).locate([], 3).tolist() == [0, 0, 0]
    assert Grid.whole(()).boxes(0, 1).shape == (1, 0, 2)


def test_a_grid_keeps_plain_integers_that_nobody_can_change() -> None:
    """NumPy's small integers equal the schema's and wrap when they are multiplied."""
    cut, order = [np.int8(0), np.int8(100)], np.arange(100, dtype=np.int8)[::-1]
    grid = Grid([cut], (order,))
    cut[1] = np.int8(7)
    assert grid.cuts == ((0, 100),)
    assert grid.orders == (tuple(range(99, -1, -1)),)
    assert {type(border) for border in (*grid.cuts[0], *grid.shape, *grid.orders[0])} == {int}
