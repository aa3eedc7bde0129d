"""How well any attribute can be predicted from the others by a model that has seen synthetic records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB

from sfumato.attributes import Identifier
from sfumato.schema import Schema

Codes = Mapping[str, NDArray[np.integer]]
Model = Literal["naive Bayes", "boosted trees"]

MOST_CATEGORIES = 255
"""Boosted trees treat an attribute with more leaves than this as a number."""


def auc(schema: Schema, train: Codes, test: Codes, target: str, model: Model = "naive Bayes") -> float:
    """Give the area under the ROC curve on test rows, each value of the target against the rest, weighted by rows.

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


def area(truth: NDArray[np.integer], scores: NDArray[np.float64]) -> float:
    """Give the area under the ROC curve of rows x values of scores, each value against the rest, weighted by rows.

    Where all rows have one value there is nothing to tell apart, and the area is 1/2.

    >>> area(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.95, 0.05]]))
    0.5
    """
    values, rows = np.unique(truth, return_counts=True)
    if len(values) < 2:
        return 0.5
    return float(np.average([roc_auc_score(truth == value, scores[:, value]) for value in values], weights=rows))


def code_table(rows: Codes, names: Sequence[str]) -> NDArray[np.int64]:
    """Put the codes of some attributes side by side."""
    return np.stack([np.asarray(rows[name], np.int64) for name in names], axis=1)


def made(model: Model, leaves: Sequence[int]) -> Any:
    """Make a model for attributes with so many leaves each."""
    if model == "naive Bayes":
        return CategoricalNB(min_categories=list(leaves))
    if model == "boosted trees":
        few = [count <= MOST_CATEGORIES for count in leaves]
        return HistGradientBoostingClassifier(max_iter=60, categorical_features=few, random_state=0)
    raise ValueError(f"model ({model}) must be one of {', '.join(get_args(Model))}")
