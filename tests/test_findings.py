"""What check tells of a schema besides misfits: what it would betray, and which columns say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import done, done_json, run
from holders import TABLES
from sfumato import Fit, check, draft
from sfumato.cli.show import REFUSED
from sfumato.schema.schema import Schema

LETTERS = [chr(65 + number) for number in range(12)]


def told(attributes: dict[str, Any], **columns: Any) -> list[str]:
    return [f"{one.columns[-1]}: {one.problem}" for one in found(attributes, **columns).findings]


def found(attributes: dict[str, Any], **columns: Any) -> Fit:
    return check(pa.table(columns), Schema.parse({"attributes": attributes}))


def flat(*leaves: str, **more: Any) -> dict[str, Any]:
    return {"kind": "categorical", "taxonomy": list(leaves), **more}


def test_rare_values_of_the_schema_are_told() -> None:
    values = ["a"] * 30 + ["b"] * 19 + ["c"] * 20
    assert told({"x": flat("a", "b", "c", "d")}, x=values) == ["x: values that fewer than 20 rows have: b (19)"]
    assert told({"x": flat("a", "b", "c", unseen="b")}, x=values) == []
    assert told({"x": {"kind": "categorical", "codes": "[A-Z]"}}, x=values) == []


def test_rows_that_do_not_fit_hide_no_rare_value() -> None:
    assert told({"x": flat("a", "b")}, x=["a"] * 5 + ["b"] * 30 + ["?!"] * 40)[0].endswith("a (5)")


def test_rare_points_are_told() -> None:
    facts = {"kind": "numeric", "lower": 0, "upper": 99, "step": 10, "points": [7, 50]}
    values = [50] * 40 + [7] * 3 + [*range(10, 40)] * 2
    assert "x: values that fewer than 20 rows have: 7 (3)" in told({"x": facts}, x=values)


@pytest.mark.parametrize(
    ("lower", "upper", "values", "problems"),
    [
        (10, 90, [10] * 3 + [*range(20, 60)] * 3, ["lower bound is the value of 3 rows"]),
        (10, 90, [10] * 20 + [*range(20, 60)] * 3, []),
        (10, 90, ["90,0", *(f"{n},5" for n in range(20, 60))] * 3, ["upper bound is the value of 3 rows"]),
        (0, 90, [0] + [*range(20, 60)] * 3, []),
        (0, 90, [-5] + [*range(20, 60)] * 3 + [95], []),
        ("2020-01-01", "2020-12-31", ["01.01.2020"] + [f"{n:02}.03.2020" for n in range(1, 30)] * 3, ["lower bound"]),
    ],
)
def test_bounds_that_few_rows_have_are_told(lower: Any, upper: Any, values: Any, problems: list[str]) -> None:
    form = {"written": "DD.MM.YYYY"} if isinstance(lower, str) else {"written": "1.234,5"} if "90,0" in values else {}
    seen = told({"x": {"kind": "numeric", "lower": lower, "upper": upper} | form}, x=values)
    assert len(seen) == len(problems)
    assert all(problem in one for problem, one in zip(problems, seen, strict=True))


def test_columns_that_are_nearly_unique_are_told() -> None:
    facts = {"kind": "numeric", "lower": 0, "upper": 999}
    assert "x: nearly unique: 100 different values in 100 rows" in told({"x": facts}, x=list(range(1, 101)))
    assert "nearly unique" not in str(told({"x": facts}, x=list(range(1, 51)) * 20))


def test_columns_that_follow_from_others_or_repeat_them_are_told() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 12, 3000)
    columns = {
        "a": [LETTERS[code] for code in codes],
        "same": [f"n{code}" for code in codes],
        "half": [f"h{code // 6}" for code in codes],
        "free": [f"f{code}" for code in rng.integers(0, 3, 3000)],
        "constant": ["k"] * 3000,
    }
    attributes = {name: flat(*sorted(set(values))) for name, values in columns.items()}
    assert told(attributes, **columns) == [
        "same: same repeats a",
        "half: half follows from a",
        "half: half follows from same",
    ]
    assert not found(attributes, **columns).betrays


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=60, max_size=200))
def test_dependence_is_told_exactly_where_it_is(pairs: list[tuple[int, int]]) -> None:
    columns = {"a": [f"a{one}" for one, _ in pairs], "b": [f"b{two}" for _, two in pairs]}
    attributes = {name: flat(*(f"{name}{n}" for n in range(5))) for name in columns}
    problems = [one for one in told(attributes, **columns) if "follows" in one or "repeats" in one]
    seen = {(one, two) for one, two in pairs}
    forward = len(seen) == len({one for one, _ in seen})
    backward = len(seen) == len({two for _, two in seen})
    if problems:
        assert forward or backward
        assert ("repeats" in problems[0]) == (forward and backward)


@pytest.mark.parametrize("name", TABLES)
def test_a_draft_betrays_nobody(name: str) -> None:
    held = TABLES[name]()
    assert not check(held.table, draft(held.table, name).schema).betrays


def test_strict_makes_them_errors(here: Path) -> None:
    Path("few.csv").write_text("x\n" + "a\n" * 30 + "b\n" * 3)
    Path("few.schema.yaml").write_text("confirmed: true\nattributes: {x: {kind: categorical, taxonomy: [a, b]}}\n")
    assert "The schema would betray\n  x: values that fewer than 20 rows have: b (3)" in done("check", "few.csv")
    assert done_json("check", "few.csv")["betrays"]
    assert run("check", "few.csv", "--strict").exit_code == REFUSED
    Path("few.csv").write_text("x\n" + "a\n" * 30 + "b\n" * 30)
    done("check", "few.csv", "--strict")
    assert here.exists()
