"""One picture for every measure of a comparison: a curve for each method over epsilon, and what raw rows teach."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from sfumato.compare.measures import MEASURES, Measure
from sfumato.compare.results import Mean, Results
from sfumato.pictures.curves import Curve, Panel, draw_panels

LEVELS = {"raw data": "raw data (BA)", "most frequent class": "most frequent class (LA)"}
NOTE = "Releases made with known seeds: no guarantee.\nWorked out from raw data: for the holder's eyes, not private."


def draw_gallery(results: Results, folder: Path) -> None:
    """Draw every measure that some method has."""
    means = results.means()
    for name in results.measures:
        panel = panel_of(results, MEASURES[name], [one for one in means if one.measure == name])
        draw_panels(folder / f"{MEASURES[name].file}.png", name, [panel], note=NOTE)


def panel_of(results: Results, measure: Measure, means: Sequence[Mean]) -> Panel:
    """Gather the curves of a measure, and the levels that it has."""
    curves = [
        _curve(one.label, [mean for mean in means if mean.method == one.label], results.contest.epsilons)
        for one in results.contest.contestants
    ]
    levels = [(LEVELS[one.method], one.mean) for one in means if one.method in LEVELS]
    return Panel(
        title=f"{measure.better} is better",
        quantity="epsilon",
        measure=measure.axis,
        curves=tuple(curve for curve in curves if curve.at),
        levels=tuple(levels),
        logarithmic=(True, measure.logarithmic and all(one.mean > 0 for one in means)),
    )


def _curve(label: str, means: Sequence[Mean], epsilons: Sequence[Fraction]) -> Curve:
    """Place means over epsilon; a method without one is the same everywhere."""
    places = {
        at: one
        for one in means
        for at in ([float(Fraction(one.epsilon))] if one.epsilon is not None else map(float, epsilons))
    }
    ordered = [(at, places[at]) for at in sorted(places)]
    several = any(one.standard_error is not None for _, one in ordered)
    errors = tuple(one.standard_error or 0.0 for _, one in ordered) if several else None
    return Curve(label, tuple(at for at, _ in ordered), tuple(one.mean for _, one in ordered), errors)
