"""The studio without a browser: what each screen does, and attacks that are refused."""

from __future__ import annotations

import ast
import csv
import html
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import sfumato
import sfumato.studio
from sfumato import Account, Ledger, Release, Schema
from sfumato.errors import SfumatoError
from sfumato.studio import edits, guard, tasks
from sfumato.studio.desk import Desk
from sfumato.studio.guard import Door, Guard
from sfumato.studio.server import make_app
from sfumato.studio.work import Office, Work
from studios import HERE, PATIENCE, SCHEMA, Visitor, visiting, write_people

SOURCE = Path(sfumato.studio.__file__).parent
SCREENS = ("table", "schema", "person", "plan", "compare", "publish", "account")
SECRET = "Zebra-tamer"
"""A value of one row."""


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Visitor]:
    write_people(tmp_path / "people.csv")
    with visiting(tmp_path) as visitor:
        yield visitor


def test_every_screen_shows_the_command_for_what_it_does(people: Visitor) -> None:
    for screen in SCREENS:
        shown = people.get(f"/{screen}?data=people.csv")
        assert shown.status_code == 200, screen
        assert "The same without the studio" in shown.text, screen
        assert "sfumato " in shown.text
    assert "people.csv" in people.get("/table").text


def test_a_table_is_published_and_asked(people: Visitor) -> None:
    people.plan(questions="age < 30\nsex = 'Female'")
    assert "± " in people.waited("/plan/expected?data=people.csv")
    assert people.publish().status_code == 200
    assert "Published" in people.waited("/publish?data=people.csv")
    release = Release.load(people.folder / "release")
    assert release.manifest.secure
    assert release.manifest.epsilon == 1
    fields = {"release": "release", "clause-column": ["age", "sex"], "clause-how": ["<", "="]}
    asked = people.post("/release/ask", fields | {"clause-value": ["30", "Female"]})
    answer = release.count("age < 30 and sex = 'Female'")
    assert f"<strong>{answer.value:,.0f}</strong>" in asked.text
    assert "select count(*) as people from release where age &lt; 30 and sex" in asked.text
    assert "What it holds" in people.waited("/release/held?release=release")
    assert "<svg" in people.get("/release/pair?release=release&one=age&other=job").text
    assert "count" in people.get("/release/records?release=release").text
    drawn = people.post("/release/sample", {"release": "release", "rows": "7", "kind": "csv"})
    assert len(list(csv.DictReader(drawn.text.splitlines()))) == 7
    people.post("/release/verify", {"release": "release"})
    verified = people.waited("/release?release=release")
    assert "Nothing that was checked is wrong" in verified
    assert "its account knows it" in verified
    account = people.get("/account?data=people.csv").text
    assert "1 of 2 left" in account
    assert "<svg" in account


def test_methods_are_compared_in_the_background(people: Visitor) -> None:
    people.post("/compare", {"data": "people.csv", "method": ["laplace"], "epsilons": "1", "runs": "1"})
    shown = people.waited("/compare?data=people.csv")
    assert "Error of range counts, at epsilon 1: laplace" in html.unescape(shown)
    assert not (people.folder / "people.ledger").exists()


def test_a_schema_is_drafted_changed_undone_and_confirmed(tmp_path: Path) -> None:
    write_people(tmp_path / "people.csv", schema=None)
    with visiting(tmp_path) as people:
        people.post("/schema/draft", {"data": "people.csv", "target": "ill", "budget": "3"})
        people.shown("/schema?data=people.csv", "Confirm this schema")
        place = tmp_path / "people.schema.yaml"
        before = place.read_text()
        assert Schema.loads(before).budget == 3
        fields = {"data": "people.csv", "version": people.version("/schema?data=people.csv"), "budget": "3"}
        fields |= {"kind-0": "numeric", "lower-0": "0", "upper-0": "120", "step-0": "5", "grid-0": "even"}
        assert people.post("/schema", fields | {"kind-1": "categorical", "drop-1": "1"}).status_code == 200
        changed = Schema.load(place)
        assert changed.attributes["age"].leaves == 25
        assert changed.attributes["sex"].kind == "identifier"
        people.post("/schema/undo", {"data": "people.csv", "version": people.version("/schema?data=people.csv")})
        assert place.read_text() == before
        people.waited("/schema/findings?data=people.csv")
        sure = {f"sure-{one}": "1" for one in ("values", "bounds", "columns", "public")} | {"despite": "1"}
        sure |= {"data": "people.csv", "version": people.version("/schema?data=people.csv")}
        assert people.post("/schema/confirm", sure | {"sure-values": ""}).status_code == 400
        assert not Schema.load(place).confirmed
        assert people.post("/schema/confirm", sure).status_code == 200
        assert Schema.load(place).confirmed


