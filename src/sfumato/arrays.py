"""Types of arrays, and a few operations on them, that all rooms share."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Codes = NDArray[np.unsignedinteger]
"""Leaf codes of rows, in the smallest type that holds them."""
CodedRows = Mapping[str, NDArray[Any]]
"""Leaf codes of rows, by attribute."""
Array = TypeVar("Array", bound=NDArray[Any])

NONE = -1
"""Stands in an array of numbers where there is none: the parent of a root, for example."""
LARGEST_KEY = 2**62
"""Keys of rows stay below this, so that they fit in 64 bits."""


def integers(numbers: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Turn numbers into Python's own integers: NumPy's small ones equal them, and wrap when they are multiplied."""
    given = tuple(numbers)
    return given if {*map(type, given)} <= {int} else tuple(map(operator.index, given))  # type: ignore[return-value]


def read_only(array: Array) -> Array:
    """Lock an array that was just made, so that what was checked once stays as it was."""
    array.setflags(write=False)
    return array


def frozen(array: Integers) -> Integers:
    """A copy of an array, in 64 bits, that nobody can change."""
    return read_only(np.array(array, np.int64))


def row_keys(columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> Integers:
    """Number rows so that equal rows, and only those, share a number; column i holds numbers below `sizes[i]`.

    Columns are the digits of one number. Where it would become too large, the number so far is replaced by its rank,
    which is below the number of rows. The last digit is always the key modulo the last size.

    >>> row_keys([np.array([1, 0, 1]), np.array([2, 2, 2])], [2, 3]).tolist()
    [5, 2, 5]
    >>> row_keys([np.array([7, 0, 7]), np.array([2, 2, 2])], [2**40, 2**40]).tolist()
    [1099511627778, 2, 1099511627778]
    """
    keys, bound = np.zeros(len(columns[0]), np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if bound > LARGEST_KEY // size:
            values, keys = np.unique(keys, return_inverse=True)
            bound = len(values)
        keys = keys * size + column
        bound *= size
    return keys


def packed_rows(columns: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """The bytes of rows, a line for each: rows whose columns are equal, and only those, have equal bytes.

    >>> packed_rows([np.array([1, 2], np.uint8), np.array([3, 513], "<u2")]).tolist()
    [[1, 3, 0], [2, 1, 2]]
    """
    pieces = [np.ascontiguousarray(one).view(np.uint8).reshape(len(one), one.itemsize) for one in columns]
    return np.concatenate(pieces, axis=1)


def unpacked_rows(rows: NDArray[np.uint8], kinds: Sequence[str]) -> list[NDArray[Any]]:
    """The columns of packed rows, by their types."""
    ends = np.cumsum([np.dtype(kind).itemsize for kind in kinds])
    pieces = np.split(rows, ends[:-1], axis=1)
    return [
        np.ascontiguousarray(piece).view(kind).reshape(len(rows)) for piece, kind in zip(pieces, kinds, strict=True)
    ]
