"""What the door refuses before it opens, and that it says nothing when something fails behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from replay import Purse, Recorder
from sfumato.engines.local import MemoryEngine
from sfumato.errors import CountError, PrivacyError, ReleaseError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.models import model_type
from sfumato.privacy.choices import Choices
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import BalancedMax, Max
from sfumato.privacy.tally import Cells, Counts, Domain, Tally

SHAPE, CLASSES = (8,), 2
HALVES = Tree.whole(SHAPE).refine([0], [0], [0, 4, 8], [0, 3])
GRID = Tally(Grid.whole(SHAPE), CLASSES, (0,))
LEAF = Tally(HALVES, CLASSES, (), np.array([2]))
SPLITS = Choices.of(GRID, [Candidates.splits(0, 0, 0, 8)])

Ask = Callable[[Meter], object]


class Engine:
    """An engine that does something before it counts one record."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self._before = before
        self._engine = MemoryEngine([np.array([5], np.uint8)], np.zeros(1, np.uint8))

    def tally(self, tally: Tally) -> Counts:
        self._before()
        return self._engine.tally(tally)


def metered(engine: Engine, **options) -> tuple[Meter, Purse, Recorder]:
    purse, recorder = Purse(Fraction(1)), Recorder(0)
    return Meter(engine, purse, recorder, Domain(SHAPE, CLASSES), **options), purse, recorder


def test_a_round_asked_while_another_is_under_way_is_refused() -> None:
    """Both would be priced by what was paid before either: of a leaf, the second would be free."""
    looking, done = threading.Event(), threading.Event()

    def wait() -> None:
        looking.set()
        done.wait(10)

    meter, purse, recorder = metered(Engine(wait))
    first = threading.Thread(target=meter.measure, args=(Cells(LEAF), Fraction(1), "first"))
    first.start()
    looking.wait(10)
    try:
        with pytest.raises(PrivacyError, match="one after the other"):
            meter.measure(Cells(LEAF), Fraction(1), "second")
        with pytest.raises(PrivacyError, match="one after the other"):
            meter.select(SPLITS, Max(), Fraction(1), "choice", "permute-and-flip")
        with pytest.raises(PrivacyError, match="one after the other"):
            meter.lots(3)
    finally:
        done.set()
        first.join()
    assert len(purse.debits) == len(recorder.calls) == 1


def test_who_hears_of_a_debit_cannot_ask_in_between() -> None:
    meter, purse, recorder = metered(Engine(), watch=lambda _: meter.measure(Cells(LEAF), Fraction(1, 2), "inside"))
    with pytest.raises(PrivacyError, match="one after the other"):
        meter.measure(Cells(LEAF), Fraction(1, 2), "outside")
    assert (len(purse.debits), len(recorder.calls)) == (1, 0)


def measured(meter: Meter) -> object:
    return meter.measure(Cells(GRID), Fraction(1, 2), "counts")


def selected(meter: Meter) -> object:
    return meter.select(SPLITS, Max(), Fraction(1, 2), "choice", "permute-and-flip")


@pytest.mark.parametrize("error", [ValueError, IndexError, AssertionError, MemoryError, RecursionError])
@pytest.mark.parametrize("ask", [measured, selected])
def test_a_failure_after_the_debit_does_not_tell_what_was_seen(error: type[Exception], ask: Ask) -> None:
    fails = [True]

    def fail() -> None:
        if fails.pop():
            raise error("operands could not be broadcast together with shapes (0,) (7919,)")

    meter, purse, recorder = metered(Engine(fail))
    with pytest.raises(CountError) as told:
        ask(meter)
    assert not any(character.isdigit() for character in str(told.value))
    assert (told.value.__cause__, told.value.__context__) == (None, None)
    assert [debit.epsilon for debit in purse.debits] == [Fraction(1, 2)]
    fails.append(False)
    ask(meter)
    assert (len(purse.debits), len(recorder.calls)) == (2, 1), "a failure must not block the next round"


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (1, 3), (2, 2), (1, 2, 1)])
def test_weights_that_are_not_of_the_places_and_classes_are_refused(shape: tuple[int, ...]) -> None:
    """They would fail or not depending on who is counted, at any price."""
    meter, purse, _ = metered(Engine())
    with pytest.raises(PrivacyError, match="must fit the places and classes"):
        meter.select(SPLITS, BalancedMax(np.ones(shape, np.int64)), Fraction(1, 2), "choice", "permute-and-flip")
    assert purse.debits == []
    meter.select(SPLITS, BalancedMax(np.ones((1, 2), np.int64)), Fraction(1, 2), "choice", "permute-and-flip")


def test_marginals_of_everyone_are_not_paid_for_by_some_ends_of_a_tree() -> None:
    """Each half would pay epsilon for a count of all, the second one free of charge: twice epsilon for one."""
    meter, purse, recorder = metered(Engine())
    for end in HALVES.ends:
        tally = Tally(HALVES, CLASSES, (), np.array([end]), (Grid.finest(SHAPE),))
        with pytest.raises(PrivacyError, match="made up of what the tally counts"):
            meter.measure(Cells(tally, grid=Grid.whole(SHAPE)), Fraction(1), f"count {end}")
    assert (purse.debits, recorder.calls) == ([], [])


class LoudCells(Cells):
    """Cells that one record moves by a million."""

    def read(self, counts: Counts) -> np.ndarray:
        return super().read(counts) * 10**6


