"""The first guess at a schema: sensible kinds and reasons, rounded bounds, no value that few rows have; unconfirmed."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from holders import TABLES
from sfumato.errors import SchemaError, TableError
from sfumato.schema.attributes import EPOCH, LARGEST, Categorical, Identifier, Numeric
from sfumato.schema.recognize import ABSENT_WORDS
from sfumato.schema.schema import Schema
from sfumato.tables.draft import Drafted, draft_schema
from sfumato.tables.encode import encode
from sfumato.tables.seen import FEWEST, Tail
from sfumato.tables.sources import open_table
from sfumato.tables.values import text_of

OURS = {"Other", "Missing", "Any", *ABSENT_WORDS}
"""Words that a draft may write although no row has them."""


def drafted(target: str | None = None, how: Any = None, **columns: Any) -> Drafted:
    """Draft the schema of a small table, whose values must all fit it."""
    table = open_table(pa.table(columns))
    found = draft_schema(table, "small", target, **(how or {}))
    if any(not isinstance(facts, Identifier) for facts in found.schema.attributes.values()):
        assert encode(table, found.schema).misfits == ()
    assert Schema.loads(found.dump()) == found.schema
    return found


def draft(target: str | None = None, **columns: Any) -> Schema:
    """Draft a schema without reasons."""
    return drafted(target, **columns).schema


def guess(values: Any, name: str = "x", **how: Any) -> Any:
    """Guess one column of a table that has another."""
    return drafted(how=how, **{name: values, "spare": ["a"] * len(values)}).schema.attributes[name]


def grid(values: Any) -> tuple[str, str, str]:
    """Guess one column of numbers or dates."""
    facts = guess(values)
    assert isinstance(facts, Numeric)
    plain = facts.model_dump(mode="json")
    return str(plain["lower"]), str(plain["upper"]), str(plain["step"])


def test_draft_says_where_it_comes_from_and_why() -> None:
    found = drafted(a=["x", "y"] * 20, age=[*range(20, 40)] * 2)
    schema = found.schema
    assert (schema.name, schema.origin, schema.confirmed) == ("small", "derived from private data", False)
    assert set(found.reasons) == {"a", "age"}
    assert "  # categories\n  a:" in found.dump()


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([17, 90, *range(20, 60)] * 20, ("10", "90", "1")),
        ([str(n) for n in [17, 90, *range(20, 60)]] * 20, ("10", "90", "1")),
        ([17, *range(20, 60)] * 20 + [96], ("15", "60", "1")),
        ([n / 100 for n in range(1, 100)] * 2, ("0", "1", "0.005")),
        ([1900 + n for n in range(121)] * 20, ("1900", "2020", "1")),
        ([datetime.date(1990, 5, 5) + datetime.timedelta(n) for n in range(400)], ("1990-01-01", "1991-12-31", "7")),
        ([f"2020-03-{day:02d}" for day in range(1, 29)] * 2, ("2020-01-01", "2020-12-31", "7")),
        (["2020-01-01", *(f"2020-03-{day:02d}" for day in range(1, 29))] * 2, ("2020-01-01", "2020-12-31", "7")),
        (["2020-01-01"] * 19 + [f"2020-01-{day:02d}" for day in range(2, 29)] * 2, ("2019-01-01", "2020-12-31", "7")),
    ],
)
def test_bounds_are_rounded_outward(values: Any, bounds: tuple[str, str, str]) -> None:
    if bounds[0] == "2020-01-01" and "2020-01-01" in values:
        bounds = ("2019-01-01", *bounds[1:])
    assert grid(values) == bounds


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.integers(-1200, 1200), st.sampled_from([0, 10, 50, 100, 1000])), min_size=40, max_size=200),
    st.sampled_from([1, 10, 1000, 0.5, 0.01]),
    st.integers(1, 25),
)
def test_no_bound_is_the_value_of_few_rows(values: list[int], unit: float, times: int) -> None:
    numbers = [value * unit for value in values] * times
    facts = guess(numbers)
    rows = Counter(Decimal(str(number)) for number in numbers)
    if isinstance(facts, Numeric):
        for bound in (facts.lower, facts.upper, *facts.points, *facts.borders):
            assert isinstance(bound, Decimal)
            assert bound == 0 or not 0 < rows[bound] < FEWEST
        assert facts.cells <= 250
        beyond = [
            sum(rows[one] for one in rows if one < facts.lower),
            sum(rows[one] for one in rows if one > facts.upper),
        ]
        assert max(beyond) < FEWEST
    elif isinstance(facts, Categorical):
        assert_only_frequent(facts, [text_of(number) for number in numbers])


def assert_only_frequent(facts: Categorical, values: list[str | None]) -> None:
    rows = Counter(values)
    assert all(rows[leaf] >= FEWEST for leaf in facts.tree.leaves if leaf not in OURS)


TEXTS = st.one_of(
    st.text(min_size=1, max_size=12),
    st.sampled_from(["Smith", "Jan", "Feb", "yes", "no", "18-24", "65+", "E11.9", "1,5", "1.234,5", "31.12.1980", "7"]),
    st.emails(),
    st.integers(0, 10**6).map(str),
    st.dates().map(str),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, st.integers(1, 45)), min_size=1, max_size=40),
    st.sampled_from(["x", "name", "zip", "diagnosis", "city", "note", "patient_id", "isco", "age"]),
)
def test_no_value_of_few_rows_is_written(pairs: list[tuple[str, int]], name: str) -> None:
    """The property that everything else rests on: of texts, only those that twenty rows have are in a draft."""
    values = [text for text, times in pairs for _ in range(times)]
    values += ["common"] * max(FEWEST - len(values), 0)
    facts = guess(values, name)
    texts = [text_of(value) for value in values]
    rows = Counter(texts)
    if isinstance(facts, Categorical) and facts.codes is None:
        assert_only_frequent(facts, texts)
    if isinstance(facts, Numeric) and facts.is_date:
        for bound in (facts.lower, facts.upper):
            assert not 0 < rows[str(bound)] < FEWEST
    text = drafted(**{name: values, "spare": ["a"] * len(values)}).dump()
    frequent = [one for one in rows if one and rows[one] >= FEWEST]
    for value in {one for one in rows if one and rows[one] < FEWEST and len(one) > 6 and not one.isdigit()}:
        assert value not in text or value in OURS or any(value in other for other in frequent)


@pytest.mark.parametrize("name", TABLES)
def test_canaries_are_not_written(name: str) -> None:
    held = TABLES[name]()
    found = draft_schema(open_table(held.table), name)
    assert [canary for canary in held.canaries if canary in found.dump()] == []
    for column, facts in found.schema.attributes.items():
        if isinstance(facts, Categorical) and facts.codes is None:
            assert_only_frequent(facts, [text_of(value) for value in held.table[column].to_pylist()])


def test_the_canaries_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.seen.FEWEST", 1)
    held = TABLES["court"]()
    assert "Klingon" in draft_schema(open_table(held.table), "court").dump()


def kind(facts: Any) -> str:
    """Say what a column was drafted as, in the words of the tables made for it."""
    if isinstance(facts, Numeric):
        return "date" if facts.is_date else "log" if facts.grid == "log" else "numeric"
    return "codes" if isinstance(facts, Categorical) and facts.codes else str(facts.kind)


@pytest.mark.parametrize("name", TABLES)
def test_columns_need_no_correction(name: str) -> None:
    held = TABLES[name]()
    found = draft_schema(open_table(held.table), name)
    assert {column: kind(facts) for column, facts in found.schema.attributes.items()} == held.kinds
    assert encode(open_table(held.table), found.schema).misfits == ()
    assert len(found.dump().splitlines()) < 5 * len(held.kinds)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=200), st.integers(1, 60), st.sampled_from([1, -1]))
def test_a_tail_counts_exactly_what_it_keeps(values: list[int], size: int, sign: int) -> None:
    tail = Tail(sign)
    for start in range(0, len(values), size):
        tail.add(*np.unique(np.array(values[start : start + size], float), return_counts=True))
    rows = Counter(map(float, values))
    assert all(rows[value] == times for value, times in tail.rows.items())
    ordered = sorted(values, key=lambda one: sign * one)
    assert tail.bound == (ordered[FEWEST - 1] if len(values) >= FEWEST else None)


@settings(max_examples=40, deadline=None)
@given(st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=44, max_size=50))
def test_any_numbers_fit_their_draft_in_few_cells(values: set[float]) -> None:
    facts = guess([*values])
    if isinstance(facts, Numeric):
        assert facts.cells <= 300
        assert abs(facts.lower) < LARGEST  # type: ignore[arg-type]
        assert abs(facts.upper) < LARGEST  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ([0] * 60 + list(range(500, 1000, 2)) * 2, ["0"]),
        ([str(n) for n in [0] * 60 + list(range(500, 1000, 2)) * 2], ["0"]),
        ([0] * 17 + list(range(0, 1000, 2)) * 2, []),
        ([0] * 60 + list(range(50)) * 2, []),
        ([0.0] * 60 + [n + 0.5 for n in range(500)], []),
        ([700] * 900 + list(range(0, 1000, 2)), ["700"]),
    ],
)
def test_a_value_that_stands_out_has_a_leaf_of_its_own(values: Any, points: list[str]) -> None:
    assert [str(point) for point in guess(values).points] == points


def test_values_that_stand_out_are_found_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.streams.BATCH_ROWS", 7)
    assert [int(point) for point in guess([500, 0, 0] * 40 + list(range(300, 600, 2)) * 2).points] == [0]


def test_skewed_numbers_follow_orders_of_magnitude() -> None:
    values = [10**power * digit for power in range(6) for digit in range(1, 10)] * 30
    facts = guess(values)
    assert (facts.grid, facts.lower, facts.points) == ("log", 0, [])
    assert facts.cells < 70
    assert guess([*range(0, 100_000, 7)] * 2).grid == "even"


def test_bounds_stay_where_a_schema_may_have_them() -> None:
    assert guess([n * 10**17 for n in range(-50, 50)] * 20).upper == LARGEST - 1
    assert isinstance(guess([str(10**17 + n) for n in range(50)]), Identifier)
    last = [f"9999-12-{day:02d}" for day in range(1, 32)] * 20
    assert isinstance(guess(last[:62]), Identifier)
    assert grid(last)[1] == "9999-12-30"
    far = pa.array([3_000_000 + n for n in range(50)], pa.int32()).cast(pa.date32())
    assert draft(x=far, spare=["a"] * 50).attributes["x"] is not None


@pytest.mark.parametrize(
    ("values", "leaves"),
    [
        (["b", "a", " b "], ("a", "b")),
        ([10, 9, 2] * 9, ("2", "9", "10")),
        ([True, False], ("false", "true")),
        (["Any", "x"], ("Any", "x")),
        (["a", None, "?"], ("a", "Missing")),
        (["Missing", None], ("Missing", "Missing 2")),
        (["1", "1.0", "01", "1.00"] * 9, ("01", "1", "1.0", "1.00")),
        (["high", "low", "medium"], ("low", "medium", "high")),
        (["Sunday", "Monday"], ("Monday", "Sunday")),
        (["ja", "nein"], ("nein", "ja")),
        (["Apr", "Jan", "Dez"], ("Jan", "Apr", "Dez")),
        (["5+", "0", "1-4"], ("0", "1-4", "5+")),
        (["[20-30)", "[100-110)", "[0-10)"], ("[0-10)", "[20-30)", "[100-110)")),
    ],
)
def test_names_make_a_flat_taxonomy_in_their_order(values: Any, leaves: tuple[str, ...]) -> None:
    facts = guess(values * FEWEST)
    assert isinstance(facts, Categorical)
    assert facts.tree.leaves == leaves
    assert facts.missing == (leaves[-1] if leaves[-1].startswith("Missing") else None)
    assert facts.unseen is None


def test_rare_values_count_as_other() -> None:
    facts = guess(["a"] * 30 + ["b"] * 20 + ["c"] * 19)
    assert (facts.tree.leaves, facts.unseen) == (("a", "b", "Other"), "Other")
    named = guess(["a"] * 30 + ["Other"] * 20 + ["c"] * 19)
    assert (named.tree.leaves, named.unseen) == (("Other", "a"), "Other")


def test_missing_numbers_have_a_leaf() -> None:
    facts = guess([*range(100), *range(100), None])
    assert isinstance(facts, Numeric)
    assert facts.missing == "Missing"
    worded = drafted(x=[*map(str, range(100)), "k.A.", "n/a"] * 2, spare=["a"] * 204).schema
    assert isinstance(worded.attributes["x"], Numeric)
    assert worded.missing_values == list(ABSENT_WORDS)


DAY = datetime.date(1980, 5, 17)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("DD.MM.YYYY", "{0.day:02}.{0.month:02}.{0.year}"),
        ("MM/DD/YYYY", "{0.month}/{0.day}/{0.year}"),
        ("DD/MM/YYYY", "{0.day:02}/{0.month:02}/{0.year} 10:15"),
        ("DD-MON-YYYY", "{0.day}-{0:%b}-{0.year}"),
        ("MON DD, YYYY", "{0:%B} {0.day}, {0.year}"),
        ("DD.MM.YY", "{0.day:02}.{0.month:02}.{0:%y}"),
        ("YYYYMMDD", "{0:%Y%m%d}"),
        (None, "{0.year}-{0.month:02}-{0.day:02}T10:15:00Z"),
    ],
)
def test_days_are_read_as_they_are_written(form: str | None, written: str) -> None:
    days = [DAY + datetime.timedelta(days=7 * number) for number in range(300)]
    facts = guess([written.format(day) for day in days])
    assert isinstance(facts, Numeric)
    assert (facts.written, facts.lower) == (form, datetime.date(1980, 1, 1))
    table = open_table(pa.table({"x": [written.format(DAY)]}))
    code = encode(table, Schema(attributes={"x": facts})).columns["x"][0]
    assert facts.edges[code] <= (DAY - EPOCH).days < facts.edges[code + 1]


def test_days_that_can_be_read_in_two_ways_are_told() -> None:
    values = [f"{1 + n % 12:02}/{1 + n % 11:02}/2020" for n in range(200)]
    found = drafted(x=values, spare=["a"] * 200)
    assert "could also be read as MM/DD/YYYY" in found.reasons["x"]
    assert guess(values, date_format="MM/DD/YYYY").written == "MM/DD/YYYY"
    with pytest.raises(SchemaError, match=r"date format .* must be one of"):
        guess(values, date_format="MDY")


@pytest.mark.parametrize(
    ("values", "form", "upper"),
    [
        (["1,5", "2,25", "17,0"], "1.234,5", 18),
        (["1.234,50 €", "2.000,00 €", "999,99 €"], "1.234,5", 2000),
        (["$1,234.50", "$2,000.00", "$999.99"], "1,234.5", 2000),
        (["1 234,5", "2 000", "17"], "1.234,5", 2000),
        (["12 %", "15%", "99.5 %"], "1,234.5", 100),
        (["1'234.50", "2'000.00", "17"], "1,234.5", 2000),
        (["(12.50)", "7.25", "17.5"], "1,234.5", 20),
    ],
)
def test_numbers_are_read_as_they_are_written(values: list[str], form: str, upper: int) -> None:
    extra = [f"{number}" for number in range(1, 12)]
    facts = guess((values + extra) * FEWEST)
    assert isinstance(facts, Numeric)
    assert (facts.written, facts.upper) == (form, upper)


def test_the_decimal_mark_may_be_said() -> None:
    values = [f"{n},{n:03}" for n in range(1, 40)] * FEWEST
    assert guess(values).upper == 40_000
    assert guess(values, decimal=",").upper == 40
    with pytest.raises(SchemaError, match="must be a point or a comma"):
        guess(values, decimal=";")


@pytest.mark.parametrize(
    ("name", "values", "prefix"),
    [
        ("zip", [f"{n:05}" for n in range(500, 99_000, 97)], "[0-9][0-9][0-9]"),
        ("zip_code", [f"{n:05}-1234" for n in range(500, 99_000, 97)], "[0-9][0-9][0-9]"),
        ("plz", list(range(10_000, 99_000, 97)), "[0-9][0-9]"),
        ("icd10", [f"{letter}{n:02}.{n % 9}" for letter in "ABEJ" for n in range(100)], "[A-Z][0-9][0-9]"),
        ("diagnosis", [str(n) for n in range(100, 999, 3)], "[0-9EV][0-9][0-9]"),
        ("drug", [f"N{n:02}BA{n:02}" for n in range(1, 29)], "[A-V][0-2][0-9]"),
        ("isco08", [str(n) for n in range(1111, 9629, 13)], "[0-9][0-9]"),
        ("nace", [f"{n}.{n % 90:02}" for n in range(10, 99)], "[0-9][0-9]"),
    ],
)
def test_codes_become_trees_by_how_they_begin(name: str, values: Any, prefix: str) -> None:
    facts = guess(values, name)
    assert isinstance(facts, Categorical)
    assert (facts.codes, facts.unseen) == (prefix, "Other")


def test_codes_that_lost_their_zeros_are_told() -> None:
    found = drafted(zip=[str(n) for n in range(500, 99_000, 97)], spare=["a"] * 1016)
    assert isinstance(found.schema.attributes["zip"], Identifier)
    assert "leading zero" in found.reasons["zip"]


@pytest.mark.parametrize(
    ("name", "values", "identifies"),
    [
        ("code", [f"p{n}" for n in range(50)], True),
        ("code", list(range(1000, 1050)), True),
        ("code", [n + 0.5 for n in range(50)], False),
        ("income", list(range(1000, 1050)), False),
        ("name", ["Ann", "Bob", "Cid"] * 20, True),
        ("patient_id", [3, 1, 2] * 20, True),
        ("admission_type_id", [3, 1, 2] * 20, False),
        ("visit_id", [*range(300)] * 3, True),
        ("width", [3, 1, 2] * 20, False),
        ("last", ["Ann", "Bo", "Cy"] * 30, True),
        ("last_contact", ["mail", "phone", "visit"] * 30, False),
        ("day", [datetime.date(2020, 1, 1) + datetime.timedelta(n) for n in range(50)], False),
        ("word", [f"w{n}" for n in range(10_001)] * 2, True),
        ("word", [f"w{n}" for n in range(500)] * 2, True),
        ("word", [f"w{n}" for n in range(30)] * 20, False),
        ("who", [f"a{n}@b.org" for n in range(4)] * 20, True),
        ("call", [f"+43 1 {n}000000" for n in range(1, 5)] * 20, True),
        ("x", [f"00{n}-12-3456" for n in range(5)] * 20, True),
        ("list", [[n] for n in range(30)], True),
        ("empty", [None] * 30, True),
    ],
)
def test_identifiers_are_found(name: str, values: Any, identifies: bool) -> None:
    schema = draft(**{name: values, "spare": ["a"] * len(values)})
    assert isinstance(schema.attributes[name], Identifier) == identifies


def test_there_is_no_class_unless_one_is_named() -> None:
    columns = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
    assert draft(**columns).target is None
    assert draft("a", **columns).target == "a"


@pytest.mark.parametrize("target", ["nobody", "n", "flat", "who"])
def test_impossible_targets_are_refused(target: str) -> None:
    columns = {"n": [*range(50)] * 2, "flat": ["x"] * 100, "who": [f"p{n}" for n in range(100)], "b": ["u", "v"] * 50}
    with pytest.raises(SchemaError, match=rf"target \({target}\) must"):
        draft(target, **columns)


def test_tables_without_rows_or_use_are_refused() -> None:
    with pytest.raises(TableError, match="must have 20 rows or more"):
        draft(a=["x"] * 19)
    with pytest.raises(TableError, match="no identifier"):
        draft(a=[f"p{n}" for n in range(50)])


def test_many_columns() -> None:
    schema = draft(**{f"v{n}": ["x"] * 20 for n in range(300)})
    assert len(schema.predictors) == 300


def test_a_first_row_that_is_a_record_is_no_header(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("Zelenograd,28,M\n" + "Aachen,30,F\nBonn,41,M\n" * 30)
    with pytest.raises(TableError, match="must name the columns, and seems to be a record") as refusal:
        sfumato.draft(file)
    assert "Zelenograd" not in str(refusal.value)
    file.write_text("town,2018,sex\n" + "Aachen,30,F\nBonn,41,M\n" * 30)
    with pytest.raises(TableError, match="seems to be a record"):
        sfumato.draft(file)
    file.write_text("town,year 2018,sex\n" + "Aachen,30,F\nBonn,41,M\n" * 30)
    assert list(sfumato.draft(file).schema.attributes) == ["town", "year 2018", "sex"]


def test_a_field_that_few_records_have_is_not_named(tmp_path: Path) -> None:
    records = [{"sex": "F" if row % 2 else "M", "age": row % 60} for row in range(200)]
    records[7]["note about Ms. Zelenka"] = "x"
    records[9]["nested secret"] = {"a": 1}
    file = tmp_path / "people.jsonl"
    file.write_text("\n".join(map(json.dumps, records)))
    assert list(sfumato.draft(file).schema.attributes) == ["sex", "age"]
