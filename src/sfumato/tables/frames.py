"""Open frames of a program: pandas, Polars, Arrow, DuckDB relations and Spark; and Spark frames to count in Spark.

A frame in memory is read slice by slice where it is; a lazy one is computed in batches, of the needed columns alone. So
no more of a frame than its codes is ever held twice.

To be counted by a cluster, a Spark frame is the user's own, or one on Parquet files that the cluster can read. Its
session is the one that runs, or one that is begun for a publication and ends with it. Spark is loaded only when it is
asked for. Its messages hold paths and rows, and are not repeated.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from sfumato.errors import TableError, guarded, unreadable
from sfumato.tables import streams
from sfumato.tables.databases import is_database
from sfumato.tables.streams import Read, Table, columns_of, parquet_files, refuse_repeated
from sfumato.tables.values import text_of

KNOWN = "a pandas, Polars, Arrow, DuckDB or Spark table"
"""The frames that can be read, as errors list them."""
LOOSE_TYPES = (nw.Object, nw.Unknown, nw.Int128, nw.UInt128)
"""Types of columns whose values may be anything, or for which Arrow has no type."""


def open_frame(source: Any, kinds: str) -> Table:
    """Open a frame; `kinds` are the endings of files that could be given instead, for an error."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source)
    frame = _wrapped(source, kinds)
    columns = guarded(lambda: list(frame.collect_schema().names()), _uncomputable)
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TableError("a frame must have columns, and their names must be text", "Rename them.")
    return Table(columns, _reading(frame))


def is_spark(source: Any) -> bool:
    """Whether a source is a Spark frame, classic or connected; Spark is not loaded."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "toLocalIterator")


def _wrapped(source: Any, kinds: str) -> Any:
    def failure(error: BaseException) -> TableError:
        if isinstance(error, TypeError):
            return TableError(
                f"source ({type(source).__name__}) must be a path or a frame",
                f"Give a file that ends in {kinds}, or {KNOWN}.",
            )
        if "Duplicate" in type(error).__name__:
            return TableError("columns of a frame must have distinct names, and do not", "Rename all but one.")
        return _uncomputable(error)

    return guarded(lambda: nw.from_native(source), failure)


def _uncomputable(_: BaseException) -> TableError:
    return TableError("a lazy frame must be computable, and failed", "Collect it yourself to see why.")


def _reading(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Read:
    """The function that streams some columns of a frame."""
    if not isinstance(frame, nw.LazyFrame):
        return lambda names: _slices(frame, names)
    native, kind = nw.to_native(frame), frame.implementation
    if kind.is_duckdb():
        return lambda names: _computed(lambda: streams.reader_of(_chosen(native, names)), names)
    if is_spark(native):
        return lambda names: _computed(lambda: _spark_batches(native.select(*map(backticked, names))), names)
    if hasattr(native, "collect_batches"):
        return lambda names: _parts(_polars_batches(native.select(list(names))), names)
    return lambda names: _parts((frame.select(list(names)).collect() for _ in range(1)), names)


def _chosen(relation: Any, names: Sequence[str]) -> Any:
    return relation.project(", ".join(streams.quoted(name) for name in names))


def backticked(name: str) -> str:
    """A name as Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def _spark_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    """Stream a Spark frame, partition by partition."""
    rows = frame.toLocalIterator(prefetchPartitions=True)
    while part := list(itertools.islice(rows, streams.BATCH_ROWS)):
        columns = [[text_of(value) for value in column] for column in zip(*part, strict=True)]
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.large_string()) for column in columns], frame.columns)


def _polars_batches(frame: Any) -> Iterator[Any]:
    """Stream a lazy Polars frame by its streaming engine."""
    for batch in frame.collect_batches(chunk_size=streams.BATCH_ROWS, maintain_order=False):
        yield nw.from_native(batch, eager_only=True)


