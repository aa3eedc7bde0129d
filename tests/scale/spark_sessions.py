"""A Spark session for the contract suite, on two cores of this machine."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sfumato.engines.spark import spark_engine
from sfumato.privacy.tally import CountEngine
from sfumato.schema.schema import Schema


def local_session() -> SparkSession:
    warnings.simplefilter("ignore", FutureWarning)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").appName("sfumato tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def by_spark(table: Any, schema: Schema) -> Iterator[CountEngine]:
    """Spread a table over three partitions and count it there."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/table.parquet")
        frame = local_session().read.parquet(f"{folder}/table.parquet").repartition(3)
        with spark_engine(frame, schema) as engine:
            yield engine
