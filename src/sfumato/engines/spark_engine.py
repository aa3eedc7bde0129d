"""Counting with Spark: tables that lie on a cluster.

Coding and counting are expressions of Spark's own, so executors need no Python of ours; only counts come to the driver.
Coded rows are cached where they are. What is lost with a worker is coded again from the source, to the same codes, so a
release comes out the same.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.codes import Coding, Kind
from sfumato.engines.coding import coding_of
from sfumato.engines.dialect import SparkDialect
from sfumato.engines.questions import Columns, Question, Rows, counts_of, question_of, standing, stepped
from sfumato.engines.table_coding import TableCoding
from sfumato.errors import CountError, SfumatoError, TableError
from sfumato.guard import guarded, unreadable
from sfumato.io.encode import columns_to_read
from sfumato.schema import Predictor, Schema
from sfumato.tree import Stage, Tree

WORDS = SparkDialect()
WORTH_MERGING = 2
"""Rows that are alike become one, with a weight, if there are so many times fewer different ones."""

_KINDS = {
    "string": Kind.TEXT,
    "char": Kind.TEXT,
    "varchar": Kind.TEXT,
    "void": Kind.TEXT,
    "boolean": Kind.TRUTH,
    "byte": Kind.WHOLE,
    "short": Kind.WHOLE,
    "integer": Kind.WHOLE,
    "long": Kind.WHOLE,
    "float": Kind.SINGLE,
    "double": Kind.REAL,
    "decimal": Kind.DECIMAL,
    "date": Kind.DAY,
    "timestamp": Kind.MOMENT,
    "timestamp_ntz": Kind.MOMENT,
    "array": Kind.NESTED,
    "map": Kind.NESTED,
    "struct": Kind.NESTED,
}


@contextmanager
def spark_engine(dataframe: DataFrame, schema: Schema) -> Iterator[CountEngine]:
    """Code a data frame and give an engine that counts it; when the block ends, nothing of either stays cached."""
    room = Room(dataframe.sparkSession)
    try:
        rows = guarded(lambda: _coded(room, dataframe, schema), _unread)
        yield SparkEngine(room, rows)
    finally:
        room.leave()


class Room:
    """The views and cached frames of one engine in a session that others use, too."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._prefix = f"sfumato_{uuid.uuid4().hex[:12]}_"
        self._views: set[str] = set()
        self._kept: dict[str, DataFrame] = {}

    def called(self, name: str) -> str:
        """Give the name of a view in the session."""
        return self._prefix + name

    def view(self, name: str, frame: DataFrame) -> str:
        """Give a frame a name; what had it before is no longer called so."""
        view = self.called(name)
        frame.createOrReplaceTempView(view)
        self._views.add(view)
        return view

    def table(self, name: str, table: Any) -> str:
        """Bring a small table to every executor."""
        return self.view(name, broadcast(self.session.createDataFrame(table)))

    def keep(self, name: str, frame: DataFrame) -> str:
        """Cache a frame when it is first read."""
        self._kept[name] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return self.view(name, frame)

    def drop(self, name: str) -> None:
        """Let a cached frame go."""
        if name in self._kept:
            self._kept.pop(name).unpersist()

    def leave(self) -> None:
        """Let everything go; a session that is gone has let go already."""
        with contextlib.suppress(Exception):
            for name in list(self._kept):
                self.drop(name)
            for view in self._views:
                self.session.catalog.dropTempView(view)


