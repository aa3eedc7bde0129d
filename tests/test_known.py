"""Measures people know: perfect records have perfect scores, and worse records worse ones; verdicts say so in words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sfumato import Schema
from sfumato.compare.contest import MEASURES
from sfumato.compare.results import Mean
from sfumato.compare.verdict import verdict_of as which
from sfumato.evaluate.known import NAMES, k_marginal, known_measures, propensity, singling_out
from sfumato.evaluate.verdict import CountErrors, percent, verdict_of

SCHEMA = Schema.loads("""
attributes:
  age: {kind: numeric, lower: 0, upper: 99}
  sex: {kind: categorical, taxonomy: [f, m]}
  job: {kind: categorical, taxonomy: [a, b, c, d]}
  wage: {kind: numeric, lower: 0, upper: 999}
""")


def people(seed: int, rows: int = 2000, shift: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100 - shift, rows) + shift
    job = np.clip(age // 25 + rng.integers(-1, 2, rows), 0, 3)
    return {"age": age, "sex": rng.integers(0, 2, rows), "job": job, "wage": rng.integers(0, 1000, rows)}


def test_the_same_records_score_best_and_shuffled_ones_worse() -> None:
    rows = people(1)
    same, fresh = known_measures(SCHEMA, rows, rows, 0), known_measures(SCHEMA, rows, people(2), 0)
    shuffled = {name: np.random.default_rng(at).permutation(codes) for at, (name, codes) in enumerate(rows.items())}
    mixed = known_measures(SCHEMA, rows, shuffled, 0)
    assert tuple(same) == NAMES
    assert (same["k-marginal score"], same["column shapes"], same["pair trends"]) == (1000, 1, 1)
    assert same["correlation difference"] == 0
    assert same["pMSE ratio"] < 0.01 < fresh["pMSE ratio"] < 3
    assert mixed["column shapes"] == 1
    assert mixed["pair trends"] < fresh["pair trends"]
    assert mixed["correlation difference"] > 0.1 > fresh["correlation difference"]
    assert mixed["k-marginal score"] < fresh["k-marginal score"]


def test_records_that_differ_are_told_apart() -> None:
    rows, other = people(1), people(2, shift=30)
    assert propensity(rows, people(3), 0) == pytest.approx(2, abs=0.3)
    assert propensity(rows, other, 0) > 3
    assert k_marginal(rows, other, 0) < k_marginal(rows, people(3), 0)


def test_copies_single_people_out_and_strangers_do_not() -> None:
    rows, control = people(1), people(2)
    copied = singling_out(SCHEMA, rows, rows, 0, control)
    assert copied.attack == 1
    assert copied.risk > 0.4
    assert singling_out(SCHEMA, rows, people(3), 0, control).risk < 0.15
    assert singling_out(SCHEMA, rows, people(3, rows=0), 0).guesses == 0


def card(typical: float, lost: float = 0.0) -> SimpleNamespace:
    lesson = SimpleNamespace(ba=0.85, ca=0.85 - lost, learner="naive Bayes", taught_by="drawn records")
    interval = SimpleNamespace(level=0.95, questions_of="2 attributes", coverage=0.96)
    return SimpleNamespace(counts=(CountErrors(2, 50, typical, 2 * typical),), lessons=(lesson,), intervals=(interval,))


def test_verdicts_say_what_a_release_is_for() -> None:
    good, bad = verdict_of(card(0.02), "income"), verdict_of(card(0.5, 0.1), "income")
    assert good.good[0] == "counts by two attributes: typically within 2 %, nine in ten within 4 %"
    assert "publish it as it is" in good.recommendation
    assert any(one.startswith("counts by two attributes") for one in bad.bad)
    assert any("10.0 points below the original" in one for one in bad.bad)
    assert "do not publish" in bad.recommendation
    assert percent(0.123) == "12 %"


def results(*means: Mean) -> SimpleNamespace:
    return SimpleNamespace(means=lambda: list(means))


def test_a_comparison_names_the_best_and_those_that_cannot_be_told_from_it() -> None:
    errors, score = "relative error, all (median)", "k-marginal score"
    assert {errors, score} <= MEASURES.keys()
    lines = which(
        results(
            Mean("one", "1", errors, 0.10, 0.01, 5),
            Mean("two", "1", errors, 0.11, 0.01, 5),
            Mean("far", "1", errors, 0.50, 0.01, 5),
            Mean("one", "1", score, 900.0, 1.0, 5),
            Mean("two", "1", score, 950.0, 1.0, 5),
            Mean("one", "1", "total variation, 2-way", 0.1, 0.01, 5),
        )
    )
    assert lines[0].startswith("At epsilon 1, for counts by two to four attributes: one,")
    assert "as far as these runs tell: two)" in lines[0]
    assert any("k-marginal score 950" in one for one in lines)
    assert lines[-1] == "At epsilon 1 we recommend one: first in 2 of 3 uses."


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_can_be_compared(name: str) -> None:
    assert MEASURES[name].group == "known"
