"""Releases whose regions are groups of any leaves, built by hand, and their answers worked out leaf by leaf."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from handmade import BOXES, drafted, manifest_of, mass_by_hand, random_margins, region_measurement
from margins_by_hand import SEEDS, variance_by_hand
from sfumato import Release
from sfumato.geometry.grid import Grid
from sfumato.models.margins import Margin
from sfumato.privacy.measurements import Noisy

Groups = list[list[list[int]]]
"""For each attribute its groups, each the codes of its leaves."""

SCATTERED: Groups = [[[0, 1, 4], [2, 3, 5]], [[0, 3], [1, 2]], [[0, 1, 2]]]
"""Groups of BOXES' leaves that are no neighbours."""
CELLS = math.prod(BOXES.shape)


def groups_of(
    groups: Groups = SCATTERED,
    counts: np.ndarray | None = None,
    histogram: np.ndarray | None = None,
    margins: Mapping[int, Margin] | None = None,
    rates: tuple[Fraction, Fraction] = (Fraction(1, 2), Fraction(1, 3)),
) -> Release:
    """Build a release of groups; without counts each group and each cell has its own."""
    grid = Grid.of_groups(groups)
    own = np.arange(grid.regions * 2) * 40 - 3 if counts is None else counts
    cells = np.arange(CELLS * 2) % 7 - 1 if histogram is None else histogram
    fine = Noisy.even(cells.reshape(CELLS, 2).astype(np.int64), rates[1])
    draft = drafted(grid, Noisy.even(own.reshape(grid.regions, 2).astype(np.int64), rates[0]), margins)
    histogram = region_measurement(Grid.finest(BOXES.shape), fine, "histogram")
    both = replace(draft, measurements=(histogram, *draft.measurements), model="coclusters")
    return Release(BOXES, both, manifest_of(BOXES, grid.regions * 2))


def random_groups(rng: np.random.Generator, leaves: int) -> list[list[int]]:
    labels = rng.integers(0, 4, leaves).tolist()
    return [[leaf for leaf in range(leaves) if labels[leaf] == label] for label in dict.fromkeys(labels)]


@st.composite
def group_releases(draw: st.DrawFn) -> Release:
    rng = draw(SEEDS)
    groups = [random_groups(rng, leaves) for leaves in BOXES.shape]
    counts = rng.integers(-50, 1000, math.prod(map(len, groups)) * 2)
    rates = [Fraction(int(rng.integers(1, 61)), 20) for _ in range(2)]
    return groups_of(groups, counts, rng.integers(-9, 30, CELLS * 2), random_margins(rng), (rates[0], rates[1]))


def leaves_by_hand(release: Release) -> list[tuple[list[int], ...]]:
    """Give the leaves of every region, one list for each attribute."""
    grid = release.regions
    assert isinstance(grid, Grid)
    groups = [
        [grid.order_of(at)[lo:hi].tolist() for lo, hi in itertools.pairwise(cut)] for at, cut in enumerate(grid.cuts)
    ]
    return list(itertools.product(*groups))


def estimates_by_hand(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """Give every region's mean of both counts by inverse variance, and its variance."""
    assert release.model.histogram is not None
    cells = release.model.histogram.counts.reshape(*BOXES.shape, 2)
    own, single = (variance_by_hand(noisy.rates[0]) for noisy in (release.model.counts, release.model.histogram))
    values, variances = [], []
    for count, leaves in zip(release.model.counts.counts, leaves_by_hand(release), strict=True):
        sums = sum(cells[cell] for cell in itertools.product(*leaves))
        precision = np.array([1 / own, 1 / (single * math.prod(map(len, leaves)))])
        values.append((precision[0] * count + precision[1] * sums) / precision.sum())
        variances.append(1 / precision.sum())
    return np.array(values), np.array(variances)


def weights_by_hand(release: Release, box: Mapping[str, tuple[int, int]]) -> np.ndarray:
    """Give the weight of every region and class in a box, leaf by leaf."""
    weights = np.zeros((release.groups, 2))
    lo_class, hi_class = box.get("class", (0, 2))
    for region, leaves in enumerate(leaves_by_hand(release)):
        inside = 1.0
        for attribute, (name, group) in enumerate(zip(BOXES.predictors, leaves, strict=True)):
            mass = mass_by_hand(release, attribute)
            lo, hi = box.get(name, (0, len(mass)))
            inside *= mass[[leaf for leaf in group if lo <= leaf < hi]].sum() / mass[group].sum()
        weights[region, lo_class:hi_class] = inside
    return weights
