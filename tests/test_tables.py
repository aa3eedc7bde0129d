"""Reading tables: every kind the same, every bad file one sentence, no value ever in it."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import TableError
from sfumato.tables import sources as tables
from sfumato.tables import streams
from sfumato.tables import streams as duck
from sfumato.tables.sources import open_table
from sfumato.tables.streams import Table
from sfumato.tables.values import NESTED_TEXT, UNREADABLE_TEXT

CANARY = "KANARIENVOGEL"
Writer = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Write a file and give its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def rows(table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Read a whole table."""
    return [row for batch in table.batches(columns or table.columns) for row in batch.to_pylist()]


def refusal(source: Any) -> TableError:
    """Read a whole bad table and give the error, which holds no value in any of its parts."""
    with pytest.raises(TableError) as caught:
        rows(open_table(source))
    assert CANARY not in repr(caught.value) + str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_delimited_text_is_read_as_text(write: Writer, delimiter: str, newline: str, start: str) -> None:
    lines = [["a", " b ", '"c, d; e"'], ["007", " x ", "1e3"], ["", '"say ""no"""', "NULL"]]
    path = write("t.csv", start + newline.join(delimiter.join(line) for line in lines) + newline)
    table = open_table(path)
    assert table.columns == ["a", "b", "c, d; e"]
    assert [list(row.values()) for row in rows(table)] == [["007", " x ", "1e3"], [None, 'say "no"', "NULL"]]


def test_every_kind_of_file_gives_the_same_values(write: Writer, tmp_path: Path) -> None:
    frame = pa.table({"n": [1, 2, None], "s": ["x", None, "z"]})
    records = frame.to_pylist()
    lines = "".join(json.dumps(record) + "\n" for record in records)
    pq.write_table(frame, tmp_path / "t.parquet")
    sources: list[Any] = [
        tmp_path / "t.parquet",
        frame,
        frame.to_batches()[0],
        pl.DataFrame(records),
        pl.DataFrame(records).lazy(),
        pd.DataFrame({"n": pd.array([1, 2, None], dtype="Int64"), "s": ["x", None, "z"]}),
    ]
    for source in sources:
        assert rows(open_table(source)) == records
    texts = [{name: None if value is None else str(value) for name, value in record.items()} for record in records]
    comma = "n,s\n1,x\n2,\n,z\n"
    for path in (
        str(write("t.json", json.dumps(records))),
        write("t.jsonl", lines),
        write("t.ndjson", lines),
        write("t.jsonl.gz", gzip.compress(lines.encode())),
        write("t.csv", comma),
        write("T.CSV", comma),
        write("t.csv.gz", gzip.compress(comma.encode())),
        write("t.tsv", comma.replace(",", "\t")),
    ):
        assert rows(open_table(path)) == texts


def test_only_the_asked_columns_are_read_in_the_asked_order(write: Writer) -> None:
    table = open_table(write("t.csv", "a,b,c\n1,2,3\n"))
    assert [list(row.items()) for row in rows(table, ["c", "a"])] == [[("c", "3"), ("a", "1")]]
    for wrong in (["a", "nobody"], []):
        with pytest.raises(TableError, match="must be columns of the table"):
            table.batches(wrong)


@pytest.mark.parametrize(
    "name", ["x*.csv", "x?.csv", "x[1].csv", "it's.csv", 'a "quoted".csv', "year=2020/x.csv", "$1 %s.csv"]
)
def test_a_path_means_that_very_file(write: Writer, name: str) -> None:
    for other in ("x1.csv", "xy.csv", "xx.csv"):
        write(other, "a\nwrong\n")
    table = open_table(write(name, "a\nright\n"))
    assert (table.columns, rows(table)) == (["a"], [{"a": "right"}])


def test_odd_column_names_are_kept(write: Writer, tmp_path: Path) -> None:
    names = ["a", "A", 'q"uote', "it's", "select", "ünï", "a b", "c0"]
    path = write(
        "t.csv", ",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n" + ",".join("12345678") + "\n"
    )
    assert rows(open_table(path)) == [dict(zip(names, "12345678", strict=True))]
    pq.write_table(pa.table({name: [1] for name in names[1:]}), tmp_path / "t.parquet")
    assert rows(open_table(tmp_path / "t.parquet")) == [dict.fromkeys(names[1:], 1)]


