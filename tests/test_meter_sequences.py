"""Whatever is asked, in whatever order: nobody has paid more than the debits, and nobody is said to have more left."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mutants
from paths import boxes_of, paid_by_points, places_of, points_of, used
from replay import Purse, Recorder
from sfumato.engines import local, rounds
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, PrivacyError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy import choices as scoring
from sfumato.privacy.budget import GRAIN, grains_of
from sfumato.privacy.choices import Choices
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import CertaintyGain, Children, Discernibility, InfoGain, Max, Score
from sfumato.privacy.tally import Cells, Domain, Tally

SHAPE, CLASSES = (3, 5), 2
POINTS = points_of(SHAPE)
EPSILON = Fraction(1)
GRAINS = [1, 70_000, 10**7, 5 * 10**7, 2 * 10**8]
FRACTIONS = [Fraction(1, 7), Fraction(1, 30), Fraction(1, 1000)]
ONE_TREE = ["grow", "grow", "grow", "ask a grid", "ask a grid", "ask", "ask", "ask", "ask", "ask for the rest"]
ANYTHING = [
    *ONE_TREE,
    "grow an earlier stage",
    "plant",
    "ask an earlier stage",
    "ask an earlier stage",
    "ask an earlier stage",
]

by_chance = st.randoms(use_true_random=False)


def inside(rows: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Give the rows of a box."""
    within = (box[:, 0] <= rows[:, :-1]) & (rows[:, :-1] < box[:, 1])
    return rows[within.all(axis=1)]


def counted(rows: np.ndarray, cells: Cells) -> list[list[int]]:
    """Count cells by hand."""
    column, size = {"class": (2, CLASSES), "place": (2, CLASSES), 0: (0, SHAPE[0]), 1: (1, SHAPE[1])}[cells.by]
    found = [inside(rows, box)[:, column].tolist() for box in boxes_of(cells.tally)]
    by_code = [[codes.count(code) for code in range(size)] for codes in found]
    return [[sum(counts)] for counts in by_code] if cells.by == "place" else by_code


def scored(rows: np.ndarray, choices: Choices, score: Score) -> list[int]:
    """Score candidate after candidate by hand."""
    boxes, scores = boxes_of(choices.tally), []
    for entry in (choices.candidates[index] for index in range(len(choices.candidates))):
        low, *between, high = entry.borders
        for borders in [entry.borders] if between else [(low, split, high) for split in range(low + 1, high)]:
            box = boxes[entry.place].copy()
            counts = []
            for box[entry.attribute] in pairwise(borders):
                labels = inside(rows, box)[:, 2].tolist()
                counts.append([labels.count(label) for label in range(CLASSES)])
            leaves, place, fan = SHAPE[entry.attribute], np.array([entry.place]), np.array([0, len(counts)])
            scores += score.of(Children(np.array(counts), fan, np.diff(borders), leaves, place)).tolist()
    return scores


