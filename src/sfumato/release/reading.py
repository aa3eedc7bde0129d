"""Tables and numbers from files that anyone may have forged: whole numbers and positive fractions, or a refusal.

Apart, because every part of a release's folder is read with the same suspicion: also that a few bytes may stand for
more rows than any memory holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import ReleaseError
from sfumato.exact import read_fraction
from sfumato.release.manifest import AGAIN

MOST_VALUES = 1 << 24
"""A table of a release may have so many values, however short its file is."""
VALUES_PER_BYTE = 64
"""And so many more for each byte of it: noise cannot be packed closer."""
CODECS = {"ZSTD", "SNAPPY", "UNCOMPRESSED"}
"""What cannot make gigabytes out of kilobytes: zstd takes four bytes at least for each 128 kB."""


def read_columns(path: Path, names: Sequence[str], width: int = 0) -> pa.Table:
    """Read columns of a Parquet file, unless it would take far more memory than the file has bytes.

    `width` is how many values each row will take in memory, where that is more than the columns that are read.
    """
    with pq.ParquetFile(path, read_dictionary=list(names)) as file:
        facts = file.metadata
        values = facts.num_rows * max(len(names), width)
        groups = [facts.row_group(at) for at in range(facts.num_row_groups)]
        if values > MOST_VALUES + VALUES_PER_BYTE * path.stat().st_size:
            raise ReleaseError(f"{path.name} must not have more values than its size can hold", AGAIN)
        if any(group.column(at).compression not in CODECS for group in groups for at in range(facts.num_columns)):
            raise ReleaseError(f"{path.name} must be packed as Sfumato packs it", AGAIN)
        return file.read(columns=list(names))


def equal_to(column: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    """Tell which values of a column are a name; however long the others are, each is compared once."""
    if not pa.types.is_dictionary(column.type) or column.null_count:
        raise ReleaseError("the release's margins must have the names of attributes", AGAIN)
    found = [np.zeros(0, np.bool_)]
    for chunk in column.chunks:
        same = np.array([one.as_py() == name for one in chunk.dictionary], np.bool_)
        found.append(same[chunk.indices.to_numpy()])
    return np.concatenate(found)


def whole_numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Read a column of 64-bit whole numbers without gaps."""
    if not pa.types.is_int64(column.type) or column.null_count:
        raise ReleaseError("the release's counts must be whole numbers", AGAIN)
    return np.asarray(column.to_numpy())


def read_rate(text: Any) -> Fraction:
    """Read the rate of a noise."""
    rate = read_fraction(text)
    if rate is None or rate <= 0:
        raise ReleaseError("the release's epsilons must be positive fractions", AGAIN)
    return rate
