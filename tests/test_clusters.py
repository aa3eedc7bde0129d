"""Match Point counts pairs, and points lie where they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import BisectingKMeans
from sklearn.metrics import rand_score

from handmade import released
from sfumato import Release, Schema
from sfumato.evaluate.clusters import bisecting, generalized_points, labels, match_point, matches, points_of
from sfumato.evaluate.learning import MOST_INDICATORS
from sfumato.geometry.grid import Grid

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 4}
  b: {kind: categorical, taxonomy: [x, y, z]}
""")
RNG = np.random.default_rng(0)
ROWS = {"a": RNG.choice([0, 4], 200), "b": RNG.integers(0, 3, 200)}
LEAVES, WHOLE = Grid((tuple(range(6)), tuple(range(4)))), Grid.whole((5, 3))
HALF = 1 / np.sqrt(2)


def release_of(grid: Grid) -> Release:
    counts = np.bincount(grid.regions_of(list(ROWS.values())), minlength=grid.regions)[:, None]
    return released(SCHEMA, grid, counts)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40))
def test_match_point_is_the_share_of_equal_cells_of_two_matrices(pairs) -> None:
    before, after = (np.array(side) for side in zip(*pairs, strict=True))
    matrices = [one[:, None] == one for one in (before, after)]
    rows = len(pairs)
    assert match_point(before, after) == pytest.approx((matrices[0] == matrices[1]).mean())
    pairs_of_others = rand_score(before, after) * rows * (rows - 1)
    assert match_point(before, after) == pytest.approx((pairs_of_others + rows) / rows**2)


def test_a_million_rows_need_no_matrix() -> None:
    before = np.arange(10**6) % 2
    assert match_point(before, 1 - before) == 1
    assert match_point(before, np.arange(10**6) // 2 % 2) == 0.5


def test_rows_lie_between_0_and_1_and_categories_1_apart() -> None:
    points = points_of(SCHEMA, {"a": np.array([0, 3]), "b": np.array([0, 2])})
    assert points == pytest.approx(np.array([[0, HALF, 0, 0], [0.75, 0, 0, HALF]]))
    assert np.linalg.norm(points[0, 1:] - points[1, 1:]) == pytest.approx(1)


def test_long_lists_of_categories_are_a_line() -> None:
    names = ", ".join(f"v{number}" for number in range(MOST_INDICATORS + 1))
    schema = Schema.loads(f"attributes: {{b: {{kind: categorical, taxonomy: [{names}]}}}}")
    assert points_of(schema, {"b": np.array([0, 256])}).tolist() == [[0], [1]]


def test_generalized_rows_lie_in_the_middle_of_their_group() -> None:
    rows = {"a": np.array([0, 4]), "b": np.array([1, 2])}
    found = generalized_points(release_of(Grid(((0, 2, 5), (0, 1, 3)))), rows)
    assert found == pytest.approx(np.array([[0.125, 0, HALF / 2, HALF / 2], [0.75, 0, HALF / 2, HALF / 2]]))


def test_groups_of_values_that_are_no_neighbours_have_a_middle() -> None:
    grid = Grid.of_groups([[[0, 4], [1, 2, 3]], [[0, 2], [1]]])
    found = generalized_points(release_of(grid), {"a": np.array([4, 1]), "b": np.array([2, 1])})
    assert found == pytest.approx(np.array([[0.5, HALF / 2, 0, HALF / 2], [0.5, 0, HALF, 0]]))


def test_clusters_are_those_of_scikit_learn_on_all_rows() -> None:
    """Equal rows are one point of their weight."""
    points = np.repeat(np.array([[0.0], [1.0], [10.0], [11.0]]), [50, 3, 1, 20], axis=0)
    for clusters in (2, 3, 4):
        expected = BisectingKMeans(clusters, n_init=10, random_state=0).fit_predict(points)
        assert match_point(labels(points, clusters), expected.astype(np.int64)) == 1
    assert sorted(bisecting(points, 2).cluster_centers_.ravel()) == pytest.approx([3 / 53, (10 + 220) / 21])


def test_no_more_clusters_than_points() -> None:
    assert (labels(np.zeros((9, 2)), 5) == 0).all()
    assert len(set(labels(np.arange(18.0).reshape(9, 2) // 6, 5).tolist())) == 3


def test_leaves_match_and_the_whole_hides_everything() -> None:
    found = {(one.clusters, one.after): one.match_point for one in matches(release_of(LEAVES), ROWS, ROWS)}
    assert found == dict.fromkeys([(k, after) for k in (2, 5) for after in ("generalized rows", "drawn records")], 1.0)
    hidden = matches(release_of(WHOLE), ROWS, ROWS)[0]
    sizes = np.bincount(labels(points_of(SCHEMA, ROWS), 2))
    assert hidden.match_point == pytest.approx((sizes**2).sum() / 200**2)
