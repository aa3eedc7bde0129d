"""A ledger as a staircase: every purchase begins where the one before ended, up to what was promised in all.

Rounds of one purchase are told apart by gaps, and every bar has its amount beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.pictures.inline import ACCENT, FILL, INK, LETTERS, LINE, SOFT, WIDTH, fitted, picture

ROW = 30.0
SMALL = 9.5
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----")


@dataclass(frozen=True)
class Purchase:
    """What one kind of rounds paid, round by round."""

    name: str
    paid: tuple[float, ...]

    @property
    def total(self) -> float:
        """What it paid in all."""
        return sum(self.paid)


def draw_ledger(purchases: Sequence[Purchase], budget: float | None, width: float, label: str, class_: str) -> str:
    """Draw purchases one below the other; with a lifetime budget the scale goes up to it."""
    whole = sum(one.total for one in purchases)
    end = max(whole, budget or 0.0) or 1.0
    names = [f"{one.name} ({len(one.paid)})" if len(one.paid) > 1 else one.name for one in purchases]
    before = min(max(map(len, names)) * LETTERS * WIDTH + 10, width * 0.42)
    high = ROW * (len(purchases) + 1) + 26

    def draw(figure: Any) -> None:
        axes = figure.add_axes((before / width, 24 / high, (width - before - 50) / width, (high - 26) / high))
        axes.set(xlim=(0, end), ylim=(len(purchases) + 0.5, -0.5))
        start, gap = 0.0, 0.9 * end / (width - before)
        for row, one in enumerate(purchases):
            ends = start + np.cumsum(one.paid)
            lefts = np.concatenate([[start], ends[:-1]])
            lengths = np.maximum(np.array(one.paid) - gap, np.minimum(np.array(one.paid), gap))
            axes.barh(
                [row] * len(lefts),
                lengths,
                left=lefts,
                height=0.52,
                align="center",
                color=FILL,
                linewidth=0,
                hatch=HATCHES[row % len(HATCHES)],
            )
            axes.annotate(
                _amount(one.total),
                (float(ends[-1]), row),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
            )
            start = float(ends[-1])
            if row + 1 < len(purchases):
                axes.plot([start, start], [row + 0.26, row + 0.74], color=SOFT, linewidth=0.8)
        axes.barh(len(purchases), whole, height=0.2, color=INK, linewidth=0)
        axes.annotate(
            _amount(whole), (whole, len(purchases)), (5, 0), textcoords="offset points", va="center", fontweight="bold"
        )
        if budget is not None:
            axes.axvline(budget, color=ACCENT, linewidth=1.3, linestyle=(0, (4, 2)))
        axes.set_yticks(range(len(purchases) + 1), labels=[*(fitted(one, before - 8) for one in names), "in all"])
        axes.set_xticks(_ticks(end), labels=[_amount(one) for one in _ticks(end)], fontsize=SMALL)
        axes.tick_params(length=0, pad=5)
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.grid(axis="x", color=LINE, linewidth=0.5)
        axes.set_axisbelow(True)

    return picture((width, high), draw, label, class_)


def _ticks(end: float) -> list[float]:
    return [0.0, end / 4, end / 2, 3 * end / 4, end]


def _amount(epsilon: float) -> str:
    return f"{epsilon:.3g}"
