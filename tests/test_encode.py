"""From values to leaf codes: exact at every edge, countable where a value has no leaf."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
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

from sfumato.attributes import Numeric
from sfumato.errors import SchemaError, TableError
from sfumato.io import Coded, Misfit, Table, encode, open_table, refuse_misfits
from sfumato.io.encode import CellFinder
from sfumato.schema import Schema

CANARY = "KANARIENVOGEL"


def coded(facts: dict[str, Any], values: Any, **more: Any) -> Coded:
    """Encode one column."""
    frame = values if hasattr(values, "schema") or isinstance(values, pd.DataFrame) else pa.table({"x": values})
    return encode(open_table(frame), Schema.parse({"attributes": {"x": facts}} | more))


def codes(facts: dict[str, Any], values: Any) -> list[int]:
    """Encode one column in which all fits."""
    result = coded(facts, values)
    assert not result.misfits
    return result.columns["x"].tolist()


def reasons(facts: dict[str, Any], values: Any) -> dict[str, int]:
    """Encode one column and count what does not fit."""
    result = coded(facts, values)
    assert len(result.columns["x"]) == result.rows == len(values)
    return {misfit.reason: misfit.rows for misfit in result.misfits}


def numeric(lower: Any, upper: Any, step: Any = 1, **more: Any) -> dict[str, Any]:
    """Declare a grid."""
    return {"kind": "numeric", "lower": lower, "upper": upper, "step": step} | more


def names(*leaves: str, **more: Any) -> dict[str, Any]:
    """Declare a flat taxonomy."""
    return {"kind": "categorical", "taxonomy": list(leaves)} | more


TENTHS = numeric(0, 1, "0.1")
YEAR = numeric("2020-01-01", "2020-12-31")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], [0, 1]),
        ([1.0, 2.5], [0, 2]),
        (pa.array([1.0, 2.5], pa.float32()), [0, 2]),
        (pa.array([0.1], pa.float32()), [6]),
        ([True, False], [3, 4]),
        (["1 ", " true"], [0, 3]),
        ([Decimal("1.00"), Decimal("2.50")], [0, 2]),
        ([datetime.date(2020, 1, 1)], [5]),
        (pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("ns")), [5]),
        (pa.array(["1", "2"], pa.large_string()), [0, 1]),
        (pa.array(["1", "2"], pa.string_view()), [0, 1]),
        (pa.array([b"1", b"2"]), [0, 1]),
        (pa.array(["2", "1", "2"]).dictionary_encode(), [1, 0, 1]),
        (pd.DataFrame({"x": pd.Categorical(["2", "1"])}), [1, 0]),
        (pd.DataFrame({"x": pd.Series([1, "2"], dtype=object)}), [0, 1]),
        (pl.DataFrame({"x": ["2", "1"]}, schema={"x": pl.Categorical}), [1, 0]),
    ],
)
def test_categories_are_matched_by_their_text(values: Any, expected: list[int]) -> None:
    assert codes(names("1", "2", "2.5", "true", "false", "2020-01-01", "0.1"), values) == expected


def test_missing_and_unseen_have_their_leaves() -> None:
    facts = names("a", "none", "other", missing="none", unseen="other")
    assert codes(facts, ["a", None, "?", "", "  ", "NA", "zebra", "none"]) == [0, 1, 1, 1, 1, 1, 2, 1]
    assert codes(facts, pa.nulls(2)) == [1, 1]
    assert codes(numeric(0, 9, missing="none"), ["3", None, "?", "none"]) == [3, 10, 10, 10]
    assert codes(numeric(0, 9, missing="none"), [3.0, None, float("nan")]) == [3, 10, 10]
    assert codes(YEAR | {"missing": "none"}, ["2020-01-03", ""]) == [2, 366]


def test_a_declared_leaf_wins_over_a_missing_text() -> None:
    assert codes(names("NA", "US"), ["NA", "US"]) == [0, 1]


def test_missing_texts_are_the_schemas_own() -> None:
    result = coded(names("a", "?"), ["?", "-", "a"], missing_values=["-"])
    assert [(misfit.reason, misfit.rows) for misfit in result.misfits] == [("missing value", 1)]


@pytest.mark.parametrize(
    ("facts", "values", "expected"),
    [
        (names("a"), ["a", None, "?", "b", "b"], {"missing value": 2, "value not in the taxonomy": 2}),
        (names("a"), [[1], None], {"missing value": 1, "not a single value": 1}),
        (names("a"), [{"b": 1}, {"b": 2}], {"not a single value": 2}),
        (names("a"), pa.array([b"\xff"]), {"value not in the taxonomy": 1}),
        (TENTHS, [0.5, None, float("nan")], {"missing value": 2}),
        (TENTHS, [float("inf"), float("-inf"), 0.5], {"not finite": 2}),
        (TENTHS, ["inf", "-Infinity", "nan", "0.5"], {"missing value": 1, "not finite": 2}),
        (TENTHS, ["x", "0x1F", "1_0", "1,5", "٣", "--1", "1e", "."], {"not a number": 8}),
        (TENTHS, [True, False], {"not a number": 2}),
        (TENTHS, [datetime.date(2020, 1, 1)], {"not a number": 1}),
        (TENTHS, [[1], [2]], {"not a single value": 2}),
        (YEAR, [1, 2], {"not a date": 2}),
        (YEAR, ["5", "20200101", "2020-13-01", "2020-01-01Tx", "x", ""], {"not a date": 5, "missing value": 1}),
    ],
)
def test_what_does_not_fit_is_counted(facts: dict[str, Any], values: Any, expected: dict[str, int]) -> None:
    assert reasons(facts, values) == expected


@pytest.mark.parametrize("kind", [float, str, Decimal, "float32"])
def test_tenths_fall_in_their_own_cells(kind: Any) -> None:
    tenths = [f"{number / 10:.1f}" for number in range(11)]
    values = (
        pa.array([float(t) for t in tenths], pa.float32()) if kind == "float32" else [kind(text) for text in tenths]
    )
    assert codes(TENTHS, values) == [*range(10), 9]


@given(st.integers(-50, 50), st.integers(1, 40), st.integers(0, 400), st.sampled_from([1, 10, 100, 1000]))
def test_every_decimal_on_the_grid_falls_in_its_cell(lower: int, step: int, cell: int, unit: int) -> None:
    facts = Numeric(
        lower=Decimal(lower) / unit, upper=Decimal(lower + 400 * step) / unit, step=Decimal(step) / unit, missing=None
    )
    number = float(Fraction(lower + cell * step, unit))
    expected = min(cell, 400 if facts.is_whole else 399)
    assert CellFinder(facts).find(np.array([number]))[0].tolist() == [expected]


@given(
    st.integers(-(10**6), 10**6),
    st.integers(1, 10**4),
    st.integers(1, 10**3),
    st.lists(st.integers(-(2**70), 2**70) | st.integers(-(10**7), 10**7), min_size=1, max_size=8),
)
def test_whole_numbers_are_exact_in_every_disguise(lower: int, span: int, step: int, values: list[int]) -> None:
    facts = numeric(lower, lower + span, step)
    last = span // step
    expected = [min(max((value - lower) // step, 0), last) for value in values]
    outside = sum(not lower <= value <= lower + span for value in values)
    texts = coded(facts, [f" {value}" for value in values])
    assert (texts.columns["x"].tolist(), texts.outside.get("x", 0)) == (expected, outside)
    if all(abs(value) < 2**63 for value in values):
        whole = coded(facts, pa.array(values, pa.int64()))
        assert (whole.columns["x"].tolist(), whole.outside.get("x", 0)) == (expected, outside)


def test_numbers_outside_count_in_the_nearest_cell() -> None:
    result = coded(numeric(0, 10, 3), [-1, 0, 9, 10, 11, 12, 10**18])
    assert (result.columns["x"].tolist(), result.outside, result.misfits) == ([0, 0, 3, 3, 3, 3, 3], {"x": 4}, ())
    assert coded(TENTHS, [0, 1.0]).outside == {}
    assert coded(numeric(0, 9), [9.5, 0.0]).outside == {}
    assert coded(numeric(0, 9), [10.0, -0.5]).outside == {"x": 2}
    assert coded(TENTHS, [1.05, 0.5]).outside == {"x": 1}


def test_numbers_beyond_the_machine_do_not_crash() -> None:
    huge = ["9" * 5000, "-" + "9" * 30, "1e400", "-1e400", "1e-400", "9223372036854775808", "+5"]
    assert codes(numeric(0, 9), huge) == [9, 0, 9, 0, 0, 9, 5]
    assert codes(numeric(0, 9), pa.array([2**64 - 1, 5], pa.uint64())) == [9, 5]
    assert codes(numeric(0, 9), pa.array([-(2**63), 2**63 - 1])) == [0, 9]
    assert codes(numeric(0, 9), [1e308, -1e308]) == [9, 0]
    assert codes(numeric(0, "1e-7", "1e-8"), [1e300, 0.0, -1e300]) == [9, 0, 0]
    assert codes(numeric(10**14, 10**14 + 10), [10**14 + 3]) == [3]


def test_points_have_cells_of_their_own() -> None:
    facts = numeric(0, 1499, 500, points=[0, 700])
    values = [-3, 0, 1, 499, 500, 699, 700, 701, 999, 1000, 1499, 10**18]
    expected = [0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5]
    for disguise in (int, float, str, Decimal):
        assert codes(facts, [disguise(value) for value in values]) == expected
    far = numeric(0, 10**14, 10**12, points=[7 * 10**12])
    assert codes(far, [7 * 10**12 - 1, 7 * 10**12, 7 * 10**12 + 1]) == [6, 7, 8]


def test_days_come_from_dates_times_and_texts() -> None:
    texts = ["2020-01-02", "2020-01-03T10:00:00", " 2020-01-04 10:00", "2020-01-05T23:00:00+02:00", "1999-01-01"]
    assert codes(YEAR, texts) == [1, 2, 3, 4, 0]
    assert codes(YEAR, [datetime.datetime(2020, 1, 2, 23, 59), datetime.datetime(1960, 1, 1, 1)]) == [1, 0]
    old = numeric("1960-01-01", "1970-01-31")
    assert codes(old, [datetime.datetime(1960, 1, 2, 1), datetime.datetime(1970, 1, 1)]) == [1, 3653]
    assert codes(numeric("2020-01-01", "2020-12-31", 7), [datetime.date(2020, 1, 8)]) == [1]
    assert reasons(YEAR, ["0000-01-01", "2020-01-01"]) == reasons(YEAR, ["0000-01-01", "2020-01-01 10:00"])
    zoned = datetime.datetime(2020, 1, 2, 23, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
    assert codes(YEAR, pa.array([zoned], pa.timestamp("us", "America/New_York"))) == [1]
    assert codes(YEAR, pd.DataFrame({"x": pd.Series([zoned, "2020-01-01"], dtype=object)})) == [1, 0]
    assert codes(YEAR, pa.array([10**7, -(10**7)], pa.int32()).cast(pa.date32())) == [365, 0]
    assert codes(YEAR, pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("s"))) == [365, 0]


def test_numbers_and_days_that_mean_no_value_do_so_in_every_type() -> None:
    said = {"missing_values": ["-1", "1900-01-01", "inf", "true"]}
    for values in ([-1, 5], [-1.0, 5.0], ["-1.0", "5"], [Decimal("-1.00"), Decimal(5)], ["-1", "5"]):
        assert {m.reason for m in coded(numeric(-9, 9), values, **said).misfits} == {"missing value"}
        assert {m.reason for m in coded(names("5"), values, **said).misfits} == {"missing value"}
    for values in ([float("inf")], ["inf"], [True], ["true"]):
        assert {m.reason for m in coded(numeric(-9, 9), values, **said).misfits} == {"missing value"}
    for values in ([datetime.date(1900, 1, 1)], ["1900-01-01"], [datetime.datetime(1900, 1, 1)]):
        assert {m.reason for m in coded(YEAR, values, **said).misfits} == {"missing value"}


def test_leaves_that_write_numbers_are_found_by_value() -> None:
    one: tuple[Any, ...] = (1, 1.0, "1", "1.0", "+1", "1e0", Decimal("1.00"), np.float32(1), "01")
    for facts in (names("1", "2"), names("1.0", "2.0"), names("01", "02")):
        for value in one:
            assert codes(facts, loose([value, "2"])) == [0, 1]
            if isinstance(value, int | float | str):
                assert codes(facts, [value]) == [0]
    assert codes(names("1", "1.0"), ["1", "1.0", "1.00"]) == [0, 1, 0]
    assert codes(names("9007199254740993", "9007199254740992"), [9007199254740993, 2**53]) == [0, 1]
    assert codes(names("True", "true"), loose([True, "True", "true", False])[:3]) == [1, 0, 1]


def loose(values: list[Any]) -> pd.DataFrame:
    """Put values of any type into one column."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.DataFrame({"x": pd.Series(column, dtype=object)})


