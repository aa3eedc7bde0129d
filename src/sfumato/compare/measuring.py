"""One release, or the raw rows themselves, measured: names of measures and their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.boxes import Boxes
from sfumato.compare.measures import (
    DISTANCES,
    REGIONS,
    TREE,
    Group,
    accuracy_name,
    area_name,
    distance_name,
    error_names,
    learners_of,
    match_name,
)
from sfumato.evaluate.classification import Codes, accuracy, accuracy_of_regions
from sfumato.evaluate.clusters import MOST_CLUSTERED, matches
from sfumato.evaluate.information import certainty_penalty_of, discernibility_of, precision_of, sizes_of
from sfumato.evaluate.learners import Learner, teach
from sfumato.evaluate.lessons import PAPERS_TREE, Trial, graded, lot, majority_accuracy, most_learnt
from sfumato.evaluate.marginals import marginal_distances
from sfumato.evaluate.queries import QUERIES, errors_by_size, random_queries
from sfumato.release.release import Release
from sfumato.schema import Schema

Value = tuple[str, float]
Level = Literal["raw data", "most frequent class"]
"""What a learner reaches that saw the raw rows (BA), and one that always says the same (LA)."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A release of the rows to learn from, records drawn from it, and a seed for whatever is drawn by lot."""

    release: Release
    trial: Trial
    drawn: Codes
    seed: int

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return _rows(self.trial.train)


def values_of(release: Release, trial: Trial, groups: Sequence[Group], seed: int) -> dict[str, float]:
    """Measure a release of a trial's training rows: by them, and what can be learnt from it by the test rows."""
    judged = Judged(release, trial, release.sample_codes(seed=seed), seed)
    found: list[Value] = []
    if release.schema.target is not None:
        found += _learnt(judged, learners_of(tuple(groups)))
        if "classification" in groups and not isinstance(release.partition, Boxes):
            found += [(TREE, accuracy(release, trial.test)), (REGIONS, accuracy_of_regions(release, trial.test))]
    if "information" in groups:
        found += _information(judged)
    if "marginals" in groups:
        found += _marginals(judged)
    if "queries" in groups:
        found += _queries(judged)
    if "clusters" in groups and _rows(judged.drawn):
        found += _clusters(judged)
    return dict(found)


def levels_of(schema: Schema, trial: Trial, groups: Sequence[Group], seed: int) -> dict[Level, dict[str, float]]:
    """Tell what raw rows teach each learner, and what always saying their most frequent class is worth."""
    raw: dict[str, float] = {}
    learners = [*learners_of(tuple(groups)), *((PAPERS_TREE,) if "classification" in groups else ())]
    seen = lot(trial.train, most_learnt(schema), seed)
    for learner in dict.fromkeys(learners):
        right, area = graded(teach(learner, schema, seen), schema, trial.test)
        if learner == PAPERS_TREE and "classification" in groups:
            raw |= {TREE: right, REGIONS: right}
        if learner != PAPERS_TREE or "learners" in groups:
            raw |= {accuracy_name(learner): right, area_name(learner): area}
    lower = majority_accuracy(trial.train, trial.test, str(schema.target))
    return {
        "raw data": raw,
        "most frequent class": {name: lower if name.startswith("accuracy") else 0.5 for name in raw},
    }


def _rows(records: Codes) -> int:
    return len(next(iter(records.values())))


def _learnt(judged: Judged, learners: Sequence[Learner]) -> Iterator[Value]:
    """Teach learners by drawn records; where there is none, the first class is as good as any."""
    schema, test = judged.release.schema, judged.trial.test
    seen = lot(judged.drawn, most_learnt(schema), judged.seed)
    for learner in learners:
        if _rows(seen):
            right, area = graded(teach(learner, schema, seen), schema, test)
        else:
            right, area = float((np.asarray(test[str(schema.target)]) == 0).mean()), 0.5
        yield accuracy_name(learner), right
        yield area_name(learner), area


def _information(judged: Judged) -> Iterator[Value]:
    predictors, partition = judged.release.schema.predictors, judged.release.partition
    sizes = sizes_of(judged.release, [judged.trial.train[name] for name in predictors], judged.rows)
    yield "discernibility", float(discernibility_of(sizes))
    yield "NCP", certainty_penalty_of(partition, sizes)
    yield "precision", precision_of(list(predictors.values()), partition, sizes)


def _marginals(judged: Judged) -> Iterator[Value]:
    for one in marginal_distances(judged.release.schema, judged.trial.train, judged.drawn, judged.seed):
        if one.distance in DISTANCES:
            yield distance_name(one.distance, one.ways), one.mean


def _queries(judged: Judged) -> Iterator[Value]:
    asked = random_queries(judged.release.schema, QUERIES, judged.seed)
    for one in errors_by_size(judged.release, asked, judged.trial.train, judged.rows):
        yield from zip(error_names(one.size), (one.mean, one.median), strict=True)


def _clusters(judged: Judged) -> Iterator[Value]:
    rows, drawn = (lot(records, MOST_CLUSTERED, judged.seed) for records in (judged.trial.train, judged.drawn))
    for one in matches(judged.release, rows, drawn):
        yield match_name(one.clusters, one.after), one.match_point
