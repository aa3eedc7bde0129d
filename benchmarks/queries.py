"""Range counts on Adult: how far the answers of each method are from the truth, and whether the error bars hold.

Random conjunctions of ranges on two to four attributes; the error is relative, with a floor of 0.1 % of the rows under
the truth. Aligned queries follow the borders of a release's own regions, so nothing in them rests on spreading.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from protocol import mean_of
from sfumato import CDiffGen, DiffGen, DiffMulti, Release, datasets
from sfumato.account import seeded_release
from sfumato.evaluate.fidelity import RangeQuery, floored_errors, random_queries
from sfumato.methods import Method
from sfumato.papers.runs import coded

EPSILONS = ("0.1", "0.25", "0.5", "1")
STEPS = (4, 7, 10, 13, 16)
METHODS: dict[str, Callable[[int], Method]] = {
    "DiffGen (paper)": lambda h: DiffGen.as_published(specializations=h),
    "CDiffGen (paper)": lambda h: CDiffGen.as_published(specializations=h),
    "DiffGen": lambda h: DiffGen(specializations=h, max_cells=2_000_000),
    "CDiffGen": lambda h: CDiffGen(specializations=h),
}
Task = tuple[str, str, int, int]


def borders(release: Release) -> dict[str, list[int]]:
    """Give the borders that all regions respect: those of the grid behind a release of DiffGen or CDiffGen."""
    names = list(release.schema.predictors)
    return {names[index]: np.unique(side.ranges).tolist() for index, side in enumerate(release.sides)}


def aligned_queries(release: Release, count: int, seed: int) -> list[RangeQuery]:
    """Draw queries between borders of the regions."""
    rng = np.random.default_rng(seed)
    usable = {name: cut for name, cut in borders(release).items() if len(cut) > 2}
    queries = []
    for _ in range(count):
        chosen = rng.choice(list(usable), min(int(rng.integers(2, 5)), len(usable)), replace=False)
        ends = {str(name): sorted(rng.choice(usable[str(name)], 2, replace=False).tolist()) for name in chosen}
        queries.append(RangeQuery({name: (lo, hi) for name, (lo, hi) in ends.items()}))
    return queries


def asked(release: Release, queries: Sequence[RangeQuery]) -> NDArray[np.float64]:
    """Give value and standard deviation of each answer."""
    answers = release.count_many([query.weights(release.schema) for query in queries])
    return np.stack([answers.values, answers.stddevs], axis=1)


def measured(task: Task) -> NDArray[np.float64]:
    """Give, averaged over runs: free queries' mean and median error, those of small and large truths, aligned queries'
    error, the share of aligned truths inside the 95 % interval, and the groups.
    """
    name, epsilon, h, runs = task
    adult = datasets.adult()
    rows, size = coded(adult.table, adult.schema), adult.table.num_rows
    free = random_queries(adult.schema, 1000, seed=1)
    truths = np.array([query.truth(rows) for query in free], np.float64)
    found = []
    for run in range(runs):
        release = seeded_release(adult.table, adult.schema, METHODS[name](h), epsilon, run)
        error = floored_errors(asked(release, free)[:, 0], truths, size)
        near = aligned_queries(release, 300, seed=run)
        near_truths = np.array([query.truth(rows) for query in near], np.float64)
        near_answers = asked(release, near)
        inside = np.abs(near_answers[:, 0] - near_truths) <= 1.959964 * near_answers[:, 1] + 1e-6
        found.append(
            (
                error.mean(),
                float(np.median(error)),
                error[truths < 0.01 * size].mean(),
                error[truths > 0.1 * size].mean(),
                floored_errors(near_answers[:, 0], near_truths, size).mean(),
                inside.mean(),
                release.groups,
            )
        )
    return np.array(found)


def multidimensional(runs: int) -> None:
    """Print the errors of DiffMulti, whose regions have no borders in common."""
    adult = datasets.adult()
    rows, size = coded(adult.table, adult.schema), adult.table.num_rows
    free = random_queries(adult.schema, 1000, seed=1)
    truths = np.array([query.truth(rows) for query in free], np.float64)
    for epsilon, (name, method) in product(EPSILONS, {"balanced": DiffMulti(), "ncp": DiffMulti(score="ncp")}.items()):
        found = []
        for run in range(runs):
            release = seeded_release(adult.table, adult.schema, method, epsilon, run)
            error = floored_errors(asked(release, free)[:, 0], truths, size)
            found.append((error.mean(), float(np.median(error)), release.groups))
        mean, median, groups = np.mean(found, axis=0)
        print(f"DiffMulti, {name:8} {epsilon:>7}       {mean:8.3f} {median:8.3f} {'':35} {groups:8,.0f}", flush=True)


def baselines() -> None:
    """Print what answering 0 to everything gives, and the Laplace contingency table, by its distribution.

    The table of all combinations of leaves has too many cells to be made; the noise of a query is the sum of its
    cells', which is normal for so many.
    """
    adult = datasets.adult()
    rows, size = coded(adult.table, adult.schema), adult.table.num_rows
    free = random_queries(adult.schema, 1000, seed=1)
    truths = np.array([query.truth(rows) for query in free], np.float64)
    zero = floored_errors(np.zeros(len(free)), truths, size)
    print(f"answering 0                     {zero.mean():8.3f} {np.median(zero):8.3f}")
    rng = np.random.default_rng(0)
    shape = dict(zip(adult.schema.predictors, adult.schema.shape, strict=True))
    for epsilon in EPSILONS:
        cells = [
            np.prod([float(np.diff(query.ranges.get(name, (0, leaves)))[0]) for name, leaves in shape.items()])
            for query in free
        ]
        noise = rng.normal(size=len(free)) * np.sqrt(2 * 2 * np.array(cells)) / float(Fraction(epsilon))
        wrong = floored_errors(truths + noise, truths, size)
        print(f"Laplace table      {epsilon:>7}       {wrong.mean():8.2g} {np.median(wrong):8.2g}")


def main(runs: int) -> None:
    """Print the table."""
    print(f"Average relative error of 1,000 range counts, {runs} runs (free: all, median, small, large; aligned)")
    print(f"{'':18} epsilon    h      all   median    small    large  aligned  covered   groups")
    baselines()
    tasks = [(name, epsilon, h, runs) for name in METHODS for epsilon in EPSILONS for h in STEPS]
    results = {}
    with ProcessPoolExecutor() as pool:
        for task, found in zip(tasks, pool.map(measured, tasks), strict=True):
            name, epsilon, h, _ = task
            results[name, epsilon, h] = found
            *numbers, groups = found.mean(axis=0)
            print(
                f"{name:18} {epsilon:>7} {h:4} " + " ".join(f"{number:8.3f}" for number in numbers),
                f"{groups:8,.0f}",
                flush=True,
            )
    multidimensional(runs)
    differences(results)


def differences(results: Mapping[tuple[str, str, int], NDArray[np.float64]]) -> None:
    """Print by how much CDiffGen's error exceeds DiffGen's on the same trees, run by run."""
    print("\nCDiffGen minus DiffGen on the same trees, mean (standard error): free, and aligned")
    for epsilon, h in product(EPSILONS, STEPS):
        more = results["CDiffGen", epsilon, h] - results["DiffGen", epsilon, h]
        free, aligned = (mean_of(more[:, column], digits=3) for column in (0, 4))
        print(f"{epsilon:>7} {h:4}  {free}  {aligned}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    main(parser.parse_args().runs)
