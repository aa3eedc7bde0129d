"""The first guess at a schema: sensible kinds and rounded bounds, marked as unconfirmed, and fit for its own table."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import SchemaError, TableError
from sfumato.schema.attributes import LARGEST, Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema
from sfumato.tables.draft import draft_schema
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table


def draft(target: str | None = None, **columns: Any) -> Schema:
    """Draft the schema of a small table, whose values must all fit it."""
    table = open_table(pa.table(columns))
    schema = draft_schema(table, "small", target)
    if any(not isinstance(facts, Identifier) for facts in schema.attributes.values()):
        assert encode(table, schema).misfits == ()
    assert Schema.loads(schema.dump()) == schema
    return schema


def guess(values: Any) -> Any:
    """Guess one column of a table that has another."""
    return draft(x=values, spare=["a"] * len(values)).attributes["x"]


def grid(values: Any) -> tuple[str, str, str]:
    """Guess one column of numbers or dates."""
    facts = guess(values)
    assert isinstance(facts, Numeric)
    plain = facts.model_dump(mode="json")
    return str(plain["lower"]), str(plain["upper"]), str(plain["step"])


def test_draft_says_where_it_comes_from() -> None:
    schema = draft(a=["x", "y"])
    assert (schema.name, schema.origin, schema.confirmed) == ("small", "derived from private data", False)


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([17, 90, *range(20, 60)] * 2, ("17", "90", "1")),
        ([str(n) for n in [17, 90, *range(20, 60)]] * 2, ("17", "90", "1")),
        ([12285, 1490400, *range(20000, 20040)] * 2, ("0", "1500000", "10000")),
        ([n / 100 for n in range(1, 100)], ("0.01", "0.99", "0.005")),
        ([1900 + n for n in range(121)] * 2, ("1900", "2020", "1")),
        ([-1234.5, *range(14), 98765.4], ("-2000", "99000", "1000")),
        ([datetime.date(1990, 5, 5) + datetime.timedelta(n) for n in range(400)], ("1990-01-01", "1991-12-31", "7")),
        ([f"2020-03-{day:02d}" for day in range(1, 29)], ("2020-01-01", "2020-12-31", "7")),
    ],
)
def test_bounds_are_rounded_outward(values: Any, bounds: tuple[str, str, str]) -> None:
    assert grid(values) == bounds


@settings(max_examples=40, deadline=None)
@given(st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=14, max_size=20))
def test_any_numbers_fit_their_draft_in_few_cells(values: set[float]) -> None:
    facts = guess([*values, *values])
    if min(values) >= LARGEST - 1 or max(values) <= 1 - LARGEST:
        assert not isinstance(facts, Numeric)
        return
    assert isinstance(facts, Numeric)
    assert facts.cells <= 201
    assert facts.lower <= max(min(Decimal(str(value)) for value in values), Decimal(1 - LARGEST))
    assert facts.upper >= min(max(Decimal(str(value)) for value in values), Decimal(LARGEST - 1))


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ([0] * 60 + list(range(0, 100_000, 2000)), ["0"]),
        ([str(n) for n in [0] * 60 + list(range(0, 100_000, 2000))], ["0"]),
        ([0] * 40 + list(range(0, 100_000, 2000)), []),
        ([0] * 60 + list(range(50)), []),
        ([0.0] * 60 + [n + 0.5 for n in range(50)], []),
    ],
)
def test_a_value_of_most_rows_has_a_leaf_of_its_own(values: Any, points: list[str]) -> None:
    assert [str(point) for point in guess(values).points] == points


def test_main_values_are_found_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.streams.BATCH_ROWS", 7)
    assert [int(point) for point in guess([5, 0, 0] * 40 + list(range(0, 60_000, 2000))).points] == [0]


def test_bounds_stay_where_a_schema_may_have_them() -> None:
    assert guess([n * 10**17 for n in range(-50, 50)] * 2).upper == LARGEST - 1
    assert isinstance(guess([str(10**17 + n) for n in range(50)]), Identifier)
    last = [f"9999-12-{day:02d}" for day in range(1, 32)]
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
        ([None, None], ("Missing",)),
        (["1", "1.0", "01", "1.00"] * 9, ("01", "1", "1.0", "1.00")),
        (["1" + "." + "0" * n for n in range(20)] * 2, tuple("1." + "0" * n for n in range(20))),
    ],
)
def test_names_make_a_flat_taxonomy(values: Any, leaves: tuple[str, ...]) -> None:
    facts = guess(values)
    assert isinstance(facts, Categorical)
    assert facts.tree.leaves == leaves
    assert facts.missing == (leaves[-1] if leaves[-1].startswith("Missing") else None)


def test_missing_numbers_have_a_leaf() -> None:
    facts = guess([*range(100), *range(100), None])
    assert isinstance(facts, Numeric)
    assert facts.missing == "Missing"


@pytest.mark.parametrize(
    ("name", "values", "identifies"),
    [
        ("code", [f"p{n}" for n in range(50)], True),
        ("code", list(range(1000, 1050)), True),
        ("code", [f"p{n}" for n in range(19)], False),
        ("code", [n + 0.5 for n in range(50)], False),
        ("name", ["Ann", "Bob", "Cid"], True),
        ("patient_id", [3, 1, 2], True),
        ("width", [3, 1, 2], False),
        ("surname", ["Ann", "Ann", "Ann"], False),
        ("day", [datetime.date(2020, 1, 1) + datetime.timedelta(n) for n in range(50)], False),
        ("word", [f"w{n}" for n in range(10_001)] * 2, True),
        ("word", [f"w{n}" for n in range(500)] * 2, False),
        ("list", [[n] for n in range(3)], True),
    ],
)
def test_identifiers_are_found(name: str, values: Any, identifies: bool) -> None:
    schema = draft(**{name: values, "spare": ["a"] * len(values)})
    assert isinstance(schema.attributes[name], Identifier) == identifies


def test_class_is_the_last_column_or_the_target() -> None:
    columns = {"a": ["x", "y"], "b": ["u", "v"]}
    assert draft(**columns).target == "b"
    assert draft("a", **columns).target == "a"
    assert draft(a=["x", "y"], b=["u", "u"]).target is None
    assert draft(a=["x", "y"] * 50, n=[*range(50), *range(50)]).target is None


@pytest.mark.parametrize("target", ["nobody", "n", "flat", "who"])
def test_impossible_targets_are_refused(target: str) -> None:
    columns = {"n": [*range(50)] * 2, "flat": ["x"] * 100, "who": [f"p{n}" for n in range(100)], "b": ["u", "v"] * 50}
    with pytest.raises(SchemaError, match=rf"target \({target}\) must"):
        draft(target, **columns)


def test_tables_without_rows_or_use_are_refused() -> None:
    with pytest.raises(TableError, match="must have rows"):
        draft(a=pa.array([], pa.string()))
    with pytest.raises(TableError, match="no identifier"):
        draft(a=[f"p{n}" for n in range(50)])


def test_one_row_and_many_columns() -> None:
    schema = draft(**{f"v{n}": ["x"] for n in range(300)})
    assert len(schema.predictors) == 300
