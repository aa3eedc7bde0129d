"""The markup of pages: what is folded, pictures with captions, sections; and all of `sfumato.markup`."""

from __future__ import annotations

from sfumato.markup import Html, escaped, joined, paragraph, shortened, table, tag, visible

__all__ = [
    "Html",
    "details",
    "escaped",
    "figure",
    "joined",
    "paragraph",
    "section",
    "shortened",
    "table",
    "tag",
    "visible",
]


def details(summary: object, *children: object) -> Html:
    """Write what is folded until someone opens it."""
    return tag("details", tag("summary", summary), *children)


def figure(*pictures: object, caption: object, below: object = Html("")) -> Html:
    """Write pictures with what they show in words, and below it the same in numbers."""
    return tag("figure", *pictures, tag("figcaption", caption), below)


def section(name: str, title: str, *children: object, class_: str | None = None) -> Html:
    """Write a part of the page that can be linked to."""
    return tag("section", tag("h2", title), *children, id=name, class_=class_)
