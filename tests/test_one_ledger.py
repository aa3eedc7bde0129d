"""One table has one budget, whatever it is called: views, links, renamed copies, other formats, second ledgers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from command_line import SCHEMA, done, people, refused, run, write
from sfumato import Account, Laplace, Ledger, Mondrian, Schema
from sfumato.errors import LedgerError
from sfumato.places import find_data
from sfumato.tables.sketch import EVERY, KEPT, Sketch, sketch_of, sketch_of_codes

PUBLISH = ("--method", "laplace", "--attributes", "age,sex,job,income", "--epsilon", "1", "--out")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(people(), tmp_path / "people.csv")
    (tmp_path / "people.schema.yaml").write_text(SCHEMA)
    return tmp_path


def published(data: str, out: str, *more: object) -> str:
    return done("publish", data, *PUBLISH, out, *more)


def unpublished(data: str, out: str, *more: object) -> str:
    return refused("publish", data, *PUBLISH, out, *more)


def test_a_schema_carries_the_id_of_its_ledger(here: Path) -> None:
    (here / "people.schema.yaml").write_text(SCHEMA.replace("budget: 4", "budget: 4  # agreed in May"))
    published("people.csv", "out")
    text = (here / "people.schema.yaml").read_text()
    assert Schema.loads(text).ledger == Ledger.open("people.ledger").id
    assert "# agreed in May" in text
    assert "ledger" not in (here / "out" / "schema.json").read_text()
    published("people.csv", "again")


@pytest.mark.usefixtures("here")
def test_a_renamed_copy_with_the_schema_pays_from_the_same_ledger() -> None:
    published("people.csv", "out")
    shutil.copy("people.csv", "copy.csv")
    told = unpublished("copy.csv", "second", "--schema", "people.schema.yaml")
    assert "--ledger" in told
    assert "people.ledger" in told
    published("copy.csv", "second", "--schema", "people.schema.yaml", "--ledger", "people.ledger")
    assert len(Ledger.open("people.ledger").statement().publications) == 2


def test_a_second_ledger_is_refused_where_there_is_one(here: Path) -> None:
    published("people.csv", "out")
    assert "people.ledger" in unpublished("people.csv", "second", "--ledger", "second.ledger")
    published("people.csv", "second", "--ledger", str(here / "people.ledger"))


def test_a_ledger_elsewhere_is_remembered_by_the_schema(here: Path) -> None:
    (here / "books").mkdir()
    published("people.csv", "out", "--ledger", "books/first.ledger")
    assert "the one that the schema of people names" in unpublished("people.csv", "second")
    assert "books/first.ledger" in unpublished("people.csv", "second", "--ledger", "books/second.ledger")
    published("people.csv", "second", "--ledger", "books/first.ledger")


def test_a_sibling_ledger_of_the_same_name_is_refused(here: Path) -> None:
    published("people.csv", "out")
    write(people(50), here / "other.csv")
    (here / "other.schema.yaml").write_text(SCHEMA)
    told = unpublished("other.csv", "second")
    assert "people.ledger" in told
    assert "name" in told
    (here / "other.schema.yaml").write_text(SCHEMA.replace("name: people", "name: others"))
    write(pa.table({**people(50).to_pydict(), "age": (17 + np.arange(50) % 70)}), here / "other.csv")
    published("other.csv", "second")


def test_a_view_has_the_ledger_of_its_table(here: Path) -> None:
    with duckdb.connect("base.duckdb") as connection:
        connection.register("given", people())
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
        connection.execute("CREATE VIEW grown AS SELECT * FROM visits WHERE age > 1")
        connection.execute("CREATE VIEW named AS SELECT * FROM grown")
    places = {find_data(f"base.duckdb::{name}").ledger_path for name in ("visits", "grown", "main.named", "NAMED")}
    assert places == {here / "base.visits.ledger"}
    assert find_data("base.duckdb", sql="select age from named").ledger_path == here / "base.visits.ledger"
    assert find_data("base.duckdb::named").schema_path == here / "base.named.schema.yaml"


def test_a_view_of_two_tables_asks_which_of_them_pays(here: Path) -> None:
    with duckdb.connect("base.duckdb") as connection:
        connection.register("given", people())
        connection.execute("CREATE TABLE one AS SELECT * FROM given; CREATE TABLE two AS SELECT * FROM given")
        connection.execute("CREATE VIEW both_of_them AS SELECT * FROM one UNION ALL SELECT * FROM two")
    source = find_data("base.duckdb::both_of_them")
    assert source.ledger(None) == here / "base.both_of_them.ledger"
    Account(here / "base.two.ledger", Schema.loads(SCHEMA.replace("people", "two"))).publish(people(), Laplace(), 1)
    with pytest.raises(LedgerError, match=r"base\.two\.ledger"):
        source.ledger(None)
    assert source.ledger("base.two.ledger") == Path("base.two.ledger")


def test_a_hard_link_has_the_ledger_of_its_file(here: Path) -> None:
    published("people.csv", "out")
    os.link("people.csv", "link.csv")
    assert find_data("link.csv").ledger_path == here / "people.ledger"
    published("link.csv", "second", "--schema", "people.schema.yaml")
    assert len(Ledger.open("people.ledger").statement().publications) == 2


@pytest.mark.parametrize("kind", [".parquet", ".jsonl", ".csv"])
def test_the_same_rows_under_another_name_are_noticed_and_named(here: Path, kind: str) -> None:
    published("people.csv", "out")
    write(people().slice(0, 280), here / f"elsewhere{kind}")
    (here / "elsewhere.schema.yaml").write_text(
        SCHEMA.replace("name: people", "name: elsewhere").replace("upper: 90", "upper: 99")
    )
    told = unpublished(f"elsewhere{kind}", "second")
    assert "people.ledger" in told
    assert "--other-people" in told
    published(f"elsewhere{kind}", "second", "--ledger", "elsewhere.ledger", "--other-people")


def test_other_people_of_the_same_schema_are_not_taken_for_these(here: Path) -> None:
    published("people.csv", "out")
    rng = np.random.default_rng(7)
    others = people().to_pydict() | {"age": rng.integers(17, 91, 300), "job": rng.choice(["Dancer", "Writer"], 300)}
    write(pa.table(others), here / "next.csv")
    (here / "next.schema.yaml").write_text(SCHEMA.replace("name: people", "name: next"))
    published("next.csv", "second")


@pytest.mark.usefixtures("here")
def test_methods_without_epsilon_notice_as_well() -> None:
    schema = Schema.loads(SCHEMA.replace("budget: 4", ""))
    Account("first.ledger", schema).publish(people(), Mondrian(k=20))
    other = Account("other.ledger", Schema.loads(SCHEMA.replace("people", "other").replace("budget: 4", "")))
    with pytest.raises(LedgerError, match=r"first\.ledger"):
        other.publish(people(), Mondrian(k=20))
    with pytest.raises(LedgerError, match=r"first\.ledger"):
        other.publish(people(), Laplace(), 1)
    assert not Path("other.ledger").exists()
    other.publish(people(), Mondrian(k=20), other_people=True)


def test_a_sketch_is_private_and_never_in_a_release(here: Path) -> None:
    published("people.csv", "out")
    found = here / "people.ledger.rows"
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert "CANARY" not in found.read_text()
    assert not [path for path in (here / "out").iterdir() if found.read_bytes() in path.read_bytes()]
    assert not [path for path in (here / "out").iterdir() if path.suffix == ".rows"]
    found.write_text("{")
    published("people.csv", "again")


FACTS = Schema.loads(SCHEMA.replace("upper: 90", "upper: 9000"))


def rows_of(ages: np.ndarray) -> dict[str, np.ndarray]:
    return {"age": ages}


def test_a_sketch_of_batches_is_that_of_the_whole_table() -> None:
    ages = np.random.default_rng(1).integers(0, 9000, 20_000)
    whole = sketch_of_codes([rows_of(ages)], FACTS, b"key")
    parts = sketch_of_codes([rows_of(part) for part in np.array_split(ages, 17)], FACTS, b"key")
    assert (whole.threshold, whole.once.tolist()) == (parts.threshold, parts.once.tolist())
    values, times = np.unique(ages, return_counts=True)
    assert len(whole.once) <= (times == 1).sum() < len(values)


@pytest.mark.parametrize(("kept", "noticed"), [(20_000, True), (12_000, True), (0, False)])
def test_shares_of_rows_are_estimated(kept: int, noticed: bool) -> None:
    rng = np.random.default_rng(2)
    ages, others = rng.integers(0, 10**9, 20_000), rng.integers(0, 10**9, 20_000)
    mixed = np.concatenate([ages[:kept], others[kept:]])
    one, other = (sketch_of_codes([rows_of(part)], FACTS, b"key") for part in (ages, mixed))
    share = one.share(other)
    assert share is not None
    assert abs(share - kept / 20_000) < 0.05
    assert one.same_people(other) == noticed


def test_tables_of_few_cells_are_not_taken_for_each_other() -> None:
    """Where every cell holds many there is no row of one person, so nothing can be said."""
    rng = np.random.default_rng(3)
    one, other = (sketch_of_codes([rows_of(rng.integers(0, 40, 2000))], FACTS, b"key") for _ in "ab")
    assert one.share(other) is None
    assert not one.same_people(other)


def test_samples_of_one_population_are_not_taken_for_each_other() -> None:
    """A value that one person has is another's alone with probability x exp(-x) <= 0.37, whatever x is expected."""
    rng = np.random.default_rng(4)
    one, other = (sketch_of_codes([rows_of(rng.integers(0, 5000, 5000))], FACTS, b"key") for _ in "ab")
    share = one.share(other)
    assert share is not None
    assert 0.3 < share < 0.45
    assert not one.same_people(other)


