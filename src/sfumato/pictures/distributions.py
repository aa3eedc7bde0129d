"""Small pictures of how people are distributed over one attribute, or two, with how far they may err.

Many stand side by side. Estimates are filled, intervals are lines, the holder's own counts are open marks: none of it
is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.pictures.inline import ACCENT, FILL, INK, LETTERS, LINE, PAPER, SMALL, SOFT, WIDTH, fitted, picture, room

ACROSS = 310.0
"""The width of a picture, in pixels."""
STEPS_HIGH, BAR_HIGH, CELL_HIGH = 132.0, 18.0, 22.0
"""The heights of a histogram, of one bar and of one row of a heat map, in pixels."""
TRIANGLE_WIDE = 560.0
"""The most width of a triangle of pairs, in pixels."""
MOST_NAMED = 0.42
"""The share of the width that names may take."""
FAINTEST = 0.06
"""How much of a colour the emptiest cell of a heat map has."""
LEAST_PRINTED = 0.005
"""The least share that is printed."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Estimates of the people in some parts, the ends of their intervals, and perhaps the truth."""

    labels: Sequence[str]
    values: Floats
    lows: Floats
    highs: Floats
    truth: Floats | None = None

    @property
    def top(self) -> float:
        """The largest number that is drawn."""
        known = [self.highs, self.values, *([] if self.truth is None else [self.truth])]
        return max(float(max(one.max(initial=0.0) for one in known)), 1.0)

    @property
    def bottom(self) -> float:
        """The smallest number that is drawn: noise can make estimates negative."""
        return min(float(np.minimum(self.lows, self.values).min(initial=0.0)), 0.0)


def draw_steps(counts: Counts, edges: Sequence[str], label: str) -> str:
    """Draw a histogram: parts of equal width side by side, the borders named below as far as there is room."""

    def draw(figure: Any) -> None:
        axes = _axes(figure, (4, 22, ACROSS - 8, STEPS_HIGH - 40))
        places = np.arange(len(counts.values))
        axes.bar(places, counts.values, width=0.86, color=FILL, linewidth=0)
        axes.vlines(places, counts.lows, counts.highs, color=INK, linewidth=1.1)
        if counts.truth is not None:
            outline = np.concatenate([counts.truth, counts.truth[-1:]])
            axes.step(
                np.arange(len(outline)) - 0.5,
                outline,
                where="post",
                color=ACCENT,
                linewidth=1.2,
                linestyle=(0, (3, 1.5)),
            )
        _frame(axes, (-0.6, len(places) - 0.4), (counts.bottom, counts.top))
        highest = int(np.argmax(counts.values))
        _say_highest(axes, highest, counts, len(places))
        _name_borders(axes, edges, len(places))

    return picture((ACROSS, STEPS_HIGH), draw, label)


def _say_highest(axes: Any, highest: int, counts: Counts, places: int) -> None:
    side = "left" if highest < places / 2 else "right"
    at = max(float(counts.values[highest]), float(counts.highs[highest]))
    axes.annotate(
        f"{counts.values[highest]:,.0f}",
        (highest + (-0.5 if side == "left" else 0.5), at),
        (0, 3),
        textcoords="offset points",
        ha=side,
        color=INK,
        fontsize=SMALL,
    )


def _name_borders(axes: Any, edges: Sequence[str], places: int) -> None:
    """Name the first border, flush left, the last, flush right, and others between them that do not touch."""
    apart = (max(map(len, edges)) * SMALL * WIDTH + 8) / (ACROSS - 8) * places
    step = max(int(np.ceil(apart)), 1)
    inner = range(int(np.ceil(1.5 * apart)), int(places - 1.5 * apart) + 1, step)
    chosen = [0, *inner, places]
    axes.set_xticks([one - 0.5 for one in chosen], labels=[edges[one] for one in chosen], fontsize=SMALL)
    names = axes.get_xticklabels()
    names[0].set_ha("left")
    names[-1].set_ha("right")


