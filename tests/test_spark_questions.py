"""A round on Spark is one query, with as many expressions for thousands of regions as for two."""

from __future__ import annotations

import numpy as np

from sfumato.engines.dialect import Rows
from sfumato.engines.spark import grid_query, stepped, tree_query
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import Tally

ROWS = Rows("coded", 2, weighted=False)


def grown(levels: int) -> Tree:
    """Halve every leaf, level by level, along one attribute of many leaves."""
    tree = Tree.whole((1 << 14, 3))
    for _ in range(levels):
        leaves = tree.ends
        boxes = tree.boxes[leaves, 0]
        borders = np.stack([boxes[:, 0], boxes.mean(axis=1).astype(np.int64), boxes[:, 1]], axis=1).ravel()
        tree = tree.refine(leaves, np.zeros(len(leaves), int), borders, np.arange(len(leaves) + 1) * 3)
    return tree


def asked(tree: Tree) -> str:
    before = len(tree) - 2 * (tree.regions // 2)
    located = stepped(tree, before, 1, ROWS, "SELECT c0, c1, k, node FROM coded")
    return tree_query(Tally(tree, 2, (0, 1)), ROWS, located)


def test_a_query_about_a_tree_has_as_many_expressions_for_two_nodes_as_for_thousands() -> None:
    small, large = asked(grown(1)), asked(grown(12))
    for part, times in (
        ("FROM coded", 1),
        ("GROUP BY", 1),
        ("get(", small.count("get(")),
        ("CASE", small.count("CASE")),
    ):
        assert large.count(part) == times


def test_a_query_about_a_grid_has_so_too() -> None:
    whole = Grid.whole((1 << 14, 3))
    small, large = (
        grid_query(Tally(whole.refine(0, tuple(range(step, 1 << 14, step))), 2, (0, 1)), ROWS) for step in (1 << 13, 4)
    )
    for part, times in (("FROM coded", 1), ("GROUP BY", 1), ("get(", 1), ("JOIN", 0)):
        assert small.count(part) == large.count(part) == times
