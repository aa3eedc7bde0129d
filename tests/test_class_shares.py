"""Shares of classes in a tree: parents' where counts are noise, their own where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sfumato.models.estimates import class_shares

from sfumato.models.consistency import Consistent

LEAVES = 200
STAR = np.array([-1, *[0] * LEAVES])


def measured(truth: np.ndarray, variance: float, seed: int) -> Consistent:
    """Add normal noise to the leaves of a star, and much less to the root."""
    nodes = np.concatenate([truth.sum(axis=0, keepdims=True), truth]).astype(np.float64)
    noise = np.random.default_rng(seed).normal(size=nodes.shape) * np.sqrt(variance)
    noise[0] *= 0.01
    return Consistent.of(STAR, nodes + noise, [1e4 / variance, *[1 / variance] * LEAVES])


def test_without_noise_shares_are_those_of_the_counts() -> None:
    truth = np.random.default_rng(1).integers(1, 50, (LEAVES, 3))
    shares = class_shares(measured(truth, 1e-12, 2), STAR)
    assert shares[1:] == pytest.approx(truth / truth.sum(axis=1, keepdims=True), abs=1e-6)
    assert shares[0] == pytest.approx(truth.sum(axis=0) / truth.sum())


def test_where_all_groups_have_the_same_shares_noise_does_not_part_them() -> None:
    truth = np.tile([30, 10], (LEAVES, 1))
    shares = class_shares(measured(truth, 400.0, 3), STAR)
    assert np.abs(shares[1:, 0] - 0.75).mean() < 0.05
    assert (shares[1:, 0] > 0.5).all()


def test_shrunk_shares_are_nearer_to_the_truth_and_large_groups_keep_theirs() -> None:
    rng = np.random.default_rng(4)
    true, people = rng.beta(4, 2, LEAVES), rng.integers(5, 60, LEAVES)
    people[0], true[0] = 5000, 0.1
    truth = np.stack([true * people, (1 - true) * people], axis=1)
    tree = measured(truth, 50.0, 5)
    raw = np.clip(tree.values[1:, 0] / np.maximum(tree.values[1:].sum(axis=1), 1), 0, 1)
    shares = class_shares(tree, STAR)[1:, 0]
    assert np.abs(shares - true).mean() < 0.9 * np.abs(raw - true).mean()
    assert shares[0] == pytest.approx(0.1, abs=0.01)


@given(
    st.lists(st.lists(st.integers(-30, 30), min_size=3, max_size=3), min_size=6, max_size=6),
    st.floats(1e-100, 1e6),
)
def test_whatever_was_measured_gives_shares(counts: list[list[int]], variance: float) -> None:
    parents = np.array([-1, 0, 0, 1, 1, 1])
    shares = class_shares(Consistent.of(parents, np.array(counts, np.float64), [1 / variance] * 6), parents)
    assert (shares >= 0).all()
    assert shares.sum(axis=1) == pytest.approx(np.ones(6))
