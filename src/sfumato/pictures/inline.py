"""Pictures inside a page: they take their colours and letters from it, and bring nothing else along.

matplotlib writes a document of its own: colours, fonts, styles and names that would reach into the page around it. Of
that only shapes and texts are kept. The few colours that may be drawn with stand for the page's variables, so a picture
turns dark with the page; names are made its own; numbers are rounded to a hundredth of a pixel.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

from sfumato.pictures.canvas import styled

INK, SOFT, LINE, FILL, BAND, ACCENT, PAPER = (f"#01020{number}" for number in range(1, 8))
"""Letters, lesser letters, rules, areas, intervals, what stands out, and the ground."""
VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    FILL: "--fill",
    BAND: "--band",
    ACCENT: "--accent",
    PAPER: "--paper",
}
LETTERS = 10.5
"""The size of letters, in pixels, where a picture is shown as large as it was drawn."""
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
KEPT = {"g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "pattern"}
ATTRIBUTES = {"d", "x", "y", "width", "height", "transform", "clip-path", "patternUnits", "id", "href", "style"}
COLOURS = {"fill", "stroke"}
NUMBER = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"url\(#([\w.-]+)\)")
UNWRITABLE = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""What no such document may hold."""
TURNED_BY_NOTHING = re.compile(r"^rotate\(-?0 [^)]*\)$")
FONT = re.compile(r"font-family:[^;]*;?\s*|font:[^;]*;?\s*")


def picture(size: tuple[float, float], draw: Callable[[Any], None], label: str, class_: str = "") -> str:
    """Draw on a figure of so many pixels; give it as an element for a page, named for those who cannot see it."""
    from matplotlib.figure import Figure

    written = io.StringIO()
    with styled(INLINE):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72)
        draw(figure)
        figure.savefig(written, format="svg", dpi=72, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _element(written.getvalue(), size, label, class_)


def room(text: str, pixels: float, size: float = LETTERS) -> bool:
    """Tell whether a text fits into so many pixels."""
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
    """Give the names that something in the document speaks of; the others are dropped."""
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
    """Give what is kept of an element's attributes: colours become the page's, names this picture's own."""
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
