"""A Spark frame to count where it lies: the user's own, or one on Parquet files that the cluster can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import TableError
from sfumato.guard import guarded
from sfumato.io.databases import is_database
from sfumato.io.frames import is_spark
from sfumato.io.parts import columns_of, parquet_files
from sfumato.io.spark_session import spark_session
from sfumato.io.streams import refuse_repeated

PATTERN_MARKS = "*?[]{}\\"
HIDDEN = (".", "_")
"""Files whose names begin so are none to Spark."""
QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark's that repeat the values in Spark's messages."""


@contextmanager
def spark_frame(source: Any, master: str | None, home: Path) -> Iterator[Any]:
    """Give a frame for as long as it is needed; a session that was begun for it ends with it, and keeps what it writes
    in `home`. Meanwhile PySpark quotes no values.
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
    """List Parquet files; refuse what Spark cannot read where it lies."""
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
    """Refuse a frame that cannot be computed again to the same rows, should a worker be lost, or whose columns Spark
    confuses: it does not see case.
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
