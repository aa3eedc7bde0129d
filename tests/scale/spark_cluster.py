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

    def kill_a_worker(self) -> None:
        """End a worker, and the executors that it started, as a machine that loses its power ends."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a master and two workers; end all that is left of them."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        master, url = _started_master(folder)
        started.append(master)
        workers = [_started(folder, f"worker{number}", _worker(folder, number, url)) for number in range(2)]
        started += workers
        for number in range(2):
            _awaited(folder / f"worker{number}.log", "Successfully registered with master")
        yield Cluster(url, master, list(workers))
    finally:
        for process in reversed(started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _started_master(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    command = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
    process = _started(folder, "master", command)
    found = _awaited(folder / "master.log", rf"Starting Spark master at (spark://{re.escape(LOOPBACK)}:[0-9]+)")
    return process, found[1]


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


def _awaited(log: Path, pattern: str, seconds: float = 180) -> re.Match[str]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} must say that it has started")
