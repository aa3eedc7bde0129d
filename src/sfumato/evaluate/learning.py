"""What the class can be learnt from a release, beside what it can be learnt from the table itself.

BA is the accuracy of a learner that saw raw rows, LA that of always saying their most frequent class, CA that of a
learner that saw the release only; all are tested on the same raw rows. BA - CA is the cost of privacy, CA - LA the
benefit over knowing nothing.

There are three ways to learn from a release. The papers train an entropy decision tree on the generalized groups;
records drawn from the release allow what works on the table itself; and the regions are a classifier already. Learners
and protocols (which rows a learner sees, and which it is tested on) have the names that the papers give them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sfumato import Categorical, Identifier, Nonnegative, Release, Schema, Sides
from sfumato.arrays import CodedRows, Floats, Integers
from sfumato.errors import TableError
from sfumato.evaluate.runs import one_thread

Features = NDArray[np.float32]
"""Rows x features, as a learner sees them."""
GroupLearner = Literal["pruned tree", "ID3", "linear SVM"]
"""What can learn from groups."""
Model = Literal["naive Bayes", "boosted trees"]
"""What can predict any attribute from the others."""
Learner = Literal["pruned tree", "ID3", "linear SVM", "naive Bayes", "logistic regression", "gradient boosting"]
LEARNERS: tuple[Learner, ...] = get_args(Learner)
"""Learners of the class from single records, raw or drawn. Both trees split in two by entropy: the first pruned, in the
manner of C4.5, the second not, in that of ID3.
"""
Protocol = Literal["2/3", "4/5", "80/20", "10-fold"]
"""How a table is split into rows to learn from and rows to be tested on."""
Split = tuple[Integers, Integers]
"""The rows to learn from and the rows to be tested on, both in increasing order."""
PAPERS_TREE = "pruned tree"
"""The learner that the papers train on groups."""
PRUNING = 1e-4
"""A split of groups must lower the weighted entropy of the whole table by this many bits."""
MOST_INDICATORS = 256
"""The most leaves whose categories are indicators. With more, a category is its code: neighbours in the taxonomy are
near each other.
"""
MOST_CATEGORIES = 255
"""The most leaves that boosted trees take for categories. With more, an attribute is a number."""
MOST_LEARNT = 100_000
"""The most records that a learner sees, divided by the number of classes, since some learn each class by itself."""


@dataclass(frozen=True)
class Trial:
    """Raw rows to learn from, and raw rows to be tested on, all coded."""

    train: CodedRows
    test: CodedRows


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
        """What privacy costs: BA - CA."""
        return self.ba - self.ca

    @property
    def benefit(self) -> float:
        """What the release is worth: CA - LA."""
        return self.ca - self.la


def lessons(release: Release, drawn: CodedRows, trials: Sequence[Trial], seed: int = 0) -> list[Lesson]:
    """Teach every learner by the table and by the release, and average over all trials."""
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
    if not release.disjoint:
        return found
    return [*_lessons_of_groups(release, trials, next(one for one in found if one.learner == PAPERS_TREE)), *found]


def _lessons_of_groups(release: Release, trials: Sequence[Trial], tree: Lesson) -> list[Lesson]:
    """Let the papers' tree learn from groups, and the regions classify; both are held against the raw tree."""
    on_groups = _mean([accuracy(release, trial.test) for trial in trials])
    by_regions = _mean([accuracy_of_regions(release, trial.test) for trial in trials])
    return [
        Lesson(PAPERS_TREE, "groups", tree.ba, tree.la, on_groups),
        Lesson("majority", "regions", tree.ba, tree.la, by_regions),
    ]


def graded(pupil: Taught, schema: Schema, test: CodedRows) -> tuple[float, float]:
    """The share of test rows that a learner classifies rightly, and the area under its ROC curve."""
    truth = np.asarray(test[str(schema.target)])
    return float((pupil.predict(test) == truth).mean()), area(truth, pupil.scores(test))


