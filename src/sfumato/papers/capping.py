"""The work of the confidence framework's runs: who is suppressed, range counts, learners, and time.

As in the paper, statistics are the table's own, sampling is 0.9 and the distortion limit 0.6. Max.k is the least k of a
ladder at which every record of Mondrian's groups satisfies the criterion, Avg.k the mean size of our groups.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.confidence_cap import ConfidenceCap
from sfumato.evaluate.classification import Codes
from sfumato.evaluate.learners import LEARNERS, teach
from sfumato.evaluate.queries import LARGE, SMALL, RangeQuery, leaves_of
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.accuracy import RAW
from sfumato.papers.census import QUASI, census, census_schema
from sfumato.papers.publishing import adult, coded, divided, published, timed
from sfumato.release.regions import sides_of
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.syntactic import Confidence, Mondrian, SyntacticMethod
from sfumato.syntactic.splits import SplitScore

CONFIDENCE, AVERAGE_K, MAX_K, INTERACTIVE = "confidence", "Mondrian, Avg.k", "Mondrian, Max.k", "Laplace, interactive"
LADDER = (5, 10, 20, 30, 50, 70, 90, 120, 150, 200, 300, 500)
QUERIES = 1000
LIMIT = Fraction(3, 5)
TOLERANCE = 1e-9
TAUGHT = ("pruned tree", "naive Bayes", "logistic regression", "linear SVM")
"""J48, NB, LR and SVM."""
Floats = NDArray[np.float64]


def capped(sensitive: str, distortion: Fraction = LIMIT) -> Confidence:
    """Give the framework as the paper sets it."""
    return Confidence(sensitive=sensitive, quasi=QUASI, distortion=distortion, statistics_from_data=True)


def mondrian(sensitive: str, k: int, score: SplitScore = "median") -> Mondrian:
    """Give Mondrian over the same quasi-identifiers."""
    return Mondrian(k=k, sensitive=sensitive, quasi=QUASI, score=score)


@cache
def table_of(source: str, sensitive: str, rows: int, seed: int) -> tuple[pa.Table, Schema]:
    """Give a census-like table, or the bundled one."""
    if source == "adult":
        return adult()
    return census(sensitive, rows, seed=rows + seed), census_schema(sensitive)


def _table(key: Key) -> tuple[pa.Table, Schema]:
    return table_of(key["source"], key["sensitive"], key["rows"], key["run"])


def suppressed(key: Key) -> Outcome:
    """Give the share of the sampled records that are suppressed, in per cent."""
    table, schema = _table(key)
    release = published(capped(key["sensitive"], Fraction(key["distortion"])), table, schema, None, key["run"])
    kept, *lost = (int(line.split(": ")[1].split(" ")[0].replace(",", "")) for line in release.notes[-3:])
    return {"suppressed": 100 * sum(lost) / (kept + sum(lost))}


def unsafe_share(release: Release, own: ConfidenceCap) -> float:
    """Give the share of Mondrian's records that do not satisfy the criterion, all of them being published."""
    counts = release.counts.counts
    held = counts.any(axis=1)
    sides = [sides_of(release.partition, at).of(np.flatnonzero(held)) for at in range(len(release.schema.shape))]
    boxes = Boxes(release.schema.shape, np.stack(sides, axis=1))
    claims = ConfidenceCap(own.quasi, own.sensitive, Fraction(1), own.knowledge).claims(boxes, counts[held])
    unsafe = claims.observed > claims.expected + TOLERANCE
    return float(counts[held][claims.groups[unsafe], claims.values[unsafe]].sum() / counts.sum())


def least_k(table: pa.Table, schema: Schema, own: Release, sensitive: str, score: SplitScore = "median") -> int:
    """Find the least k of the ladder at which everyone satisfies the criterion; the last if there is none."""
    cap = own.manifest.promise
    assert isinstance(cap, ConfidenceCap)
    for k in LADDER[:-1]:
        if not unsafe_share(published(mondrian(sensitive, k, score), table, schema, None, 0), cap):
            return k
    return LADDER[-1]


def mean_size(own: Release) -> int:
    """Give the mean size of the framework's groups."""
    return max(round(int(own.counts.counts.sum()) / own.groups), 2)


