"""A Chromium without a network, driven over its debugging pipe: what a page asked for, complained of and measures."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
STARTER = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives a program our pipes as its third and fourth file, where the browser looks for them."""
PATIENCE = 60.0
"""Seconds that an answer may take."""


def find_chromium() -> str | None:
    """Give the first browser that is there."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


@dataclass
class Browser:
    """One page in one browser; what it said is kept."""

    _to: int
    _from: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _rest: bytes = b""
    _number: int = 0
    _session: str | None = None

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            read = os.read(self._from, 1 << 20)
            assert read, "the browser has gone"
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def attach(self) -> None:
        """Open an empty page, and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def open(self, page: Path) -> None:
        """Load a page, and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not self.heard("Page.loadEventFired"):
            self.events.append(self._next())

    def heard(self, method: str) -> list[dict[str, Any]]:
        """Give what was told of one kind."""
        return [one["params"] for one in self.events if one.get("method") == method]

    def look(self, width: int, scheme: str) -> None:
        """See the page in a window of so many pixels, by day or by night."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="screen", features=features)

    def value(self, script: str) -> Any:
        """Work something out in the page, which itself may run no script."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def shoot(self, out: Path) -> bytes:
        """Write a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        out.write_bytes(picture := base64.b64decode(shot["data"]))
        return picture

    def print(self, out: Path) -> bytes:
        """Write the page as it is on paper."""
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        printed = self.call("Page.printToPDF", preferCSSPageSize=False, paperWidth=8.27, paperHeight=11.69)
        out.write_bytes(paper := base64.b64decode(printed["data"]))
        return paper


@contextlib.contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """Start a browser for a while."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    starter = [sys.executable, "-c", STARTER, str(theirs_in), str(theirs_out)]
    process = subprocess.Popen([*starter, *command], pass_fds=(theirs_in, theirs_out), **silent)
    try:
        os.close(theirs_in)
        os.close(theirs_out)
        opened = Browser(ours_out, ours_in)
        opened.attach()
        yield opened
        with contextlib.suppress(OSError, AssertionError):
            opened.call("Browser.close")
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        process.wait(30)
