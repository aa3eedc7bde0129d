"""Choices have the stated distribution, exactly enumerated, and that distribution is private."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations, product
from math import exp, factorial, inf, log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.privacy import selection as selection_module
from sfumato.privacy.mechanisms import CHOOSERS, Exact
from sfumato.privacy.noise import SeededStream
from sfumato.privacy.selection import Scored, exponential, permute_and_flip

FAR_OUT = 1e-9
REPEATS = 100_000
GROUPS = [(3, 3), (5, 4, 2), (0, 1, 2, 3), (7, 7, 7, 0), (-4, -2, -2, -1, -9), (10, 0)]
RATES = [Fraction(1), Fraction(1, 3), Fraction(7, 5), Fraction(2**38 + 1, 2**40 - 87)]


@cache
def permuted_and_flipped(scores: tuple[int, ...], rate: Fraction) -> tuple[float, ...]:
    """Enumerate the mechanism as published: visit in every order, take the first heads."""
    chance = [exp(-float(rate * (max(scores) - score))) for score in scores]
    chosen = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        reached = 1.0
        for candidate in order:
            chosen[candidate] += reached * chance[candidate]
            reached *= 1 - chance[candidate]
    return tuple(share / factorial(len(scores)) for share in chosen)


def softmax(scores: tuple[int, ...], rate: Fraction) -> tuple[float, ...]:
    """Give the exponential mechanism's distribution."""
    weights = [exp(-float(rate * (max(scores) - score))) for score in scores]
    return tuple(weight / sum(weights) for weight in weights)


EXACT = {"permute-and-flip": permuted_and_flipped, "exponential": softmax}


def repeated(scores: tuple[int, ...], times: int = REPEATS) -> Scored:
    """Lay the same group out many times."""
    return Scored.alone(np.tile(np.array(scores, np.int64), times), np.arange(times + 1) * len(scores))


def fits(choices: NDArray[np.int64], shares: tuple[float, ...]) -> bool:
    """Whether choices may have these shares, unlikely candidates pooled."""
    expected = len(choices) * np.array(shares)
    observed = np.bincount(choices, minlength=len(shares)).astype(float)
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    observed = np.append(observed[~rare], observed[rare].sum())
    if expected[-1] < 1:
        return bool(observed[-1] <= 20 and _distance(observed[:-1], expected[:-1]) > FAR_OUT)
    return _distance(observed, expected) > FAR_OUT


def _distance(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), max(len(expected) - 1, 1)))


def worst_loss(rate: Fraction, shifts: list[tuple[int, ...]], highest: int) -> float:
    """Give the largest log ratio of any choice over all small score vectors and all these shifts of them."""
    worst = -inf
    for scores in product(range(highest + 1), repeat=len(shifts[0])):
        for shift in shifts:
            moved = tuple(score + step for score, step in zip(scores, shift, strict=True))
            here, there = permuted_and_flipped(scores, rate), permuted_and_flipped(moved, rate)
            worst = max(worst, *(abs(log(one / other)) for one, other in zip(here, there, strict=True)))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("selection", CHOOSERS)
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("scores", GROUPS, ids=str)
def test_choices_have_the_enumerated_distribution(scores: tuple[int, ...], rate: Fraction, selection: str) -> None:
    choices = CHOOSERS[selection](SeededStream(1), repeated(scores), rate)
    assert fits(choices, EXACT[selection](scores, rate))


@pytest.mark.slow
@pytest.mark.parametrize("selection", CHOOSERS)
@pytest.mark.parametrize("wrong", [Fraction(4, 5), Fraction(5, 4)], ids=["0.8", "1.25"])
@pytest.mark.parametrize("scores", [(5, 4, 2), (0, 1, 2, 3)], ids=str)
def test_choices_at_a_wrong_rate_are_rejected(scores: tuple[int, ...], wrong: Fraction, selection: str) -> None:
    choices = CHOOSERS[selection](SeededStream(2), repeated(scores), wrong)
    assert not fits(choices, EXACT[selection](scores, Fraction(1)))


def test_the_two_mechanisms_are_told_apart() -> None:
    scores = (5, 4, 2)
    assert not fits(
        exponential(SeededStream(3), repeated(scores), Fraction(1)), permuted_and_flipped(scores, Fraction(1))
    )
    assert not fits(permute_and_flip(SeededStream(3), repeated(scores), Fraction(1)), softmax(scores, Fraction(1)))


