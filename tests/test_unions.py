"""A union of conditions has one answer, however and wherever it is asked, and an interval that holds the truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import DiffGen, DiffMulti, Laplace, Release, Schema, datasets, seeded_release

UNIONS = [
    "sex = 'Female' or age < 30",
    "not (sex = 'Female' and age < 30)",
    "age < 25 and sex = 'Male' or hours_per_week > 60",
    "income = '>50K' or not (age >= 30 or sex = 'Male')",
    "(sex = 'Female' or income = '>50K') and (age < 40 or hours_per_week <= 20)",
]
SMALL = Schema.loads("""
confirmed: true
attributes:
  a: {kind: numeric, lower: 0, upper: 7}
  b: {kind: categorical, taxonomy: [x, y, z]}
  c: {kind: categorical, taxonomy: [u, v]}
""")
ASKED = {
    "a < 3 or b = x": lambda row: row["a"] < 3 or row["b"] == "x",
    "a < 3 and b = x or c = u": lambda row: (row["a"] < 3 and row["b"] == "x") or row["c"] == "u",
    "not (a >= 2 and c = v)": lambda row: not (row["a"] >= 2 and row["c"] == "v"),
    "a = 1 and b = x or a = 5 and b = y": lambda row: (row["a"], row["b"]) in {(1, "x"), (5, "y")},
    "(a = 1 or b = x) and not (a = 1 and b = x)": lambda row: (row["a"] == 1) != (row["b"] == "x"),
}


@pytest.fixture(scope="module")
def adult_release() -> Release:
    adult = datasets.adult()
    return seeded_release(adult.table, adult.schema, DiffGen(specializations=6), "1", 3)


@pytest.mark.parametrize("condition", UNIONS)
def test_words_and_sql_give_one_answer_with_one_interval(adult_release: Release, condition: str) -> None:
    one = adult_release.count(condition)
    (row,) = adult_release.sql(f"select count(*) as n from release where {condition}", intervals=True).to_pylist()
    assert row["n"] == pytest.approx(one.value)
    assert (row["n_low"], row["n_high"]) == pytest.approx(one.interval)
    assert one.value + adult_release.count(f"not ({condition})").value == pytest.approx(adult_release.count().value)


def test_many_are_answered_as_each_alone_and_as_a_frame(adult_release: Release) -> None:
    asked = [UNIONS[0], "age < 30", UNIONS[3], ""]
    many = adult_release.count_many(asked)
    alone = [adult_release.count(one).interval for one in asked]
    assert np.allclose([one.interval for one in many], alone)
    frame = many.frame("pandas")
    assert list(frame.columns[:4]) == ["condition", "value", "low", "high"]
    assert frame["condition"].tolist() == asked
    assert many.frame("polars")["value"].to_list() == many.values.tolist()


def test_an_explanation_lists_the_groups_of_every_part(adult_release: Release) -> None:
    listed = adult_release.explain("sex = 'Female' or sex = 'Male' and age < 0")
    assert sum(listed["estimate"].to_pylist()) == pytest.approx(
        adult_release.explain("sex = 'Female'")["estimate"].to_numpy().sum()
    )


@pytest.mark.parametrize("method", [Laplace(), DiffMulti()], ids=["laplace", "diffmulti"])
def test_intervals_of_unions_hold_the_truth_as_often_as_they_say(method) -> None:
    rng = np.random.default_rng(5)
    a, b, c = rng.binomial(7, 0.4, 3000), rng.choice(list("xyz"), 3000, p=[0.5, 0.3, 0.2]), rng.choice(list("uv"), 3000)
    table = pa.table({"a": a, "b": b, "c": c})
    truths = [sum(map(select, table.to_pylist())) for select in ASKED.values()]
    held = []
    for seed in range(40):
        low, high = seeded_release(table, SMALL, method, "1/5", seed).count_many(list(ASKED)).between(0.95)
        held += [down <= truth <= up for down, truth, up in zip(low, truths, high, strict=True)]
    assert np.mean(held) >= 0.94
