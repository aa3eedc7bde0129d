"""Releases of networks built by hand: margins by class, and pairs of attributes in groups of bins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from handmade import BOXES, manifest_of
from sfumato import Release
from sfumato.geometry.grid import Grid
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question

CLASSES = len(BOXES.classes)


def measured(label: str, grid: Grid, counts: np.ndarray, rate: Fraction, classes: int = CLASSES) -> Measurement:
    """Say that regions of a grid were counted."""
    noisy = Noisy.even(counts.astype(np.int64).reshape(grid.regions, classes), rate)
    return Measurement(label, Question(grid, None, classes), noisy)


def network_of(seed: int = 0) -> Release:
    """Release a random network: some attributes in parts, with their leaves besides, and some pairs."""
    rng, shape = np.random.default_rng(seed), BOXES.shape
    people = int(rng.integers(20, 900))
    found = [measured("size", Grid.whole(shape), np.array([people]), Fraction(1, 9), 1)]
    bins = {}
    for at, leaves in enumerate(shape):
        parts = np.sort(np.unique(rng.integers(0, max(leaves - 1, 1), leaves), return_inverse=True)[1])
        grid = Grid.grouped(shape, {at: parts})
        bins[at] = rng.permutation(int(parts.max()) + 1)[parts] // int(rng.integers(1, 3))
        if len(grid.split_attributes):
            found.append(
                measured(f"parts of {at}", grid, random_counts(rng, grid.regions * CLASSES, people), Fraction(1, 8))
            )
        if len(grid.split_attributes) and grid.regions < leaves:
            every = Grid.grouped(shape, {at: np.arange(leaves)})
            found.append(measured(f"leaves of {at}", every, random_counts(rng, leaves, people), Fraction(1, 20), 1))
    if len(found) == 1:
        return network_of(seed + 1)
    several = [at for at, one in bins.items() if one.max() > 0]
    for number in range(int(rng.integers(0, 3)) if len(several) > 1 else 0):
        a, b = sorted(rng.choice(several, 2, replace=False).tolist())
        groups = {
            at: np.unique(rng.integers(0, 3, int(bins[at].max()) + 1)[bins[at]], return_inverse=True)[1]
            for at in (a, b)
        }
        grid, classes = Grid.grouped(shape, groups), int(rng.choice([1, CLASSES]))
        if grid.split_attributes == (a, b):
            counts = random_counts(rng, grid.regions * classes, people)
            found.append(measured(f"pair {number}", grid, counts, Fraction(1, 15), classes))
    draft = Draft(Grid.grouped(shape, bins), tuple(found), "network")
    return Release(BOXES, draft, manifest_of(BOXES, draft.cells))


def random_counts(rng: np.random.Generator, cells: int, people: int) -> np.ndarray:
    """Count people by lot, with a little noise."""
    shares = rng.dirichlet(np.full(cells, 0.7))
    return np.rint(people * shares + rng.laplace(0, 4, cells)).astype(np.int64)


def network_releases() -> st.SearchStrategy[Release]:
    """Any network."""
    return st.integers(0, 2**32).map(network_of)
