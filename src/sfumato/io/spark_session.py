"""Spark's session: the one that runs, as it is, or one that is begun for a publication and ends with it.

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

LOCAL = "local[*]"
LOCAL_PARTS = "8"
"""On one machine, Spark's own two hundred parts for every grouping cost more than the counting."""
STANDALONE = "spark://"
MASTERS = ("local", STANDALONE, "yarn", "k8s://")
ANSWER_SECONDS = 10
PARTS = "spark.sql.shuffle.partitions"
ROWS_BEYOND_MEMORY = "spark.local.dir"
ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""A session on one machine listens to nobody else."""
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
"""Whatever Spark would log of a failure, it quotes values; and its pages are open to the whole network."""


@contextmanager
def spark_session(master: str | None, home: Path) -> Iterator[Any]:
    """Give the session that runs in this process, or begin one on a cluster and end it; on this machine, what it writes
    beside memory goes to `home`.
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
    """Give the session of this process, whichever thread began it; a context alone is given one."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise TableError("engine spark must find PySpark, and does not", "Install pyspark.") from None
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def _refuse_other(running: Any, master: str | None) -> None:
    """Refuse another cluster than that of the session that there is."""
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


def _unstarted(_: BaseException) -> TableError:
    return TableError(
        "Spark must start, and does not",
        "Install Java 17 or later and set JAVA_HOME, and check that --master names a cluster that runs.",
    )