def draw_bars(counts: Counts, halves: Sequence[str], label: str) -> str:
    """Draw a bar for each part, its name before and its number after it."""
    numbers = [f"{value:,.0f}{half}" for value, half in zip(counts.values.tolist(), halves, strict=True)]
    before = min(max(map(len, counts.labels)) * LETTERS * WIDTH + 8, ACROSS * MOST_NAMED)
    after = max(map(len, numbers)) * SMALL * WIDTH + 10
    high = BAR_HIGH * len(counts.values) + 6

    def draw(figure: Any) -> None:
        axes = _axes(figure, (before, 3, ACROSS - before - after, high - 6))
        places = np.arange(len(counts.values))
        axes.barh(places, counts.values, height=0.66, color=FILL, linewidth=0)
        axes.hlines(places, counts.lows, counts.highs, color=INK, linewidth=1.1)
        if counts.truth is not None:
            axes.plot(
                counts.truth,
                places,
                "D",
                markersize=5,
                markerfacecolor=PAPER,
                markeredgecolor=ACCENT,
                markeredgewidth=1.3,
                clip_on=False,
            )
        axes.set(xlim=(counts.bottom, counts.top), ylim=(len(places) - 0.5, -0.5), xticks=[])
        axes.set_yticks(places, labels=[fitted(one, before - 6) for one in counts.labels])
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        axes.axvline(0, color=LINE, linewidth=0.8)
        for place, number in enumerate(numbers):
            axes.annotate(
                number,
                (1, place),
                (6, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                color=SOFT,
                fontsize=SMALL,
            )

    return picture((ACROSS, high), draw, label)


@dataclass(frozen=True, eq=False)
class Cells:
    """The shares of people in the cells of two attributes, down x across, and which cannot be told from nobody."""

    down: Sequence[str]
    across: Sequence[str]
    shares: Floats
    uncertain: Booleans


def draw_heat_map(cells: Cells, names: tuple[str, str], label: str) -> str:
    """Draw two attributes: the more people, the darker; shares are printed, what may be nobody is hatched."""
    before = min(max(map(len, cells.down)) * LETTERS * WIDTH + 8, ACROSS * 0.36)
    wide = (ACROSS - before - 6) / len(cells.across)
    turned = not all(room(one, wide - 2, SMALL) for one in cells.across)
    below = min(max(map(len, cells.across)) * SMALL * WIDTH + 10, 84.0) if turned else 20.0
    high = 18 + CELL_HIGH * len(cells.down) + below + 14

    def draw(figure: Any) -> None:
        axes = _axes(figure, (before, below + 14, ACROSS - before - 6, CELL_HIGH * len(cells.down)))
        axes.set(xlim=(0, len(cells.across)), ylim=(len(cells.down), 0))
        most = max(float(cells.shares.max()), 1e-12)
        for row, column in np.ndindex(cells.shares.shape):
            _draw_share(axes, cells, row, column, most, wide)
        axes.set_yticks(np.arange(len(cells.down)) + 0.5, labels=[fitted(one, before - 6) for one in cells.down])
        named = [fitted(one, below - 6, SMALL) if turned else one for one in cells.across]
        axes.set_xticks(np.arange(len(cells.across)) + 0.5, labels=named, rotation=90 if turned else 0, fontsize=SMALL)
        axes.tick_params(length=0, pad=3)
        axes.spines[:].set_visible(False)
        figure.text(2 / ACROSS, 1 - 4 / high, fitted(names[0], ACROSS / 2), va="top", ha="left", fontweight="bold")
        figure.text(1 - 6 / ACROSS, 3 / high, fitted(names[1], ACROSS / 2), va="bottom", ha="right", fontweight="bold")

    return picture((ACROSS, high), draw, label)


def _draw_share(axes: Any, cells: Cells, row: int, column: int, most: float, wide: float) -> None:
    """Draw a cell of a heat map: the more people the darker, hatched where it may be nobody, the share printed if it
    fits.
    """
    from matplotlib.patches import Rectangle

    share = float(cells.shares[row, column])
    depth = FAINTEST + (1 - FAINTEST) * float(np.sqrt(max(share, 0.0) / most))
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=ACCENT, alpha=depth, edgecolor=PAPER, linewidth=1.5))
    if cells.uncertain[row, column]:
        axes.add_patch(Rectangle((column, row), 1, 1, fill=False, linewidth=0, hatch="////", edgecolor=SOFT))
    shown = f"{100 * share:.0f}" if share >= 0.0095 else f"{100 * share:.1f}".lstrip("0")
    if share >= LEAST_PRINTED and room(shown, wide, SMALL):
        colour = PAPER if depth > 0.55 else INK
        axes.text(column + 0.5, row + 0.5, shown, ha="center", va="center", fontsize=SMALL, color=colour)


def draw_triangle(names: Sequence[str], strengths: Floats, label: str) -> str:
    """Draw how strongly any two attributes hang together, in hundredths: the stronger, the darker."""
    from matplotlib.patches import Rectangle

    longest, sides = max(map(len, names)), len(names) - 1
    before, below = min(longest * LETTERS * WIDTH + 8, 130.0), min(longest * SMALL * WIDTH + 10, 120.0)
    across = min(TRIANGLE_WIDE, before + 6 + 1.5 * CELL_HIGH * sides)
    wide = (across - before - 6) / sides
    tall = min(wide, CELL_HIGH)

    def draw(figure: Any) -> None:
        axes = _axes(figure, (before, below, across - before - 6, tall * sides))
        axes.set(xlim=(0, sides), ylim=(sides, 0))
        for row, column in np.argwhere(np.tri(sides)).tolist():
            share = float(strengths[row + 1, column])
            depth = FAINTEST + (1 - FAINTEST) * min(max(share, 0.0), 1.0)
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=ACCENT, alpha=depth, edgecolor=PAPER, linewidth=1))
            if room(shown := f"{100 * share:.0f}", wide, SMALL):
                colour = PAPER if depth > 0.55 else INK
                axes.text(column + 0.5, row + 0.5, shown, ha="center", va="center", fontsize=SMALL, color=colour)
        axes.set_yticks(np.arange(sides) + 0.5, labels=[fitted(one, before - 6) for one in names[1:]])
        turned = [fitted(one, below - 6, SMALL) for one in names[:-1]]
        axes.set_xticks(np.arange(sides) + 0.5, labels=turned, rotation=90, fontsize=SMALL)
        axes.tick_params(length=0, pad=3)
        axes.spines[:].set_visible(False)

    return picture((across, tall * sides + below + 6), draw, label)


def _axes(figure: Any, box: tuple[float, float, float, float]) -> Any:
    """Add axes at a place in pixels, from the left and the bottom."""
    width, height = figure.get_size_inches() * 72
    return figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))


def _frame(axes: Any, across: tuple[float, float], up: tuple[float, float]) -> None:
    axes.set(xlim=across, ylim=up, yticks=[])
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.axhline(0, color=LINE, linewidth=0.8)
    axes.tick_params(length=3, width=0.8)
