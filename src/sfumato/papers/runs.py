"""The work of the papers' runs on the bundled table: variants of methods, splits, releases, and what is measured of
them.

Releases are seeded by the number of the run, so they carry no guarantee.

Classification is as in the papers: the learner sees the released groups, and a test row as the group in which it falls.
BA is the accuracy of the same kind of learner on raw rows, LA that of always saying their most frequent class.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import sfumato
from sfumato import (
    RPS,
    TDS,
    Categorical,
    CDiffGen,
    DiffGen,
    DiffMulti,
    DiffPC45,
    DPCocGen,
    DPCube,
    Hay,
    Laplace,
    Method,
    MethodWithoutEpsilon,
    Mondrian,
    Nonnegative,
    PrivBayes,
    Privelet,
    Release,
    Schema,
    datasets,
    seeded_release,
)
from sfumato.arrays import CodedRows, Integers
from sfumato.datasets import write_grown
from sfumato.evaluate.clusters import generalized_points, labels, match_point, points_of
from sfumato.evaluate.fidelity import certainty_penalty, discernibility
from sfumato.evaluate.learning import accuracy, accuracy_of_regions, cross_validated, held_out, majority_accuracy, teach
from sfumato.evaluate.runs import Key, Outcome
from sfumato.papers.figures import Evidence, Found

FIRST_SEED = 10_000
"""The seed of run 0; the seed of run n is n more."""
MOST_CELLS = 2_000_000
"""The most cells of DiffGen and of CDiffGen: the same, so that a seed leads both to the same cuts."""
TRAINING_FILE = 30_162
"""The number of rows that come from the file that the repository names for training; they are the first."""
EPSILONS = ("0.1", "0.25", "0.5", "1")
"""The budgets of most figures."""
STEPS = (4, 7, 10, 13, 16)
"""The numbers of specializations of most figures."""
RAW = "raw rows"
"""The method of runs that see the raw rows."""
CLUSTERS = 2
"""How many clusters are made."""
CLUSTER = "cluster"
"""The class attribute of the table that has its raw clusters for a class."""


@dataclass(frozen=True)
class Variant:
    """A method given the settings of a run, how its counts become people, and who learns from it."""

    make: Callable[[Key], Method | MethodWithoutEpsilon]
    how: Nonnegative = "projection"
    taught: Literal["groups", "records", "itself"] = "groups"
    """what a learner sees: its groups, or records drawn from it; or nobody, where it is a classifier itself"""


def _published(method: Any, score: str) -> Variant:
    return Variant(lambda key: method.as_published(specializations=key["h"], score=score), "clamp")


def _ours(method: type[DiffGen]) -> Variant:
    return Variant(lambda key: method(specializations=key["h"], max_cells=MOST_CELLS, purpose="classification"))


def _multi(score: str) -> Variant:
    return Variant(lambda key: DiffMulti(specializations=key["h"], score=score, purpose="classification"))


DIFFGEN, DIFFGEN_GAIN, DIFFGEN_OURS = "DiffGen Max, as published", "DiffGen InfoGain, as published", "DiffGen, ours"
CDIFFGEN, CDIFFGEN_GAIN, CDIFFGEN_OURS = (
    "CDiffGen Max, as published",
    "CDiffGen InfoGain, as published",
    "CDiffGen, ours",
)
DIFFMULTI, DIFFMULTI_OURS = "DiffMulti Max, as published", "DiffMulti, ours"
DM, DM_OURS = "DiffMulti discernibility, as published", "DiffMulti discernibility, ours"
NCP, NCP_OURS = "DiffMulti NCP, as published", "DiffMulti NCP, ours"
MONDRIAN, TDS_5 = "InfoGain Mondrian, k = 60", "TDS, k = 5"
LAPLACE = "Laplace baseline"
C45, CUBE = "DiffP-C4.5 Max, as published", "DPCube, as published"
BAYES, PARTITION = "PrivBayes, as published", "RPS, as published"
FINEST, THOUSAND, COARSE = "as published, finest", "as published, 1,000 cells", "as published, 144 cells"
DPCOCGEN_OURS = "DPCocGen, ours"
HAY, HAY_OURS, PRIVELET = "Hay et al., as published", "Hay et al., best branching", "Privelet, as published"
VARIANTS: Mapping[str, Variant] = {
    DIFFGEN: _published(DiffGen, "max"),
    DIFFGEN_GAIN: _published(DiffGen, "gain"),
    DIFFGEN_OURS: Variant(
        lambda key: DiffGen(specializations=key["h"], max_cells=MOST_CELLS, purpose="classification")
    ),
    CDIFFGEN: _published(CDiffGen, "max"),
    CDIFFGEN_GAIN: _published(CDiffGen, "gain"),
    CDIFFGEN_OURS: Variant(
        lambda key: CDiffGen(specializations=key["h"], max_cells=MOST_CELLS, purpose="classification")
    ),
    DIFFMULTI: _published(DiffMulti, "max"),
    DIFFMULTI_OURS: _multi("auto"),
    DM: _published(DiffMulti, "discernibility"),
    DM_OURS: _multi("discernibility"),
    NCP: _published(DiffMulti, "ncp"),
    NCP_OURS: _multi("ncp"),
    MONDRIAN: Variant(lambda _key: Mondrian(k=60, score="infogain")),
    TDS_5: Variant(lambda _key: TDS(k=5)),
    LAPLACE: Variant(lambda _key: Laplace(), "clamp"),
    C45: Variant(lambda _key: DiffPC45.as_published(), taught="itself"),
    CUBE: Variant(lambda _key: DPCube.as_published(), "clamp"),
    BAYES: Variant(lambda _key: PrivBayes.as_published(), "clamp", "records"),
    PARTITION: Variant(lambda _key: RPS.as_published(), taught="itself"),
    FINEST: Variant(lambda _key: DPCocGen.as_published(), "clamp"),
    THOUSAND: Variant(lambda _key: DPCocGen.as_published(cells=1000), "clamp"),
    COARSE: Variant(lambda _key: DPCocGen.as_published(cells=144), "clamp"),
    DPCOCGEN_OURS: Variant(lambda _key: DPCocGen()),
    HAY: Variant(lambda _key: Hay.as_published()),
    HAY_OURS: Variant(lambda _key: Hay()),
    PRIVELET: Variant(lambda _key: Privelet.as_published()),
}
"""All variants, by the names that figures and claims know them by."""


@cache
def adult() -> tuple[pa.Table, Schema]:
    """The 45,222 complete rows and their schema."""
    found = datasets.adult()
    return found.table, found.schema


def coded(table: pa.Table, schema: Schema) -> CodedRows:
    """A table's leaf codes by attribute."""
    return sfumato.coded(table, schema, misfits=True).columns


