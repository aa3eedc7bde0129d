"""Growing cuts: which specializations a grid still allows, and how many there can be.

Pure geometry over the schema, shared by methods that generalize one attribute at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Numeric
from sfumato.counts.choices import Specialization, Ways
from sfumato.partition import Grid
from sfumato.schema import Predictor

WHOLE = 0
"""The one region of the undivided table, on whose histograms single-dimensional cuts are chosen."""

Interval = tuple[int, int, int]
"""A numeric attribute and a range of its leaves."""


def taxonomy_candidates(attributes: Sequence[Predictor], grid: Grid) -> Iterator[Ways]:
    """Give every categorical value on the cut that its taxonomy divides further."""
    for index, attribute in enumerate(attributes):
        for lo, hi in pairwise(grid.cuts[index]):
            borders = attribute.children(lo, hi)
            if borders is not None:
                yield Ways.one(WHOLE, index, borders)


def intervals(attributes: Sequence[Predictor], grid: Grid) -> Iterator[Interval]:
    """Give every numeric interval on the cut that has a grid point inside."""
    for index, attribute in enumerate(attributes):
        if isinstance(attribute, Numeric):
            yield from ((index, lo, hi) for lo, hi in pairwise(grid.cuts[index]) if hi - lo > 1)


def regions_after(grid: Grid, ways: Ways) -> NDArray[np.int64]:
    """Count the regions that each specialization leads to."""
    parts = np.array(grid.parts)[ways.attributes]
    return grid.regions // parts * (parts + ways.children - 1)


def most_specializations(attributes: Sequence[Predictor]) -> int:
    """Count the specializations that take every attribute from its root to its leaves."""
    return sum(inner_nodes(attribute, 0, attribute.leaves) for attribute in attributes)


def inner_nodes(attribute: Predictor, lo: int, hi: int) -> int:
    """Count the specializations that take a range to its leaves."""
    if isinstance(attribute, Numeric):
        return hi - lo - 1
    borders = attribute.children(lo, hi)
    if borders is None:
        return 0
    return 1 + sum(inner_nodes(attribute, left, right) for left, right in pairwise(borders))


def describe(attribute: Predictor, name: str, chosen: Specialization) -> str:
    """Write a specialization as people read it."""
    children = ", ".join(attribute.label(left, right) for left, right in pairwise(chosen.borders))
    return f"{name}: {attribute.label(chosen.borders[0], chosen.borders[-1])} → {children}"


def describe_all(attributes: Mapping[str, Predictor], steps: Sequence[Specialization]) -> tuple[str, ...]:
    """Write specializations, one after the other."""
    names = list(attributes)
    return tuple(describe(attributes[names[one.attribute]], names[one.attribute], one) for one in steps)
