"""The studio in a real browser without a network: a new user's way, keys alone, phones, the dark, and axe's rules."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from browser import NAMES, find_chromium
from sfumato import Release, Schema

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on PATH ({', '.join(NAMES)})")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
PATIENCE = 90_000
"""Milliseconds that work may take."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
START = "import sys; from sfumato.cli import main; sys.argv[0] = 'sfumato'; main()"


def write_visits(path: Path, rows: int = 1200) -> None:
    """A table of 20 columns such as a clinic has."""
    rng = random.Random(5)
    words = {
        "sex": ["female", "male"],
        "region": ["north", "south", "east", "west"],
        "education": ["school", "college", "university"],
        "job": ["clerk", "nurse", "teacher", "driver", "cook", "farmer"],
        "marital": ["single", "married", "widowed"],
        "smoker": ["no", "yes"],
        "insurance": ["public", "private"],
        "language": ["de", "fr", "it"],
        "ward": ["a", "b", "c", "d"],
        "ill": ["no", "yes"],
    }
    numbers = {"age": (18, 90), "children": (0, 5), "visits": (0, 30), "height": (150, 200), "weight": (45, 120)}
    numbers |= {"income": (0, 9000), "score": (0, 100), "days": (0, 60)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "born", *numbers, *words])
        for number in range(rows):
            born = f"{rng.randrange(1935, 2005)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}"
            values = [rng.randint(*ends) for ends in numbers.values()]
            writer.writerow([f"P{number:06}", born, *values, *(rng.choice(several) for several in words.values())])


@dataclass
class Seen:
    """A page in a browser, and what it complained of or asked for elsewhere."""

    page: Any
    base: str
    folder: Path
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a screen, and wait until its work is done."""
        self.page.goto(self.base + path)
        self.settle()

    def settle(self) -> None:
        """Wait until no work is under way."""
        self.page.wait_for_selector("[data-work]", state="detached", timeout=PATIENCE)

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def focus(self) -> str:
        """The name of the element that has the focus."""
        return str(self.page.evaluate("document.activeElement.name || document.activeElement.className"))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("clinic")
    write_visits(folder / "visits.csv")
    command = [sys.executable, "-c", START, "studio", "--no-browser", "--json"]
    studio = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=os.environ.copy())
    try:
        assert studio.stdout is not None
        text = ""
        while "}" not in text:
            text += studio.stdout.readline()
            assert text, "the studio does not start"
        address = json.loads(text)["address"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.set_default_timeout(30_000)
            found = Seen(page, address.partition("/open")[0], folder)
            page.on("console", lambda one: found.complaints.append(one.text))
            page.on("pageerror", lambda one: found.complaints.append(str(one)))
            page.on("request", lambda one: one.url.startswith(found.base) or found.complaints.append(one.url))
            page.goto(address)
            page.wait_for_url("**/table")
            yield found
            browser.close()
    finally:
        studio.terminate()
        studio.communicate(timeout=30)


def violations(seen: Seen) -> list[str]:
    """What axe finds wrong with a page."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(seen.page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def test_a_new_user_goes_from_a_file_to_an_answer(seen: Seen) -> None:
    page = seen.page
    page.get_by_role("link", name="visits.csv").click()
    assert page.get_by_text("For the holder's eyes").count()
    page.get_by_role("link", name="Describe its columns").click()
    page.get_by_label("What is to be predicted").select_option("ill")
    page.get_by_label("Lifetime budget").fill("3")
    page.get_by_role("button", name="Draft a schema").click()
    page.wait_for_selector("#columns", timeout=PATIENCE)
    assert page.locator("#columns tbody tr").count() == 20
    seen.settle()
    assert "fits" in page.locator("#checked").inner_text()
    for box in page.locator(".checklist input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Confirm this schema").click()
    page.wait_for_url("**/person**")
    assert Schema.load(seen.folder / "visits.schema.yaml").confirmed
    page.get_by_role("button", name="go on").click()
    page.wait_for_url("**/plan**")
    page.get_by_label("Questions that matter").fill("age < 40\nsmoker = 'yes' and sex = 'female'")
    page.get_by_label("About how many rows").fill("1000")
    page.locator("#slider").fill("10")
    assert page.locator("#epsilon").input_value() == "2"
    page.wait_for_selector("#odds:has-text('88.1 %')")
    page.wait_for_selector("#expected code:has-text('smoker')", timeout=PATIENCE)
    page.get_by_role("button", name="Go on to publish").click()
    page.wait_for_url("**/publish**")
    assert not (seen.folder / "visits.ledger").exists(), "nothing was spent so far"
    page.get_by_label("Spend ε = 2").check()
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_role("link", name="See the release").click(timeout=PATIENCE)
    page.get_by_label("Attribute 1").select_option("age")
    page.get_by_label("Comparison 1").select_option("<")
    page.get_by_label("Value 1").fill("40")
    page.get_by_role("button", name="Ask", exact=True).click()
    told = page.locator(".answer .big").inner_text()
    assert f"{Release.load(seen.folder / 'visits-release').count('age < 40').value:,.0f}" in told
    seen.settle()
    assert page.locator("figure svg").count() > 15
    page.get_by_label("Across").select_option("sex")
    page.locator("form[data-piece] button").click()
    page.wait_for_selector("#pair-shown svg")
    with page.expect_download() as drawn:
        page.get_by_role("button", name="Download").click()
    assert len(Path(drawn.value.path()).read_text().splitlines()) == 1001
    seen.open("/account?data=visits.csv")
    assert page.get_by_role("heading", name="1 of 3 left").count()
    assert seen.complaints == []