def asked(key: Key) -> Outcome:
    """Give average relative errors of range counts in per cent: small, large and all; and the k of Mondrian."""
    table, schema = _table(key)
    sensitive, run = key["sensitive"], key["run"]
    narrowed = mondrian(sensitive, LADDER[0]).narrowed(schema)
    rows = coded(table, narrowed)
    queries, truths = satisfied_queries(narrowed, rows, seed=run)
    if key["method"] == INTERACTIVE:
        noise = np.random.default_rng(run).laplace(scale=1 / float(Fraction(key["epsilon"])), size=len(truths))
        return _errors(truths + noise, truths, table.num_rows)
    release = published(capped(sensitive), table, schema, None, run)
    told: Outcome = {}
    if key["method"] != CONFIDENCE:
        k = mean_size(release) if key["method"] == AVERAGE_K else least_k(table, schema, release, sensitive)
        release, told = published(mondrian(sensitive, k), table, schema, None, run), {"k": k}
    answers = release.count_many([query.weights(release.schema) for query in queries]).values
    return _errors(answers, truths, table.num_rows) | told


def _errors(answers: Floats, truths: Floats, rows: int) -> Outcome:
    wrong = 100 * np.abs(answers - truths) / truths
    small, large = truths < SMALL * rows, truths > LARGE * rows
    return {name: float(wrong[of].mean()) for name, of in (("small", small), ("large", large), ("all", truths > 0))}


def satisfied_queries(schema: Schema, rows: Codes, seed: int) -> tuple[list[RangeQuery], Floats]:
    """Draw ranges on one to three quasi-identifiers and on the sensitive attribute that someone satisfies."""
    rng = np.random.default_rng(seed)
    queries, truths = list[RangeQuery](), list[int]()
    while len(queries) < QUERIES:
        names = [*rng.choice(list(schema.predictors), int(rng.integers(1, 4)), replace=False), str(schema.target)]
        ends = {str(name): np.sort(rng.choice(leaves_of(schema, name) + 1, 2, replace=False)) for name in names}
        query = RangeQuery({name: (int(lo), int(hi)) for name, (lo, hi) in ends.items()})
        if truth := query.truth(rows):
            queries.append(query)
            truths.append(truth)
    return queries, np.array(truths, np.float64)


def taught(key: Key) -> Outcome:
    """Learn income from records drawn from a release of nine folds, or from their rows, and test on the tenth."""
    train, test = divided("10-fold", key["run"])
    schema = mondrian("income", LADDER[0]).narrowed(adult()[1])
    seen = coded(train, schema) if key["method"] == RAW else _drawn(key, train)
    asked_of = coded(test, schema)
    truth = asked_of[str(schema.target)]
    return {
        learner: 100 * float((teach(learner, schema, seen).predict(asked_of) == truth).mean())
        for learner in LEARNERS
        if learner in TAUGHT
    }


def _drawn(key: Key, train: pa.Table) -> Codes:
    own = published(capped("income"), train, adult()[1], None, key["run"])
    if key["method"] != CONFIDENCE:
        k = mean_size(own) if key["method"] == AVERAGE_K else _least_k_of_adult()
        own = published(mondrian("income", k, "infogain"), train, adult()[1], None, key["run"])
    return own.sample_codes(seed=key["run"])


@cache
def _least_k_of_adult() -> int:
    table, schema = adult()
    return least_k(table, schema, published(capped("income"), table, schema, None, 0), "income", "infogain")


def grown(key: Key) -> Outcome:
    """Publish a census-like table blown up to so many rows: processor seconds."""
    method: SyntacticMethod = capped("occupation") if key["method"] == CONFIDENCE else mondrian("occupation", key["k"])
    table, schema = varied(key["rows"]), census_schema("occupation")
    release, seconds = timed(lambda: published(method, table, schema, None, key["run"]))
    return {"seconds": seconds, "groups": release.groups}


def varied(rows: int) -> pa.Table:
    """Give variations of a table of 100,000 records: a fifth of all values are replaced by those of others."""
    table, rng = census("occupation", 100_000), np.random.default_rng(0)
    base, others = rng.integers(0, table.num_rows, rows), rng.integers(0, table.num_rows, (table.num_columns, rows))
    return pa.table(
        {
            name: table[name].take(pa.array(np.where(rng.random(rows) < 0.2, other, base)))
            for name, other in zip(table.column_names, others, strict=True)
        }
    )
