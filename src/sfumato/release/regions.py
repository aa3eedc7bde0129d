"""The regions of any release, seen attribute by attribute: which ranges occur, and who has which.

Few ranges of one attribute occur however many regions there are, so whatever is costly (a name, a covered share) is
done once per range and then handed to the regions by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric, label_leaves
from sfumato.boxes import Boxes, Regions
from sfumato.errors import ReleaseError
from sfumato.partition import Codes, Grid, Indices
from sfumato.tree import Tree


@dataclass(frozen=True, eq=False)
class Sides:
    """The ranges of one attribute that occur among the regions, and the number of the one that each region has."""

    ranges: Indices
    """distinct ranges x 2: [lo, hi) of places in the order"""
    number: Callable[[Indices], Indices]
    """from regions to rows of `ranges`"""
    order: Indices
    """the attribute's leaves in the order of which these are ranges: of their codes, or group after group"""

    def of(self, regions: Indices) -> Indices:
        """Give the range of each region: regions x 2."""
        return self.ranges[self.number(regions)]

    def label(self, column: Categorical | Numeric, lo: int, hi: int) -> str:
        """Name the leaves of a range."""
        return label_leaves(column, self.order[lo:hi].tolist())

    def labels(self, column: Categorical | Numeric, ranges: Indices) -> pa.Array:
        """Name the leaves of each of many ranges, few of which are different: every name is made once.

        >>> column = Numeric(kind="numeric", lower=0, upper=9)
        >>> sides = Sides(np.array([[0, 10]]), np.zeros_like, np.arange(10))
        >>> sides.labels(column, np.array([[0, 4], [4, 10], [0, 4]])).to_pylist()
        ['[0, 4)', '[4, 10)', '[0, 4)']
        """
        distinct = _sides(ranges, len(self.order))
        names = [self.label(column, lo, hi) for lo, hi in distinct.ranges.tolist()]
        numbers = pa.array(distinct.number(np.arange(len(ranges))), pa.int32())
        return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string())).cast(pa.string())


def sides_of(partition: Regions, attribute: int) -> Sides:
    """See regions from one attribute.

    >>> tree = Tree.whole((4, 47)).refine([0], [1], [0, 22, 47], [0, 3]).refine([2], [0], [0, 2, 4], [0, 3])
    >>> jobs = sides_of(tree, 0)
    >>> jobs.ranges.tolist(), jobs.number(np.arange(3)).tolist()
    ([[0, 2], [0, 4], [2, 4]], [1, 0, 2])
    """
    if isinstance(partition, Grid):
        cut = np.asarray(partition.cuts[attribute], np.int64)
        ranges, order = np.stack([cut[:-1], cut[1:]], axis=1), partition.order_of(attribute)
        return Sides(ranges, partial(partition.parts_at, attribute), order)
    boxes = partition.ranges if isinstance(partition, Boxes) else partition.boxes[partition.leaves]
    return _sides(boxes[:, attribute], partition.shape[attribute])


def sides_of_nodes(tree: Tree, attribute: int) -> Sides:
    """See all nodes of a tree from one attribute, those above the regions, too."""
    return _sides(tree.boxes[:, attribute], tree.shape[attribute])


def _sides(boxes: NDArray[np.integer], leaves: int) -> Sides:
    base = leaves + 1
    keys, numbers = np.unique(boxes[:, 0] * np.int64(base) + boxes[:, 1], return_inverse=True)
    return Sides(np.stack(np.divmod(keys, base), axis=1), numbers.__getitem__, np.arange(leaves))


def regions_of(partition: Regions, columns: Sequence[Codes]) -> Indices:
    """Give the region that holds each coded row; where regions overlap there is no such thing."""
    if isinstance(partition, Boxes):
        raise ReleaseError(
            "a person must lie in one group only, and the groups of this release overlap",
            "Draw records with sample, or see explain.",
        )
    rows = len(columns[0]) if columns else 0
    if isinstance(partition, Grid):
        return partition.locate(columns, rows)
    return np.searchsorted(partition.leaves, partition.locate(columns, rows))
