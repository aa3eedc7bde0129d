"""A promise about persons: which rows count, what they cost, and what is said of it."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
import sfumato.account
from command_line import done, done_json, refused
from contracts import EVERY_METHOD, ONE_OF_EACH, ONE_OF_EACH_OPEN
from persons import (
    COLUMNS,
    KEY,
    MISTAKES,
    MOST,
    SCHEMA,
    CodedRow,
    Row,
    added,
    chain_of,
    compare_person,
    counted,
    frame_of,
    lot,
    nothing_is_bounded,
    the_first_rows_are_kept,
)
from replay import Recorder, Replayer
from sfumato import Account, Laplace, Ledger, Manifest, Rehearsal, Release, Schema, check, verify
from sfumato.audit.events import epsilon_shown
from sfumato.engines.counting import Counting, least_memory
from sfumato.errors import BudgetError, MethodError, ReleaseError, SchemaError, TableError
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.tally import Tally
from sfumato.schema.yaml import read_yaml
from sfumato.tables.persons import PersonRows, RowsOfPersons, opened

WARDS, CLASSES = ["Heart", "Bones", "Eyes"], ["Y", "N"]
TABLE: list[Row] = [
    *(("ann", "Heart", age, "Y") for age in (0, 1, 2, 3)),
    *(("bob", "Bones", 2, "N"),) * 3,
    ("cid", "Eyes", None, "N"),
    *((None, "Heart", 5, "N"),) * 3,
]


def person_of(rows: int, name: object = "dan") -> list[Row]:
    """A person whose rows lie in as many regions as there are, some of them alike."""
    return [(name, WARDS[at % 3], at % 6 if at % 7 else None, CLASSES[at // 2 % 2]) for at in range(rows)]


PERSONS = [1, MOST, 3 * MOST]


# which rows count


def test_the_rows_with_the_smallest_lots_count() -> None:
    rows = [("ann", ward, age, "Y") for ward in WARDS for age in (0, 0, 0, 4)]
    lots = sorted(
        (lot("ann", bytes([WARDS.index(ward), age, 0]), copy), (WARDS.index(ward), age, 0))
        for ward in WARDS
        for age, copy in ((0, 1), (0, 2), (0, 3), (4, 1))
    )
    assert counted(frame_of(rows)) == Counter(codes for _, codes in lots[:MOST])


def test_all_rows_count_of_those_who_have_few_and_of_those_without_a_name() -> None:
    found = counted(frame_of(TABLE))
    assert found[0, 5, 1] == 3, "each row without an identifier is a person of its own"
    assert found[2, 6, 1] == 1
    assert found[1, 2, 1] == MOST
    assert sum(found.values()) == MOST + MOST + 1 + 3


def test_every_row_is_drawn_as_often_as_others() -> None:
    """Of four rows, two alike, two count: each in half of the draws, by whatever key."""
    table: list[Row] = [("ann", ward, 0, "Y") for ward in ("Heart", "Heart", "Eyes", "Bones")]
    drawn: Counter[int] = Counter()
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 0) as place:
        fill(place, table)
        for number in range(200):
            drawn.update(np.concatenate(list(place.drawn(MOST, f"{number}".encode())))[:, 0].tolist())
    assert drawn.total() == 200 * MOST
    assert abs(drawn[0] - 200) < 45
    assert all(abs(drawn[ward] - 100) < 45 for ward in (1, 2))


def test_equal_rows_are_all_counted_through() -> None:
    """More of them than are numbered at a time: all are there, each with a lot of its own."""
    strict = Schema.parse(SCHEMA.plain() | {"rows_per_person": "1000"})
    found = counted(frame_of([("ann", "Heart", 0, "Y")] * 2500 + [("bob", "Eyes", 1, "Y")] * 1000), strict)
    assert found == {(0, 0, 0): 1000, (2, 1, 0): 1000}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 0) as place:
        fill(place, [("ann", "Heart", 0, "Y")] * 2500)
        assert sum(map(len, place.drawn(10**6, KEY))) == 2500


names = st.sampled_from(["ann", "bob", "cid", "", " bob ", "?", None, 7, 7.0, "7", "é", "x" * 300])
rows = st.lists(st.tuples(names, st.sampled_from(WARDS), st.integers(0, 2), st.sampled_from(CLASSES)), max_size=12)


def same_person(one: object, other: object) -> bool:
    texts = [str(int(name)) if isinstance(name, float) else str(name).strip() for name in (one, other)]
    return texts[0] == texts[1]


@settings(max_examples=10, deadline=None)
@given(table=rows, person=st.sampled_from(["ann", "dan", "7", "é"]), number=st.integers(0, 7), first=st.booleans())
def test_a_person_has_no_say_about_others_whatever_the_order(
    table: list[Row], person: str, number: int, first: bool
) -> None:
    others = [row for row in table if not same_person(row[0], person)]
    more = added(others, person_of(number, person), first)
    assert len(more) == min(number, MOST)
    mixed = [*others, *person_of(number, person)]
    random.Random(number).shuffle(mixed)
    assert counted(frame_of(mixed)) == counted(frame_of(others)) + Counter(more)


def test_the_order_of_rows_has_no_say() -> None:
    shuffled = random.Random(3).sample(TABLE, len(TABLE))
    assert counted(frame_of(TABLE)) == counted(frame_of(shuffled))
    with pytest.MonkeyPatch.context() as patch:
        the_first_rows_are_kept(patch)
        assert counted(frame_of(TABLE)) != counted(frame_of(TABLE[::-1])), "the test would see it"


def test_equal_identifiers_are_one_person_in_whatever_type() -> None:
    same = [("7", "Heart", 0, "Y"), (7, "Heart", 0, "Y"), (7.0, "Heart", 0, "Y"), (" 7 ", "Heart", 0, "Y")]
    assert sum(counted(frame_of(same)).values()) == MOST
    whole = frame_of([(number, *row[1:]) for number, row in zip([1, 1, 1, 2], same, strict=True)])
    assert counted(whole) == counted(whole.astype({"patient": float})) == counted(whole.astype({"patient": str}))
    assert sum(counted(whole).values()) == MOST + 1


SOURCES = {
    "csv": lambda frame, place: frame.to_csv(place / "visits.csv", index=False) or place / "visits.csv",
    "parquet": lambda frame, place: frame.astype(str).to_parquet(place / "visits.parquet") or place / "visits.parquet",
    "json": lambda frame, place: (
        (place / "visits.jsonl").write_text("\n".join(json.dumps(row) for row in frame.to_dict("records")))
        and place / "visits.jsonl"
    ),
    "polars": lambda frame, _: pl.DataFrame({name: [*map(str, frame[name])] for name in COLUMNS}),
    "lazy": lambda frame, _: pl.LazyFrame({name: [*map(str, frame[name])] for name in COLUMNS}),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame.astype(str)),
    "stream": lambda frame, _: pa.Table.from_pandas(frame.astype(str)).to_reader(max_chunksize=3),
    "duckdb": lambda frame, place: database(frame, place),
}


def database(frame: pd.DataFrame, place: Path) -> str:
    with duckdb.connect(str(place / "clinic.duckdb")) as connection:
        connection.register("frame", pa.Table.from_pandas(frame.astype(str)))
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return f"{place / 'clinic.duckdb'}::visits"


@pytest.mark.parametrize("source", list(SOURCES))
def test_the_same_rows_count_from_every_source(source: str, tmp_path: Path) -> None:
    plain = frame_of([*TABLE[:7], *person_of(9)]).fillna("?")
    assert counted(SOURCES[source](plain, tmp_path)) == counted(plain)


def test_the_same_rows_count_beyond_memory(tmp_path: Path) -> None:
    """Rows that are sorted and kept on disk."""
    draw = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "patient": draw.integers(0, 3_000, 20_000),
            "ward": draw.choice(WARDS, 20_000),
            "age": draw.integers(0, 6, 20_000),
            "class": draw.choice(CLASSES, 20_000),
        }
    )
    counts = []
    for memory in (None, least_memory(SCHEMA)):
        with Counting.of(memory=memory, scratch=tmp_path).opened(table, SCHEMA, KEY) as engine:
            counts.append(engine.tally(Tally(Grid.whole(SCHEMA.shape), 2, (0, 1))))
    assert np.array_equal(counts[0].by_place, counts[1].by_place)
    assert counts[0].by_place.sum() == table.groupby("patient").size().clip(upper=MOST).sum()
    assert not list(tmp_path.iterdir()), "nothing of the rows is left"


@pytest.mark.parametrize(
    ("identifier", "reason"),
    [(None, "missing value"), ("?", "missing value"), ([1, 2], "not a single value"), (b"\xff\xfe", "not readable")],
)
def test_rows_that_do_not_say_whom_they_are_about_are_refused_unless_declared(identifier: object, reason: str) -> None:
    strict = Schema.parse(SCHEMA.plain() | {"missing_person": "refused"})
    with pytest.raises(TableError, match=f"patient: {reason}") as told:
        counted(frame_of([("ann", "Heart", 0, "Y"), (identifier, "Heart", 0, "Y")]), strict)
    assert "ann" not in str(told.value)


def test_a_table_without_the_column_is_refused() -> None:
    with pytest.raises(TableError, match="lacks patient"):
        counted(frame_of(TABLE).drop(columns="patient"))


# what they cost


@cache
def chain_with(number: int) -> list[Counter[CodedRow]]:
    return chain_of(TABLE, person_of(number))


@EVERY_METHOD
@pytest.mark.parametrize("number", PERSONS)
def test_a_person_behaves_alike_and_costs_what_is_paid(method: Method, number: int) -> None:
    compare_person(method, chain_with(number), seed=number)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.__name__.replace("_", " "))
def test_replay_catches_mistakes_about_persons(mistake: Any) -> None:
    def attempt() -> None:
        for number in range(3 * MOST, 3 * MOST + 6):
            compare_person(Laplace(), chain_of(TABLE, person_of(number)), seed=number)

    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        with pytest.raises(AssertionError, match=r"others|costs? more|more rows"):
            attempt()


RECORDS = Schema.parse({key: value for key, value in SCHEMA.plain().items() if "person" not in key})


def shown(schema: Schema, runs: int = 300, keys: int = 5) -> float:
    """What an attack shows who knows all but one person, of whom all rows lie in one cell."""
    times = []
    for table in (TABLE, [*TABLE, *[("dan", "Eyes", 1, "Y")] * (3 * MOST)]):
        seen, rehearsal = 0, Rehearsal(Laplace(), schema, Fraction(1), unsafe_seed=len(table))
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 0) as place:
            fill(place, table)
            drawn = [np.concatenate(list(place.drawn(MOST, bytes([key])))) for key in range(keys)]
        for run in range(runs):
            *columns, classes = drawn[run % keys].T
            final = rehearsal.run(columns, classes)[0].final
            (cell,) = final.question.places_of([np.array([2], np.uint8), np.array([1], np.uint8)])
            seen += int(final.counts[cell, 0] > MOST // 2)
        times.append(seen)
    return epsilon_shown(times[1], times[0], runs, 0.99)


def fill(place: PersonRows, table: list[Row]) -> None:
    codes = [
        (WARDS.index(str(ward)), 6 if age is None else age, CLASSES.index(str(label))) for _, ward, age, label in table
    ]
    names = pa.array([None if row[0] is None else str(row[0]).encode() for row in table], pa.large_binary())
    place.add(names, np.array(codes, np.uint8))


def test_the_attack_does_not_tell_a_person_apart_beyond_epsilon() -> None:
    assert 0.2 < shown(SCHEMA) <= 1


def test_the_attack_refutes_mistakes_about_persons() -> None:
    assert shown(RECORDS) > 1, "epsilon is not divided"
    with pytest.MonkeyPatch.context() as patch:
        nothing_is_bounded(patch)
        assert shown(SCHEMA) > 1


HOSTILE = {
    "one row": person_of(1),
    "many more than may count": person_of(3 * MOST),
    "rows without a name": person_of(3 * MOST, None),
}
NAMES = ["b ob", "n" * 5000, "\",\n;\t'\u202e", 10**30, "=1+1"]


def published(rows: list[Row], method: Method, mechanisms: Any) -> dict[str, Any]:
    """Publish a CSV file with these mechanisms; give everything that can be seen of it from outside."""
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(folder)
        frame_of(rows).to_csv(place / "visits.csv", index=False)
        account = Account(place / "visits.ledger", SCHEMA)
        patch.setattr(sfumato.account, "Exact", lambda _: mechanisms)
        release = account.publish(place / "visits.csv", method, Fraction(3), out=place / "out", watch=told.append)
        files = {path.name: path.read_bytes() for path in sorted((place / "out").iterdir())}
        return {"files": files, "told": told, "repr": repr(release), "debits": release.manifest.debits}


@ONE_OF_EACH
def test_a_person_leaves_no_trace_but_in_the_answers(method: Method) -> None:
    """With the same answers of the mechanisms, a release is the same, byte for byte, whoever is in the table."""
    recorder = Recorder(5)
    expected = published(TABLE, method, recorder)
    for name, person in HOSTILE.items():
        assert published([*person, *TABLE], method, Replayer(recorder)) == expected, name


def test_the_name_of_a_person_has_no_say_about_what_is_told() -> None:
    recorder = Recorder(5)
    expected = published(TABLE, Laplace(), recorder)
    for name in NAMES:
        assert published([*person_of(3 * MOST, name), *TABLE], Laplace(), Replayer(recorder)) == expected


# what is said of it


def account_of(folder: Path, schema: Schema = SCHEMA) -> Account:
    return Account(folder / "visits.ledger", schema)


@ONE_OF_EACH
def test_manifest_and_ledger_speak_of_persons_and_of_the_whole_epsilon(method: Method, tmp_path: Path) -> None:
    account = account_of(tmp_path)
    release = account.publish(frame_of(TABLE * 5), method, 2, out=tmp_path / "out")
    manifest = Release.load(tmp_path / "out").manifest
    assert (manifest.unit, manifest.rows_per_person) == ("person", MOST)
    assert "one person with all rows, of which at most 2, drawn by lot, count" in manifest.guarantee
    (publication,) = account.statement().publications
    assert (publication.unit, publication.debits) == ("person (patient)", release.manifest.debits)
    assert 2 - Fraction(1, 10**6) < publication.paid <= 2
    reach = {one.label: one.question.reach for one in release.draft.measurements}
    assert reach.keys() == {one.label for one in manifest.debits if one.mechanism.startswith("discrete")}
    assert all(one.sensitivity == MOST * reach[one.label] for one in manifest.debits if one.label in reach)
    found = verify(tmp_path / "out", tmp_path / "visits.ledger")
    assert found.verified, found.failures
    assert account.plan(method, 2).total <= 2


def test_explanations_speak_of_persons_and_of_rows(tmp_path: Path) -> None:
    """One more row of a person who has more than count may put another in its place: epsilon is not for one record."""
    account_of(tmp_path).publish(frame_of(TABLE), Laplace(), 1, out=tmp_path / "out")
    manifest = Release.load(tmp_path / "out").manifest
    files = {name: (tmp_path / "out" / name).read_text() for name in ("deployment.yaml", "README.md", "dictionary.csv")}
    assert read_yaml(files["deployment.yaml"])["tier_2"]["privacy_unit"] == manifest.neighbours
    assert "one record" not in files["deployment.yaml"]
    assert re.search("About [0-9,]+ rows, described by", files["README.md"])
    assert "number of rows in the group" in files["dictionary.csv"]
    assert "any one person was in the table" in files["README.md"]
    schema = Schema.parse(RECORDS.plain() | {"name": "records"})
    Account(tmp_path / "records.ledger", schema).publish(frame_of(TABLE), Laplace(), 1, out=tmp_path / "records")
    assert "any one record was in the table" in (tmp_path / "records" / "README.md").read_text()


def test_noise_is_that_of_a_part_of_epsilon(tmp_path: Path) -> None:
    release = account_of(tmp_path).publish(frame_of(TABLE), Laplace(), 1)
    assert release.draft.final.noisy.rates == (Fraction(1, MOST),)
    assert release.manifest.epsilon == 1


def test_a_release_whose_manifest_forgets_persons_is_refused(tmp_path: Path) -> None:
    account_of(tmp_path).publish(frame_of(TABLE), Laplace(), 1, out=tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = Manifest.loads(path.read_text())
    for rows in (None, 1, 3):
        path.write_text(replace(manifest, rows_per_person=rows).dump())
        with pytest.raises(ReleaseError, match="must be about the persons of the schema"):
            Release.load(tmp_path / "out")
        assert not verify(tmp_path / "out").verified
    for wrong in (0, -1, 2.0, "2", True):
        plain = manifest.plain() | {"rows_per_person": wrong}
        with pytest.raises(ReleaseError):
            Manifest.loads(json.dumps(plain))


def test_epsilons_of_records_and_of_persons_do_not_add_up(tmp_path: Path) -> None:
    for budget in (None, "4"):
        place = tmp_path / str(budget)
        place.mkdir()
        by_person, by_record = (
            account_of(place, Schema.parse(one.plain() | ({"budget": budget} if budget else {})))
            for one in (SCHEMA, RECORDS)
        )
        by_person.publish(frame_of(TABLE), Laplace(), 1)
        if budget is None:
            by_record.publish(frame_of(TABLE), Laplace(), 1)
            assert by_record.statement().units == ("person (patient)", "record")
            assert by_record.statement().spent == float("inf")
            continue
        with pytest.raises(BudgetError, match="do not add up"):
            by_record.publish(frame_of(TABLE), Laplace(), 1)
        by_person.publish(frame_of(TABLE), Laplace(), 1)
        assert by_person.statement().left == 2
        Ledger.open(place / "visits.ledger").amend(None)
        account_of(place, RECORDS).publish(frame_of(TABLE), Laplace(), 1)


def test_what_units_were_paid_for_cannot_be_rewritten(tmp_path: Path) -> None:
    account_of(tmp_path).publish(frame_of(TABLE), Laplace(), 1)
    with sqlite3.connect(tmp_path / "visits.ledger") as db:
        for change in (
            "update unit set unit = 'record'",
            "delete from unit",
            "insert or replace into unit select * from unit",
        ):
            with pytest.raises(sqlite3.DatabaseError, match="append-only"):
                db.execute(change)


@ONE_OF_EACH_OPEN
def test_methods_without_epsilon_refuse_persons(method: Any, tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="must be published with an epsilon"):
        account_of(tmp_path).publish(frame_of(TABLE), method)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"person": "ward"}, "must be an identifier"),
        ({"person": " "}, "must be the name of a column"),
        ({"rows_per_person": "0"}, "whole number from 1 to 1,000"),
        ({"rows_per_person": "1.5"}, "whole number"),
        ({"rows_per_person": "many"}, "whole number"),
        ({"rows_per_person": "1001"}, "whole number"),
        ({"person": None}, "must go with person"),
        ({"missing_person": "alone"}, "missing_person"),
    ],
)
def test_schemas_that_make_no_sense_of_persons_are_refused(facts: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        Schema.parse(SCHEMA.plain() | facts)


def test_a_schema_of_persons_can_be_written_and_read() -> None:
    again = Schema.loads(SCHEMA.dump())
    assert (again, again.digest) == (SCHEMA, SCHEMA.digest)
    assert (again.person, again.rows_per_person, again.missing_person) == ("patient", MOST, "own")
    assert SCHEMA.only(["age"]).person == SCHEMA.with_target("ward").person == "patient"


def test_check_tells_what_share_of_rows_each_bound_keeps() -> None:
    table = frame_of([*TABLE, *person_of(12)])
    fit = check(table, SCHEMA)
    assert fit.persons == RowsOfPersons({1: 1, 3: 1, 4: 1, 12: 1})
    assert fit.persons.shares == {1: 4 / 20, 2: 7 / 20, 3: 10 / 20, 5: 13 / 20, 10: 18 / 20, 12: 1.0}
    assert "3: 1" not in repr(fit)
    strict = Schema.parse(SCHEMA.plain() | {"missing_person": "refused"})
    assert [(one.column, one.reason, one.rows) for one in check(table, strict).misfits] == [
        ("patient", "missing value", 3)
    ]


VISITS = "".join(f"p{at % 40},{WARDS[at % 3]},{at % 6},{CLASSES[at % 2]}\n" for at in range(400))
NAMED = "patient_id,ward,age,class\n" + VISITS


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(NAMED)
    return tmp_path


def test_draft_and_check_warn_of_identifiers_that_repeat(visits: Path) -> None:
    told = done("draft", "visits.csv")
    assert "Several rows share a value of patient_id." in told
    assert "person: patient_id" in told
    assert "several rows share a value" in (visits / "visits.schema.yaml").read_text()
    told = done("check", "visits.csv")
    assert "patient_id: 40 different values in 400 rows, up to 10 rows of one." in told
    assert "a person with 10 rows has 10 times epsilon" in told
    (repeated,) = (one for one in done_json("check", "visits.csv")["findings"] if one["repeats"])
    assert repeated["columns"] == ["patient_id"]


def test_the_whole_way_with_persons(visits: Path) -> None:
    told = done(
        "draft", "visits.csv", "--person", "patient_id", "--rows-per-person", "5", "--budget", "2", "--epsilon", "1"
    )
    assert "several rows" not in told.lower()
    path = visits / "visits.schema.yaml"
    path.write_text(path.read_text().replace("confirmed: false", "confirmed: true"))
    told = done("check", "visits.csv")
    assert "40 persons, of whom the one with most has 10 rows" in told
    assert "50.0 %" in told
    assert done_json("check", "visits.csv")["persons"]["rows_that_count"]["5"] == 0.5
    plan = done_json("publish", "visits.csv", "--epsilon", "1/2", "--dry-run", "--method", "laplace")
    assert plan["schedule"] == {"counts": "1/2"}
    done("publish", "visits.csv", "--epsilon", "1/2", "--out", "out", "--method", "laplace")
    told = done("account", "show", "visits.csv")
    assert "paid 1/2 for each person (patient_id)" in told
    assert "spent for each person (patient_id) in" in told
    assert "odds that a person is in the table" in done("risk", "out")
    assert "one person with all rows, of which at most 5" in done("inspect", "out")
    done("report", "out", "--out", "report.html")
    page = (visits / "report.html").read_text()
    assert "a promise about each person with all rows" in page
    assert "patient_id" not in done("records", "out", "--out", "records.csv")
    assert "patient_id" not in (visits / "records.csv").read_text()
    assert "one person" in refused("publish", "visits.csv", "--method", "mondrian", "--k", "2", "--out", "other")


def test_risk_of_a_release_of_records_speaks_of_records(visits: Path) -> None:
    done("draft", "visits.csv")
    path = visits / "visits.schema.yaml"
    path.write_text(path.read_text().replace("confirmed: false", "confirmed: true"))
    done("publish", "visits.csv", "--epsilon", "1", "--out", "out", "--method", "laplace")
    told = done("risk", "out")
    assert "odds that a record is in the table" in told
    assert "Someone with k records has k times epsilon" in told
    assert done_json("risk", "out")["unit"] == "record"
