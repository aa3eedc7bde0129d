"""Histograms to co-cluster, and every grid of those that are small enough."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato import datasets
from sfumato.modl.criterion import Kind, Variant
from sfumato.modl.grid import Labels, Table

CATEGORICAL: Kind = "categorical"
NUMERIC: Kind = "numeric"

SQUARE = np.array([[30, 2], [3, 25]])
MIXED = np.stack(
    [
        [[20, 18, 1, 0], [15, 21, 2, 1], [1, 2, 4, 3]],
        [[3, 2, 2, 1], [2, 1, 3, 2], [2, 1, 22, 25]],
    ],
    axis=2,
)
MIXED_KINDS = (CATEGORICAL, NUMERIC, CATEGORICAL)
ADULT = ("age", "workclass", "education", "relationship", "sex")
ADULT_KINDS = (NUMERIC, CATEGORICAL, CATEGORICAL, CATEGORICAL, CATEGORICAL)


def adult() -> NDArray[np.int64]:
    """Count the 46,043 rows of Adult that are complete in five attributes."""
    table = datasets.adult(complete=False).table.select(ADULT).drop_null()
    codes = [np.unique(np.array(table[name].to_pylist()), return_inverse=True)[1] for name in ADULT]
    shape = tuple(int(column.max()) + 1 for column in codes)
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)


def planted(
    shape: Sequence[int], parts: Sequence[int], total: int, kinds: Sequence[Kind], seed: int = 1
) -> tuple[NDArray[np.int64], Labels]:
    """Draw a histogram from a grid of random density, with random shares of the values inside their parts."""
    rng = np.random.default_rng(seed)
    labels = []
    for values, number, kind in zip(shape, parts, kinds, strict=True):
        part = np.arange(values) * number // values
        labels.append(part if kind == NUMERIC else rng.permutation(part))
    density = rng.gamma(0.5, size=parts)[np.ix_(*labels)]
    for axis, values in enumerate(shape):
        shares = rng.gamma(2.0, size=values)
        density = density * shares.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return rng.multinomial(total, (density / density.sum()).ravel()).reshape(shape), tuple(labels)


def table_of(histogram: object, kinds: Sequence[Kind], variant: Variant = "boulle2010") -> Table:
    """Give a table of exact counts."""
    return Table.of(np.asarray(histogram), kinds, variant, 1.0)


def groupings(values: int) -> Iterator[NDArray[np.int64]]:
    """Give every partition of values into groups, each once: a value joins a group that exists, or opens the next."""
    for labels in itertools.product(*(range(place + 1) for place in range(values))):
        if all(label <= max(labels[:place], default=-1) + 1 for place, label in enumerate(labels)):
            yield np.array(labels)


def cuts(values: int) -> Iterator[NDArray[np.int64]]:
    """Give every partition of values into intervals."""
    for borders in itertools.product((0, 1), repeat=values - 1):
        yield np.cumsum([0, *borders])


def all_grids(table: Table) -> Iterator[Labels]:
    """Give every grid of a small table."""
    ways = [
        list((cuts if kind == NUMERIC else groupings)(values))
        for kind, values in zip(table.kinds, table.counts.shape, strict=True)
    ]
    return itertools.product(*ways)
