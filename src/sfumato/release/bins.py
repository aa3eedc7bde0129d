"""Parts of an attribute that are few enough to be read, decided by the schema alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.markup import shortened
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema

LONGEST_LABEL = 40
"""The most letters of a part's name."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Ranges of an attribute's leaves, side by side, and what they are called."""

    name: str
    column: Categorical | Numeric
    borders: Integers

    def __len__(self) -> int:
        """The number of parts."""
        return len(self.borders) - 1

    @property
    def numeric(self) -> bool:
        """Whether the parts follow one another like numbers."""
        return isinstance(self.column, Numeric)

    @property
    def labels(self) -> list[str]:
        """What the parts are called."""
        return [self._label(lo, hi) for lo, hi in itertools.pairwise(self.borders.tolist())]

    def _label(self, lo: int, hi: int) -> str:
        """Name a range as the attribute does, or by its first and last leaf where that would name all of them."""
        name = self.column.label(lo, hi)
        if isinstance(self.column, Categorical) and hi - lo > 1 and len(name) > LONGEST_LABEL:
            name = f"{self.column.label(lo, lo + 1)} … {self.column.label(hi - 1, hi)}"
        return shortened(name, LONGEST_LABEL)

    @property
    def edges(self) -> list[str]:
        """The numbers at which parts begin and end."""
        assert isinstance(self.column, Numeric)
        column = self.column
        written = [column.edge(cell) for cell in self.borders.tolist() if cell <= column.cells]
        missing = [] if column.missing is None else [shortened(column.missing, 12)]
        return [one if column.is_date else compact(one) for one in written] + missing

    def weights(self) -> list[Mapping[str, Floats]]:
        """Each part as weights of leaves."""
        leaves = np.arange(self.column.leaves)
        return [
            {self.name: ((leaves >= lo) & (leaves < hi)).astype(np.float64)}
            for lo, hi in zip(self.borders[:-1], self.borders[1:], strict=True)
        ]

    def of(self, codes: NDArray[np.integer]) -> Integers:
        """The part that holds each coded value."""
        return np.searchsorted(self.borders, codes, side="right") - 1


def bins_of(name: str, column: Categorical | Numeric, most: int) -> Bins:
    """Cut an attribute into so many parts at most.

    Cells of a grid are joined, as many in each part; missing values stay apart. Of a taxonomy the widest category is
    opened, again and again, as long as there is room; what is too wide to be opened is cut like a grid.

    >>> bins_of("age", Numeric(kind="numeric", lower=17, upper=90, missing="?"), 8).labels[-2:]
    ['[83, 91)', '?']
    >>> jobs = Categorical(taxonomy=[{"Artist": ["Dancer", "Writer"]}, {"Office": ["Clerk", "Boss"]}])
    >>> bins_of("job", jobs, 3).labels, bins_of("job", jobs, 2).labels
    (['Dancer', 'Writer', 'Office'], ['Artist', 'Office'])
    """
    if isinstance(column, Numeric):
        apart = column.missing is not None
        cells = _even(column.cells, max(most - apart, 1))
        return Bins(name, column, np.concatenate([cells, [column.leaves]]) if apart else cells)
    borders = {0, column.leaves}
    shut: set[tuple[int, int]] = set()
    while opened := [one for one in _ranges(borders) if one[1] - one[0] > 1 and one not in shut]:
        widest = max(opened, key=lambda one: one[1] - one[0])
        inner = {*(column.children(*widest) or ())} | {*widest}
        if len(borders | inner) - 1 <= most and len(inner) > 2:
            borders |= inner
        else:
            shut.add(widest)
    if len(borders) == 2:
        return Bins(name, column, _even(column.leaves, most))
    return Bins(name, column, np.array(sorted(borders), np.int64))


def every_bins(schema: Schema, most: int) -> list[Bins]:
    """The parts of every attribute, the class included."""
    return [
        bins_of(name, column, most) for name, column in schema.attributes.items() if not isinstance(column, Identifier)
    ]


def _ranges(borders: set[int]) -> list[tuple[int, int]]:
    ordered = sorted(borders)
    return list(itertools.pairwise(ordered))


def _even(leaves: int, most: int) -> Integers:
    """Borders of parts with as many leaves each, the last perhaps fewer."""
    step = -(-leaves // most)
    return np.append(np.arange(0, leaves, step), leaves).astype(np.int64)


def compact(number: str) -> str:
    """A large number in few letters.

    >>> compact("17"), compact("9500"), compact("1280000"), compact("-43500"), compact("0.25")
    ('17', '9,500', '1.28M', '-43.5k', '0.25')
    """
    value = float(number)
    for least, unit, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:.4g}"
