"""Path by path: no record loses more in any round, or in all, than its own place pays for, and the dearest pays all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mutants
from contracts import cases, examples, first_examples
from handmade import assert_same_draft
from paths import NOWHERE, boxes_of, charged, paid_by_points, places_of, points_of, used
from replay import Call, Purse, Recorder, Replayer, domain_of, loss_of
from sfumato import METHODS, DiffMulti
from sfumato.engines import local, rounds
from sfumato.methods.method import Method
from sfumato.models import model_type
from sfumato.models.tree import TreeModel
from sfumato.privacy import choices as scoring
from sfumato.privacy.budget import Debit
from sfumato.privacy.measurements import Draft
from sfumato.privacy.meter import Charges, Meter
from sfumato.privacy.tally import Tally
from test_replay import SCHEMA, engine
from test_replay import rows as records
from test_selection import permuted_and_flipped, softmax


def of_trees(methods: Iterable[Method]) -> Iterator[Method]:
    """Keep those that publish the nodes of a tree: their paths pay different amounts."""
    return (one for one in methods if issubclass(model_type(one.model), TreeModel))


POINTS = points_of(SCHEMA.shape)

tables = st.builds(lambda rows, times: rows * times, st.lists(records, max_size=10), st.sampled_from([1, 1, 20]))
epsilons = st.sampled_from([Fraction(1, 2), Fraction(3, 2), Fraction(10)])
seeds = st.integers(0, 2**20)
dense_sizes = st.sampled_from([0, 50, 1 << 18])


@dataclass
class Round:
    """What a round asked, and the meter's charges before and after it."""

    tally: Tally
    asked: np.ndarray
    before: Charges
    after: Charges


class Noting(Meter):
    """A meter that notes its charges around every round."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.rounds: list[Round] = []

    def measure(self, cells, spend, label):
        before, answer = self._charges, super().measure(cells, spend, label)
        self.rounds.append(Round(cells.tally, np.arange(cells.tally.places), before, self._charges))
        return answer

    def select(self, choices, score, spend, label, selection):
        before, answer = self._charges, super().select(choices, score, spend, label, selection)
        self.rounds.append(Round(choices.tally, choices.places, before, self._charges))
        return answer


@dataclass
class Publication:
    """All that happened on the way to a draft."""

    draft: Draft
    debits: list[Debit]
    rounds: list[Round]
    calls: list[Call]


def publish(method: Method, table: list, epsilon: Fraction, mechanisms) -> Publication:
    purse = Purse(epsilon)
    meter = Noting(engine(table), purse, mechanisms, domain_of(SCHEMA))
    draft = method.publish(meter, SCHEMA, method.plan(SCHEMA, epsilon))
    return Publication(draft, purse.debits, meter.rounds, mechanisms.calls)


def neighbours(
    method: Method, table: list, extra: tuple, epsilon: Fraction, seed: int, **sizes: int
) -> tuple[Publication, Publication]:
    """Publish a table, and with the same answers the table with one more record, counting in blocks of these sizes."""
    recorder = Recorder(seed)
    left = publish(method, table, epsilon, recorder)
    replayer = Replayer(recorder)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr({"CHUNK": scoring, "BLOCK": local, "DENSE": rounds}[name], name, size)
        right = publish(method, [*table, extra], epsilon, replayer)
    replayer.finish()
    return left, right


def check_losses(left: Publication, right: Publication, extra: tuple) -> None:
    """Fail if a round costs the extra record more than its place pays in it."""
    point = np.array([extra[:-1]])
    assert left.debits == right.debits, "the neighbour pays otherwise"
    for debit, one, a, b in zip(left.debits, left.rounds, left.calls, right.calls, strict=True):
        rise = charged(one.after, point)[0] - charged(one.before, point)[0]
        loss = loss_of(debit, a, b)
        assert loss <= rise, f"{debit.label}: a record loses more than its place pays"
        place = places_of(boxes_of(one.tally), point)[0]
        if a.kind == "noise":
            moved = np.abs(b.given - a.given).sum(axis=1)
            holds = [] if place == NOWHERE else [place]
            assert np.flatnonzero(moved).tolist() == holds, f"{debit.label}: another place counts the record"
            assert loss == rise, f"{debit.label}: a record loses less than its place pays"


def check_exact_losses(left: Publication, right: Publication, extra: tuple) -> None:
    """Fail if the probability of any answer to any choice changes by more than the record's place pays for."""
    point = np.array([extra[:-1]])
    for debit, one, a, b in zip(left.debits, left.rounds, left.calls, right.calls, strict=True):
        if a.kind == "noise":
            continue
        rise = charged(one.after, point)[0] - charged(one.before, point)[0]
        ends, stakes = a.shape
        for low, high, stake in zip(ends[:-1], ends[1:], stakes, strict=True):
            before, after = (log_shares(a.kind, call.given[low:high], float(a.rates[0] * stake)) for call in (a, b))
            loss = float(np.abs(after - before).max())
            assert loss <= float(rise) * (1 + 1e-9) + 1e-12, f"{debit.label}: an answer gives away more than is paid"


