"""P-HPartition (Acs, Castelluccia, Chen 2012): divide an attribute's leaves in two, privately, again and again.

At each level every range is divided where its two parts are most even inside, or left whole if that is worth the noise
of a count saved. Then the ranges that are left are counted.

Privacy. The ranges of a level are disjoint, so all their choices are one debit (`privacy/shapes.py`, Bisections:
sensitivity 2). Levels share half of the attribute's epsilon; the other half counts the bins, in one round. What a count
costs, 1 / epsilon, is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, get_args

from sfumato.geometry.contrasts import parts_of
from sfumato.geometry.halving import height
from sfumato.methods.histograms import Histogram, Histograms
from sfumato.methods.method import number, one_of, optional, parameter
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Selection
from sfumato.privacy.shapes import Bisections
from sfumato.privacy.tally import Cells, Tally

MOST_LEVELS = 9
"""So often the most parts that there are can be halved."""


@dataclass(frozen=True, kw_only=True)
class PHPartition(Histograms):
    """Ranges of each attribute, found by dividing in two again and again, and their counts."""

    name: ClassVar[str] = "p-hpartition"
    order: ClassVar[int] = 15
    summary: ClassVar[str] = (
        "divides each attribute in two again and again, privately, then counts the ranges (Acs et al. 2012)"
    )
    additions: ClassVar[str] = "permute-and-flip"
    suits: ClassVar[str] = "an attribute with long even stretches, where no bound of counts is known"
    arithmetic: ClassVar[str] = (
        "each attribute has a part: half for the divisions, level by level, half for the ranges that are left"
    )
    unsuited: ClassVar[str] = "as hay; where neighbours differ: what is left whole is told as even"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({"depth": 2}, {})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    depth: int | None = parameter(
        None,
        "How often ranges are divided at most; if not given, as often as leaves can be halved, 9 times at most.",
        read=optional(number("Give a number of levels.", most=MOST_LEVELS)),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How one division of several is chosen.", read=one_of(get_args(Selection))
    )

    @classmethod
    def as_published(cls) -> PHPartition:
        """Make the method as its paper has it."""
        return cls(selection="exponential")

    def levels(self, leaves: int) -> int:
        """How often ranges of an attribute are divided."""
        return min(self.depth or MOST_LEVELS, height(len(parts_of(leaves)) - 1))

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """Half for the divisions, the same for each level, and half for the bins."""
        levels = self.levels(one.leaves)
        chosen = {f"division {level} of {one.name}": Fraction(1, 2 * levels) for level in range(1, levels + 1)}
        return chosen | {f"bins of {one.name}": Fraction(1, 2)}

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Divide level by level, then count; an attribute that was left whole is halved, so that it is told.

        Levels at which nothing is left to divide are not asked, and their budget counts the bins.
        """
        *divisions, counts = self.rounds(one)
        parts = parts_of(one.leaves)
        price = round(Bisections.unit.denominator / schedule[counts])
        ends = {0, len(parts) - 1}
        while divisions and (waiting := tuple((lo, hi) for lo, hi in pairwise(sorted(ends)) if hi - lo > 1)):
            label = divisions.pop(0)
            shape = Bisections(tally, one.attribute, waiting, price)
            chosen = meter.select_shape(shape, schedule[label], label, self.selection)
            ends |= {lo + at for (lo, _), at in zip(waiting, chosen.tolist(), strict=True)}
        if len(ends) == 2:
            ends.add((len(parts) - 1) // 2)
        cut, left = parts[sorted(ends)], sum((schedule[label] for label in divisions), Fraction(0))
        bins = meter.measure(Cells(tally, one.attribute, cut), payable(schedule[counts] + left), counts)
        return (bins,), (f"{one.name}: {len(cut) - 1} bins",)
