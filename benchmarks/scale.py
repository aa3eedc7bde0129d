"""How publishing scales: Adult blown up from 10^5 rows on, on each engine, as ratios to one GROUP BY of the same file.

The blow-up is the papers': copies of each record with some values replaced at random. Files are made once and kept in
a folder. Every measurement runs in a process of its own, so that its peak memory is its own. The reference counts
the rows of the file by all the columns that are coded, on the same engine with the same memory. Seconds are of the
clock and of all processor cores: on a busy machine compare the latter. Spark's are those of its driver, which is a
process of its own and, as local[2], does all the work; its session has begun before.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
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
from sfumato.engines.counting import columns_of
from sfumato.engines.duckdb import duckdb_engine
from sfumato.engines.memory import MemoryEngine
from sfumato.methods.method import Method
from sfumato.privacy.mechanisms import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import CountEngine, Counts, Domain, Tally
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

METHODS: dict[str, Method] = {"diffgen": DiffGen(), "diffmulti": DiffMulti(specializations=1000)}
ENGINES = ("memory", "duckdb", "spark")


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
    """Code a file on an engine."""
    if engine == "memory":
        yield MemoryEngine(*columns_of(encode(open_table(path), schema), schema))
    elif engine == "duckdb":
        with (
            tempfile.TemporaryDirectory(dir=path.parent) as folder,
            duckdb_engine(open_table(path), schema, memory=memory, home=Path(folder)) as counting,
        ):
            yield counting
    else:
        from sfumato.engines.spark import spark_engine

        with spark_engine(_session(memory).read.parquet(str(path)), schema) as counting:
            yield counting


def _session(memory: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", f"{memory >> 20}m")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _driver(memory: int) -> Path:
    """Begin a session; give where the system tells about its driver."""
    return Path("/proc", str(_session(memory).sparkContext._gateway.proc.pid))


def publish(method: str, engine: str, path: Path, memory: int) -> int:
    """Publish from a file, up to the draft; give the number of passes."""
    schema, epsilon = datasets.adult().schema, Fraction(1)
    with opened(engine, path, schema, memory) as counting:
        counted = Counted(counting)
        meter = Meter(counted, Unbooked(epsilon), Exact(None), Domain(schema.shape, len(schema.classes)))
        METHODS[method].publish(meter, schema, METHODS[method].plan(schema, epsilon))
        return counted.passes


def group_by(engine: str, path: Path, memory: int) -> int:
    """The reference: count by all columns."""
    names = ", ".join(datasets.adult().table.column_names)
    query = f"SELECT count(*) FROM (SELECT {names}, count(*) FROM {{}} GROUP BY {names})"
    if engine == "spark":
        _session(memory).sql(query.format(f"parquet.`{path}`")).collect()
        return 1
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        settings = {
            "memory_limit": f"{memory // 1000}KB",
            "temp_directory": folder,
            "preserve_insertion_order": "false",
        }
        with duckdb.connect(config=settings) as connection:
            connection.execute(query.format(f"read_parquet('{path}')")).fetchall()
    return 1


def measure(work: Callable[[], int], beside: Path | None) -> None:
    """Print what some work costs, as JSON: this process and, as /proc knows it, one beside it."""
    wall, cores = time.perf_counter(), time.process_time() + _cores_of(beside)
    passes = work()
    cores = time.process_time() + _cores_of(beside) - cores
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, _peak_of(beside)) / 1024
    print(json.dumps({"wall": time.perf_counter() - wall, "cores": cores, "passes": passes, "megabytes": peak}))


def _cores_of(process: Path | None) -> float:
    """Give the seconds of processors that a process has used: fields 14 and 15, of which the second is the name."""
    if process is None:
        return 0.0
    ticks = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _peak_of(process: Path | None) -> int:
    """Give the most kilobytes that a process has had."""
    if process is None:
        return 0
    told = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in told if line.startswith("VmHWM"))


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
        for engine in given.engines:
            common = ["--engine", engine, "--file", str(path), "--memory", str(given.memory)]
            reference = measured("--measure", "group-by", *common)
            print(f"  {engine:7} GROUP BY   {_told(reference)}", flush=True)
            for method in given.methods:
                found = measured("--measure", method, *common)
                before = earlier.get((engine, method))
                grown = "" if before is None else f"  exponent {_exponent(before, (rows, found['cores'])):.2f}"
                earlier[engine, method] = (rows, found["cores"])
                ratio = f"{found['cores'] / reference['cores']:.2f} x (cores)"
                print(f"  {engine:7} {method:10} {_told(found)}  = {ratio}{grown}", flush=True)


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
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--memory", type=lambda text: int(float(text)), default=4 * 2**30)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sfumato-scale")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    driver = _driver(asked.memory) if asked.measure and asked.engine == "spark" else None
    if asked.measure == "group-by":
        measure(lambda: group_by(asked.engine, asked.file, asked.memory), driver)
    elif asked.measure:
        measure(lambda: publish(asked.measure, asked.engine, asked.file, asked.memory), driver)
    else:
        main(asked)