class Sequence:
    """A meter that is asked by chance, with naive books beside it: what every point of the domain has paid."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        codes = [[chance.randrange(size) for size in (*SHAPE, CLASSES)] for _ in range(chance.randrange(12))]
        self.rows = np.array(codes, np.int64).reshape(-1, 3)
        *columns, classes = self.rows.T.astype(np.uint8)
        self.purse, self.recorder = Purse(EPSILON), Recorder(0)
        self.meter = Meter(MemoryEngine(columns, classes), self.purse, self.recorder, Domain(SHAPE, CLASSES))
        self.trees = [Tree.whole(SHAPE)]
        self.paid = [Fraction(0)] * len(POINTS)

    def act(self, act: str) -> None:
        """Grow a tree, or plant one, or ask about one or a grid."""
        tree = self.chance.choice(self.trees) if "earlier" in act else self.trees[-1]
        if act == "plant":
            self.trees.append(Tree.whole(SHAPE))
        elif act.startswith("grow"):
            self.trees.append(self.grown(tree))
        elif act == "ask a grid":
            self.ask(Tally(Grid.whole(SHAPE).refine(1, self.chance.choice([(), (2,), (1, 3)])), CLASSES, (0, 1)))
        else:
            ends = sorted(self.chance.sample(tree.ends.tolist(), self.chance.randint(1, tree.regions)))
            self.ask(Tally(tree, CLASSES, (0, 1), np.array(ends)), rest=act == "ask for the rest")

    def grown(self, tree: Tree) -> Tree:
        """Split some ends that can be split."""
        ready = [node for node in tree.ends.tolist() if (np.diff(tree.boxes[node]) > 1).any()]
        nodes = sorted(self.chance.sample(ready, min(len(ready), self.chance.randint(1, 2))))
        along = [self.chance.choice(np.flatnonzero(np.diff(tree.boxes[node])[:, 0] > 1).tolist()) for node in nodes]
        ranges = [tree.boxes[node, attribute].tolist() for node, attribute in zip(nodes, along, strict=True)]
        borders = [border for lo, hi in ranges for border in (lo, self.chance.randrange(lo + 1, hi), hi)]
        return tree.refine(nodes, along, borders, np.arange(len(nodes) + 1) * 3) if nodes else tree

    def ask(self, tally: Tally, *, rest: bool = False) -> None:
        """Measure or choose, and write down what the mechanism used; a refusal must not look, and costs nothing."""
        candidates = [] if rest or self.chance.random() < 0.5 else list(self.candidates(tally))
        question = (
            Choices.by_place(tally, Candidates.join(candidates))
            if candidates
            else Cells(tally, self.chance.choice(["class", "place", 0, 1]))
        )
        places = question.places if candidates else np.arange(tally.places)
        spend = self.meter.rest(tally) if rest else self.spend(tally, len(places))
        rounds = len(self.purse.debits), len(self.recorder.calls)
        margin_of_a_part = not candidates and isinstance(question.by, int) and tally.partition.regions > 1
        refusal = PrivacyError if margin_of_a_part else BudgetError
        try:
            by_hand = self.answer(question, spend)
        except refusal:
            assert rounds == (len(self.purse.debits), len(self.recorder.calls)), "a refusal costs or looks"
            return
        assert not margin_of_a_part, "a margin of a part of the table was sold"
        call, debit = self.recorder.calls[-1], self.purse.debits[-1]
        assert call.given.tolist() == by_hand, "the engine does not count as one does by hand"
        assert used(debit, call) == self.amounts(tally, spend, len(places)), "the price asked is not the price used"
        costs = paid_by_points(tally, places, used(debit, call), POINTS)
        self.paid = [sum(pair) for pair in zip(self.paid, costs, strict=True)]

    def answer(self, question: Cells | Choices, spend: Fraction | np.ndarray) -> list:
        """Ask the meter, and give what the mechanism should have been given."""
        if isinstance(question, Cells):
            self.meter.measure(question, spend, "counts")
            return counted(self.rows, question)
        score = self.chance.choice([Max(), InfoGain(), Discernibility(), CertaintyGain()])
        selection = self.chance.choice(["permute-and-flip", "exponential"])
        self.meter.select(question, score, spend, "choice", selection)
        return scored(self.rows, question, score)

    def spend(self, tally: Tally, places: int) -> Fraction | np.ndarray:
        if isinstance(tally.partition, Tree) and self.chance.random() < 0.8:
            return np.array([self.chance.choice(GRAINS) for _ in range(places)])
        return self.chance.choice(FRACTIONS)

    def amounts(self, tally: Tally, spend: Fraction | np.ndarray, places: int) -> list[Fraction]:
        if not isinstance(spend, Fraction):
            return [int(grains) * GRAIN for grains in spend]
        return [grains_of(spend) * GRAIN if isinstance(tally.partition, Tree) else spend] * places

    def candidates(self, tally: Tally) -> Iterator[Candidates]:
        """Give some candidates to divide each place."""
        for place, box in enumerate(boxes_of(tally).tolist()):
            for attribute, (lo, hi) in enumerate(box):
                kind = self.chance.choice(["splits", "thirds", "none"])
                if kind == "splits" and hi - lo > 1:
                    yield Candidates.splits(place, attribute, lo, hi)
                elif kind == "thirds" and hi - lo > 2:
                    yield Candidates.one(place, attribute, (lo, lo + 1, hi - 1, hi))

    def check(self, *, exact: bool) -> None:
        """Compare the meter with the books; they agree to the grain unless the meter had to forget a tree."""
        debited = sum((debit.epsilon for debit in self.purse.debits), Fraction(0))
        assert max(self.paid) <= debited, "somebody has paid more than the debits"
        assert debited == self.meter._charges.most == EPSILON - self.meter.left, "the debits are not the most"
        assert debited <= EPSILON, "the debits are more than there is"
        assert not exact or max(self.paid) == debited, "nobody has paid as much as the debits"
        for tree in self.trees[-1:] if exact else self.trees:
            rest = self.meter.rest(Tally(tree, CLASSES))[places_of(tree.boxes[tree.ends], POINTS)].tolist()
            left = [grains_of(EPSILON - paid) for paid in self.paid]
            assert all(one <= other for one, other in zip(rest, left, strict=True)), "the rest is more than is left"
            assert not exact or rest == left, "the rest is less than is left"


def check_sequence(chance: Random, acts: list[str], *, exact: bool, rounds: int = 12) -> None:
    sequence = Sequence(chance)
    for _ in range(rounds):
        sequence.act(chance.choice(acts))
        sequence.check(exact=exact)


@settings(max_examples=25)
@given(chance=by_chance)
def test_nobody_pays_more_than_the_debits_whatever_is_asked(chance: Random) -> None:
    """Stale stages, sibling refinements, unrelated trees, some of the ends, grids in between."""
    check_sequence(chance, ANYTHING, exact=False)


@settings(max_examples=25)
@given(chance=by_chance)
def test_on_one_growing_tree_everyone_is_charged_to_the_grain(chance: Random) -> None:
    check_sequence(chance, ONE_TREE, exact=True)


@settings(max_examples=15)
@given(chance=by_chance, block=st.integers(1, 5), dense=st.sampled_from([0, 20]))
def test_sequences_are_counted_exactly_in_small_blocks(chance: Random, block: int, dense: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "DENSE", dense)
        for module, name in [(local, "BLOCK"), (scoring, "CHUNK")]:
            patch.setattr(module, name, block)
        check_sequence(chance, ANYTHING, exact=False)


def check_some_sequences() -> None:
    """Check what a planted mistake must not survive, on sequences that are always the same."""
    for seed in range(20):
        check_sequence(Random(seed), ANYTHING, exact=False)
        check_sequence(Random(seed), ONE_TREE, exact=True)


def test_an_honest_meter_passes() -> None:
    check_some_sequences()


@pytest.mark.parametrize(
    ("plant", "complaint"),
    [
        (mutants.children_inherit_nothing, "more than"),
        (mutants.multiples_are_reversed_against_charges, "not the price used"),
        (mutants.rounds_for_everyone_are_free_after_a_tree, "more than"),
        (mutants.an_unrelated_tree_has_paid_what_is_common, "more than"),
        (mutants.the_most_is_the_median, "more than"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_mistake_is_caught(plant: mutants.Plant, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=complaint):
        check_some_sequences()
