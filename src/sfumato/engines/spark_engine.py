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
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.codes import Coding, Kind
from sfumato.engines.coding import coding_of
from sfumato.engines.questions import WORTH_MERGING, Rows, counts_of
from sfumato.engines.spark_questions import WORDS, grid_query, stepped, tree_query
from sfumato.engines.table_coding import TableCoding
from sfumato.errors import CountError, SfumatoError, TableError
from sfumato.guard import guarded, unreadable
from sfumato.io.encode import columns_to_read
from sfumato.schema import Predictor, Schema
from sfumato.tree import Stage, Tree

STEPS = 4
"""So many levels of a tree are walked in a query; rows that are further behind are kept anew, with their node."""

PARTS = "spark.sql.shuffle.partitions"
COUNTING = {"spark.sql.adaptive.enabled": "false", "spark.sql.maxPlanStringLength": "10000"}
"""Plans that adapt run every stage as a job of its own; and what Spark remembers of a plan has all constants in it."""

SPELLING = {"spark.sql.parser.escapedStringLiterals": "false"}
"""A backslash in our queries escapes what follows."""

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
    room = guarded(lambda: Room(dataframe.sparkSession), _unread)
    try:
        rows = guarded(lambda: _coded(room, dataframe, schema), _unread)
        yield SparkEngine(room, rows)
    finally:
        room.leave()


class Room:
    """The views and cached frames of one engine, in a session of its own beside the user's.

    Both are of one cluster. Here names and settings are ours: the user's stay as they are.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session.newSession()
        self._given = session
        self._prefix = f"sfumato_{uuid.uuid4().hex[:12]}_"
        self._kept: dict[str, DataFrame] = {}
        _set(self.session, session.conf.getAll | SPELLING)

    def called(self, name: str) -> str:
        """Give the name of a view in the session."""
        return self._prefix + name

    def view(self, name: str, frame: DataFrame) -> str:
        """Give a frame of this session a name, which nothing has had. It goes with the session.

        To drop it, or to name something else so, would uncache whatever has the same plan: a frame of the user's.
        """
        view = self.called(name)
        frame.createOrReplaceTempView(view)
        return view

    def adopted(self, frame: DataFrame) -> DataFrame:
        """Give a frame of the user's session as one of this."""
        datasets: Any = self.session._jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(datasets.ofRows(self.session._jsparkSession, frame._jdf.logicalPlan()), self.session)

    def table(self, name: str, table: Any) -> str:
        """Bring a small table to every executor; it is made where the user is active, who stays so."""
        return self.view(name, broadcast(self.adopted(self._given.createDataFrame(table))))

    def keep(self, name: str, frame: DataFrame) -> str:
        """Cache a frame when it is first read."""
        self._kept[name] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return self.view(name, frame)

    def drop(self, name: str) -> None:
        """Let a cached frame go."""
        if name in self._kept:
            self._kept.pop(name).unpersist()

    def count_alone(self) -> None:
        """Plan from now on for answers of thousands of cells, which a few parts add up in the job that lists them."""
        parts = min(int(self.session.conf.get(PARTS)), self.session.sparkContext.defaultParallelism)
        _set(self.session, COUNTING | {PARTS: str(parts)})

    def leave(self) -> None:
        """Let everything go; a session that is gone has let go already."""
        for name in list(self._kept):
            with contextlib.suppress(Exception):
                self.drop(name)


def _set(session: SparkSession, settings: dict[str, str]) -> None:
    """Set what is otherwise and can be set."""
    before = session.conf.getAll
    for name, value in settings.items():
        if before.get(name) != value and session.conf.isModifiable(name):
            session.conf.set(name, value)


class SparkEngine:
    """Coded rows, cached on a cluster."""

    def __init__(self, room: Room, rows: Rows) -> None:
        """Count the rows of a view."""
        self._room = room
        self._rows = rows
        self._moved: tuple[Stage, str] | None = None
        """the moment of a tree at which rows remember their node, and what those rows are called"""
        self._moves = 0
        room.count_alone()

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "SparkEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count places and breakdowns in one job: one scan and one aggregation."""
        return guarded(lambda: self._counted(tally), _uncounted)

    def _counted(self, tally: Tally) -> Counts:
        before = self._moved
        if isinstance(tally.partition, Tree):
            query = tree_query(tally, self._rows, self._located(tally.partition))
        else:
            query = grid_query(tally, self._rows)
        found = self._room.session.sql(query).toArrow()
        if before is not None and before is not self._moved:
            self._room.drop(before[1])
        return counts_of(tally, _numbers(found["cell"]), _numbers(found["n"]))

    def _located(self, tree: Tree) -> str:
        """Ask for the rows with their nodes. Those that would have far to go are kept where they come to stand.

        Nothing runs yet: the rows move when they are first counted. A tree that has not grown from the one that they
        know is walked from its root.
        """
        table, node, known, steps = self._rows.table, "0 AS node", 1, int(tree.depths.max())
        if self._moved is not None and tree.refines(self._moved[0]):
            table, node = self._room.called(self._moved[1]), "node"
            known, steps = self._moved[0].nodes, len(tree.stages_since(self._moved[0]))
        listed = ", ".join(self._rows.columns)
        stand = f"SELECT {listed}, {node} FROM {table}"
        if steps <= STEPS:
            return stepped(tree, known, steps, self._rows, stand)
        self._moves += 1
        name = f"moved{self._moves}"
        for done in range(0, steps - STEPS - 1, STEPS + 1):
            walked = self._walked(tree, known, STEPS + 1, stand)
            stand = f"SELECT {listed}, node FROM {self._room.view(f'{name}_{done}', walked)}"
        view = self._room.keep(name, self._walked(tree, known, (steps - 1) % (STEPS + 1) + 1, stand))
        self._moved = (tree.stage, name)
        return f"SELECT {listed}, node FROM {view}"

    def _walked(self, tree: Tree, known: int, steps: int, stand: str) -> DataFrame:
        return _with_short_plan(self._room.session.sql(stepped(tree, known, steps, self._rows, stand)))


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
    source = room.view("source", room.adopted(dataframe))
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
