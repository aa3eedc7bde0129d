"""Intervals in SQL: counts have those of `count`, everything else those that replicates say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import done, done_json
from handmade import RANGES, box_releases, leaf_weights, tree_releases
from kinds import EVERY_KIND, SMALL
from sfumato import DiffGen, Release, seeded_release
from sfumato.errors import QueryError
from sfumato.release import sql_intervals
from test_replicates import MADE, made
from test_sql import where


def table(release: Release, query: str) -> dict[str, list]:
    return release.sql(query, intervals=True).to_pydict()


@pytest.fixture(scope="module")
def published() -> Release:
    return seeded_release(made(2), MADE, DiffGen(), "1", 1)


def by_replicates(release: Release, query: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, list]:
    """Ask as if the model could not answer counts itself."""
    with monkeypatch.context() as patch:
        patch.setattr(sql_intervals._Bounding, "_count", lambda *_: None)
        return table(release, query)


# Counts have the intervals of `count`.


@settings(max_examples=30)
@given(st.one_of(box_releases(), tree_releases()), RANGES)
def test_a_count_has_the_interval_of_the_same_condition(release: Release, box: dict) -> None:
    found = table(release, f"select count(*) as n from release where {where(box)}")
    answer = release.count(leaf_weights(box))
    assert list(found) == ["n", "n_low", "n_high"]
    assert [found["n_low"][0], found["n_high"][0]] == pytest.approx(answer.interval, abs=1e-3)


@EVERY_KIND
def test_every_kind_gives_intervals(kind: str) -> None:
    release = SMALL[kind]()
    query = "select b, count(*) as n, avg(a) as mean from release group by b order by b"
    found, plain = table(release, query), release.sql(query).to_pydict()
    assert {name: found[name] for name in plain} == plain
    for row, leaf in enumerate(found["b"]):
        low, high = release.count(f"b = {leaf}").interval
        assert (found["n_low"][row], found["n_high"][row]) == pytest.approx((low, high), abs=1e-6)
        if found["mean"][row] is not None and found["mean_low"][row] is not None:
            assert found["mean_low"][row] <= found["mean"][row] <= found["mean_high"][row]


@pytest.mark.parametrize(
    ("counted", "condition"),
    [
        ("count(*)", "{}"),
        ("count(*) filter (age < 30)", "age < 30 and {}"),
        ("count_if(age < 30)", "age < 30 and {}"),
        ("count(age)", "age <> Missing and {}"),
        ("count(age) filter (job = 'Dancer')", "age <> Missing and job = Dancer and {}"),
    ],
)
def test_each_way_to_count_is_understood(people: Release, counted: str, condition: str) -> None:
    query = f"select income, {counted} as n from release where gain >= 0 or true group by income having n < 1e9"
    found = table(people, query)
    for row, income in enumerate(found["income"]):
        low, high = people.count(condition.format(f"income = {income}")).interval
        assert (found["n_low"][row], found["n_high"][row]) == pytest.approx((low, high), abs=1e-6)


def test_rows_keep_their_order_and_their_number(published: Release) -> None:
    query = "select age // 10 as decade, count(*) as n from release group by all order by n desc limit 3"
    found, plain = table(published, query), published.sql(query).to_pydict()
    assert {name: found[name] for name in plain} == plain
    for row, decade in enumerate(found["decade"]):
        low, high = published.count(f"age between {10 * decade} and {10 * decade + 9}").interval
        assert (found["n_low"][row], found["n_high"][row]) == pytest.approx((low, high), abs=1e-6)


# Everything else has those of replicates.


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n from release",
        "select sex, count(*) as n from release group by sex",
        "select count(*) as n from release where age < 40 and hours > 38",
        "select income, count(*) as n from release where sex = 'Female' group by income",
    ],
)
def test_replicates_say_about_what_the_model_says(published, monkeypatch, query: str) -> None:
    told, found = table(published, query), by_replicates(published, query, monkeypatch)
    assert found["n"] == told["n"]
    widths = [np.subtract(one["n_high"], one["n_low"]) for one in (found, told)]
    assert 0.4 < float(np.mean(widths[0] / widths[1])) < 2.5


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        ("select avg(age) as x from release", lambda t: t["age"].mean()),
        ("select sum(hours) as x from release where sex = 'Male'", lambda t: t["hours"][t["sex"] == "Male"].sum()),
        (
            "select count(*) filter (income = 'high') / count(*) as x from release where age > 40",
            lambda t: (t["income"] == "high")[t["age"] > 40].mean(),
        ),
        (
            "select count(*) as x from release where age > 60 or hours > 45",
            lambda t: ((t["age"] > 60) | (t["hours"] > 45)).sum(),
        ),
        (
            "with s as (select sex, count(*) as n from release group by sex) select max(n) as x from s",
            lambda t: t["sex"].value_counts().max(),
        ),
        (
            "select x from (select sex, avg(hours) as x from release group by 1 having count(*) > 5) where sex > 'G'",
            lambda t: t["hours"][t["sex"] == "Male"].mean(),
        ),
    ],
)
def test_what_has_no_closed_form_has_intervals_that_hold_the_truth(query: str, truth) -> None:
    inside = 0
    for seed in range(4):
        frame = made(seed)
        release = seeded_release(frame, MADE, DiffGen(), "1", seed)
        found = table(release, query)
        assert found["x_low"][0] < found["x"][0] < found["x_high"][0]
        inside += found["x_low"][0] <= truth(frame.to_pandas()) <= found["x_high"][0]
    assert inside >= 3


def test_the_same_question_has_the_same_answer(published: Release) -> None:
    query = "select sex, avg(age) from release group by sex"
    assert table(published, query) == table(published, query)


def test_a_row_that_few_replicates_have_has_no_interval(published: Release) -> None:
    most = max(published.sql("select count(*) as n from release group by sex").to_pydict()["n"])
    query = "select sex, avg(hours) as x from release group by sex having count(*) {} {} order by sex"
    (low,) = table(published, query.format(">=", most - 1e-3))["x_low"]
    assert low is None or low > 0
    everyone = table(published, query.format(">=", 0))
    assert None not in everyone["x_low"]


def test_what_is_no_number_or_no_estimate_has_no_interval(published: Release) -> None:
    query = "select sex, upper(sex) as name, count(*) > 5 as many from release group by sex"
    assert list(table(published, query)) == ["sex", "name", "many"]
    assert table(published, "select 1 + 1 as two") == {"two": [2]}


def test_names_stay_distinct(published: Release) -> None:
    query = "select count(*) as n, count(*) as n_low, avg(age) from release"
    names = list(table(published, query))
    assert names == ["n", "n_low_", "n_high", "n_low", "n_low_low", "n_low_high", *names[6:]]
    assert names[6:] == ["avg(age)", "avg(age)_low", "avg(age)_high"]


# What cannot be bounded is refused.


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("select avg(age) from release group by sex", "rows of an answer with intervals must differ in columns"),
        ("select * from (select sex, count(*) as n from release group by sex)", "must be named one by one"),
        ("select age from release", "must aggregate"),
        ('select "leaf of age", count(*) from release group by all', "column leaf of age is not in this release"),
    ],
)
def test_what_has_no_interval_is_refused(published: Release, query: str, sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        published.sql(query, intervals=True)


def test_questions_that_are_too_large_are_refused(published: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_intervals, "MOST_ROWS", 71)
    with pytest.raises(QueryError, match=r"an answer with intervals \(72 rows\) must have at most 71 rows"):
        published.sql("select age, count(*) from release group by age", intervals=True)
    monkeypatch.setattr(sql_intervals, "MOST_CELLS", 71)
    with pytest.raises(QueryError, match="must have at most 71 combinations of leaves, unless it only counts"):
        published.sql("select avg(age) from release", intervals=True)


def test_the_command_line_gives_intervals(release) -> None:
    found = done_json("sql", release, "select sex, count(*) as n from release group by sex", "--intervals")
    assert found["columns"] == ["sex", "n", "n_low", "n_high"]
    assert all(low <= n <= high for _, n, low, high in found["rows"])
    assert "n_low" in done("sql", release, "select count(*) as n from release", "--intervals")


def test_a_query_asks_for_intervals_by_its_last_words() -> None:
    release = SMALL["grid"]()
    query = "select count(*) as people from release"
    expected = release.sql(query, intervals=True)
    for words in (" with intervals", "\nWITH  INTERVALS ;"):
        assert release.sql(query + words).equals(expected)
