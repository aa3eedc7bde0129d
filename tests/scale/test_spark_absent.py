"""Spark that is not there: no Java, no cluster, no library. One sentence, nothing spent, nothing written."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import command_line

PUBLISH = "from sfumato.cli import main; main()"
IN_PYTHON = """
from pathlib import Path
from sfumato import Account, DiffGen, Schema
from sfumato.errors import SfumatoError
account = Account("people.ledger", Schema.load("people.schema.yaml"))
try:
    account.publish("people.parquet", DiffGen(specializations=2), 1, engine="spark")
except SfumatoError as error:
    print(type(error).__name__, error.__context__, account.statement().spent)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command_line.write(command_line.people(), tmp_path / "people.parquet")
    (tmp_path / "people.schema.yaml").write_text(command_line.SCHEMA)
    return tmp_path


def run(folder: Path, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own; nothing is known of any Java or Spark but what is given."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK"))}
    known |= {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, timeout=300, check=False)


def publish(folder: Path, *more: str, **environment: str) -> str:
    """Publish with Spark in vain; give the sentence that says why."""
    before = sorted(folder.iterdir())
    asked = ["publish", "people.parquet", "--epsilon", "1", "--out", "release", "--engine", "spark", *more]
    ran = run(folder, PUBLISH, *asked, **environment)
    assert ran.returncode == 2, ran.stderr
    assert sorted(folder.iterdir()) == before, "nothing is written"
    assert "Exception" not in ran.stderr
    assert "\tat " not in ran.stderr
    assert "Traceback" not in ran.stderr
    (told,) = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    return told


def test_no_java(folder: Path) -> None:
    told = publish(folder, PATH=str(folder))
    assert told.startswith("error: Spark must start, and does not. Install Java 17")
    told = publish(folder, JAVA_HOME=str(folder))
    assert told.startswith("error: Spark must start, and does not. Install Java 17")


def test_no_java_in_python(folder: Path) -> None:
    ran = run(folder, IN_PYTHON, PATH=str(folder))
    assert ran.stdout == "TableError None 0\n", ran.stderr
    assert ran.stderr == ""


def test_no_cluster_is_told_at_once(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        told = publish(folder, "--master", master)
    assert told == f"error: master ({master}) must be a cluster that answers, and does not. " + (
        "Start it, or give another --master."
    )
    assert "must be a cluster that answers" in publish(folder, "--master", "spark://nowhere.invalid")


def test_no_such_kind_of_cluster(folder: Path) -> None:
    assert "master (nowhere) must begin with one of local, spark://" in publish(folder, "--master", "nowhere")


def test_no_pyspark(folder: Path) -> None:
    (folder / "broken" / "pyspark").mkdir(parents=True)
    (folder / "broken" / "pyspark" / "__init__.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(folder / "broken"), *sys.path])
    assert publish(folder, PYTHONPATH=path) == "error: engine spark must find PySpark, and does not. Install pyspark."
