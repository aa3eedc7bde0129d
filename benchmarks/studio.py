"""How long every screen of the studio takes on Adult, beside a static page of the same server in the same run.

Work in the background is waited for first; what is timed is the answer to a request, as a browser on this machine would
have it. A ratio says more than milliseconds: the static page pays for the same guard, cookie and headers.
"""

from __future__ import annotations

import http.client
import os
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from sfumato.studio.desk import Desk
from sfumato.studio.guard import ADDRESS, Door
from sfumato.studio.server import bound_to, make_app

REPEATS = 15
LIMIT = 200.0
"""Milliseconds within which every screen should answer."""
STATIC = "/static/studio.css"
SCREENS = {
    "Table": "/table?data=adult",
    "Schema": "/schema?data=adult",
    "values of a column": "/taxonomy?data=adult&column=native_country",
    "Person": "/person?data=adult",
    "Plan": "/plan?data=adult",
    "Compare": "/compare?data=adult",
    "Publish": "/publish?data=adult",
    "Account": "/account?data=adult",
    "Release": "/release?release=release",
    "a pair, drawn anew": "/release/pair?release=release&one=education&other=occupation",
    "records": "/release/records?release=release",
}


class Browser:
    """One connection to a studio, with its cookie."""

    def __init__(self, door: Door) -> None:
        """Open the studio."""
        self._line = http.client.HTTPConnection(ADDRESS, door.port)
        self._headers = {"host": door.host, "origin": f"http://{door.host}"}
        self._line.request("GET", door.address.partition(door.host)[2], headers=self._headers)
        opened = self._line.getresponse()
        opened.read()
        self._headers["cookie"] = str(opened.headers["set-cookie"]).partition(";")[0]

    def get(self, path: str) -> str:
        """Read a page."""
        self._line.request("GET", path, headers=self._headers)
        answer = self._line.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (path, text[-300:])
        return text

    def post(self, path: str, fields: dict[str, str]) -> None:
        """Send a form."""
        headers = self._headers | {"content-type": "application/x-www-form-urlencoded"}
        self._line.request("POST", path, urlencode(fields), headers)
        self._line.getresponse().read()

    def waited(self, path: str) -> str:
        """A page when its work is done."""
        while "data-work=" in (text := self.get(path)):
            time.sleep(0.1)
        return text


def milliseconds(action: Callable[[], object]) -> float:
    """The median time of an action."""
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def measure(browser: Browser) -> None:
    """Publish Adult, then time every screen."""
    plan = {"data": "adult", "method": "diffgen", "epsilon": "1", "rows": "45000", "questions": "age < 30"}
    browser.post("/plan", plan | {"out": "release"})
    seen = re.search(r'name="seen" value="(\w+)"', browser.get(SCREENS["Publish"]))
    assert seen is not None
    browser.post("/publish", {"data": "adult", "seen": seen[1], "sure": "1"})
    for path in SCREENS.values():
        browser.waited(path)
    static = milliseconds(lambda: browser.get(STATIC))
    print(f"| screen | milliseconds | times a static page ({static:.1f} ms) |\n| --- | ---: | ---: |")
    late = []
    for name, path in SCREENS.items():
        taken = milliseconds(partial(browser.get, path))
        late += [name] if taken > LIMIT else []
        print(f"| {name} | {taken:.0f} | {taken / static:.1f} |")
    print(f"\nlate: {', '.join(late) or 'none'} (limit {LIMIT:.0f} ms); load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Serve a studio to this process."""
    bound = bound_to(0)
    door = Door(bound.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        config = uvicorn.Config(make_app(Desk(Path(folder)), door), log_config=None, access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            measure(Browser(door))
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    main()
