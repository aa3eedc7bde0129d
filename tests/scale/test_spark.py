"""Spark for real: a cluster of two workers, one of which dies in the middle, and sessions that are gone."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_cluster import LOOPBACK, Cluster, cluster
from spark_sessions import local_session

from engines_under_test import in_memory
from replay import Recorder, assert_same_draft, run
from sfumato import Account, DiffGen, DiffMulti, Laplace, Schema, datasets
from sfumato.engines import spark
from sfumato.engines.spark import coding_of, spark_engine
from sfumato.errors import CountError, TableError
from sfumato.geometry.grid import Grid
from sfumato.privacy.tally import CountEngine, Counts, Tally
from sfumato.tables.coders import BatchCoder, CategoryCoder
from test_engine_releases import published

warnings.simplefilter("ignore", FutureWarning)
CANARY = "KANARIENVOGEL"


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def connected(url: str) -> SparkSession:
    if (other := SparkSession.getActiveSession()) is not None:
        other.stop()
    builder = SparkSession.builder.master(url).appName("sfumato")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sparkContext.pythonExec = sys.executable
    return session


class Fatal:
    """An engine of whose cluster a worker dies while a round runs, with its tasks and all that it had cached."""

    def __init__(self, engine: CountEngine, doomed: Cluster, session: SparkSession, at: int) -> None:
        self.engine, self.doomed, self.session, self.left = engine, doomed, session, at
        self.jobs: list[int] = []
        """the jobs that ran when it died"""

    def tally(self, tally: Tally) -> Counts:
        self.left -= 1
        if self.left > 0 or self.jobs:
            return self.engine.tally(tally)
        over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(self._kill_when_all_work, over)
            try:
                return self.engine.tally(tally)
            finally:
                over.set()
                self.jobs = watching.result()

    def _kill_when_all_work(self, over: threading.Event) -> list[int]:
        """Wait until both executors have tasks of a job; kill one, and give the jobs of that moment.

        A round may be over before that is seen; then the next one is watched.
        """
        tracker = self.session.sparkContext.statusTracker()
        executors: Any = self.session.sparkContext._jsc.sc().statusTracker()
        while not over.wait(0.002):
            working = [one.numRunningTasks() for one in executors.getExecutorInfos()]
            if sum(tasks > 0 for tasks in working) == 2 and (jobs := list(tracker.getActiveJobsIds())):
                assert self.doomed.processes_of_last() >= 2, "the worker has an executor"
                self.doomed.kill_a_worker()
                return jobs
        return []


ROWS = 800_000
MIXED = {f"a{place}": (2 * place + 1, place, place**2) for place in range(6)}
"""The digits of a row's number, mixed: rows that are all different, and can be made anywhere."""
NUMBERS = Schema.parse({"attributes": {name: {"kind": "numeric", "lower": 0, "upper": 99} for name in MIXED}})


