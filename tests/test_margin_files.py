"""The margins of a release on disk: readable by everyone, read again as they were, and refused if they do not fit."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handmade import PEOPLE, assert_equal, release_of
from margins_by_hand import margins_of
from sfumato import Release
from sfumato.errors import ReleaseError
from sfumato.privacy.measurements import Groups, Margin
from test_release_folder import reseal

AGE, JOB = 1, 0
LEVELS = Margin(75, (Groups(2, np.array([8, 9, -1, 3]), Fraction(1, 9)), Groups(7, np.arange(75) - 7, Fraction(1, 3))))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    jobs = Margin(
        5, (Groups(1, np.array([5, 6]), Fraction(1, 9)), Groups(3, np.array([5, 0, -2, 4, 1]), Fraction(1, 4)))
    )
    release_of(margins={JOB: jobs, AGE: LEVELS}).save(tmp_path / "release")
    return tmp_path / "release"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(margins=st.fixed_dictionaries({}, optional={at: margins_of(leaves) for at, leaves in enumerate(PEOPLE.shape)}))
def test_margins_of_any_levels_come_back_as_they_were(tmp_path: Path, margins: dict[int, Margin]) -> None:
    release = release_of(margins=margins)
    shutil.rmtree(tmp_path / "release", ignore_errors=True)
    release.save(tmp_path / "release")
    assert_equal(Release.load(tmp_path / "release"), release)


def test_everyone_can_read_which_part_was_counted(saved: Path) -> None:
    rows = pq.read_table(saved / "margins.parquet").to_pylist()
    assert rows[0] == {
        "attribute": "job",
        "level": 1,
        "first_leaf": 0,
        "value": "Engineer to Lawyer",
        "noisy_count": 5,
    }
    assert [row["value"] for row in rows[2:7]] == ["Engineer", "Lawyer", "Dancer", "Writer", "Unknown"]
    assert [row["value"] for row in rows[7:11]] == ["[17, 35)", "[35, 54)", "[54, 73)", "[73, 91) or Missing"]
    assert len(rows) == 7 + 4 + 75


def forge(saved: Path, table: pa.Table) -> None:
    pq.write_table(table, saved / "margins.parquet")
    reseal(saved)


def with_column(table: pa.Table, name: str, change) -> pa.Table:
    values = table[name].to_pylist()
    change(values)
    return table.set_column(table.column_names.index(name), name, pa.array(values, table.schema.field(name).type))


def put(at: int, value: object):
    def change(values: list) -> None:
        values[at] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(1),
        lambda table: table.slice(0, len(table) - 1),
        lambda table: pa.concat_tables([table, table.slice(len(table) - 1)]),
        lambda table: pa.concat_tables([table, table]),
        lambda table: table.take(list(range(len(table)))[::-1]),
        lambda table: table.drop_columns(["level"]),
        lambda table: with_column(table, "level", put(0, 2)),
        lambda table: with_column(table, "level", put(0, -1)),
        lambda table: with_column(table, "level", put(0, None)),
        lambda table: with_column(table, "first_leaf", put(1, 0)),
        lambda table: with_column(table, "noisy_count", put(3, None)),
        lambda table: with_column(table, "attribute", put(0, "age")),
        lambda table: with_column(table, "attribute", put(0, "gain")),
        lambda table: with_column(table, "attribute", put(0, "stranger")),
        lambda table: with_column(table, "attribute", put(0, None)),
    ],
    ids=range(15),
)
def test_forged_counts_are_refused(saved: Path, change) -> None:
    forge(saved, change(pq.read_table(saved / "margins.parquet")))
    with pytest.raises(ReleaseError):
        Release.load(saved)


@pytest.mark.parametrize(
    "levels",
    [
        [],
        "1/3",
        [[3, "1/3"]],
        [[1, "1/9"], [3, "0"]],
        [[1, "1/9"], [3, None]],
        [[1, "1/9"], [3]],
        [[1, "1/9"], [3, "1/4", 5]],
        [[1, "1/9"], ["3", "1/4"]],
        [[1, "1/9"], [3.0, "1/4"]],
        [[True, "1/9"], [3, "1/4"]],
        [[1, "1/9"], [4, "1/4"]],
        [[1, "1/9"], [10**9, "1/4"]],
        [[-1, "1/9"], [3, "1/4"]],
        [[3, "1/4"], [1, "1/9"]],
        [[0, "1/9"], [1, "1/9"], [3, "1/4"]],
        {"1": "1/9", "3": "1/4"},
    ],
    ids=str,
)
def test_forged_levels_are_refused(saved: Path, levels: object) -> None:
    geometry = json.loads((saved / "geometry.json").read_text())
    assert geometry["margins_epsilon"]["job"] == [[1, "1/9"], [3, "1/4"]]
    geometry["margins_epsilon"]["job"] = levels
    (saved / "geometry.json").write_text(json.dumps(geometry))
    reseal(saved)
    with pytest.raises(ReleaseError):
        Release.load(saved)
