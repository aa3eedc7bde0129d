"""Every source is the same table; every bad source is one sentence, before anything is spent, without a value."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run
from sfumato import Account, Laplace, Ledger, Schema
from sfumato.errors import TableError
from sfumato.tables import streams
from sfumato.tables.databases import Query, table_of
from sfumato.tables.encode import encode
from sfumato.tables.frames import open_frame
from sfumato.tables.sources import open_table
from sfumato.tables.streams import fixed_folder

CANARY = "Ermentrude"
SCHEMA = Schema.parse(
    {
        "name": "people",
        "confirmed": True,
        "attributes": {
            "age": {"kind": "numeric", "lower": 0, "upper": 100, "step": 1},
            "town": {"kind": "categorical", "taxonomy": {"any": ["A", "B", "C"]}},
        },
    }
)
AGES = [31, 42, 42, 7, 99, 0, 55]
TOWNS = ["A", "B", "B", "C", "A", "C", "B"]
PEOPLE = pa.table({"id": list(range(7)), "age": AGES, "town": TOWNS})


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    pq.write_table(PEOPLE.slice(0, 3), folder / "a.parquet")
    pq.write_table(PEOPLE.slice(3, 3), folder / "b.parquet")
    pq.write_table(PEOPLE.slice(6), folder / "deep" / "c.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").write_text(CANARY)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", PEOPLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        connection.execute('CREATE TABLE "odd ""name" AS SELECT * FROM given')
    return path


def rows(source: object) -> list[tuple[int, int]]:
    coded = encode(open_table(source), SCHEMA).columns
    return sorted(zip(coded["age"].tolist(), coded["town"].tolist(), strict=True))


EXPECTED = rows(PEOPLE)


def test_files_databases_and_queries_are_the_same_table(parts: Path, database: Path) -> None:
    assert len(EXPECTED) == 7
    for source in (
        parts,
        str(parts / "**" / "*.parquet"),
        f"{database}::people",
        f"{database}::main.people",
        f'{database}::odd "name',
        Query("select town, age from people order by age;", database),
        Query("from data", parts),
        Query("select upper(town) as town, age + 1 - 1 as age from data where age >= 0 -- all", parts),
    ):
        assert rows(source) == EXPECTED
    assert rows(str(parts / "*.parquet")) == rows(PEOPLE.slice(0, 6))
    assert rows(Query("select * from data where town = 'B'", parts)) == [row for row in EXPECTED if row[1] == 1]


def test_frames_are_the_same_table_however_lazy() -> None:
    connection = duckdb.connect()
    connection.register("given", PEOPLE)
    for source in (
        PEOPLE,
        PEOPLE.to_reader(2),
        PEOPLE.to_pandas(),
        pl.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE).lazy(),
        connection.sql("SELECT * FROM given"),
    ):
        assert rows(source) == EXPECTED


def test_lazy_frames_are_computed_in_batches_of_the_needed_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BATCH_ROWS", 1000)
    seen: list[pl.Series] = []
    many = pl.DataFrame({"n": np.arange(10_000) % 7}).lazy()
    note = pl.col("n").map_batches(lambda series: seen.append(series) or series, return_dtype=pl.Int64)
    table = open_table(many.with_columns(note.alias("x")))
    batches = list(table.batches(["n"]))
    assert sum(batch.num_rows for batch in batches) == 10_000
    assert max(batch.num_rows for batch in batches) <= 1000
    assert not seen, "a column that is not needed is not computed"
    relation = duckdb.sql("SELECT range AS n FROM range(10000)")
    assert sum(batch.num_rows for batch in open_table(relation).batches(["n"])) == 10_000


def test_spark_frames_are_read_partition_by_partition() -> None:
    class Frame:
        """What a Spark frame offers, as far as it is used."""

        columns = ("age", "town")

        def select(self, *names: str) -> Frame:
            assert names == ("`age`", "`town`")
            return self

        def toLocalIterator(self, prefetchPartitions: bool) -> object:  # noqa: N802, N803
            assert prefetchPartitions
            return iter(list(zip(AGES, TOWNS, strict=True)))

    from sfumato.tables import frames

    batches = frames._spark_batches(Frame().select("`age`", "`town`"))
    (batch,) = batches
    assert batch.to_pydict() == {"age": [str(age) for age in AGES], "town": TOWNS}


def test_a_stream_is_read_once() -> None:
    table = open_frame(PEOPLE.to_reader(2), "")
    assert sum(batch.num_rows for batch in table.batches(["age"])) == 7
    with pytest.raises(TableError, match="read once"):
        table.batches(["age"])


def test_a_lazy_frame_that_fails_says_nothing_of_its_rows() -> None:
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise ValueError(CANARY)

    lazy = pl.DataFrame(PEOPLE).lazy().map_batches(fail, schema=pl.DataFrame(PEOPLE).schema)
    relation = duckdb.sql(f"SELECT error('{CANARY}') AS age, 'A' AS town")
    for source in (lazy, relation):
        with pytest.raises(TableError) as told:
            rows(source)
        assert CANARY not in str(told.value)
        assert told.value.__context__ is None


def test_files_that_differ_are_refused(parts: Path) -> None:
    """One file must not decide how the values of another are read."""
    other = PEOPLE.set_column(1, "age", pa.array([CANARY] * 7))
    pq.write_table(other, parts / "z.parquet")
    with pytest.raises(TableError, match=r"z.parquet has not \(column age\)") as told:
        open_table(parts)
    assert CANARY not in str(told.value)
    pq.write_table(PEOPLE.drop_columns("town"), parts / "z.parquet")
    with pytest.raises(TableError, match=r"same columns .*column town"):
        open_table(parts)
    pq.write_table(PEOPLE.select(["town", "age", "id"]), parts / "z.parquet")
    with pytest.raises(TableError, match="order of its columns"):
        open_table(parts)
    pq.write_table(PEOPLE.set_column(2, "town", PEOPLE["town"].dictionary_encode()), parts / "z.parquet")
    assert len(rows(parts)) == 14, "how texts are stored does not matter"


def test_what_is_not_there_or_not_whole_is_refused(parts: Path, database: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.duckdb").write_text(CANARY)
    whole = (parts / "b.parquet").read_bytes()
    for source, problem in (
        (str(parts / "*.nothing"), "must match a file"),
        (str(parts / "_*"), "must be a Parquet file"),
        (tmp_path / "empty", "must hold a Parquet file"),
        (f"{database}::nothing", "must be in"),
        (database, "must be named"),
        (f"{tmp_path / 'nothing.duckdb'}::people", "must exist"),
        (f"{tmp_path / 'broken.duckdb'}::people", "must be a DuckDB database"),
        (Query("select * from nothing", database), "must be in"),
        (Query("select nothing from data", parts), "must be readable"),
        (Query("select * from people", parts), "must read from data"),
        (Query("select * from people", f"{database}::people"), "must name its table itself"),
    ):
        with pytest.raises(TableError, match=problem) as told:
            open_table(source)
        assert CANARY not in str(told.value)
    (parts / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"b.parquet must be well-formed"):
        open_table(parts)
    (parts / "b.parquet").write_bytes(b"")
    with pytest.raises(TableError, match=r"b.parquet must not be empty"):
        open_table(parts)


def test_a_bad_source_spends_nothing(parts: Path, tmp_path: Path) -> None:
    (parts / "b.parquet").write_bytes((parts / "b.parquet").read_bytes()[:-10])
    account = Account(tmp_path / "people.ledger", SCHEMA)
    with pytest.raises(TableError):
        account.publish(parts, Laplace(), 1, out=tmp_path / "release")
    assert not (tmp_path / "people.ledger").exists()
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from data",
        "select max(age) from data",
        "select age from data group by all",
        "select distinct age from data",
        "select * from data limit 3",
        "select * from data offset 1",
        "select a.* from data a join data b using (age)",
        "select * from data, data as other",
        "select *, row_number() over () as n from data",
        "select * from data where age > (select avg(age) from data)",
        "select * from data qualify row_number() over () < 3",
        "select * from data tablesample 5%",
        "select random() as age, town from data",
        "select unnest([age, age]) as age, town from data",
        "select * from data union all select * from data",
        "with other as (select * from data) select * from other",
        "select * from (select * from data limit 1)",
        "select * from data where rowid < 3",
        "select * from read_csv('/etc/passwd')",
        "select * exclude (age), max(age) as age from data",
        "select * replace (sum(age) as age) from data",
        "insert into data values (1)",
        "select 1; select 2",
        "selec",
        "",
    ],
)
def test_a_query_makes_each_row_from_one_row(sql: str) -> None:
    """Otherwise one person could be, or change, many rows, and noise for one row would hide nobody."""
    with pytest.raises(TableError, match="a query must"):
        table_of(sql)


def test_a_row_by_row_query_is_understood() -> None:
    assert table_of("select * from people") == "people"
    assert table_of("select age // 10 * 10 as age from main.people where town in ('A', 'B') or age is null") == (
        "main.people"
    )
    assert table_of("select case when age < 18 then 'young' else town end as town, cast(age as int) from data") == (
        "data"
    )


def test_a_query_reads_no_other_file(parts: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("age,town\n1,A\n")
    with pytest.raises(TableError):
        open_table(Query(f"select * from '{tmp_path / 'other.csv'}'", parts))
    path = tmp_path / "views.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{tmp_path / 'other.csv'}')")
    with pytest.raises(TableError):
        list(open_table(f"{path}::outside").batches(["age"]))


def test_a_database_is_opened_to_read_only(database: Path) -> None:
    before = database.read_bytes()
    assert rows(f"{database}::people") == EXPECTED
    assert database.read_bytes() == before
    assert not list(database.parent.glob("*.wal"))


@pytest.mark.usefixtures("database")
def test_words_for_the_same_rows_lead_to_the_same_ledger(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("parts", "people.people"):
        (tmp_path / f"{name}.schema.yaml").write_text(Schema.parse(SCHEMA.plain() | {"name": name}).dump())
    spending = ["--epsilon", "1/2", "--method", "laplace"]
    given = [
        ["parts"],
        ["parts/*.parquet"],
        [str(parts / "**" / "*.parquet")],
        ["parts", "--sql", "select * from data"],
        ["people.duckdb::people"],
        ["people.duckdb", "--table", "people"],
        ["people.duckdb", "--sql", "select * from people where age > 30"],
    ]
    for number, words in enumerate(given):
        found = run("publish", *words, *spending, "--out", f"release{number}")
        assert found.exit_code == 0, found.output
    assert sorted(path.name for path in tmp_path.glob("*.ledger")) == ["parts.ledger", "people.people.ledger"]
    assert Ledger.open("parts.ledger").statement().spent == 2
    assert Ledger.open("people.people.ledger").statement().spent == 3 / 2
    for words, problem in (
        (["parts", "--table", "people"], "--table must go with a DuckDB database"),
        (["people.duckdb", "--table", "people", "--sql", "select * from people"], "must not both be given"),
        (["people.duckdb", "--sql", "select * from people limit 3"], "must make each row from one row"),
    ):
        refused = run("publish", *words, *spending, "--out", "no")
        assert refused.exit_code == 2
        assert problem in refused.output
    assert str(fixed_folder("*.parquet")) == "."


def test_refusals_do_not_tell_neighbours_apart(tmp_path: Path) -> None:
    """One person more or less, and another refusal, would be an answer that nobody paid for."""
    told = set()
    for number in (6, 7):
        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        pq.write_table(PEOPLE.slice(0, number), folder / "a.parquet")
        pq.write_table(PEOPLE.drop_columns("age"), folder / "b.parquet")
        with pytest.raises(TableError) as first:
            open_table(folder)
        (folder / "b.parquet").write_bytes((folder / "a.parquet").read_bytes()[:-5])
        with pytest.raises(TableError) as second:
            open_table(folder)
        with pytest.raises(TableError) as third:
            open_table(Query("select max(age) from data", folder))
        told.add((str(first.value), str(second.value), str(third.value)))
    assert len(told) == 1
