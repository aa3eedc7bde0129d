"""Numbers from files that anyone may have forged: whole numbers and positive fractions, or a refusal.

Apart, because every part of a release's folder is read with the same suspicion.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import ReleaseError
from sfumato.exact import read_fraction
from sfumato.release.manifest import AGAIN


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
