"""Values are coded in Spark as they are coded in memory, and the same rows of persons count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from spark_sessions import local_session

from persons import KEY, SCHEMA, counted, frame_of
from sfumato.engines.spark import Room, keep_coded, layout_of, spark_engine
from sfumato.errors import TableError
from sfumato.schema.schema import Schema
from test_engine_coding import COLUMNS, FACTS, MISSING, Slots, assert_alike, slots_of
from test_persons import TABLE, person_of

UNREAD = {"nanosecond", "far day", "far second", "half", "while", "clock", "second", "elsewhere"}
"""What Spark does not read as it is: of times it keeps less (no zone of their own among it), or refuses them."""
KINDS = [kind for kind in COLUMNS if kind not in UNREAD]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, MISSING], ids=["plain", "missing"])
def test_spark_codes_as_memory_does(kind: str, more: dict[str, Any], tmp_path: Any) -> None:
    session, written = local_session(), Counter[str]()

    def by_spark(table: Any, schema: Schema) -> Slots:
        written["files"] += 1
        path = str(tmp_path / f"{written['files']}.parquet")
        pq.write_table(table, path, store_schema=False)
        room = Room(session)
        try:
            found = keep_coded(room, session.read.parquet(path).coalesce(1), schema).collect()
        finally:
            room.leave()
        columns = [[one and bytes(one) for one in column] for column in zip(*found, strict=True)]
        return slots_of([pa.record_batch(columns, names=["block", "told"])], schema)

    @settings(max_examples=2, database=None)
    @given(COLUMNS[kind])
    def check(column: Any) -> None:
        assert_alike(by_spark, column, FACTS, more)

    check()


def test_the_same_rows_of_persons_count() -> None:
    """The same key draws the same rows, however they are spread; and those without an identifier all count."""
    table = frame_of([*TABLE, *person_of(30), *person_of(9, "eve")]).astype(str).replace("None", "?")
    frame = local_session().createDataFrame(table).repartition(3)
    with spark_engine(frame, SCHEMA, KEY) as engine:
        found: Counter[tuple[int, ...]] = Counter()
        for (packed,) in engine._rows.collect():
            block = layout_of(SCHEMA).unpacked(bytes(packed))
            weights = [1] * len(block) if block.weights is None else block.weights.tolist()
            for *row, times in zip(*(one.tolist() for one in (*block.columns, block.classes)), weights, strict=True):
                found[tuple(row)] += times
    assert found == counted(table)


def test_rows_that_do_not_say_whom_they_are_about_are_refused() -> None:
    strict = Schema.parse(SCHEMA.plain() | {"missing_person": "refused"})
    frame = local_session().createDataFrame(frame_of(TABLE).astype(str).replace("None", "?"))
    engine = spark_engine(frame, strict, KEY)
    with pytest.raises(TableError, match="patient: missing value"):
        engine.__enter__()
