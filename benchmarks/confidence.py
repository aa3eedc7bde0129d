"""The confidence-capped framework beside Mondrian: who is suppressed, range counts, classification, and time.

As in the paper, statistics are the table's own, sampling is 0.9 and the distortion limit 0.6. Max.k is the least k of a
ladder at which every record of Mondrian's groups satisfies the criterion (without sampling); Avg.k is the mean size of
the groups that the framework publishes. Query errors are relative to the truth, of queries that someone satisfies.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from census import QUASI, census, census_schema
from protocol import coded, mean_of
from sfumato import Account, Confidence, Mondrian, Release, Schema, datasets
from sfumato.boxes import Boxes
from sfumato.confidence_cap import ConfidenceCap
from sfumato.evaluate.classification import record_features
from sfumato.evaluate.queries import Codes, RangeQuery
from sfumato.release.regions import sides_of
from sfumato.syntactic.splits import SplitScore

LADDER = (5, 10, 20, 30, 50, 70, 90, 120, 150, 200, 300, 500)
QUERIES = 1000
Floats = NDArray[np.float64]


def published(table: pa.Table, schema: Schema, method: Confidence | Mondrian) -> Release:
    """Publish without epsilon, on a ledger of its own."""
    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "census.ledger", schema)
        return account.publish_without_epsilon(table, method, unsafe_seed=1)


def capped(sensitive: str, distortion: Fraction = Fraction(3, 5)) -> Confidence:
    """Give the framework as the paper sets it."""
    return Confidence(sensitive=sensitive, quasi=QUASI, distortion=distortion, statistics_from_data=True)


def mondrian(sensitive: str, k: int, score: SplitScore = "median") -> Mondrian:
    """Give Mondrian over the same quasi-identifiers."""
    return Mondrian(k=k, sensitive=sensitive, quasi=QUASI, score=score)


def unsafe_share(release: Release, own: ConfidenceCap) -> float:
    """Give the share of Mondrian's records that do not satisfy the criterion, all of them being published."""
    counts = release.counts.counts
    held = counts.any(axis=1)
    sides = [sides_of(release.partition, at).of(np.flatnonzero(held)) for at in range(len(release.schema.shape))]
    boxes = Boxes(release.schema.shape, np.stack(sides, axis=1))
    claims = ConfidenceCap(own.quasi, own.sensitive, Fraction(1), own.knowledge).claims(boxes, counts[held])
    unsafe = claims.observed > claims.expected + 1e-9
    return float(counts[held][claims.groups[unsafe], claims.values[unsafe]].sum() / counts.sum())


def max_k(table: pa.Table, schema: Schema, own: ConfidenceCap, score: SplitScore = "median") -> int | None:
    """Find the least k of the ladder at which everyone satisfies the criterion."""
    for k in LADDER:
        if not unsafe_share(published(table, schema, mondrian(own.sensitive, k, score)), own):
            return k
    return None


def cap_of(release: Release) -> ConfidenceCap:
    """Give the promise of a release of the framework."""
    assert isinstance(release.manifest.promise, ConfidenceCap)
    return release.manifest.promise


def suppression(sizes: tuple[int, ...]) -> None:
    """Print how many records are suppressed at each distortion limit."""
    limits = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1")
    print("Records suppressed in % of the sample, by distortion limit; every published record satisfies the criterion")
    print(f"  {'':24}" + "".join(f"{limit:>8}" for limit in limits))
    for name, table, schema, sensitive in tables(sizes):
        cells = []
        for limit in limits:
            notes = published(table, schema, capped(sensitive, Fraction(limit))).notes
            kept, *lost = (int(line.split(": ")[1].split(" ")[0].replace(",", "")) for line in notes[-3:])
            cells.append(f"{100 * sum(lost) / (kept + sum(lost)):8.3f}")
        print(f"  {name:24}" + "".join(cells), flush=True)


