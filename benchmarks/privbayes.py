"""PrivBayes on Adult beside two others: processor seconds and memory from a CSV file to synthetic records, at ε = 1.

Each is run in a process and an environment of its own (`make bench-privbayes` makes them). What cannot be run says so
in its row. All run in the same minutes on the same machine: compare the rows, not machines.

The others promise less or something else: DataSynthesizer replaces a record and takes the number of rows for public,
and dpmm has an approximate guarantee (delta 1e-5).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

LIMIT = 15 * 60
"""The most seconds of one row."""
EPSILON = 1
DEGREE = 2
"""The parents of each attribute with DataSynthesizer, whose search takes far longer with three."""


def ours(table: Path, out: Path, *, published: bool = False) -> None:
    """Publish and draw, as a user does."""
    from sfumato import Account, PrivBayes, datasets

    method = PrivBayes.as_published() if published else PrivBayes()
    account = Account(out / "people.ledger", datasets.adult().schema)
    release = account.publish(str(table), method, EPSILON, out=out / "release")
    release.sample(seed=1)


def data_synthesizer(table: Path, out: Path) -> None:
    """Describe and generate, in correlated mode."""
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    describer = DataDescriber(category_threshold=100)
    describer.describe_dataset_in_correlated_attribute_mode(dataset_file=str(table), epsilon=EPSILON, k=DEGREE)
    describer.save_dataset_description_to_file(str(out / "description.json"))
    rows = sum(1 for _ in table.open(encoding="utf-8")) - 1
    DataGenerator().generate_dataset_in_correlated_attribute_mode(rows, str(out / "description.json"))


def dpmm(table: Path, out: Path) -> None:  # noqa: ARG001
    """Fit and generate."""
    import pandas as pd
    from dpmm.pipelines import PrivBayesPipeline

    frame = pd.read_csv(table)
    for name in frame.select_dtypes("object"):
        frame[name] = frame[name].astype("category")
    pipeline = PrivBayesPipeline(epsilon=EPSILON, delta=1e-5, n_jobs=1)
    pipeline.fit(frame, random_state=1)
    pipeline.generate(len(frame))


ROWS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "sfumato": ("", ours),
    "sfumato, as published": ("", lambda table, out: ours(table, out, published=True)),
    f"DataSynthesizer, k = {DEGREE}": ("DataSynthesizer", data_synthesizer),
    "dpmm": ("dpmm", dpmm),
}
"""Each row: the environment that it needs (none: this one), and what it does."""


def work(row: str, table: Path) -> None:
    """Do a row's work, and print processor seconds, those of imports and workers included, and peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        ROWS[row][1](table, Path(folder))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    peak = max(one.ru_maxrss for one in used) / 1024
    print(json.dumps({"seconds": seconds, "MB": peak}))


def measured(row: str, table: Path, peers: Path) -> str:
    """Run a row in its own environment, and tell what it took or why there is nothing to tell."""
    peer = ROWS[row][0]
    python = peers / peer / "bin" / "python" if peer else Path(sys.executable)
    if not python.exists():
        return "is not installed"
    try:
        done = subprocess.run(
            [python, __file__, "--row", row, "--table", table],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"} if peer else os.environ,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {LIMIT // 60} minutes"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:100]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return f"{found['seconds']:8.1f} s {found['MB']:8.0f} MB"


def main(peers: Path) -> None:
    """Print the table."""
    from sfumato import datasets

    with tempfile.TemporaryDirectory() as folder:
        import pyarrow.csv as csv

        table = Path(folder) / "adult.csv"
        csv.write_csv(datasets.adult().table, table)
        for row in ROWS:
            print(f"{row:26s} {measured(row, table, peers)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=Path(".venv-peers"), help="where the others' environments lie")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        work(given.row, given.table)
    else:
        main(given.peers)