class SparkEngine:
    """Coded rows, cached on a cluster."""

    def __init__(self, room: Room, rows: Rows) -> None:
        """Count the rows of a view."""
        self._room = room
        self._rows = rows
        self._moved: tuple[Stage, str] | None = None
        """the moment of a tree at which rows remember their node, and what those rows are called"""
        self._moves = 0

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "SparkEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one scan and one aggregation."""
        return guarded(lambda: self._counted(tally), _uncounted)

    def _counted(self, tally: Tally) -> Counts:
        before = self._moved
        located = self._located(tally.partition) if isinstance(tally.partition, Tree) else None
        found = self._asked(question_of(tally, self._rows, WORDS, located)).toArrow()
        if before is not None and before is not self._moved:
            self._room.drop(before[1])
        return counts_of(tally, _numbers(found["cell"]), _numbers(found["n"]))

    def _located(self, tree: Tree) -> Question:
        """Give the rows with their nodes, which are kept for the tree that grows from this one.

        Nothing runs yet: the rows move when they are first counted.
        """
        if self._moved is not None and tree.refines(self._moved[0]):
            known, steps = self._moved[0].nodes, len(tree.stages_since(self._moved[0]))
            stand = standing(replace(self._rows, table=self._room.called(self._moved[1])), located=True)
        else:
            known, steps = 1, int(tree.depths.max())
            stand = standing(self._rows, located=False)
        if not steps:
            return stand
        self._moves += 1
        name = f"moved{self._moves}"
        moved = _with_short_plan(self._asked(stepped(tree, known, steps, self._rows, stand)))
        view = self._room.keep(name, moved)
        self._moved = (tree.stage, name)
        return standing(replace(self._rows, table=view), located=True)

    def _asked(self, asked: Question) -> DataFrame:
        """Give the answer to a question, which is not yet asked."""
        names = {name: self._room.table(name, _arrow(columns)) for name, columns in asked.tables.items()}
        return self._room.session.sql(asked.sql.format(**names))


def _coded(room: Room, dataframe: DataFrame, schema: Schema) -> Rows:
    """Code the table in one scan, refuse what does not fit, and merge rows that are alike if that pays."""
    coding, view = keep_slots(room, dataframe, schema)
    coding.refuse(list(room.session.sql(coding.misfits_query(view)).collect()[0]))
    return _merged(room, Rows(view, len(schema.predictors), weighted=False))


def keep_slots(room: Room, dataframe: DataFrame, schema: Schema) -> tuple[TableCoding, str]:
    """Give how the slots of all rows are found, and the view in which they are kept when they are first read."""
    types = {field.name: field.dataType.typeName() for field in dataframe.schema.fields}
    columns_to_read(types, schema)

    def code(name: str, facts: Predictor, place: int) -> Coding:
        kind = _KINDS.get(types[name], Kind.OTHER)
        coding = coding_of(facts, schema.missing_values, kind, WORDS.name(name), place, WORDS)
        if coding is None:
            raise unreadable(name)(TypeError())
        return coding

    coding = TableCoding.of(schema, code)
    names = {
        one.alias: room.table(one.alias, pa.table({"key": one.keys, "slot": pa.array(one.slots, pa.int32())}))
        for one in coding.dictionaries
    }
    source = room.view("source", dataframe)
    return coding, room.keep("coded", room.session.sql(coding.query(source, WORDS, names)))


def _merged(room: Room, rows: Rows) -> Rows:
    """Let one row, with a weight, stand for all that are alike, if there are enough of them."""
    listed = ", ".join(rows.columns)
    estimate = f"SELECT count(*), approx_count_distinct(xxhash64({listed})) FROM {rows.table}"
    every, different = room.session.sql(estimate).collect()[0]
    if every < WORTH_MERGING * different:
        return rows
    sql = f"SELECT {listed}, count(*) AS w FROM {rows.table} GROUP BY {listed}"
    merged = Rows(room.keep("merged", room.session.sql(sql)), rows.attributes, weighted=True)
    room.session.sql(f"SELECT sum(w) FROM {merged.table}").collect()
    room.drop("coded")
    return merged


def _with_short_plan(frame: DataFrame) -> DataFrame:
    """Let the rows of a frame be where a plan begins: otherwise each level of a tree would plan all levels before it.

    Spark still knows how to compute them again if they are lost. It has no public word for this; where a session does
    not know the one used here, plans grow, and answers stay the same.
    """
    session = frame.sparkSession
    try:
        rows = frame._jdf.queryExecution().toRdd()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False), session)
    except Exception:  # whatever Py4J raises for a word that is not there
        return frame


def _arrow(columns: Columns) -> Any:
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def _numbers(column: Any) -> Any:
    return column.combine_chunks().to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _unread(_: BaseException) -> SfumatoError:
    return TableError(
        "Spark must read the table to its end, and did not",
        "Check that the session is alive, that the table is well-formed, and that executors have memory and disk.",
    )


def _uncounted(_: BaseException) -> SfumatoError:
    """Say that a round failed, in words that are the same whatever was seen."""
    return CountError(
        "Spark must answer a round that was paid for, and did not",
        "Check that the session is alive and that its executors have memory and disk.",
    )