def majority_accuracy(train: CodedRows, test: CodedRows, target: str) -> float:
    """The share of test rows that have the most frequent class of the training rows, the first of equals.

    >>> majority_accuracy({"c": np.array([1, 1, 0])}, {"c": np.array([0, 1, 0, 0])}, "c")
    0.25
    """
    return float((np.asarray(test[target]) == np.bincount(train[target]).argmax()).mean())


def most_learnt(schema: Schema) -> int:
    """The most records that a learner sees, drawn by lot."""
    return MOST_LEARNT // max(len(schema.classes), 2)


def lot(rows: Mapping[str, NDArray[Any]], most: int, seed: int) -> dict[str, NDArray[Any]]:
    """All rows, or `most` of them drawn by lot, in their order."""
    size = len(next(iter(rows.values())))
    if size <= most:
        return dict(rows)
    chosen = np.sort(np.random.default_rng(seed).choice(size, most, replace=False))
    return {name: column[chosen] for name, column in rows.items()}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


@dataclass(frozen=True, eq=False)
class Taught:
    """A learner of the class that has seen its records."""

    schema: Schema
    model: Any
    described: Callable[[CodedRows], NDArray[Any]]
    """how records look to it"""

    def predict(self, rows: CodedRows) -> Integers:
        """The code of the class that each row probably has."""
        with one_thread():
            return np.asarray(self.model.predict(self.described(rows)), np.int64)

    def scores(self, rows: CodedRows) -> Floats:
        """Rows x classes: the larger, the more probable; a class that was never seen has 0 throughout."""
        seen, described = np.asarray(self.model.classes_, np.int64), self.described(rows)
        probable = hasattr(self.model, "predict_proba")
        with one_thread():
            told = (self.model.predict_proba if probable else self.model.decision_function)(described)
        if told.ndim == 1:
            told = np.stack([-told, told], axis=1)
        scores = np.zeros((len(described), len(self.schema.classes)))
        scores[:, seen] = told
        return scores


def teach(learner: Learner, schema: Schema, rows: CodedRows) -> Taught:
    """Let a learner see some records; where all have one class, that is always predicted."""
    if learner not in LEARNERS:
        raise ValueError(f"learner ({learner}) must be one of {', '.join(LEARNERS)}")
    classes = np.asarray(rows[str(schema.target)], np.int64)
    by_codes = learner in ("naive Bayes", "gradient boosting")
    names = list(schema.predictors)
    described: Callable[[CodedRows], NDArray[Any]] = (
        (lambda seen: code_table(seen, names)) if by_codes else (lambda seen: record_features(schema, seen))
    )
    single = len(np.unique(classes)) < 2
    model = DummyClassifier(strategy="most_frequent") if single else _model(learner, schema, len(classes))
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(described(rows), classes)
    return Taught(schema, model, described)


def _model(learner: Learner, schema: Schema, rows: int) -> Any:
    if learner == "pruned tree":
        return entropy_tree(chance(schema, rows))
    if learner == "ID3":
        return DecisionTreeClassifier(criterion="entropy", random_state=0)
    if learner == "linear SVM":
        return make_pipeline(StandardScaler(), LinearSVC(dual=False, random_state=0))
    if learner == "logistic regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return made("naive Bayes" if learner == "naive Bayes" else "boosted trees", schema.shape)


def made(model: Model, leaves: Sequence[int]) -> Any:
    """Make a model for attributes with so many leaves each."""
    if model == "naive Bayes":
        return CategoricalNB(min_categories=list(leaves))
    if model == "boosted trees":
        few = [count <= MOST_CATEGORIES for count in leaves]
        return HistGradientBoostingClassifier(max_iter=60, categorical_features=few, random_state=0)
    raise ValueError(f"model ({model}) must be one of {', '.join(get_args(Model))}")


