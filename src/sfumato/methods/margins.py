"""One-way margins: how a method shares a part of the budget among them, and buys them.

They say how people are spread inside regions; the papers do without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.privacy.budget import Schedule
from sfumato.privacy.noisy import Margin
from sfumato.schema import Schema


def margin_parts(schema: Schema, budget: Fraction) -> Mapping[str, Fraction]:
    """Share a budget as the cube root of the leaves: least sum of leaves / epsilon^2."""
    weights = {
        name: round(4 * leaves ** (1 / 3))
        for name, leaves in zip(schema.predictors, schema.shape, strict=True)
        if leaves > 1
    }
    return {_label(name): budget * weight / sum(weights.values()) for name, weight in weights.items() if budget}


def buy_margins(
    meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally, unresolved: Collection[int]
) -> dict[int, Margin]:
    """Measure the margins of attributes that the regions do not resolve to the last leaf."""
    return {
        index: meter.measure(Cells(histograms, index), schedule[_label(name)], _label(name)).margin()
        for index, name in enumerate(schema.predictors)
        if _label(name) in schedule.parts and index in unresolved
    }


def _label(name: str) -> str:
    return f"margin of {name}"
