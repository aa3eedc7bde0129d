"""A data grid as a triangle of panels, one for each pair of variables that are cut into parts.

Parts are as wide as their shares of the rows. A cell's colour tells how many times the rows it has that it would have
if the two variables were independent. Cells with fewer are hatched, too, and the ratio is printed where there is room,
so that the picture can be read without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import NOT_PRIVATE, Coclustering, Kind, Part, kinds_of
from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.pictures.canvas import refuse_undrawable, write_picture

BY_CHANCE = 2.0
"""Counts that are off by up to so many standard deviations are taken for those of independent variables."""
SLIGHT = 0.05
"""Counts that are off by less than this share are taken for those of independent variables, too."""
MOST_VARIABLES = 8
"""The most variables that are drawn; of more, the first are."""
THINNEST = 0.05
"""The least share of a panel that a part takes, so that it can be seen and named."""
PANEL = (1.6, 6.0)
"""The least and the most inches of a panel's side."""
INCHES_PER_PART = 0.42
LONGEST_NAME = 30
DOUBLINGS = 3
"""Colours end at so many doublings, eight times as many, and at so many halvings, an eighth."""
LETTERS = (0.34, 0.12)
"""The length and height of a printed ratio, in inches."""
COLOURS = "RdBu_r"
KEY = {"⅛×": 0.125, "¼×": 0.25, "½×": 0.5, "1×": 1.0, "2×": 2.0, "4×": 4.0, "8×": 8.0}
"""The ratios whose colours are shown, and what they are called."""
NARROWEST, TOP, INDENT, GAP, SWATCH = 6.0, 1.6, 0.25, 0.1, 0.42
"""In inches: the least width of the figure, the space above, beside and between panels, and a colour of the key."""
LETTER, LINE = 0.066, 0.2
"""In inches: the width of a letter, and the height of a line."""


def draw_grid(found: Coclustering, out: str | Path) -> None:
    """Draw the grid of a co-clustering to a .png or .svg file."""
    refuse_undrawable(out)
    if len(found.informative) < 2:
        raise MethodError(
            "a picture must show two attributes with more than one part, and the grid has none",
            "Leave --out away, or ask for a finer grid.",
        )
    write_picture(out, lambda: _figure(found))


@dataclass(frozen=True, eq=False)
class Side:
    """One variable as it is drawn: its parts in order, as wide as they are drawn, and what they are called."""

    name: str
    order: Integers
    labels: tuple[str, ...]
    widths: Floats
    inches: float

    @property
    def borders(self) -> Floats:
        """Where the parts begin and end, from 0 to 1."""
        return np.concatenate([[0.0], np.cumsum(self.widths)])

    @property
    def middles(self) -> Floats:
        """Where the parts' names stand, from 0 to 1."""
        return self.borders[:-1] + self.widths / 2


def _figure(found: Coclustering) -> Any:
    """Lay the panels out: a column for each variable but the last, a row for each but the first."""
    from matplotlib.figure import Figure

    axes = found.informative[:MOST_VARIABLES]
    orders = seriation(found, kinds_of(found.schema))
    sides = [_side(found, axis, orders[axis]) for axis in axes]
    columns, rows = sides[:-1], sides[1:]
    width = _beside(rows) + sum(side.inches + GAP for side in columns) + INDENT
    height = TOP + sum(side.inches + GAP for side in rows) + _beside(columns)
    figure = Figure(figsize=(max(width, NARROWEST), height), facecolor="white")
    top = height - TOP
    for row, down in enumerate(rows):
        left = _beside(rows)
        for column, across in enumerate(columns[: row + 1]):
            box = (left, top - down.inches, across.inches, down.inches)
            panel = figure.add_axes(_relative(box, figure))
            ratios = departures(pair_counts(found, axes[column], axes[row + 1]))
            _draw_panel(panel, ratios[np.ix_(across.order, down.order)].T, across, down)
            _name_sides(panel, (row, column), across, down, len(rows) - 1)
            left += across.inches + GAP
        top -= down.inches + GAP
    _draw_head(figure, found)
    return figure


def _beside(sides: list[Side]) -> float:
    """The inches that the names of variables and parts take beside the panels."""
    return INDENT + LETTER * max(len(label) for side in sides for label in side.labels) + 2 * LINE