def accuracy(
    release: Release, test: CodedRows, how: Nonnegative = "projection", learner: GroupLearner = "pruned tree"
) -> float:
    """The share of coded test rows whose class is predicted by a learner that saw the release's groups.

    As in the papers, the groups are weighted by their counts, and a test row looks like the group in which it falls.
    """
    people = release.model.generalized(how).people
    groups, classes = np.nonzero(people)
    if len(groups) == 0:
        return _share_of_first_class(release, test)
    if len(np.unique(classes)) == 1:
        return _share_right(release, test, classes[:1])
    features = group_features(release)
    if learner == "linear SVM":
        features /= np.maximum(np.abs(features).max(axis=0), 1)
    model = _of_groups(learner).fit(features[groups], classes, sample_weight=people[groups, classes])
    held = release.regions.regions_of([test[name] for name in release.schema.predictors])
    return _share_right(release, test, model.predict(features)[held])


def _of_groups(learner: GroupLearner) -> Any:
    if learner == "linear SVM":
        return LinearSVC(dual=False, random_state=0)
    return entropy_tree(PRUNING if learner == "pruned tree" else 0.0)


def accuracy_of_samples(release: Release, test: CodedRows, how: Nonnegative = "projection", seed: int = 0) -> float:
    """The share of coded test rows whose class a tree trained on synthetic records predicts."""
    drawn = release.sample_codes(seed=seed, how=how)
    classes = drawn[str(release.schema.target)]
    if len(classes) == 0:
        return _share_of_first_class(release, test)
    tree = entropy_tree(chance(release.schema, len(classes))).fit(record_features(release.schema, drawn), classes)
    return _share_right(release, test, tree.predict(record_features(release.schema, test)))


def accuracy_of_regions(release: Release, test: CodedRows) -> float:
    """The share of coded test rows whose class is the most frequent one in their region."""
    return _share_right(release, test, release.classify_codes(test))


def entropy_tree(pruning: float) -> DecisionTreeClassifier:
    """Make a tree that splits by entropy and is pruned where a split is worth less."""
    return DecisionTreeClassifier(criterion="entropy", ccp_alpha=pruning, random_state=0)


def chance(schema: Schema, rows: int) -> float:
    """The bits per row that a split of records must be worth: more than the best of m that mean nothing.

    Of a split that means nothing, twice the gain in nats is chi-square with one degree of freedom, which exceeds
    2 ln m with a probability of less than 1 / m: of m such splits one at most is expected to gain log2 m bits.
    Records of a region are drawn regardless of their class, so almost all splits mean nothing.
    """
    splits = sum(leaves - 1 for leaves in schema.shape)
    return math.log2(max(splits, 2)) / rows


def _share_right(release: Release, test: CodedRows, predicted: Integers) -> float:
    return float((predicted == np.asarray(test[str(release.schema.target)])).mean())


def _share_of_first_class(release: Release, test: CodedRows) -> float:
    return _share_right(release, test, np.zeros(1, np.int64))


def auc(schema: Schema, train: CodedRows, test: CodedRows, target: str, model: Model = "naive Bayes") -> float:
    """The area under the ROC curve on test rows, each value of the target against the rest, weighted by rows.

    Rows are leaf codes, and all attributes but identifiers predict, the class among them. A value that the training
    rows do not have is predicted with probability 0. With fewer than two values to learn or to tell apart, or nothing
    to predict by, the area is 1/2.
    """
    leaves = {
        name: column.leaves
        for name, column in schema.attributes.items()
        if not isinstance(column, Identifier) and name != target
    }
    fresh, names, learned = made(model, list(leaves.values())), list(leaves), np.unique(train[target])
    if min(len(learned), len(np.unique(test[target]))) < 2 or not names:
        return 0.5
    fitted = fresh.fit(code_table(train, names), train[target])
    shares = np.zeros((len(test[target]), int(max(learned.max(), np.max(test[target]))) + 1))
    shares[:, learned] = fitted.predict_proba(code_table(test, names))
    return area(np.asarray(test[target]), shares)


