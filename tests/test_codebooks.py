"""Public knowledge of a table comes in: code books of several formats, and files of SPSS, Stata, SAS and Excel."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from command_line import done, refused
from sfumato.errors import SchemaError, TableError
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.codebooks import hierarchy_column, labelled, read_codebook
from sfumato.schema.schema import Schema
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

COLUMNS = ["id", "sex", "age", "score", "born", "job", "ok"]
FIELDS = {
    "fields": [
        {"name": "id", "type": "string", "constraints": {"unique": True}},
        {
            "name": "sex",
            "type": "integer",
            "categories": [{"value": 1, "label": "Female"}, {"value": 2, "label": "Male"}],
        },
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {"name": "score", "type": "number", "decimalChar": ",", "constraints": {"minimum": 0, "maximum": 10}},
        {
            "name": "born",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "1900-01-01", "maximum": "2020-12-31"},
        },
        {"name": "job", "type": "string", "constraints": {"enum": ["nurse", "cook"], "required": True}},
        {"name": "ok", "type": "boolean", "trueValues": ["Y"], "falseValues": ["N"]},
        {"name": "open", "type": "number"},
    ],
    "missingValues": ["", "-99"],
}
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "people.csv",
    "tableSchema": {
        "primaryKey": "id",
        "columns": [
            {"name": "id", "titles": "id"},
            {"name": "sex", "titles": ["sex"], "datatype": {"base": "string", "format": "F|M"}, "required": True},
            {"name": "age", "titles": {"en": "age"}, "datatype": {"base": "integer", "minimum": 0, "maximum": 120}},
            {
                "name": "score",
                "titles": "score",
                "datatype": {"base": "decimal", "format": {"decimalChar": ","}, "minInclusive": 0, "maxInclusive": 10},
            },
            {
                "name": "born",
                "titles": "born",
                "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "1900-01-01", "maximum": "2020-12-31"},
            },
            {"name": "ok", "titles": "ok", "datatype": {"base": "boolean", "format": "Y|N"}},
        ],
        "null": ["", "-99"],
    },
}


def book(tmp_path: Path, name: str, text: str, columns: list[str] = COLUMNS) -> Any:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_codebook(path, columns)


@pytest.mark.parametrize("plain", [FIELDS, {"resources": [{"schema": FIELDS}]}, CSVW, {"tables": [CSVW]}])
def test_table_schemas_and_csvw_declare_columns(tmp_path: Path, plain: Any) -> None:
    found = book(tmp_path, "book.json", json.dumps(plain))
    columns = found.columns
    assert isinstance(columns["id"], Identifier)
    assert columns["age"].lower == 0
    assert (columns["score"].written, columns["score"].step) == ("1.234,5", Decimal("0.1"))
    assert (columns["born"].written, columns["born"].lower) == ("DD.MM.YYYY", datetime.date(1900, 1, 1))
    assert columns["ok"].tree.leaves == ("N", "Y", "Missing")
    assert found.missing_values == ("", "-99")
    assert "open" not in columns


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sex.csv", "code;label\n1;Female\n2;Male\n"),
        ("people_sex.csv", "1,Female\n2,Male\n"),
        ("all.csv", "column;code;label\nsex;1;Female\nsex;2;Male\nshoes;1;x\n"),
    ],
)
def test_codes_and_labels(tmp_path: Path, name: str, text: str) -> None:
    sex = book(tmp_path, name, text).columns["sex"]
    assert (sex.tree.leaves, sex.labels) == (("Female", "Male", "Missing"), {"1": "Female", "2": "Male"})


def test_values_find_the_leaf_of_their_label() -> None:
    schema = Schema(attributes={"x": labelled({"1": "Female", "2": "Male"}), "y": labelled({"2": "1", "1": "2"})})
    table = pa.table({"x": ["1", "2.0", "Female", None], "y": ["2", "1", "1", "2"]})
    codes = encode(open_table(table), schema)
    assert codes.misfits == ()
    assert codes.columns["x"].tolist() == [0, 1, 0, 2]
    assert codes.columns["y"].tolist() == [0, 1, 1, 0]
    with pytest.raises(SchemaError, match="must be a leaf"):
        Schema.parse({"attributes": {"x": {"kind": "categorical", "taxonomy": ["a"], "labels": {"1": "b"}}}})


def test_a_folder_of_hierarchies(tmp_path: Path) -> None:
    lines = [f"{n};[{n // 5 * 5}, {n // 5 * 5 + 5}[;[{n // 10 * 10}, {n // 10 * 10 + 10}[;*" for n in range(17, 91)]
    (tmp_path / "adult_hierarchy_age.csv").write_text("\n".join(lines))
    (tmp_path / "adult_hierarchy_job.csv").write_text("cook;Service;*\nnurse;Health;*\nmaid;Service;*\n")
    (tmp_path / "adult_hierarchy_shoes.csv").write_text("a;*\n")
    columns = read_codebook(tmp_path, COLUMNS).columns
    assert set(columns) == {"age", "job"}
    age, job = columns["age"], columns["job"]
    assert isinstance(age, Numeric)
    assert (age.lower, age.upper, age.intervals) == (17, 90, [5, 10])
    assert isinstance(job, Categorical)
    assert job.taxonomy == [{"Service": ["cook", "maid"]}, {"Health": ["nurse"]}]


def test_uneven_intervals_stay_a_taxonomy() -> None:
    rows = [(str(n), "young" if n < 18 else "old", "*") for n in range(10, 30)]
    assert isinstance(hierarchy_column(rows), Categorical)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("book.json", "{", "must be well-formed JSON"),
        ("book.json", "[1]", "must be a Table Schema"),
        ("book.json", '{"fields": [7]}', "as its format says"),
        (
            "book.json",
            '{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}}]}',
            "lower",
        ),
        ("book.csv", "1;2;3;4\n", "must be `code;label`"),
        ("shoes.csv", "1;a\n2;b\n", "must be called like a column"),
        ("all.csv", "shoes;1;a\n", "must be about a column"),
        ("book.doc", "", "must be of a kind that can be read"),
    ],
)
def test_bad_code_books_are_refused_in_a_sentence(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        book(tmp_path, name, text)


def test_absent_code_books_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="must be readable UTF-8 text"):
        read_codebook(tmp_path / "none.json", COLUMNS)
    with pytest.raises(SchemaError, match="must have a hierarchy"):
        read_codebook(tmp_path, COLUMNS)


def test_a_draft_takes_what_is_declared(here: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [f"{rng.integers(1, 3)},{rng.integers(18, 90)},{rng.choice([1, 2, 7])}" for _ in range(400)]
    Path("q.csv").write_text("sex,age,job\n" + "\n".join(rows))
    Path("book.csv").write_text("sex;1;Female\nsex;2;Male\njob;1;Cook\njob;2;Nurse\nage;99;Refused\n")
    told = done("draft", "q.csv", "--codebook", "book.csv")
    assert "declared by the code book" in told
    schema = Schema.load(here / "q.schema.yaml")
    sex, job = schema.attributes["sex"], schema.attributes["job"]
    assert isinstance(sex, Categorical)
    assert isinstance(job, Categorical)
    assert sex.tree.leaves == ("Female", "Male", "Missing")
    assert (job.tree.leaves, job.unseen) == (("Cook", "Nurse", "Missing", "Other"), "Other")
    assert isinstance(schema.attributes["age"], Numeric)
    assert schema.origin == "derived from private data"
    assert "Everything fits" in done("check", "q.csv")
    done("draft", "q.csv", "--codebook", "book.csv", "--target", "sex", "--out", "other.yaml")
    Path("book.json").write_text(json.dumps(FIELDS))
    Path("p.csv").write_text("sex,age,job\n" + "1,30,cook\n2,40,nurse\n" * 20)
    done("draft", "p.csv", "--codebook", "book.json")
    assert Schema.load(here / "p.schema.yaml").origin == "declared"
    assert "must be of a kind" in refused("draft", "q.csv", "--codebook", "book.doc", "--out", "x.yaml")


LABELS = {"sex": {1: "Female", 2: "Male"}, "job": {1: "Cook", 2: "Nurse", -9: "Refused"}, "age": {99: "Refused"}}


def people() -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = 300
    return pandas.DataFrame(
        {
            "sex": rng.integers(1, 3, rows).astype(float),
            "job": rng.choice([1.0, 2.0, -9.0], rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "town": rng.choice(["Graz", "Linz"], rows),
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(n)) for n in rng.integers(0, 300, rows)],
        }
    )


def write_statistics(path: Path) -> None:
    pyreadstat, frame = pytest.importorskip("pyreadstat"), people()
    if path.suffix == ".sav":
        pyreadstat.write_sav(frame, str(path), variable_value_labels=LABELS, missing_ranges={"job": [-9]})
    elif path.suffix == ".dta":
        whole = frame.astype({"sex": int, "job": int, "age": int})
        pyreadstat.write_dta(whole, str(path), variable_value_labels=LABELS)
    else:
        pyreadstat.write_xport(frame, str(path))


@pytest.mark.parametrize("kind", ["sav", "dta", "xpt"])
def test_files_of_statistics_programs_are_tables(here: Path, kind: str) -> None:
    path = here / f"people.{kind}"
    path.with_suffix(".schema.yaml").unlink(missing_ok=True)
    write_statistics(path)
    assert done("draft", path.name)
    schema = Schema.load(here / "people.schema.yaml")
    sex, job, age = (schema.attributes[name] for name in ("sex", "job", "age"))
    assert isinstance(sex, Categorical)
    assert isinstance(job, Categorical)
    assert isinstance(age, Numeric)
    assert sex.tree.leaves == (("1", "2") if kind == "xpt" else ("Female", "Male", "Missing"))
    if kind == "sav":
        assert job.tree.leaves == ("Cook", "Nurse", "Missing")
    assert isinstance(schema.attributes["day"], Numeric)
    assert "Everything fits" in done("check", path.name)
    text = (here / "people.schema.yaml").read_text().replace("confirmed: false", "confirmed: true")
    (here / "people.schema.yaml").write_text(text)
    done("publish", path.name, "--epsilon", "1", "--out", "out")


def test_batches_of_a_statistics_file_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_statistics(tmp_path / "p.sav")
    whole = sfumato.raw_rows(tmp_path / "p.sav", ["sex", "town"]).to_pylist()
    monkeypatch.setattr("sfumato.tables.streams.BATCH_ROWS", 100)
    assert sfumato.raw_rows(tmp_path / "p.sav", ["sex", "town"]).to_pylist() == whole
    assert len(whole) == 300


def test_bad_statistics_files_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    (tmp_path / "bad.sav").write_bytes(b"no such thing")
    with pytest.raises(TableError, match="must be well-formed and readable"):
        open_table(tmp_path / "bad.sav")
    with pytest.raises(TableError, match="must exist"):
        open_table(tmp_path / "none.dta")


def test_workbooks_are_tables(here: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    workbook = openpyxl.Workbook()
    first = workbook.active
    first.append(["sex", "age", "day"])
    for number in range(200):
        first.append(["FM"[number % 2], 20 + number % 50, datetime.date(2020, 1, 1) + datetime.timedelta(number)])
    second = workbook.create_sheet("more")
    second.append(["a", "a"])
    workbook.save("book.xlsx")
    done("draft", "book.xlsx")
    schema = Schema.load(here / "book.schema.yaml")
    assert [facts.kind for facts in schema.attributes.values()] == ["categorical", "numeric", "numeric"]
    assert "Everything fits" in done("check", "book.xlsx")
    assert "columns 1, 2" in refused("draft", "book.xlsx", "--table", "more")
    assert "sheet (none) must be in" in refused("draft", "book.xlsx::none")
    assert sfumato.find_data("book.xlsx::more").ledger_path == sfumato.find_data("book.xlsx").ledger_path
    Path("bad.xlsx").write_bytes(b"no")
    assert "must be well-formed" in refused("draft", "bad.xlsx")


@pytest.mark.parametrize("name", ["x.sav", "x.xlsx"])
def test_a_lacking_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def nothing(library: str) -> Any:
        raise ImportError(library)

    monkeypatch.setattr("sfumato.tables.microdata.import_module", nothing)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(TableError, match=r"which is not installed\. Run: pip install 'sfumato\[(statistics|excel)\]'"):
        open_table(tmp_path / name)


def test_a_draft_says_what_columns_mean_where_the_code_book_does(tmp_path: Path) -> None:
    pyreadstat, frame = pytest.importorskip("pyreadstat"), people()
    told = ["What it is" if name == frame.columns[0] else name for name in frame.columns]
    pyreadstat.write_sav(frame, str(tmp_path / "people.sav"), column_labels=told, variable_value_labels=LABELS)
    fields = [{"name": name, "title": title} for name, title in zip(frame.columns, told, strict=True)]
    (tmp_path / "book.json").write_text(json.dumps({"fields": fields}))
    frame.to_csv(tmp_path / "people.csv", index=False)
    drafts = (
        sfumato.draft(tmp_path / "people.sav"),
        sfumato.draft(tmp_path / "people.csv", codebook=tmp_path / "book.json"),
    )
    for drafted in drafts:
        titles = [column.title for column in drafted.schema.attributes.values()]
        assert titles == ["What it is"] + [""] * (len(titles) - 1), "a title that is the name says nothing"
