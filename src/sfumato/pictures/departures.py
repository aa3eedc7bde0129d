"""How much more or fewer rows the parts of two variables share than if the variables were independent.

The numbers behind a picture, apart from how they are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.coclustering import Coclustering
from sfumato.modl import Kind

Floats = NDArray[np.float64]

BY_CHANCE = 2.0
"""Rows that are off by up to so many standard deviations tell nothing."""
SLIGHT = 0.05
"""Nor do those that are off by less than a twentieth."""


def pair_counts(found: Coclustering, first: int, second: int) -> Floats:
    """Give the rows that each part of one variable shares with each part of another: first x second."""
    others = tuple(axis for axis in range(found.counts.ndim) if axis not in (first, second))
    counts: Floats = found.counts.sum(axis=others).astype(np.float64)
    return counts if first < second else counts.T


def departures(counts: Floats) -> Floats:
    """Give the ratio of rows to those expected, r_i c_j / n; 1 where they hardly differ, or not beyond chance.

    By chance, a count of which e are expected varies by about sqrt(e).

    >>> departures(np.array([[90.0, 10.0], [10.0, 90.0]]))
    array([[1.8, 0.2],
           [0.2, 1.8]])
    >>> departures(np.array([[5.0, 4.0], [4.0, 5.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    differs = np.abs(counts - expected) > np.maximum(BY_CHANCE * np.sqrt(expected), SLIGHT * expected)
    return np.asarray(np.divide(counts, expected, out=np.ones(counts.shape), where=differs))


def seriation(found: Coclustering, kinds: Sequence[Kind]) -> tuple[NDArray[np.int64], ...]:
    """Give an order of each variable's parts in which similar groups are neighbours; intervals keep theirs.

    Multiple correspondence analysis: parts that share more rows than expected are pulled together, by the residuals
    (n_ij - e_ij) / sqrt(e_ij) of all pairs of variables in one symmetric matrix. Its first eigenvector is the line on
    which all parts lie best; the sign that lets intervals ascend is taken.
    """
    sizes = found.grid.shape
    starts = np.concatenate([[0], np.cumsum(sizes)])
    residuals = np.zeros((starts[-1], starts[-1]))
    for first in found.informative:
        for second in found.informative:
            if first != second:
                counts = pair_counts(found, first, second)
                expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
                block = (counts - expected) / np.sqrt(expected)
                residuals[starts[first] : starts[first + 1], starts[second] : starts[second + 1]] = block
    line = np.linalg.eigh(residuals)[1][:, -1]
    places = [line[start:end] for start, end in pairwise(starts.tolist())]
    rising = sum(
        float(np.arange(size) @ (place - place.mean()))
        for size, place, kind in zip(sizes, places, kinds, strict=True)
        if kind == "numeric"
    )
    return tuple(
        np.arange(size) if kind == "numeric" else np.argsort(place if rising >= 0 else -place, kind="stable")
        for size, place, kind in zip(sizes, places, kinds, strict=True)
    )
