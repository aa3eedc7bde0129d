"""How well any attribute can be predicted from the others by a model that has seen synthetic records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB

from sfumato.schema import Schema

Codes = Mapping[str, NDArray[np.integer]]
Model = Literal["naive Bayes", "boosted trees"]

MOST_CATEGORIES = 255
"""Boosted trees treat an attribute with more leaves than this as a number."""


def auc(schema: Schema, train: Codes, test: Codes, target: str, model: Model = "naive Bayes") -> float:
    """Give the area under the ROC curve on test rows, each value of the target against the rest, weighted by rows.

    Rows are leaf codes. A value that the training rows do not have is predicted with probability 0; with fewer than
    two values there is nothing to learn, and the area is 1/2.
    """
    names = [name for name in schema.predictors if name != target]
    learned = np.unique(train[target])
    if len(learned) < 2:
        return 0.5
    leaves = [schema.predictors[name].leaves for name in names]
    fitted = _made(model, leaves).fit(_table(train, names), train[target])
    shares = np.zeros((len(test[target]), int(max(learned.max(), np.max(test[target]))) + 1))
    shares[:, learned] = fitted.predict_proba(_table(test, names))
    values, rows = np.unique(test[target], return_counts=True)
    areas = [roc_auc_score(np.asarray(test[target]) == value, shares[:, value]) for value in values]
    return float(np.average(areas, weights=rows))


def _table(rows: Codes, names: Sequence[str]) -> NDArray[np.int64]:
    return np.stack([np.asarray(rows[name], np.int64) for name in names], axis=1)


def _made(model: Model, leaves: Sequence[int]) -> Any:
    if model == "naive Bayes":
        return CategoricalNB(min_categories=list(leaves))
    if model == "boosted trees":
        few = [count <= MOST_CATEGORIES for count in leaves]
        return HistGradientBoostingClassifier(max_iter=60, categorical_features=few, random_state=0)
    raise ValueError(f"model ({model}) must be one of {', '.join(get_args(Model))}")
