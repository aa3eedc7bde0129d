"""What the benchmarks on Adult share: the splits of the table, and how a mean is written with its standard error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import CodedRows
from sfumato.evaluate.runs import mean_and_error
from sfumato.papers.runs import adult, coded, divided


def splits(run: int) -> tuple[pa.Table, CodedRows]:
    """Give a random 2/3 of Adult, and the other third coded; a run has the same split everywhere."""
    train, test = divided("2/3", run)
    return train, coded(test, adult()[1])


def mean_of(values: Sequence[float] | NDArray[np.float64], digits: int = 2) -> str:
    """Write a mean with its standard error, if there are several runs."""
    mean, error = mean_and_error(values)
    return f"{mean:{digits + 4}.{digits}f}" + ("" if error is None else f" ({error:.{digits}f})")
