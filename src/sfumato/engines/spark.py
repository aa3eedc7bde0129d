"""Count with Spark: tables that lie on a cluster.

Every executor runs the kernel (`executors`). Rows are coded into blocks, once, by the one encoder, and the blocks are
cached where they are. A round is one job of two stages: every part of the table is counted into sums, and sums of the
same cells are added up. Only sums come to the driver. A part that is lost with its executor is coded and counted again.

Rows walk down a tree from the node on which they were last kept, a few steps in every round; when they would have
farther to go, blocks and nodes are kept anew, in the job that counts them. A plan grows by one line with that.

*What travels.* A task is sent with the text of the few modules that it needs. So nothing is added to the user's
session, executors need NumPy and Arrow alone, and all of them run the code of the driver, beside whatever is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import pickle
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.engines.executors import CODED, STANDING, SUMMED, AddSums, CodeRows, CountBlocks, GatherRows, MoveRows
from sfumato.engines.kernel import Layout, Round, Sums
from sfumato.engines.rounds import Answer, Asked
from sfumato.errors import CountError, SfumatoError, TableError, guarded
from sfumato.geometry.tree import Stage, Tree
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.schema.schema import Schema
from sfumato.tables.coders import code_type
from sfumato.tables.encode import Coded, coder_of, declared_columns, misfits_of, refuse_misfits
from sfumato.tables.frames import backticked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = 4
"""So many levels of a tree are walked in a round; rows that are further behind are kept anew, with their node."""
PIECE = 1 << 17
"""About so many cells are added up together; of more than that, pieces are added up apart."""

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 14),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 23),
}
"""Plans that adapt run every stage as a job of its own. Rows go to Python by thousands; blocks, of a megabyte each, a
few at a time. Before Spark 4, which knows no limit in bytes, all blocks of a part go at once."""
ABSENT = re.compile(r"No module named '(numpy|pyarrow)")
"""How Python says that a library is missing."""
OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"
"""How Spark says that executors have another Python than the driver."""


OURS = "sfumato"
MODULES = (
    "sfumato",
    "sfumato.arrays",
    "sfumato.errors",
    "sfumato.geometry",
    "sfumato.geometry.walk",
    "sfumato.schema",
    "sfumato.schema.formats",
    "sfumato.schema.taxonomy",
    "sfumato.schema.codes",
    "sfumato.tables",
    "sfumato.tables.values",
    "sfumato.tables.coders",
    "sfumato.engines",
    "sfumato.engines.kernel",
    "sfumato.engines.executors",
)
"""What executors need of ours, each after those that it imports."""
PACKAGES = ("sfumato", "sfumato.geometry", "sfumato.schema", "sfumato.tables", "sfumato.engines")
"""Those of them that are folders; they are empty there."""

Task = Callable[[Iterator[Any]], Iterator[Any]]
"""What executors do with the batches of a part."""


@contextmanager
def spark_engine(dataframe: DataFrame, schema: Schema, key: bytes = b"") -> Iterator[CountEngine]:
    """Code a data frame and give an engine that counts it; when the block ends, nothing of either stays cached.

    By the `key` it is drawn which rows of a person count.
    """
    room = guarded(lambda: Room(dataframe.sparkSession), _unread)
    try:
        rows = guarded(lambda: _coded(room, dataframe, schema, key), _unread)
        yield SparkEngine(room, rows, layout_of(schema))
    finally:
        room.leave()


class Room:
    """The cached frames of one engine, in a session of its own beside the user's.

    Both are of one cluster. Here settings are ours: the user's stay as they are.
    """

    def __init__(self, session: SparkSession) -> None:
        """Open a session beside another."""
        self.session = session.newSession()
        self._kept: list[DataFrame] = []
        self._set(_settings(session) | SETTINGS)

    def adopted(self, frame: DataFrame) -> DataFrame:
        """A frame of the user's session as one of this."""
        from pyspark.sql import DataFrame

        spark: Any = self.session._jvm.org.apache.spark.sql
        home = spark if self.session.version.startswith("3.") else spark.classic
        return DataFrame(home.Dataset.ofRows(self.session._jsparkSession, frame._jdf.logicalPlan()), self.session)

    def mapped(self, frame: DataFrame, task: Task, columns: str) -> DataFrame:
        """The frame that executors make of another.

        On this machine alone they run the Python of this process, which has all that they need.
        """
        from pyspark import cloudpickle

        context = self.session.sparkContext
        python = context.pythonExec
        if str(context.master).startswith("local"):
            context.pythonExec = sys.executable
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", FutureWarning
                )  # about pandas, which Spark asks for and does not use here
                return frame.mapInArrow(shipped(task, cloudpickle), columns)
        finally:
            context.pythonExec = python

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame when it is first read."""
        from pyspark import StorageLevel

        self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK_DESER))
        return self._kept[-1]

    def drop(self, frame: DataFrame) -> None:
        """Let a cached frame go."""
        self._kept.remove(frame)
        frame.unpersist()

    def _set(self, settings: dict[str, str]) -> None:
        """Set what is otherwise and can be set."""
        before = _settings(self.session)
        for name, value in settings.items():
            if before.get(name) != value and self.session.conf.isModifiable(name):
                self.session.conf.set(name, value)

    @property
    def parallel(self) -> int:
        """How many tasks run at a time."""
        return int(self.session.sparkContext.defaultParallelism)

    def leave(self) -> None:
        """Let everything go; a session that is gone has let go already."""
        for frame in self._kept:
            with contextlib.suppress(Exception):
                frame.unpersist()


def _settings(session: SparkSession) -> dict[str, str]:
    """All settings of a session."""
    if hasattr(session.conf, "getAll"):
        return dict(session.conf.getAll)
    found, pairs = {}, session.conf._jconf.getAll().iterator()  # before Spark 4
    while pairs.hasNext():
        pair = pairs.next()
        found[pair._1()] = pair._2()
    return found


def layout_of(schema: Schema) -> Layout:
    """The types of the codes of a table."""
    kinds = [np.dtype(code_type(facts)).str for facts in schema.predictors.values()]
    classes = "|u1" if schema.target is None else np.dtype(code_type(schema.attributes[schema.target])).str  # type: ignore[arg-type]
    return Layout(tuple(kinds), classes)


def coding_of(columns: Collection[str], schema: Schema) -> CodeRows:
    """What codes a table with these columns; it reads those that the coder names, in their order."""
    names = (*schema.predictors, *(() if schema.target is None else (schema.target,)))
    declared = declared_columns(lambda names: [one for one in names if one not in columns], schema, schema.person)
    coder = coder_of(declared, schema, schema.person)
    return CodeRows(coder, names, schema.target is not None, (*schema.shape, len(schema.classes)))


def keep_coded(room: Room, dataframe: DataFrame, schema: Schema) -> DataFrame:
    """Blocks, or rows of persons, and what there is to tell of them, which are coded when they are first read."""
    task = coding_of(dataframe.columns, schema)
    chosen = room.adopted(dataframe).select(*map(backticked, task.coder.columns))
    return room.keep(room.mapped(chosen, task, task.columns))


def _coded(room: Room, dataframe: DataFrame, schema: Schema, key: bytes) -> DataFrame:
    """Code the table in one scan, and refuse what does not fit."""
    coded = keep_coded(room, dataframe, schema)
    misfits: Counter[tuple[str, int]] = Counter()
    for (told,) in coded.select("told").where("told IS NOT NULL").collect():
        plain = json.loads(bytes(told))
        if isinstance(plain, dict):
            raise TableError(plain["problem"], plain["remedy"])
        misfits.update({(name, reason): rows for name, reason, rows in plain})
    refuse_misfits(Coded({}, 0, misfits_of(misfits)))
    return (coded if schema.person is None else _drawn(room, coded, schema, key)).select("block")


def _drawn(room: Room, coded: DataFrame, schema: Schema, key: bytes) -> DataFrame:
    """The blocks of the rows that count: the same rows that `tables.persons` draws by the same key.

    Spark does what DuckDB does there: it sorts beyond memory, and every lot is the same whenever it is computed again.
    """
    from pyspark.sql import Window, functions

    layout, copies = layout_of(schema), Window.partitionBy("person", "codes").orderBy("codes")
    copy = functions.concat(functions.row_number().over(copies).cast("string"), functions.lit(":")).cast("binary")
    numbered = coded.where("person IS NOT NULL").select("person", "codes", copy.alias("copy"))
    lot = functions.sha2(functions.concat(functions.lit(bytearray(key)), "copy", "codes", "person"), 256)
    place = functions.row_number().over(Window.partitionBy("person").orderBy(lot, "codes"))
    placed = numbered.select("codes", place.alias("place")).where(f"place <= {schema.rows_per_person}").select("codes")
    alone = coded.where("person IS NULL AND codes IS NOT NULL").select("codes")
    gather = GatherRows((*layout.columns, layout.classes), (*schema.shape, len(schema.classes)))
    drawn = room.keep(room.mapped(placed.union(alone), gather, CODED))
    drawn.count()
    room.drop(coded)
    return drawn


class SparkEngine:
    """Coded rows, cached on a cluster."""

    def __init__(self, room: Room, rows: DataFrame, layout: Layout) -> None:
        """Count the blocks of a frame."""
        self._room = room
        self._rows = rows
        self._layout = layout
        self._moved: tuple[Stage, DataFrame] | None = None
        """the moment of a tree at which nodes were kept, and the blocks with them"""
        self._last: Answer | None = None

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "SparkEngine(...)"

    def tally(self, tally: Tally) -> Counts:
        """Count everything the tally asks for in one job."""
        return guarded(lambda: self._counted(tally), _uncounted)

    def _counted(self, tally: Tally) -> Counts:
        before = self._moved
        asked = Asked.of(tally, self._last, None if before is None else before[0])
        counts = asked.counts(self._summed(asked.round, tally))
        if before is not None and before is not self._moved:
            self._room.drop(before[1])
        if tally.attributes or self._last is None:
            self._last = Answer(tally, counts)
        return counts

    def _summed(self, asked: Round, tally: Tally) -> Sums:
        frame, asked = self._standing(asked, tally)
        pieces = max(1, min(self._room.parallel, asked.held // PIECE))
        counted = self._room.mapped(frame, CountBlocks(asked, self._layout, pieces), SUMMED)
        added = self._room.mapped(counted.repartition(pieces, "piece"), AddSums(), SUMMED)
        package, _ = sources_of()
        found = [Renaming(bytes(sums), package, OURS).load() for _, sums in sorted(added.collect())]
        return Sums.joined(found) if found else Sums.none(asked)

    def _standing(self, asked: Round, tally: Tally) -> tuple[DataFrame, Round]:
        """The blocks to be counted, and what is left to do with them. Rows that would have far to go are kept anew.

        Nothing runs yet: rows move when they are first counted. A tree that has not grown from the one that they know
        is walked from its root.
        """
        steps = asked.steps
        if steps is None:
            return self._rows, asked
        frame = self._moved[1] if steps.grown and self._moved is not None else self._rows
        if steps.number <= STEPS or not isinstance(tally.partition, Tree):
            return frame, asked
        moved = self._room.keep(self._room.mapped(frame, MoveRows(asked, self._layout), STANDING))
        self._moved = (tally.partition.stage, moved)
        return moved, replace(asked, steps=steps._replace(number=0, grown=True))


def _unread(error: BaseException) -> SfumatoError:
    told = str(error)
    if absent := ABSENT.search(told):
        return TableError(
            f"Python on every executor must have NumPy and Arrow, and one lacks {absent[1]}",
            "Install numpy and pyarrow there, or name another Python with PYSPARK_PYTHON.",
        )
    if OTHER_PYTHON in told:
        return TableError(
            "Python on every executor must be of the driver's version, and is not",
            "Name another Python with PYSPARK_PYTHON.",
        )
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


def shipped(task: Task, cloudpickle: Any) -> Task:
    """Wrap a task so that Spark's own pickler can send it to executors.

    What an executor calls first goes by value, and uses nothing but the standard library.
    """
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    (package, sources), packed = sources_of(), pickle.dumps(task, protocol=5)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        _install(package, sources)
        yield from Renaming(packed, OURS, package).load()(batches)

    return run


@cache
def sources_of() -> tuple[str, dict[str, str]]:
    """The text of the modules that travel, in a package of another name: it is no other version's, nor the user's."""
    texts = {name: "" if name in PACKAGES else inspect.getsource(import_module(name)) for name in MODULES}
    package = f"_{OURS}_{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}"
    imports = re.compile(rf"^((?:from|import) ){OURS}\b", re.MULTILINE)
    return package, {
        name.replace(OURS, package, 1): imports.sub(rf"\g<1>{package}", text) for name, text in texts.items()
    }


def _install(package: str, sources: dict[str, str]) -> None:
    """Make the modules, once in each process of an executor."""
    if package in sys.modules:
        return
    for name, source in sources.items():
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)


class Renaming(pickle.Unpickler):
    """Reads what was pickled where our package had another name."""

    def __init__(self, packed: bytes, old: str, new: str) -> None:
        """Read some bytes."""
        super().__init__(io.BytesIO(packed))
        self._old, self._new = old, new

    def find_class(self, module: str, name: str) -> Any:
        """Look a name up."""
        first, dot, rest = module.partition(".")
        return super().find_class(f"{self._new if first == self._old else first}{dot}{rest}", name)
