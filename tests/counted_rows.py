"""Rows of codes, and releases that counted them without noise."""

from __future__ import annotations

import numpy as np

from handmade import released
from sfumato import Release, Schema
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Partition, Tree

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  single: {kind: categorical, taxonomy: [only]}
  class: {kind: class, taxonomy: [no, yes]}
""")
GRID = Grid(((0, 4, 10), (0, 1, 2, 3), (0, 1)))
TREE = Tree.whole(SCHEMA.shape).refine([0], [0], [0, 4, 10], [0, 3]).refine([2], [1], [0, 1, 3], [0, 3])
ROWS = {
    "a": np.random.default_rng(0).integers(0, 10, 500).astype(np.uint8),
    "b": np.random.default_rng(1).integers(0, 3, 500).astype(np.uint8),
    "single": np.zeros(500, np.uint8),
}
COLUMNS = [ROWS["a"], ROWS["b"], ROWS["single"]]


def exact_release(partition: Partition, classes: np.ndarray) -> Release:
    """Count the rows without noise."""
    regions = partition.regions_of(COLUMNS)
    counts = np.bincount(regions * 2 + classes, minlength=2 * partition.regions).reshape(-1, 2)
    return released(SCHEMA, partition, counts)