BILLION = numeric(0, 10**13, 10**9, missing="none")
ROOMS = names("1", "2", "x", "studio", "true", "9007199254740993", "other", missing="other", unseen="other")
HALVES = numeric(0, 9, "0.5", missing="none")
LONG_AGO = numeric("2000-01-01", "2020-12-31", 30, missing="none")


def lines_of(values: list[Any]) -> str:
    """Write JSON lines."""
    return "".join(json.dumps({"x": value}) + "\n" for value in values)


@pytest.mark.parametrize("facts", [ROOMS, BILLION, HALVES, LONG_AGO])
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
def test_one_more_record_moves_no_other(facts: dict[str, Any], value: Any, other: Any, tmp_path: Path) -> None:
    def sources(values: list[Any]) -> list[Any]:
        (tmp_path / "t.jsonl").write_text(lines_of(values))
        (tmp_path / "t.json").write_text(json.dumps([{"x": value} for value in values]))
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(f'"{v}",1\n' for v in values))
        files = [tmp_path / name for name in ("t.jsonl", "t.json", "t.csv")]
        rounded = isinstance(value, int) and value > 2**53  # by pandas itself, before we see it
        return [*files, loose(values), *([] if rounded else [pd.DataFrame({"x": values})])]

    schema = Schema.parse({"attributes": {"x": facts}})
    alone = [encode(open_table(source), schema).columns["x"].tolist() for source in sources([value] * 100)]
    after = [encode(open_table(source), schema).columns["x"].tolist() for source in sources([value] * 100 + [other])]
    assert [codes[:100] for codes in after] == alone
    assert len({codes[0] for codes in alone[:2]}) == 1


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
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(values=st.lists(CELLS, min_size=1, max_size=7), record=CELLS, batch=st.integers(1, 4))
def test_codes_of_a_row_depend_on_that_row_alone(
    kind: str, values: list[Any], record: Any, batch: int, tmp_path: Path
) -> None:
    everything = Schema.parse({"attributes": {"x": ROOMS}})
    schemas = [everything, *(Schema.parse({"attributes": {"x": facts}}) for facts in (BILLION, HALVES, LONG_AGO))]
    schemas.append(Schema.parse({"attributes": {"x": numeric(0, 9, 2, points=[1])}}))

    def all_codes(given: list[Any]) -> list[list[int]]:
        batches = list(open_table(SOURCES[kind](given, tmp_path)).batches(["x"]))
        table = Table(["x"], lambda _: iter(batches))
        return [encode(table, schema).columns["x"].tolist() for schema in schemas]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.io.tables.BATCH_ROWS", batch)
        before = all_codes(values)
        for place in range(len(values) + 1):
            after = all_codes([*values[:place], record, *values[place:]])
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