def test_a_sketch_is_read_as_it_was_written_and_tells_nothing_without_its_key(tmp_path: Path) -> None:
    one = sketch_of(people(), Schema.loads(SCHEMA), b"one key")
    one.write(tmp_path / "rows")
    again = Sketch.read(tmp_path / "rows")
    assert again is not None
    assert again.share(one) == 1.0
    assert repr(one) == "Sketch(...)"
    other = sketch_of(people(), Schema.loads(SCHEMA), b"other key")
    assert not set(one.once.tolist()) & set(other.once.tolist())


def test_the_size_of_a_sketch_does_not_tell_how_many_rows_it_has(tmp_path: Path) -> None:
    """Others may list the folder: with a length for each row, one person more would be seen there."""
    schema, sizes = Schema.loads(SCHEMA), set()
    for rows in (people()[:0], people()[:40], people()[:41], people()):
        sketch_of(rows, schema, b"one key").write(tmp_path / "rows")
        sizes.add((tmp_path / "rows").stat().st_size)
    full = replace(sketch_of(people(), schema, b"one key"), once=np.full(KEPT, EVERY, np.uint64), threshold=EVERY)
    full.write(tmp_path / "rows")
    assert sizes == {(tmp_path / "rows").stat().st_size}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"key": 1}', "\x00", '{"format": 1, "key": "zz", "once": ["a"]}'])
