"""Releases built by hand, without a publication, and what it means that two are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sfumato import Release, Schema
from sfumato.partition import Grid
from sfumato.privacy.budget import Debit
from sfumato.privacy.noisy import Noisy
from sfumato.release.manifest import Manifest

PEOPLE = Schema.loads("""
name: people
confirmed: true
attributes:
  passport: {kind: identifier}
  job:
    kind: categorical
    root: Anyone
    taxonomy: {White-collar: [Engineer, Lawyer], Artist: [Dancer, Writer], Unknown: }
    missing: Unknown
  age: {kind: numeric, lower: 17, upper: 90, missing: Missing}
  wage: {kind: numeric, lower: 0, upper: 100, step: 30}
  height: {kind: numeric, lower: 0.5, upper: 2.4, step: 0.25}
  born: {kind: numeric, lower: 1990-01-01, upper: 1990-02-10, step: 7}
  gain: {kind: numeric, lower: 0, upper: 24, step: 10, points: [0, 13]}
  income: {kind: class, taxonomy: [low, high]}
""")
CUTS = ((0, 2, 4, 5), (0, 21, 75), (0, 4), (0, 3, 8), (0, 2, 6), (0, 1, 6))


def manifest_of(schema: Schema, cells: int, *, secure: bool = True) -> Manifest:
    debit = Debit("counts", "discrete Laplace", Fraction(1, 2), Fraction(1), cells)
    return Manifest("0.1.0", "publication", "test", {"h": 3}, (debit,), secure, schema.digest, ("one step",))


def release_of(
    schema: Schema = PEOPLE,
    cuts: tuple[tuple[int, ...], ...] | None = CUTS,
    counts: np.ndarray | None = None,
    margins: Mapping[int, np.ndarray] | None = None,
    *,
    secure: bool = True,
) -> Release:
    """Build a release by hand; without counts each cell has its own."""
    grid = Grid.whole(schema.shape) if cuts is None else Grid(cuts)
    shape = (grid.regions, len(schema.classes))
    given_counts = np.arange(math.prod(shape)).reshape(shape) - 3 if counts is None else counts.reshape(shape)
    return Release(
        schema,
        grid,
        Noisy(given_counts.astype(np.int64), Fraction(1, 2)),
        {attribute: Noisy(margin, Fraction(1, 10)) for attribute, margin in (margins or {}).items()},
        manifest_of(schema, given_counts.size, secure=secure),
    )


BOXES = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 5}
  b: {kind: categorical, taxonomy: {p: [x, y], q: [z, w]}}
  c: {kind: numeric, lower: 0, upper: 2}
  class: {kind: class, taxonomy: [no, yes]}
""")


def cuts(leaves: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(1, leaves - 1)).map(lambda inner: (0, *sorted(inner), leaves))


@st.composite
def box_releases(draw: st.DrawFn) -> Release:
    grid = draw(st.tuples(*map(cuts, BOXES.shape)))
    size = math.prod(len(cut) - 1 for cut in grid) * 2
    counts = draw(st.lists(st.integers(-50, 1000), min_size=size, max_size=size))
    numbers = [st.lists(st.integers(-5, 50), min_size=leaves, max_size=leaves) for leaves in BOXES.shape]
    margins = {at: np.array(draw(one), np.int64) for at, one in enumerate(numbers) if draw(st.booleans())}
    return release_of(BOXES, grid, np.array(counts), margins)


def assert_equal(one: Release, other: Release) -> None:
    assert (one.schema, one.partition) == (other.schema, other.partition)
    assert one.manifest == other.manifest.with_files(one.manifest.files or {})
    assert one.counts.epsilon == other.counts.epsilon
    assert one.counts.counts.dtype == np.int64
    assert np.array_equal(one.counts.counts, other.counts.counts)
    assert one.margins.keys() == other.margins.keys()
    for attribute, margin in one.margins.items():
        assert margin.epsilon == other.margins[attribute].epsilon
        assert np.array_equal(margin.counts, other.margins[attribute].counts)
