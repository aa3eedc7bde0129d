"""Bounds that are found with epsilon: selected among public candidates, paid first, and about right."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from command_line import done, refused
from sfumato.bounds import candidates_of, private_bounds, public_grid, rows_beyond
from sfumato.errors import BudgetError
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.scores import Beyond, Children
from sfumato.schema.attributes import LARGEST, Numeric
from sfumato.schema.schema import Schema

AGE = Numeric(lower=Decimal(0), upper=Decimal(9))
BORN = Numeric(lower=datetime.date(2000, 1, 1), upper=datetime.date(2001, 1, 1), written="DD.MM.YYYY")


def people(rows: int = 20_000) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    days = zip(rng.integers(1, 29, rows), rng.integers(1, 13, rows), rng.integers(1931, 2005, rows), strict=True)
    return {"age": rng.integers(18, 91, rows), "born": [f"{day}.{month}.{year}" for day, month, year in days]}


def found(tmp_path: Path, columns: dict[str, Any], epsilon: Fraction, seed: int = 1, **facts: Numeric) -> Any:
    ledger = Ledger(tmp_path / "t.ledger", "t", None)
    bounds = private_bounds(pa.table(columns), facts, epsilon, ledger, [""], unsafe_seed=seed)
    return bounds, ledger.statement()


def test_bounds_are_about_right_and_paid(tmp_path: Path) -> None:
    bounds, statement = found(tmp_path, people(), Fraction(1, 10), age=AGE, born=BORN)
    (lower, upper), rows = bounds["age"]
    assert lower in (10, 20)
    assert upper in (80, 90, 100)
    assert rows == rows_beyond(Fraction(1, 40), public_grid(AGE).cells - 2) < 1000
    (first, last), _ = bounds["born"]
    assert first in (datetime.date(1930, 1, 1), datetime.date(1940, 1, 1))
    assert last in (datetime.date(2000, 1, 1), datetime.date(2010, 1, 1))
    (paid,) = statement.publications
    assert (paid.method, paid.outcome, paid.paid) == ("draft", "published", Fraction(1, 10))
    labels = [debit.label for debit in paid.debits]
    assert labels == ["lower bound of age", "upper bound of age", "lower bound of born", "upper bound of born"]
    assert {debit.mechanism for debit in paid.debits} == {"permute-and-flip (beyond)"}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=5, max_size=12),
    st.integers(0, 60),
    st.booleans(),
    st.data(),
)
def test_one_record_moves_every_candidate_by_one_at_most(counts: list[int], rows: int, upper: bool, data: Any) -> None:
    at = data.draw(st.integers(0, len(counts) - 1))
    score, candidates = Beyond(rows, upper), candidates_of(0, len(counts))
    more = [count + (place == at) for place, count in enumerate(counts)]
    before, after = (score.of(children(one, candidates)) for one in (counts, more))
    assert np.abs(after - before).max() <= score.sensitivity(1)


def children(counts: list[int], candidates: Any) -> Children:
    borders = [candidates[at].borders for at in range(len(candidates))]
    sizes = np.array([[sum(counts[lo:hi])] for one in borders for lo, hi in pairwise(one)])
    starts = np.arange(0, 3 * len(borders) + 1, 3)
    return Children(sizes, starts, np.ones(len(sizes), np.int64), len(counts), np.zeros(len(borders), np.int64))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=5, max_size=12), st.integers(1, 60), st.booleans())
def test_the_cell_of_the_record_scores_best_and_empty_ends_worst(counts: list[int], rows: int, upper: bool) -> None:
    scores = Beyond(rows, upper).of(children(counts, candidates_of(0, len(counts))))
    order = counts[::-1] if upper else counts
    places = scores[::-1] if upper else scores
    beyond = np.cumsum(order)
    for place, score in enumerate(places.tolist(), start=1):
        holds = beyond[place - 1] <= rows <= beyond[place]
        assert score >= 0 if holds else score <= 0
        if beyond[place] == 0:
            assert score == -rows


def test_candidates_are_public() -> None:
    other = Numeric(lower=Decimal(17), upper=Decimal(5000), step=Decimal(3))
    assert public_grid(AGE).edges.tolist() == public_grid(other).edges.tolist()
    assert public_grid(AGE).upper == LARGEST - 1


def test_a_bound_beyond_everybody_is_improbable(tmp_path: Path) -> None:
    columns = {"age": people()["age"]}
    for seed in range(20):
        bounds, _ = found(tmp_path, columns, Fraction(1, 10), seed, age=AGE)
        assert bounds["age"][0][1] <= 100


def test_nothing_is_read_that_cannot_be_paid(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "t.ledger", "t", Fraction(1, 100))
    with pytest.raises(BudgetError, match="must be at most the 1/100 left"):
        private_bounds(object(), {"age": AGE}, Fraction(1, 10), ledger, [""])
    with pytest.raises(BudgetError, match="must be large enough to be shared"):
        private_bounds(object(), {"age": AGE}, Fraction(1, 10**12), ledger, [""])
    with pytest.raises(BudgetError, match="must be paid for in a ledger"):
        sfumato.draft(pa.table(people(500)), epsilon="0.1")


def test_a_draft_with_epsilon(here: Path) -> None:
    pyarrow.csv.write_csv(pa.table(people()), here / "crowd.csv")
    done("draft", "crowd.csv", "--epsilon", "0.1", "--budget", "4")
    text = (here / "crowd.schema.yaml").read_text()
    assert "bounds found with epsilon, each with about" in text
    schema = Schema.loads(text)
    age = schema.attributes["age"]
    assert isinstance(age, Numeric)
    assert age.upper in (80, 90, 100)
    assert schema.budget == 4
    assert "1/10 spent for each record in 1 publication, 39/10 of 4 left" in done("account", "show", "crowd.csv")
    assert "must not exist yet" in refused("draft", "crowd.csv", "--epsilon", "0.1")
    assert "1/10 spent" in done("account", "show", "crowd.csv")
    (here / "crowd.schema.yaml").write_text(text.replace("confirmed: false", "confirmed: true"))
    done("publish", "crowd.csv", "--epsilon", "1", "--out", "out")
    assert "11/10 spent for each record in 2 publications" in done("account", "show", "crowd.csv")


def test_an_epsilon_that_is_too_small_finds_no_bounds(tmp_path: Path) -> None:
    drafted = sfumato.draft(pa.table(people(400)), "t", epsilon="0.0001", ledger=tmp_path / "t.ledger")
    for name, facts in drafted.schema.attributes.items():
        assert facts.kind in ("identifier", "numeric")
        assert "epsilon" in drafted.reasons[name]
