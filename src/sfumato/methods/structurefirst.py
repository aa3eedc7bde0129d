"""StructureFirst (Xu, Zhang, Xiao, Yang, Yu 2013): choose where bins end, privately, then count the bins.

The last bin's beginning is chosen first, with the best of all bins before it in mind; then the one before, and so on.
What a choice costs in privacy grows with the largest count, so a *public* bound of it must be given; larger counts are
taken for it while bins are chosen, never when they are counted.

Privacy. One choice for each border (`privacy/shapes.py`, LastBoundary: sensitivity 1), with equal parts of half of the
attribute's epsilon; then the bins, which are disjoint: one round with the other half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, get_args

from sfumato.geometry.contrasts import parts_of
from sfumato.methods.histograms import Histogram, Histograms
from sfumato.methods.method import number, one_of, optional, parameter, required
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Selection
from sfumato.privacy.shapes import LARGEST_COUNT, LastBoundary
from sfumato.privacy.tally import Cells, Tally

LEAVES_PER_BIN = 10
"""There is a bin for so many leaves, as published,"""
MOST_BINS = 32
"""but no more than this: every border is paid for."""


@dataclass(frozen=True, kw_only=True)
class StructureFirst(Histograms):
    """Bins of each attribute that were chosen privately, and their counts."""

    name: ClassVar[str] = "structurefirst"
    order: ClassVar[int] = 14
    summary: ClassVar[str] = "chooses bins of each attribute privately, then counts them (Xu et al. 2013)"
    additions: ClassVar[str] = "permute-and-flip"
    suits: ClassVar[str] = "an attribute of few steps, whose largest count is known in public"
    arithmetic: ClassVar[str] = "each attribute has a part: half for the borders of its bins, half for the bins"
    unsuited: ClassVar[str] = (
        "as hay; without a public bound of the largest count; with many bins, of which each border is paid for"
    )
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({"largest": 20, "bins": 3}, {"largest": 5})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({"largest": 20},)

    largest: int = required(
        "A public bound of the largest count of a leaf. It need not hold; far too large a one makes choices random.",
        read=number("Give the order of magnitude, from public knowledge.", most=LARGEST_COUNT),
    )
    bins: int | None = parameter(
        None,
        "The number of bins of each attribute; if not given, one for ten leaves (the paper), 32 at most.",
        read=optional(number("Give a number of bins.", least=2, most=512)),
    )
    selection: Selection = parameter(
        "permute-and-flip", "How one border of several is chosen.", read=one_of(get_args(Selection))
    )

    @classmethod
    def as_published(cls, *, largest: int) -> StructureFirst:
        """Make the method as its paper has it."""
        return cls(largest=largest, selection="exponential")

    def bins_of(self, one: Histogram) -> int:
        """The number of bins of an attribute: two at least, and no more than parts."""
        parts = len(parts_of(one.leaves)) - 1
        return min(max(self.bins or min(parts // LEAVES_PER_BIN, MOST_BINS), 2), parts)

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """Half for the borders, the same for each, and half for the bins."""
        borders = self.bins_of(one) - 1
        chosen = {f"border {borders - at} of {one.name}": Fraction(1, 2 * borders) for at in range(borders)}
        return chosen | {f"bins of {one.name}": Fraction(1, 2)}

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Choose borders from the last to the first, then count between them."""
        *borders, counts = self.rounds(one)
        parts = parts_of(one.leaves)
        found = [len(parts) - 1]
        for before, label in zip(range(len(borders), 0, -1), borders, strict=True):
            shape = LastBoundary(tally, one.attribute, found[-1], before, self.largest)
            found.append(before + int(meter.select_shape(shape, schedule[label], label, self.selection)[0]))
        cut = parts[[0, *reversed(found)]]
        bins = meter.measure(Cells(tally, one.attribute, cut), schedule[counts], counts)
        return (bins,), (f"{one.name}: {len(cut) - 1} bins",)
