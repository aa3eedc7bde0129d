"""Mondrian and top-down specialization on Adult: time as a ratio to anonypy's Mondrian, and what a classifier learns.

Times are processor seconds, so that a busy machine does not decide. 2/3 train, 1/3 test, each run's split shared by all
methods, so differences are paired. anonypy is optional: without it the ratios are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from protocol import mean_of, splits
from sfumato import TDS, DiffGen, DiffMulti, Mondrian, Release, datasets
from sfumato.account import seeded_release
from sfumato.arrays import CodedRows
from sfumato.datasets import grown
from sfumato.evaluate.fidelity import certainty_penalty, random_queries, relative_errors
from sfumato.evaluate.learning import accuracy, accuracy_of_regions
from sfumato.methods import Method
from sfumato.papers.runs import coded
from sfumato.without_epsilon import MethodWithoutEpsilon

KS = (5, 10, 60)
MILLION = 1_000_000

Publish = Callable[[pa.Table, int], Release]
Result = TypeVar("Result")


def published_by(method: Method | MethodWithoutEpsilon) -> Publish:
    """Give the way to publish by a method, with epsilon 1 if it has one, and the seed of a run."""
    return lambda table, run: seeded_release(table, datasets.adult().schema, method, "1", 10_000 + run)


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Take the processor time of some work, and what came of it."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def theirs(frame: Any, k: int) -> float | None:
    """Take the time of anonypy's Mondrian on a pandas frame, if it is installed; income is its sensitive column."""
    if importlib.util.find_spec("anonypy") is None:
        return None
    import anonypy

    names = [name for name in frame.columns if name != "income"]
    return timed(lambda: anonypy.Preserver(frame, names, "income").anonymize_k_anonymity(k))[0]


def times(rows: int | None) -> None:
    """Print how long publishing Adult takes, from the table to the groups."""
    table = datasets.adult().table if rows is None else datasets.adult().table.slice(0, rows)
    frame = table.to_pandas()
    for name in frame.columns:
        if not np.issubdtype(getattr(frame[name].dtype, "type", object), np.number):
            frame[name] = frame[name].astype("category")
    print(f"Processor seconds on {table.num_rows:,} rows of Adult, 14 quasi-identifiers (ratio to anonypy's Mondrian)")
    for k in KS:
        reference = theirs(frame, k)
        cells = [f"anonypy {reference:8.2f} s" if reference else "anonypy is not installed"]
        for method in (Mondrian(k=k), Mondrian(k=k, score="infogain"), TDS(k=k)):
            took, _ = timed(partial(published_by(method), table, 0))
            name = f"{method.name} {getattr(method, 'score', '')}".strip()
            cells.append(f"{name} {took:6.2f} s" + (f" (1/{reference / took:,.0f})" if reference else ""))
        print(f"  k = {k:2}  " + "  ".join(cells), flush=True)


def million() -> None:
    """Print the same for Adult grown to a million rows."""
    table = grown(datasets.adult().table, MILLION)
    print("\nProcessor seconds on a million rows (a fifth of all values replaced), k = 10")
    for method in (Mondrian(k=10), Mondrian(k=10, score="infogain"), TDS(k=10)):
        took, release = timed(partial(published_by(method), table, 0))
        name = f"{method.name} {getattr(method, 'score', '')}"
        print(f"  {name:18} {took:6.1f} s, {release.groups:,} groups", flush=True)


def methods() -> dict[str, Publish]:
    """Give everything that is compared."""
    found: dict[str, Publish] = {}
    for k in KS:
        found[f"mondrian, k = {k}"] = published_by(Mondrian(k=k))
        found[f"mondrian infogain, k = {k}"] = published_by(Mondrian(k=k, score="infogain"))
        found[f"tds, k = {k}"] = published_by(TDS(k=k))
    found["diffgen, epsilon 1"] = published_by(DiffGen())
    found["diffmulti, epsilon 1"] = published_by(DiffMulti())
    return found


def classification(runs: int) -> None:
    """Print accuracy, NCP, groups and the error of range counts."""
    print(f"\nAccuracy on Adult in %, {runs} runs (standard error): a tree learned on groups, the regions themselves;")
    print("NCP; groups; median relative error of 200 random range counts on the training rows")
    schema = datasets.adult().schema
    queries = random_queries(schema, 200, seed=1)
    for name, publish in methods().items():
        learned, regions, hidden, groups, errors = [], [], [], [], []
        for run in range(runs):
            train, test = splits(run)
            release, rows = publish(train, run), coded(train, schema)
            learned.append(100 * accuracy(release, test))
            regions.append(100 * accuracy_of_regions(release, test))
            hidden.append(certainty_penalty(release.regions, [rows[one] for one in schema.predictors]))
            groups.append(release.groups)
            errors.append(median_error(release, queries, rows))
        print(
            f"  {name:26} {mean_of(learned)}  {mean_of(regions)}  NCP {np.mean(hidden):.3f}  "
            f"{np.mean(groups):8,.0f} groups  error {np.mean(errors):.3f}",
            flush=True,
        )


def median_error(release: Release, queries: Any, rows: CodedRows) -> float:
    """Give the median relative error of range counts."""
    return float(np.median(relative_errors(release, queries, rows, len(next(iter(rows.values()))))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, help="time on the first so many rows only")
    given = parser.parse_args()
    times(given.rows)
    million()
    classification(given.runs)