def test_what_is_no_sketch_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows").write_text(text)
    assert Sketch.read(tmp_path / "rows") is None


def test_those_who_may_only_read_can_verify_and_show(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published("people.csv", "out")
    real = sqlite3.connect

    def read_only(path, *given, **named):
        """Refuse to open for writing, as a file system does that is mounted for reading."""
        if not (named.get("uri") and str(path).endswith("?mode=ro")):
            raise sqlite3.OperationalError("attempt to write a readonly database")
        return real(path, *given, **named)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    (here / "people.ledger").chmod(0o400)
    assert "1 publication" in done("account", "show", "people.csv")
    assert run("verify", "out", "--ledger", "people.ledger").exit_code == 0


def test_a_ledger_that_a_dying_process_left_is_read(here: Path) -> None:
    """A journal is left: what it holds must be rolled back first, which takes the right to write."""
    published("people.csv", "out")
    (here / "people.ledger-journal").write_bytes(b"")
    assert "1 publication" in done("account", "show", "people.csv")


def test_a_ledger_of_before_gets_an_id_with_its_next_publication(here: Path) -> None:
    published("people.csv", "out")
    with sqlite3.connect("people.ledger") as db:
        db.execute("drop table identity")
    db.close()
    (here / "people.schema.yaml").write_text(SCHEMA)
    assert Ledger.open("people.ledger").id is None
    published("people.csv", "again")
    assert Schema.load("people.schema.yaml").ledger == Ledger.open("people.ledger").id is not None