@pytest.mark.parametrize(
    "values",
    [
        loose([1, CANARY, pd.NA]),
        loose([CANARY, pd.NaT, object()]),
        loose([Decimal("sNaN"), CANARY]),
        pa.table({"x": pa.array([3 * 10**6], pa.int32()).cast(pa.date32())}),
        pa.table({"x": pa.array([2**62]).cast(pa.timestamp("s"))}),
        pa.table({"x": pa.array([2**62]).cast(pa.timestamp("s", "Europe/Rome"))}),
        pa.table({"x": pa.array([2**62]).cast(pa.duration("s"))}),
        pa.table({"x": pa.array([CANARY.encode() + b"\xff"]).view(pa.string())}),
        pa.table({"x": pa.array([b"\xff", b"a"]).view(pa.string()).dictionary_encode()}),
        pa.table({"x": pa.array([np.float16(0.1)], pa.float16())}),
    ],
)
@pytest.mark.parametrize("facts", [names("1"), TENTHS, YEAR])
def test_nothing_but_our_errors_leaves_with_odd_values(values: Any, facts: dict[str, Any]) -> None:
    said: Any = None
    try:
        said = coded(facts, values)
    except TableError as error:
        said = error
    assert CANARY not in repr(said) + str(said)
    assert getattr(said, "__context__", None) is None


