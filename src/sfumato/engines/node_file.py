"""Where rows stand in a tree, in a file: four bytes for each, read and written a stretch at a time.

It is no part of memory, so that its size is bounded by the disk alone; a full disk is an `OSError`.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NODE = np.dtype(np.int32)


class NodeFile:
    """The nodes of all rows, by the number of the row; several threads may use it, each for rows of its own."""

    def __init__(self, path: Path) -> None:
        """Make the file, for its owner alone."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

    def close(self) -> None:
        """Let it go; the folder in which it lies is removed with it."""
        os.close(self._file)

    def read(self, start: int, rows: int) -> NDArray[np.int32]:
        """Give the nodes of some rows."""
        nodes = np.empty(rows, NODE)
        left, at = nodes.view(np.uint8).data, start * NODE.itemsize
        while left:
            if not (got := os.preadv(self._file, [left], at)):
                raise EOFError
            left, at = left[got:], at + got
        return nodes

    def write(self, start: int, nodes: NDArray[np.int32]) -> None:
        """Keep the nodes of some rows."""
        left, at = nodes.view(np.uint8).data, start * NODE.itemsize
        while left:
            put = os.pwrite(self._file, left, at)
            left, at = left[put:], at + put
