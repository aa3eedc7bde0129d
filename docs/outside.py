"""Links of documents to files outside of docs/ become plain names on the site, where these files are not."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the words of such links without the link."""
    return OUTSIDE.sub(r"\1", markdown)
