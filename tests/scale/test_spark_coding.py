"""Values are coded in Spark as they are coded in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from spark_sessions import local_session

from sfumato.engines.coding import coding_of
from sfumato.engines.dialect import SparkDialect
from sfumato.engines.spark import _KINDS, Room, keep_slots
from sfumato.schema.schema import Schema
from test_engine_coding import COLUMNS, FACTS, MISSING, Slots, assert_alike, slots_of

KINDS = ["text", "double", "float", "bigint", "byte", "unsigned", "decimal", "long decimal", "truth", "day", "nested"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, MISSING], ids=["plain", "missing"])
def test_spark_codes_as_memory_does(kind: str, more: dict[str, Any], tmp_path: Any) -> None:
    session, written = local_session(), Counter[str]()

    def by_spark(table: Any, schema: Schema) -> Slots:
        written["files"] += 1
        path = str(tmp_path / f"{written['files']}.parquet")
        pq.write_table(table, path)
        room = Room(session)
        try:
            coding, view = keep_slots(room, session.read.parquet(path), schema)
            found = room.session.sql(f"SELECT * FROM {view} ORDER BY c{len(schema.predictors) - 1}").toArrow()
        finally:
            room.leave()
        return slots_of(coding, {name: found[name].to_pylist() for name in found.column_names})

    @settings(max_examples=2, database=None)
    @given(COLUMNS[kind])
    def check(column: Any) -> None:
        assert_alike(by_spark, column, known_to_spark(column, tmp_path), more)

    check()


def known_to_spark(column: Any, folder: Any) -> dict[str, dict[str, Any]]:
    """Leave out what Spark's expressions refuse to code, such as fractions where days are declared."""
    import pyarrow as pa

    pq.write_table(pa.table({"x": column}), folder / "probe.parquet")
    probe = local_session().read.parquet(str(folder / "probe.parquet")).schema["x"].dataType.typeName()
    declared = Schema.parse({"attributes": FACTS}).predictors
    words = SparkDialect()
    return {
        name: facts
        for name, facts in FACTS.items()
        if coding_of(declared[name], ["?"], _KINDS[probe], "x", 0, words) is not None
    }
