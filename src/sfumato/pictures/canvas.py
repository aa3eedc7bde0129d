"""Pictures in files, whole or not at all; and curves of a measure over a quantity, side by side in panels.

No display is needed, or looked for. Curves are told apart without colour, by marker and by line. Every second marker is
hollow and larger, so that it does not hide the one under it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.storage import staged_file

SUFFIXES = (".png", ".svg")
"""The kinds of files that can be written."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
"""No settings."""
DOTS_PER_INCH = 160
STYLE = {
    "text.parse_math": False,
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "sfumato",
}
"""Settings of all pictures: dollar signs in names are dollar signs, and the same picture is the same file."""
COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b2", "#937860", "#64b5cd", "#8c8c8c", "#da8bc3")
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
PANEL = (3.6, 2.9)
"""The width and height of a panel, in inches."""
WIDEST_LEGEND = 5.0
"""The least width of a figure, so that its legend has room, in inches."""
MILLION = 1_000_000
MOST_PLACES = 5
"""The most places of points that are written under a logarithmic axis as they are."""
NEAR = 0.06
"""The share of the axis by which lines must be apart, so that their names do not cover each other."""
LONG = 300
"""A logarithmic axis whose end is so many times its beginning has enough powers of ten."""
APART = 0.08
"""How far from each other the points of one place stand, where places are no numbers."""
FOUR = 4
"""The number of panels that make a square."""


def refuse_undrawable(out: str | Path) -> None:
    """Refuse a file name of another kind, and drawing without the library."""
    if not str(out).lower().endswith(SUFFIXES):
        raise ReleaseError(f"out ({str(out)[:200]}) must end in .png or .svg", "Name the file accordingly.")
    refuse_pictureless("Run pip install 'sfumato[pictures]', or leave --out away.")


def refuse_pictureless(remedy: str = "Run pip install 'sfumato[pictures]'.") -> None:
    """Refuse drawing without the library."""
    if not can_draw():
        raise ReleaseError("pictures must have matplotlib to be drawn, and it is not installed", remedy)


def can_draw() -> bool:
    """Whether the library is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def write_picture(out: str | Path, draw: Callable[[], Any]) -> None:
    """Draw a figure and write it."""
    refuse_undrawable(out)
    with staged_file(out) as staging, styled():
        metadata = {"Date": None} if staging.suffix.lower() == ".svg" else {}
        draw().savefig(staging, dpi=DOTS_PER_INCH, metadata=metadata)


@contextmanager
def styled(more: Mapping[str, Any] = NOTHING) -> Iterator[None]:
    """Draw in our style; letters that the font lacks become boxes, in silence."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE | dict(more)), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


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
    places: tuple[str, ...] = ()
    """what the quantities 0, 1, 2, ... are called, where they are no numbers"""


def draw_panels(out: str | Path, title: str, panels: Sequence[Panel], *, note: str = "") -> None:
    """Draw panels side by side, up to three in a row, with a note above the legend, and write the picture.

    Curves of one name look alike everywhere, so that one legend below tells all of them.
    """
    styles = {name: at for at, name in enumerate(dict.fromkeys(one.name for panel in panels for one in panel.curves))}

    def draw() -> Any:
        from matplotlib.figure import Figure

        across = 2 if len(panels) == FOUR else min(len(panels), 3)
        down = -(-len(panels) // across)
        beside = max(2, across)
        below = 0.2 * -(-len(styles) // beside)
        figure = Figure(figsize=(max(PANEL[0] * across, WIDEST_LEGEND), PANEL[1] * down + 0.3 + below))
        figure.set_layout_engine("constrained")
        figure.suptitle(title, fontsize=10)
        axes = figure.subplots(down, across, squeeze=False)
        for one in axes.flat[len(panels) :]:
            one.set_axis_off()
        for one, panel in zip(axes.flat, panels, strict=False):
            draw_curves(one, panel, styles)
        drawn = [one.get_legend_handles_labels() for one in axes.flat]
        told = {label: handle for handles, labels in drawn for handle, label in zip(handles, labels, strict=True)}
        figure.legend(
            [told[name] for name in styles],
            list(styles),
            loc="outside lower center",
            ncols=beside,
            fontsize=7,
            frameon=False,
            title=note or None,
            title_fontsize=6,
        )
        return figure

    write_picture(out, draw)


def shortly(value: float) -> str:
    """A number as it is written on an axis.

    >>> shortly(0.25), shortly(10_000), shortly(1_500_000)
    ('0.25', '10,000', '1.5 M')
    """
    return f"{value / MILLION:,.6g} M" if abs(value) >= MILLION else f"{value:,.6g}"


def draw_curves(axes: Any, panel: Panel, styles: Mapping[str, int]) -> None:
    """Draw a panel on axes, each curve in the style of its number."""
    for curve in panel.curves:
        index = styles[curve.name]
        beside = APART * (index - (len(styles) - 1) / 2) if panel.places else 0.0
        axes.errorbar(
            [place + beside for place in curve.at],
            curve.values,
            yerr=curve.errors,
            label=curve.name,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle="none" if panel.places else LINES[index % len(LINES)],
            markersize=4 + 2 * (index % 2),
            markerfacecolor="none" if index % 2 else None,
            linewidth=1,
            capsize=2,
        )
    for name, place, value in panel.stated:
        axes.plot([place], [value], color="0.1", marker="o", fillstyle="none", linestyle="none", markersize=9)
        axes.annotate(name, (place, value), xytext=(7, -9), textcoords="offset points", fontsize=6)
    axes.set(title=panel.title, xlabel=panel.quantity, ylabel=panel.measure)
    axes.set(**{f"{axis}scale": "log" for axis, yes in zip("xy", panel.logarithmic, strict=True) if yes})
    _draw_levels(axes, panel)
    for axis, logarithmic in zip((axes.xaxis, axes.yaxis), panel.logarithmic, strict=True):
        _write_numbers(axis, logarithmic)
    places = sorted({place for curve in panel.curves for place in curve.at})
    if not panel.logarithmic[0]:
        axes.locator_params("x", nbins=6)
    elif len(places) <= MOST_PLACES:
        axes.set_xticks(places, [shortly(place) for place in places])
        axes.set_xticks([], minor=True)
    if panel.places:
        axes.set_xticks(range(len(panel.places)), panel.places)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_levels(axes: Any, panel: Panel) -> None:
    """Draw horizontal lines with their names at the right; where the next line is near, names make room."""
    for _, value in panel.levels:
        axes.axhline(value, color="0.4", linewidth=0.7, linestyle=(0, (1, 2)))
    low, high = axes.get_ylim()
    falling = sorted(panel.levels, key=lambda level: -level[1])
    for at, (name, value) in enumerate(falling):
        under = at > 0 and falling[at - 1][1] - value < NEAR * (high - low)
        over = at + 1 < len(falling) and value - falling[at + 1][1] < NEAR * (high - low)
        side = "center" if under == over else "top" if under else "bottom"
        axes.annotate(name, (1.01, value), xycoords=("axes fraction", "data"), ha="left", va=side, fontsize=6)


def _write_numbers(axis: Any, logarithmic: bool) -> None:
    """Write plain numbers on an axis; on a short logarithmic one also between the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _at: shortly(value)))
    if logarithmic:
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < LONG * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
