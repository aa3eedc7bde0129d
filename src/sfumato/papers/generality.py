"""Measures of whole releases of the bundled table: how general their groups are, who stays together, and time."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attributes import Categorical
from sfumato.datasets.growing import write_grown
from sfumato.evaluate.clusters import generalized_points, labels, match_point, points_of
from sfumato.evaluate.information import certainty_penalty, discernibility
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.publishing import adult, coded, release_of, timed
from sfumato.schema import Schema

CLUSTERS = 2
CLUSTER = "cluster"
"""The chance that a copied value is replaced."""


def generalized(key: Key) -> Outcome:
    """Publish the whole table: discernibility, NCP, groups, and processor seconds."""
    table, schema = adult()
    release, seconds = timed(lambda: release_of(key, table, schema))
    rows = coded(table, schema)
    columns = [rows[name] for name in schema.predictors]
    return {
        "discernibility": discernibility(release.partition, columns),
        "NCP": certainty_penalty(release.partition, columns),
        "groups": release.groups,
        "seconds": seconds,
    }


def matched(key: Key) -> Outcome:
    """Publish with the raw clusters for a class, cluster the generalized rows: Match Point in per cent."""
    table, schema, before = _clustered()
    release = release_of(key, table, schema)
    after = labels(generalized_points(release, coded(table, schema)), CLUSTERS)
    return {"match": 100 * match_point(before, after), "groups": release.groups}


@cache
def _clustered() -> tuple[pa.Table, Schema, NDArray[np.int64]]:
    """Give the table with its raw clusters in the place of the class."""
    table, schema = adult()
    before = labels(points_of(schema, coded(table, schema)), CLUSTERS)
    kept = {name: column for name, column in schema.attributes.items() if name != schema.target}
    names = [str(one) for one in range(CLUSTERS)]
    described = Schema(
        name="adult, clustered", confirmed=True, attributes=kept | {CLUSTER: Categorical(kind="class", taxonomy=names)}
    )
    column = pa.array(np.asarray(names)[before])
    return table.drop_columns([str(schema.target)]).append_column(CLUSTER, column), described, before


def grown(key: Key) -> Outcome:
    """Publish a table of so many rows from file to file: processor seconds of reading, publishing and writing."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_grown(adult()[0], key["rows"], Path(folder) / "grown.parquet")
        release, seconds = timed(lambda: release_of(key, str(path), adult()[1], Path(folder) / "release"))
        return {"seconds": seconds, "groups": release.groups}
