"""What a Parquet file says about a column as a whole must not decide how a row of it is read.

Writers leave NaN out of the least and the largest value that they note. A reader that trusts these finds that no value
is NaN, or that a part of the file holds nothing beyond a bound: then one record more moves all that are NaN.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Schema
from sfumato.engines.counting import Counting
from sfumato.geometry.grid import Grid
from sfumato.privacy.tally import Tally
from sfumato.tables.databases import Query

NAN = float("nan")
PEOPLE = [1.0] * 5 + [NAN] * 1000
NUMBERS = Schema.parse({"attributes": {"x": {"kind": "numeric", "lower": 0, "upper": 9, "missing": "gone"}}})


def counted(values: list[float | None], engine: str, folder: Path, schema: Schema, sql: str | None = None) -> list[int]:
    path = folder / "people.parquet"
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), path)
    with Counting.of(engine, scratch=folder).opened(path if sql is None else Query(sql, path), schema) as counts:
        found = counts.tally(Tally(Grid.whole(schema.shape), 1, (0,)))
    return found.by_leaf[0].dense(1).ravel().tolist()


def moved(engine: str, folder: Path, schema: Schema, more: float | None, sql: str | None = None) -> int:
    """Tell by how much one record more changes the counts."""
    before, after = (counted([*PEOPLE, *one], engine, folder, schema, sql) for one in ([2.0], [2.0, more]))
    return sum(abs(one - other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("more", [None, NAN, 2.0, 9.0])
def test_one_record_moves_one_count(engine: str, more: float | None, tmp_path: Path) -> None:
    assert moved(engine, tmp_path, NUMBERS, more) == 1


def test_engines_agree_about_what_is_no_number(tmp_path: Path) -> None:
    in_memory, by_duckdb = (counted([*PEOPLE, 2.0], engine, tmp_path, NUMBERS) for engine in ("memory", "duckdb"))
    assert in_memory == by_duckdb


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM data WHERE x > 5",
        "SELECT x FROM data WHERE x BETWEEN 1 AND 3",
        "SELECT x FROM data WHERE NOT isnan(x)",
        "SELECT CASE WHEN isnan(x) THEN 8 ELSE x END AS x FROM data",
    ],
)
@pytest.mark.parametrize("more", [None, 6.0])
def test_one_record_moves_one_row_of_a_query(engine: str, sql: str, more: float | None, tmp_path: Path) -> None:
    assert moved(engine, tmp_path, NUMBERS, more, sql) <= 1
