"""Spark for real: a cluster of two workers, one of which dies in the middle, and sessions that are gone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_cluster import LOOPBACK, Cluster, cluster

from engines_under_test import in_memory
from replay import Recorder, assert_same_draft, run
from sfumato import DiffGen, DiffMulti, Schema, datasets
from sfumato.counts.tally import CountEngine, Counts, Tally
from sfumato.engines.spark_engine import spark_engine
from sfumato.errors import CountError, TableError
from sfumato.partition import Grid

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
    return session


class Fatal:
    """An engine of whose cluster a worker dies between two rounds, with all that it had cached."""

    def __init__(self, engine: CountEngine, doomed: Cluster, at: int) -> None:
        self.engine, self.doomed, self.left = engine, doomed, at

    def tally(self, tally: Tally) -> Counts:
        self.left -= 1
        if self.left == 0:
            self.doomed.kill_a_worker()
        return self.engine.tally(tally)


def test_a_worker_dies_and_the_release_is_the_same(two_workers: Cluster, tmp_path: Path) -> None:
    adult = datasets.adult()
    pq.write_table(adult.table.slice(0, 5000), tmp_path / "adult.parquet", row_group_size=1000)
    session = connected(two_workers.url)
    try:
        frame = session.read.parquet(str(tmp_path / "adult.parquet")).repartition(4)
        method = DiffMulti(specializations=60)
        with in_memory(adult.table.slice(0, 5000), adult.schema) as reference:
            expected, _ = run(method, adult.schema, reference, Fraction(1), Recorder(3))
        with spark_engine(frame, adult.schema) as engine:
            assert _executors(session) == 2
            draft, _ = run(method, adult.schema, Fatal(engine, two_workers, 4), Fraction(1), Recorder(3))
        assert_same_draft(expected, draft)
        assert len(two_workers.workers) == 1
        assert not session.catalog.listTables(), "no view is left"
        assert session.sparkContext._jsc.getPersistentRDDs().size() == 0, "nothing stays cached"
    finally:
        session.stop()


def _executors(session: SparkSession) -> int:
    """Count the executors that have joined, waiting for the second: the driver is listed, too."""
    context: Any = session.sparkContext._jsc.sc()
    for _ in range(100):
        if context.statusTracker().getExecutorInfos().__len__() == 3:
            return 2
        time.sleep(0.3)
    return int(context.statusTracker().getExecutorInfos().__len__()) - 1


def few(value: str = "a") -> tuple[list[tuple[str, int]], Schema]:
    facts = {"x": {"kind": "categorical", "taxonomy": ["a", "b"]}, "n": {"kind": "numeric", "lower": 0, "upper": 9}}
    return [("a", 1), ("b", 2), (value, 3)], Schema.parse({"attributes": facts})


def test_what_does_not_fit_is_refused_without_a_value() -> None:
    session = connected("local[1]")
    try:
        rows, schema = few(CANARY)
        engine = spark_engine(session.createDataFrame(rows, "x string, n int"), schema)
        with pytest.raises(TableError, match="x: value not in the taxonomy") as caught, engine:
            pass
        assert CANARY not in str(caught.value)
        bytes_of = spark_engine(session.sql("SELECT cast('a' AS binary) AS x, 1 AS n"), schema)
        with pytest.raises(TableError, match="column x must be of a type"), bytes_of:
            pass
    finally:
        session.stop()


def test_a_session_that_is_gone_is_told_in_one_sentence() -> None:
    session = connected("local[1]")
    rows, schema = few()
    tally = Tally(Grid.whole(schema.shape), 1, (0, 1))
    with spark_engine(session.createDataFrame(rows, "x string, n int"), schema) as engine:
        assert engine.tally(tally).by_place.tolist() == [[3]]
        session.stop()
        with pytest.raises(CountError, match="Spark must answer a round") as caught:
            engine.tally(tally)
    assert caught.value.__context__ is None


def test_truncated_parquet_is_told_in_one_sentence(tmp_path: Path) -> None:
    adult = datasets.adult()
    path = tmp_path / "adult.parquet"
    pq.write_table(adult.table, path, row_group_size=5000)
    session = connected("local[1]")
    try:
        frame = session.read.parquet(str(path))
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3] + b"\xff" * (len(whole) // 3) + whole[2 * len(whole) // 3 :])
        broken = spark_engine(frame, adult.schema)
        with pytest.raises(TableError, match="Spark must read the table to its end"), broken:
            pass
    finally:
        session.stop()


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
