"""How far noise moves answers, by how many people they count: one mark for each question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.inline import ACCENT, INK, LINE, PAPER, SOFT, picture

Floats = NDArray[np.float64]

HIGH = 280.0
GUIDES = (1.0, 0.1, 0.01)
"""Half-widths that are all, a tenth and a hundredth of the answer."""
SMALL = 9.5


@dataclass(frozen=True, eq=False)
class Marks:
    """Answers, half-widths of their intervals, and which of them ask for whole regions."""

    sizes: Floats
    halves: Floats
    whole: NDArray[np.bool_]


def draw_half_widths(marks: Marks, width: float, label: str, class_: str) -> str:
    """Draw half-widths of 95 % intervals over sizes, both by powers of ten, with lines of equal relative width."""
    across = (max(float(marks.sizes.min()), 1.0) / 1.5, float(marks.sizes.max()) * 1.5)
    up = (float(marks.halves.min()) / 2, float(marks.halves.max()) * 3)

    def draw(figure: Any) -> None:
        axes = figure.add_axes((44 / width, 38 / HIGH, (width - 78) / width, (HIGH - 58) / HIGH))
        axes.set(xscale="log", yscale="log", xlim=across, ylim=up)
        for share in GUIDES:
            _draw_guide(axes, share, across, up)
        for which, filling in ((~marks.whole, PAPER), (marks.whole, ACCENT)):
            style = {"markersize": 4, "markerfacecolor": filling, "markeredgecolor": INK, "markeredgewidth": 0.5}
            axes.plot(marks.sizes[which], marks.halves[which], "o", **style)
        axes.set_xlabel("people counted")
        axes.annotate("± people", (0, 1), (-40, 6), "axes fraction", "offset points", color=SOFT)
        axes.xaxis.set_major_formatter(_written)
        axes.yaxis.set_major_formatter(_written)
        axes.minorticks_off()
        axes.tick_params(length=3, width=0.8, labelsize=SMALL, labelcolor=SOFT)
        axes.spines[["right", "top"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)

    return picture((width, HIGH), draw, label, class_)


def _written(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _draw_guide(axes: Any, share: float, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Draw a line of equal relative width, named where it leaves the picture."""
    if across[1] * share <= up[0] or across[0] * share >= up[1]:
        return
    axes.plot(across, [one * share for one in across], color=SOFT, linewidth=0.8, linestyle=(0, (1, 2)))
    end = (min(across[1], up[1] / share), min(across[1] * share, up[1]))
    above = end[0] < across[1]
    offset, side = ((0, 3), "center") if above else ((4, -3), "left")
    axes.annotate(f"{share:.0%}", end, offset, textcoords="offset points", ha=side, fontsize=SMALL, color=SOFT)
