"""Queries as weights of regions: what is covered, share by share, and always the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import BOXES, RANGES, leaf_weights
from sfumato.errors import MethodError
from sfumato.geometry.tree import Tree
from sfumato.methods.workloads import MOST_MARGINS, margin_queries, range_queries, region_weights, scattered
from sfumato.schema.schema import Schema
from trees import random_trees


def boxes_of(tree: Tree) -> np.ndarray:
    return tree.boxes[tree.ends].astype(np.int64)


@settings(max_examples=40)
@given(random_trees(BOXES.shape), st.lists(RANGES, min_size=1, max_size=4))
def test_a_region_has_of_a_query_the_covered_share_of_its_box(tree: Tree, drawn: list[dict]) -> None:
    boxes = boxes_of(tree)
    weights = region_weights(BOXES, boxes, [leaf_weights(one) for one in drawn])
    for query, row in zip(drawn, weights, strict=True):
        classes = max(min(query.get("class", (0, 2))[1], 2) - query.get("class", (0, 2))[0], 0)
        for box, weight in zip(boxes.tolist(), row, strict=True):
            share = 1.0
            for name, (lo, hi) in zip(BOXES.predictors, box, strict=True):
                left, right = query.get(name, (lo, hi))
                share *= max(min(hi, right) - max(lo, left), 0) / (hi - lo)
            assert weight == pytest.approx(share * np.sqrt(classes), abs=1e-6)


def test_an_unpublished_attribute_is_refused() -> None:
    with pytest.raises(MethodError, match="shoe size"):
        region_weights(BOXES, boxes_of(Tree.whole(BOXES.shape)), [{"shoe size": np.ones(3)}])


def test_range_queries_restrict_two_to_four_attributes_to_ranges_of_every_kind() -> None:
    queries = range_queries(BOXES, 300)
    assert {len(query) for query in queries} == {2, 3}
    ranges = {name: set() for name in BOXES.predictors}
    for query in queries:
        for name, weights in query.items():
            inside = np.flatnonzero(weights)
            assert np.array_equal(inside, np.arange(inside[0], inside[-1] + 1))
            ranges[name].add((inside[0], inside[-1]))
    assert {name: len(found) for name, found in ranges.items()} == {"a": 21, "b": 10, "c": 6}


def test_range_queries_are_the_same_for_everyone() -> None:
    first = range_queries(BOXES)[0]
    assert {name: weights.tolist() for name, weights in first.items()} == {
        name: weights.tolist() for name, weights in range_queries(BOXES, 5)[0].items()
    }


def test_scattered_numbers_are_those_of_splitmix64_and_even() -> None:
    """The first outputs of the reference program for seed 0."""
    expected = np.array([0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC], np.uint64)
    assert np.allclose(scattered(4), expected / 2.0**64, rtol=0, atol=1e-15)
    many = scattered(100_000)
    assert 0 <= many.min() < many.max() < 1
    assert np.abs(np.histogram(many, 10, (0, 1))[0] - 10_000).max() < 500


@settings(max_examples=40)
@given(random_trees(BOXES.shape))
def test_margins_ask_for_every_range_that_a_region_has(tree: Tree) -> None:
    boxes = boxes_of(tree)
    asked = [
        {(name, np.flatnonzero(leaves)[0], np.flatnonzero(leaves)[-1] + 1) for name, leaves in query.items()}
        for query in margin_queries(BOXES, boxes)
    ]
    expected = {
        (name, lo, hi)
        for box in boxes.tolist()
        for (name, column), (lo, hi) in zip(BOXES.predictors.items(), box, strict=True)
        if hi - lo < column.leaves
    }
    assert set().union(*asked) == expected
    assert len(asked) == max(len(expected), 1)


def test_too_many_margins_are_thinned_out() -> None:
    schema = Schema.loads("attributes: {n: {kind: numeric, lower: 0, upper: 9999}}")
    boxes = np.stack([np.arange(10_000), np.arange(1, 10_001)], axis=1)[:, None]
    asked = [int(np.flatnonzero(query["n"])[0]) for query in margin_queries(schema, boxes)]
    assert len(asked) == MOST_MARGINS
    assert (asked[0], asked[-1]) == (0, 9999)
    assert max(np.diff(asked)) <= 40
