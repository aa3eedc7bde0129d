"""The exact loss of whole transcripts: worked by hand, never above what was paid, and planted mistakes are caught."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import command_line
import mutants
import persons
from contracts import EVERY_METHOD, ONE_OF_EACH
from planted import BUGS, Bug
from sfumato import DiffGen, Laplace, OtherwiseError, Schema
from sfumato.audit import Transcript, exact, exact_loss, search
from sfumato.audit.events import SCHEMA
from sfumato.audit.exact import Loss, log_chance, loss_of, mean_share, random_neighbours, random_schema
from sfumato.errors import MethodError
from sfumato.methods.method import Method
from sfumato.privacy import meter as meter_module
from sfumato.privacy.transcripts import Call

ONE = Fraction(1)


def by_all_orders(coins: list[float], answer: int) -> float:
    """Give the probability of permute-and-flip from its definition: all orders, all coins."""
    orders = list(permutations(range(len(coins))))
    chance = 0.0
    for order in orders:
        for heads in product((True, False), repeat=len(coins)):
            weight = math.prod(one if head else 1 - one for one, head in zip(coins, heads, strict=True))
            chance += weight * (next((at for at in order if heads[at]), None) == answer)
    return chance / len(orders)


@given(
    scores=st.lists(st.integers(-3, 5), min_size=1, max_size=4),
    rate=st.sampled_from([Fraction(1, 9), Fraction(1, 2), Fraction(3)]),
    data=st.data(),
)
@settings(max_examples=30)
def test_chances_of_permute_and_flip_are_those_of_its_definition(scores: list, rate: Fraction, data: Any) -> None:
    answer = data.draw(st.integers(0, len(scores) - 1))
    coins = [math.exp(-rate * (max(scores) - one)) for one in scores]
    found = log_chance("permute-and-flip", np.array(scores), rate, answer)
    assert math.exp(found.exact + Fraction(found.rest)) == pytest.approx(by_all_orders(coins, answer), rel=1e-12)


@pytest.mark.parametrize("selection", ["permute-and-flip", "exponential"])
@given(scores=st.lists(st.integers(0, 40), min_size=1, max_size=60))
@settings(max_examples=20)
def test_chances_add_up_to_one(selection: str, scores: list) -> None:
    chances = [log_chance(selection, np.array(scores), Fraction(1, 7), answer) for answer in range(len(scores))]
    assert math.fsum(math.exp(one.exact + Fraction(one.rest)) for one in chances) == pytest.approx(1, rel=1e-12)


def test_shares_of_many_coins_are_as_sure_as_is_said() -> None:
    """With n coins of 1/2, E[1 / (1 + K)] is (2^(n + 1) - 1) / ((n + 1) 2^n)."""
    coins = 3000
    exact = Fraction(2 ** (coins + 1) - 1, (coins + 1) * 2**coins)
    assert abs(Fraction(mean_share(np.full(coins, 0.5))) / exact - 1) < coins * 2.0**-49


def test_noise_is_added_up_by_hand() -> None:
    """Counts 2 and 3, told as 5 and -1 at rates 1/2 and 1/3; the neighbour has 3 and 3, another 2 and 2."""
    shape, rates, told = ((2, 1), (0, 1)), (Fraction(1, 2), Fraction(1, 3)), np.array([[5], [-1]])
    first, more, less = (
        Call("noise", rates, shape, np.array(one), told) for one in ([[2], [3]], [[3], [3]], [[2], [2]])
    )
    assert loss_of(first, more) == Loss(Fraction(-1, 2))
    assert loss_of(first, less) == Loss(Fraction(-1, 3))
    assert loss_of(less, first) == Loss(Fraction(1, 3))


def test_a_histogram_loses_all_that_it_pays() -> None:
    table = np.array([[0, 1, 1], [2, 4, 0]], np.uint8)
    for daring in (False, True):
        found = exact_loss(Laplace(), SCHEMA, ONE, table, table[:1], unsafe_seed=1, daring=daring)
        assert (found.lost.size, found.paid, found.rounds, found.broken) == (1, 1, 1, False)


names = st.sampled_from(["young", "old", "north", "south", "red", "blue"])


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        missing = {"missing": "Unknown"} if draw(st.booleans()) else {}
        return {"kind": "numeric", "lower": "0", "upper": str(draw(st.integers(1, 15)))} | missing
    leaves = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    if len(leaves) < 4:
        return {"kind": "categorical", "taxonomy": leaves}
    cut = draw(st.integers(2, len(leaves) - 2))
    return {"kind": "categorical", "taxonomy": {"these": leaves[:cut], "those": leaves[cut:]}}


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Schema, np.ndarray, np.ndarray]:
    """Any small schema, a table of it, and the table with a record more or less."""
    declared = {f"a{at}": one for at, one in enumerate(draw(st.lists(columns(), min_size=1, max_size=3)))}
    if draw(st.booleans()):
        declared["class"] = {"kind": "class", "taxonomy": ["Y", "N", "Maybe"][: draw(st.integers(2, 3))]}
    schema = Schema.parse({"confirmed": True, "attributes": declared})
    sizes = (*schema.shape, len(schema.classes))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    table = np.array(draw(st.lists(row, min_size=1, max_size=10)), np.uint8).reshape(-1, len(sizes))
    both = (table, table[:-1])
    return schema, *(both if draw(st.booleans()) else both[::-1])


@EVERY_METHOD
@given(tables=neighbours(), seed=st.integers(0, 2**30), daring=st.booleans())
@settings(max_examples=12)
def test_no_transcript_loses_more_than_was_paid(method: Method, tables: tuple, seed: int, daring: bool) -> None:
    schema, table, neighbour = tables
    epsilon = Fraction(3, 2)
    try:
        method.plan(schema, epsilon)
    except MethodError:
        return
    found = exact_loss(method, schema, epsilon, table, neighbour, unsafe_seed=seed, daring=daring)
    assert found.paid <= epsilon
    assert not found.broken, f"{found.ratio} of what was paid"


@ONE_OF_EACH
def test_no_transcript_of_a_person_loses_more_than_was_paid(method: Method) -> None:
    """All rows of a person cost what is paid at most, and one of them the part that it has of that."""
    rng, epsilon, found = np.random.default_rng(3), Fraction(3, 2), 0
    while found < 4:
        rows = 2 + found % 2
        schema = Schema.parse(random_schema(rng).plain() | {"person": "who", "rows_per_person": rows})
        try:
            method.plan(schema, epsilon / rows)
        except MethodError:
            continue
        table, neighbour = sorted(random_neighbours(schema, rng), key=len, reverse=True)
        assert len(table) - len(neighbour) == rows
        for other, part in ((neighbour, rows), (table[:-1], 1)):
            for tables in ((table, other), (other, table)):
                one = exact_loss(method, schema, epsilon, *tables, unsafe_seed=found, daring=found >= 2)
                assert one.paid <= epsilon
                assert not replace(one, paid=one.paid * part / rows).broken, f"{one.ratio} of what was paid"
        found += 1


def test_a_search_finds_that_the_rows_of_a_person_are_not_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    persons.epsilon_is_not_divided(monkeypatch)
    monkeypatch.setattr(exact, "PERSONS", 1.0)
    assert search(Laplace(), ONE, transcripts=6).refuted


def losses(bug: Bug) -> list[Transcript]:
    complete, without = bug.pair.table(complete=True), bug.pair.table(complete=False)
    return [
        exact_loss(bug.method, SCHEMA, ONE, *tables, unsafe_seed=seed, daring=seed % 2 == 0)
        for seed in range(20)
        for tables in ((complete, without), (without, complete))
    ]


NOT_SEEN = {
    "no noise on zeros": "inside a mechanism: the samplers find it",
    "noise is a quarter too small": "inside a mechanism: the samplers find it",
    "true counts are one more measurement": "what is told was not measured: the account refuses it",
    "scores that fall pass for monotone": "the rate is too large for the worst scores, which this pair does not have",
}


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.words not in NOT_SEEN], ids=lambda bug: bug.words)
def test_planted_mistakes_are_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    try:
        caught = any(one.broken for one in losses(bug))
    except OtherwiseError:
        caught = True
    assert caught


def test_without_a_mistake_nothing_is_caught() -> None:
    for bug in BUGS:
        assert not any(one.broken for one in losses(bug))


def test_a_price_that_is_too_small_by_a_hair_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = meter_module.Meter._noisy

    def noisy(meter, cells, price):
        return real(meter, cells, mutants.replace(price, unit=price.unit * (1 + Fraction(1, 10**9))))

    monkeypatch.setattr(meter_module.Meter, "_noisy", noisy)
    assert search(Laplace(), ONE, transcripts=4).refuted


def test_a_search_is_the_same_for_a_seed_and_tells_how_far_it_is() -> None:
    told: list[str] = []
    one, other = (
        search(DiffGen(specializations=1), ONE, transcripts=6, unsafe_seed=2, watch=told.append) for _ in "ab"
    )
    assert one == other
    assert told[5] == "diffgen: 6 of 6 transcripts"
    assert 0 < one.largest <= 1
    assert one.rounds >= 12


def test_the_command_lists_methods_and_says_what_was_found() -> None:
    told = command_line.done("audit", "--exact", "--method", "laplace", "--runs", "4", "--unsafe-seed", "1")
    assert "1.0000" in told
    assert "No transcript lost more than was paid" in told
    plain = json.loads(command_line.done("audit", "--exact", "--method", "dpcocgen", "--runs", "2", "--json"))
    assert {one["method"] for one in plain["findings"]} == {"dpcocgen"}
    assert plain["refuted"] is False
    assert "--method" in command_line.refused("audit", "--exact", "--score", "max")


def test_the_command_has_an_exit_code_for_a_refuted_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    mutants.mechanisms_use_twice_what_is_charged(monkeypatch)
    result = command_line.run("audit", "--exact", "--method", "laplace", "--runs", "4")
    assert result.exit_code == 1
    assert "REFUTED: " in result.output
    assert " lost more than was paid" in result.output