def numbers_in_memory() -> pa.Table:
    row = np.arange(ROWS)
    return pa.table(
        {
            name: ((row * a + row // 100 * b + row // 10_000 * c) % 100).astype(np.int8)
            for name, (a, b, c) in MIXED.items()
        }
    )


def numbers_on(session: SparkSession) -> DataFrame:
    mixed = "CAST((id * {} + id DIV 100 * {} + id DIV 10000 * {}) % 100 AS TINYINT) AS {}"
    return session.range(0, ROWS, 1, 6).selectExpr(*(mixed.format(*odd, name) for name, odd in MIXED.items()))


def test_a_worker_dies_in_the_middle_of_a_round_and_the_release_is_the_same(
    two_workers: Cluster, tmp_path: Path
) -> None:
    method = DiffMulti(specializations=4)
    with in_memory(numbers_in_memory(), NUMBERS) as reference:
        expected = published(method, NUMBERS, reference, tmp_path / "expected")
    session = connected(two_workers.url)
    try:
        assert _executors(session) == 2
        with spark_engine(numbers_on(session), NUMBERS) as engine:
            fatal = Fatal(engine, two_workers, session, at=3)
            found = published(method, NUMBERS, fatal, tmp_path / "found")
        assert found == expected
        assert fatal.jobs, "a job was under way"
        assert _lost(session) == 1, "an executor was lost, which had a task of it"
        assert len(two_workers.workers) == 1
        assert not session.catalog.listTables(), "no view is left"
        assert session.sparkContext._jsc.getPersistentRDDs().size() == 0, "nothing stays cached"
    finally:
        session.stop()


def _lost(session: SparkSession) -> int:
    """Count the executors that were there and are gone; Spark books this in its own time."""
    store: Any = session.sparkContext._jsc.sc().statusStore()
    for _ in range(100):
        listed = store.executorList(False)
        if lost := sum(not listed.apply(place).isActive() for place in range(listed.length())):
            return lost
        time.sleep(0.1)
    return 0


def _executors(session: SparkSession) -> int:
    """Count the executors that have joined, waiting for the second: the driver is listed, too."""
    context: Any = session.sparkContext._jsc.sc()
    for _ in range(100):
        if context.statusTracker().getExecutorInfos().__len__() == 3:
            return 2
        time.sleep(0.3)
    return int(context.statusTracker().getExecutorInfos().__len__()) - 1


def test_a_release_is_the_same_on_the_cluster_that_is_left(two_workers: Cluster, tmp_path: Path) -> None:
    adult = datasets.adult()
    pq.write_table(adult.table.slice(0, 3000), tmp_path / "adult.parquet")
    session = connected(two_workers.url)
    try:
        frame = session.read.parquet(str(tmp_path / "adult.parquet"))
        with in_memory(adult.table.slice(0, 3000), adult.schema) as reference:
            expected, _ = run(DiffGen(), adult.schema, reference, Fraction(1), Recorder(3))
        with spark_engine(frame, adult.schema) as engine:
            assert_same_draft(expected, run(DiffGen(), adult.schema, engine, Fraction(1), Recorder(3))[0])
    finally:
        session.stop()


def few(value: str = "a") -> tuple[list[tuple[str, int]], Schema]:
    facts = {"x": {"kind": "categorical", "taxonomy": ["a", "b"]}, "n": {"kind": "numeric", "lower": 0, "upper": 9}}
    return [("a", 1), ("b", 2), (value, 3)], Schema.parse({"confirmed": True, "attributes": facts})


def test_a_session_that_is_gone_is_told_in_one_sentence(tmp_path: Path) -> None:
    session = connected("local[1]")
    rows, schema = few()
    tally = Tally(Grid.whole(schema.shape), 1, (0, 1))
    with spark_engine(session.createDataFrame(rows, "x string, n int"), schema) as engine:
        assert engine.tally(tally).by_place.tolist() == [[3]]
        session.stop()
        with pytest.raises(CountError, match="Spark must answer a round") as caught:
            engine.tally(tally)
    assert caught.value.__context__ is None
    frame = connected("local[1]").createDataFrame(rows, "x string, n int")
    frame.sparkSession.stop()
    account = Account(tmp_path / "people.ledger", schema)
    with pytest.raises(TableError, match="a Spark frame must belong to a session that runs") as refused:
        account.publish(frame, Laplace(), 1)
    assert refused.value.__context__ is None
    assert account.statement().spent == 0


def test_what_does_not_fit_is_refused_without_a_value() -> None:
    session = local_session()
    rows, schema = few(CANARY)
    engine = spark_engine(session.createDataFrame(rows, "x string, n int"), schema)
    with pytest.raises(TableError, match="x: value not in the taxonomy") as caught, engine:
        pass
    assert CANARY not in str(caught.value)
    absent = spark_engine(session.sql("SELECT 'a' AS x"), schema)
    with pytest.raises(TableError, match="lacks n"), absent:
        pass


def test_what_our_own_code_refuses_on_an_executor_is_told_in_its_words() -> None:
    rows, schema = few()
    broken = replace(
        coding_of(["x", "n"], schema), coder=BatchCoder(dict.fromkeys(["x", "n"], CategoryCoder(None, np.uint8)))
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spark, "coding_of", lambda *_: broken)
        engine = spark_engine(local_session().createDataFrame(rows, "x string, n int"), schema)
        with pytest.raises(TableError, match="column x must be of a type that can be read"), engine:
            pass


BARE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ModuleNotFoundError("No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize("name", ["pyarrow", "numpy"])
def test_an_executor_that_lacks_a_library_is_told_before_anything_is_paid(name: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BARE.format(name=name))
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    bare.chmod(0o700)
    rows, schema = few()
    frame = local_session().createDataFrame(rows, "x string, n int")
    account = Account(tmp_path / "people.ledger", schema)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spark.sys, "executable", str(bare))
        with pytest.raises(TableError, match=f"one lacks {name}") as refused:
            account.publish(frame, Laplace(), 1)
    assert refused.value.__context__ is None
    assert account.statement().spent == 0


def test_truncated_parquet_is_told_in_one_sentence(tmp_path: Path) -> None:
    adult = datasets.adult()
    path = tmp_path / "adult.parquet"
    pq.write_table(adult.table, path, row_group_size=5000)
    frame = local_session().read.parquet(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3] + b"\xff" * (len(whole) // 3) + whole[2 * len(whole) // 3 :])
    broken = spark_engine(frame, adult.schema)
    with pytest.raises(TableError, match="Spark must read the table to its end"), broken:
        pass
