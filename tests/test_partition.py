"""Grids: disjoint, covering, and found again."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.partition import Grid

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
    assert np.array_equal(inside.argmax(axis=1), grid.locate(list(points.T)))


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