def test_unexpected_failures_name_the_column_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError(CANARY)

    monkeypatch.setattr("sfumato.io.wording.distinct", fail)
    with pytest.raises(TableError, match="column x must be") as caught:
        coded(names("a"), [CANARY])
    assert caught.value.__context__ is None
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("leaves", "kind"), [(256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)]
)
def test_codes_are_as_small_as_the_leaves_allow(leaves: int, kind: type) -> None:
    column = coded(numeric(1, leaves), [leaves]).columns["x"]
    assert (column.dtype, column.tolist()) == (kind, [leaves - 1])
    assert coded(numeric(1, leaves), pa.array([], pa.int64())).columns["x"].dtype == kind


@given(st.lists(st.sampled_from(["a", "b", "c", " a ", None, "?"]), max_size=30))
def test_codes_decode_to_the_values(values: list[str | None]) -> None:
    facts = names("c", "a", "b", "none", missing="none")
    leaves = facts["taxonomy"]
    expected = ["none" if value in (None, "?") else str(value).strip() for value in values]
    assert [leaves[code] for code in codes(facts, pa.array(values, pa.string()))] == expected


def test_many_batches_and_changing_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.io.tables.BATCH_ROWS", 3)
    chunks = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a", None]).dictionary_encode()]
    )
    result = coded(names("a", "b", "c"), chunks)
    assert result.columns["x"].tolist() == [0, 1, 2, 0, 0]
    assert [(misfit.reason, misfit.rows) for misfit in result.misfits] == [("missing value", 1)]


