"""Choices: what they count, and the groups they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.counts.choices import Candidates, Choices
from sfumato.counts.memory import MemoryEngine
from sfumato.counts.tally import Cells, Tally
from sfumato.errors import PrivacyError
from sfumato.partition import Grid

WHOLE = Tally(Grid.whole((4, 47)), 2, (0, 1))
HALVES = Tally(Grid.whole((4, 47)).refine(0, (2,)), 2, (0, 1))


def test_children_of_the_papers_first_specializations(paper_engine: MemoryEngine) -> None:
    asked = Choices(WHOLE, (Candidates.join([Candidates.one(0, 0, (0, 2, 4)), Candidates.one(0, 1, (0, 22, 47))]),))
    children = asked.child_counts(paper_engine.tally(WHOLE))
    assert children.tolist() == [[2, 2], [2, 2], [4, 3], [0, 1]]
    assert asked.child_starts.tolist() == [0, 2, 4]


def test_children_inside_regions(paper_engine: MemoryEngine) -> None:
    asked = Choices(HALVES, (Candidates.splits(0, 1, 19, 22), Candidates.splits(1, 1, 19, 22)))
    professionals, artists = asked.child_counts(paper_engine.tally(HALVES)).reshape(2, 2, 2, 2).tolist()
    assert professionals == [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]
    assert artists == [[[0, 1], [0, 0]], [[0, 1], [0, 0]]]


def test_splits_are_all_points_of_the_declared_range() -> None:
    ways = Candidates.splits(0, 1, 3, 7)
    assert [ways[index].borders for index in range(len(ways))] == [(3, 4, 7), (3, 5, 7), (3, 6, 7)]


def test_where_keeps_whole_candidates() -> None:
    ways = Candidates.join([Candidates.one(0, 0, (0, 1, 2, 4)), Candidates.splits(0, 1, 0, 3)])
    kept = ways.where(np.array([True, False, True]))
    assert [kept[index].borders for index in range(2)] == [(0, 1, 2, 4), (0, 2, 3)]


@pytest.mark.parametrize(
    "groups",
    [
        (Candidates.splits(0, 1, 0, 22), Candidates.splits(0, 1, 22, 47)),
        (Candidates.splits(0, 1, 0, 47), Candidates.splits(1, 0, 0, 4)),
        (
            Candidates.join([Candidates.splits(0, 1, 0, 9), Candidates.splits(1, 1, 0, 9)]),
            Candidates.splits(0, 1, 9, 12),
        ),
    ],
)
def test_disjoint_groups_pass(groups: tuple[Candidates, ...]) -> None:
    Choices(HALVES, groups)


@pytest.mark.parametrize(
    "groups",
    [
        (Candidates.splits(0, 1, 0, 23), Candidates.splits(0, 1, 22, 47)),
        (Candidates.splits(0, 1, 0, 47), Candidates.splits(0, 0, 0, 4)),
        (Candidates.splits(0, 1, 0, 10), Candidates.splits(0, 1, 0, 10)),
        (
            Candidates.join([Candidates.splits(0, 1, 0, 9), Candidates.splits(0, 0, 0, 4)]),
            Candidates.splits(0, 1, 9, 12),
        ),
        (Candidates.splits(1, 1, 0, 4), Candidates.splits(0, 1, 2, 5), Candidates.splits(1, 1, 3, 5)),
    ],
)
def test_groups_that_share_records_are_refused(groups: tuple[Candidates, ...]) -> None:
    with pytest.raises(PrivacyError, match="different records"):
        Choices(HALVES, groups)


@pytest.mark.parametrize(
    "group",
    [
        Candidates.one(0, 0, (0, 2, 5)),
        Candidates.one(0, 0, (-1, 2, 4)),
        Candidates.one(0, 0, (0, 2, 2)),
        Candidates.one(0, 0, (0, 4)),
        Candidates.one(1, 0, (0, 2, 4)),
    ],
)
def test_candidates_that_the_tally_does_not_count_are_refused(group: Candidates) -> None:
    with pytest.raises(PrivacyError, match="a range that the tally counts"):
        Choices(WHOLE, (group,))


def test_an_attribute_that_was_not_counted_is_refused() -> None:
    only_first = Tally(Grid.whole((4, 47)), 2, (0,))
    with pytest.raises(PrivacyError, match="a range that the tally counts"):
        Choices(only_first, (Candidates.splits(0, 1, 0, 5),))
    with pytest.raises(PrivacyError, match="an attribute that the tally counts"):
        Cells(only_first, 1)


@pytest.mark.parametrize("groups", [(), (Candidates.join([]),)])
def test_empty_groups_are_refused(groups: tuple[Candidates, ...]) -> None:
    with pytest.raises(PrivacyError, match="must have a candidate"):
        Choices(WHOLE, groups)
