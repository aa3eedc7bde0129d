"""Values are coded in Spark as they are coded in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from spark_sessions import local_session

from sfumato.engines.spark import Room, keep_coded
from sfumato.schema.schema import Schema
from test_engine_coding import COLUMNS, FACTS, MISSING, Slots, assert_alike, slots_of

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
