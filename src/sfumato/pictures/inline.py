"""Pictures inside a page: they take their colours and letters from it, and bring nothing else along.

matplotlib writes a document of its own: colours, fonts, styles and names that would reach into the page around it. Of
that only shapes and texts are kept. The few colours that may be drawn with stand for the page's variables, so a picture
turns dark with the page; names are made its own; numbers are rounded to a hundredth of a pixel.

There are four pictures. The ledger is a staircase: every purchase begins where the one before ended, up to what was
promised in all; rounds of one purchase are told apart by gaps, and every bar has its amount beside it. Half-widths of
answers stand over how many people they count, one mark for each question. The regions of a release are a tree of cuts
from above, or ribbons, attributes cut into parts: a node is as wide as its share of its parent's people, a part of a
ribbon as its share of the whole. What is too narrow to be seen is not drawn, so a hundred thousand regions make no
larger picture than a hundred.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.pictures.canvas import Panel, draw_curves, styled

INK, SOFT, LINE, FILL, BAND, ACCENT, PAPER = (f"#01020{number}" for number in range(1, 8))
"""The colours that may be drawn with: letters, lesser letters, rules, areas, intervals, what stands out, and the
ground.
"""
VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    FILL: "--fill",
    BAND: "--band",
    ACCENT: "--accent",
    PAPER: "--paper",
}
"""The page's variable of each colour."""
LETTERS = 10.5
"""The size of letters, in pixels, where a picture is shown as large as it was drawn."""
SMALL = 9.5
"""The size of small letters."""
WIDTH = 0.6
"""How wide a letter is at most, on average, in parts of its size."""
INLINE = {
    "svg.fonttype": "none",
    "font.size": LETTERS,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "hatch.color": PAPER,
    "hatch.linewidth": 1.0,
    "figure.facecolor": "none",
}
"""Settings of pictures inside a page."""
KEPT = {"g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "pattern"}
"""The elements that are kept: shapes and texts."""
ATTRIBUTES = {"d", "x", "y", "width", "height", "transform", "clip-path", "patternUnits", "id", "href", "style"}
"""The attributes that are kept, but for colours."""
COLOURS = {"fill", "stroke"}
"""The attributes that hold a colour."""
NUMBER = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"url\(#([\w.-]+)\)")
UNWRITABLE = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""The characters that no such document may hold."""
TURNED_BY_NOTHING = re.compile(r"^rotate\(-?0 [^)]*\)$")
FONT = re.compile(r"font-family:[^;]*;?\s*|font:[^;]*;?\s*")
ROW = 30.0
"""The height of a purchase, in pixels."""
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----")
"""How bars of purchases are filled, one after the other."""
HIGH = 280.0
"""The height of the picture of half-widths, in pixels."""
GUIDES = (1.0, 0.1, 0.01)
"""Half-widths that are all, a tenth and a hundredth of the answer."""
CURVES_HIGH = 240.0
"""The height of curves without their names, in pixels."""
NODE_HIGH, RIBBON_HIGH = 44.0, 46.0
"""The heights of a node and of a ribbon, in pixels."""
TEXTURES = ("", "////", "....", "xxxx")
"""How parts of ribbons are filled, one after the other."""


def picture(size: tuple[float, float], draw: Callable[[Any], None], label: str, class_: str = "") -> str:
    """Draw on a figure of so many pixels, and return it as an element for a page, named for those who cannot see it."""
    from matplotlib.figure import Figure

    written = io.StringIO()
    with styled(INLINE):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72)
        draw(figure)
        figure.savefig(written, format="svg", dpi=72, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _element(written.getvalue(), size, label, class_)


def room(text: str, pixels: float, size: float = LETTERS) -> bool:
    """Whether a text fits into so many pixels."""
    return len(text) * size * WIDTH <= pixels


def fitted(text: str, pixels: float, size: float = LETTERS) -> str:
    """Cut a text to what fits, nothing if that is next to nothing.

    >>> fitted("Without-post-secondary", 80), fitted("Married", 80), fitted("Married", 9)
    ('Without-pos…', 'Married', '')
    """
    most = int(pixels / (size * WIDTH))
    return text if len(text) <= most else f"{text[: most - 1]}…" if most > 2 else ""


def _element(document: str, size: tuple[float, float], label: str, class_: str) -> str:
    document = UNWRITABLE.sub("�", document)
    mark = hashlib.sha256((class_ + document).encode()).hexdigest()[:8]
    root = ElementTree.fromstring(document)
    inner = "".join(part for child in root for part in _written(child, mark, _referred(root)))
    width, height = (f"{one:g}" for one in size)
    return (
        f'<svg class="picture {html.escape(class_)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{html.escape(label)}"><title>{html.escape(label)}</title>{inner}</svg>'
    )


def _referred(root: ElementTree.Element) -> set[str]:
    """The names that something in the document refers to; the others are dropped."""
    values = [value for one in root.iter() for value in one.attrib.values()]
    return {found for value in values for found in REFERENCE.findall(value)} | {
        value[1:] for value in values if value.startswith("#")
    }


def _written(element: ElementTree.Element, mark: str, referred: set[str]) -> Iterator[str]:
    """Write an element and what is in it, if it is a shape or a text."""
    name = _local(element.tag)
    if name not in KEPT:
        return
    attributes = "".join(
        f' {key}="{html.escape(value)}"' for key, value in _attributes(element, mark, referred).items()
    )
    inner = html.escape(element.text or "", quote=False) if name in ("text", "tspan") else ""
    below = "".join(part for child in element for part in _written(child, mark, referred))
    if name in ("g", "defs") and not below:
        return
    if name == "g" and not attributes:
        yield below
    elif inner or below:
        yield f"<{name}{attributes}>{inner}{below}</{name}>"
    else:
        yield f"<{name}{attributes}/>"


def _attributes(element: ElementTree.Element, mark: str, referred: set[str]) -> dict[str, str]:
    """What is kept of an element's attributes: colours become the page's, names this picture's own."""
    kept: dict[str, str] = {}
    style = FONT.sub("", element.get("style", ""))
    for key, value in element.attrib.items():
        key = _local(key)
        if key == "id" and value in referred:
            kept[key] = f"{mark}{value}"
        elif key == "href":
            kept[key] = f"#{mark}{value[1:]}"
        elif key in COLOURS:
            style += f";{key}: {value}"
        elif key in ATTRIBUTES - {"id", "style"} and not TURNED_BY_NOTHING.match(value):
            kept[key] = REFERENCE.sub(rf"url(#{mark}\1)", _rounded(value))
    if size := re.search(r"font:[^;]*?([\d.]+px)", element.get("style", "")):
        style += f";font-size: {size[1]}"
    style = ";".join(part.strip() for part in style.split(";") if part.strip())
    for colour, variable in VARIABLES.items():
        style = style.replace(colour, f"var({variable})")
    return kept | ({"style": REFERENCE.sub(rf"url(#{mark}\1)", _rounded(style))} if style else {})


