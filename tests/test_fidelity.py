"""Distances of tables, and what can be predicted from one about another."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.evaluate.fidelity import hellinger
from sfumato.evaluate.learning import auc
from sfumato.schema.schema import Schema

SCHEMA = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: [x, y, z]}
  c: {kind: categorical, taxonomy: [no, yes]}
""")


def table(rows: int, seed: int, echo: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 10, rows)
    b = np.where(echo, np.minimum(a // 3, 2), rng.integers(0, 3, rows))
    return {"a": a, "b": b, "c": rng.integers(0, 2, rows)}


def test_the_distance_is_that_of_the_definition() -> None:
    one, other = table(500, 1, echo=True), table(300, 2, echo=False)
    p, q = (
        np.histogramdd(np.stack(list(t.values()), axis=1), [np.arange(11), np.arange(4), np.arange(3)])[0]
        for t in (one, other)
    )
    p, q = p / p.sum(), q / q.sum()
    assert hellinger(one, other, list(one)) == pytest.approx(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2))
    assert hellinger(one, one, ["a", "b"]) == pytest.approx(0, abs=1e-7)
    assert hellinger(one, {name: column[:0] for name, column in one.items()}, ["a"]) == 1


@pytest.mark.parametrize("model", ["naive Bayes", "boosted trees"])
def test_what_follows_is_predicted_and_what_does_not_is_not(model) -> None:
    train, test = table(2000, 3, echo=True), table(1000, 4, echo=True)
    assert auc(SCHEMA, train, test, "b", model) > 0.99
    assert auc(SCHEMA, train, test, "c", model) == pytest.approx(0.5, abs=0.08)


def test_values_never_seen_and_a_single_value_are_no_trouble() -> None:
    train, test = table(200, 5, echo=True), table(100, 6, echo=True)
    few = {name: column[train["b"] < 2] for name, column in train.items()}
    assert 0.5 < auc(SCHEMA, few, test, "b") < 1
    assert auc(SCHEMA, {name: column[train["b"] < 1] for name, column in train.items()}, test, "b") == 0.5


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        auc(SCHEMA, table(9, 1, echo=True), table(9, 1, echo=True), "b", "oracle")


def with_class() -> Schema:
    return SCHEMA.with_target("b")


@pytest.mark.parametrize("model", ["naive Bayes", "boosted trees"])
def test_the_class_predicts_like_any_other_attribute(model) -> None:
    train, test = table(2000, 3, echo=True), table(1000, 4, echo=True)
    alone = with_class().only(["b", "c"])
    follows = [{**rows, "c": np.minimum(rows["b"], 1)} for rows in (train, test)]
    assert auc(alone, *follows, "c", model) > 0.99
    assert auc(with_class(), train, test, "b", model) == auc(SCHEMA, train, test, "b", model)


def test_with_nothing_to_tell_apart_or_to_predict_by_the_area_is_a_half() -> None:
    train, test = table(200, 5, echo=True), table(100, 6, echo=True)
    assert auc(SCHEMA, train, {name: column[test["b"] < 1] for name, column in test.items()}, "b") == 0.5
    assert auc(SCHEMA, train, {name: column[:0] for name, column in test.items()}, "b") == 0.5
    assert auc(SCHEMA.only(["b"]), train, test, "b") == 0.5
