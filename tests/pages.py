"""What a page is made of, found by reading it as a browser would: tags, attributes and texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

REACHING = {"script", "img", "iframe", "link", "object", "embed", "form", "base", "audio", "video", "image"}
"""Tags that run something or fetch something."""


class Page(HTMLParser):
    """A page taken apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open[-1:]:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """Everything that is read."""
        return " ".join(" ".join(self.texts).split())


def problems_of(text: str) -> list[str]:
    """Tell what a page would run or fetch, and what is not closed."""
    page = Page(text)
    found = [f"tag {tag}" for tag in page.tags if tag in REACHING]
    found += [f"attribute {name}" for name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset")]
    found += [f"link {value}" for name, value in page.attributes if name == "href" and not value.startswith("#")]
    found += [f"address {one}" for one in re.findall(r"\w+://\S+", text)]
    found += [f"url {one}" for one in re.findall(r"url\((?!#)[^)]*\)|@import", text)]
    names = [value for name, value in page.attributes if name == "id"]
    found += [f"id {name} twice" for name in {one for one in names if names.count(one) > 1}]
    known = set(names)
    found += [f"no {one}" for one in re.findall(r"url\(#([^)]+)\)", text) if one not in known]
    found += [f"no {value}" for name, value in page.attributes if name == "href" and value[1:] not in known]
    return found + [f"{tag} is not closed" for tag in page.open]
