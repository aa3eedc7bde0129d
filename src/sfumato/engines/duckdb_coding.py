"""A table's rows written into DuckDB as slots, in one scan.

Files that DuckDB reads itself are coded in SQL, where they are read; what streams from elsewhere is coded on its way
(see `slotting`). Either way the slots are those of memory.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from sfumato.engines.codes import Coding, Kind
from sfumato.engines.coding import coding_of
from sfumato.engines.duckdb_questions import WORDS
from sfumato.engines.slotting import noting, slot_reader, slotting_of
from sfumato.engines.table_coding import TableCoding
from sfumato.errors import SfumatoError
from sfumato.io.encode import columns_to_read
from sfumato.io.streams import Table
from sfumato.schema import Predictor, Schema

CODED = "coded"
STREAM = "stream"

_KINDS = {
    "VARCHAR": Kind.TEXT,
    "JSON": Kind.TEXT,
    "BOOLEAN": Kind.TRUTH,
    "DOUBLE": Kind.REAL,
    "FLOAT": Kind.SINGLE,
    "DATE": Kind.DAY,
    "TIMESTAMP": Kind.MOMENT,
}
_KINDS |= dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), Kind.WHOLE)
_KINDS |= dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), Kind.DECIMAL)


def write_slots(
    connection: duckdb.DuckDBPyConnection, table: Table, schema: Schema, said: list[SfumatoError]
) -> TableCoding:
    """Write the slots of all rows; give how they were found. What our own code says in DuckDB's hands is noted."""
    columns_to_read(table.columns, schema)
    sql = _sql_of(table)
    coding, source = (
        (_streamed(connection, table, schema, said), STREAM)
        if sql is None
        else (_selected(connection, sql, schema, said), sql)
    )
    dictionaries = {one.alias: f"dictionary_{one.alias}" for one in coding.dictionaries}
    for one in coding.dictionaries:
        pairs = pa.table({"key": one.keys, "slot": pa.array(one.slots, pa.int32())})
        create(connection, dictionaries[one.alias], pairs)
    connection.execute(f"CREATE TABLE {CODED} AS {coding.query(source, WORDS, dictionaries)}")
    for name in dictionaries.values():
        connection.execute(f"DROP TABLE {name}")
    return coding


def _sql_of(table: Table) -> str | None:
    """Give what DuckDB may select from, if it can tell the columns apart: it does not see case."""
    distinct = len({name.lower() for name in table.columns}) == len(table.columns)
    return table.sql if distinct else None


def _streamed(
    connection: duckdb.DuckDBPyConnection, table: Table, schema: Schema, said: list[SfumatoError]
) -> TableCoding:
    names = {name: f"a{place}" for place, name in enumerate(table.columns)}
    connection.register(STREAM, slot_reader(table, schema, names, said))

    def code(name: str, facts: Predictor, place: int) -> Coding:
        return Coding(facts.leaves, f"r{place}", {f"r{place}": names[name]})

    return TableCoding.of(schema, code)


def _selected(connection: duckdb.DuckDBPyConnection, sql: str, schema: Schema, said: list[SfumatoError]) -> TableCoding:
    types = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()}

    def code(name: str, facts: Predictor, place: int) -> Coding:
        column, kind = WORDS.name(name), types[name]
        coding = coding_of(facts, schema.missing_values, kind_of(kind), column, place, WORDS)
        if coding is not None:
            return coding
        slots = noting(said, slotting_of(name, facts, schema.missing_values))
        connection.create_function(f"f{place}", slots, [kind], "UINTEGER", type="arrow", null_handling="special")
        return Coding(facts.leaves, f"r{place}", {f"r{place}": f"f{place}({column})"})

    return TableCoding.of(schema, code)


def kind_of(type_name: str) -> Kind:
    """Tell what the values of a DuckDB type are."""
    if type_name.endswith("]") or type_name.startswith(("STRUCT", "MAP", "UNION")):
        return Kind.NESTED
    if type_name.startswith("DECIMAL"):
        return Kind.DECIMAL
    return Kind.TEXT if type_name.startswith("ENUM") else _KINDS.get(type_name, Kind.OTHER)


def create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Write a small table."""
    connection.register("given", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    connection.unregister("given")