def _rounded(text: str) -> str:
    """Round the numbers in a text, and take the line breaks out.

    >>> _rounded("M 0.123456 86.4\\nL 340.0 -0.001")
    'M 0.12 86.4 L 340 0'
    """
    return " ".join(NUMBER.sub(lambda found: f"{round(float(found[0]), 2) + 0.0:g}", text).split())


def _local(name: str) -> str:
    return name.rpartition("}")[2]


@dataclass(frozen=True)
class Purchase:
    """What one kind of rounds paid, round by round."""

    name: str
    paid: tuple[float, ...]

    @property
    def total(self) -> float:
        """What the rounds paid in all."""
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
            start = _draw_purchase(axes, row, one, start, gap)
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


def _draw_purchase(axes: Any, row: int, one: Purchase, start: float, gap: float) -> float:
    """Draw the rounds of a purchase from where the one before ended, with gaps between them; return where it ends."""
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
    end = float(ends[-1])
    axes.annotate(_amount(one.total), (end, row), (5, 0), textcoords="offset points", va="center", fontsize=SMALL)
    return end


def _ticks(end: float) -> list[float]:
    return [0.0, end / 4, end / 2, 3 * end / 4, end]


def _amount(epsilon: float) -> str:
    return f"{epsilon:.3g}"


@dataclass(frozen=True, eq=False)
class Marks:
    """Answers, half-widths of their intervals, and which of them ask for just what was measured."""

    sizes: Floats
    halves: Floats
    measured: Booleans


def draw_half_widths(marks: Marks, width: float, label: str, class_: str) -> str:
    """Draw half-widths of 95 % intervals over sizes, both by powers of ten, with lines of equal relative width."""
    across = (max(float(marks.sizes.min()), 1.0) / 1.5, float(marks.sizes.max()) * 1.5)
    up = (float(marks.halves.min()) / 2, float(marks.halves.max()) * 3)

    def draw(figure: Any) -> None:
        axes = figure.add_axes((44 / width, 38 / HIGH, (width - 78) / width, (HIGH - 58) / HIGH))
        axes.set(xscale="log", yscale="log", xlim=across, ylim=up)
        for share in GUIDES:
            _draw_guide(axes, share, across, up)
        for which, filling in ((~marks.measured, PAPER), (marks.measured, ACCENT)):
            style = {"markersize": 4, "markerfacecolor": filling, "markeredgecolor": INK, "markeredgewidth": 0.5}
            axes.plot(marks.sizes[which], marks.halves[which], "o", **style)
        axes.set_xlabel("people counted")
        axes.annotate("± people", (0, 1), (-40, 6), "axes fraction", "offset points", color=SOFT)
        axes.xaxis.set_major_formatter(_round_number)
        axes.yaxis.set_major_formatter(_round_number)
        axes.minorticks_off()
        axes.tick_params(length=3, width=0.8, labelsize=SMALL, labelcolor=SOFT)
        axes.spines[["right", "top"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)

    return picture((width, HIGH), draw, label, class_)


def _round_number(value: float, _: int) -> str:
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


def draw_panel(panel: Panel, width: float, label: str, class_: str) -> str:
    """Draw curves over a quantity, named where there is room: above the picture."""
    names = list(dict.fromkeys(curve.name for curve in panel.curves))
    across = max(int(width // 110), 1)
    above = 16.0 * -(-len(names) // across) + 6
    high = CURVES_HIGH + above

    def draw(figure: Any) -> None:
        axes = figure.add_axes((52 / width, 40 / high, (width - 66) / width, CURVES_HIGH / high - 60 / high))
        draw_curves(axes, replace(panel, title="", levels=()), {name: at for at, name in enumerate(names)})
        axes.tick_params(length=3, width=0.8, labelsize=SMALL, labelcolor=SOFT)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.02), ncols=across, fontsize=SMALL, frameon=False, borderpad=0.1
        )

    return picture((width, high), draw, label, class_)


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