def _computed(begin: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream the batches that `begin` gives, guarding each step."""
    batches = guarded(begin, _uncomputable)
    while (batch := guarded(lambda: next(batches, None), _uncomputable)) is not None:
        yield pa.RecordBatch.from_arrays(batch.columns, names=list(names))


def _parts(steps: Iterator[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream frames that are computed one after the other."""
    while (part := guarded(lambda: next(steps, None), _uncomputable)) is not None:
        yield from _slices(part, names)


def _stream(reader: Any) -> Table:
    """Open a stream of Arrow batches, which can be read once."""
    used = iter([reader])

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if next(used, None) is None:
            raise TableError(
                "a stream of batches must be read once, and would have to be read again",
                "Give a table or a file.",
            )
        return _computed(lambda: (batch.select(list(names)) for batch in reader), names)

    columns = list(reader.schema.names)
    streams.refuse_repeated(columns)
    return Table(columns, read)


def _slices(frame: nw.DataFrame[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(len(frame), 1), streams.BATCH_ROWS):
        yield pa.RecordBatch.from_arrays(
            [_arrow(frame[name][start : start + streams.BATCH_ROWS], name) for name in names], names=list(names)
        )


def _arrow(series: nw.Series[Any], name: str) -> Any:
    """One column as Arrow: by its type, or, where that does not fix Arrow's, value by value to texts."""
    return guarded(lambda: _by_value(series) if _is_loose(series) else _by_type(series), unreadable(name))


def _by_type(series: nw.Series[Any]) -> Any:
    try:
        array: Any = series.to_arrow()
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except Exception:  # a value or chunks that Arrow does not take; each is then read by itself, to the same effect
        return _by_value(series)


def _by_value(series: nw.Series[Any]) -> Any:
    return pa.array([text_of(value) for value in series.to_list()], pa.large_string())


def _is_loose(series: nw.Series[Any]) -> bool:
    """Whether values may be of any type, so that Arrow would choose one by looking at all of them.

    The frame's own type decides: what Narwhals says of a pandas object column is a guess from its first values.
    """
    native = series.to_native()
    categories = getattr(getattr(native, "cat", None), "categories", None)
    own_types = {str(getattr(native, "dtype", "")), str(getattr(categories, "dtype", ""))}
    return series.dtype in LOOSE_TYPES or "object" in own_types


LOCAL = "local[*]"
"""The master where none is named: this machine."""
LOCAL_PARTS = "8"
"""The parts of a grouping on one machine, where Spark's own two hundred cost more than the counting."""
STANDALONE = "spark://"
"""How masters begin that are Spark's own clusters."""
MASTERS = ("local", STANDALONE, "yarn", "k8s://")
"""How masters begin."""
ANSWER_SECONDS = 10
"""How long to wait for a cluster to answer."""
PARTS = "spark.sql.shuffle.partitions"
"""Spark's setting of the parts of a grouping."""
ROWS_BEYOND_MEMORY = "spark.local.dir"
"""Spark's setting of the folder for what does not fit in memory."""
ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Settings with which a session on one machine listens to no other machine."""
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
"""Settings with which Spark logs nothing and shows no pages: logs quote values, and pages are open to the network."""


@contextmanager
def spark_session(master: str | None, home: Path) -> Iterator[Any]:
    """The session that runs in this process, or one that is begun here, on a cluster or this machine, and ended after.

    On this machine, a new session puts what does not fit in memory into `home`.
    """
    running = guarded(_running, _unstarted)
    if running is not None:
        _refuse_other(running, master)
        yield running
        return
    begun = guarded(lambda: _begun(master or LOCAL, home), _unstarted)
    try:
        yield begun
    finally:
        with suppress(Exception):  # a session that is gone needs no end
            begun.stop()


def _running() -> Any:
    """The session of this process, whichever thread began it; a context without a session gets one."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise TableError("engine spark must find PySpark, and does not", "Install pyspark.") from None
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def _refuse_other(running: Any, master: str | None) -> None:
    """Refuse another cluster than that of the running session."""
    own = guarded(lambda: str(running.sparkContext.master), _unstarted)
    if master is not None and master != own:
        raise TableError(
            f"master ({master[:200]}) must be that of the session that runs, {own[:200]}",
            "Stop the session, or leave the master out.",
        )


def _begun(master: str, home: Path) -> Any:
    from pyspark.sql import SparkSession

    if _has_no_java():
        raise _unstarted(FileNotFoundError())
    _refuse_silent(master)
    settings = dict(QUIET)
    if master.startswith("local"):
        settings |= ALONE | {PARTS: LOCAL_PARTS, ROWS_BEYOND_MEMORY: str(home)}
    builder = SparkSession.builder.appName("sfumato").master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _has_no_java() -> bool:
    """Whether Spark would find no Java, which it says in many lines; a Spark that the user set up may know better."""
    if any(name in os.environ for name in ("SPARK_HOME", "SPARK_CONF_DIR")):
        return False
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home, "bin", "java")) if home else "java") is None