def check_paths(publication: Publication, epsilon: Fraction) -> None:
    """Fail unless every point is charged what is used, and after every round the dearest path costs the debits."""
    total, debited = [Fraction(0)] * len(POINTS), Fraction(0)
    for debit, one, call in zip(publication.debits, publication.rounds, publication.calls, strict=True):
        amounts = paid_by_points(one.tally, one.asked, used(debit, call), POINTS)
        rises = zip(charged(one.after, POINTS), charged(one.before, POINTS), strict=True)
        assert [after - before for after, before in rises] == amounts, f"{debit.label}: used is not what is charged"
        total, debited = [sum(pair) for pair in zip(total, amounts, strict=True)], debited + debit.epsilon
        assert max(total) <= debited, f"{debit.label}: a path costs more than the debits"
        assert max(total) == debited <= epsilon, f"{debit.label}: the debits are not what the dearest path costs"


def log_shares(selection: str, scores: np.ndarray, rate: float) -> np.ndarray:
    """Give the exact log probability of every candidate.

    Let permute-and-flip visit candidates at times that are uniform between 0 and 1. Candidate i is taken at time t if
    its coin, of probability q_i, shows heads and no other was taken before: q_i times the integral of the product of (1
    - q_j t) over the others. That is a polynomial, which Gauss and Legendre integrate exactly.
    """
    exponents = rate * (scores - scores.max())
    if selection == "exponential":
        return exponents - math.log(np.exp(exponents).sum())
    times, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    tails = 1 - np.exp(exponents)[:, None] * (times + 1) / 2
    others = np.exp(np.log(tails).sum(axis=0) - np.log(tails))
    return exponents + np.log((others * weights / 2).sum(axis=1))


@cases(of_trees(examples(METHODS)))
@settings(max_examples=6)
@given(table=tables, extra=records, epsilon=epsilons, seed=seeds)
def test_no_record_loses_more_than_its_path_pays(
    method: Method, table: list, extra: tuple, epsilon: Fraction, seed: int
) -> None:
    """In no round, by no answer to a choice, and in all; and neighbours with the same answers draft the same."""
    left, right = neighbours(method, table, extra, epsilon, seed)
    check_losses(left, right, extra)
    check_exact_losses(left, right, extra)
    check_paths(left, epsilon)
    assert_same_draft(left.draft, right.draft)


@pytest.mark.parametrize("scores", [(3,), (3, 3), (5, 4, 2), (7, 7, 7, 0), (-4, -2, -2, -1, -9), (0, 1, 2, 3, 4, 5)])
def test_exact_probabilities_are_those_of_the_definition(scores: tuple[int, ...]) -> None:
    for rate in (Fraction(1, 5), Fraction(2)):
        flipped = np.exp(log_shares("permute-and-flip", np.array(scores), float(rate)))
        assert flipped == pytest.approx(permuted_and_flipped(scores, rate), rel=1e-12)
        assert np.exp(log_shares("exponential", np.array(scores), float(rate))) == pytest.approx(softmax(scores, rate))


@cases(of_trees(first_examples(METHODS)))
@settings(max_examples=4)
@given(table=st.lists(records, max_size=30), extra=records, seed=seeds, block=st.integers(2, 9), dense=dense_sizes)
def test_sizes_of_blocks_change_nothing(
    method: Method, table: list, extra: tuple, seed: int, block: int, dense: int
) -> None:
    """Small blocks, counting by sorting and small chunks of candidates are met by the neighbour alone."""
    small = {"BLOCK": block, "DENSE": dense, "CHUNK": block}
    left, right = neighbours(method, table, extra, Fraction(6), seed, **small)
    check_losses(left, right, extra)
    assert_same_draft(left.draft, right.draft)


def some_neighbours(method: Method) -> Iterator[tuple[Publication, Publication, tuple]]:
    """Publish tables that are always the same, on which a planted mistake must not survive."""
    rng = np.random.default_rng(3)
    for seed in range(3):
        *table, extra = map(tuple, rng.integers(0, (*SCHEMA.shape, len(SCHEMA.classes)), (60, 4)).tolist())
        yield *neighbours(method, table, extra, Fraction(4), seed), extra


def check_some_tables() -> None:
    for method in of_trees(first_examples(METHODS)):
        for left, right, extra in some_neighbours(method):
            check_losses(left, right, extra)
            check_paths(left, Fraction(4))


def test_an_honest_meter_passes() -> None:
    check_some_tables()


@pytest.mark.parametrize(
    ("plant", "complaint"),
    [
        (mutants.children_inherit_nothing, "loses more than its place pays"),
        (mutants.multiples_are_reversed_against_charges, "place pays|used is not what is charged"),
        (mutants.the_most_is_the_median, "a path costs more than the debits"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_mistake_is_caught(plant: mutants.Plant, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=complaint):
        check_some_tables()


def check_some_choices() -> None:
    for left, right, extra in some_neighbours(DiffMulti(score="max")):
        check_exact_losses(left, right, extra)


def test_a_choice_sharper_than_its_price_gives_more_away(monkeypatch: pytest.MonkeyPatch) -> None:
    check_some_choices()
    mutants.mechanisms_use_twice_what_is_charged(monkeypatch)
    with pytest.raises(AssertionError, match="gives away more than is paid"):
        check_some_choices()
