"""Frames that memory leaves to DuckDB: the one row more that makes the difference must make no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import DiffMulti, Schema
from sfumato.account import Account
from sfumato.engines.counting import Counting, least_memory
from sfumato.geometry.grid import Grid
from sfumato.methods.laplace import Laplace
from sfumato.privacy.tally import Tally
from sfumato.tables.streams import BATCH_ROWS

TOWNS = Schema.parse(
    {
        "confirmed": True,
        "attributes": {"town": {"kind": "categorical", "taxonomy": ["x", "y", "none"], "missing": "none"}},
    }
)
NAMES = [f"a town of some length {number}" for number in range(40)]
WIDE = Schema.parse(
    {
        "confirmed": True,
        "attributes": {f"a{place}": {"kind": "categorical", "taxonomy": NAMES} for place in range(10)},
    }
)


def towns(table: Any, engine: str, folder: Path) -> list[int]:
    with Counting.of(engine, scratch=folder).opened(table, TOWNS) as counted:
        counts = counted.tally(Tally(Grid.whole(TOWNS.shape), 1, (0,)))
    return counts.by_leaf[0].dense(1).ravel().tolist()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_value_that_arrow_does_not_take_changes_no_other(engine: str, tmp_path: Path) -> None:
    """A batch that is read value by value is of another Arrow type than the batch before it."""

    def counted(last: list[str]) -> list[int]:
        column = pd.Series(["x"] * BATCH_ROWS + last, dtype="string[python]")
        return towns(pd.DataFrame({"town": column}), engine, tmp_path)

    assert counted(["y"]) == [BATCH_ROWS, 1, 0]
    assert counted(["\ud800", "y"]) == [BATCH_ROWS, 1, 1]


def test_a_frame_that_is_one_row_too_long_for_memory_is_counted_by_duckdb(tmp_path: Path) -> None:
    """Joins with dictionaries must stream the rows past the dictionaries, and not the other way round."""
    rows = 1_000_000
    column = pa.array(NAMES).take(pa.array(np.random.default_rng(0).integers(0, 40, rows)))
    people = pa.table(dict.fromkeys(WIDE.attributes, column))
    limit = least_memory(WIDE) + (rows - 1) * (10 + 1 + 4 + 1)
    account = Account(tmp_path / "people.ledger", WIDE)
    account.publish(people.slice(1), DiffMulti(specializations=2), 1, unsafe_seed=1, memory=limit)
    account.publish(people, DiffMulti(specializations=2), 1, unsafe_seed=1, memory=limit)


def test_a_scratch_folder_does_not_tell_how_many_rows_there_were(tmp_path: Path) -> None:
    rows = 300_000
    people = pa.table({"town": ["x"] * rows})
    limit = least_memory(TOWNS) + (rows - 1) * (1 + 1 + 4 + 1)
    account = Account(tmp_path / "people.ledger", TOWNS)
    for number, table in enumerate((people.slice(1), people)):
        account.publish(table, Laplace(), 1, unsafe_seed=1, memory=limit, scratch=tmp_path / f"scratch{number}")
    assert (tmp_path / "scratch0").exists() == (tmp_path / "scratch1").exists()
