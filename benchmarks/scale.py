"""How publishing scales: Adult blown up from 10^5 rows on, here and on Spark, as ratios to a GROUP BY of the same file.

The blow-up is the papers': copies of each record with some values replaced at random. Files are made once and kept in
a folder. Every measurement runs in a process of its own, so that its peak memory is its own. The reference counts the
rows of the file by all the columns that are coded, by DuckDB with the same memory. Seconds are of the clock and of
all processor cores: on a busy machine compare the latter. Spark's are those of its driver, which as local[2] does all
the work, and of the Python processes below it; its session has begun, and has coded and counted a few rows, before.
What coding costs is told apart; and so is a round of all pairs of attributes at once.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from sfumato import DiffGen, DiffMulti, Schema, datasets
from sfumato.account import Unbooked
from sfumato.datasets import write_grown
from sfumato.engines.counting import least_memory
from sfumato.engines.local import local_engine
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import CountEngine, Counts, Domain, Tally
from sfumato.tables.sources import open_table

METHODS: dict[str, Method] = {"diffgen": DiffGen(), "diffmulti": DiffMulti(specializations=1000)}
ENGINES = ("local", "disk", "spark")
"""Within the memory that is allowed; with none for rows; with a cluster on this machine."""
PAIRS = "pairs"
PARTS = 16
"""Into so many parts an attribute is cut for pairs, at most."""


class Counted:
    """An engine that knows how often it was asked."""

    def __init__(self, engine: CountEngine) -> None:
        """Stand before an engine."""
        self.engine, self.passes = engine, 0

    def tally(self, tally: Tally) -> Counts:
        """Ask it."""
        self.passes += 1
        return self.engine.tally(tally)


@contextmanager
def opened(engine: str, path: Path, schema: Schema, memory: int) -> Iterator[CountEngine]:
    """Code a file."""
    if engine == "spark":
        from sfumato.engines.spark import spark_engine

        with spark_engine(_session(memory).read.parquet(str(path)), schema) as counting:
            yield counting
    else:
        room = memory - least_memory(schema) if engine == "local" else 0
        with (
            tempfile.TemporaryDirectory(dir=path.parent) as folder,
            local_engine(open_table(path), schema, memory=room, home=Path(folder)) as counting,
        ):
            yield counting


def _session(memory: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", f"{memory >> 20}m")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _warm(memory: int, folder: Path) -> None:
    """Begin a session, and let it count a few rows."""
    few = write_grown(datasets.adult().table, 1000, folder / "adult-1000.parquet")
    publish("diffgen", "spark", few, memory)


def publish(method: str, engine: str, path: Path, memory: int) -> dict[str, float]:
    """Publish from a file, up to the draft; give the number of passes, and the seconds of cores that coding took."""
    schema, epsilon, before = datasets.adult().schema, Fraction(1), cores()
    with opened(engine, path, schema, memory) as counting:
        coding = cores() - before
        counted = Counted(counting)
        if method == PAIRS:
            counted.tally(pairs(schema))
        else:
            meter = Meter(counted, Unbooked(epsilon), Exact(None), Domain(schema.shape, len(schema.classes)))
            METHODS[method].publish(meter, schema, METHODS[method].plan(schema, epsilon))
        return {"passes": counted.passes, "coding": coding}


def pairs(schema: Schema) -> Tally:
    """Ask for all pairs of attributes, each cut into a few parts."""
    cuts = [sorted({*range(0, leaves, -(-leaves // PARTS)), leaves}) for leaves in schema.shape]
    grids = [
        Grid.marginal(schema.shape, {one: cuts[one], other: cuts[other]})
        for one, other in itertools.combinations(range(len(cuts)), 2)
    ]
    return Tally(Grid.whole(schema.shape), len(schema.classes), marginals=tuple(grids))


def group_by(path: Path, memory: int) -> dict[str, float]:
    """The reference: count by all columns."""
    names = ", ".join(datasets.adult().table.column_names)
    query = f"SELECT count(*) FROM (SELECT {names}, count(*) FROM {{}} GROUP BY {names})"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        settings = {
            "memory_limit": f"{memory // 1000}KB",
            "temp_directory": folder,
            "preserve_insertion_order": "false",
        }
        with duckdb.connect(config=settings) as connection:
            connection.execute(query.format(f"read_parquet('{path}')")).fetchall()
    return {"passes": 1}


def measure(work: Callable[[], dict[str, float]]) -> None:
    """Print what some work costs, as JSON."""
    wall, before = time.perf_counter(), cores()
    found = work()
    found |= {"wall": time.perf_counter() - wall, "cores": cores() - before, "megabytes": _peak() / 2**20}
    print(json.dumps(found))


def cores() -> float:
    """The seconds of processors that this process has used, and all below it, with those of them that have ended."""
    return sum(sum(map(int, one[11:15])) for one in _processes()) / os.sysconf("SC_CLK_TCK")


def _peak() -> int:
    """The most bytes that one of these processes has had."""
    told = [Path("/proc", one[0], "status").read_text().splitlines() for one in _processes(numbered=True)]
    return max(int(line.split()[1]) * 1024 for status in told for line in status if line.startswith("VmHWM"))


def _processes(*, numbered: bool = False) -> list[list[str]]:
    """What the system tells of this process and of all below it: the fields after the name, or its number instead."""
    told: dict[str, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            told[path.name] = (path / "stat").read_text().rpartition(")")[2].split()
    found, fresh = set[str](), {str(os.getpid())}
    while fresh:
        found |= fresh
        fresh = {number for number, fields in told.items() if fields[1] in found} - found
    return [[number] if numbered else told[number] for number in found]


def measured(*arguments: str) -> dict[str, float]:
    """Run a measurement in a process of its own."""
    run = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main(given: argparse.Namespace) -> None:
    """Print the table."""
    given.folder.mkdir(parents=True, exist_ok=True)
    earlier: dict[tuple[str, str], tuple[int, float]] = {}
    for rows in given.rows:
        path = write_grown(datasets.adult().table, rows, given.folder / f"adult-{rows}.parquet")
        print(f"{rows:,} rows, {path.stat().st_size / 2**20:,.0f} MB of Parquet, limit {given.memory >> 20:,} MB")
        common = ["--file", str(path), "--memory", str(given.memory)]
        reference = measured("--measure", "group-by", *common)
        print(f"  GROUP BY          {_told(reference)}", flush=True)
        for method in given.methods:
            here = None
            for engine in given.engines:
                found = measured("--measure", method, "--engine", engine, *common)
                before = earlier.get((engine, method))
                ratio = f"{found['cores'] / reference['cores']:.2f} x GROUP BY"
                ratio += "" if here is None else f", {found['cores'] / here['cores']:.2f} x local"
                ratio += "" if before is None else f", exponent {_exponent(before, (rows, found['cores'])):.2f}"
                earlier[engine, method] = (rows, found["cores"])
                here = found if engine == "local" else here
                coding = f"coding {10**6 * found['coding'] / rows:.2f} µs a row"
                print(f"  {method:10} {engine:6} {_told(found)}  {coding}  = {ratio}", flush=True)


def _told(found: dict[str, float]) -> str:
    return (
        f"{found['wall']:8.1f} s  {found['cores']:8.1f} s of cores  {found['megabytes']:7,.0f} MB  "
        f"{found['passes']:3.0f} passes"
    )


def _exponent(before: tuple[int, float], after: tuple[int, float]) -> float:
    return math.log(after[1] / before[1]) / math.log(after[0] / before[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, PAIRS], default=[*METHODS, PAIRS])
    parser.add_argument("--memory", type=lambda text: int(float(text)), default=4 * 2**30)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sfumato-scale")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure == "group-by":
        measure(lambda: group_by(asked.file, asked.memory))
    elif asked.measure:
        if asked.engine == "spark":
            _warm(asked.memory, asked.file.parent)
        measure(lambda: publish(asked.measure, asked.engine, asked.file, asked.memory))
    else:
        main(asked)
