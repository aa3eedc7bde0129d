"""What the class can be learnt from a release, beside what it can be learnt from the table itself.

BA is the accuracy of a learner that saw raw rows, LA that of always saying their most frequent class, CA that of a
learner that saw the release only; all are tested on the same raw rows. BA - CA is the cost of privacy, CA - LA the
benefit over knowing nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.boxes import Boxes
from sfumato.evaluate.classification import Codes, accuracy, accuracy_of_regions
from sfumato.evaluate.learners import LEARNERS, Taught, teach
from sfumato.evaluate.prediction import area
from sfumato.release.release import Release
from sfumato.schema import Schema

MOST_LEARNT = 100_000
"""Learners see so many records at most, divided by the number of classes, since some learn each class by itself."""
PAPERS_TREE = "pruned tree"


@dataclass(frozen=True)
class Trial:
    """Raw rows to learn from, and raw rows to be tested on, all coded."""

    train: Codes
    test: Codes


@dataclass(frozen=True)
class Lesson:
    """How well one learner did."""

    learner: str
    taught_by: str
    """what it saw of the release: its groups, its regions or records drawn from it"""
    ba: float
    la: float
    ca: float
    auc_raw: float | None = None
    auc: float | None = None

    @property
    def cost(self) -> float:
        """What privacy costs."""
        return self.ba - self.ca

    @property
    def benefit(self) -> float:
        """What the release is worth."""
        return self.ca - self.la


def majority_accuracy(train: Codes, test: Codes, target: str) -> float:
    """Give the share of test rows that have the most frequent class of the training rows, the first of equals.

    >>> majority_accuracy({"c": np.array([1, 1, 0])}, {"c": np.array([0, 1, 0, 0])}, "c")
    0.25
    """
    return float((np.asarray(test[target]) == np.bincount(train[target]).argmax()).mean())


def most_learnt(schema: Schema) -> int:
    """Give the number of records that a learner sees at most, drawn by lot."""
    return MOST_LEARNT // max(len(schema.classes), 2)


def lessons(release: Release, drawn: Codes, trials: Sequence[Trial], seed: int = 0) -> list[Lesson]:
    """Teach every learner by the table and by the release; give their averages over all trials."""
    schema, target = release.schema, str(release.schema.target)
    most = most_learnt(schema)
    drawn = lot(drawn, most, seed)
    lower = _mean([majority_accuracy(trial.train, trial.test, target) for trial in trials])
    found = []
    for learner in LEARNERS:
        raw = [graded(teach(learner, schema, lot(trial.train, most, seed)), schema, trial.test) for trial in trials]
        pupil = teach(learner, schema, drawn)
        released = [graded(pupil, schema, trial.test) for trial in trials]
        (ba, auc_raw), (ca, auc) = np.mean(raw, axis=0).tolist(), np.mean(released, axis=0).tolist()
        found.append(Lesson(learner, "drawn records", ba, lower, ca, auc_raw, auc))
    if isinstance(release.partition, Boxes):
        return found
    return [*_lessons_of_groups(release, trials, next(one for one in found if one.learner == PAPERS_TREE)), *found]


def _lessons_of_groups(release: Release, trials: Sequence[Trial], tree: Lesson) -> list[Lesson]:
    """Let the papers' tree learn from groups, and the regions be a classifier; both are held against the raw tree."""
    on_groups = _mean([accuracy(release, trial.test) for trial in trials])
    by_regions = _mean([accuracy_of_regions(release, trial.test) for trial in trials])
    return [
        Lesson(PAPERS_TREE, "groups", tree.ba, tree.la, on_groups),
        Lesson("majority", "regions", tree.ba, tree.la, by_regions),
    ]


def graded(pupil: Taught, schema: Schema, test: Codes) -> tuple[float, float]:
    """Give the share of test rows that a learner classifies rightly, and the area under its ROC curve."""
    truth = np.asarray(test[str(schema.target)])
    return float((pupil.predict(test) == truth).mean()), area(truth, pupil.scores(test))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def lot(rows: Mapping[str, NDArray[Any]], most: int, seed: int) -> dict[str, NDArray[Any]]:
    """Give the rows, or so many of them drawn by lot, in their order."""
    size = len(next(iter(rows.values())))
    if size <= most:
        return dict(rows)
    chosen = np.sort(np.random.default_rng(seed).choice(size, most, replace=False))
    return {name: column[chosen] for name, column in rows.items()}
