"""A grown table begins with the table itself, and its further records are variations of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato import datasets
from sfumato.datasets import adult


def test_the_table_comes_first_and_then_variations_of_it():
    table = adult().table
    found = datasets.grown(table, 3 * table.num_rows)
    assert found.slice(0, table.num_rows).equals(table)
    kept = pc.equal(found["education"].slice(table.num_rows), pa.concat_tables([table, table])["education"])
    alike = 1 / len(table["education"].unique())
    assert abs(pc.mean(kept).as_py() - (1 - datasets.REPLACED * (1 - alike))) < 0.01
    assert set(found["education"].unique().to_pylist()) == set(table["education"].unique().to_pylist())


def test_pieces_are_new_variations_and_a_shorter_table_is_the_beginning_of_a_longer_one(monkeypatch, tmp_path):
    table = pa.table({"one": np.arange(10), "other": list("abcdefghij")})
    monkeypatch.setattr(datasets, "PIECE", 20)
    found = datasets.grown(table, 60)
    assert found.slice(0, 40).equals(datasets.grown(table, 40))
    assert not found.slice(20, 20).equals(found.slice(40, 20))
    assert pq.read_table(datasets.write_grown(table, 60, tmp_path / "grown.parquet")).equals(found)


def test_a_file_that_is_there_is_not_made_again(tmp_path):
    table = pa.table({"one": [1, 2]})
    path = datasets.write_grown(table, 5, tmp_path / "grown.parquet")
    before = path.stat().st_mtime_ns
    assert datasets.write_grown(table, 5, path).stat().st_mtime_ns == before