class CheapFraction(Fraction):
    """A price that is forgotten when it is added up."""

    def __radd__(self, other: Fraction) -> Fraction:
        return Fraction(other)


class PeepingGrid(Grid):
    """A grid that could read the rows that it locates."""


class PeepingTree(Tree):
    """A tree that could do so."""


class LooseTally(Tally):
    """A tally that could count places otherwise."""


class LooseChoices(Choices):
    """Choices that could check nothing."""


class LooseCandidates(Candidates):
    """Candidates that could change."""


@pytest.mark.parametrize(
    ("cells", "spend"),
    [
        (LoudCells(GRID), Fraction(1, 2)),
        (Cells(GRID), CheapFraction(1, 2)),
        (Cells(LEAF), CheapFraction(1, 2)),
        (Cells(LEAF), [1]),
        (Cells(LEAF), np.ma.array([1])),
        (Cells(GRID), 1),
        (Cells(Tally(PeepingGrid(((0, 8),)), CLASSES)), Fraction(1, 2)),
        (Cells(Tally(PeepingTree.whole(SHAPE), CLASSES)), Fraction(1, 2)),
        (Cells(LooseTally(Grid.whole(SHAPE), CLASSES)), Fraction(1, 2)),
    ],
)
def test_what_only_resembles_a_question_or_a_price_is_refused(cells: Cells, spend) -> None:
    meter, purse, recorder = metered(Engine())
    with pytest.raises(PrivacyError, match=r"our own|must be a fraction"):
        meter.measure(cells, spend, "counts")
    assert (purse.debits, recorder.calls) == ([], [])


@pytest.mark.parametrize(
    "choices",
    [
        LooseChoices(GRID, SPLITS.candidates, SPLITS.group_starts),
        Choices(
            GRID,
            LooseCandidates(
                *(getattr(SPLITS.candidates, name) for name in ("places", "attributes", "borders", "starts"))
            ),
            SPLITS.group_starts,
        ),
        Choices(LooseTally(Grid.whole(SHAPE), CLASSES, (0,)), SPLITS.candidates, SPLITS.group_starts),
    ],
)
def test_what_only_resembles_choices_is_refused(choices: Choices) -> None:
    meter, purse, recorder = metered(Engine())
    with pytest.raises(PrivacyError, match="our own"):
        meter.select(choices, Max(), Fraction(1, 2), "choice", "permute-and-flip")
    assert (purse.debits, recorder.calls) == ([], [])


def unread() -> None:
    raise AssertionError("it looked")


GROUPS = Cells(Tally(Grid.of_groups([[[0, 2], [1, 3, 4, 5, 6, 7]]]), CLASSES))
OTHER_TREE = Cells(Tally(Tree.whole(SHAPE).refine([0], [0], [0, 2, 8], [0, 3]), CLASSES))


@pytest.mark.parametrize(
    ("model", "cells"),
    [
        ("grid", Cells(LEAF)),
        ("grid", Cells(LEAF, "place")),
        ("coclusters", Cells(LEAF)),
        ("tree", GROUPS),
        ("tree with the paper's weights", GROUPS),
    ],
)
def test_what_a_model_could_not_read_is_refused_before_it_is_paid_for(model: str, cells: Cells) -> None:
    meter, purse, recorder = metered(Engine(unread), refuse_unreadable=model_type(model).reader().refuse)
    for spend in (Fraction(1, 2), Fraction(2)):
        with pytest.raises(ReleaseError, match="what the release's model can read"):
            meter.measure(cells, spend, "counts")
    assert (purse.debits, recorder.calls, meter.measured, meter.left) == ([], [], (), 1)


def test_a_tree_that_has_not_grown_from_the_one_asked_about_is_refused_unpaid() -> None:
    meter, purse, recorder = metered(Engine(), refuse_unreadable=model_type("tree").reader().refuse)
    meter.measure(Cells(LEAF), Fraction(1, 2), "right")
    for cells in (OTHER_TREE, Cells(Tally(Tree.whole(SHAPE), CLASSES))):
        with pytest.raises(ReleaseError, match="one tree that grows"):
            meter.measure(cells, Fraction(1, 4), "other")
    assert (len(purse.debits), len(recorder.calls), len(meter.measured)) == (1, 1, 1)
    finer = HALVES.refine([1], [0], [0, 1, 4], [0, 3])
    meter.measure(Cells(Tally(finer, CLASSES)), Fraction(1, 4), "finer")


def test_what_a_model_can_read_is_paid_for_and_kept() -> None:
    for model, cells in (("grid", GROUPS), ("grid", Cells(GRID)), ("tree", Cells(LEAF)), ("tree", Cells(GRID, 0))):
        meter, purse, _ = metered(Engine(), refuse_unreadable=model_type(model).reader().refuse)
        found = meter.measure(cells, Fraction(1, 2), "counts")
        assert meter.measured == (found,)
        assert len(purse.debits) == 1


def test_a_margin_of_part_of_the_table_is_refused_unpaid() -> None:
    """A release could not tell of which part it is."""
    meter, purse, recorder = metered(Engine(unread))
    for tally in (Tally(HALVES, CLASSES, (0,)), Tally(Grid.whole(SHAPE).refine(0, (4,)), CLASSES, (0,))):
        with pytest.raises(PrivacyError, match="a margin must be of the whole table"):
            meter.measure(Cells(tally, 0), Fraction(1, 2), "margin")
    assert (purse.debits, recorder.calls) == ([], [])
