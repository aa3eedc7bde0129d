"""Range counts from a release, each with the deviation that the noise of the counts gives it.

An answer is a weighted sum of the regions' estimates, so the variance from their noise is known exactly, no matter how
many regions. What that does not cover, spreading people inside regions (and the noise of the margins by which they are
spread), is told beside it: how much of the answer rests on it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.release.covers import Sums

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]

Z95 = 1.959963984540054
Cause = Literal["noise", "sampling"]


@dataclass(frozen=True)
class Estimate:
    """A count, its standard deviation from noise, and how much of it rests on spreading people inside regions."""

    value: float
    stddev: float
    assumed: float
    """The part of the value that comes from regions which the condition covers only partly."""
    aligned: bool
    """Whether the condition covers every region wholly or not at all, so that nothing is assumed."""
    cause: Cause = "noise"
    """What the deviation comes from."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the noise or the sampling, in the normal approximation."""
        return self.value - Z95 * self.stddev, self.value + Z95 * self.stddev

    def __str__(self) -> str:
        """Write value and half the 95 % interval, and what it leaves out."""
        spread = "" if self.aligned else f"; {self.assumed:,.0f} rests on spreading inside groups"
        if not self.stddev:
            return f"{self.value:,.0f} (no noise{spread})"
        named = " for sampling, no noise" if self.cause == "sampling" else " for noise" if spread else ""
        return f"{self.value:,.0f} ± {Z95 * self.stddev:,.0f} (95 %{named}{spread})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many estimates, in the order of their conditions."""

    conditions: tuple[str, ...]
    values: Floats
    stddevs: Floats
    assumed: Floats
    aligned: Booleans
    cause: Cause = "noise"

    @classmethod
    def of(cls, conditions: Sequence[str], sums: Sums, classes: Floats, cause: Cause) -> Answers:
        """Weigh the classes, conditions x classes, which err apart."""
        values, resolved = ((one * classes).sum(axis=1) for one in (sums.values, sums.resolved))
        variances = (np.maximum(sums.variances, 0) * classes**2).sum(axis=1)
        assumed = np.where(sums.aligned, 0.0, values - resolved)
        return cls(tuple(conditions), values, np.sqrt(variances), assumed, sums.aligned, cause)

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put answers one after the other."""
        arrays = ("values", "stddevs", "assumed", "aligned")
        joined = [np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in arrays]
        conditions = tuple(condition for part in parts for condition in part.conditions)
        cause = parts[0].cause if parts else "noise"
        return cls(conditions, joined[0], joined[1], joined[2], joined[3].astype(np.bool_), cause)

    def __len__(self) -> int:
        """Count them."""
        return len(self.values)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Estimate: ...

    @overload
    def __getitem__(self, number: slice) -> Answers: ...

    def __getitem__(self, number: SupportsIndex | slice) -> Estimate | Answers:
        """Give one of them, or those of a slice."""
        if isinstance(number, slice):
            arrays = (self.values[number], self.stddevs[number], self.assumed[number], self.aligned[number])
            return Answers(self.conditions[number], *arrays, self.cause)
        number = operator.index(number)
        value, stddev, assumed = (float(one[number]) for one in (self.values, self.stddevs, self.assumed))
        return Estimate(value, stddev, assumed, bool(self.aligned[number]), self.cause)

    def __iter__(self) -> Iterator[Estimate]:
        """Give one after the other."""
        return (self[number] for number in range(len(self)))

    @property
    def table(self) -> pa.Table:
        """All of it as a table, with the 95 % interval for the noise."""
        return pa.table(
            {
                "condition": pa.array(self.conditions, pa.string()),
                "count": self.values,
                "stddev": self.stddevs,
                "low": self.values - Z95 * self.stddevs,
                "high": self.values + Z95 * self.stddevs,
                "assumed": self.assumed,
                "aligned": self.aligned,
            }
        )
