"""Haar wavelets (Xiao, Wang, Gehrke 2010): what the first half of every part has more than the second.

Everyone, and the differences of halves at every depth, tell all leaves; a range rests on two differences of each depth
at most. Attributes with few leaves are counted leaf by leaf, as in Privelet+: there wavelets have nothing to gain.

Privacy, in integers. The paper's coefficient of a part of m leaves is the mean of its first half less that of the
second, over 2: (L - R) / m for sums L and R. Its noise is divided by the weight m, so it is the noise of L - R itself,
a whole number, and the same at all depths. A record lies in one half of one part at each depth and moves one difference
by 1: a depth is one round (`privacy/tally.py`, Contrasts). With everyone there are 1 + log2 m rounds, the paper's
generalized sensitivity, and each has epsilon over that many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.geometry.contrasts import Halves
from sfumato.geometry.halving import height, parts
from sfumato.methods.histograms import Histogram, Histograms, histograms_of
from sfumato.methods.method import number, parameter
from sfumato.privacy.budget import Schedule
from sfumato.privacy.measurements import Measurement
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Contrasts, Tally
from sfumato.schema.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Privelet(Histograms):
    """Everyone, and the differences of halves at every depth of each attribute."""

    name: ClassVar[str] = "privelet"
    order: ClassVar[int] = 12
    summary: ClassVar[str] = (
        "measures Haar wavelets of each long attribute, and the leaves of short ones (Xiao, Wang, Gehrke 2010)"
    )
    additions: ClassVar[str] = "whole numbers from end to end; any number of leaves"
    suits: ClassVar[str] = "ranges of a long attribute, one attribute at a time; Hay's rival with the same reach"
    arithmetic: ClassVar[str] = "equal parts for every depth of every attribute, and one for everyone"
    unsuited: ClassVar[str] = "as hay; on short attributes, which it counts leaf by leaf"
    EXAMPLES: ClassVar[tuple[Mapping[str, Any], ...]] = ({"shortest": 4}, {})
    PUBLISHED: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    shortest: int = parameter(
        16,
        "Attributes with fewer leaves than this are counted leaf by leaf (Privelet+); 2 makes wavelets of all.",
        read=number("Give a number of leaves.", least=2),
    )

    @classmethod
    def as_published(cls) -> Privelet:
        """Make the method as its paper has it for one attribute: wavelets, whatever its length."""
        return cls(shortest=2)

    def depths(self, leaves: int) -> range:
        """The depths at which halves are compared; none where the leaves are counted."""
        return range(height(leaves) if leaves >= self.shortest else 0)

    def share(self, schema: Schema, one: Histogram) -> Fraction:
        """As many equal parts as rounds; the count of everyone is one more."""
        every = sum(len(self.rounds(each)) for each in histograms_of(schema))
        return Fraction(len(self.rounds(one)), every + 1)

    def rounds(self, one: Histogram) -> Mapping[str, Fraction]:
        """All depths the same."""
        depths = self.depths(one.leaves)
        labels = [self._label(one, depth) for depth in depths] or [f"leaves of {one.name}"]
        return {label: Fraction(1, len(labels)) for label in labels}

    @staticmethod
    def _label(one: Histogram, depth: int) -> str:
        return f"halves of {parts(one.leaves, depth)} parts of {one.name}"

    def ask(
        self, meter: Meter, tally: Tally, one: Histogram, schedule: Schedule
    ) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
        """Measure depth by depth, or the leaves."""
        asked: list[Cells | Contrasts] = [
            Contrasts(tally, one.attribute, Halves(one.leaves, depth)) for depth in self.depths(one.leaves)
        ]
        asked = asked or [Cells(tally, one.attribute)]
        return tuple(
            meter.measure(each, schedule[label], label) for each, label in zip(asked, self.rounds(one), strict=True)
        ), ()