def test_only_declared_columns_are_read_in_schema_order(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("spare,b,who,a\n1,2,3,4\n")
    facts = {"a": numeric(0, 9), "b": numeric(0, 9), "who": {"kind": "identifier"}}
    result = encode(open_table(path), Schema.parse({"attributes": facts}))
    assert (list(result.columns), result.undeclared, result.rows) == (["a", "b"], ("spare",), 1)


def test_absent_columns_and_empty_schemas_are_refused() -> None:
    table = open_table(pa.table({"x": [1]}))
    with pytest.raises(TableError, match="lacks y, z"):
        encode(table, Schema.parse({"attributes": {"y": numeric(0, 1), "x": numeric(0, 1), "z": numeric(0, 1)}}))
    with pytest.raises(SchemaError, match="no identifier"):
        encode(table, Schema.parse({"attributes": {"x": {"kind": "identifier"}}}))
    assert encode(table, Schema.parse({"attributes": {"x": numeric(0, 1), "gone": {"kind": "identifier"}}})).rows == 1


def test_misfits_are_told_without_a_value() -> None:
    result = coded(names("a"), [CANARY, CANARY, None, "a"])
    with pytest.raises(TableError, match="x: value not in the taxonomy, 2 rows") as caught:
        refuse_misfits(result)
    assert "x: missing value, 1 rows" in str(caught.value)
    assert "sfumato check" in caught.value.remedy
    assert CANARY not in str(caught.value) + repr(result)


def test_long_lists_of_misfits_are_cut() -> None:
    misfits = tuple(Misfit(f"c{number}", "missing value", 1) for number in range(20))
    with pytest.raises(TableError, match="and 12 more") as caught:
        refuse_misfits(Coded({}, 0, misfits))
    assert "c8" not in str(caught.value)


def test_repr_shows_no_counts() -> None:
    result = coded(numeric(0, 9), [4711] * 7654 + [None] * 3)
    assert (result.outside, result.misfits[0].rows) == ({"x": 7654}, 3)
    assert repr(result) == "Coded(misfits=(Misfit(column='x', reason='missing value'),), undeclared=())"
    refuse_misfits(coded(numeric(0, 9), [1]))


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


def test_a_large_file_with_lines_in_quotes_is_read_rightly_or_refused(tmp_path: Path) -> None:
    """The reader guesses where lines begin in the middle of a large file; a wrong guess must not pass for data."""
    rows = '"\n2,z,",b,3\n' * 900_000
    facts = Schema(attributes={"c": Numeric(lower=0, upper=9)})
    for extra in ("", *('"' + "q" * length + '",b,7\n' for length in range(4, 9))):
        (tmp_path / "large.csv").write_text("a,b,c\n" + extra + rows)
        try:
            coded = encode(open_table(tmp_path / "large.csv"), facts).columns["c"]
        except TableError as error:
            assert "well-formed" in str(error) or "as many fields" in str(error)  # noqa: PT017
            continue
        assert np.bincount(coded, minlength=8)[[3, 7]].tolist() == [900_000, int(bool(extra))]
