"""The command that opens the studio: all of it in the browser, on this machine alone."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.show import Show, lacking, reporting


@click.command()
@click.argument("data", type=click.Path(), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to serve at [default: any free one].")
@click.option("--read-only", is_flag=True, help="For analysts: releases only, and nothing is written.")
@click.option("--no-browser", is_flag=True, help="Show the address, and open no browser.")
@reporting
def studio(data: str | None, port: int, read_only: bool, no_browser: bool, show: Show) -> None:
    """Open a local page on which all of it is done: from a table to a release, and from a release to answers.

    DATA is a table to begin with; others are chosen below the folder that you are in, where releases go, too. Only this
    machine can reach the page, by an address that works once.
    """
    try:
        from sfumato.studio import serve
    except ImportError:
        raise lacking("studio", "starlette, uvicorn and jinja2", "studio") from None

    def say(address: str) -> None:
        once = "The address works once, on this machine. End with Ctrl-C."
        show.result({"address": address}, f"The studio of {Path.cwd()} is at\n\n  {address}\n\n{once}")

    serve(Path.cwd(), data, port=port, read_only=read_only, browser=not no_browser, say=say)
