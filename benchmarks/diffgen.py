"""DiffGen's paper check and what our defaults make of it: classification accuracy on Adult, and range-count errors.

2/3 train, 1/3 test, 10 runs with fixed seeds; each run's split is shared by all settings, so differences are paired.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import Account, DiffGen, Release, Schema, datasets
from sfumato.evaluate.classification import accuracy
from sfumato.evaluate.queries import random_queries, relative_errors
from sfumato.io.encode import encode
from sfumato.io.tables import open_table
from sfumato.release.projection import Nonnegative

EPSILONS = ("0.1", "0.25", "0.5", "1")
STEPS = (4, 7, 10, 13, 16)

Make = Callable[[int], DiffGen]
SETTINGS: dict[str, tuple[Make, Nonnegative]] = {
    "paper, max": (lambda h: DiffGen.as_published(specializations=h), "clamp"),
    "paper, gain": (lambda h: DiffGen.as_published(specializations=h, score="gain"), "clamp"),
    "ours, max": (lambda h: DiffGen(specializations=h), "projection"),
    "ours, no margins": (lambda h: DiffGen(specializations=h, margins=Fraction(0)), "projection"),
    "ours, weighted": (lambda h: DiffGen(specializations=h, score="weighted-gain", rows=100_000), "projection"),
}


def releases(
    make: Make, epsilon: str, h: int, runs: int
) -> Iterator[tuple[Release, dict[str, NDArray[np.unsignedinteger]]]]:
    """Publish a random 2/3 of Adult in each run; give the release and the coded other third."""
    adult = datasets.adult()
    for run in range(runs):
        order = np.random.default_rng(run).permutation(adult.table.num_rows)
        cut = 2 * len(order) // 3
        test = encode(open_table(adult.table.take(np.sort(order[cut:]))), adult.schema).columns
        with Account.throwaway(adult.schema) as account:
            train = adult.table.take(np.sort(order[:cut]))
            yield account.publish(train, make(h), epsilon, unsafe_seed=10_000 + run), test


def accuracies(make: Make, how: Nonnegative, epsilon: str, h: int, runs: int) -> list[float]:
    """Give the accuracy of each run in per cent."""
    return [100 * accuracy(release, test, how) for release, test in releases(make, epsilon, h, runs)]


def classification(runs: int) -> None:
    """Print accuracy by setting, epsilon and h."""
    print(f"Classification accuracy on Adult in %, {runs} runs, entropy tree on generalized groups (standard error)")
    print(f"{'':18} {'epsilon':>7} " + " ".join(f"{'h=' + str(h):>13}" for h in STEPS) + "   best")
    for name, (make, how) in SETTINGS.items():
        for epsilon in EPSILONS:
            found = [np.array(accuracies(make, how, epsilon, h, runs)) for h in STEPS]
            cells = [f"{one.mean():6.2f} ({one.std(ddof=1) / runs**0.5:.2f})" for one in found]
            print(f"{name:18} {epsilon:>7} " + " ".join(f"{cell:>13}" for cell in cells), end=" ")
            print(f"{max(one.mean() for one in found):6.2f}", flush=True)


def range_counts(runs: int) -> None:
    """Print the errors of random range queries with and without margins."""
    adult = datasets.adult()
    schema: Schema = adult.schema
    coded = encode(open_table(adult.table), schema).columns
    queries = random_queries(schema, 1000, seed=1)
    print(f"\n1,000 random range counts on 2 to 4 attributes, h=10, {runs} runs: average relative error (median)")
    for epsilon in ("0.1", "1"):
        rows: dict[str, list[NDArray[np.float64]]] = {"margins 0 (paper)": [], "margins 0.2": []}
        for run in range(runs):
            with Account.throwaway(schema) as account:
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
    range_counts(given.runs)
