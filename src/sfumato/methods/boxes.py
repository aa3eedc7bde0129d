"""Which specializations boxes still allow, for thousands of boxes at once, and how many there can be in all.

Pure geometry over the schema, for methods that split every region in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Categorical, Numeric
from sfumato.counts.choices import Ways
from sfumato.methods.cuts import inner_nodes
from sfumato.schema import Predictor

Integers = NDArray[np.int64]
NO_SPLIT = 0
"""Instead of a split point, for a range that has none."""


class Divisions:
    """All that a schema allows: looked up once, for boxes of every level."""

    def __init__(self, attributes: Sequence[Predictor]) -> None:
        """Prepare the taxonomies."""
        self._attributes = [
            index if isinstance(attribute, Numeric) else _Taxonomy(attribute, index)
            for index, attribute in enumerate(attributes)
        ]

    def ways(self, boxes: NDArray[np.int32], places: Integers, splits: Integers | None = None) -> Ways:
        """Give for each place, a box of ranges, its values that can be specialized, place by place.

        A categorical value is divided as its taxonomy says, an interval at every grid point or, if `splits` (places x
        attributes) are given, at its own split point alone.
        """
        found = []
        for index, attribute in enumerate(self._attributes):
            ranges = boxes[:, index].astype(np.int64)
            if isinstance(attribute, _Taxonomy):
                found.append(attribute.ways(ranges, places))
            elif splits is None:
                found.append(_every_split(index, ranges, places))
            else:
                found.append(_own_split(index, ranges, places, splits[:, index]))
        ways = Ways.join(found)
        return ways.take(np.argsort(ways.places, kind="stable"))


def _every_split(index: int, ranges: Integers, places: Integers) -> Ways:
    wide = np.flatnonzero(ranges[:, 1] - ranges[:, 0] > 1)
    return Ways(places[wide], np.full(len(wide), index), ranges[wide].ravel(), np.arange(len(wide) + 1) * 2)


def _own_split(index: int, ranges: Integers, places: Integers, splits: Integers) -> Ways:
    chosen = np.flatnonzero(splits != NO_SPLIT)
    borders = np.stack([ranges[chosen, 0], splits[chosen], ranges[chosen, 1]], axis=1)
    return Ways(places[chosen], np.full(len(chosen), index), borders.ravel(), np.arange(len(chosen) + 1) * 3)


class _Taxonomy:
    """The divisions of one categorical attribute, by the range that is divided."""

    def __init__(self, attribute: Categorical, index: int) -> None:
        self._leaves = attribute.leaves
        found: dict[int, tuple[int, ...]] = {}
        waiting = [(0, attribute.leaves)]
        while waiting:
            lo, hi = waiting.pop()
            borders = attribute.children(lo, hi)
            if borders is not None:
                found[lo * (self._leaves + 1) + hi] = borders
                waiting += pairwise(borders)
        self._keys = np.array(sorted(found), np.int64)
        self._known = Ways.join([Ways.one(0, index, found[key]) for key in self._keys.tolist()])

    def ways(self, ranges: Integers, places: Integers) -> Ways:
        keys = ranges[:, 0] * (self._leaves + 1) + ranges[:, 1]
        divided = np.flatnonzero(np.isin(keys, self._keys))
        taken = self._known.take(np.searchsorted(self._keys, keys[divided]))
        return Ways(places[divided], taken.attributes, taken.borders, taken.starts)


def most_specializations_of_boxes(attributes: Sequence[Predictor]) -> int:
    """Count the specializations that take one region to single points (DiffMulti, equation 14).

    Taking the attributes one after the other: those that come before have made the product of their leaves many
    regions, and each needs as many specializations as the taxonomy has inner nodes, its root included.
    """
    total, regions = 0, 1
    for attribute in attributes:
        total += regions * inner_nodes(attribute, 0, attribute.leaves)
        regions *= attribute.leaves
    return total


def longest_path(attributes: Sequence[Predictor], numeric_height: int) -> int:
    """Count the specializations that take a record from most general to raw: the sum of the taxonomies' heights.

    A numeric attribute has no taxonomy; the paper assumes a height for it.
    """
    return sum(
        min(numeric_height, attribute.leaves - 1) if isinstance(attribute, Numeric) else attribute.tree.height
        for attribute in attributes
    )
