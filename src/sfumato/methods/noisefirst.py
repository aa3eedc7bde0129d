"""NoiseFirst (Xu, Zhang, Xiao, Yang, Yu 2013): count every leaf with noise, then merge neighbours that look alike.

Bins are those of least squared deviation from their means, less what noise alone would make of it; the mean of w leaves
errs by a w-th of their noise. How people lie inside a bin is known from the leaves up to their noise, and answers say
so.

Privacy. The leaves of an attribute are disjoint: one round each. Merging looks at noisy counts alone, so the release
holds these, and its model merges them (`models/merged.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.geometry.contrasts import parts_of
from sfumato.methods.histograms import Histogram, Histograms
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally


@dataclass(frozen=True, kw_only=True)
class NoiseFirst(Histograms):
    """Noisy leaves of each attribute, merged to bins afterwards."""

    name: ClassVar[str] = "noisefirst"
    order: ClassVar[int] = 13
    summary: ClassVar[str] = (
        "counts the leaves of each attribute, then merges neighbours that noise alone tells apart (Xu et al. 2013)"
    )
    suits: ClassVar[str] = "single values of an attribute whose neighbours are alike"
    arithmetic: ClassVar[str] = "each attribute has a part, all of it on its leaves; merging is free"
    unsuited: ClassVar[str] = "as hay; for long ranges, which add up the noise of all their leaves"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    @classmethod
    def as_published(cls) -> NoiseFirst:
        """Make the method as its paper has it."""
        return cls()

    @property
    def model(self) -> str:
        """The model that merges what was counted."""
        return "merged grid"

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """One round."""
        return {f"leaves of {one.name}": Fraction(1)}

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Count the leaves or, where there are very many, ranges of them."""
        (label,) = self.rounds(one)
        cells = Cells(tally, one.attribute, parts_of(one.leaves))
        return (meter.measure(cells, schedule[label], label),), ()
