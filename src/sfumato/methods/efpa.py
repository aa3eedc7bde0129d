"""EFPA (Acs, Castelluccia, Chen 2012): an attribute's histogram as a sum of few waves.

The number of waves is chosen privately: more of them tell more, and each makes all noisier. Waves are cosines, which
are real numbers: no phase is left that could be kept exact. The authors' own code keeps the phases of its Fourier
coefficients, which are those of the true counts, and is not private.

Privacy. The choice (`privacy/shapes.py`, WavesKept: sensitivity 1) gets half of the attribute's epsilon. Then *every*
kept wave is measured with noise, the first one, everyone, included: cosines are rounded to whole numbers, one record
adds its leaf's column of them, and the noise is for the largest sum of a column (`privacy/tally.py`, Contrasts).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, get_args

import numpy as np

from sfumato.geometry.contrasts import Waves, cosines, parts_of
from sfumato.methods.histograms import Histogram, Histograms
from sfumato.methods.method import one_of, parameter
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Selection
from sfumato.privacy.shapes import WavesKept
from sfumato.privacy.tally import Contrasts, Tally


@lru_cache(maxsize=64)
def noise_lengths(parts: int) -> tuple[float, ...]:
    """How long the noise of 1, 2, ... waves is, for an epsilon of 1: as a vector of the parts' people.

    The columns of k orthonormal waves sum to r at most, so each gets noise of standard deviation sqrt(2) r, and k
    orthogonal ones of that length have sqrt(2 k) r together.
    """
    scale = np.full(parts, math.sqrt(2 / parts))
    scale[0] = math.sqrt(1 / parts)
    reach = np.cumsum(np.abs(scale[:, None] * cosines(parts)), axis=0).max(axis=1)
    return tuple((np.sqrt(2 * np.arange(1, parts + 1)) * reach).tolist())


@dataclass(frozen=True, kw_only=True)
class EFPA(Histograms):
    """A few waves of each attribute, each with noise."""

    name: ClassVar[str] = "efpa"
    order: ClassVar[int] = 16
    summary: ClassVar[str] = (
        "measures the first few cosine waves of each attribute, as many as pay off (Acs et al. 2012)"
    )
    additions: ClassVar[str] = "real waves, every one with noise; permute-and-flip"
    suits: ClassVar[str] = "an attribute that rises and falls smoothly"
    arithmetic: ClassVar[str] = "each attribute has a part: half for the number of waves, half for the waves"
    unsuited: ClassVar[str] = "as hay; on peaks and on values without an order, which no few waves tell"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    selection: Selection = parameter(
        "permute-and-flip", "How the number of waves is chosen.", read=one_of(get_args(Selection))
    )

    @classmethod
    def as_published(cls) -> EFPA:
        """Make the method as its paper has it, with waves that have no phase."""
        return cls(selection="exponential")

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """Half for the choice, half for the waves."""
        return {f"waves kept of {one.name}": Fraction(1, 2), f"waves of {one.name}": Fraction(1, 2)}

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Choose how many waves, then measure them."""
        choice, waves = self.rounds(one)
        lengths = noise_lengths(len(parts_of(one.leaves)) - 1)
        unit = WavesKept.unit.denominator / float(schedule[waves])
        shape = WavesKept(tally, one.attribute, tuple(round(length * unit) for length in lengths))
        kept = 1 + int(meter.select_shape(shape, schedule[choice], choice, self.selection)[0])
        found = meter.measure(Contrasts(tally, one.attribute, Waves(one.leaves, kept)), schedule[waves], waves)
        return (found,), (f"{one.name}: {kept} waves",)
