"""A round is one job on Spark, whatever is asked; what is kept meanwhile is let go; counts have 64 bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_sessions import by_spark, local_session

from engines_under_test import coded_table
from sfumato import Schema, datasets
from sfumato.engines.kernel import Block, Layout
from sfumato.engines.spark import STEPS, Room, SparkEngine, keep_coded, layout_of, spark_engine
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.tally import CountEngine, Tally

SHAPE, CLASSES = (400, 5, 3), 2


@pytest.fixture(scope="module")
def session() -> SparkSession:
    return local_session()


@pytest.fixture(scope="module")
def engine() -> Iterator[CountEngine]:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 2000) for size in (*SHAPE, CLASSES)], axis=1)
    with by_spark(*coded_table(rows, SHAPE, CLASSES)) as engine:
        yield engine


def jobs_so_far(session: SparkSession) -> int:
    """Count all jobs that were ever submitted, whoever did it."""
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def work_of(session: SparkSession, engine: CountEngine, tally: Tally) -> list[int]:
    """Give the number of stages of every job that a tally runs, without those whose work was done before."""
    before = jobs_so_far(session)
    assert engine.tally(tally).by_place.sum() == 2000
    tracker = session.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in range(before, jobs_so_far(session))]
    stages = [[tracker.getStageInfo(stage) for stage in job.stageIds] for job in jobs if job is not None]
    return [sum(stage is not None and stage.numCompletedTasks > 0 for stage in ran) for ran in stages]


def grid(parts: int) -> Grid:
    return Grid.whole(SHAPE).refine(0, tuple(range(400 // parts, 400, 400 // parts)))


def tree(parts: int) -> Tree:
    borders = list(range(0, 401, 400 // parts))
    return Tree.whole(SHAPE).refine([0], [0], borders, [0, len(borders)])


ONE_JOB = [2]
"""One job of two stages: a scan that counts what it sees, and the sum of what the scans counted."""


@pytest.mark.parametrize("parts", [2, 400])
@pytest.mark.parametrize("attributes", [(), (0,), (0, 1, 2)])
def test_a_round_is_one_job(
    session: SparkSession, engine: CountEngine, parts: int, attributes: tuple[int, ...]
) -> None:
    for partition in (grid(parts), tree(parts)):
        assert work_of(session, engine, Tally(partition, CLASSES, attributes)) == ONE_JOB


def test_a_round_is_one_job_while_a_tree_grows(session: SparkSession, engine: CountEngine) -> None:
    """Also where rows are kept anew, and where a tree is walked from its root."""
    grown = Tree.whole(SHAPE)
    for _ in range(STEPS + 3):
        leaves = grown.ends
        ranges = grown.boxes[leaves, 0]
        borders = np.stack([ranges[:, 0], ranges.mean(axis=1).astype(int), ranges[:, 1]], axis=1).ravel()
        grown = grown.refine(leaves, np.zeros(len(leaves), int), borders, np.arange(len(leaves) + 1) * 3)
        assert work_of(session, engine, Tally(grown, CLASSES, (0, 1, 2))) == ONE_JOB
    assert grown.regions == 2 ** (STEPS + 3)
    afresh = Tree.of_nodes(SHAPE, grown.parents, grown.attributes, np.stack([grown.lows, grown.highs], axis=1))
    assert work_of(session, engine, Tally(afresh, CLASSES, (0,))) == ONE_JOB


def test_jobs_are_counted(session: SparkSession) -> None:
    before = jobs_so_far(session)
    session.range(10).count()
    assert jobs_so_far(session) > before


def test_a_session_is_left_as_it_was(session: SparkSession, tmp_path: Path) -> None:
    adult = datasets.adult()
    pq.write_table(adult.table.slice(0, 200), tmp_path / "adult.parquet")
    frame = session.read.parquet(str(tmp_path / "adult.parquet")).persist()
    assert frame.count() == 200
    settings, active = session.conf.getAll, SparkSession.getActiveSession()
    kept = session.sparkContext._jsc.getPersistentRDDs().size()
    with spark_engine(frame, adult.schema) as engine:
        engine.tally(Tally(Grid.whole(adult.schema.shape), len(adult.schema.classes), (0, 1)))
        assert session.conf.getAll == settings
        assert not session.catalog.listTables()
    assert session.conf.getAll == settings
    assert SparkSession.getActiveSession() is active
    assert not session.catalog.listTables()
    assert session.sparkContext._jsc.getPersistentRDDs().size() == kept, "what the user has cached stays so"
    assert frame.storageLevel.useMemory
    frame.unpersist()


def test_counts_have_64_bits(session: SparkSession) -> None:
    """Three rows that stand for more records than 32 bits can tell, and than a double can."""
    weights = np.array([2**60 + 1, 2**31 - 1, 5_000_000_000])
    block = Block((np.array([1, 1, 0], np.uint8),), np.array([2, 2, 0], np.uint8), weights)
    room = Room(session)
    try:
        rows = room.adopted(session.createDataFrame([(block.packed(),)], "block binary"))
        engine = SparkEngine(room, rows, Layout.of(block))
        answers = [engine.tally(Tally(whole, 3, (0,))) for whole in (Grid.whole((2,)), Tree.whole((2,)))]
    finally:
        room.leave()
    for counts in answers:
        assert counts.by_place.tolist() == [[5_000_000_000, 0, 2**60 + 2**31]]
        assert counts.by_leaf[0].counts.tolist() == [[5_000_000_000, 0, 0], [0, 0, 2**60 + 2**31]]


def test_rows_that_are_alike_are_merged_where_they_lie(session: SparkSession) -> None:
    facts = {"x": {"kind": "numeric", "lower": 0, "upper": 9}}
    schema = Schema.parse({"attributes": facts})
    frame = session.range(0, 600_000, 1, 2).selectExpr("id % 10 AS x")
    room = Room(session)
    try:
        kept = [layout_of(schema).unpacked(bytes(one)) for one, _ in keep_coded(room, frame, schema).collect()]
    finally:
        room.leave()
    assert sum(map(len, kept)) < 100
    assert sum(int(block.weights.sum()) for block in kept if block.weights is not None) == 600_000
