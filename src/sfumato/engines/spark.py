"""Count with Spark: tables that lie on a cluster.

Coding and counting are expressions of Spark's own, so executors need no Python of ours; only counts come to the driver.
Coded rows are cached where they are. What is lost with a worker is coded again from the source, to the same codes, so a
release comes out the same.

A tally is one query that reads nothing but rows: small tables are constants in it, looked up by position. A join would
send each small table round the cluster in a job of its own, and on Spark a job costs more than a level's arithmetic.
Codes and nodes count from 0, so a table of theirs is an array. It is written as one text, which Spark reads once, when
it plans: the number of expressions follows from the attributes and the steps, never from the regions.
"""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import NONE
from sfumato.engines.coding import TableCoding, coding_of
from sfumato.engines.dialect import (
    WORTH_MERGING,
    Coding,
    Kind,
    Rows,
    SparkDialect,
    cells_of,
    counts_of,
    splits_of,
    ways_of,
)
from sfumato.errors import CountError, SfumatoError, TableError, guarded, unreadable
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Stage, Tree
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.schema.schema import Predictor, Schema
from sfumato.tables.encode import columns_to_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORDS = SparkDialect()
BY_WAY = 0
"""No border is 0: this one says that a node has more than two children."""


def grid_query(tally: Tally, rows: Rows) -> str:
    """Count by the regions of a grid: each attribute that is cut adds its part, in units of the parts that follow."""
    grid = tally.partition
    assert isinstance(grid, Grid)
    parts = [
        _looked_up(grid.part_of(attribute) * math.prod(grid.parts[attribute + 1 :]), f"c{attribute}")
        for attribute in grid.split_attributes
    ]
    place = f"CAST({' + '.join(parts) or 0} AS BIGINT)"
    return _counting(tally, rows, f"SELECT {', '.join(rows.columns)}, {place} AS place FROM {rows.table}")


def tree_query(tally: Tally, rows: Rows, located: str) -> str:
    """Count by the nodes that are asked for, of rows that know theirs."""
    place = f"CAST({_looked_up(tally.place_of_node, 'node')} AS BIGINT)"
    placed = f"SELECT {', '.join(rows.columns)}, {place} AS place FROM ({located})"
    return _counting(tally, rows, f"SELECT * FROM ({placed}) WHERE place >= 0")


def stepped(tree: Tree, known: int, steps: int, rows: Rows, sql: str) -> str:
    """Let rows step, so many times, from the nodes before a number to their children, where they have any."""
    splits, ways = splits_of(tree, known), ways_of(tree, known)
    along, born, border, way = (np.full(len(tree), NONE, np.int64) for _ in range(4))
    along[splits["parent"]], born[splits["parent"]] = splits["attribute"], splits["born"]
    border[splits["parent"]] = splits["border"]
    part = f"CASE WHEN code >= {_looked_up(border, 'node')} THEN 1 ELSE 0 END"
    if len(ways["way"]):
        numbers, starts = np.unique(ways["way"], return_index=True)
        begins = np.zeros(len(numbers) + 1, np.int64)
        begins[numbers] = starts - ways["leaf"][starts]
        way[splits["parent"]] = begins[splits["way"]]
        by_way = _looked_up(ways["part"], f"{_looked_up(way, 'node')} + code")
        part = f"CASE {_looked_up(border, 'node')} WHEN {BY_WAY} THEN {by_way} ELSE {part} END"
    codes = " ".join(f"WHEN {one} THEN CAST(c{one} AS INT)" for one in np.unique(splits["attribute"]).tolist())
    code = f"CASE {_looked_up(along, 'node')} {codes} END"
    node = _found_once(f"CASE WHEN code IS NULL THEN node ELSE {_looked_up(born, 'node')} + {part} END")
    listed = ", ".join(rows.columns)
    for _ in range(steps):
        sql = f"SELECT {listed}, {node} AS node FROM (SELECT {listed}, node, {code} AS code FROM ({sql}))"
    return sql


def _counting(tally: Tally, rows: Rows, placed: str) -> str:
    return WORDS.melted(cells_of(tally), f"({placed})", weighted=rows.weighted)


def _found_once(number: str) -> str:
    """Add 0, in words that depend on where a row lies: such a number Spark may neither find twice nor elsewhere.

    Otherwise a condition on it is tried before it is found, by finding it there as well; each step needs the node
    before it several times, so that the work for a few steps would be that of hundreds.
    """
    return f"{number} + least(spark_partition_id(), 0)"


def _looked_up(numbers: NDArray[np.integer], position: str) -> str:
    """Look a number up in a constant array; there is none beyond its ends."""
    wide = "BIGINT" if np.abs(numbers).max() >= 2**31 else "INT"
    return f"get(CAST(split('{','.join(map(str, numbers.tolist()))}', ',') AS ARRAY<{wide}>), {position})"


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
        from pyspark.sql import DataFrame

        datasets: Any = self.session._jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(datasets.ofRows(self.session._jsparkSession, frame._jdf.logicalPlan()), self.session)

    def table(self, name: str, table: Any) -> str:
        """Bring a small table to every executor; it is made where the user is active, who stays so."""
        from pyspark.sql.functions import broadcast

        return self.view(name, broadcast(self.adopted(self._given.createDataFrame(table))))

    def keep(self, name: str, frame: DataFrame) -> str:
        """Cache a frame when it is first read."""
        from pyspark import StorageLevel

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
    from pyspark.sql import DataFrame

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
