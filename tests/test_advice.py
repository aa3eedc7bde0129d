"""Advice is about right, and given without a look at the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from command_line import SCHEMA, done, done_json, refused
from holders import TABLES
from sfumato import METHODS, Method, Schema, datasets, seeded_release
from sfumato.compare.advice import (
    WAYS,
    Advice,
    Expected,
    Stage,
    advise,
    count,
    questions,
    values_of,
    variables,
    written_plainly,
)
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

ODD = """
attributes:
  a: {kind: numeric, lower: 0, upper: 9, missing: Gone}
  b: {kind: numeric, lower: 0, upper: 1, step: 0.1, written: "1.234,5"}
  c: {kind: numeric, lower: 1990-01-01, upper: 1999-12-31, step: 365, written: DD.MM.YYYY}
  d: {kind: numeric, lower: 0, upper: 5000, grid: log}
  e: {kind: categorical, codes: "[A-C][0-9]", taxonomy: [Other, Gone], unseen: Other, missing: Gone}
  f: {kind: class, taxonomy: [no, yes], labels: {"1": no, "2": yes}}
"""


def test_made_up_people_have_the_leaves_that_were_drawn() -> None:
    schema = Schema.loads(ODD)
    columns = variables(schema)
    codes = {name: np.arange(column.leaves) for name, column in columns.items()}
    for name, column in columns.items():
        table = open_table(pa.table({name: values_of(column, codes[name])}))
        coded = encode(table, Schema(attributes={name: written_plainly(column)}))
        assert coded.misfits == ()
        assert coded.columns[name].tolist() == codes[name].tolist()


def test_nothing_is_read(here: Path) -> None:
    Path("people.csv").unlink()
    told = done("advise", "people.csv", "--rows", "about 2,000", "--epsilon", "1")
    assert "in a table of about 2,000 rows" in told
    assert "may then believe 73 %" in told
    assert sorted(path.name for path in here.iterdir()) == ["people.schema.yaml"]


@pytest.mark.usefixtures("here")
def test_purposes_and_warnings() -> None:
    plain = done_json("advise", "people.csv", "--rows", "1k", "--epsilon", "0.001,20", "--for", "synthetic")
    assert plain["rows"] == 1000
    assert plain["advice"].startswith("For synthetic records: dpcocgen")
    assert [warning.split(" at ")[0].split(" promises")[0] for warning in plain["warnings"]] == [
        "nothing useful can be expected",
        "epsilon 20",
    ]
    told = done("advise", "people.csv", "--rows", "1000", "--epsilon", "1", "--for", "classification")
    assert "For classification: diffmulti" in told
    assert "rows (many) must be a number of rows" in refused("advise", "people.csv", "--rows", "many")
    assert "must be greater than 0" in refused("advise", "people.csv", "--rows", "0")
    assert "epsilon (x)" in refused("advise", "people.csv", "--rows", "10", "--epsilon", "x")


def test_too_many_attributes_are_refused() -> None:
    plain = {"attributes": {f"a{n}": {"kind": "categorical", "taxonomy": ["x", "y"]} for n in range(201)}}
    with pytest.raises(sfumato.SfumatoError, match="must have at most 200 attributes for advice"):
        advise(Schema.parse(plain), 100, ["1"])


def test_the_best_method_has_the_smallest_errors() -> None:
    one = Fraction(1)
    first, second = Expected("a", one, (10.0, 20.0, 30.0)), Expected("b", one, (9.0, 19.0, 29.0))
    advice = Advice(1000, (first, second, Expected("c", one, refusal="no")), {})
    assert advice.best(one) == second
    assert advice.warnings == []
    assert Advice(50, (first,), {}).warnings[0].startswith("nothing useful")


def test_leaving_out_an_attribute_is_told(here: Path) -> None:
    assert here.exists()
    found = advise(Schema.loads(SCHEMA), 2000, ["1"])
    assert len(found.saved) == min(3, len(Schema.loads(SCHEMA).predictors))
    assert all(share < 1 for share in found.saved.values())


def measured(table: Any, schema: Schema, method: Method, epsilon: str) -> Sequence[float]:
    """Measure the errors of counts of a real table."""
    codes, rng = sfumato.coded(table, schema).columns, np.random.default_rng(99)
    asked = [questions(schema, ways, 120, rng) for ways in WAYS]
    squares: list[list[float]] = [[] for _ in WAYS]
    for seed in range(3):
        release = seeded_release(table, schema, method, epsilon, 100 + seed)
        for place, every in enumerate(asked):
            true = np.array([count(codes, one) for one in every])
            squares[place] += ((release.count_many(every).values - true) ** 2).tolist()
    return [math.sqrt(float(np.mean(one))) for one in squares]


def confirmed(schema: Schema, target: str) -> Schema:
    facts = {one: getattr(schema, one) for one in Schema.model_fields} | {"confirmed": True}
    return Schema(**facts).with_target(target)


@pytest.mark.slow
def test_expected_errors_are_within_a_factor_of_two_of_those_measured() -> None:
    """Habits and dependence were tuned on Adult, and are judged on a court's table, too."""
    held = TABLES["court"](rows=20_000).table
    tables = [
        (datasets.adult().table, datasets.adult().schema, 45_000),
        (held, confirmed(sfumato.draft(held, "court").schema, "two_year_recid"), 20_000),
    ]
    ratios: list[float] = []
    for table, schema, rows in tables:
        stage = Stage.of(schema, rows)
        for name in ("diffgen", "cdiffgen", "diffmulti"):
            for epsilon in ("1/2", "1"):
                expected = stage.expect(METHODS[name](), Fraction(epsilon)).errors
                found = measured(table, schema, METHODS[name](), epsilon)
                ratios += [one / other for one, other in zip(expected, found, strict=True)]
    assert np.mean([0.5 <= ratio <= 2 for ratio in ratios]) >= 0.9