@pytest.mark.parametrize("scores", GROUPS, ids=str)
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(scores: tuple[int, ...]) -> None:
    flipped, weighted = permuted_and_flipped(scores, Fraction(1)), softmax(scores, Fraction(1))
    best = [index for index, score in enumerate(scores) if score == max(scores)]
    assert sum(flipped[index] for index in best) >= sum(weighted[index] for index in best) - 1e-12


@pytest.mark.parametrize("selection", CHOOSERS)
def test_unequal_groups_side_by_side_keep_their_own_distributions(selection: str) -> None:
    groups = [(1, 0), (2, 2, 0), (5,), (0, 1, 2, 3), (100, 99)]
    scores = np.tile(np.concatenate(groups), REPEATS)
    starts = np.concatenate(([0], np.cumsum(np.tile([len(group) for group in groups], REPEATS))))
    choices = CHOOSERS[selection](SeededStream(4), Scored.alone(scores, starts), Fraction(1)).reshape(
        REPEATS, len(groups)
    )
    for column, group in zip(choices.T, groups, strict=True):
        assert fits(column, EXACT[selection](group, Fraction(1)))


@pytest.mark.parametrize("selection", CHOOSERS)
def test_neighbouring_groups_choose_independently(selection: str) -> None:
    scores = (1, 0, 0)
    choices = CHOOSERS[selection](SeededStream(5), repeated(scores, 2 * REPEATS), Fraction(1)).reshape(-1, 2)
    single = np.array(EXACT[selection](scores, Fraction(1)))
    assert fits(choices[:, 0] * 3 + choices[:, 1], tuple(np.outer(single, single).ravel()))


@pytest.mark.parametrize("selection", CHOOSERS)
def test_a_single_candidate_is_chosen(selection: str) -> None:
    assert not CHOOSERS[selection](
        SeededStream(6), Scored.alone(np.arange(1000) - 500, np.arange(1001)), Fraction(1)
    ).any()


@pytest.mark.parametrize("selection", CHOOSERS)
def test_no_group_gives_no_choice(selection: str) -> None:
    empty = np.array([], np.int64)
    assert CHOOSERS[selection](SeededStream(7), Scored.alone(empty, np.array([0])), Fraction(1)).shape == (0,)


@pytest.mark.parametrize("selection", CHOOSERS)
@pytest.mark.parametrize("level", [-(2**62), 2**62, 10**15])
def test_only_deficits_matter_however_large_the_scores(level: int, selection: str) -> None:
    scores = (5, 4, 2)
    raised = np.tile(np.array(scores, np.int64) + level, REPEATS)
    choices = CHOOSERS[selection](SeededStream(8), Scored.alone(raised, np.arange(REPEATS + 1) * 3), Fraction(1))
    assert fits(choices, EXACT[selection](scores, Fraction(1)))


@pytest.mark.parametrize("selection", CHOOSERS)
@pytest.mark.parametrize("rate", [Fraction(2**40 - 1, 2**10), Fraction(2**39 + 1, 2**40 - 87)], ids=str)
def test_hopeless_candidates_are_not_chosen_when_products_leave_64_bits(rate: Fraction, selection: str) -> None:
    assert set(CHOOSERS[selection](SeededStream(9), repeated((0, 2**31, -(2**31)), 1000), rate)) == {1}


@pytest.mark.parametrize("selection", CHOOSERS)
def test_a_hopeless_candidate_does_not_disturb_the_others(selection: str) -> None:
    rate = Fraction(2**39 + 1, 2**40)
    choices = CHOOSERS[selection](SeededStream(11), repeated((0, -1, -(2**50)), 20_000), rate)
    assert fits(choices, (*EXACT[selection]((0, -1), rate), 0.0))


@pytest.mark.parametrize("selection", CHOOSERS)
def test_the_mechanism_object_chooses_by_name(selection: str) -> None:
    scored = repeated((2, 1, 0), 100)
    named = Exact(SeededStream(12)).choose(selection, scored, Fraction(1))
    assert (named == CHOOSERS[selection](SeededStream(12), scored, Fraction(1))).all()


