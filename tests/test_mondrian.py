"""Mondrian: k and l hold of every group, no allowed split is left, and all rows are there."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from open_tables import SMALL, Rows, drafted, exact, groups_by_hand, rows
from sfumato import Mondrian, Schema
from sfumato.errors import MethodError, SchemaError

SCORES = st.sampled_from(["median", "infogain"])


@settings(max_examples=50)
@given(rows(), st.integers(2, 12), SCORES, st.integers(1, 2), st.booleans())
def test_every_group_has_k_records_and_l_values(table: Rows, k: int, score: str, diversity: int, narrow: bool) -> None:
    method = Mondrian(k=k, score=score, diversity=diversity, narrow=narrow)
    if len(table) < k or len({row[-1] for row in table}) < diversity:
        return
    draft = drafted(method, table)
    groups = groups_by_hand(draft, table)
    assert all(group.total() >= k and len(group) >= diversity for group in groups)
    assert sum(group.total() for group in groups) == len(table)
    held = draft.final.counts[draft.final.counts.any(axis=1)]
    assert held.tolist() == [[group[label] for label in range(3)] for group in groups]


@settings(max_examples=50)
@given(rows(), st.integers(2, 6), SCORES)
def test_no_allowed_split_is_left(table: Rows, k: int, score: str) -> None:
    if len(table) < k:
        return
    draft = drafted(Mondrian(k=k, score=score, narrow=False), table)
    codes = np.array(table)
    region = draft.structure.regions_of([np.array(column, np.uint8) for column in codes[:, :-1].T])
    boxes = draft.structure.boxes[draft.structure.ends]
    for one in np.unique(region):
        inside = codes[region == one]
        for at, column in enumerate(SMALL.predictors.values()):
            low, high = boxes[one, at].tolist()
            cuts = [(low, cut, high) for cut in range(low + 1, high)] if column.kind == "numeric" else []
            if column.kind != "numeric" and column.children(low, high) is not None:
                cuts = [column.children(low, high)]
            for borders in cuts:
                parts = [((inside[:, at] >= lo) & (inside[:, at] < hi)).sum() for lo, hi in pairwise(borders)]
                empty_allowed = column.kind != "numeric"
                assert not all(part >= k or (empty_allowed and part == 0) for part in parts)


@settings(max_examples=50)
@given(rows(), st.integers(2, 6))
def test_intervals_end_where_someone_is(table: Rows, k: int) -> None:
    if len(table) < k:
        return
    wide, narrow = (drafted(Mondrian(k=k, narrow=narrow), table) for narrow in (False, True))
    codes = np.array(table)
    region = narrow.structure.regions_of([np.array(column, np.uint8) for column in codes[:, :-1].T])
    boxes = narrow.structure.boxes[narrow.structure.ends]
    for one in np.unique(region):
        for at in (0, 2):
            held = codes[region == one, at]
            assert boxes[one, at].tolist() == [held.min(), held.max() + 1]
    assert sorted(map(sorted, map(Counter.items, groups_by_hand(wide, table)))) == sorted(
        map(sorted, map(Counter.items, groups_by_hand(narrow, table)))
    )


def test_the_widest_attribute_is_split_at_the_median() -> None:
    table = [(a, 0, 0, 0) for a in (0, 1, 2, 6, 7, 8)]
    draft = drafted(Mondrian(k=3), table)
    assert draft.steps[0] == "level 1: 1 specialization (a 1)"
    assert draft.structure.boxes[1:3, 0].tolist() == [[0, 4], [4, 9]]


def test_a_median_that_is_the_largest_value_does_not_stop_it() -> None:
    draft = drafted(Mondrian(k=2), [(0, 0, 0, 0)] * 2 + [(8, 0, 0, 0)] * 5)
    assert sorted(group.total() for group in groups_by_hand(draft, [(0, 0, 0, 0)] * 2 + [(8, 0, 0, 0)] * 5)) == [2, 5]


def test_infogain_splits_where_the_classes_part() -> None:
    table = [(a, 0, c, int(c > 0)) for a in range(9) for c in (0, 2)]
    assert "(c 1)" in drafted(Mondrian(k=4, score="infogain"), table).steps[0]
    assert "(a 1)" in drafted(Mondrian(k=4, score="median", quasi="a,b,c"), table).steps[0]


def test_values_narrow_down_to_the_category_of_their_group() -> None:
    table = [(0, 2, 0, 0)] * 5
    draft = drafted(Mondrian(k=5), table)
    (region,) = np.flatnonzero(draft.final.counts.any(axis=1))
    assert draft.structure.boxes[draft.structure.ends][region, 1].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"k": 1}, "k \\(1\\) must be a whole number from 2"),
        ({"k": "many"}, "k \\(many\\) must be"),
        ({"k": 5, "score": "max"}, "score \\(max\\) must be one of median, infogain"),
        ({"k": 5, "diversity": 0}, "diversity \\(0\\)"),
        ({"k": 5, "diversity": 6}, "must be at most k"),
        ({"k": 5, "quasi": "a,,b"}, "must be names"),
        ({"k": 5, "quasi": "a,a"}, "every attribute once"),
        ({"k": 5, "quasi": 3}, "must be names"),
        ({"k": 5, "narrow": "maybe"}, "narrow \\(maybe\\) must be yes or no"),
    ],
)
def test_wrong_parameters_are_refused_at_birth(parameters: dict, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        Mondrian(**parameters)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"quasi": "a,shoe"}, "quasi-identifier \\(shoe\\) must be an attribute"),
        ({"quasi": "a,class"}, "must not be the class"),
        ({"quasi": "a,b", "sensitive": "b"}, "sensitive \\(b\\) must not be a quasi-identifier"),
        ({"diversity": 4}, "at most the number of values"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(parameters: dict, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        Mondrian(k=5, **parameters).narrowed(SMALL)


def test_a_numeric_sensitive_attribute_is_refused() -> None:
    with pytest.raises(SchemaError, match="must be categorical"):
        Mondrian(k=5, sensitive="a").narrowed(SMALL)


def test_infogain_needs_a_class() -> None:
    with pytest.raises(MethodError, match="must have a class attribute"):
        Mondrian(k=5, score="infogain").narrowed(SMALL.only({"a", "b"}))


def test_only_quasi_identifiers_and_the_class_are_published() -> None:
    assert list(Mondrian(k=5, quasi="c,a").narrowed(SMALL).attributes) == ["a", "c", "class"]
    assert list(Mondrian(k=5, sensitive="b").narrowed(SMALL).predictors) == ["a", "c", "class"]


def test_an_attribute_of_one_leaf_is_one_group() -> None:
    one = Schema.loads(
        "attributes: {planet: {kind: categorical, taxonomy: [Earth]}, c: {kind: class, taxonomy: [y, n]}}"
    )
    draft = Mondrian(k=2).publish(exact([(0, 0), (0, 1), (0, 1)], one), one)
    assert draft.final.counts.tolist() == [[1, 2]]


def test_without_an_attribute_there_is_nothing_to_do() -> None:
    with pytest.raises(MethodError, match="must have a quasi-identifier"):
        Mondrian(k=5).narrowed(SMALL.only({"class"}))
