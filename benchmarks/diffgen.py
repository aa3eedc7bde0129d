"""What our parts add to DiffGen, beyond `sfumato reproduce diffgen`: accuracy on Adult, and range-count errors."""

from __future__ import annotations

import argparse
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from protocol import mean_of, splits
from sfumato import DiffGen, Schema, datasets
from sfumato.account import seeded_release
from sfumato.evaluate.fidelity import random_queries, relative_errors
from sfumato.evaluate.learning import accuracy
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table
from specializing import EPSILONS, Settings, classification

SETTINGS: Settings = {
    "ours, max": (partial(DiffGen, score="max", choice="separate", margins=Fraction(0)), accuracy),
    "ours, weighted": (partial(DiffGen, score="weighted-gain", rows=100_000, purpose="classification"), accuracy),
}
"""Our mechanisms (permute-and-flip, the monotone factor, the leftover and the projection) without margins, as in the
paper; and the count-weighted gain.
"""


def automatic(runs: int) -> None:
    """Print the accuracy with h = auto."""
    print("\nThe same for classification, with h = auto")
    for epsilon in EPSILONS:
        found, steps = [], []
        for run in range(runs):
            train, test = splits(run)
            schema = datasets.adult().schema
            release = seeded_release(train, schema, DiffGen(purpose="classification"), epsilon, 10_000 + run)
            found.append(100 * accuracy(release, test))
            steps.append(len(release.manifest.steps))
        print(f"  epsilon {epsilon:>4}  {mean_of(found)}  h = {np.mean(steps):.1f} on average", flush=True)


def range_counts(runs: int) -> None:
    """Print the errors of random range queries with and without margins."""
    adult = datasets.adult()
    schema: Schema = adult.schema
    coded = encode(open_table(adult.table), schema).columns
    queries = random_queries(schema, 1000, seed=1)
    print(f"\n1,000 random range counts on 2 to 4 attributes, {runs} runs: average relative error (median)")
    for epsilon in ("0.1", "1"):
        methods = {"even inside groups": DiffGen(specializations=10, margins=Fraction(0)), "our defaults": DiffGen()}
        rows: dict[str, list[NDArray[np.float64]]] = {name: [] for name in methods}
        for run in range(runs):
            for name, method in methods.items():
                release = seeded_release(adult.table, schema, method, epsilon, run)
                rows[name].append(relative_errors(release, queries, coded, adult.table.num_rows))
        for name, errors in rows.items():
            average, median = np.mean(errors), np.mean([np.median(one) for one in errors])
            print(f"  epsilon {epsilon:>4}  {name:18} {average:7.3f} ({median:.3f})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    classification(SETTINGS, given.runs)
    automatic(given.runs)
    range_counts(given.runs)