@lru_cache(maxsize=8)
def divided(protocol: str, run: int) -> tuple[pa.Table, pa.Table]:
    """Divide the table by a protocol: the rows that are published, and those for the test.

    With `10-fold` a run is a fold, and every ten runs the rows are shuffled anew; `5-fold` is of the training file
    alone; `files` are the training file and the rest; `2/3` and `4/5` are drawn by lot.
    """
    table = adult()[0]
    if protocol == "files":
        return table.slice(0, TRAINING_FILE), table.slice(TRAINING_FILE)
    if protocol == "5-fold":
        table = table.slice(0, TRAINING_FILE)
    if protocol.endswith("-fold"):
        folds = int(protocol.removesuffix("-fold"))
        train, test = cross_validated(folds, table.num_rows, run // folds)[run % folds]
    else:
        learnt, parts = map(int, protocol.split("/"))
        ((train, test),) = held_out(parts, learnt, table.num_rows, run)
    return table.take(train), table.take(test)


def tables(key: Key) -> tuple[pa.Table, pa.Table, Schema]:
    """The rows to publish, the rows to test on and their schema: all attributes, or those of the run."""
    train, test = divided(key["protocol"], key["run"])
    schema = adult()[1]
    return train, test, schema.only(key["attributes"]) if "attributes" in key else schema


def release_of(key: Key, table: Any, schema: Schema, out: Path | None = None) -> Release:
    """Publish a table by the variant, the epsilon and the number of a run."""
    return published(VARIANTS[key["method"]].make(key), table, schema, key.get("epsilon"), key["run"], out)


def published(
    method: Method | MethodWithoutEpsilon,
    table: Any,
    schema: Schema,
    epsilon: str | None,
    run: int,
    out: Path | None = None,
) -> Release:
    """Publish a table with the seed of a run."""
    return seeded_release(table, schema, method, epsilon, FIRST_SEED + run, out)


def timed(work: Callable[[], Release]) -> tuple[Release, float]:
    """Publish, and measure the processor seconds."""
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def learnt(key: Key) -> Outcome:
    """Publish and learn: CA in per cent, the number of groups, and the processor seconds of publishing."""
    train, test, schema = tables(key)
    release, seconds = timed(lambda: release_of(key, train, schema))
    right = _share_right(release, coded(test, schema), VARIANTS[key["method"]], key)
    return {"CA": 100 * right, "groups": release.groups, "seconds": seconds}


def _share_right(release: Release, test: CodedRows, variant: Variant, key: Key) -> float:
    """The share of test rows whose class is predicted by who learns from the release, or by itself."""
    learner = key.get("learner", "pruned tree")
    if variant.taught == "groups":
        return accuracy(release, test, variant.how, learner)
    if variant.taught == "itself":
        return accuracy_of_regions(release, test)
    pupil = teach(learner, release.schema, release.sample_codes(seed=key["run"], how=variant.how))
    return float((pupil.predict(test) == test[str(release.schema.target)]).mean())


def raw(key: Key) -> Outcome:
    """Learn from the raw rows: BA and LA in per cent."""
    train, test, schema = tables(key)
    seen, asked = coded(train, schema), coded(test, schema)
    pupil = teach(key.get("learner", "pruned tree"), schema, seen)
    right = float((pupil.predict(asked) == asked[str(schema.target)]).mean())
    return {"BA": 100 * right, "LA": 100 * majority_accuracy(seen, asked, str(schema.target))}


def learning_keys(
    methods: Iterable[str],
    epsilons: Sequence[str],
    steps: Sequence[int],
    runs: range,
    protocol: str = "2/3",
    **more: Any,
) -> list[Key]:
    """The runs of methods over budgets and numbers of specializations."""
    same = {"work": "runs.learnt", "protocol": protocol, **more}
    return [
        {**same, "method": method, "epsilon": epsilon, "h": h, "run": run}
        for method in methods
        for epsilon in epsilons
        for h in steps
        for run in runs
    ]


def raw_keys(runs: range, protocol: str = "2/3", **more: Any) -> list[Key]:
    """The runs on the raw rows of the same splits."""
    return [{"work": "runs.raw", "protocol": protocol, **more, "method": RAW, "run": run} for run in runs]


def levels(found: Found) -> tuple[tuple[str, float], ...]:
    """BA and LA as horizontal lines."""
    return tuple(
        (f"{name} {found.values(name, method=RAW).mean():.1f}", float(found.values(name, method=RAW).mean()))
        for name in ("BA", "LA")
    )


def cost(found: Found, **setting: object) -> Evidence:
    """BA - CA by run."""
    return {"": found.values("BA", method=RAW) - found.values("CA", **setting)}


def benefit(found: Found, **setting: object) -> Evidence:
    """CA - LA by run."""
    return {"": found.values("CA", **setting) - found.values("LA", method=RAW)}


def best_place(found: Found, **setting: object) -> int:
    """The number of specializations with the largest mean CA."""
    means = found.means("CA", "h", **setting)
    return int(max(means, key=lambda h: means[h]))


def generalized(key: Key) -> Outcome:
    """Publish the whole table: discernibility, NCP, groups, and processor seconds."""
    table, schema = adult()
    release, seconds = timed(lambda: release_of(key, table, schema))
    rows = coded(table, schema)
    columns = [rows[name] for name in schema.predictors]
    return {
        "discernibility": discernibility(release.regions, columns),
        "NCP": certainty_penalty(release.regions, columns),
        "groups": release.groups,
        "seconds": seconds,
    }


def matched(key: Key) -> Outcome:
    """Publish with the raw clusters for a class, and cluster the generalized rows: Match Point in per cent."""
    table, schema, before = _clustered()
    release = release_of(key, table, schema)
    after = labels(generalized_points(release, coded(table, schema)), CLUSTERS)
    return {"match": 100 * match_point(before, after), "groups": release.groups}


@cache
def _clustered() -> tuple[pa.Table, Schema, Integers]:
    """The table with its raw clusters in the place of the class, its schema, and the clusters."""
    table, schema = adult()
    before = labels(points_of(schema, coded(table, schema)), CLUSTERS)
    kept = {name: column for name, column in schema.attributes.items() if name != schema.target}
    names = [str(one) for one in range(CLUSTERS)]
    described = Schema(
        name="adult, clustered", confirmed=True, attributes=kept | {CLUSTER: Categorical(kind="class", taxonomy=names)}
    )
    column = pa.array(np.asarray(names)[before])
    return table.drop_columns([str(schema.target)]).append_column(CLUSTER, column), described, before


def grown(key: Key) -> Outcome:
    """Publish a table of so many rows from file to file: processor seconds of reading, publishing and writing."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_grown(adult()[0], key["rows"], Path(folder) / "grown.parquet")
        release, seconds = timed(lambda: release_of(key, str(path), adult()[1], Path(folder) / "release"))
        return {"seconds": seconds, "groups": release.groups}