def test_nameless_columns_are_named_by_place(write: Writer) -> None:
    assert open_table(write("t.csv", ",b\n0,1\n")).columns == ["column_1", "b"]


@pytest.mark.parametrize("content", ["a,b\n", "a,b", "a,b\r\n"])
def test_header_alone_is_a_table_without_rows(write: Writer, content: str) -> None:
    table = open_table(write("t.csv", content))
    assert (table.columns, rows(table)) == (["a", "b"], [])


def test_one_column_one_row_and_many_columns(write: Writer) -> None:
    assert rows(open_table(write("t.csv", "a\nx"))) == [{"a": "x"}]
    names = [f"v{number}" for number in range(300)]
    wide = open_table(write("wide.csv", ",".join(names) + "\n" + ",".join(names) + "\n"))
    assert rows(wide) == [dict(zip(names, names, strict=True))]


def test_json_values_are_the_texts_of_themselves(write: Writer) -> None:
    lines = (
        '{"d": "2020-1-1", "n": 1.0, "b": true, "q": "say \\"no\\" \\u00e9"}\n'
        '{"n": 9007199254740993, "b": "true", "d": null, "q": "null"}\n'
        '{"n": [1], "b": {"a": 1}, "d": "[1]", "late": 1e3}\n'
    )
    nested = {"d": "[1]", "n": NESTED_TEXT, "b": NESTED_TEXT, "q": None, "late": "1000.0"}
    assert rows(open_table(write("t.jsonl", lines))) == [
        {"d": "2020-1-1", "n": "1.0", "b": "true", "q": 'say "no" é', "late": None},
        {"d": None, "n": "9007199254740993", "b": "true", "q": "null", "late": None},
        nested,
    ]


@pytest.mark.parametrize("content", ["[]", "\n\n", "[ ]\n", "{}\n", "[{}]"])
def test_json_without_fields_is_refused(write: Writer, content: str) -> None:
    assert "records with named fields" in str(refusal(write("t.json", content)))


def test_json_that_holds_no_records_is_refused(write: Writer) -> None:
    assert "well-formed" in str(refusal(write("t.jsonl", f'{{"a": 1}}\n"{CANARY}"\n')))
    assert "records" in str(refusal(write("t.json", f'["{CANARY}"]')))


def test_a_closed_quoted_field_may_span_lines_and_any_other_stray_quote_is_refused(write: Writer) -> None:
    assert rows(open_table(write("t.csv", 'a,b\n1,"x\n2,y"\n3,z\n'))) == [
        {"a": "1", "b": "x\n2,y"},
        {"a": "3", "b": "z"},
    ]
    for content in (f'a,b\n1,"x\n2,{CANARY}\n3,z\n', f'a,b\n1,"x\n2,"{CANARY}"\n', f'a,b\n1,"{CANARY}"x\n2,y\n'):
        assert "closed" in str(refusal(write("bad.csv", content)))
    assert refusal(write("long.csv", 'a,b\n1,"x\n' + "2,y\n" * 10**6 + '3,z"\n'))
    inner = write("inner.csv", 'a,b\n1,5" pipe\n2,y\n')
    assert rows(open_table(inner)) == [{"a": "1", "b": '5" pipe'}, {"a": "2", "b": "y"}]