def tables(sizes: tuple[int, ...]) -> list[tuple[str, pa.Table, Schema, str]]:
    """Give the census-like tables, and Adult."""
    found = [
        (f"{sensitive}, {rows:,}", census(sensitive, rows, seed=rows), census_schema(sensitive), sensitive)
        for sensitive in ("occupation", "salary")
        for rows in sizes
    ]
    adult = datasets.adult()
    return [*found, *((f"adult, {one}", adult.table, adult.schema, one) for one in ("occupation", "income"))]


def random_queries(schema: Schema, rows: Codes, seed: int) -> tuple[list[RangeQuery], Floats]:
    """Draw ranges on one to three quasi-identifiers and on the sensitive attribute that someone satisfies."""
    rng = np.random.default_rng(seed)
    leaves = {name: one.leaves for name, one in schema.predictors.items()} | {str(schema.target): len(schema.classes)}
    queries, truths = list[RangeQuery](), list[int]()
    while len(queries) < QUERIES:
        names = [*rng.choice(list(schema.predictors), int(rng.integers(1, 4)), replace=False), str(schema.target)]
        ends = {str(name): np.sort(rng.choice(leaves[str(name)] + 1, 2, replace=False)) for name in names}
        query = RangeQuery({name: (int(lo), int(hi)) for name, (lo, hi) in ends.items()})
        if truth := query.truth(rows):
            queries.append(query)
            truths.append(truth)
    return queries, np.array(truths, np.float64)


def answered(release: Release, query: RangeQuery) -> float:
    """Ask a release."""
    leaves = dict(zip(release.schema.predictors, release.schema.shape, strict=True))
    leaves[str(release.schema.target)] = len(release.schema.classes)
    weights = {
        name: ((np.arange(leaves[name]) >= lo) & (np.arange(leaves[name]) < hi)).astype(np.float64)
        for name, (lo, hi) in query.ranges.items()
    }
    return release.count(weights).value


def query_errors(sizes: tuple[int, ...]) -> None:
    """Print average relative errors: small queries (under 1 % of the rows), large (over 10 %), all."""
    print(f"\nAverage relative error of {QUERIES:,} range counts in % (median): small, large, all")
    for name, table, schema, sensitive in tables(sizes):
        kept = mondrian(sensitive, 5).narrowed(schema)
        rows = coded(table, kept)
        queries, truths = random_queries(kept, rows, seed=7)
        ours = published(table, schema, capped(sensitive))
        least = max_k(table, schema, cap_of(ours))
        mean_size = max(round(int(ours.counts.counts.sum()) / ours.groups), 2)
        releases = {
            f"confidence, {ours.groups:,} groups": ours,
            f"mondrian, Avg.k = {mean_size}": published(table, schema, mondrian(sensitive, mean_size)),
            f"mondrian, Max.k = {least or f'none to {LADDER[-1]}'}": published(
                table, schema, mondrian(sensitive, least or LADDER[-1])
            ),
        }
        print(f"  {name}")
        for label, release in releases.items():
            wrong = 100 * np.abs(np.array([answered(release, query) for query in queries]) - truths) / truths
            parts = [wrong[truths < 0.01 * len(rows["age"])], wrong[truths > 0.1 * len(rows["age"])], wrong]
            cells = "".join(f"  {np.mean(part):8.2f} ({np.median(part):6.2f})" for part in parts)
            lost = "" if release is ours else f"  unsafe {100 * unsafe_share(release, cap_of(ours)):.2f} %"
            print(f"    {label:32}{cells}{lost}", flush=True)


