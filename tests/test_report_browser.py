"""The page in a browser without a network: nothing is missing, nothing overflows, by day, by night and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import NAMES, Browser, browser, find_chromium
from sfumato import Account, DiffGen, datasets
from sfumato.report import report
from test_report import hostile_release

CHROMIUM = find_chromium()
WIDTHS = (390, 820, 1280)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = """[...document.querySelectorAll('figure')].map(figure => [...figure.querySelectorAll('svg')]
    .map(svg => svg.getBoundingClientRect()).filter(box => box.width > 50 && box.height > 5).length)"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].filter(one => one.getClientRects().length)
    .map(one => parseFloat(getComputedStyle(one).fontSize) * one.ownerSVGElement.getBoundingClientRect().width
        / one.ownerSVGElement.viewBox.baseVal.width))"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on PATH ({', '.join(NAMES)})")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(str(CHROMIUM), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def adults_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, adult = tmp_path_factory.mktemp("page"), datasets.adult()
    account = Account(folder / "adult.ledger", adult.schema)
    release = account.publish(
        adult.table, DiffGen(specializations=10), epsilon="1", out=folder / "release", unsafe_seed=1
    )
    (folder / "report.html").write_text(report(release, "release"), encoding="utf-8")
    return folder / "report.html"


def complaints(seen: Browser) -> list[str]:
    """Give what the browser complained of, and what it asked for beside the page itself."""
    told = [one["entry"]["text"] for one in seen.heard("Log.entryAdded")]
    told += [str(one) for kind in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled") for one in seen.heard(kind)]
    told += [one["errorText"] for one in seen.heard("Network.loadingFailed")]
    return told + [one["request"]["url"] for one in seen.heard("Network.requestWillBeSent")[1:]]


def test_the_page_is_whole_at_every_width_by_day_and_by_night(seen: Browser, adults_page: Path, tmp_path: Path) -> None:
    for width in WIDTHS:
        shots = {}
        for scheme in ("light", "dark"):
            seen.look(width, scheme)
            seen.open(adults_page)
            assert complaints(seen) == []
            assert seen.value(OVERFLOW) <= 0
            pictures = seen.value(PICTURES)
            assert len(pictures) > 20
            assert set(pictures) == {1}
            assert seen.value(SMALLEST) > 8
            shots[scheme] = seen.shoot(tmp_path / f"report-{width}-{scheme}.png")
        assert shots["light"] != shots["dark"]
        assert all(shot.startswith(b"\x89PNG") and len(shot) > 100_000 for shot in shots.values())


def test_the_page_can_be_printed(seen: Browser, adults_page: Path, tmp_path: Path) -> None:
    seen.look(1280, "dark")
    seen.open(adults_page)
    paper = seen.print(tmp_path / "report.pdf")
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") >= 4


def test_hostile_names_do_nothing(seen: Browser, tmp_path: Path) -> None:
    page = tmp_path / "hostile.html"
    page.write_text(report(hostile_release(), "r"), encoding="utf-8")
    seen.look(390, "light")
    seen.open(page)
    assert complaints(seen) == []
    assert seen.value(OVERFLOW) <= 0
    assert seen.value("document.querySelectorAll('script, img, iframe, [onerror], [onload]').length") == 0


def test_even_a_page_that_was_tampered_with_runs_and_fetches_nothing(seen: Browser, adults_page: Path) -> None:
    """The policy in the page's head holds: what is smuggled in is refused, and that is heard."""
    smuggled = "<img src='https://example.invalid/x.png'><script>document.title = 'ran'</script></main>"
    page = adults_page.with_name("tampered.html")
    page.write_text(adults_page.read_text(encoding="utf-8").replace("</main>", smuggled), encoding="utf-8")
    seen.open(page)
    assert any("Content Security Policy" in one for one in complaints(seen))
    assert "ran" not in seen.value("document.title")
    assert not seen.heard("Network.responseReceived")[1:]


def test_what_is_wrong_is_seen(seen: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src='http://example.invalid/x.png'><div style='width: 9000px'>x</div><script>nothing()</script>"
    )
    seen.look(390, "light")
    seen.open(page)
    assert "http://example.invalid/x.png" in complaints(seen)
    assert any("ERR_NAME_NOT_RESOLVED" in one for one in complaints(seen))
    assert any("ReferenceError" in one for one in complaints(seen))
    assert seen.value(OVERFLOW) > 0