def test_loose_columns_are_read_value_by_value() -> None:
    moment = datetime.datetime(2020, 1, 2, 10)
    pairs: list[tuple[Any, str | None]] = [
        (1, "1"),
        ("x", "x"),
        (None, None),
        (2.5, "2.5"),
        (1.0, "1"),
        (1e-7, "0.0000001"),
        (1e22, "1" + "0" * 22),
        (10**400, "1" + "0" * 400),
        (10**5000, "1e5000"),
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Decimal("Infinity"), "inf"),
        (Decimal("1.50"), "1.5"),
        (True, "true"),
        ("True", "True"),
        (np.True_, "true"),
        (np.int8(3), "3"),
        (np.float32(0.1), "0.1"),
        (np.float64(2), "2"),
        (np.str_(" y "), "y"),
        (b"z", "z"),
        (b"\xff", "\ufffd"),
        ("\ud800", "?"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2), "2020-01-02"),
        (moment, "2020-01-02T10:00:00"),
        (pd.Timestamp(moment), "2020-01-02T10:00:00"),
        (np.datetime64(moment, "ns"), "2020-01-02T10:00:00"),
        (datetime.timedelta(1), "1 day, 0:00:00"),
        (pd.Timedelta(1, "D"), "1 day, 0:00:00"),
        (np.timedelta64(1, "D"), "1 day, 0:00:00"),
        ([1], NESTED_TEXT),
        ({"a": 1}, NESTED_TEXT),
        (np.zeros(2), NESTED_TEXT),
        (Sulky(), UNREADABLE_TEXT),
    ]
    given = [value for value, _ in pairs]
    column = np.empty(len(given), dtype=object)
    column[:] = given
    for source in (pd.DataFrame({"m": column}), pl.DataFrame({"m": pl.Series(given, dtype=pl.Object)})):
        for row, (_, expected) in zip(rows(open_table(source)), pairs, strict=True):
            assert row == {"m": expected}


class Sulky:
    """Will not be written."""

    def __str__(self) -> str:
        """Refuse, with a value in hand."""
        raise RuntimeError(CANARY)


def test_batches_are_bounded_and_in_order(tmp_path: Path) -> None:
    frame = pa.table({"n": pa.array(range(300_000))})
    pq.write_table(frame, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", frame, pl.DataFrame(frame), frame.to_pandas()):
        batches = list(open_table(source).batches(["n"]))
        assert max(batch.num_rows for batch in batches) <= streams.BATCH_ROWS
        assert pa.Table.from_batches(batches)["n"].to_pylist() == list(range(300_000))


def test_a_table_can_be_read_twice_and_left_half_way(write: Writer) -> None:
    table = open_table(write("t.csv", "a\n" + "1\n" * 300_000))
    assert next(table.batches(["a"])).num_rows > 0
    assert len(rows(table)) == len(rows(table)) == 300_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"a,b\n1,2\n{CANARY}\n", r"as many fields as its header \(line 3\)"),
        (f"a,b\n1,2\n{CANARY},2,3\n", r"as many fields as its header \(line 3\)"),
        (f'a,b\n1,2\n"{CANARY},2\n', r"closed \(line 3\)"),
        (f'a,b\n"{CANARY}"x,2\n', r"closed \(line 2\)"),
        (f"a,b\n{CANARY}é,2\n".encode("latin-1"), r"UTF-8 text \(line 2\)"),
        (f"é,b\n{CANARY},2\n".encode("latin-1"), "UTF-8 text"),
        (f"a,b\n{CANARY},2\n".encode("utf-16-le"), "UTF-8 text"),
        (f"a,b,a\n{CANARY},2,3\n", r"columns 1, 3 \(a\) must have distinct names"),
        (f"{CANARY},7,{CANARY}\n{CANARY},8,3\n", r"columns 1, 3 must have distinct names"),
        (f"{CANARY},x,{CANARY}\n{CANARY},y,z\n", r"columns 1, 3 must have distinct names"),
        (f"\n\na,b\n{CANARY},2\n", "first line"),
        (f'"a,b\n{CANARY},2\n', "well-formed"),
        ("", "must not be empty"),
        ("x" * (tables.LONGEST_HEADER + 1), "must"),
        (f"a,b\r\n{CANARY},2\n3,4\n", "well-formed"),
    ],
)
def test_bad_text_is_refused(write: Writer, content: str | bytes, said: str) -> None:
    path = write("bad.csv", content)
    error = refusal(path)
    assert "bad.csv" in str(error) or "columns" in str(error)
    assert re.search(said, str(error))


def test_bad_row_is_found_though_its_column_is_not_read(write: Writer) -> None:
    table = open_table(write("bad.csv", f"a,b\n1,2\n{CANARY},1,2\n"))
    with pytest.raises(TableError, match="line 3"):
        rows(table, ["b"])


