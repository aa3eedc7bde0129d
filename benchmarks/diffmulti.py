"""DiffMulti on Adult, beyond `sfumato reproduce diffmulti`: three ways to learn from it, and time as ratios.

Accuracy is given for the three ways in which recipients can learn from a release: a decision tree on its groups, a
decision tree on synthetic records, and its own regions. Each run's split is shared by all settings.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protocol import mean_of, splits
from sfumato import Account, DiffMulti, Release, datasets
from sfumato.account import seeded_release
from sfumato.arrays import CodedRows
from sfumato.datasets import write_grown
from sfumato.evaluate.learning import accuracy, accuracy_of_regions, accuracy_of_samples
from sfumato.models.model import Nonnegative
from sfumato.papers.runs import coded
from speed import best, histograms

EPSILONS = ("0.1", "0.25", "0.5", "1")
SETTINGS: dict[str, tuple[DiffMulti, Nonnegative]] = {
    **{f"paper, h = {h:,}": (DiffMulti.as_published(specializations=h), "clamp") for h in (300, 1000, 3000, 10_000)},
    "paper's schedule": (
        DiffMulti(specializations=1000, schedule="paper", score="max", choice="separate", margins=Fraction(0)),
        "projection",
    ),
    "ours, max": (DiffMulti(score="max"), "projection"),
    "ours, deviation": (DiffMulti(score="deviation"), "projection"),
    "ours (defaults)": (DiffMulti(), "projection"),
}
WAYS = ("groups", "samples", "regions")


def three_ways(release: Release, test: CodedRows, how: Nonnegative) -> list[float]:
    """Give the accuracy in per cent in each way to use a release."""
    found = (accuracy(release, test, how), accuracy_of_samples(release, test, how), accuracy_of_regions(release, test))
    return [100 * one for one in found]


def accuracies(task: tuple[str, str, int]) -> list[list[float]]:
    """Give the accuracies of each run."""
    name, epsilon, runs = task
    method, how = SETTINGS[name]
    found = []
    for run in range(runs):
        train, test = splits(run)
        release = seeded_release(train, datasets.adult().schema, method, epsilon, 20_000 + run)
        found.append([*three_ways(release, test, how), release.groups])
    return found


def classification(runs: int) -> None:
    """Print accuracy by setting, epsilon and way."""
    print(f"Classification accuracy on Adult in %, {runs} runs, 2/3 train (standard error)")
    print(f"{'':18} {'epsilon':>7} " + " ".join(f"{way:>13}" for way in WAYS) + "   best   groups")
    tasks = [(name, epsilon, runs) for name in SETTINGS for epsilon in EPSILONS]
    with ProcessPoolExecutor() as pool:
        for (name, epsilon, _), found in zip(tasks, pool.map(accuracies, tasks), strict=True):
            *ways, groups = zip(*found, strict=True)
            top = max(float(np.mean(way)) for way in ways)
            cells = " ".join(f"{mean_of(way):>13}" for way in ways)
            print(f"{name:18} {epsilon:>7} {cells} {top:6.2f} {np.mean(groups):8,.0f}", flush=True)


TIMED: dict[str, DiffMulti] = {
    "ours": DiffMulti(specializations=100_000),
    "paper": DiffMulti.as_published(specializations=100_000),
}


def growing(table: str | pa.Table, method: DiffMulti) -> tuple[float, int, int]:
    """Publish; give the seconds from the first debit to the release, its levels and its groups."""
    began: list[float] = []

    def note(label: str) -> None:
        if not began and label != "reading the table":
            began.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "ledger", datasets.adult().schema)
        release = account.publish(table, method, "1", watch=note)
    seconds = time.perf_counter() - began[0]
    return seconds, len(release.manifest.steps), release.groups


def alone(table: str, name: str) -> None:
    """Publish once and print the times and the peak memory in MB; for a process of its own."""
    start = time.perf_counter()
    seconds, levels, groups = growing(table, TIMED[name])
    whole = time.perf_counter() - start
    print(seconds, whole, levels, groups, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def speed(rows: int) -> None:
    """Print times as multiples of one NumPy pass over the same table, for each level used."""
    adult = datasets.adult()
    print("\nTime with h = 100,000 at epsilon 1, from the first debit on, ledger and all; best of three")
    with tempfile.TemporaryDirectory() as folder:
        for size in (adult.table.num_rows, rows):
            path = write_grown(adult.table, size, Path(folder) / f"{size}.parquet")
            codes = encode_file(path)
            columns = [codes[name] for name in adult.schema.predictors]
            one_pass = best(partial(histograms, columns, codes["income"]))
            for name in TIMED:
                runs = [measured(path, name) for _ in range(3)]
                seconds, whole, levels, groups, memory = min(runs)
                print(
                    f"  {size:9,} rows, {name:5}  {seconds:6.2f} s in {levels:2.0f} levels, {groups:7,.0f} groups: "
                    f"{seconds / levels / one_pass:5.1f} x a pass of {one_pass * 1000:.1f} ms for each level; "
                    f"with reading {whole:5.2f} s, {memory:,.0f} MB",
                    flush=True,
                )


def encode_file(path: Path) -> CodedRows:
    """Give the codes of a Parquet file."""
    return coded(pq.read_table(path), datasets.adult().schema)


def measured(path: Path, name: str) -> tuple[float, ...]:
    """Run `alone` in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--alone", str(path), name]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(map(float, output.split()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["classification", "speed"])
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        alone(*given.alone)
        sys.exit()
    if given.only in (None, "classification"):
        classification(given.runs)
    if given.only in (None, "speed"):
        speed(given.rows)
