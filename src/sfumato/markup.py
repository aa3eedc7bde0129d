"""Markup that cannot be broken by what it shows: text is escaped unless it was made here.

Names, values and labels come from files that anyone may have forged. Whatever is no `Html` is text, so a name that
looks like a tag stays a name; characters that cannot be seen are shown as such.
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Sequence

LONGEST_CELL = 80
"""The most letters of a cell of a table; longer texts are cut."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def visible(text: object) -> str:
    """Replace what cannot be seen, such as control characters and marks that turn the direction of writing.

    >>> visible("a\\x00b\\u202ec")
    'a�b�c'
    """
    return "".join(one if one.isprintable() or one == "\n" else "�" for one in str(text))


def shortened(text: object, most: int = LONGEST_CELL) -> str:
    """The beginning of a long text.

    >>> shortened("Exec-managerial", 8)
    'Exec-ma…'
    """
    shown = visible(text).replace("\n", " ")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def escaped(part: object) -> Html:
    """Markup as it is, and everything else as text.

    >>> escaped("<b>"), escaped(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return part if isinstance(part, Html) else Html(html.escape(visible(part)))


def joined(parts: Iterable[object]) -> Html:
    """Put parts one after the other."""
    return Html("".join(map(escaped, parts)))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Write an element; `class_` and `aria_label` are the attributes `class` and `aria-label`.

    >>> tag("p", "1 < 2", class_='"', hidden=None)
    '<p class="&quot;">1 &lt; 2</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def paragraph(*children: object, class_: str | None = None) -> Html:
    """Write a paragraph."""
    return tag("p", *children, class_=class_)


def table(header: Sequence[object], rows: Iterable[Sequence[object]], right: Container[int] = ()) -> Html:
    """Write a table whose cells are short, the given columns flush right; the first cell of a row names it."""

    def cell(kind: str, at: int, content: object, **more: object) -> Html:
        shown = content if isinstance(content, Html) else shortened(content)
        return tag(kind, shown, class_="n" if at in right else None, **more)

    head = tag("tr", *(cell("th", at, one, scope="col") for at, one in enumerate(header)))
    body = [
        tag(
            "tr",
            *(cell("th" if at == 0 else "td", at, one, scope="row" if at == 0 else None) for at, one in enumerate(row)),
        )
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")
