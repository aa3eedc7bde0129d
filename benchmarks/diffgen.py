"""DiffGen's paper check and what our defaults make of it: classification accuracy on Adult, and range-count errors.

2/3 train, 1/3 test, 10 runs with fixed seeds; each run's split is shared by all settings, so differences are paired.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol import splits
from sfumato import Account, DiffGen, Schema, datasets
from sfumato.evaluate.classification import accuracy
from sfumato.evaluate.queries import random_queries, relative_errors
from sfumato.io.encode import encode
from sfumato.io.tables import open_table
from sfumato.release.projection import Nonnegative

EPSILONS = ("0.1", "0.25", "0.5", "1")
STEPS = (4, 7, 10, 13, 16)

Make = Callable[[int], DiffGen]


def paper(h: int) -> DiffGen:
    """The paper's method with its score Max."""
    return DiffGen.as_published(specializations=h)


def paper_gain(h: int) -> DiffGen:
    """The paper's method with its score InfoGain."""
    return DiffGen.as_published(specializations=h, score="gain")


def our_mechanisms(h: int) -> DiffGen:
    """Max with permute-and-flip, the monotone factor, the leftover and the projection; no margins, as in the paper."""
    return DiffGen(specializations=h, score="max", choice="separate", margins=Fraction(0))


def weighted(h: int) -> DiffGen:
    """Our defaults with the count-weighted gain."""
    return DiffGen(specializations=h, score="weighted-gain", rows=100_000)


def defaults(h: int) -> DiffGen:
    """Our defaults, margins included."""
    return DiffGen(specializations=h)


SETTINGS: dict[str, tuple[Make, Nonnegative]] = {
    "paper, max": (paper, "clamp"),
    "paper, gain": (paper_gain, "clamp"),
    "ours, max": (our_mechanisms, "projection"),
    "ours, weighted": (weighted, "projection"),
    "ours (defaults)": (defaults, "projection"),
}


def accuracies(task: tuple[str, str, int]) -> list[list[float]]:
    """Give the accuracy in per cent for each h and each run."""
    name, epsilon, runs = task
    make, how = SETTINGS[name]
    found: list[list[float]] = [[] for _ in STEPS]
    for run in range(runs):
        train, test = splits(run)
        account = Account("unused.ledger", datasets.adult().schema)
        for column, h in zip(found, STEPS, strict=True):
            release = account.publish(train, make(h), epsilon, unsafe_seed=10_000 + run)
            column.append(100 * accuracy(release, test, how))
    return found


def classification(runs: int) -> None:
    """Print accuracy by setting, epsilon and h."""
    print(f"Classification accuracy on Adult in %, {runs} runs, entropy tree on generalized groups (standard error)")
    print(f"{'':18} {'epsilon':>7} " + " ".join(f"{'h=' + str(h):>13}" for h in STEPS) + "   best")
    tasks = [(name, epsilon, runs) for name in SETTINGS for epsilon in EPSILONS]
    with ProcessPoolExecutor() as pool:
        for (name, epsilon, _), found in zip(tasks, pool.map(accuracies, tasks), strict=True):
            means = [float(np.mean(column)) for column in found]
            errors = [float(np.std(column, ddof=1)) / runs**0.5 for column in found]
            cells = [f"{mean:6.2f} ({error:.2f})" for mean, error in zip(means, errors, strict=True)]
            print(
                f"{name:18} {epsilon:>7} " + " ".join(f"{cell:>13}" for cell in cells), f"{max(means):6.2f}", flush=True
            )


def automatic(runs: int) -> None:
    """Print the accuracy with h = auto."""
    print("\nThe same with our defaults and h = auto")
    for epsilon in EPSILONS:
        found, steps = [], []
        for run in range(runs):
            train, test = splits(run)
            account = Account("unused.ledger", datasets.adult().schema)
            release = account.publish(train, DiffGen(specializations="auto"), epsilon, unsafe_seed=10_000 + run)
            found.append(100 * accuracy(release, test))
            steps.append(len(release.manifest.steps))
        error = float(np.std(found, ddof=1)) / runs**0.5
        print(
            f"  epsilon {epsilon:>4}  {np.mean(found):6.2f} ({error:.2f})  h = {np.mean(steps):.1f} on average",
            flush=True,
        )


def range_counts(runs: int) -> None:
    """Print the errors of random range queries with and without margins."""
    adult = datasets.adult()
    schema: Schema = adult.schema
    coded = encode(open_table(adult.table), schema).columns
    queries = random_queries(schema, 1000, seed=1)
    print(f"\n1,000 random range counts on 2 to 4 attributes, h=10, {runs} runs: average relative error (median)")
    for epsilon in ("0.1", "1"):
        rows: dict[str, list[NDArray[np.float64]]] = {"margins 0 (paper)": [], "margins 0.2": []}
        account = Account("unused.ledger", schema)
        for run in range(runs):
            for name, method in (("margins 0 (paper)", DiffGen(margins=Fraction(0))), ("margins 0.2", DiffGen())):
                release = account.publish(adult.table, method, epsilon, unsafe_seed=run)
                rows[name].append(relative_errors(release, queries, coded, adult.table.num_rows))
        for name, errors in rows.items():
            average, median = np.mean(errors), np.mean([np.median(one) for one in errors])
            print(f"  epsilon {epsilon:>4}  {name:18} {average:7.3f} ({median:.3f})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    classification(given.runs)
    automatic(given.runs)
    range_counts(given.runs)
