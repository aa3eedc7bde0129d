"""The codes of a row depend on the values of that row alone: one record more or less moves no other."""

from __future__ import annotations

import csv
import datetime
import json
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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato
from one_column import coded, loose, names, numeric
from sfumato import Schema
from sfumato.engines.counting import Counting
from sfumato.errors import SchemaError, TableError
from sfumato.geometry.grid import Grid
from sfumato.privacy.tally import Tally
from sfumato.schema.attributes import Numeric
from sfumato.tables.databases import Query
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table
from sfumato.tables.streams import Table
from sfumato.tables.values import distinct, texts

BILLION = numeric(0, 10**13, 10**9, missing="none")
ROOMS = names("1", "2", "x", "studio", "true", "9007199254740993", "other", missing="other", unseen="other")
HALVES = numeric(0, 9, "0.5", missing="none")
LONG_AGO = numeric("2000-01-01", "2020-12-31", 30, missing="none")


def lines_of(values: list[Any]) -> str:
    """Write JSON lines."""
    return "".join(json.dumps({"x": value}) + "\n" for value in values)


def read_once(source: Any) -> Table:
    """Read a table's column before anything is made of it."""
    batches = list(open_table(source).batches(["x"]))
    return Table(["x"], lambda _: iter(batches))


def codes_by(schemas: list[Schema], table: Table) -> list[list[int]]:
    return [encode(table, schema).columns["x"].tolist() for schema in schemas]


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (1.0, "x"),
        (1.0, "studio"),
        (True, "x"),
        (True, 1),
        (True, None),
        (9007199254740993, 0.5),
        (999999999, 0.5),
        (999999999, None),
        ("999999999", "0.5"),
        ("0000-01-01", "2020-01-01 10:00"),
        ("2020-01-01", "2020-01-01 10:00"),
        (1, [1]),
    ],
)
def test_one_more_record_moves_no_other(value: Any, other: Any, tmp_path: Path) -> None:
    def sources(values: list[Any]) -> list[Any]:
        (tmp_path / "t.jsonl").write_text(lines_of(values))
        (tmp_path / "t.json").write_text(json.dumps([{"x": value} for value in values]))
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(f'"{v}",1\n' for v in values))
        files = [tmp_path / name for name in ("t.jsonl", "t.json", "t.csv")]
        rounded = isinstance(value, int) and value > 2**53  # by pandas itself, before we see it
        return [*files, loose(values), *([] if rounded else [pd.DataFrame({"x": values})])]

    schemas = [Schema.parse({"attributes": {"x": facts}}) for facts in (ROOMS, BILLION, HALVES, LONG_AGO)]
    alone = [codes_by(schemas, read_once(source)) for source in sources([value] * 100)]
    after = [codes_by(schemas, read_once(source)) for source in sources([value] * 100 + [other])]
    assert [[codes[:100] for codes in found] for found in after] == alone
    assert alone[0] == alone[1]


CELLS = st.one_of(
    st.integers(-3, 12),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.floats(-3, 12),
    st.sampled_from([1.0, 2.5, 0.1, 1e-7, 999999999, 2**53 + 1, 10**400, float("inf")]),
    st.sampled_from(["1", "1.0", " 2 ", "x", "True", "true", "nan", "", "?", "1e3", "1e400", "inf", "2020-01-01", "é"]),
    st.sampled_from(["0000-01-01", "2020-01-01 10:00", "2020-02-30", "1,5", "0x1", "9007199254740993", "007", "+5"]),
    st.booleans(),
    st.none(),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-3, max_value=12, places=2),
    st.dates(datetime.date(1999, 1, 1), datetime.date(2021, 1, 1)),
    st.datetimes(datetime.datetime(1999, 1, 1), datetime.datetime(2021, 1, 1)),
    st.sampled_from([pd.NA, pd.NaT, np.float32(0.1), np.int8(1), np.True_, [1], {"a": 1}, b"x", b"\xff"]),
)


def as_text(value: Any) -> str | None:
    """Write a value as some program might."""
    return None if value is None else str(value).encode("utf-8", "replace").decode()