def test_a_refused_form_is_shown_as_it_was_filled_in(people: Visitor) -> None:
    fields = {"data": "people.csv", "version": people.version("/schema?data=people.csv"), "kind-0": "numeric"}
    shown = people.post("/schema", fields | {"lower-0": "777", "upper-0": "5", "step-0": "1", "grid-0": "even"})
    assert shown.status_code == 400
    assert "must be less than upper" in shown.text
    assert 'value="777"' in shown.text
    assert Schema.load(people.folder / "people.schema.yaml").confirmed


def test_the_later_of_two_tabs_is_told(people: Visitor) -> None:
    seen = people.version("/schema?data=people.csv")
    outline = {"data": "people.csv", "column": "job", "version": seen}
    assert people.post("/taxonomy", outline | {"outline": "Clerk\nBoss\nDancer\nWriter"}).status_code == 200
    late = people.post("/taxonomy", outline | {"outline": "All\n  Clerk\n  Boss\nDancer\nWriter"})
    assert late.status_code == 400
    assert "was changed meanwhile" in late.text
    assert edits.nested_of(Schema.load(people.folder / "people.schema.yaml"), "job") == [
        "Clerk",
        "Boss",
        "Dancer",
        "Writer",
    ]


def test_a_hierarchy_file_becomes_a_taxonomy(people: Visitor) -> None:
    content = b"Clerk;Desk;*\nBoss;Desk;*\nDancer;Stage;*\nWriter;Desk;*\n"
    fields = {"data": "people.csv", "column": "job", "version": people.version("/schema?data=people.csv")}
    people.post("/taxonomy", fields, files={"hierarchy": ("job.csv", content, "text/csv")})
    nested = edits.nested_of(Schema.load(people.folder / "people.schema.yaml"), "job")
    assert nested == [{"Desk": ["Clerk", "Boss", "Writer"]}, {"Stage": ["Dancer"]}]


def test_a_person_with_many_rows_is_named_in_the_schema(people: Visitor) -> None:
    fields = {"data": "people.csv", "version": people.version("/schema?data=people.csv")}
    people.post("/person", fields | {"about": "person", "column": "job", "rows": "3"})
    plain = Schema.load(people.folder / "people.schema.yaml").plain()
    assert (plain["person"], int(plain["rows_per_person"])) == ("job", 3)
    assert not plain["confirmed"]


def test_columns_are_changed_many_at_once() -> None:
    schema = Schema.loads(SCHEMA)
    missing = edits.changed(schema, {"bulk": "missing", "chosen-0": "1", "chosen-2": "1", "budget": "2"}, [])
    assert missing.attributes["age"].missing == missing.attributes["job"].missing == "Missing"
    assert missing.attributes["sex"].missing is None
    dropped = edits.changed(missing, {"bulk": "drop", "chosen-1": "1"}, [])
    assert list(dropped.predictors) == ["age", "job"]
    assert not dropped.confirmed
    again = edits.changed(dropped, {"kind-1": "identifier", "was-1": "1"}, [missing])
    assert again.attributes["sex"] == schema.attributes["sex"]


# Attacks


