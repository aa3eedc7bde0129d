"""From a request to a page: forms are read within limits, templates filled in, and refusals shown in one sentence.

Templates escape whatever they show, and what cannot be seen is replaced. A refusal is a page with the sentence and the
way out, or, for a piece of a page, the same as a piece.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sfumato.errors import SfumatoError
from sfumato.report.html import shortened, visible
from sfumato.studio.desk import Desk
from sfumato.studio.work import Office

MOST_FIELDS = 20_000
"""A form has no more fields: ten of each of two thousand columns."""
LARGEST_PART = 4 * 2**20
"""No field of a form has more bytes."""
HOLDER = {
    "table": "Table",
    "schema": "Schema",
    "person": "Person",
    "plan": "Plan",
    "compare": "Compare",
    "publish": "Publish",
    "account": "Account",
}
"""The screens of a holder, in the order of the work."""


@dataclass
class Studio:
    """What every screen has at hand."""

    desk: Desk
    office: Office
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    """by screen and table, the key of the work that was begun there last"""


@dataclass(frozen=True)
class Asked:
    """What a request says: its address, its form, and whether a piece of a page is wanted."""

    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    several: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    piece: bool = False

    @property
    def data(self) -> str:
        """The word for the table that the request is about."""
        return self.form.get("data") or self.query.get("data", "")


Action = Callable[[Studio, Asked], Response]


def screen(action: Action) -> Callable[[Request], Any]:
    """Make an endpoint of an action: it runs in a thread, and what it refuses is shown."""

    @functools.wraps(action)
    async def endpoint(request: Request) -> Response:
        studio: Studio = request.app.state.studio
        asked = await _asked(request)
        try:
            return await run_in_threadpool(action, studio, asked)
        except SfumatoError as error:
            return refusal(studio, asked, error)

    return endpoint


async def _asked(request: Request) -> Asked:
    query, piece = dict(request.query_params), "x-piece" in request.headers
    if request.method != "POST":
        return Asked(query, piece=piece)
    async with request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=LARGEST_PART) as given:
        texts = [(key, value) for key, value in given.multi_items() if isinstance(value, str)]
        files = {key: await one.read() for key, one in given.multi_items() if isinstance(one, UploadFile)}
    several: dict[str, list[str]] = {}
    for key, value in texts:
        several.setdefault(key, []).append(value)
    return Asked(query, dict(texts), several, files, piece)


def _shown(value: Any) -> Any:
    """Text as it may be shown; markup of ours as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _number(value: float) -> str:
    return f"{value:,.0f}"


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("sfumato.studio"),
    autoescape=True,
    finalize=_shown,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "short": shortened,
    "number": _number,
    "markup": Markup,
    "sentence": lambda text: text[:1].upper() + text[1:].rstrip("."),
}


def page(name: str, studio: Studio, asked: Asked, *, status: int = 200, **facts: Any) -> Response:
    """Fill a template in."""
    shared: dict[str, Any] = {
        "holder": HOLDER,
        "screen": "",
        "data": asked.data,
        "release_word": "",
        "read_only": studio.desk.read_only,
        "same": None,
    }
    return HTMLResponse(TEMPLATES.get_template(name).render(shared | facts), status)


def piece(name: str, screen: str, **facts: Any) -> Response:
    """Fill in a piece of a page, which its script puts in place."""
    shared = {"screen": screen, "data": "", "release_word": ""}
    return HTMLResponse(TEMPLATES.get_template(name).render(shared | facts))


def refusal(studio: Studio, asked: Asked, error: SfumatoError, status: int = 400) -> Response:
    """Show what is not possible, and the way out."""
    if asked.piece:
        return HTMLResponse(TEMPLATES.get_template("refused.html").render(error=error), status)
    return page("refusal.html", studio, asked, status=status, error=error)


def go(path: str, **query: str) -> Response:
    """Go on to another screen."""
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


def command(*words: str) -> str:
    """A command as it is typed."""
    return " ".join(["sfumato", *(shlex.quote(one) for one in words)])


def literal(text: object) -> str:
    """A text as Python writes it."""
    return json.dumps(str(text), ensure_ascii=False)
