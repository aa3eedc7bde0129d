"""Cells of any regions: the same as leaf by leaf, and made all at once."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups_by_hand import group_releases
from handmade import BOXES, box_releases, leaf_weights, manifest_of, release_over, tree_releases
from sfumato import Release, Schema
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models import regions
from sfumato.models import regions as cells
from sfumato.models.margins import Spread
from sfumato.models.regions import cell_estimates
from sfumato.privacy.measurements import Noisy

WIDE = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 99}
  b: {kind: numeric, lower: 0, upper: 99}
  c: {kind: numeric, lower: 0, upper: 99}
""")


@pytest.mark.parametrize("held", [2**24, 1], ids=["at once", "in halves"])
@settings(deadline=None, max_examples=40)
@given(
    st.one_of(box_releases(), tree_releases(), group_releases()),
    st.sets(st.sampled_from(range(3))).map(sorted),
)
def test_cells_are_the_counts_of_their_leaves(held: int, release: Release, asked: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MOST_HELD", held)
        found = cell_estimates(release.regions, release.model.values, release.sides, release._leaf_spreads, asked)
    names, shape = list(BOXES.predictors), [BOXES.shape[at] for at in asked]
    assert found.shape == (*shape, 2)
    places = list(itertools.product(*map(range, shape), range(2)))
    ranges = [[(one, one + 1) for one in place] for place in places]
    boxes = [dict(zip([*(names[at] for at in asked), "class"], one, strict=True)) for one in ranges]
    expected = release.count_many([leaf_weights(box) for box in boxes]).values
    assert found.ravel() == pytest.approx(expected, abs=1e-6)


def test_a_million_cells_of_a_grid_take_no_time() -> None:
    grid = Grid(tuple(tuple(range(101)) for _ in range(3)))
    counts = np.arange(grid.regions, dtype=np.float64)[:, None]
    sides = [regions.sides_of(grid, at) for at in range(3)]
    start = time.perf_counter()
    found = cell_estimates(grid, counts, sides, [Spread.of(100)] * 3, [0, 1, 2])
    assert time.perf_counter() - start < 5
    assert np.array_equal(found.ravel(), counts.ravel())


def test_every_name_of_an_explanation_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid((tuple(range(101)), tuple(range(101)), (0, 100)))
    counts = Noisy.even(np.ones((10_000, 1), np.int64), Fraction(1))
    release = Release(WIDE, grid, counts, {}, manifest_of(WIDE, 10_000))
    named = list[list[int]]()
    label = regions.label_leaves
    monkeypatch.setattr(regions, "label_leaves", lambda column, leaves: named.append(leaves) or label(column, leaves))
    groups = release.explain("a < 50")
    assert groups.num_rows == 5000
    assert groups.slice(101, 1).to_pylist() == [{"a": "1", "b": "1", "estimate": 1.0}]
    assert len(named) == 150


def test_an_explanation_of_nothing_has_its_columns() -> None:
    tree = Tree.whole(BOXES.shape).refine([0], [0], [0, 2, 6], [0, 3])
    groups = release_over(tree, [[1, 2], [3, 4]]).explain("a > 99")
    assert (groups.num_rows, groups.column_names) == (0, ["a", "estimate"])
    assert str(groups.schema.field("a").type) == "string"
