"""Pictures for notebooks: how many people have each value, with intervals, and how two attributes hang together."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.arrays import Floats
from sfumato.pictures.canvas import COLOURS, DOTS_PER_INCH, refuse_pictureless, styled, write_picture

WIDTH, ROW, LEAST = 5.4, 0.24, 2.4
"""The width of a picture, the height of a row, and the least height, in inches."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture: notebooks show it, `save` writes it, and `figure` is matplotlib's, to be changed."""

    figure: Any

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        with styled():
            self.figure.savefig(written, format="png", dpi=110, bbox_inches="tight")
        return written.getvalue()

    def save(self, out: str | Path) -> None:
        """Write a .png or .svg file."""
        write_picture(out, lambda: self.figure)


@dataclass(frozen=True, eq=False)
class Parts:
    """Values with intervals, by part of an attribute."""

    title: str
    labels: Sequence[str]
    values: Floats
    lows: Floats
    highs: Floats
    in_order: bool
    """whether parts follow one another like numbers"""


def draw_parts(parts: Parts) -> Picture:
    """Draw a bar for each part, with its interval: upright where parts follow one another, else lying."""
    refuse_pictureless()
    from matplotlib.figure import Figure

    places = np.arange(len(parts.values))
    errors = np.abs(np.stack([parts.values - parts.lows, parts.highs - parts.values]))
    lying = not parts.in_order
    with styled():
        figure = Figure(figsize=(WIDTH, max(LEAST, ROW * len(places) + 0.8) if lying else 3.0), dpi=DOTS_PER_INCH)
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        bars: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.7, "error_kw": {"elinewidth": 1.0, "capsize": 2}}
        if lying:
            axes.barh(places, parts.values, xerr=errors, **bars)
            axes.set_yticks(places, parts.labels)
            axes.invert_yaxis()
            axes.set_xlabel("people")
        else:
            axes.bar(places, parts.values, yerr=errors, **bars)
            axes.set_xticks(places, parts.labels, rotation=45, ha="right")
            axes.set_ylabel("people")
        axes.set_title(parts.title)
        axes.spines[["top", "right"]].set_visible(False)
    return Picture(figure)


def draw_cells(
    title: str, names: tuple[str, str], labels: tuple[Sequence[str], Sequence[str]], values: Floats
) -> Picture:
    """Draw the people of two attributes: the more, the darker."""
    refuse_pictureless()
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(WIDTH, max(LEAST, ROW * len(labels[0]) + 1.4)), dpi=DOTS_PER_INCH)
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        drawn = axes.imshow(np.maximum(values, 0.0), aspect="auto", cmap="Blues")
        axes.set_yticks(range(len(labels[0])), labels[0])
        axes.set_xticks(range(len(labels[1])), labels[1], rotation=45, ha="right")
        axes.set(title=title, ylabel=names[0], xlabel=names[1])
        figure.colorbar(drawn, ax=axes, label="people")
    return Picture(figure)
