"""Where the contract suite counts: in memory and on disk or, when `make test-scale` asks for it, on Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.local import local_engine
from sfumato.privacy.tally import CountEngine, Counts
from sfumato.schema.schema import Schema
from sfumato.tables.sources import open_table

ENOUGH = 10**9
"""Bytes for any small table."""

Open = Callable[[Any, Schema], AbstractContextManager[CountEngine]]
"""Opens an engine on an Arrow table."""


def in_memory(table: Any, schema: Schema) -> AbstractContextManager[CountEngine]:
    return local_engine(open_table(table), schema, memory=ENOUGH, home=Path("nowhere"))


@contextmanager
def on_disk(table: Any, schema: Schema) -> Iterator[CountEngine]:
    """Give rows no memory at all."""
    with (
        tempfile.TemporaryDirectory() as folder,
        local_engine(open_table(table), schema, memory=0, home=Path(folder)) as engine,
    ):
        yield engine


OPENERS: dict[str, Open] = {"memory": in_memory, "disk": on_disk}
if os.environ.get("SFUMATO_TEST_SPARK"):
    from spark_sessions import by_spark

    OPENERS = {"spark": by_spark}

ENGINES = pytest.mark.parametrize("open_engine", list(OPENERS.values()), ids=list(OPENERS))


def coded_table(rows: np.ndarray, shape: tuple[int, ...], classes: int) -> tuple[Any, Schema]:
    """Give a table whose codes are the rows: an attribute of each size, and the class last."""
    sizes = shape[: rows.shape[1] - 1]
    facts: dict[str, Any] = {
        f"a{place}": {"kind": "numeric", "lower": 0, "upper": size - 1} for place, size in enumerate(sizes)
    }
    facts["label"] = {"kind": "class", "taxonomy": [str(label) for label in range(classes)]}
    columns = {name: pa.array(column, pa.int64()) for name, column in zip(facts, rows.T, strict=True)}
    return pa.table(columns), Schema.parse({"attributes": facts})


def assert_same(left: Counts, right: Counts) -> None:
    assert np.array_equal(left.by_place, right.by_place)
    assert left.by_leaf.keys() == right.by_leaf.keys()
    for attribute, breakdown in left.by_leaf.items():
        assert np.array_equal(breakdown.keys, right.by_leaf[attribute].keys)
        assert np.array_equal(breakdown.counts, right.by_leaf[attribute].counts)
    assert len(left.marginals) == len(right.marginals)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(left.marginals, right.marginals, strict=True))