LEARNERS: dict[str, Callable[[], object]] = {
    "decision tree": lambda: DecisionTreeClassifier(criterion="entropy", ccp_alpha=2e-4, random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "linear SVM": lambda: make_pipeline(StandardScaler(), LinearSVC(C=0.01)),
}


def accuracies(schema: Schema, train: Codes, test: Codes) -> list[float]:
    """Learn from records and predict raw ones: naive Bayes, then the other learners."""
    target, names = str(schema.target), list(schema.predictors)
    left, right = (np.stack([np.asarray(rows[name], np.int64) for name in names], axis=1) for rows in (train, test))
    bayes = CategoricalNB(min_categories=list(schema.shape)).fit(left, train[target])
    found = [100 * float((bayes.predict(right) == test[target]).mean())]
    seen, asked = record_features(schema, train), record_features(schema, test)
    for make in LEARNERS.values():
        model = make().fit(seen, train[target])  # type: ignore[attr-defined]
        found.append(100 * float((model.predict(asked) == test[target]).mean()))
    return found


def classification(runs: int) -> None:
    """Print the accuracy on raw test rows of what is learned from records drawn from each release."""
    adult = datasets.adult()
    schema = mondrian("income", 5).narrowed(adult.schema)
    own = cap_of(published(adult.table, adult.schema, capped("income")))
    least = max_k(adult.table, adult.schema, own, "infogain")
    print(f"\nAccuracy on Adult, six quasi-identifiers, in %, {runs} of 10 folds (standard error)")
    print(f"  {'':34}" + "".join(f"{name:>21}" for name in ("naive Bayes", *LEARNERS)))
    found: dict[str, list[list[float]]] = {}
    folds = np.random.default_rng(0).permutation(adult.table.num_rows) % 10
    for run in range(runs):
        train, test = (adult.table.filter(pa.array(which)) for which in (folds != run, folds == run))
        asked = coded(test, schema)
        ours = published(train, adult.schema, capped("income"))
        mean_size = max(round(int(ours.counts.counts.sum()) / ours.groups), 2)
        releases = {
            "confidence": ours,
            "mondrian infogain, Avg.k": published(train, adult.schema, mondrian("income", mean_size, "infogain")),
            f"mondrian infogain, Max.k {least or f'(none, {LADDER[-1]})'}": published(
                train, adult.schema, mondrian("income", least or LADDER[-1], "infogain")
            ),
        }
        found.setdefault("raw rows", []).append(accuracies(schema, coded(train, schema), asked))
        for name, release in releases.items():
            drawn = release.sample_codes(seed=run)
            found.setdefault(name, []).append(accuracies(schema, drawn, asked))
    for name, values in found.items():
        print(f"  {name:34}" + "".join(f"{mean_of(column):>21}" for column in zip(*values, strict=True)))


def blown_up(rows: int) -> pa.Table:
    """Add variations of a table of 100,000 records: a fifth of all values replaced by those of others."""
    table, rng = census("occupation", 100_000), np.random.default_rng(0)
    base, others = rng.integers(0, table.num_rows, rows), rng.integers(0, table.num_rows, (table.num_columns, rows))
    return pa.table(
        {
            name: table[name].take(pa.array(np.where(rng.random(rows) < 0.2, other, base)))
            for name, other in zip(table.column_names, others, strict=True)
        }
    )


def times(sizes: tuple[int, ...]) -> None:
    """Print how long publishing takes, from the table to the groups, and per record and doubling."""
    print("\nProcessor seconds, census-like records with random replacements, occupation; mondrian with k = 10")
    for rows in sizes:
        table, schema = blown_up(rows), census_schema("occupation")
        cells = []
        for method in (capped("occupation"), mondrian("occupation", 10)):
            start = time.process_time()
            release = published(table, schema, method)
            took = time.process_time() - start
            per = 1e9 * took / (rows * math.log2(rows))
            cells.append(f"{method.name} {took:6.2f} s ({per:5.1f} ns per n log n), {release.groups:,} groups")
        print(f"  {rows:9,} rows  " + "   ".join(cells), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="folds to classify")
    parser.add_argument("--quick", action="store_true", help="one size of census-like tables")
    given = parser.parse_args()
    census_sizes = (50_000,) if given.quick else (25_000, 75_000, 150_000)
    suppression(census_sizes)
    query_errors(census_sizes)
    classification(given.runs)
    times((100_000, 200_000, 500_000, 1_000_000))
