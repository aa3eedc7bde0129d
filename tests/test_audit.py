"""The attack's bounds are right, it finds most of what is there, and it says what it found."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom

import command_line
from contracts import ONE_OF_EACH
from planted import CUT, LONE, NOBODY, TIE
from sfumato import DiffGen, Laplace
from sfumato.audit import PAIRS, attack
from sfumato.audit.attack import Trials
from sfumato.audit.events import NUMBERS, SCHEMA, Observations, epsilon_shown, lower_chance, most_telling, upper_chance
from sfumato.errors import MethodError
from sfumato.methods.method import Method
from sfumato.privacy import mechanisms

ONE = Fraction(1)


@pytest.mark.parametrize("runs", [1, 10, 1000, 10_000])
@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.999, 1])
@pytest.mark.parametrize("doubt", [0.025, 0.0005])
def test_bounds_are_clopper_and_pearsons(runs: int, share: float, doubt: float) -> None:
    seen = round(share * runs)
    low = 0.0 if seen == 0 else beta.ppf(doubt, seen, runs - seen + 1)
    high = 1.0 if seen == runs else beta.ppf(1 - doubt, seen + 1, runs - seen)
    assert lower_chance(seen, runs, doubt) == pytest.approx(low, rel=1e-8, abs=1e-15)
    assert upper_chance(seen, runs, doubt) == pytest.approx(high, rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("chance", [0.01, 0.2, 0.5])
def test_a_bound_is_wrong_no_more_often_than_it_says(chance: float) -> None:
    runs = 40
    wrong = sum(binom.pmf(seen, runs, chance) for seen in range(runs + 1) if lower_chance(seen, runs, 0.05) > chance)
    assert wrong <= 0.05


def test_what_never_happens_shows_nothing() -> None:
    assert epsilon_shown(0, 0, 1000, 0.95) == 0
    assert epsilon_shown(500, 500, 1000, 0.95) == 0
    assert epsilon_shown(1000, 0, 1000, 0.95) > 5


def seen_as(shapes: list[bytes], first: list[float] | None = None) -> Observations:
    numbers = np.zeros((len(shapes), len(NUMBERS)))
    numbers[:, 0] = first or 0.0
    return Observations(numbers, tuple(shapes))


def test_a_shape_that_only_one_table_can_have_is_found() -> None:
    with_record, without = seen_as([b"a", b"a", b"b", b"b"] * 100), seen_as([b"a"] * 400)
    event = most_telling(with_record, without).event
    assert event.complete
    assert event.happens(with_record).mean() == 0.5
    assert not event.happens(without).any()
    assert "shape" in event.words


def test_shapes_that_were_met_once_each_tell_nothing() -> None:
    some, others = (seen_as([f"{start + run}".encode() for run in range(400)]) for start in (0, 400))
    assert most_telling(some, others).epsilon < 0.1


def test_a_threshold_is_found_in_either_direction() -> None:
    low, high = seen_as([b""] * 400, [0.0, 1.0] * 200), seen_as([b""] * 400, [1.0, 1.0, 1.0, 2.0] * 100)
    for one, other in ((low, high), (high, low)):
        hint = most_telling(one, other)
        assert hint.epsilon > 1
        assert hint.event.complete == bool(hint.event.happens(one).sum() > hint.event.happens(other).sum())


def test_most_of_an_epsilon_is_found() -> None:
    found = attack(Laplace(), ONE, runs=1200, pairs=[NOBODY], unsafe_seed=1)
    assert 0.65 < found.shown <= 1
    assert (found.tested, found.claimed, found.refuted) == (600, ONE, False)


def test_runs_do_not_depend_on_the_number_of_processes() -> None:
    alone, both = (
        Trials(Laplace(), ONE, unsafe_seed=3, processes=number, watch=lambda _: None).all_of([(TIE, 300)], 0)[0]
        for number in (1, 2)
    )
    for one, other in zip(alone, both, strict=True):
        assert np.array_equal(one.numbers, other.numbers)
        assert one.shapes == other.shapes
        assert len(one) == 300


@pytest.mark.slow
@ONE_OF_EACH
def test_no_method_is_refuted(method: Method) -> None:
    found = attack(method, ONE, runs=200, confidence=0.999, pairs=[LONE], unsafe_seed=4)
    assert not found.refuted
    assert found.method == method.name


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(MethodError, match="runs"):
        attack(Laplace(), ONE, runs=199)


def test_pairs_are_neighbours_on_the_tiny_domain() -> None:
    sizes = (*SCHEMA.shape, len(SCHEMA.classes))
    for pair in PAIRS:
        complete, without = pair.table(complete=True), pair.table(complete=False)
        assert len(complete) == len(without) + 1
        assert (complete[:-1] == without).all()
        assert (complete < sizes).all()
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


SMALL = ("audit", "--method", "laplace", "--runs", "280", "--processes", "1", "--unsafe-seed", "1")


def test_the_command_says_what_it_found_and_what_it_cannot_show() -> None:
    told = command_line.done(*SMALL)
    assert "laplace claims epsilon 1; this attack shows that it is at least 0." in told
    assert "What it cannot show" in told
    assert all(pair.name in told for pair in PAIRS)


def test_the_command_speaks_json() -> None:
    told = json.loads(command_line.done(*SMALL, "--json"))
    assert told["claimed"] == "1"
    assert 0 < told["shown"] <= 1
    assert told["refuted"] is False
    assert told["hints"].keys() == {pair.name for pair in PAIRS}


def test_a_refuted_claim_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    real = mechanisms.discrete_laplace
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda stream, rate, count: real(stream, rate * 4, count))
    result = command_line.run(*SMALL)
    assert result.exit_code == 1
    assert "REFUTED" in result.output


def test_options_of_the_method_are_taken_and_others_refused() -> None:
    assert "--score" in command_line.refused("audit", "--method", "laplace", "--score", "max")
    assert "at most" in command_line.refused("audit", "--method", "diffgen", "--specializations", "99")
    assert "confidence" in command_line.refused("audit", "--confidence", "1")


def test_a_method_of_few_steps_is_attacked_by_default() -> None:
    assert CUT.plan(SCHEMA, ONE)
    with pytest.raises(MethodError):
        DiffGen(specializations=10).plan(SCHEMA, ONE)