def test_nobody_comes_in_without_the_token(tmp_path: Path) -> None:
    door = Door(8123)
    with TestClient(make_app(Desk(tmp_path), door), base_url=HERE) as client:
        assert client.get("/table").status_code == 401
        assert client.get("/static/studio.js").status_code == 401
        assert client.get("/open?token=").status_code == 401
        assert client.get("/open?token=guess").status_code == 401
        address = f"/open?token={door.token}"
        opened = client.get(address)
        cookie = opened.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/table").status_code == 200
        assert client.get(address).status_code == 401, "the address works once"
        stolen = TestClient(client.app, base_url=HERE, cookies={door.cookie: "guess"})
        assert stolen.get("/table").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "localhost:8123", "127.0.0.1", "127.0.0.1:80", "[::1]:8123", ""]
)
def test_a_foreign_host_is_refused(people: Visitor, host: str) -> None:
    assert people.get("/table?data=people.csv", headers={"host": host}).status_code == 421
    assert people.get("/open?token=x", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site", "origin": HERE},
    ],
    ids=str,
)
def test_what_changes_something_must_come_from_here(people: Visitor, headers: dict[str, str]) -> None:
    fields = {"data": "people.csv", "method": "laplace", "epsilon": "1", "out": "stolen", "rows": "1", "questions": ""}
    for path in ("/plan", "/schema", "/publish", "/release/ask", "/work/cancel"):
        assert people.client.post(path, data=fields, headers=headers).status_code == 403
    assert not (people.folder / ".sfumato-studio").exists()
    assert people.client.post("/plan", data=fields, headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_another_site_cannot_even_read(people: Visitor) -> None:
    for site in ("cross-site", "same-site"):
        assert people.get("/table?data=people.csv", headers={"sec-fetch-site": site}).status_code == 403
    assert people.get("/table?data=people.csv", headers={"sec-fetch-site": "none"}).status_code == 200
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert people.client.request(method, "/table", headers={"origin": HERE}).status_code == 403


def test_every_answer_carries_the_headers(people: Visitor) -> None:
    for path in ("/table", "/static/studio.css", "/nowhere", "/release/pair?release=no"):
        headers = people.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert policy.count("unsafe-inline") == 1, "of style attributes, which run nothing"
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "word",
    [
        *("../secret.csv", "/etc/passwd", "sub/../../secret.csv", "~/.ssh/id_rsa", ".hidden.csv", "link.csv", ""),
        *("..%2fsecret.csv", "people.csv/../../secret.csv", "\0", "../*.csv", "*.csv", "out/secret.csv", "."),
    ],
)
def test_paths_stay_below_the_folder(tmp_path: Path, word: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write_people(tmp_path / "secret.csv")
    write_people(inner / "people.csv")
    write_people(inner / ".hidden.csv")
    (inner / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inner / "out").symlink_to(tmp_path)
    desk = Desk(inner)
    with pytest.raises(SfumatoError, match="below the folder"):
        desk.find(word)
    with pytest.raises(SfumatoError, match="below"):
        desk.open_release(word)
    if word not in ("*.csv", "..%2fsecret.csv"):
        with pytest.raises(SfumatoError, match="below"):
            desk.place(word)


def test_what_was_given_may_lie_anywhere_and_nothing_else(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write_people(tmp_path / "people.csv")
    desk = Desk(inner, str(tmp_path / "people.csv"))
    assert desk.find(str(tmp_path / "people.csv")).name == "people"
    assert str(tmp_path / "people.csv") in desk.tables()
    with pytest.raises(SfumatoError):
        desk.find(str(tmp_path / "people.schema.yaml"))


def test_a_release_is_not_written_elsewhere(people: Visitor) -> None:
    for out in ("../stolen", "/tmp/stolen", ".hidden", "sub/.hidden"):
        fields = {"data": "people.csv", "method": "laplace", "epsilon": "1", "rows": "9", "questions": "", "out": out}
        assert people.post("/plan", fields).status_code == 400
    back = people.post("/work/cancel", {"id": "", "back": "//evil.example/"}, follow_redirects=False)
    assert back.headers["location"] == "/"


NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}"


def test_html_in_names_and_values_is_shown_as_text(tmp_path: Path) -> None:
    rows = [[NASTY, str(18 + number % 60)] for number in range(100)]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[f"job{NASTY}", "age"], *rows])
    with visiting(tmp_path) as people:
        people.post("/schema/draft", {"data": "people.csv", "target": "", "budget": ""})
        people.waited("/schema?data=people.csv")
        place = tmp_path / "people.schema.yaml"
        place.write_text(place.read_text().replace("confirmed: false", "confirmed: true"))
        people.plan()
        people.publish()
        people.waited("/publish?data=people.csv")
        people.waited("/release/held?release=release")
        people.waited("/table?data=people.csv")
        column = f"job{NASTY}"
        pages = [f"/{screen}?data=people.csv" for screen in SCREENS]
        pages += ["/release?release=release", "/release/records?release=release"]
        texts = [people.get(page).text for page in pages]
        texts.append(people.get("/taxonomy", params={"data": "people.csv", "column": column}).text)
        texts.append(people.get("/release/pair", params={"release": "release", "one": column, "other": "age"}).text)
        fields = {"release": "release", "clause-column": [column], "clause-how": ["="], "clause-value": [NASTY]}
        texts.append(people.post("/release/ask", fields).text)
        texts.append(people.get("/table", params={"data": NASTY}).text)
    for text in texts:
        lower = text.lower()
        assert "<script>" not in lower
        assert "<img" not in lower
        assert "onerror=alert(2)>" not in lower
        assert "job49" not in lower
        assert not re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', '""', re.sub(r">[^<]*<", "><", text)))
    assert any("&lt;script&gt;" in text for text in texts)


