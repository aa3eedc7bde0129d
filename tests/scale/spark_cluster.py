"""A Spark cluster of this machine's own: a master and two workers on loopback, started and stopped by the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

LOOPBACK = "127.0.0.1"
HOME = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    """The processes and the address of a cluster."""

    url: str
    master: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def processes_of_last(self) -> int:
        """Count the processes of the worker that would be killed: itself and its executors."""
        return sum(_group_of(entry) == self.workers[-1].pid for entry in Path("/proc").glob("[0-9]*"))

    def kill_a_worker(self) -> None:
        """End a worker, and the executors that it started, as a machine that loses its power ends."""
        _end(self.workers.pop())


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a master and two workers; end all that is left of them."""
    command = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
    started = Cluster("", _started(folder, "master", command), [])
    try:
        address = rf"Starting Spark master at (spark://{re.escape(LOOPBACK)}:[0-9]+)"
        started.url = _awaited(folder / "master.log", address)[1]
        for number in range(2):
            started.workers.append(_started(folder, f"worker{number}", _worker(folder, number, started.url)))
        for number in range(2):
            _awaited(folder / f"worker{number}.log", "Successfully registered with master")
        yield started
    finally:
        for process in (*started.workers, started.master):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group. It has not been waited for, so that its number is still its own."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _worker(folder: Path, number: int, url: str) -> list[str]:
    where = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0", "--work-dir", str(folder / f"work{number}")]
    return ["org.apache.spark.deploy.worker.Worker", *where, "--cores", "1", "--memory", "1g", url]


def _started(folder: Path, name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, so that its children end with it."""
    environment = os.environ | {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_NO_DAEMONIZE": "1"}
    command = [str(HOME / "bin" / "spark-class"), *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True, cwd=folder
        )


def _group_of(process: Path) -> int:
    """Give the process group, which stands third after the name in parentheses."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[2])
    except OSError:
        return 0


def _awaited(log: Path, pattern: str, seconds: float = 180) -> re.Match[str]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} must say that it has started")
