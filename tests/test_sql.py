"""SQL over a release: it agrees with range counts, means what it says, and reaches nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import command_line
from command_line import done, done_json, refused
from handmade import BOXES, RANGES, box_releases, leaf_weights, release_of, tree_releases
from sfumato import METHODS, Account, Release, Schema
from sfumato.errors import QueryError
from sfumato.release import sql as cell_columns

LEAVES = {name: cell_columns.cell_columns(BOXES)[name].values.to_pylist() for name in BOXES.attributes}


def rows(release: Release, query: str) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in release.sql(query).columns), strict=True))


def value(release: Release, query: str) -> float:
    ((only,),) = rows(release, query)
    return only


def where(box: dict[str, tuple[int, int]]) -> str:
    """Write ranges of leaves as SQL."""
    named = {name: ", ".join(repr(one) for one in LEAVES[name][lo:hi]) for name, (lo, hi) in box.items()}
    return " and ".join(f'"{name}" in ({names})' if names else "false" for name, names in named.items()) or "true"


# Agreement with range counts.


@settings(max_examples=40)
@given(st.one_of(box_releases(), tree_releases()), RANGES)
def test_a_count_is_the_count_of_the_same_condition(release: Release, box: dict) -> None:
    counted = value(release, f"select count(*) from release where {where(box)}")
    assert counted == pytest.approx(release.count(leaf_weights(box)).value, abs=1e-6)


@settings(max_examples=20)
@given(st.one_of(box_releases(), tree_releases()), st.sets(st.sampled_from(list(BOXES.attributes)), min_size=1))
def test_groups_are_the_counts_of_their_values_and_add_up(release: Release, names: set[str]) -> None:
    listed = ", ".join(f'"{name}"' for name in sorted(names))
    found = rows(release, f"select {listed}, count(*) from release group by all")
    assert sum(row[-1] for row in found) == pytest.approx(release.count().value, abs=1e-6)
    for *group, counted in found[:5]:
        codes = {name: LEAVES[name].index(one) for name, one in zip(sorted(names), group, strict=True)}
        box = {name: (code, code + 1) for name, code in codes.items()}
        assert counted == pytest.approx(release.count(leaf_weights(box)).value, abs=1e-6)


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("age between 20 and 40 and job = 'Dancer'", "age between 20 and 40 and job = Dancer"),
        ("\"job@1\" = 'White-collar' and age > 30", "job = White-collar and age > 30"),
        ("age is null", "age = Missing"),
        ("age <> 30", "age <> 30"),
        ("income = 'low' and AGE < 38.5", "income = low and age < 38.5"),
        ("born >= '1990-01-15' and born < date '1990-01-29'", "born >= 1990-01-15 and born < 1990-01-29"),
        ("wage >= 30 and wage < 90", "wage >= 30 and wage < 90"),
        ("height < 1.25", "height < 1.25"),
        ("gain = 0", "gain = 0"),
        ("gain = 13", "gain = 13"),
        (
            "gain between 1 and 12 and job in ('Writer', 'Unknown')",
            "gain between 1 and 12 and job in (Writer, Unknown)",
        ),
    ],
)
def test_every_kind_of_column_follows_conditions_that_do_not_cut_cells(
    people: Release, sql: str, condition: str
) -> None:
    counted = value(people, f"select count(*) from release where {sql}")
    assert counted == pytest.approx(people.count(condition).value, abs=1e-6)


def usual(method: type) -> object:
    """Make a method as people use it, or as its first example if it must be told something."""
    told = all(one.default is not MISSING for one in fields(method))
    return method() if told else method.examples()[0]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_releases_of_every_method_agree(method: type, tmp_path: Path) -> None:
    account = Account(tmp_path / "ledger", Schema.loads(command_line.SCHEMA.replace("budget: 4\n", "")))
    release = account.publish(command_line.people(), usual(method), "1", out=tmp_path / "out", unsafe_seed=1)
    for sql in ("age < 44 and income = 'high'", "job = 'Writer' and sex = 'Male' and age >= 30", "age in (17, 50)"):
        counted = value(release, f"select count(*) from release where {sql}")
        assert counted == pytest.approx(release.count(sql).value, abs=1e-6)


# What aggregates mean.


def test_sums_and_averages_weigh_values_by_estimates(people: Release) -> None:
    by_age = dict(rows(people, "select age, count(*) from release group by age"))
    known = {age: number for age, number in by_age.items() if age is not None}
    total = sum(age * number for age, number in known.items())
    ((counted, summed, average, ones, some),) = rows(
        people, "select count(age), sum(age), avg(age), sum(1), sum(age) filter (where age >= 60) from release"
    )
    assert counted == pytest.approx(sum(known.values()))
    assert summed == pytest.approx(total)
    assert average == pytest.approx(total / sum(known.values()))
    assert ones == pytest.approx(people.total)
    assert some == pytest.approx(sum(age * number for age, number in known.items() if age >= 60))


def test_filters_having_order_and_windows_see_estimates(people: Release) -> None:
    jobs = dict(rows(people, "select job, count(*) from release group by job"))
    large = rows(people, "select job from release group by job having count(*) > 200 order by count(*) desc")
    assert large == [(job,) for job in sorted(jobs, key=lambda job: -jobs[job]) if jobs[job] > 200]
    shares = rows(people, "select job, count(*) / sum(count(*)) over () from release group by job")
    assert dict(shares) == pytest.approx({job: number / people.total for job, number in jobs.items()})
    young = value(people, "select count(*) filter (where age < 30) from release")
    assert young == pytest.approx(people.count("age < 30").value)


def test_subqueries_named_queries_and_joins_work_on_what_was_aggregated(people: Release) -> None:
    best = value(
        people,
        "with jobs as (select job, count(*) as n from release group by job) "
        "select max(n) from jobs where n < (select count(*) from release)",
    )
    assert best == pytest.approx(people.count("job = Unknown").value)
    joined = rows(
        people,
        "select a.job, high, low from (select job, count(*) as high from release where income = 'high' group by 1) a "
        "join (select job, count(*) as low from release where income = 'low' group by 1) b using (job)",
    )
    for job, high, low in joined:
        assert high + low == pytest.approx(people.count(f"job = {job}").value)
    both = rows(people, "select count(*) from release union all select count(*) from release where age < 30 order by 1")
    assert [one for (one,) in both] == pytest.approx([people.count("age < 30").value, people.total])


def test_nobody_is_counted_as_0_and_has_no_average() -> None:
    release = release_of(BOXES, None, np.array([-5, 0]))
    assert rows(release, "select count(*), count(a), sum(a), avg(a) from release where a > 99") == [(0, 0, None, None)]
    assert rows(release, "select count(*), avg(a) from release") == [(pytest.approx(-5), None)]


def test_names_and_frames_are_what_was_asked_for(people: Release) -> None:
    query = "select count(*), count(*), sum(age) as years from release"
    assert people.sql(query).column_names == ["count_star()", "count_star()_1", "years"]
    assert isinstance(people.sql(query, "pandas"), pd.DataFrame)
    assert isinstance(people.sql(query, "polars"), pl.DataFrame)


def test_columns_called_like_ours_are_no_problem() -> None:
    schema = Schema.loads("""
