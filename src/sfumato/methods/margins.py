"""One-way margins: how a method shares a part of the budget among them, and buys them.

They say how people are spread inside regions; the papers do without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from sfumato.counts.meter import Meter
from sfumato.counts.tally import Cells, Tally
from sfumato.halving import borders, height, parts
from sfumato.methods.margin_levels import plan_levels
from sfumato.privacy.budget import Schedule
from sfumato.privacy.noisy import Margin
from sfumato.schema import Schema

FINENESS = 100
"""Weights are whole numbers, rounded to this part."""


def margin_parts(schema: Schema, budget: Fraction) -> Mapping[str, Fraction]:
    """Share a budget among all levels of all margins.

    An attribute gets as the cube root of its expected error: that has the least sum of error / epsilon^2.
    """
    weights = {
        _label(name, leaves, depth): max(round(FINENESS * share * plan_levels(leaves).error ** (1 / 3)), 1)
        for name, leaves in zip(schema.predictors, schema.shape, strict=True)
        if leaves > 1
        for depth, share in plan_levels(leaves).shares.items()
    }
    return {label: budget * weight / sum(weights.values()) for label, weight in weights.items() if budget}


def buy_margins(
    meter: Meter, schema: Schema, schedule: Schedule, histograms: Tally, unresolved: Collection[int]
) -> dict[int, Margin]:
    """Measure the margins of attributes that the regions do not resolve to the last leaf."""
    return {
        index: _buy(meter, name, schedule, histograms, index)
        for index, (name, leaves) in enumerate(zip(schema.predictors, schema.shape, strict=True))
        if index in unresolved and leaves > 1 and _label(name, leaves, height(leaves)) in schedule.parts
    }


def _buy(meter: Meter, name: str, schedule: Schedule, histograms: Tally, index: int) -> Margin:
    """Measure one margin, each level a round of its own: its parts are disjoint, and the next level's lie in them."""
    leaves = histograms.leaves(index)
    labels = {depth: _label(name, leaves, depth) for depth in plan_levels(leaves).shares}
    return Margin(
        leaves,
        tuple(
            meter.measure(Cells(histograms, index, borders(leaves, depth)), schedule[label], label).groups(depth)
            for depth, label in labels.items()
        ),
    )


def _label(name: str, leaves: int, depth: int) -> str:
    """Name a round so that no two attributes' rounds can be called the same."""
    return f"margin of {name}" if depth == height(leaves) else f"margin in {parts(leaves, depth)} parts of {name}"
