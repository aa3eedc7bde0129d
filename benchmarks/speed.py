"""How fast publishing is, as ratios to reference work measured in the same run, on Adult blown up to a million rows.

The blow-up is the paper's: copies of each record with some values replaced at random from the attribute's domain.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato import Account, DiffGen, datasets
from sfumato.datasets import write_grown
from sfumato.privacy.noise import SystemStream, discrete_laplace
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """Give the least seconds of several repeats."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def histograms(columns: list[NDArray[np.unsignedinteger]], classes: NDArray[np.unsignedinteger]) -> None:
    """The reference pass: d class histograms of coded columns, in plain NumPy."""
    for column in columns:
        np.bincount(column.astype(np.intp) * 2 + classes)


def seconds_choosing(table: pa.Table, steps: int) -> float:
    """Time everything between the first debit for a choice and the debit for the counts, the pass included."""
    at: dict[str, float] = {}

    def note(label: str) -> None:
        at[label] = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "ledger", datasets.adult().schema)
        account.publish(table, DiffGen(specializations=steps, margins=Fraction(0)), "1", watch=note)
    return at["counts"] - at["choice 1"]


def publish(path: str) -> None:
    """Publish a Parquet file as a user does; print seconds and peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "ledger", datasets.adult().schema)
        start = time.perf_counter()
        account.publish(path, DiffGen(specializations=15), "1", out=Path(folder) / "release")
        print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def published(path: Path) -> tuple[float, float]:
    """Run `publish` in a process of its own, so that its peak memory is its own."""
    runs = [
        subprocess.run([sys.executable, __file__, "--publish", str(path)], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    measured = [tuple(map(float, run.stdout.split())) for run in runs]
    return min(seconds for seconds, _ in measured), max(memory for _, memory in measured)


def group_by(path: Path) -> None:
    """The reference query: one GROUP BY over all columns of the file."""
    names = ", ".join(datasets.adult().table.column_names)
    duckdb.sql(
        f"select count(*) from (select {names}, count(*) from read_parquet('{path}') group by {names})"
    ).fetchall()


def main(rows: int) -> None:
    """Print the table."""
    schema = datasets.adult().schema
    with tempfile.TemporaryDirectory() as folder:
        path = write_grown(datasets.adult().table, rows, Path(folder) / "grown.parquet")
        coded = encode(open_table(path), schema).columns
        columns = [coded[name] for name in schema.predictors]
        one_pass = best(lambda: histograms(columns, coded["income"]))
        table = pq.read_table(path)
        choosing = min(seconds_choosing(table, 15) for _ in range(5))
        grouping = best(lambda: group_by(path), repeats=3)
        whole, memory = published(path)
    draws = best(lambda: discrete_laplace(SystemStream(), Fraction(1, 3), 1_000_000))
    print(f"{rows:,} rows, 14 attributes and a class")
    print(f"  one NumPy pass of class histograms   {one_pass:8.3f} s")
    print(f"  choosing all cuts, h = 15            {choosing:8.3f} s  = {choosing / one_pass:5.2f} x that pass")
    print(f"  DuckDB GROUP BY over all columns     {grouping:8.3f} s")
    print(f"  publishing from Parquet, h = 15      {whole:8.3f} s  = {whole / grouping:5.2f} x that GROUP BY")
    print(f"  peak memory of publishing            {memory:8.0f} MB")
    print(f"  a million discrete Laplace draws     {draws:8.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--publish", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.publish:
        publish(given.publish)
    else:
        main(given.rows)
