"""What paths have paid: sums along each, shared with nobody, and never forgotten."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from replay import Purse, Recorder
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, PrivacyError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import GRAIN
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Noisy
from sfumato.privacy.meter import Charges, Meter
from sfumato.privacy.scores import Max
from sfumato.privacy.tally import Cells, Domain, Tally

ROOT = Tree.whole((4, 6))
HALVES = ROOT.refine([0], [0], [0, 2, 4], [0, 3])
QUARTERS = HALVES.refine([1], [1], [0, 3, 6], [0, 3])
OTHER = ROOT.refine([0], [1], [0, 3, 6], [0, 3])


def tally(tree: Tree, *nodes: int) -> Tally:
    return Tally(tree, 2, (0, 1), np.array(nodes) if nodes else None)


def paid(charges: Charges, tree: Tree, node: int) -> Fraction:
    one = tally(tree, node)
    return 1 - charges.rest(one, Fraction(1))[0] * GRAIN


def charge(charges: Charges, tree: Tree, **spends: int) -> Charges:
    nodes = [int(name[1:]) for name in spends]
    return charges.after_places(tally(tree, *nodes), np.arange(len(nodes)), np.array(list(spends.values())))


def test_a_path_pays_the_sum_of_its_rounds() -> None:
    charges = charge(charge(charge(Charges(), ROOT, n0=5), HALVES, n1=7, n2=1), QUARTERS, n3=2)
    assert [paid(charges, QUARTERS, node) / GRAIN for node in (2, 3, 4)] == [6, 14, 12]
    assert charges.most == 14 * GRAIN


def test_what_is_asked_of_everyone_is_paid_by_everyone() -> None:
    charges = charge(charge(Charges(), ROOT, n0=5), HALVES, n1=7).after_everyone(Fraction(1, 3))
    assert charges.most == 12 * GRAIN + Fraction(1, 3)
    assert paid(charges, HALVES, 2) >= 5 * GRAIN + Fraction(1, 3)


def test_levels_may_be_passed_over() -> None:
    charges = charge(charge(Charges(), ROOT, n0=5), QUARTERS, n4=1)
    assert [paid(charges, QUARTERS, node) / GRAIN for node in (2, 3, 4)] == [5, 5, 6]


@pytest.mark.parametrize("tree", [OTHER, ROOT], ids=["another", "an earlier"])
def test_on_a_tree_that_does_not_refine_the_known_one_all_have_paid_the_most(tree: Tree) -> None:
    charges = charge(charge(Charges(), ROOT, n0=5), HALVES, n1=7)
    assert all(paid(charges, tree, node) == 12 * GRAIN for node in tree.ends.tolist())
    assert charge(charges, tree, **{f"n{tree.ends[0]}": 1}).most == 13 * GRAIN


def metered(epsilon: Fraction = Fraction(1)) -> tuple[Meter, Purse, Recorder]:
    purse, recorder = Purse(epsilon), Recorder(0)
    table = np.array([[0, 1, 0], [3, 5, 1], [2, 2, 1]], np.uint8)
    return (
        Meter(MemoryEngine([table[:, 0], table[:, 1]], table[:, 2]), purse, recorder, Domain((4, 6), 2)),
        purse,
        recorder,
    )


def test_debits_are_what_raises_the_most_that_anyone_has_paid() -> None:
    meter, purse, _ = metered()
    meter.measure(Cells(tally(HALVES, 1)), Fraction(1, 4), "left")
    meter.measure(Cells(tally(HALVES, 2)), Fraction(1, 5), "right")
    meter.measure(Cells(tally(HALVES)), np.array([1, 10**8]), "both")
    assert [debit.epsilon for debit in purse.debits] == [Fraction(1, 4), 0, Fraction(1, 20)]
    assert meter.left == Fraction(7, 10)
    assert meter.rest(tally(HALVES)).tolist() == [750_000_000 - 1, 700_000_000]


def test_the_rest_of_each_path_scales_its_own_noise() -> None:
    meter, purse, recorder = metered()
    meter.measure(Cells(tally(HALVES, 1)), Fraction(1, 4), "left")
    noisy = meter.measure_with_rest(Cells(tally(HALVES)), "counts").noisy
    assert [noisy.rates[index] for index in noisy.rate_of] == [Fraction(3, 4), Fraction(1)]
    assert recorder.calls[-1].rates == noisy.rates
    assert sum(debit.epsilon for debit in purse.debits) == 1
    assert "0.75 to 1 by place" in purse.debits[-1].mechanism
    with pytest.raises(BudgetError, match="must cost"):
        meter.measure_with_rest(Cells(tally(HALVES)), "again")


@pytest.mark.parametrize("spend", [[0, 1], [-1, 1], [10**9 + 1, 1], [2**63 - 1, 1]])
def test_prices_that_no_path_can_pay_are_refused(spend: list[int]) -> None:
    meter, purse, recorder = metered()
    with pytest.raises(BudgetError, match="must cost"):
        meter.measure(Cells(tally(HALVES)), np.array(spend), "counts")
    assert (purse.debits, recorder.calls) == ([], [])


def test_a_choice_charges_only_where_it_chooses_at_its_own_price() -> None:
    meter, _, recorder = metered()
    choices = Choices.by_place(
        tally(HALVES), Candidates.join([Candidates.splits(0, 1, 0, 6), Candidates.splits(1, 1, 0, 6)])
    )
    meter.select(choices, Max(), np.array([1000, 3000]), "choice", "permute-and-flip")
    assert recorder.calls[0].rates == (GRAIN,)
    assert recorder.calls[0].shape[1] == (1000, 3000)
    assert meter.rest(tally(HALVES)).tolist() == [10**9 - 1000, 10**9 - 3000]
    meter.select(
        Choices.of(tally(HALVES), [Candidates.splits(0, 1, 0, 6)]), Max(), Fraction(1, 2), "one", "exponential"
    )
    assert meter.rest(tally(HALVES)).tolist() == [5 * 10**8 - 1000, 10**9 - 3000]


def test_on_a_tree_every_group_has_a_leaf_of_its_own() -> None:
    meter, purse, _ = metered()
    twice = Choices.of(tally(HALVES), [Candidates.splits(0, 1, 0, 3), Candidates.splits(0, 1, 3, 6)])
    with pytest.raises(PrivacyError, match="an end of its own"):
        meter.select(twice, Max(), Fraction(1, 2), "choice", "permute-and-flip")
    assert purse.debits == []


def test_on_a_grid_all_pay_alike() -> None:
    meter, _, _ = metered()
    with pytest.raises(PrivacyError, match="only the ends of a tree"):
        meter.measure(Cells(Tally(Grid.whole((4, 6)), 2)), np.array([5]), "counts")


@pytest.mark.parametrize("spend", [[1.9], [True], ["5"]], ids=str)
def test_grains_are_whole(spend: list) -> None:
    meter, purse, _ = metered()
    with pytest.raises(PrivacyError, match="whole grains"):
        meter.measure(Cells(tally(ROOT)), np.array(spend), "counts")
    assert purse.debits == []


@pytest.mark.parametrize("partition", [ROOT, Grid.whole((4, 6))], ids=["tree", "grid"])
def test_what_was_measured_cannot_be_written_to(partition: Tree | Grid) -> None:
    meter, _, _ = metered()
    noisy = meter.measure(Cells(Tally(partition, 2)), Fraction(1, 2), "counts").noisy
    alike, exact = Noisy.even(noisy.counts, Fraction(1)), Noisy.exact(noisy.counts)
    for array in (noisy.counts, noisy.rate_of, alike.rate_of, exact.rate_of):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize("label", ["", 5, None, ("a",)], ids=str)
def test_a_round_has_a_name(label: object) -> None:
    meter, purse, _ = metered()
    with pytest.raises(PrivacyError, match="must have a name"):
        meter.measure(Cells(tally(ROOT)), Fraction(1, 2), label)
    assert purse.debits == []


@pytest.mark.parametrize("nodes", [[0], [1, 1], [2, 1], [7], [[1, 2]], [[1, 2], [1, 2]]])
def test_places_must_be_different_leaves(nodes: list) -> None:
    with pytest.raises(PrivacyError, match="different ends"):
        tally(HALVES, *nodes)


def test_a_price_that_overflows_is_refused_like_any_other() -> None:
    meter, purse, recorder = metered()
    meter.measure(Cells(tally(HALVES)), Fraction(1, 2), "half")
    with pytest.raises(BudgetError, match="must cost"):
        meter.measure(Cells(tally(HALVES, 1)), np.array([2**63 - 1]), "all there is")
    assert len(purse.debits) == len(recorder.calls) == 1
    assert meter.rest(tally(HALVES)).tolist() == [500_000_000] * 2


def test_every_place_must_have_a_price() -> None:
    meter, _, _ = metered()
    with pytest.raises(PrivacyError, match="must have a price"):
        meter.measure(Cells(tally(HALVES)), np.array([5]), "counts")


@pytest.mark.parametrize(
    "other", [Tally(Grid.whole((4, 6)), 1), Tally(Grid.whole((4, 5)), 2), Tally(Tree.whole((4,)), 2)]
)
def test_a_question_about_another_table_is_refused(other: Tally) -> None:
    meter, purse, _ = metered()
    with pytest.raises(PrivacyError, match="own attributes and classes"):
        meter.measure(Cells(other), Fraction(1, 2), "counts")
    assert purse.debits == []


def test_a_tree_that_was_tampered_with_has_no_past() -> None:
    charges = charge(Charges(), HALVES, n1=7)
    with pytest.raises(ValueError, match="the children of every node"):
        replace(HALVES, lows=HALVES.lows[[0, 2, 1]], highs=HALVES.highs[[0, 2, 1]])
    forged = replace(HALVES, lows=np.array([-1, 0, 1]), highs=np.array([-1, 1, 4]))
    assert not forged.refines(HALVES.stage)
    assert paid(charges, forged, 2) == 7 * GRAIN
    with pytest.raises(ValueError, match="read-only"):
        HALVES.lows[1] = 3


def test_places_cannot_be_changed_after_they_were_checked() -> None:
    nodes = np.array([1, 2])
    asked = Tally(HALVES, 2, (), nodes)
    nodes[:] = 1
    assert asked.nodes is not None
    assert asked.nodes.tolist() == [1, 2]
    for kept in (asked.nodes, asked.place_of_node, tally(HALVES).ends_asked):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 2
