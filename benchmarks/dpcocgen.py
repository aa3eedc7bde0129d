"""DPCocGen on the paper's five attributes of Adult, beyond `sfumato reproduce dpcocgen`.

Hellinger distance at other granularities; AUC of boosted trees that predict sex and relationship from the other
attributes, trained on synthetic individuals; the clean co-clustering; and time.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from protocol import mean_of
from sfumato import DPCocGen, Laplace, Release, Schema, datasets
from sfumato.account import seeded_release
from sfumato.evaluate.fidelity import hellinger
from sfumato.evaluate.learning import Model, auc
from sfumato.methods import Method
from sfumato.models.model import Nonnegative
from sfumato.modl import fit
from sfumato.papers.runs import coded
from sfumato.privacy.mechanisms import Exact
from sfumato.schema.schema import cells_of, kinds_of

ATTRIBUTES = ("age", "workclass", "education", "relationship", "sex")
EPSILONS = ("0.1", "0.25", "0.5", "1")
TARGETS = ("sex", "relationship")
Setting = tuple[Method, Nonnegative]
SETTINGS: Mapping[str, Setting] = {
    "Laplace, projected": (Laplace(), "projection"),
    "ours, 1,000 cells": (DPCocGen(cells=1000), "projection"),
    "ours, 144 cells": (DPCocGen(cells=144), "projection"),
    "ours, finest": (DPCocGen(information=Fraction(1)), "projection"),
}
MAIN: Mapping[str, Setting] = {
    "Laplace baseline": (Laplace(), "clamp"),
    "paper, 1,000 cells": (DPCocGen.as_published(cells=1000), "clamp"),
    "ours (defaults)": (DPCocGen(), "projection"),
}
Rows = Mapping[str, NDArray[np.integer]]
Measure = Callable[[Setting, str, int], list[float]]


@cache
def people() -> tuple[Schema, Rows]:
    """Give the schema of the five attributes, and the table's codes."""
    schema = datasets.adult().schema.only(ATTRIBUTES)
    return schema, coded(table(), schema)


@cache
def table() -> pa.Table:
    """Give the complete rows."""
    return datasets.adult().table


def published(setting: Setting, epsilon: str, seed: int, some: NDArray[np.intp] | None = None) -> Release:
    """Publish the table, or some of its rows."""
    rows = table() if some is None else table().take(some)
    return seeded_release(rows, people()[0], setting[0], epsilon, seed)


def distance(setting: Setting, epsilon: str, run: int) -> list[float]:
    """Give the Hellinger distance of one release's individuals."""
    individuals = published(setting, epsilon, run).sample_codes(seed=run, how=setting[1])
    return [hellinger(people()[1], individuals, ATTRIBUTES)]


def areas(setting: Setting | None, epsilon: str, run: int, model: Model) -> list[float]:
    """Give the AUC for sex and relationship; without a setting from the table itself."""
    schema, rows = people()
    order = np.random.default_rng(run).permutation(len(rows["sex"]))
    train, test = np.split(order, [4 * len(order) // 5])
    held_out = {name: rows[name][test] for name in ATTRIBUTES}
    learnt: Rows = {name: rows[name][train] for name in ATTRIBUTES}
    if setting is not None:
        learnt = published(setting, epsilon, run, np.sort(train)).sample_codes(seed=run, how=setting[1])
    return [auc(schema, learnt, held_out, target, model) for target in TARGETS]


def _task(task: tuple[Measure, Setting, str, int]) -> list[float]:
    measure, setting, epsilon, run = task
    return measure(setting, epsilon, run)


def show(title: str, measure: Measure, runs: int) -> None:
    """Print means of a measure by setting and epsilon."""
    print(f"\n{title}, {runs} runs (standard error)")
    print(f"{'':20}" + "".join(f"{'epsilon ' + epsilon:>28}" for epsilon in EPSILONS))
    with ProcessPoolExecutor() as pool:
        for name in SETTINGS:
            tasks = [(measure, SETTINGS[name], epsilon, run) for epsilon in EPSILONS for run in range(runs)]
            found = np.array(list(pool.map(_task, tasks))).reshape(len(EPSILONS), runs, -1)
            cells = ["  ".join(_mean(column) for column in one.T) for one in found]
            print(f"{name:20}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


def _mean(values: NDArray[np.float64]) -> str:
    return mean_of(values, digits=3).strip()


def prediction(model: Model, runs: int) -> None:
    """Print the AUCs, with those of the table itself.

    Nothing is learnt in this process: one that has begun threads of OpenMP leaves children that wait for them forever.
    """
    print(f"\nAUC for {' and '.join(TARGETS)} by {model}, {runs} runs (standard error)")
    with ProcessPoolExecutor() as pool:
        raw = np.array(list(pool.map(partial(areas, None, "1", model=model), range(runs))))
        print(f"{'the table itself':26}  " + "  ".join(_mean(column) for column in raw.T), flush=True)
        for name in MAIN:
            for epsilon in EPSILONS:
                tasks = [(partial(areas, model=model), MAIN[name], epsilon, run) for run in range(runs)]
                found = np.array(list(pool.map(_task, tasks)))
                print(f"{name:20} {epsilon:>5}  " + "  ".join(_mean(column) for column in found.T), flush=True)


def coclustering() -> None:
    """Print the cost of the clean histogram's grid: all 46,043 rows that are complete in the five attributes."""
    schema = people()[0]
    columns = coded(datasets.adult(complete=False).table.select(ATTRIBUTES).drop_null(), schema)
    counts = np.zeros(schema.shape, np.int64)
    np.add.at(counts, tuple(columns[name] for name in ATTRIBUTES), 1)
    start = time.perf_counter()
    grid = fit(counts, kinds_of(schema), variant="khiops11")
    took = time.perf_counter() - start
    print(f"\nClean co-clustering of {counts.sum():,} rows: cost {grid.cost:,.2f}, {grid.shape}, {took:.1f} s")


def speed() -> None:
    """Print the time of a publication against that of its noise alone, and a domain of five million cells."""
    schema = people()[0]
    cells = cells_of(schema)
    nothing, alike = np.zeros((cells, 1), np.int64), np.zeros(cells, np.int64)
    noise = min(_seconds(lambda: Exact(None).add_noise(nothing, [Fraction(1, 2)], alike)) for _ in range(3))
    whole = min(_seconds(lambda: published(MAIN["ours (defaults)"], "1", 1)) for _ in range(3))
    print(f"\n{cells:,} cells: noise alone {noise:.3f} s, publication {whole:.2f} s, {whole / noise:.1f} times")
    large = datasets.adult().schema.only([*ATTRIBUTES, "native_country"])
    start = time.perf_counter()
    release = seeded_release(table(), large, DPCocGen(), "1", 1)
    release.sample_codes(seed=1)
    took, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{cells_of(large):,} cells: {took:.1f} s, {release.groups:,} groups, peak memory {memory:.1f} GB")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    coclustering()
    speed()
    show("Hellinger distance of the joint distribution", distance, given.runs)
    prediction("boosted trees", given.runs)