def test_every_screen_passes_axe_and_fits_a_phone_by_night(seen: Seen) -> None:
    screens = [f"/{name}?data=visits.csv" for name in ("table", "schema", "person", "plan", "compare", "publish")]
    screens += ["/account?data=visits.csv", "/taxonomy?data=visits.csv&column=job", "/table"]
    screens += ["/release", "/release?release=visits-release", "/release/records?release=visits-release"]
    for screen in screens:
        seen.page.set_viewport_size({"width": 1280, "height": 900})
        seen.page.emulate_media(color_scheme="light")
        seen.open(screen)
        assert violations(seen) == [], screen
        seen.page.set_viewport_size({"width": 390, "height": 800})
        seen.page.emulate_media(color_scheme="dark")
        assert seen.page.evaluate(OVERFLOW) <= 0, screen
        assert violations(seen) == [], screen
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(22, 24, 26)", screen
    seen.page.set_viewport_size({"width": 1280, "height": 900})
    seen.page.emulate_media(color_scheme="light")
    assert seen.complaints == []


def test_columns_and_values_are_changed_with_keys_alone(seen: Seen) -> None:
    seen.open("/schema?data=visits.csv")
    place, page = seen.folder / "visits.schema.yaml", seen.page
    names = list(Schema.load(place).attributes)
    seen.press("/")
    page.keyboard.type("wei")
    assert page.locator("#columns tbody tr:visible").count() == 1
    seen.press("Control+a", "Delete")
    page.locator("[name=drop-2]").focus()
    seen.press("ArrowDown", "ArrowDown")
    assert seen.focus == "drop-4"
    seen.press("Space", "Enter")
    page.wait_for_load_state()
    page.wait_for_selector("tr.out [name=drop-4]")
    assert Schema.load(place).attributes[names[4]].kind == "identifier"
    page.get_by_role("button", name="Undo").first.focus()
    seen.press("Enter")
    page.wait_for_selector("tr:not(.out) [name=drop-4]")
    assert Schema.load(place).attributes[names[4]].kind == "numeric"
    seen.open("/taxonomy?data=visits.csv&column=job")
    before = page.locator("#outline").input_value().splitlines()
    page.locator(".tree").focus()
    seen.press("Space", "ArrowDown", "Space", "Tab")
    page.locator("#group").focus()
    page.keyboard.type("care")
    seen.press("Tab", "Enter")
    page.locator(".tree").focus()
    seen.press("ArrowDown", "Alt+ArrowDown")
    first, second, *rest = before
    assert page.locator("#outline").input_value().splitlines() == ["care", f"  {second}", f"  {first}", *rest]
    page.get_by_role("button", name="Save these values").focus()
    seen.press("Enter")
    page.wait_for_load_state()
    page.wait_for_selector(".tree .group:has-text('care')")
    assert {"care": [second, first]} in Schema.load(place).attributes["job"].taxonomy
    assert page.evaluate("getComputedStyle(document.querySelector('.tree')).outlineStyle") is not None
    assert seen.complaints == []


def test_values_are_dragged_into_groups(seen: Seen) -> None:
    page = seen.page
    seen.open("/taxonomy?data=visits.csv&column=job")
    rows = page.locator(".tree li")
    last = rows.last.inner_text()
    rows.last.drag_to(page.locator(".tree .group").first)
    assert page.locator("#outline").input_value().splitlines()[:2] == ["care", f"  {last}"]
    page.get_by_role("button", name="Undo").click()
    assert page.locator("#outline").input_value().splitlines()[-1] == last
    assert seen.complaints == []
