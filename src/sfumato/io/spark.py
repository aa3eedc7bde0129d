"""A Spark frame to count where it lies: the user's own, or one on Parquet files that the cluster can read.

Spark is loaded only when it is asked for. What it says when something fails holds paths and rows, and is not repeated.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.errors import TableError
from sfumato.guard import guarded
from sfumato.io.databases import is_database
from sfumato.io.frames import is_spark
from sfumato.io.parts import columns_of, parquet_files

LOCAL = "local[*]"
LOCAL_PARTS = "8"
"""On one machine, Spark's own two hundred parts for every grouping cost more than the counting."""
STANDALONE = "spark://"
MASTERS = ("local", STANDALONE, "yarn", "k8s://")
ANSWER_SECONDS = 10
PARTS = "spark.sql.shuffle.partitions"
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
"""Whatever Spark would log of a failure, it quotes values; and its pages are open to the whole network."""
PATTERN_MARKS = "*?[]{}\\"


@contextmanager
def spark_frame(source: Any, master: str | None) -> Iterator[Any]:
    """Give a frame for as long as it is needed; a session that was begun for it ends with it."""
    if is_spark(source):
        _refuse_gone(source)
        yield source
        return
    files = _files(source)
    sessions = _spark()
    before = guarded(sessions.getActiveSession, _unstarted)
    session = before or guarded(lambda: _begun(sessions, master), _unstarted)
    try:
        yield guarded(lambda: session.read.parquet(*map(str, files)), _unread)
    finally:
        if before is None:
            with suppress(Exception):  # a session that is gone needs no end
                session.stop()


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
    return files


def _spark() -> Any:
    """Load Spark's sessions, if it is installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise TableError("engine spark must find PySpark, and does not", "Install pyspark.") from None
    return SparkSession


def _begun(sessions: Any, master: str | None) -> Any:
    """Begin a session."""
    if _has_no_java():
        raise _unstarted(FileNotFoundError())
    master = master or LOCAL
    _refuse_silent(master)
    builder = sessions.builder.appName("sfumato").master(master)
    for name, value in (QUIET | ({PARTS: LOCAL_PARTS} if master.startswith("local") else {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _has_no_java() -> bool:
    """Tell whether Spark would look for Java in vain, which it tells in many lines; one's own Spark may know better."""
    if any(name in os.environ for name in ("SPARK_HOME", "SPARK_CONF_DIR")):
        return False
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home, "bin", "java")) if home else "java") is None


def _refuse_silent(master: str) -> None:
    """Refuse what names no cluster, and one of which no machine answers: Spark would try for minutes."""
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


def _refuse_gone(frame: Any) -> None:
    """Refuse a frame whose session has ended; only work tells."""
    guarded(lambda: frame.sparkSession.range(1).count(), _gone)


def _gone(_: BaseException) -> TableError:
    return TableError("a Spark frame must belong to a session that runs, and does not", "Begin one and read it again.")


def _unstarted(_: BaseException) -> TableError:
    return TableError(
        "Spark must start, and does not",
        "Install Java 17 or later and set JAVA_HOME, and check that --master names a cluster that runs.",
    )


def _unread(_: BaseException) -> TableError:
    return TableError(
        "Spark must be able to read the Parquet files, and is not", "Put them where every worker can read them."
    )