@pytest.mark.parametrize(
    "content",
    [
        f'{{"a": 1}}\n{{"a": "{CANARY}\n',
        f'{{"a": {CANARY}}}\n',
        '{"a": 1}\n' * 50_000 + f'{{"a": {CANARY}}}\n',
    ],
)
def test_bad_json_is_refused(write: Writer, content: str) -> None:
    assert "well-formed" in str(refusal(write("bad.jsonl", content)))
    assert "well-formed" in str(refusal(write("bad.json", "[" + content)))


def test_json_names_that_differ_in_case_only_are_refused(write: Writer) -> None:
    assert "more than case" in str(refusal(write("t.jsonl", '{"a": 1, "A": 2}\n')))


def test_truncated_and_false_files_are_refused(write: Writer, tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (n * 7919 % 10007, n) for n in range(100_000)))
    pq.write_table(pa.table({"a": [CANARY] * 1000}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    for path in (
        write("cut.csv.gz", packed[: len(packed) // 2]),
        write("false.csv.gz", f"a,b\n{CANARY},2\n"),
        write("cut.parquet", whole[: len(whole) // 2]),
        write("false.parquet", f"PAR1{CANARY}PAR1"),
        write("holed.parquet", whole[:4] + b"\xff" * 40 + whole[44:]),
    ):
        assert "well-formed and readable" in str(refusal(path))


def test_names_that_are_no_tables_are_refused(write: Writer, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert "must exist" in str(refusal(tmp_path / "nowhere.csv"))
    assert "folder" in str(refusal(tmp_path / "folder.csv"))
    for name in ("t.docx", "t", "t.parquet.gz", "t.gz", ".csv"):
        assert ".parquet" in str(refusal(write(name, "a\n1\n")))


def test_repeated_names_in_other_kinds_are_refused(tmp_path: Path) -> None:
    twins = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(twins, tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "case.parquet")
    for source in (twins, tmp_path / "t.parquet", pd.DataFrame([[1, 2]], columns=["a", "a"])):
        assert "distinct" in str(refusal(source))
    assert "more than case" in str(refusal(tmp_path / "case.parquet"))


@pytest.mark.parametrize("source", [None, 3, {"a": [1]}, [1], pd.DataFrame({1: [2]}), pd.DataFrame(), pd.Series([1])])
def test_what_is_no_frame_is_refused(source: Any) -> None:
    assert "must" in str(refusal(source))


def test_failing_lazy_frame_says_nothing_of_its_rows() -> None:
    lazy = pl.LazyFrame({"a": [CANARY]}).with_columns(pl.col("a").cast(pl.Int64))
    assert "lazy frame" in str(refusal(lazy))


def test_repr_shows_names_only(write: Writer) -> None:
    assert repr(open_table(write("t.csv", f"a,b\n{CANARY},1\n"))) == "Table(columns=['a', 'b'])"


def test_the_reader_of_files_draws_no_bar_of_its_own() -> None:
    with duck.connect() as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "cp850"])
def test_other_encodings_are_read_when_they_are_said(write: Writer, encoding: str) -> None:
    text = 'naïve;größe\r\n"é;\n";1\r\n;Ü\r\n'
    table = open_table(tables.Encoded(write("other.csv", text.encode(encoding)), encoding))
    assert table.columns == ["naïve", "größe"]
    assert rows(table, ["größe", "naïve"]) == [
        {"größe": "1", "naïve": "é;\n"},
        {"größe": "Ü", "naïve": None},
    ]


def test_the_mark_of_utf_16_is_enough(write: Writer) -> None:
    table = open_table(write("marked.csv", "a,b\nü,2\n".encode("utf-16")))
    assert rows(table, ["a"]) == [{"a": "ü"}]


def test_bad_encodings_are_refused(write: Writer) -> None:
    path = write("x.csv", f"a,b\n{CANARY},2\n")
    with pytest.raises(TableError, match=r"encoding \(klingon\) must be one that Python knows"):
        open_table(tables.Encoded(path, "klingon"))
    with pytest.raises(TableError, match="must be an unpacked CSV or TSV file"):
        open_table(tables.Encoded(path.with_suffix(".parquet"), "cp1252"))
    broken = write("broken.csv", f"a,b\n{CANARY}\n".encode("cp1252"))
    with pytest.raises(TableError, match="well-formed") as caught:
        rows(open_table(tables.Encoded(broken, "cp1252")), ["a"])
    assert CANARY not in str(caught.value)
