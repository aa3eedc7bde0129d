"""Growing cuts: which specializations a grid still allows, and how many there can be.

Pure geometry over the schema, shared by methods that generalize one attribute at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sfumato.attributes import Numeric
from sfumato.counts.tally import Candidate
from sfumato.partition import Grid
from sfumato.schema import Predictor

WHOLE = 0
"""The one region of the undivided table, on whose histograms single-dimensional cuts are chosen."""


def taxonomy_candidates(attributes: Sequence[Predictor], grid: Grid) -> Iterator[Candidate]:
    """Give every categorical value on the cut that its taxonomy divides further."""
    for index, attribute in enumerate(attributes):
        for lo, hi in pairwise(grid.cuts[index]):
            borders = attribute.children(lo, hi)
            if borders is not None:
                yield Candidate(WHOLE, index, borders)


def intervals(attributes: Sequence[Predictor], grid: Grid) -> Iterator[tuple[int, int, int]]:
    """Give every numeric interval on the cut that has a grid point inside, as attribute, lo, hi."""
    for index, attribute in enumerate(attributes):
        if isinstance(attribute, Numeric):
            yield from ((index, lo, hi) for lo, hi in pairwise(grid.cuts[index]) if hi - lo > 1)


def splits(index: int, lo: int, hi: int) -> tuple[Candidate, ...]:
    """Give every way to split an interval: at each grid point of the declared range, whatever the data."""
    return tuple(Candidate(WHOLE, index, (lo, at, hi)) for at in range(lo + 1, hi))


def regions_after(grid: Grid, candidate: Candidate) -> int:
    """Count the regions that a specialization leads to."""
    parts = grid.parts[candidate.attribute]
    return grid.regions // parts * (parts + len(candidate.borders) - 2)


def most_specializations(attributes: Sequence[Predictor]) -> int:
    """Count the specializations that take every attribute from its root to its leaves."""
    return sum(_specializations(attribute, 0, attribute.leaves) for attribute in attributes)


def _specializations(attribute: Predictor, lo: int, hi: int) -> int:
    if isinstance(attribute, Numeric):
        return hi - lo - 1
    borders = attribute.children(lo, hi)
    if borders is None:
        return 0
    return 1 + sum(_specializations(attribute, left, right) for left, right in pairwise(borders))


def describe(attribute: Predictor, name: str, candidate: Candidate) -> str:
    """Write a specialization as people read it."""
    lo, hi = candidate.borders[0], candidate.borders[-1]
    children = ", ".join(attribute.label(left, right) for left, right in pairwise(candidate.borders))
    return f"{name}: {attribute.label(lo, hi)} → {children}"
