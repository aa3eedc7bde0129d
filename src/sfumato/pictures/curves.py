"""Curves of a measure over a quantity, side by side in panels, told apart without colour: by marker and by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.pictures.canvas import write_picture

COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b2", "#937860", "#64b5cd", "#8c8c8c", "#da8bc3")
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
PANEL = (3.6, 2.9)
"""inches"""


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


def draw_panels(out: str | Path, title: str, panels: Sequence[Panel]) -> None:
    """Draw panels side by side, up to three in a row, and write the picture."""

    def draw() -> Any:
        from matplotlib.figure import Figure

        across = min(len(panels), 3)
        down = -(-len(panels) // across)
        figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down + 0.3), layout="constrained")
        figure.suptitle(title, fontsize=10)
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
            markersize=4,
            linewidth=1,
            capsize=2,
        )
    for name, value in panel.levels:
        axes.axhline(value, color="0.4", linewidth=0.7, linestyle=(0, (1, 2)))
        axes.annotate(name, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=6)
    for name, place, value in panel.stated:
        axes.plot([place], [value], color="0.1", marker="o", fillstyle="none", linestyle="none", markersize=9)
        axes.annotate(name, (place, value), xytext=(4, 4), textcoords="offset points", fontsize=6)
    axes.set(title=panel.title, xlabel=panel.quantity, ylabel=panel.measure)
    if panel.logarithmic[0]:
        axes.set_xscale("log")
    if panel.logarithmic[1]:
        axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=6, frameon=False)
