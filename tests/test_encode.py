"""From values to leaf codes: exact at every edge, countable where a value has no leaf."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_column import TENTHS, YEAR, coded, codes, loose, names, numeric, reasons
from sfumato.errors import SchemaError, TableError
from sfumato.schema.attributes import Numeric
from sfumato.schema.schema import Schema
from sfumato.tables.coders import CellFinder
from sfumato.tables.encode import Coded, Misfit, encode, refuse_misfits
from sfumato.tables.findings import survey
from sfumato.tables.sources import open_table

CANARY = "KANARIENVOGEL"


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

    monkeypatch.setattr("sfumato.tables.values.distinct", fail)
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
    monkeypatch.setattr("sfumato.tables.streams.BATCH_ROWS", 3)
    chunks = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a", None]).dictionary_encode()]
    )
    result = coded(names("a", "b", "c"), chunks)
    assert result.columns["x"].tolist() == [0, 1, 2, 0, 0]
    assert [(misfit.reason, misfit.rows) for misfit in result.misfits] == [("missing value", 1)]


def test_a_survey_tells_what_coding_does_and_keeps_nothing() -> None:
    schema = Schema.parse({"attributes": {"x": {"kind": "numeric", "lower": 0, "upper": 9}}})
    table = pa.table({"x": ["1", "12", "?", "word", None], "y": [1] * 5})
    whole, found = encode(open_table(table), schema), survey(open_table(table), schema)[0]
    assert (found.rows, found.misfits, found.outside) == (5, whole.misfits, whole.outside)
    assert found.undeclared == whole.undeclared == ("y",)
    assert found.misfits
    assert found.outside == {"x": 1}
    assert found.columns == {}


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
    with pytest.raises(TableError, match="x: value not in the taxonomy") as caught:
        refuse_misfits(result)
    assert "x: missing value" in str(caught.value)
    assert not any(digit in str(caught.value) for digit in "0123456789")
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
