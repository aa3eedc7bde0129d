"""Learners of the class, by the names that the papers give them. They see coded records: raw ones, or drawn ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sfumato.evaluate.classification import Codes, chance, entropy_tree, record_features
from sfumato.evaluate.prediction import code_table, made
from sfumato.evaluate.threads import one_thread
from sfumato.partition import Indices
from sfumato.schema import Schema

Learner = Literal["pruned tree", "ID3", "linear SVM", "naive Bayes", "logistic regression", "gradient boosting"]
LEARNERS: tuple[Learner, ...] = get_args(Learner)
"""Both trees split in two by entropy: the first pruned, in the manner of C4.5, the second not, in that of ID3."""


@dataclass(frozen=True, eq=False)
class Taught:
    """A learner that has seen its records."""

    schema: Schema
    model: Any
    described: Callable[[Codes], NDArray[Any]]
    """how records look to it"""

    def predict(self, rows: Codes) -> Indices:
        """Give the code of the class that each row probably has."""
        with one_thread():
            return np.asarray(self.model.predict(self.described(rows)), np.int64)

    def scores(self, rows: Codes) -> NDArray[np.float64]:
        """Give rows x classes: the larger, the more probable; a class that was never seen has 0 throughout."""
        seen, described = np.asarray(self.model.classes_, np.int64), self.described(rows)
        probable = hasattr(self.model, "predict_proba")
        with one_thread():
            told = (self.model.predict_proba if probable else self.model.decision_function)(described)
        if told.ndim == 1:
            told = np.stack([-told, told], axis=1)
        scores = np.zeros((len(described), len(self.schema.classes)))
        scores[:, seen] = told
        return scores


def teach(learner: Learner, schema: Schema, rows: Codes) -> Taught:
    """Let a learner see some records; where all have one class it is always predicted."""
    if learner not in LEARNERS:
        raise ValueError(f"learner ({learner}) must be one of {', '.join(LEARNERS)}")
    classes = np.asarray(rows[str(schema.target)], np.int64)
    by_codes = learner in ("naive Bayes", "gradient boosting")
    names = list(schema.predictors)
    described: Callable[[Codes], NDArray[Any]] = (
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