def test_templates_and_script_hold_no_code_of_others() -> None:
    for template in (SOURCE / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"\son[a-z]+=|javascript:|style=|https?://|\|safe", text), template.name
    script = (SOURCE / "static/studio.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|document\.write|\beval\b|new Function|https?://", script)
    for module in SOURCE.glob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Name)}
        assert not names & {"eval", "exec", "pickle", "__import__"}, module.name


def test_a_large_body_is_refused_however_it_is_sent(people: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGEST_BODY", 10_000)
    fields = {"data": "people.csv", "column": "job", "version": "x", "outline": "y" * 20_000}
    assert people.post("/taxonomy", fields).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"outline=" + b"y" * 1000 + b"&"

    headers = {"origin": HERE, "content-type": "application/x-www-form-urlencoded"}
    assert people.client.post("/taxonomy", content=pieces(), headers=headers).status_code == 413


def test_a_huge_file_is_not_read_to_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_people(tmp_path / "people.csv", schema=None, rows=200_000)
    read: list[int] = []
    first = sfumato.raw_rows

    def watched(table: object, columns: object = None, rows: int | None = None) -> object:
        found = first(table, columns, rows)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(sfumato, "raw_rows", watched)
    with visiting(tmp_path) as people:
        assert people.get("/table?data=people.csv").status_code == 200
    assert read == [12]


def test_two_publishers_at_the_end_of_the_budget(people: Visitor) -> None:
    """Both see 2 left, and each wants more than half of it: one publishes, the other is told, and spends nothing."""
    office, ledger = Office(), people.folder / "people.ledger"
    facts = {"table": str(people.folder / "people.csv"), "schema": SCHEMA, "ledger": str(ledger), "epsilon": "1.5"}
    facts |= {"method": "laplace", "parameters": {}}
    works = [
        office.begin(f"publish {out}", "Publishing", tasks.publish_task, facts | {"out": str(people.folder / out)})
        for out in ("first", "second")
    ]
    ended(*works)
    assert sorted(one.state for one in works) == ["done", "refused"]
    assert any("must be at most the 1/2 left" in one.problem for one in works)
    assert Ledger.open(ledger).statement().spent == Fraction(3, 2)
    assert len([path for path in people.folder.iterdir() if (path / "manifest.json").exists()]) == 1
    people.plan(epsilon="1.5", out="third")
    assert "must be at most the 1/2 left" in people.get("/publish?data=people.csv").text


def ended(*works: Work) -> None:
    """Wait until work has ended."""
    until = time.monotonic() + PATIENCE
    while any(one.working for one in works):
        assert time.monotonic() < until, "the work does not end"
        time.sleep(0.02)


def test_the_same_button_twice_publishes_once(people: Visitor) -> None:
    people.plan()
    seen = people.version("/publish?data=people.csv", "seen")
    fields = {"data": "people.csv", "seen": seen, "sure": "1"}
    threads = [threading.Thread(target=people.post, args=("/publish", fields)) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    people.waited("/publish?data=people.csv")
    assert Account(people.folder / "people.ledger", Schema.loads(SCHEMA)).statement().spent == 1


def test_a_plan_that_was_changed_meanwhile_is_not_published(people: Visitor) -> None:
    people.plan()
    seen = people.version("/publish?data=people.csv", "seen")
    people.plan(epsilon="2")
    late = people.post("/publish", {"data": "people.csv", "seen": seen, "sure": "1"})
    assert late.status_code == 400
    assert "changed meanwhile" in late.text
    assert not (people.folder / "people.ledger").exists()


def killed_while_publishing(facts: dict[str, str], _: object) -> None:
    """Publish, and be killed when a round was paid for."""

    def dying(step: str, *_: int) -> None:
        if step not in ("reading the table", "writing the release"):
            os.kill(os.getpid(), signal.SIGKILL)

    tasks.publish_task(facts, dying)


def test_a_publication_that_is_killed_leaves_a_debit_and_no_release(
    people: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.studio.publishing.publish_task", killed_while_publishing)
    people.plan(method="diffgen")
    people.publish()
    assert "was killed" in people.waited("/publish?data=people.csv")
    assert not (people.folder / "release").exists()
    with visiting(people.folder) as again:  # after a restart
        account = again.get("/account?data=people.csv").text
        assert "Settle" in account
        assert "open" in account
        publication = re.search(r'name="publication" value="([^"]+)"', account)
        assert publication is not None
        again.post("/account/settle", {"data": "people.csv", "publication": publication[1]})
        left = Ledger.open(people.folder / "people.ledger").statement().left
        assert left is not None
        assert 1 < left < 2, "what was paid is paid, the rest is given back"


def test_a_restart_loses_nothing_that_was_kept(people: Visitor) -> None:
    people.plan(questions="age < 30", epsilon="0.7", out="kept")
    with visiting(people.folder) as again:
        shown = again.get("/plan?data=people.csv").text
        assert 'value="0.7"' in shown
        assert 'value="kept"' in shown
        assert "age &lt; 30" in shown
        assert again.door.session != people.door.session


def forever(_: object, watch: object) -> None:
    """Work without an end."""
    watch("round", 1, 4)
    while True:
        time.sleep(0.05)


def ignoring(_: object, watch: object) -> None:
    """Work that does not listen."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever(_, watch)


def failing(*_: object) -> None:
    """Work that fails with a value in its message."""
    raise RuntimeError(SECRET)


def test_work_is_cancelled_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.studio.work.PATIENCE", 0.5)
    office = Office()
    for task in (forever, ignoring):
        work = office.begin(task.__name__, "Working", task, {})
        assert office.begin(task.__name__, "Working", task, {}) is work
        until = time.monotonic() + 30
        while not work.finished and time.monotonic() < until:
            time.sleep(0.02)
        assert work.told() == {"state": "working", "step": "round", "share": 0.25}
        office.cancel(work)
        work.process.join(10)
        assert work.state == "cancelled"
        assert not work.process.is_alive()
    office.close()


def test_a_failure_tells_its_kind_alone(people: Visitor, monkeypatch: pytest.MonkeyPatch, capfd: object) -> None:
    office = Office()
    work = office.begin("failing", "Failing", failing, {})
    ended(work)
    assert work.problem == "Sfumato must not fail like this (RuntimeError)"

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(sfumato, "raw_rows", broken)
    failed = people.client.get("/table?data=people.csv")
    assert failed.status_code == 500
    assert SECRET not in failed.text
    told = capfd.readouterr()
    assert SECRET not in told.out + told.err


def test_values_of_rows_stand_in_no_address_log_or_file(tmp_path: Path, capfd: object) -> None:
    write_people(tmp_path / "people.csv", job=SECRET)
    with visiting(tmp_path) as people:
        assert SECRET in people.get("/table?data=people.csv").text, "for the holder's eyes"
        texts = [people.waited(f"/{screen}?data=people.csv") for screen in SCREENS[1:]]
        people.plan()
        people.publish()
        texts.append(people.waited("/publish?data=people.csv"))
        addresses = [one for text in texts for one in re.findall(r'(?:href|action)="([^"]*)"', text)]
    assert "must fit" in html.unescape(texts[-1]) or "does not fit" in html.unescape(texts[-1])
    assert not any(SECRET in one for one in addresses)
    told = capfd.readouterr()
    assert SECRET not in told.out + told.err
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "people.csv"]
    assert not any(SECRET.encode() in path.read_bytes() for path in written)


def test_read_only_shows_releases_alone(people: Visitor) -> None:
    people.plan()
    people.publish()
    people.waited("/publish?data=people.csv")
    before = sorted(path for path in people.folder.rglob("*"))
    with visiting(people.folder, read_only=True) as analyst:
        assert str(analyst.get("/").url).endswith("/release")
        for screen in SCREENS:
            assert analyst.get(f"/{screen}?data=people.csv").status_code == 403
        for path in ("/plan", "/publish", "/schema", "/schema/draft", "/account/settle"):
            assert analyst.post(path, {"data": "people.csv"}).status_code == 403
        asked = analyst.post("/release/ask", {"release": "release", "condition": "age < 30"})
        assert 'class="answer"' in asked.text
        wrong = analyst.post("/release/ask", {"release": "release", "condition": "height < 30"})
        assert 'role="alert"' in wrong.text
    assert sorted(path for path in people.folder.rglob("*")) == before


def test_a_websocket_is_not_answered() -> None:
    async def app(*_: object) -> None:
        raise AssertionError("nothing comes through")

    client = TestClient(Guard(app, Door(8123)), base_url=HERE)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/work"):
        pass


def test_a_plan_file_that_was_forged_is_ignored(people: Visitor) -> None:
    own = people.folder / ".sfumato-studio"
    own.mkdir()
    for forged in ({"method": "diffgen", "other": 1}, ["x"], "x"):
        (own / "people.plan.json").write_text(json.dumps(forged))
        assert people.get("/plan?data=people.csv").status_code == 200
