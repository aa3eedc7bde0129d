"""The application and its server: which address leads to which screen, and how it is served to this machine alone."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sfumato
from sfumato.errors import MethodError
from sfumato.pictures.canvas import refuse_pictureless
from sfumato.studio import analyst, holder, publishing
from sfumato.studio.desk import Desk
from sfumato.studio.guard import ADDRESS, Door, Guard, TooLargeError, too_large
from sfumato.studio.pages import Asked, Studio, go, refusal, screen
from sfumato.studio.work import Office

STATIC = Path(__file__).parent / "static"


def told(studio: Studio, asked: Asked) -> Response:
    """Where a piece of work stands."""
    work = studio.office.by_id(asked.query.get("id", ""))
    return JSONResponse({"state": "unknown"} if work is None else work.told())


def cancel(studio: Studio, asked: Asked) -> Response:
    """Cancel a piece of work."""
    work = studio.office.by_id(asked.form.get("id", ""))
    if work is not None:
        studio.office.cancel(work)
    back = asked.form.get("back", "/")
    return go(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")


def refused(studio: Studio, asked: Asked) -> Response:
    """Say that a screen is not for analysts."""
    error = MethodError("this screen must be opened by a holder, and the studio was started read-only", "See Release.")
    return refusal(studio, asked, error, 403)


def missing(studio: Studio, asked: Asked) -> Response:
    """Say that there is no such page."""
    error = MethodError("the address must be one of the studio's", "Begin at the top.")
    return refusal(studio, asked, error, 404)


def make_app(desk: Desk, door: Door) -> Guard:
    """Make the application of a desk, behind its guard."""
    office = Office()
    studio = Studio(desk, office)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=office.warm, daemon=True).start()
        yield
        office.close()

    holders = {**holder.ROUTES, **publishing.ROUTES}
    if desk.read_only:
        holders = dict.fromkeys(holders, screen(refused)) | {("GET", "/"): holders["GET", "/"]}
    own = {("GET", "/work"): screen(told), ("POST", "/work/cancel"): screen(cancel)}
    routes: list[Any] = [
        Route(path, endpoint, methods=[method])
        for (method, path), endpoint in {**holders, **analyst.ROUTES, **own}.items()
    ]
    routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    routes.append(Route("/{rest:path}", screen(missing)))
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={TooLargeError: too_large})
    app.state.studio = studio
    return Guard(app, door)


def serve(
    folder: Path,
    data: str | None = None,
    *,
    port: int = 0,
    read_only: bool = False,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the studio of a folder until it is interrupted; say the address that opens it, once."""
    refuse_pictureless()
    desk = Desk(folder, data, read_only=read_only)
    if data is not None and not read_only:
        sfumato.raw_rows(desk.find(data).table, rows=1)
    bound = bound_to(port)
    door = Door(bound.getsockname()[1])
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(desk, door), log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2
        )
    )
    address = door.address
    say(address)
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server.run(sockets=[bound])


def bound_to(port: int) -> socket.socket:
    """Bind a port of this machine's own address; 0 for any that is free.

    The protocol is named so that the server sends small answers at once instead of waiting for more to send.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
    except OSError:
        bound.close()
        raise MethodError(f"port ({port}) must be free", "Give another with --port, or none.") from None
    bound.listen()
    return bound