attributes:
  weight: {kind: numeric, lower: 0, upper: 3}
  argument: {kind: numeric, lower: 0, upper: 1}
  release: {kind: categorical, taxonomy: {p: [x, y]}}
  release@1: {kind: categorical, taxonomy: [u, v]}
""")
    release = release_of(schema, None, np.array([16]))
    ((average, some, named),) = rows(
        release,
        "select avg(weight), sum(weight) filter (where argument = 1), count(release) filter (where \"release@1\" = 'u')"
        " from release",
    )
    assert (average, some, named) == pytest.approx((1.5, 12, 8))


def test_columns_called_like_clocks_and_functions_are_columns() -> None:
    schema = Schema.loads("attributes: {localtime: {kind: numeric, lower: 0, upper: 3}}")
    release = release_of(schema, None, np.array([16]))
    assert value(release, "select count(*) from release where localtime < 1") == pytest.approx(4)
    assert value(release, "select random from (select count(*) as random from release)") == pytest.approx(16)


def test_names_that_differ_in_case_only_are_refused() -> None:
    schema = Schema.loads(
        "attributes: {a: {kind: numeric, lower: 0, upper: 3}, A: {kind: numeric, lower: 0, upper: 3}}"
    )
    with pytest.raises(QueryError, match="more than case"):
        release_of(schema, None, np.array([16])).sql("select count(*) from release")


# What is refused.


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "is empty"),
        ("-- nothing", "is empty"),
        ("select 1; select 2", "several statements"),
        ("insert into release values (1)", "something else"),
        ("copy (select 1) to 'stolen.csv'", "something else"),
        ("attach 'stolen.db'", "something else"),
        ("pragma database_list", "something else"),
        ("install httpfs", "something else"),
        ("create table t as select 1", "something else"),
        ("pivot release on job using count(*)", "something else"),
        ("selec 1", "at character 1 .at 'selec 1'"),
        ("select 'ä', count(*) from release wher age > 4", r"at character (40|39) \(at ' ?age > 4'"),
        ("select " + "(" * 2000 + "1" + ")" * 2000 + " +", "nested so deeply"),
        ("select " + "+".join(["age"] * 900) + ", count(*) from release group by 1", "nested so deeply"),
        ("select 1" + " " * 100_000, "at most 100,000 characters"),
        ("select '\udc80'", "readable text"),
        ("select '\0'", "readable text"),
        ("select count(nowhere) from release", "column nowhere is not in this release"),
        ("select count(release.nowhere) from release", "column nowhere is not in this release"),
        ("select count(passport) from release", "passport was dropped as an identifier"),
        ('select count("estimated people of a cell") from release', "is not in this release"),
        ("select count(*) from people", "table .people. must be release"),
        ("select count(*) from main.release", "table .main.release. must be release"),
        ("select count(*) from information_schema.tables", "must be release"),
        ('with "pg_catalog.pg_type" as (select 1) select count(*) from pg_catalog.pg_type', "must be release"),
        ("select count(*) from 'people.csv'", "table .people.csv. must be release"),
        ("select * from read_csv('people.csv')", "table function"),
        ("select * from read_text('people.csv')", "table function"),
        ("select * from duckdb_settings()", "table function"),
        ("select count(*) from release, range(3)", "table function"),
        ("select count(*) from release where age in (select a from glob('*') t(a))", "table function"),
        ("select getenv('HOME'), count(*) from release", "getenv does not exist"),
        ("summarize release", "show ref"),
        ("with recursive a as (select 1 as x union all select x + 1 from a) select x from a", "recursive"),
        ("with release as (select 1) select count(*) from release", "must not be called release"),
        ("select * from release", "must aggregate"),
        ("from release", "must aggregate"),
        ("select job from release", "must aggregate"),
        ("select count(*) over () from release", "must aggregate"),
        ("select count(*) from release where exists (select 1 from release)", "must aggregate"),
        ("select min(age) from release", "min. must be count, sum or avg"),
        ("select count(distinct age) from release", "count distinct. must be"),
        ("select job from release group by job having max(age) > 3", "max. must be"),
        ("select median(age) from release", "median. must be"),
        ("select list(job) from release", "list. must be"),
        ("select count(*) from release a, release b", "must stand alone"),
        ("select count(*) from release tablesample 10%", "must be read whole"),
        ("select count(*) from release r(a, b)", "its own column names"),
        ("select count(release) from release", "named one by one"),
        ("select r, count(*) from release r group by 1", "named one by one"),
        ("select columns('a.*'), count(*) from release group by all", "named one by one"),
        ("select count(*), (select sum(r.age)) from release r", "stand by itself"),
        ("select count(*), (select sum(r.age) from release) from release r", "stand by itself"),
        ("select (select count(*) from release where age = t.a) from (values (1)) t(a)", "stand by itself"),
        ("select count(*) from release where random() < 0.5", "function .random. must give the same"),
        ("select job, count(*) from release group by all order by UUID()", "function .uuid. must give the same"),
        ("select count(*) from release where born < today()", "function .today. must give the same"),
        ("select now(), count(*) from release", "function .now. must give the same"),
        ("select count(*) from release where born < current_date", "function .current_date. must give"),
        ("select count(*) from release where born < ago(interval 1 year)", "function .ago. must give"),
        ("select n from (select count(*) as n from release) where n > random()", "function .random. must give"),
        ("select sum(job) from release", "DuckDB, which says: No function matches"),
        ("select count(*) from release where age > 'old'", "Could not convert"),
        ("select age from release group by job", "must appear in the GROUP BY clause"),
        ("select ?, count(*) from release", "parameters"),
        ('select "count_star()" from (select count(*) from release)', "Name it with AS"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(people: Release, query: str, why: str) -> None:
    with pytest.raises(QueryError, match=why) as refusal:
        people.sql(query)
    assert "\n" not in str(refusal.value)
    assert refusal.value.remedy


def test_too_many_cells_are_refused_before_they_are_made(people: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_columns, "MOST_CELLS", 749)
    with pytest.raises(QueryError, match=r"at most 749 combinations .* \(job 5, age 75, income 2\)"):
        people.sql("select count(*) from release where age > 3 and job = 'Dancer' and income = 'low'")
    assert people.sql("select count(*) from release where age > 3 and job = 'Dancer'").num_rows == 1


def test_python_variables_are_out_of_reach(people: Release) -> None:
    mine = pa.table({"x": [1]})
    with pytest.raises(QueryError, match="must be release"):
        people.sql("select count(*) from mine")
    assert mine.num_rows == 1


@pytest.mark.parametrize(
    ("known", "unknown"),
    [("cte_map", "ctes"), ("FUNCTION", "CALL"), ("column_names", "path"), ("arguments|children", "given")],
)
def test_syntax_that_is_not_understood_is_refused(
    people: Release, monkeypatch: pytest.MonkeyPatch, known: str, unknown: str
) -> None:
    def changed(text: str) -> dict:
        return json.loads(re.sub(f'"({known})"', f'"{unknown}"', text))

    monkeypatch.setattr("sfumato.release.sql.json", SimpleNamespace(loads=changed, dumps=json.dumps))
    with pytest.raises(QueryError, match=r"syntax as Sfumato knows it|must have a meaning"):
        people.sql("select job, count(*) from release group by job")


# The command.


@pytest.mark.usefixtures("release")
def test_the_command_shows_and_writes_answers() -> None:
    query = "select sex, count(*) as people from release group by sex order by sex"
    answer = done_json("sql", "release", query)
    opened = Release.load("release")
    assert answer["columns"] == ["sex", "people"]
    assert [sex for sex, _ in answer["rows"]] == ["Female", "Male"]
    assert answer["rows"][0][1] == pytest.approx(opened.count("sex = Female").value)
    assert done("sql", "release", query).splitlines()[0].split() == ["sex", "people"]
    assert "wrote 2 rows" in done("sql", "release", query, "--out", "answer.csv")
    assert pd.read_csv("answer.csv")["people"].sum() == pytest.approx(opened.count().value)
    done("sql", "release", query, "--out", "answer.parquet")
    assert pd.read_parquet("answer.parquet")["sex"].tolist() == ["Female", "Male"]
    long = done("sql", "release", "select age, job, count(*) from release group by all")
    assert "and 196 more; --out writes all" in long
    assert done("sql", "release", "select job from release group by job having count(*) > 1e9").startswith("job")


@pytest.mark.usefixtures("release")
def test_the_command_refuses_in_a_sentence() -> None:
    assert "must aggregate" in refused("sql", "release", "select * from release")
    assert "must be release" in refused("sql", "release", "select * from 'people.csv'")
    assert ".csv or .parquet" in refused("sql", "release", "select count(*) from release", "--out", "answer.txt")
    assert "must be a release" in refused("sql", "nowhere", "select 1")
    nested = "select list(n) from (select count(*) as n from release)"
    assert "plain columns" in refused("sql", "release", nested, "--out", "answer.csv")
