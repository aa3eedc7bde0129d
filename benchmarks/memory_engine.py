"""The local engine at scale: DiffMulti on Adult blown up by random replacement, from a Parquet file to the counts.

The measure is a histogram pass: `np.bincount` over all rows of one coded column, the mean over all columns, taken in
the same process. A level is one tally of a tree with all attributes; what is asked of it would take one pass per
attribute and class if the rows already stood in order. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

from sfumato import Account, DiffMulti, datasets
from sfumato.datasets import write_grown
from sfumato.engines.local import LocalEngine
from sfumato.privacy.tally import Counts, Tally
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

SIZES = (10**5, 10**6, 10**7)


class Timed(LocalEngine):
    """An engine that notes how long each level took: wall clock and processor."""

    levels: list[tuple[float, float]] = []  # noqa: RUF012

    def tally(self, tally: Tally) -> Counts:
        """Count, and note the time."""
        wall, processor = time.perf_counter(), time.process_time()
        counts = super().tally(tally)
        if len(tally.attributes) == len(tally.partition.shape):
            self.levels.append((time.perf_counter() - wall, time.process_time() - processor))
        return counts


def histogram_pass(path: str) -> tuple[float, float]:
    """Give the seconds of one pass: wall clock and processor, the least of three rounds over all columns."""
    columns = encode(open_table(path), datasets.adult().schema).columns.values()
    found = []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        for column in columns:
            np.bincount(column)
        found.append(((time.perf_counter() - wall) / len(columns), (time.process_time() - processor) / len(columns)))
    return min(found)


def publish(path: str) -> None:
    """Publish one file and print what it took."""
    start = time.perf_counter()
    account = Account("unused.ledger", datasets.adult().schema)
    with mock.patch("sfumato.engines.local.LocalEngine", Timed):
        release = account.publish(path, DiffMulti(), "1", unsafe_seed=1)
    whole = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    wall, processor = (np.array(one) for one in zip(*Timed.levels, strict=True))
    pass_wall, pass_processor = histogram_pass(path)
    digest = hashlib.sha256(release.draft.final.counts.tobytes()).hexdigest()[:12]
    print(
        f"{whole:8.1f} s in all, {peak:5.2f} GB at most, {len(wall)} levels of {wall.mean():6.3f} s "
        f"(processor {processor.mean():6.3f} s), a pass of {1000 * pass_wall:6.2f} ms: "
        f"{wall.mean() / pass_wall:5.1f} passes a level, {wall.max() / pass_wall:5.1f} at most "
        f"(by processor {processor.mean() / pass_processor:5.1f}, {processor.max() / pass_processor:5.1f}); "
        f"{release.groups:,} groups, {digest}"
    )


def main(sizes: list[int], folder: Path) -> None:
    """Print a line for each size, each in a process of its own so that its peak memory is its own."""
    for rows in sizes:
        path = write_grown(datasets.adult().table, rows, folder / f"adult-{rows}.parquet")
        run = subprocess.run(
            [sys.executable, __file__, "--publish", str(path)], capture_output=True, text=True, check=True
        )
        print(f"{rows:>11,} rows: {run.stdout.strip()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--folder", type=Path, help="where to keep the blown-up tables")
    parser.add_argument("--publish", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.publish:
        publish(given.publish)
    elif given.folder:
        main(given.rows, given.folder)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(given.rows, Path(temporary))
