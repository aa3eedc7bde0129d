"""Junction trees against sums over the whole table, and the fit against what it promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.models.entropy import Entropy, Target
from sfumato.models.junction import JunctionTree

FEW = settings(max_examples=25, deadline=None)
SEEDS = st.integers(0, 2**32)
VARIABLES = 6
LAST = VARIABLES - 1


def random_tree(rng: np.random.Generator, *, joined: bool) -> tuple[JunctionTree, list[np.ndarray], np.ndarray]:
    """A tree over a random graph, the distributions of its cliques, and the whole table; joined: the last variable is
    joined with all others.
    """
    sizes = tuple(rng.integers(1, 4, VARIABLES).tolist())
    edges = {edge for edge in itertools.combinations(range(VARIABLES), 2) if rng.random() < 0.3}
    edges |= {(one, LAST) for one in range(LAST)} if joined else set()
    tree = JunctionTree.of(sizes, edges)
    logs = [rng.normal(size=shape) for shape in tree.shapes]
    whole = np.zeros(sizes)
    for one, clique in zip(logs, tree.cliques, strict=True):
        whole = whole + one.reshape([sizes[at] if at in clique else 1 for at in range(VARIABLES)])
    scale, beliefs = tree.infer(logs)
    assert scale == pytest.approx(np.log(np.exp(whole).sum()))
    return tree, beliefs, np.exp(whole) / np.exp(whole).sum()


def summed(whole: np.ndarray, kept: tuple[int, ...]) -> np.ndarray:
    return whole.sum(axis=tuple(at for at in range(VARIABLES) if at not in kept))


@FEW
@given(SEEDS, st.booleans())
def test_any_few_variables_have_the_distribution_of_the_whole_table(seed: int, joined: bool) -> None:
    rng = np.random.default_rng(seed)
    tree, beliefs, whole = random_tree(rng, joined=joined)
    for number in range(1, VARIABLES):
        kept = tuple(sorted(rng.choice(VARIABLES, number, replace=False).tolist()))
        assert tree.joint(beliefs, kept) == pytest.approx(summed(whole, kept))


@FEW
@given(SEEDS)
def test_all_pairs_are_told_together_with_what_is_in_every_clique(seed: int) -> None:
    tree, beliefs, whole = random_tree(np.random.default_rng(seed), joined=True)
    found = tree.pairs(beliefs, (LAST,))
    assert set(found) == {*itertools.combinations(range(LAST), 2)}
    for (one, other), table in found.items():
        assert table == pytest.approx(summed(whole, (one, other, LAST)))


@FEW
@given(SEEDS)
def test_people_are_drawn_from_it_and_told_by_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree, beliefs, whole = random_tree(rng, joined=False)
    drawn = tree.draw(beliefs, 4000, rng)
    shares = np.zeros(whole.shape)
    np.add.at(shares, tuple(drawn), 1 / 4000)
    assert np.abs(shares - whole).sum() < 0.45
    logs = tree.log_probabilities(beliefs, drawn[:, :20], 0)
    for person in range(20):
        truth = np.log(whole[:, *drawn[1:, person]])
        assert logs[person] - logs[person][0] == pytest.approx(truth - truth[0])


def test_a_fit_meets_targets_that_agree() -> None:
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    fit = Entropy((2, 3, 4))
    for one in ((0, 1), (1, 2)):
        shares = truth.sum(axis=tuple(at for at in range(3) if at not in one))
        groups = tuple(np.arange(size) for size in shares.shape)
        fit.add(Target(one, groups, shares, np.full(shares.shape, 1e-9)))
    fit.fit(1e-8, 500)
    for target in fit.targets:
        assert fit.told(target) == pytest.approx(target.shares, abs=1e-6)
    first, second = truth.sum(axis=2), truth.sum(axis=0)
    independent = first[:, :, None] * second[None] / second.sum(axis=1)[None, :, None]
    assert fit.tree.joint(fit.beliefs, (0, 1, 2)) == pytest.approx(independent, abs=1e-6)


def test_a_fit_with_slack_lies_between_its_base_and_its_target() -> None:
    fit = Entropy((2,), (), [((0,), np.log(np.array([0.5, 0.5])))])
    fit.add(Target((0,), (np.arange(2),), np.array([0.9, 0.1]), np.full(2, 0.2)))
    fit.fit(1e-10, 200)
    assert 0.55 < fit.beliefs[0][0] < 0.85