def _side(found: Coclustering, axis: int, order: Integers) -> Side:
    name = found.variables[axis]
    parts = [found.parts[name][part] for part in order.tolist()]
    shares = np.array([part.rows for part in parts]) / found.rows
    widths = np.maximum(shares, THINNEST)
    inches = float(np.clip(INCHES_PER_PART * len(parts), *PANEL))
    labels = tuple(f"{_short(part)}  {_percent(share)}" for part, share in zip(parts, shares.tolist(), strict=True))
    return Side(name, order, labels, widths / widths.sum(), inches)


def _short(part: Part) -> str:
    """Name a part by its most frequent values, as many as there is room for.

    >>> _short(Part("a | b", ("Husband", "Own-child", "Other-relative"), 9))
    'Husband, Own-child +1'
    """
    shown = ""
    for number, value in enumerate(part.values):
        longer = f"{shown}, {value}" if shown else value
        if shown and len(longer) > LONGEST_NAME:
            return f"{shown} +{len(part.values) - number}"
        shown = longer if len(longer) <= LONGEST_NAME else f"{longer[: LONGEST_NAME - 1]}…"
    return shown


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "<1 %"


def _relative(box: tuple[float, float, float, float], figure: Any) -> tuple[float, float, float, float]:
    """Turn inches into shares of the figure."""
    width, height = figure.get_size_inches()
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def _draw_panel(panel: Any, ratios: Floats, across: Side, down: Side) -> None:
    """Draw the cells: rows x columns, the first row on top."""
    panel.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[])
    for (row, column), ratio in np.ndenumerate(ratios):
        corner = (float(across.borders[column]), float(down.borders[row]))
        size = (float(across.widths[column]), float(down.widths[row]))
        _draw_cell(panel, ratio, corner, size)
        if ratio != 1:
            middle = (float(across.middles[column]), float(down.middles[row]))
            _print_ratio(panel, ratio, middle, (size[0] * across.inches, size[1] * down.inches))


def _draw_cell(panel: Any, ratio: float, corner: tuple[float, float], size: tuple[float, float]) -> None:
    """Colour a cell by how often its ratio doubles or halves, and hatch it if the ratio is below 1."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    doublings = np.clip(np.log2(max(ratio, 2.0**-DOUBLINGS)), -DOUBLINGS, DOUBLINGS)
    colour = mpl.colormaps[COLOURS](0.5 + float(doublings) / (2 * DOUBLINGS))
    panel.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="white", linewidth=0.8))
    if ratio < 1:
        ink = "#ffffff59" if _is_dark(ratio) else "#2166ac59"
        panel.add_patch(Rectangle(corner, *size, fill=False, linewidth=0, hatch="/////", edgecolor=ink))


def _is_dark(ratio: float) -> bool:
    """Whether letters on a ratio's colour must be white."""
    return not 0.27 < ratio < 3.7


def _print_ratio(panel: Any, ratio: float, middle: tuple[float, float], room: tuple[float, float]) -> None:
    """Print a ratio across its cell, or along it, if there is room."""
    if max(room) < LETTERS[0] or min(room) < LETTERS[1]:
        return
    colour = "white" if _is_dark(ratio) else "#222222"
    turned = 90 if room[0] < LETTERS[0] else 0
    panel.text(*middle, _times(ratio), ha="center", va="center", fontsize=7, color=colour, rotation=turned)


def _times(ratio: float) -> str:
    """A ratio in few letters.

    >>> [_times(ratio) for ratio in (12.3, 2.34, 0.62, 0.04, 0.0)]
    ['12×', '2.3×', '0.6×', '0.04×', '0']
    """
    if ratio >= 10:
        return f"{ratio:.0f}×"
    return f"{ratio:.1f}×" if ratio >= 0.1 else f"{ratio:.2f}×" if ratio >= 0.01 else "0"


def _name_sides(panel: Any, place: tuple[int, int], across: Side, down: Side, lowest: int) -> None:
    """Name the parts under the lowest panels and beside the first ones, and the variables where theirs begin."""
    row, column = place
    if row == lowest:
        panel.set_xticks(across.middles, labels=across.labels, rotation=90)
    if row == column:
        panel.set_title(across.name, fontweight="bold", fontsize=9, pad=5)
    if column == 0:
        panel.set_yticks(down.middles, labels=down.labels)
        panel.set_ylabel(down.name, fontweight="bold", fontsize=9)
        edge = panel.figure.transFigure.transform((INDENT / panel.figure.get_figwidth(), 0))[0]
        panel.yaxis.set_label_coords(panel.transAxes.inverted().transform((edge, 0))[0], 0.5)
    panel.tick_params(length=2, width=0.5, color="#777777")
    panel.spines[:].set_visible(False)