def as_json(value: Any) -> Any:
    """Keep what JSON has types for."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str | list | dict | None) and value is not pd.NA else str(value)


def csv_file(values: list[Any], folder: Path) -> Path:
    """Write delimited text."""
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", "y"], *([as_text(value), 1] for value in values)])
    return folder / "t.csv"


def json_file(values: list[Any], folder: Path) -> Path:
    """Write JSON lines."""
    (folder / "t.jsonl").write_text(lines_of([as_json(value) for value in values]), encoding="utf-8")
    return folder / "t.jsonl"


def parquet_file(values: list[Any], folder: Path) -> Path:
    """Write texts to Parquet."""
    pq.write_table(pa.table({"x": pa.array([as_text(value) for value in values], pa.string())}), folder / "t.parquet")
    return folder / "t.parquet"


def numbers_of(values: list[Any]) -> list[float | None]:
    """Keep the numbers."""
    return [
        float(value) if isinstance(value, int | float | Decimal) and abs(value) < 10**300 else None for value in values
    ]


def wholes_of(values: list[Any]) -> list[int | None]:
    """Keep the whole numbers of the machine."""
    return [value if type(value) is int and abs(value) < 2**63 else None for value in values]


SOURCES: dict[str, Callable[[list[Any], Path], Any]] = {
    "pandas objects": lambda values, _: loose(values),
    "pandas categories": lambda values, _: pd.DataFrame({"x": pd.Categorical(loose(values)["x"].map(as_text))}),
    "pandas floats": lambda values, _: pd.DataFrame({"x": pd.Series(numbers_of(values), dtype=float)}),
    "pandas integers": lambda values, _: pd.DataFrame({"x": pd.array(wholes_of(values), dtype="Int64")}),
    "polars texts": lambda values, _: pl.DataFrame(
        {"x": [as_text(value) for value in values]}, schema={"x": pl.String}
    ),
    "polars objects": lambda values, _: pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)}),
    "polars floats": lambda values, _: pl.DataFrame({"x": numbers_of(values)}, schema={"x": pl.Float64}),
    "arrow texts": lambda values, _: pa.table({"x": pa.array([as_text(value) for value in values], pa.string())}),
    "arrow integers": lambda values, _: pa.table({"x": pa.array(wholes_of(values), pa.int64())}),
    "csv": csv_file,
    "json lines": json_file,
    "parquet": parquet_file,
}


@pytest.mark.parametrize("kind", list(SOURCES))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(values=st.lists(CELLS, min_size=1, max_size=7), record=CELLS, batch=st.integers(1, 4), place=st.integers(0, 7))
def test_codes_of_a_row_depend_on_that_row_alone(
    kind: str, values: list[Any], record: Any, batch: int, place: int, tmp_path: Path
) -> None:
    everything = Schema.parse({"attributes": {"x": ROOMS}})
    schemas = [everything, *(Schema.parse({"attributes": {"x": facts}}) for facts in (BILLION, HALVES, LONG_AGO))]
    schemas.append(Schema.parse({"attributes": {"x": numeric(0, 9, 2, points=[1])}}))

    def all_codes(given: list[Any]) -> list[list[int]]:
        return codes_by(schemas, read_once(SOURCES[kind](given, tmp_path)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.tables.streams.BATCH_ROWS", batch)
        before, after = all_codes(values), all_codes([*values[:place], record, *values[place:]])
    place = min(place, len(values))
    assert [codes[:place] + codes[place + 1 :] for codes in after] == before


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(10**4), 10**6).map(lambda n: Decimal(n) / 100), min_size=1, max_size=8),
    st.sampled_from(
        [numeric(0, 9000, 7, points=[12]), numeric("0.5", 9000, "0.25"), numeric(-50, 10**13, 10**9), ROOMS]
    ),
)
def test_equal_numbers_share_a_leaf_in_every_type(values: list[Decimal], facts: dict[str, Any]) -> None:
    written = [str(value) for value in values]
    disguises: list[Any] = [
        pa.table({"x": pa.array(values, pa.decimal128(20, 2))}),
        pa.table({"x": [float(value) for value in values]}),
        pa.table({"x": pa.array([float(value) for value in values], pa.float32())}),
        pa.table({"x": written}),
        pa.table({"x": pa.array(written).dictionary_encode()}),
        pa.table({"x": [*written, "x"]}),
        loose(values),
        loose([float(value) for value in values]),
        loose([*written, True]),
        pl.DataFrame({"x": values}),
    ]
    if all(value == int(value) for value in values):
        disguises += [pa.table({"x": [int(value) for value in values]}), loose([int(value) for value in values])]
    found = [coded(facts, disguise).columns["x"].tolist()[: len(values)] for disguise in disguises]
    assert found == [found[0]] * len(found)


ZONES = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (2, -5)]
NEW_YEAR = [datetime.datetime(2020, 1, 1, 0, 30, tzinfo=zone) for zone in ZONES]
DAYS = Numeric(lower="2019-12-31", upper="2020-01-01", missing="none")
TENTHS_OR_NONE = Numeric(lower=0, upper=1, step="0.1", missing="none")


@pytest.mark.parametrize(
    ("facts", "value", "extra"),
    [
        (DAYS, NEW_YEAR[0], NEW_YEAR[1]),
        (DAYS, NEW_YEAR[0], datetime.datetime(2020, 1, 1, 0, 30)),
        (TENTHS_OR_NONE, np.float32(0.7), 0.5),
        (TENTHS_OR_NONE, np.float32(0.7), "x"),
    ],
)
@pytest.mark.parametrize("place", [0, 100, 120])
def test_a_mostly_empty_object_column_is_read_value_by_value(facts: Numeric, value, extra, place: int) -> None:
    """A frame library that types such a column from its first hundred values must not be believed."""
    values = [None] * 100 + [value] * 20
    more = [*values[:place], extra, *values[place:]]

    def read(column: list) -> list[int]:
        frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
        return encode(open_table(frame), Schema(attributes={"x": facts})).columns["x"].tolist()

    found = read(more)
    assert found[:place] + found[place + 1 :] == read(values)


REFUSED = ("well-formed", "as many fields", "every quoted field")
"""Where a wrong guess is noticed depends on where threads begin."""


def test_a_large_file_with_lines_in_quotes_is_read_rightly_or_refused(tmp_path: Path) -> None:
    """The reader guesses where lines begin in the middle of a large file; a wrong guess must not pass for data."""
    rows = '"\n2,z,",b,3\n' * 900_000
    facts = Schema(attributes={"c": Numeric(lower=0, upper=9)})
    for extra in ("", *('"' + "q" * length + '",b,7\n' for length in range(4, 9))):
        (tmp_path / "large.csv").write_text("a,b,c\n" + extra + rows)
        try:
            coded = encode(open_table(tmp_path / "large.csv"), facts).columns["c"]
        except TableError as error:
            assert any(said in str(error) for said in REFUSED)  # noqa: PT017
            continue
        assert np.bincount(coded, minlength=8)[[3, 7]].tolist() == [900_000, int(bool(extra))]


# Columns that come as dictionaries: what is read of a row does not depend on how many stand beside it.

TOWN_NAMES = [f"v{number}" for number in range(200)]
TOWNS = Schema.parse({"attributes": {"town": {"kind": "categorical", "taxonomy": TOWN_NAMES}}})


def town_codes(table: Any) -> list[int]:
    found = encode(open_table(table), TOWNS)
    assert found.misfits == ()
    return found.columns["town"].tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "c"]).cast(pa.string_view()),
        pa.array([b"a", b"b", b"c"]).cast(pa.binary_view()),
        pa.array(["a", "b", "c"]),
        pa.array([1, 2, 3], pa.int8()),
        pa.array(["a", None, "c"]),
        pa.array(["a", "a", "c"]),
        pa.array([[1], [2], [3]]),
        pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
        pa.array(["a", "b", "c"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_a_dictionary_longer_than_its_rows_is_read_like_any_other(values: Any) -> None:
    expected = [*texts(values), None]
    for places in ([], [2], [None], [2, 0], [1, None], [2, 2, 0, None, 1]):
        column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)
        found, where = distinct(column)
        written = texts(found)
        assert [written[place] for place in where] == [expected[3 if place is None else place] for place in places]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4])
def test_categories_are_read_however_few_rows_there_are(kind: pa.DataType, rows: int) -> None:
    column = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, 1, 2][:rows], pa.int8()), pa.array(TOWN_NAMES[:3]).cast(kind)
    )
    assert town_codes(pa.table({"town": column})) == [2, 0, 1, 2][:rows]


@pytest.mark.parametrize("first", [126, 127, 128])
@pytest.mark.parametrize("second", [[], [0], [0, 150], [150, 151, 152]])
def test_chunks_whose_dictionaries_need_a_wider_index_together_are_read(first: int, second: list[int]) -> None:
    def chunk(numbers: list[int]) -> Any:
        values = pa.array([TOWN_NAMES[number] for number in numbers], pa.string())
        return values.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))

    column = pa.chunked_array([chunk(list(range(first))), chunk(second)])
    for table in (
        pa.table({"town": column}),
        pd.DataFrame({"town": pd.Series(column, dtype=pd.ArrowDtype(column.type))}),
    ):
        assert town_codes(table) == [*range(first), *second]


# What a Parquet file says about a column as a whole must not decide how a row of it is read.

NAN = float("nan")
PEOPLE = [1.0] * 5 + [NAN] * 1000
NUMBERS = Schema.parse({"attributes": {"x": {"kind": "numeric", "lower": 0, "upper": 9, "missing": "gone"}}})


def counted(values: list[float | None], folder: Path, schema: Schema, sql: str | None = None) -> list[int]:
    path = folder / "people.parquet"
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), path)
    with Counting.of(scratch=folder).opened(path if sql is None else Query(sql, path), schema) as counts:
        found = counts.tally(Tally(Grid.whole(schema.shape), 1, (0,)))
    return found.by_leaf[0].dense(1).ravel().tolist()


def moved(folder: Path, schema: Schema, more: float | None, sql: str | None = None) -> int:
    """Tell by how much one record more changes the counts."""
    before, after = (counted([*PEOPLE, *one], folder, schema, sql) for one in ([2.0], [2.0, more]))
    return sum(abs(one - other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("more", [None, NAN, 2.0, 9.0])
def test_one_record_moves_one_count(more: float | None, tmp_path: Path) -> None:
    assert moved(tmp_path, NUMBERS, more) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM data WHERE x > 5",
        "SELECT x FROM data WHERE x BETWEEN 1 AND 3",
        "SELECT x FROM data WHERE NOT isnan(x)",
        "SELECT CASE WHEN isnan(x) THEN 8 ELSE x END AS x FROM data",
    ],
)
@pytest.mark.parametrize("more", [None, 6.0])
def test_one_record_moves_one_row_of_a_query(sql: str, more: float | None, tmp_path: Path) -> None:
    assert moved(tmp_path, NUMBERS, more, sql) <= 1


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        ({"lower": 0, "upper": 1999, "step": 100, "written": "1.234,5"}, [1.234, 5.0, 7.0]),
        ({"lower": 0, "upper": 1999, "step": 100, "written": "1,234.5"}, [1.234, 5.0, 7.5]),
        ({"lower": "2020-01-01", "upper": "2020-12-31", "written": "DD.MM.YYYY"}, [pd.Timestamp("2020-01-02")] * 3),
    ],
)
def test_a_neighbours_text_does_not_change_how_typed_values_are_read(facts: dict, values: list) -> None:
    """A column of numbers or days, and the same beside a text, which makes it a column of mixed values."""
    schema = Schema.parse({"confirmed": True, "attributes": {"x": {"kind": "numeric", "missing": "none", **facts}}})
    typed, mixed = pd.DataFrame({"x": values}), pd.DataFrame({"x": [*values, None, ""]}, dtype=object)
    found = [sfumato.coded(frame, schema).columns["x"][: len(values)].tolist() for frame in (typed, mixed)]
    assert found[0] == found[1]


def test_days_are_not_written_like_the_plain_way_with_day_and_month_exchanged() -> None:
    facts = {"kind": "numeric", "lower": "2020-01-01", "upper": "2020-12-31", "written": "YYYY-DD-MM"}
    with pytest.raises(SchemaError, match="must be a form of days"):
        Schema.parse({"attributes": {"x": facts}})


OPTIONAL = Schema.parse(
    {
        "confirmed": True,
        "attributes": {
            "x": {"kind": "numeric", "lower": "0", "upper": "9"},
            "note": {"kind": "categorical", "taxonomy": ["yes", "no", "none"], "missing": "none"},
        },
    }
)


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_a_field_that_one_record_has_decides_nothing(tmp_path: Path, ending: str) -> None:
    """Columns come from the schema: what a record does not name is missing there, also if no record names it."""

    def coded(records: list[dict[str, Any]]) -> list[int]:
        lines = "\n".join(map(json.dumps, records))
        (tmp_path / f"t{ending}").write_text(json.dumps(records) if ending == ".json" else lines or "\n")
        found = encode(open_table(tmp_path / f"t{ending}"), OPTIONAL)
        assert not found.misfits
        return found.columns["note"].tolist()

    few = [{"x": 1}, {"x": 2}]
    assert coded(few) == [2, 2]
    assert coded([*few, {"x": 3, "note": "yes"}]) == [2, 2, 0]
    assert coded([*few, {"x": 3, "NAME": "new", "name": "other"}]) == [2, 2, 2]
    assert coded([]) == []


def test_a_field_that_must_be_there_is_missed_record_by_record(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"x": 1}\n{"note": "no"}\n')
    assert [(one.column, one.rows) for one in encode(open_table(tmp_path / "t.jsonl"), OPTIONAL).misfits] == [("x", 1)]
