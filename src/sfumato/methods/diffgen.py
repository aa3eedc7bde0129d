"""DiffGen: generalize one attribute value at a time, chosen privately, then count the groups with noise.

Mohammed, Chen, Fung, Yu, "Differentially Private Data Release for Data Mining", KDD 2011. A candidate's score depends
on its own attribute's (leaf x class) histogram only, so every choice is played on one tally of d histograms, and one
more pass counts the groups: two passes in all, whatever the number of specializations.

Privacy. Choices, margins and counts are rounds of the meter, one after the other, and their debits sum to at most
epsilon (sequential composition); the halves of a split interval hold different records and share a debit (parallel
composition). Which rounds are asked depends on earlier answers only, so what they leave over may be spent on the
counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.geometry.candidates import describe_all
from sfumato.geometry.grid import Grid
from sfumato.methods.cutting import PUBLISHED_SCORES, Cutting, read_number_of_steps
from sfumato.methods.margins import buy_margins
from sfumato.methods.method import Draft, refuse_other
from sfumato.privacy.budget import Schedule, payable
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DiffGen(Cutting):
    """Single-dimensional generalization for classification."""

    name: ClassVar[str] = "diffgen"

    @classmethod
    def as_published(cls, *, specializations: int | str = 10, score: str = "max") -> DiffGen:
        """Give the method exactly as the paper has it: with its scores max or gain."""
        refuse_other("score", score, PUBLISHED_SCORES)
        return cls(
            specializations=read_number_of_steps(specializations),
            score=score,
            choice="separate",
            selection="exponential",
            margins=Fraction(0),
            leftover=False,
        )

    def publish(self, meter: Meter, schema: Schema, schedule: Schedule) -> Draft:
        """Choose the cuts, measure the margins, count the groups."""
        histograms = Tally(Grid.whole(schema.shape), len(schema.classes), tuple(range(len(schema.shape))))
        growth = self.grow(meter, schema, schedule, histograms)
        margins = buy_margins(meter, schema, schedule, histograms, growth.grid.unresolved)
        spend = payable(meter.left) if self.leftover else schedule["counts"]
        counts = meter.measure(Cells(Tally(growth.grid, len(schema.classes))), spend, "counts")
        return Draft(growth.grid, counts, margins, describe_all(schema.predictors, growth.steps))
