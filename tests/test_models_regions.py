"""What models of regions have in common: cells as leaf by leaf, groups named once, people drawn as counted."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups_by_hand import group_releases
from handmade import BOXES, box_releases, leaf_weights, release_of, release_over, tree_releases
from sfumato import Account, CDiffGen, DiffGen, Release, Schema
from sfumato.geometry import regions as geometry
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models import regions
from sfumato.models.grid import cells_of_grid
from sfumato.models.margins import Spread
from sfumato.models.regions import draw_cells

WIDE = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 99}
  b: {kind: numeric, lower: 0, upper: 99}
  c: {kind: numeric, lower: 0, upper: 99}
""")

# Cells.


@pytest.mark.parametrize("held", [2**24, 1], ids=["at once", "in halves"])
@settings(max_examples=40)
@given(
    st.one_of(box_releases(), tree_releases(), group_releases()),
    st.sets(st.sampled_from(range(3))).map(sorted),
)
def test_cells_are_the_counts_of_their_leaves(held: int, release: Release, asked: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "MOST_HELD", held)
        found = release.model.marginal(asked, by_class=True)
        together = release.model.marginal(asked, by_class=False)
    names, shape = list(BOXES.predictors), [BOXES.shape[at] for at in asked]
    assert found.shape == (*shape, 2)
    places = list(itertools.product(*map(range, shape), range(2)))
    ranges = [[(one, one + 1) for one in place] for place in places]
    boxes = [dict(zip([*(names[at] for at in asked), "class"], one, strict=True)) for one in ranges]
    expected = release.count_many([leaf_weights(box) for box in boxes]).values
    assert found.ravel() == pytest.approx(expected, abs=1e-6)
    assert together == pytest.approx(found.sum(axis=-1, keepdims=True), abs=1e-6)


def test_a_million_cells_of_a_grid_take_no_time() -> None:
    grid = Grid(tuple(tuple(range(101)) for _ in range(3)))
    counts = np.arange(grid.regions, dtype=np.float64)[:, None]
    start = time.perf_counter()
    found = cells_of_grid(grid, counts, dict.fromkeys(range(3), Spread.of(100)))
    assert time.perf_counter() - start < 5
    assert np.array_equal(found.ravel(), counts.ravel())


# Explanations.


def test_every_name_of_an_explanation_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    release = release_of(WIDE, (tuple(range(101)), tuple(range(101)), (0, 100)), np.ones(10_000))
    named = list[list[int]]()
    label = geometry.label_leaves
    monkeypatch.setattr(geometry, "label_leaves", lambda column, leaves: named.append(leaves) or label(column, leaves))
    groups = release.explain("a < 50")
    assert groups.num_rows == 5000
    assert groups.slice(101, 1).to_pylist() == [{"a": "1", "b": "1", "estimate": 1.0}]
    assert len(named) == 150


def test_an_explanation_of_nothing_has_its_columns() -> None:
    tree = Tree.whole(BOXES.shape).refine([0], [0], [0, 2, 6], [0, 3])
    groups = release_over(tree, [[1, 2], [3, 4]]).explain("a > 99")
    assert (groups.num_rows, groups.column_names) == (0, ["a", "estimate"])
    assert str(groups.schema.field("a").type) == "string"


def test_the_groups_of_an_explanation_make_up_what_is_covered_wholly(adult) -> None:
    account = Account("unused.ledger", adult.schema)
    for method in (CDiffGen(specializations=6), DiffGen(specializations=6)):
        release = account.publish(adult.table, method, "1", unsafe_seed=1)
        condition = "marital_status = 'Married' and income = '>50K'"
        answer, groups = release.count(condition), release.explain(condition)
        assert 0 < sum(groups["estimate"].to_pylist()) <= answer.value + 1e-6
        assert len(release.explain("")) == (1 if isinstance(method, CDiffGen) else release.groups)


# People drawn.


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 200), st.integers(0, 2**32))
def test_every_cell_is_drawn_as_often_as_expected_rounded_up_or_down(weights: list[int], size: int, seed: int) -> None:
    drawn = draw_cells(np.array(weights), size, np.random.default_rng(seed))
    found = np.bincount(drawn, minlength=len(weights))
    shares = np.array(weights) if any(weights) else np.ones(len(weights))
    expected = size * shares / shares.sum()
    assert len(drawn) == size
    assert (np.abs(found - expected) < 1 + 1e-9).all()
    assert not found[shares == 0].any()


def test_cells_are_drawn_in_no_order() -> None:
    drawn = draw_cells(np.ones(1000), 1000, np.random.default_rng(1))
    assert abs(np.corrcoef(drawn, np.arange(1000))[0, 1]) < 0.2