def _draw_head(figure: Any, found: Coclustering) -> None:
    """Say what is seen, that it is not private, and what colours mean."""
    width, height = figure.get_size_inches()
    shape = " × ".join(map(str, found.grid.shape))
    title = f"{found.schema.name}: {shape} parts of {found.rows:,} rows"
    if len(found.informative) > MOST_VARIABLES:
        title += f" (the first {MOST_VARIABLES} attributes that are cut)"
    figure.text(INDENT / width, 1 - 0.2 / height, title, fontsize=11, fontweight="bold", va="top")
    figure.text(INDENT / width, 1 - 0.45 / height, NOT_PRIVATE, va="top", color="#b2182b")
    inches = SWATCH * len(KEY)
    key = figure.add_axes(_relative((INDENT, height - 0.97, inches, 0.16), figure))
    key.set(xlim=(0, len(KEY)), ylim=(0, 1), yticks=[])
    for place, ratio in enumerate(KEY.values()):
        _draw_cell(key, ratio, (place, 0), (1, 1))
    key.set_xticks(np.arange(len(KEY)) + 0.5, labels=KEY, fontsize=7)
    key.tick_params(length=0, pad=2)
    key.spines[:].set_visible(False)
    says = "the rows that independent attributes would have;\nparts are as wide as their shares of the rows"
    figure.text((INDENT + inches + 0.15) / width, 1 - 0.9 / height, says, fontsize=7, va="center", color="#444444")


def pair_counts(found: Coclustering, first: int, second: int) -> Floats:
    """The rows that each part of one variable shares with each part of another: first x second."""
    others = tuple(axis for axis in range(found.counts.ndim) if axis not in (first, second))
    counts: Floats = found.counts.sum(axis=others).astype(np.float64)
    return counts if first < second else counts.T


def departures(counts: Floats) -> Floats:
    """The ratio of rows to those expected, r_i c_j / n; 1 where they hardly differ, or not beyond chance.

    By chance, a count of which e are expected varies by about sqrt(e).

    >>> departures(np.array([[90.0, 10.0], [10.0, 90.0]]))
    array([[1.8, 0.2],
           [0.2, 1.8]])
    >>> departures(np.array([[5.0, 4.0], [4.0, 5.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    differs = np.abs(counts - expected) > np.maximum(BY_CHANCE * np.sqrt(expected), SLIGHT * expected)
    return np.asarray(np.divide(counts, expected, out=np.ones(counts.shape), where=differs))


def seriation(found: Coclustering, kinds: Sequence[Kind]) -> tuple[Integers, ...]:
    """An order of each variable's parts in which similar groups are neighbours; intervals keep theirs.

    Multiple correspondence analysis: parts that share more rows than expected are pulled together, by the residuals
    (n_ij - e_ij) / sqrt(e_ij) of all pairs of variables in one symmetric matrix. Its first eigenvector is the line on
    which all parts lie best; the sign that lets intervals ascend is taken.
    """
    sizes = found.grid.shape
    starts = np.concatenate([[0], np.cumsum(sizes)])
    residuals = np.zeros((starts[-1], starts[-1]))
    for first in found.informative:
        for second in found.informative:
            if first != second:
                counts = pair_counts(found, first, second)
                expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
                block = (counts - expected) / np.sqrt(expected)
                residuals[starts[first] : starts[first + 1], starts[second] : starts[second + 1]] = block
    line = np.linalg.eigh(residuals)[1][:, -1]
    places = [line[start:end] for start, end in pairwise(starts.tolist())]
    rising = sum(
        float(np.arange(size) @ (place - place.mean()))
        for size, place, kind in zip(sizes, places, kinds, strict=True)
        if kind == "numeric"
    )
    return tuple(
        np.arange(size) if kind == "numeric" else np.argsort(place if rising >= 0 else -place, kind="stable")
        for size, place, kind in zip(sizes, places, kinds, strict=True)
    )
