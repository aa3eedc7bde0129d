"""Whose session it is: the user's is used as it is and stays; one of ours is private and goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import command_line

CANARY = "KANARIENVOGEL"
BEGINNING = """
import threading, warnings
from pathlib import Path
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from sfumato import Account, Laplace, Schema
from sfumato.engines.counting import Counting
from sfumato.errors import SfumatoError
warnings.simplefilter("ignore")
SCHEMA = Schema.load("people.schema.yaml")
METHOD = Laplace()

def users(**more):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "3")
    for name, value in more.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session

def publish(table="people.parquet", **how):
    return Account("people.ledger", SCHEMA).publish(table, METHOD, 1, unsafe_seed=1, engine="spark", **how)

def told(action):
    try:
        action()
    except SfumatoError as error:
        return str(error)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command_line.write(command_line.people(), tmp_path / "people.parquet")
    (tmp_path / "people.schema.yaml").write_text(command_line.SCHEMA)
    return tmp_path


def said(folder: Path, code: str) -> tuple[str, str]:
    """Run code in a process of its own, since a session is one for each."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", BEGINNING + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


USERS = f"""
import hashlib
def digest():
    return hashlib.sha256(publish().model.counts.counts.tobytes()).hexdigest()
session = users()
plain = digest()
thread = threading.Thread(target=publish)
thread.start(); thread.join()
print(session.range(3).count(), session.conf.get("spark.sql.shuffle.partitions"))
print(told(lambda: publish(master="spark://127.0.0.1:1")))
broken = "select name, cast(concat('{CANARY}', sex) as int) age, sex, job, planet, income from t"
for query in ("select *, rand() r from t", "select 1 a, 2 A", broken):
    session.read.parquet("people.parquet").createOrReplaceTempView("t")
    print(told(lambda: publish(session.sql(query))))
session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
print(plain == digest())
Path("people.parquet").rename("_x.parquet")
print(told(lambda: publish("_x.parquet")))
"""


def test_a_session_of_the_user_is_used_as_it_is_and_stays_and_no_value_is_told(folder: Path) -> None:
    out, err = said(folder, USERS)
    alive, other, chance, case, value, spelling, hidden = out.splitlines()
    assert alive == "3 3"
    assert other == (
        "master (spark://127.0.0.1:1) must be that of the session that runs, local[1]. "
        "Stop the session, or leave the master out."
    )
    assert "must give the same rows whenever it is computed" in chance
    assert "must have distinct names" in case
    assert "must read the table to its end" in value
    assert spelling == "True"
    assert "must not begin with a dot or an underscore" in hidden
    assert CANARY not in out + err


def test_what_our_own_session_writes_is_for_its_owner_alone_and_goes(folder: Path) -> None:
    out, _ = said(
        folder,
        """
with Counting.of("spark", scratch="rows").opened("people.parquet", SCHEMA):
    written = list(Path("rows").rglob("blockmgr*"))
    print(len(written), {oct(path.parent.stat().st_mode) for path in written}, {path.parent.parent for path in written})
    print(SparkSession.getActiveSession().conf.get("spark.driver.host"))
print(Path("rows").exists())
""",
    )
    assert out.splitlines() == ["1 {'0o40700'} {PosixPath('rows')}", "127.0.0.1", "False"]