def area(truth: NDArray[np.integer], scores: Floats) -> float:
    """The area under the ROC curve of rows x values of scores, each value against the rest, weighted by rows.

    Where all rows have one value there is nothing to tell apart, and the area is 1/2.

    >>> area(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.95, 0.05]]))
    0.5
    """
    values, rows = np.unique(truth, return_counts=True)
    if len(values) < 2:
        return 0.5
    return float(np.average([roc_auc_score(truth == value, scores[:, value]) for value in values], weights=rows))


def group_features(release: Release) -> Features:
    """Describe every region to a learner by its ranges; an undivided attribute is a constant."""
    regions = np.arange(release.regions.regions)
    blocks = [
        (_blocks_covered(side) if isinstance(column, Categorical) else side.ranges)[side.number(regions)]
        for column, side in zip(release.schema.predictors.values(), release.sides, strict=True)
    ]
    return np.concatenate(blocks, axis=1, dtype=np.float32)


def _blocks_covered(side: Sides) -> Floats:
    """The share of each categorical range that lies in each block between neighbouring borders.

    The ranges of a grid are the blocks themselves: then these are indicators. In a tree, where Engineers may stand
    beside White-collars, they tell both what a range is and what it is part of.
    """
    borders = np.unique(side.ranges)
    lows, highs = side.ranges[:, :1], side.ranges[:, 1:]
    covered = np.clip(np.minimum(highs, borders[1:]) - np.maximum(lows, borders[:-1]), 0, None)
    return np.asarray(covered / (highs - lows))


def record_features(schema: Schema, rows: Mapping[str, NDArray[np.integer]]) -> Features:
    """Describe records to a learner: numeric codes as they are, categories as indicators unless there are too many."""
    blocks = [
        np.eye(column.leaves, dtype=np.float32)[rows[name]]
        if isinstance(column, Categorical) and column.leaves <= MOST_INDICATORS
        else rows[name][:, None]
        for name, column in schema.predictors.items()
    ]
    return np.concatenate(blocks, axis=1, dtype=np.float32)


def code_table(rows: CodedRows, names: Sequence[str]) -> Integers:
    """Put the codes of some attributes side by side."""
    return np.stack([np.asarray(rows[name], np.int64) for name in names], axis=1)


def held_out(parts: int, learnt: int, rows: int, seed: int) -> list[Split]:
    """Learn from so many of the parts of a random order of rows, and test on the others.

    >>> [(train, test)] = held_out(3, 2, 9, seed=0)
    >>> len(train), sorted([*train.tolist(), *test.tolist()])
    (6, [0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    order = np.random.default_rng(seed).permutation(rows)
    cut = learnt * rows // parts
    return [(np.sort(order[:cut]), np.sort(order[cut:]))]


def cross_validated(folds: int, rows: int, seed: int) -> list[Split]:
    """Cut a random order of rows into folds of almost equal size; test on each, and learn from all others."""
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), folds)
    return [
        (np.sort(np.concatenate([*parts[:fold], *parts[fold + 1 :]])), np.sort(part)) for fold, part in enumerate(parts)
    ]


PROTOCOLS: dict[Protocol, Callable[[int, int], list[Split]]] = {
    "2/3": partial(held_out, 3, 2),
    "4/5": partial(held_out, 5, 4),
    "80/20": partial(held_out, 100, 80),
    "10-fold": partial(cross_validated, 10),
}
FEWEST_ROWS: dict[Protocol, int] = {"2/3": 2, "4/5": 2, "80/20": 2, "10-fold": 10}
"""The fewest rows that each protocol can split."""


def splits(protocol: Protocol, rows: int, seed: int = 0) -> list[Split]:
    """Split a number of rows by a protocol; 4/5 and 80/20 are two papers' names for one thing."""
    if protocol not in PROTOCOLS:
        raise TableError(f"protocol ({protocol}) must be one of {', '.join(get_args(Protocol))}", "Choose one of them.")
    if rows < FEWEST_ROWS[protocol]:
        raise TableError(
            f"a table must have {FEWEST_ROWS[protocol]} rows or more to be split by {protocol}",
            "Give more rows, or a test set where one can be given.",
        )
    return PROTOCOLS[protocol](rows, seed)