def _refuse_silent(master: str) -> None:
    """Refuse a master that names no cluster, or a cluster of which no machine answers: Spark would try for minutes."""
    if not master.startswith(MASTERS):
        raise TableError(
            f"master ({master[:200]}) must begin with one of {', '.join(MASTERS)}",
            "Give the URL of a cluster, or local[*] for this machine.",
        )
    hosts = [host.rpartition(":") for host in master.removeprefix(STANDALONE).split(",")]
    if master.startswith(STANDALONE) and not any(_answers(name, port) for name, _, port in hosts):
        raise TableError(
            f"master ({master[:200]}) must be a cluster that answers, and does not",
            "Start it, or give another --master.",
        )


def _answers(host: str, port: str) -> bool:
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def _unstarted(_: BaseException) -> TableError:
    return TableError(
        "Spark must start, and does not",
        "Install Java 17 or later and set JAVA_HOME, and check that --master names a cluster that runs.",
    )


PATTERN_MARKS = "*?[]{}\\"
"""The marks of a pattern to Spark."""
HIDDEN = (".", "_")
"""Spark does not see files whose names begin so."""
QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that repeat the values in Spark's messages."""


@contextmanager
def spark_frame(source: Any, master: str | None, home: Path) -> Iterator[Any]:
    """A Spark frame for as long as the block lasts, during which PySpark logs no values.

    A session that is begun for it ends with the block, and keeps what it writes in `home`.
    """
    with _without_quotes():
        if is_spark(source):
            yield _fit(source)
            return
        files = list(map(str, _files(source)))
        with spark_session(master, home) as session:
            read = session.read.option("recursiveFileLookup", "true")
            yield _fit(guarded(lambda: read.parquet(*files), _unread))


def _files(source: Any) -> list[Path]:
    """The Parquet files of a source; refuse what Spark cannot read where it lies."""
    path = Path(source) if isinstance(source, str | Path) else None
    if path is None or is_database(path) or not (path.suffix.lower() == ".parquet" or path.is_dir()):
        raise TableError("engine spark must be given a Spark frame or Parquet files", "Use another engine.")
    files = parquet_files(path)
    columns_of(files)
    if any(mark in str(file) for file in files for mark in PATTERN_MARKS):
        raise TableError(
            f"names of files for Spark must have none of {PATTERN_MARKS}, which it takes for patterns",
            "Rename them, or use another engine.",
        )
    if any(file.name.startswith(HIDDEN) for file in files):
        raise TableError(
            "names of files for Spark must not begin with a dot or an underscore: it does not see such files",
            "Rename them, or use another engine.",
        )
    return files


def _fit(frame: Any) -> Any:
    """Refuse a frame that may give other rows when it is computed again, as it is when a worker is lost.

    Columns that differ in case only are refused, too: Spark would confuse them.
    """
    guarded(lambda: frame.sparkSession.range(1).count(), _gone)
    if not hasattr(frame, "_jdf"):
        raise TableError("a Spark frame must be of a classic session, not of Spark Connect", "Use a classic one.")
    refuse_repeated([name.lower() for name in frame.columns])
    if not guarded(lambda: frame._jdf.queryExecution().analyzed().deterministic(), _gone):
        raise TableError(
            "a Spark frame must give the same rows whenever it is computed, and this one may not",
            "Leave chance out of it, such as rand() or uuid(), or write it to a table first.",
        )
    return frame


@contextmanager
def _without_quotes() -> Iterator[None]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        yield
        return
    loggers = [PySparkLogger.getLogger(name) for name in QUOTING]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _gone(_: BaseException) -> TableError:
    return TableError("a Spark frame must belong to a session that runs, and does not", "Begin one and read it again.")


def _unread(_: BaseException) -> TableError:
    return TableError(
        "Spark must be able to read the Parquet files, and is not", "Put them where every worker can read them."
    )
