"""The regions of a release: a tree of cuts from above, and attributes as ribbons cut into parts.

A node of the tree is as wide as its share of its parent's people, a part of a ribbon as its share of the whole. What is
too narrow to be seen is not drawn, so a hundred thousand regions make no larger picture than a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.pictures.inline import ACCENT, BAND, INK, LETTERS, PAPER, SOFT, WIDTH, fitted, picture, room

NODE_HIGH, RIBBON_HIGH = 44.0, 46.0
SMALL = 9.5
TEXTURES = ("", "////", "....", "xxxx")


@dataclass(frozen=True)
class Node:
    """A node as it is drawn: its level, where it begins and ends, from 0 to 1, and what is said of it."""

    level: int
    begin: float
    end: float
    name: str
    share: str
    split: str
    """by what it is cut further; nothing for a region"""


def draw_tree(nodes: Sequence[Node], width: float, label: str, class_: str) -> str:
    """Draw levels one below the other, the whole table on top."""
    high = NODE_HIGH * (1 + max(node.level for node in nodes)) + 2

    def draw(figure: Any) -> None:
        from matplotlib.patches import Rectangle

        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(high, 0))
        axes.axis("off")
        for node in nodes:
            left, wide = node.begin * (width - 2) + 1, (node.end - node.begin) * (width - 2)
            top = node.level * NODE_HIGH + 1
            axes.add_patch(
                Rectangle(
                    (left, top),
                    wide,
                    NODE_HIGH - 4,
                    facecolor=BAND if node.split else PAPER,
                    edgecolor=SOFT,
                    linewidth=0.7,
                )
            )
            _write_node(axes, node, left + 5, top, wide - 8)

    return picture((width, high), draw, label, class_)


def _write_node(axes: Any, node: Node, left: float, top: float, pixels: float) -> None:
    axes.text(
        left,
        top + 13,
        fitted(f"{node.name} {node.share}" if room(f"{node.name} {node.share}", pixels) else node.name, pixels),
        va="baseline",
        color=INK,
    )
    lower = fitted(f"by {node.split}", pixels, SMALL) if node.split else ""
    axes.text(left, top + 29, lower, va="baseline", fontsize=SMALL, color=SOFT, fontstyle="italic")


@dataclass(frozen=True)
class Ribbon:
    """One attribute: its parts with their widths, which sum to 1, and what they are called."""

    name: str
    widths: tuple[float, ...]
    labels: tuple[str, ...]


def draw_ribbons(ribbons: Sequence[Ribbon], width: float, label: str, class_: str, texture: bool = False) -> str:
    """Draw attributes one below the other; textures tell parts of the same meaning from row to row."""
    high = RIBBON_HIGH * len(ribbons) + 2

    def draw(figure: Any) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(high, 0))
        axes.axis("off")
        for row, ribbon in enumerate(ribbons):
            top = row * RIBBON_HIGH
            axes.text(1, top + 13, fitted(ribbon.name, width - 2), va="baseline", fontweight="bold")
            _draw_ribbon(axes, ribbon, top + 19, width - 2, texture)

    return picture((width, high), draw, label, class_)


def _draw_ribbon(axes: Any, ribbon: Ribbon, top: float, width: float, texture: bool) -> None:
    from matplotlib.patches import Rectangle

    left = 1.0
    for number, (share, name) in enumerate(zip(ribbon.widths, ribbon.labels, strict=True)):
        wide = share * width
        hatch = TEXTURES[number % len(TEXTURES)] if texture else ""
        axes.add_patch(
            Rectangle((left, top), wide, 19, facecolor=BAND, edgecolor=PAPER, linewidth=1.2 if wide > 3 else 0.4)
        )
        if hatch:
            axes.add_patch(Rectangle((left, top), wide, 19, fill=False, hatch=hatch, edgecolor=ACCENT, linewidth=0))
        if room(name, wide - 4, SMALL):
            axes.text(left + wide / 2, top + 13, name, ha="center", va="baseline", fontsize=SMALL)
        elif wide > 6 * LETTERS * WIDTH:
            axes.text(
                left + wide / 2, top + 13, fitted(name, wide - 4, SMALL), ha="center", va="baseline", fontsize=SMALL
            )
        left += wide
