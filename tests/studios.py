"""A studio to talk to without a network: its folder, its door, and a browser's headers."""

from __future__ import annotations

import csv
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from sfumato.studio.desk import Desk
from sfumato.studio.guard import Door
from sfumato.studio.server import make_app

PORT = 8123
HERE = f"http://127.0.0.1:{PORT}"
PATIENCE = 60.0
"""Seconds that work may take."""
SCHEMA = """\
name: people
confirmed: true
budget: 2
attributes:
  age: {kind: numeric, lower: 0, upper: 99}
  sex: {kind: categorical, taxonomy: [Female, Male]}
  job: {kind: categorical, taxonomy: [{Office: [Clerk, Boss]}, {Art: [Dancer, Writer]}]}
  ill: {kind: class, taxonomy: [no, yes]}
"""


def write_people(path: Path, rows: int = 300, schema: str | None = SCHEMA, job: str = "Dancer") -> None:
    """Write a table of made-up people, and its schema unless there is to be none."""
    rng = random.Random(1)
    jobs = ["Clerk", "Boss", job, "Writer"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sex", "job", "ill"])
        for _ in range(rows):
            ill = "yes" if rng.random() < 0.3 else "no"
            writer.writerow([rng.randrange(18, 90), rng.choice(["Female", "Male"]), rng.choice(jobs), ill])
    if schema is not None:
        path.with_name(f"{path.stem}.schema.yaml").write_text(schema, encoding="utf-8")


@dataclass
class Visitor:
    """A browser that was let in."""

    client: TestClient
    folder: Path
    door: Door

    def get(self, path: str, **options: Any) -> Any:
        """Read a page."""
        return self.client.get(path, **options)

    def post(self, path: str, fields: dict[str, Any], **options: Any) -> Any:
        """Send a form as a page of the studio does."""
        return self.client.post(path, data=fields, headers={"origin": HERE}, **options)

    def version(self, path: str, field: str = "version") -> str:
        """What a form of a page says that it has seen."""
        found = re.search(rf'name="{field}" value="(\w+)"', self.get(path).text)
        assert found is not None
        return found[1]

    def waited(self, path: str) -> str:
        """A page when its work is done."""
        until = time.monotonic() + PATIENCE
        while "data-work=" in (text := self.get(path).text):
            assert time.monotonic() < until, "the work does not end"
            time.sleep(0.05)
        return text

    def shown(self, path: str, words: str) -> str:
        """A page when it shows some words."""
        until = time.monotonic() + PATIENCE
        while words not in (text := self.get(path).text):
            assert time.monotonic() < until, f"never shown: {words}"
            time.sleep(0.05)
        return text

    def plan(self, **facts: str) -> None:
        """Keep a plan for people.csv."""
        fields = {"data": "people.csv", "method": "laplace", "epsilon": "1", "rows": "300", "out": "release"}
        assert self.post("/plan", fields | {"questions": ""} | facts).status_code == 200

    def publish(self, **facts: str) -> Any:
        """Press the button, having looked."""
        page = "/publish?data=people.csv"
        return self.post("/publish", {"data": "people.csv", "seen": self.version(page, "seen"), "sure": "1"} | facts)


@contextmanager
def visiting(folder: Path, given: str | None = None, *, read_only: bool = False) -> Iterator[Visitor]:
    """Start a studio in a folder, and open it with its address."""
    door = Door(PORT)
    with TestClient(make_app(Desk(folder, given, read_only=read_only), door), base_url=HERE) as client:
        assert client.get(f"/open?token={door.token}").status_code == 200
        yield Visitor(client, folder, door)
