"""No record moves R' or F' further than declared, and a wrong declaration is refuted."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay import Purse, Recorder
from sfumato.engines.local import MemoryEngine
from sfumato.errors import PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.families import CLASS, FAMILY_SCORES, BinaryFit, Dependence, Families, Family
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Domain, Tally

counts = st.one_of(st.integers(0, 4), st.integers(0, 300))
thorough = settings(derandomize=True, deadline=None, max_examples=150, database=None)


@st.composite
def arrivals(draw: st.DrawFn, values: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Give the counts of a family, parents x child, before and after one more record."""
    parents, child = draw(st.integers(1, 5)), values or draw(st.integers(1, 4))
    table = np.array(draw(st.lists(counts, min_size=parents * child, max_size=parents * child))).reshape(parents, child)
    more = table.copy()
    more[draw(st.integers(0, parents - 1)), draw(st.integers(0, child - 1))] += 1
    return table, more


@pytest.mark.parametrize(("score", "values"), [(Dependence, None), (BinaryFit, 2)], ids=["R", "F"])
def test_no_record_moves_a_score_beyond_its_sensitivity(score, values) -> None:
    @thorough
    @given(arrivals(values))
    def law(arrival) -> None:
        before, after = arrival
        assert abs(score.of(after) - score.of(before)) <= score.sensitivity / score.unit

    law()


def test_large_counts_do_not_wrap_around() -> None:
    table = np.array([[10**12, 3], [5, 10**12]])
    more = table + np.array([[0, 1], [0, 0]])
    assert abs(Dependence.of(more) - Dependence.of(table)) <= Dependence.sensitivity / Dependence.unit
    assert abs(Dependence.of(table) * Dependence.unit - 10**12) < 10


def test_the_sensitivities_are_approached() -> None:
    """In a large table that is all in one cell, one record elsewhere moves R' by almost 2; F' moves by 1."""
    crowd = np.array([[10**6, 0], [0, 0]])
    assert Dependence.of(np.array([[10**6, 0], [0, 1]])) - Dependence.of(crowd) > 1.99 / Dependence.unit
    moved = BinaryFit.of(np.array([[3, 1], [0, 3]])) - BinaryFit.of(np.array([[3, 0], [0, 3]]))
    assert moved == -2


def worst_fit(table: np.ndarray) -> int:
    """Give twice F' by trying every set of parents."""
    size = int(table.sum())
    return -min(
        max(size - 2 * sum(row[0] for row, one in zip(table, given, strict=True) if one), 0)
        + max(size - 2 * sum(row[1] for row, one in zip(table, given, strict=True) if not one), 0)
        for given in product((True, False), repeat=len(table))
    )


@thorough
@given(arrivals(2))
def test_the_best_fit_is_that_of_all_sets_of_parents(arrival) -> None:
    assert BinaryFit.of(arrival[0]) == worst_fit(arrival[0])


def test_dependence_is_nothing_where_there_is_none() -> None:
    assert Dependence.of(np.array([[2, 4], [3, 6]])) == 0
    assert Dependence.of(np.zeros((2, 2), np.int64)) == 0
    assert Dependence.of(np.array([[4, 0], [0, 4]])) == 4 / Dependence.unit


GRID = Grid.marginal((3, 4), {0: (0, 1, 2, 3), 1: (0, 2, 4)})
TALLY = Tally(Grid.whole((3, 4)), 2, (), None, (GRID,))


@pytest.mark.parametrize(
    ("families", "score"),
    [
        ([], "R'"),
        ([Family(0, 1, True)], "R'"),
        ([Family(CLASS, 0, False)], "R'"),
        ([Family(0, 0, True)], "F'"),
        ([Family(0, 0, True)], "mutual information"),
    ],
)
def test_families_that_are_not_counted_are_refused(families, score) -> None:
    with pytest.raises(PrivacyError):
        Families(TALLY, families, score)


def test_a_tally_for_which_not_everyone_pays_is_refused() -> None:
    with pytest.raises(PrivacyError, match="everyone pays"):
        Families(Tally(Tree.whole((3, 4)), 2, (), None, (GRID,)), [Family(0, 0, False)], "R'")


def test_the_family_that_hangs_together_is_chosen_and_paid_for() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 600).astype(np.uint8), rng.integers(0, 4, 600).astype(np.uint8)
    purse = Purse(Fraction(1))
    meter = Meter(MemoryEngine([first, second], second // 2), purse, Recorder(0), Domain((3, 4), 2))
    offered = Families(TALLY, [Family(0, 0, False), Family(CLASS, 0, True)], "R'")
    assert meter.select_family(offered, Fraction(1), "choice", "permute-and-flip") == 1
    (debit,) = purse.debits
    assert (debit.epsilon, debit.sensitivity, debit.cells) == (1, FAMILY_SCORES["R'"].sensitivity, 2)
    with pytest.raises(PrivacyError):
        meter.select_family([Family(0, 0, False)], Fraction(1), "choice", "permute-and-flip")
