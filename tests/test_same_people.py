"""One person is one row, and one row has one ledger, however the rows are named: what an attacker would try."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run
from sfumato import Account, Schema
from sfumato.errors import TableError
from sfumato.places import find_data
from sfumato.tables.databases import Query, table_of
from sfumato.tables.frames import spark_frame
from sfumato.tables.sources import open_table

SCHEMA = Schema.parse(
    {
        "name": "people",
        "confirmed": True,
        "attributes": {"age": {"kind": "numeric", "lower": 0, "upper": 100, "step": 10}},
    }
)
PEOPLE = pa.table({"age": [31, 42, 7]})
SPENDING = ("--epsilon", "1/2", "--method", "laplace")


def rows(source: object) -> int:
    return sum(batch.num_rows for batch in open_table(source).batches(["age"]))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", PEOPLE)
        connection.execute("CREATE TABLE Visits AS SELECT * FROM given; CREATE SCHEMA old")
        connection.execute("CREATE TABLE old.visits AS SELECT * FROM given")
    return path


@pytest.mark.parametrize(
    "order",
    ["unnest([1, 2, 3])", "count(*)", "row_number() over ()", "(select max(age) from data)", "random()", "rowid"],
)
def test_rows_are_ordered_by_their_own_values_only(order: str) -> None:
    """By `unnest` every person would be three rows; by `count(*)` all would be one."""
    assert table_of("select age from data order by age % 10 desc, age") == "data"
    with pytest.raises(TableError, match="a query must"):
        table_of(f"select age from data order by {order}")


@pytest.mark.parametrize("name", ["lower", "+", "abs"])
def test_a_macro_does_not_stand_in_for_a_function_of_single_values(database: Path, name: str) -> None:
    """DuckDB would take the database's own macro, which may look at every row."""
    query = Query("select lower(age::varchar) as age from visits where abs(age) + 1 > 0", database)
    assert rows(query) == 3
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE MACRO of_mine(x) AS x")
    assert rows(query) == 3
    with duckdb.connect(str(database)) as connection:
        connection.execute(f'CREATE MACRO "{name}"(x, y := 0) AS (SELECT count(*) FROM visits)')
    with pytest.raises(TableError, match="must not define functions of DuckDB's own"):
        open_table(query)


def test_a_plan_is_no_function_of_single_values(database: Path) -> None:
    """One person over 60 more, and the plan of another query changes, and with it every row of this one."""
    other = "json_serialize_plan('select age from visits where age > 60', optimize := true)"
    sql = f"select case when contains({other}, 'EMPTY_RESULT') then 0 else 90 end as age from visits"
    seen = []
    for row in ("SELECT 0", "SELECT 61"):
        with duckdb.connect(str(database)) as connection:
            connection.execute(f"INSERT INTO visits {row}")
            seen.append(connection.execute(f"SELECT DISTINCT age FROM ({sql})").fetchall())
    assert seen == [[(0,)], [(90,)]], "DuckDB itself tells the neighbours apart"
    with pytest.raises(TableError, match="json_serialize_plan is none"):
        open_table(Query(sql, database))


def test_a_query_reads_a_table_of_the_database_and_no_catalogue(database: Path) -> None:
    """DuckDB's lists of tables tell how many rows they have."""
    with pytest.raises(TableError, match="must be in"):
        open_table(Query("select estimated_size as age from duckdb_tables", database))


def test_a_table_has_one_ledger_whatever_it_is_called(database: Path, tmp_path: Path) -> None:
    (tmp_path / "alias.duckdb").symlink_to(database)
    named = [(None, f"select * from {name}") for name in ("visits", "VISITS", "main.Visits", "people.main.visits")]
    named += [(name, None) for name in ("Visits", "visits", "main.visits", "people.visits")]
    for path in (database, tmp_path / "alias.duckdb"):
        for table, sql in named:
            if not (path.stem == "alias" and "people." in f"{table}{sql}"):
                found = find_data(str(path), None, table, sql)
                assert found.ledger_path == tmp_path / "people.Visits.ledger"
                assert rows(found.table) == 3
    for table in ("old.visits", "people.old.visits"):
        assert find_data(str(database), None, table).ledger_path == tmp_path / "people.old.visits.ledger"


def test_a_file_is_read_once_however_many_links_lead_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    (folder / "2020").mkdir(parents=True)
    pq.write_table(PEOPLE, folder / "2020" / "a.parquet")
    (folder / "latest").symlink_to(folder / "2020")
    (folder / "b.parquet").symlink_to(folder / "2020" / "a.parquet")
    os.link(folder / "2020" / "a.parquet", folder / "c.parquet")
    for source in (folder, f"{folder}/**/*.parquet", f"{folder}/*/*.parquet"):
        assert rows(source) == 3
        assert rows(Query("select * from data", source)) == 3


def test_some_files_of_a_table_that_has_a_ledger_get_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither as one file, nor as a folder in the folder, nor by a pattern that begins higher; nor the other way."""
    monkeypatch.chdir(tmp_path)
    Path("parts/2020").mkdir(parents=True)
    pq.write_table(PEOPLE, "parts/2020/a.parquet")
    pq.write_table(PEOPLE, "parts/b.parquet")
    Path("people.yaml").write_text(SCHEMA.dump())
    names = ["parts", "parts/2020", "parts/2020/*.parquet", "parts/b.parquet", "p*/*.parquet"]
    publishing = ("--schema", "people.yaml", *SPENDING)
    assert run("publish", "parts", *publishing, "--out", "first").exit_code == 0
    for number, name in enumerate(names[1:]):
        refused = run("publish", name, *publishing, "--out", "no")
        assert refused.exit_code == 2
        assert "must have one ledger" in refused.output
        assert str(tmp_path / "parts.ledger") in refused.output
        told = run("publish", name, *publishing, "--out", f"more{number}", "--ledger", "parts.ledger")
        assert told.exit_code == 0, told.output
    assert Account("parts.ledger", SCHEMA).statement().spent == 5 / 2
    Path("parts.ledger").rename("parts/b.ledger")
    Path("parts.ledger.head").unlink()
    assert "must have one ledger" in run("publish", "parts", *publishing, "--out", "no").output


def test_spark_takes_no_file_name_for_a_pattern(tmp_path: Path) -> None:
    """It would read `ab.parquet` twice: as itself, and as one of `a*.parquet`."""
    for name in ("a*.parquet", "ab.parquet"):
        pq.write_table(PEOPLE, tmp_path / name)
    assert rows(tmp_path) == 6
    with pytest.raises(TableError, match="takes for patterns"), spark_frame(tmp_path, None, tmp_path):
        pass


def test_a_name_that_only_looks_like_a_home_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(PEOPLE, "~nobody.parquet")
    assert rows("~nobody.parquet") == 3
    assert find_data("~nobody.parquet").ledger_path == tmp_path / "~nobody.ledger"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_data("~/people.parquet").ledger_path == tmp_path / "people.ledger"
