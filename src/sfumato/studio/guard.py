"""Who may talk to the studio: a browser on this machine that was opened with the address that the terminal showed.

The studio stands in front of private data, and every page that a browser has open can send requests to this machine. So
each request must pass, in this order:

* **Host** is the very address that was bound: a foreign name that leads here (DNS rebinding) is refused;
* **the cookie**, which is had once for the token of the opening address, is HttpOnly and SameSite=Strict;
* **the sender**: whatever another site or another port sends is refused. What changes something must say that it comes
  from here, by Sec-Fetch-Site or, where a browser does not send that, by Origin;
* **the size**: a body has so many bytes at most, however it is sent.

A failure that nobody expected is told by its kind alone: messages of libraries hold values. Answers are never kept by
the browser, run no script but ours, and are shown in no frame.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
"""The only address that is bound."""
OPENING = "/open"
"""The path of the opening address."""
LARGEST_BODY = 8 * 2**20
"""No request has more bytes."""
READING = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""What every answer carries. Pictures colour their shapes by style attributes, which run nothing."""
OPENED = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/">
<link rel="icon" href="/static/icon.svg"><title>Sfumato studio</title></head>
<body><p><a href="/">Open the studio</a></p></body></html>"""
"""What the opening address answers: a page of ours that goes on, since a Strict cookie does not follow a redirect that
began elsewhere.
"""


@dataclass
class Door:
    """The secrets of one run of the studio: the token of its opening address, for one use, and the cookie's value."""

    port: int
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def host(self) -> str:
        """The one Host that is answered."""
        return f"{ADDRESS}:{self.port}"

    @property
    def address(self) -> str:
        """The opening address."""
        return f"http://{self.host}{OPENING}?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers do not tell ports apart, so two studios must."""
        return f"sfumato-studio-{self.port}"

    def take(self, token: str) -> bool:
        """Whether this is the token; from then on it is none."""
        right = self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())
        self.token = None if right else self.token
        return right

    def knows(self, cookies: str) -> bool:
        """Whether a Cookie header holds the session."""
        try:
            found = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.session.encode())


class TooLargeError(Exception):
    """A body that is longer than any that is meant."""


class Guard:
    """Lets through what may pass, and sees to it that every answer carries the headers."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        """Stand before an application."""
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse, one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                own = {name for name, _ in message["headers"]}
                added = [(key.encode(), value.encode()) for key, value in HEADERS.items() if key.encode() not in own]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            answer = self._refusal(scope) or self._opening(scope)
            await (answer or self._app)(scope, _bounded(receive), sent)
        except TooLargeError:
            if not begun:
                await too_large()(scope, receive, sent)
        except Exception as error:
            if not begun:
                words = f"The studio must not fail like this ({type(error).__name__}). Report it, without the data."
                await _plain(words, 500)(scope, receive, sent)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._door.host]:
            return _plain(f"Host must be {self._door.host}", 421)
        if scope["path"] == OPENING:
            return None if scope["method"] in READING else _plain("The opening address must be read", 405)
        if not self._door.knows("; ".join(headers.getlist("cookie"))):
            return _plain("The studio must be opened with the address that the terminal shows", 401)
        if not self._from_here(scope["method"], headers):
            return _plain("A request must come from the studio's own pages", 403)
        if _length(headers) > LARGEST_BODY:
            return too_large()
        return None

    def _from_here(self, method: str, headers: Headers) -> bool:
        """Whether the sender is a page of ours; reading is also open to an address that a person typed."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        own = origin == f"http://{self._door.host}"
        if origin is not None and not own:
            return False
        if method in READING:
            return site in (None, "none", "same-origin")
        return method == "POST" and (site == "same-origin" if site is not None else own)

    def _opening(self, scope: Scope) -> Response | None:
        if scope["path"] != OPENING:
            return None
        given = dict(part.partition("=")[::2] for part in scope["query_string"].decode("latin-1").split("&"))
        if scope["method"] != "GET" or not self._door.take(given.get("token", "")):
            return _plain("This address was used, or is not the studio's: start the studio again for a new one", 401)
        answer = HTMLResponse(OPENED)
        answer.set_cookie(self._door.cookie, self._door.session, httponly=True, samesite="strict", path="/")
        return answer


def too_large(*_: object) -> Response:
    """Refuse a body that is too long."""
    return _plain(f"A request must have at most {LARGEST_BODY >> 20} MB", 413)


def _length(headers: Headers) -> float:
    written = headers.get("content-length", "0")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 16 else float("inf")


def _bounded(receive: Receive) -> Receive:
    """Count what a body brings, whatever it said of its length."""
    seen = 0

    async def received() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise TooLargeError
        return message

    return received


def _plain(words: str, status: int) -> Response:
    return PlainTextResponse(f"{words}.\n", status)