def test_a_large_group_chooses_among_its_equals() -> None:
    scored = Scored.alone(np.zeros(50_000, np.int64), np.array([0, 50_000]))
    chosen = [int(permute_and_flip(SeededStream(seed), scored, Fraction(1))[0]) for seed in range(20)]
    assert max(chosen) < 50_000
    assert len(set(chosen)) > 10


@pytest.mark.parametrize("shares", [permuted_and_flipped, softmax])
def test_enumerated_shares_sum_to_one(shares) -> None:
    assert all(abs(sum(shares(scores, Fraction(1))) - 1) < 1e-12 for scores in GROUPS)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_monotone_shifts_lose_at_most_epsilon_at_the_monotone_rate(epsilon: Fraction, size: int) -> None:
    sensitivity = 2
    shifts = (
        list(product(range(sensitivity + 1), repeat=size)) if size < 4 else list(product((0, sensitivity), repeat=size))
    )
    assert worst_loss(epsilon / sensitivity, shifts, 5 if size < 4 else 3) <= float(epsilon) + 1e-9


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_any_shifts_lose_at_most_epsilon_at_the_general_rate(epsilon: Fraction, size: int) -> None:
    shifts = list(product((-1, 0, 1) if size < 4 else (-1, 1), repeat=size))
    assert worst_loss(epsilon / 2, shifts, 4 if size < 4 else 3) <= float(epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_opposite_shifts_lose_more_than_epsilon_at_the_monotone_rate(epsilon: Fraction) -> None:
    assert worst_loss(epsilon, list(product((-1, 0, 1), repeat=2)), 6) > 1.2 * float(epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_the_monotone_bound_is_nearly_attained(epsilon: Fraction) -> None:
    assert worst_loss(epsilon, list(product((0, 1), repeat=2)), 6) > 0.9 * float(epsilon)


def test_groups_are_laid_out_by_their_starts() -> None:
    scores, starts = np.array([0, 900, 0, 0, 900, 900, 0]), np.array([0, 2, 5, 7])
    assert permute_and_flip(SeededStream(13), Scored.alone(scores, starts), Fraction(1)).tolist() == [1, 2, 0]
    assert all(low < high for low, high in pairwise(starts))


COPIED = [((5, 4, 2), (1, 3, 2)), ((0, 1), (4, 1)), ((3, 3), (2, 2)), ((0, 9), (5, 1))]


@pytest.mark.parametrize("selection", CHOOSERS)
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 5)], ids=str)
@pytest.mark.parametrize(("scores", "copies"), COPIED, ids=str)
def test_copies_are_chosen_as_if_each_stood_alone(
    scores: tuple[int, ...], copies: tuple[int, ...], rate: Fraction, selection: str
) -> None:
    scored = Scored(
        np.tile(np.array(scores, np.int64), REPEATS),
        np.tile(np.array(copies, np.int64), REPEATS),
        np.arange(REPEATS + 1) * len(scores),
        np.ones(REPEATS, np.int64),
    )
    choices = CHOOSERS[selection](SeededStream(14), scored, rate)
    assert fits(choices, EXACT[selection](tuple(np.repeat(scores, copies).tolist()), rate))


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_the_first_tries_do_not_change_the_distribution(tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection_module, "TRIES", tries)
    scores = (3, 2, 0, 0, 0, 0)
    assert fits(
        permute_and_flip(SeededStream(15), repeated(scores), Fraction(1)), permuted_and_flipped(scores, Fraction(1))
    )


@pytest.mark.parametrize("selection", CHOOSERS)
def test_groups_choose_at_their_own_stakes(selection: str) -> None:
    scored = replace(repeated((5, 4, 2), 2 * REPEATS), stakes=np.tile([1, 3], REPEATS))
    choices = CHOOSERS[selection](SeededStream(16), scored, Fraction(1, 3)).reshape(-1, 2)
    for column, rate in zip(choices.T, (Fraction(1, 3), Fraction(1)), strict=True):
        assert fits(column, EXACT[selection]((5, 4, 2), rate))


@pytest.mark.parametrize("selection", CHOOSERS)
def test_stakes_beyond_64_bits_are_exact(selection: str) -> None:
    scored = replace(repeated((2**40, 2**40 - 1, 0), 20_000), stakes=np.full(20_000, 2**40))
    choices = CHOOSERS[selection](SeededStream(17), scored, Fraction(1, 2**40))
    assert fits(choices, (*EXACT[selection]((1, 0), Fraction(1)), 0.0))
