"""Curves of a measure over a quantity, side by side in panels, told apart without colour: by marker and by line.

Every second marker is hollow and larger, so that one on top of another hides it not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.pictures.canvas import write_picture

COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b2", "#937860", "#64b5cd", "#8c8c8c", "#da8bc3")
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
LEVEL_LINES = ((0, (1, 2)), (0, (6, 3)), (0, (6, 2, 1, 2)))
PANEL = (4.8, 2.9)
"""inches, the legend's included"""
MOST_PLACES = 8
"""Up to so many places of points are written under the axis as they are."""


@dataclass(frozen=True)
class Curve:
    """A name, and a value for every quantity; where several runs were made, also the standard error."""

    name: str
    at: tuple[float, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes, and levels that are the same everywhere."""

    title: str
    quantity: str
    measure: str
    curves: tuple[Curve, ...]
    levels: tuple[tuple[str, float], ...] = ()
    """names and values of horizontal lines"""
    stated: tuple[tuple[str, float, float], ...] = ()
    """names, places and values of points that someone else reports"""
    logarithmic: tuple[bool, bool] = (False, False)


def draw_panels(out: str | Path, title: str, panels: Sequence[Panel], *, note: str = "") -> None:
    """Draw panels side by side, up to three in a row, with a note below them, and write the picture."""

    def draw() -> Any:
        from matplotlib.figure import Figure

        across = min(len(panels), 3)
        down = -(-len(panels) // across)
        figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down + 0.3), layout="constrained")
        figure.suptitle(title, fontsize=10)
        if note:
            figure.supxlabel(note, fontsize=6, color="0.3")
        axes = figure.subplots(down, across, squeeze=False)
        for one in axes.flat[len(panels) :]:
            one.set_axis_off()
        for one, panel in zip(axes.flat, panels, strict=False):
            _draw_panel(one, panel)
        return figure

    write_picture(out, draw)


def _draw_panel(axes: Any, panel: Panel) -> None:
    for index, curve in enumerate(panel.curves):
        axes.errorbar(
            curve.at,
            curve.values,
            yerr=curve.errors,
            label=curve.name,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=LINES[index % len(LINES)],
            markersize=4 + 2 * (index % 2),
            markerfacecolor="none" if index % 2 else None,
            linewidth=1,
            capsize=2,
        )
    for index, (name, value) in enumerate(panel.levels):
        line = LEVEL_LINES[index % len(LEVEL_LINES)]
        axes.axhline(value, label=name, color="0.3", linewidth=0.8, linestyle=line)
    for name, place, value in panel.stated:
        axes.plot([place], [value], color="0.1", marker="o", fillstyle="none", linestyle="none", markersize=9)
        axes.annotate(name, (place, value), xytext=(4, 4), textcoords="offset points", fontsize=6)
    axes.set_title(panel.title, fontsize=8)
    axes.set(xlabel=panel.quantity, ylabel=panel.measure)
    if panel.logarithmic[0]:
        axes.set_xscale("log")
        _write_places(axes.xaxis, sorted({place for curve in panel.curves for place in curve.at}))
    if panel.logarithmic[1]:
        axes.set_yscale("log")
        _write_powers(axes.yaxis)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=6, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.5)


def _write_places(axis: Any, places: Sequence[float]) -> None:
    """Write the places of points as they are, rather than powers of ten, if they are not too many."""
    if 0 < len(places) <= MOST_PLACES:
        axis.set_ticks(places, [f"{place:g}" for place in places])
        axis.set_ticks([], minor=True)


def _write_powers(axis: Any) -> None:
    """Write numbers of a logarithmic axis in full: the more of them, the fewer powers of ten it spans."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    between = (1, 1.5, 2, 3, 4, 5, 7) if high < 10 * low else (1, 2, 5) if high < 1000 * low else (1,)
    axis.set_major_locator(LogLocator(subs=between))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
