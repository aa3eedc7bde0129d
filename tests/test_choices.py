"""Choices: what they count, and the groups they refuse."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.local import MemoryEngine
from sfumato.errors import PrivacyError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.choices import Choices, score_choices
from sfumato.privacy.scores import SCORES, Children, Max, PenaltyLeft
from sfumato.privacy.tally import Cells, Tally

WHOLE = Tally(Grid.whole((4, 47)), 2, (0, 1))
HALVES = Tally(Grid.whole((4, 47)).refine(0, (2,)), 2, (0, 1))


def test_children_of_the_papers_first_specializations(paper_engine: MemoryEngine) -> None:
    asked = Choices.of(WHOLE, [Candidates.join([Candidates.one(0, 0, (0, 2, 4)), Candidates.one(0, 1, (0, 22, 47))])])
    scored = score_choices(asked, paper_engine.tally(WHOLE), Max(), np.ones(1, np.int64))
    assert (scored.scores.tolist(), scored.copies.tolist(), scored.starts.tolist()) == ([4, 5], [1, 1], [0, 2])


def test_children_inside_regions(paper_engine: MemoryEngine) -> None:
    asked = Choices.of(HALVES, [Candidates.splits(0, 1, 19, 22), Candidates.splits(1, 1, 19, 22)])
    scored = score_choices(asked, paper_engine.tally(HALVES), PenaltyLeft(), np.ones(2, np.int64))
    narrow, wide = 0, 2 * 2**16 // 47
    assert np.repeat(scored.scores, scored.copies).tolist() == [-wide, -wide, -narrow, -wide]


def test_splits_are_all_points_of_the_declared_range() -> None:
    candidates = Candidates.splits(0, 1, 3, 7)
    assert candidates.each.tolist() == [3]
    every = candidates.pick(np.zeros(3, np.int64), np.arange(3))
    assert [every[index].borders for index in range(3)] == [(3, 4, 7), (3, 5, 7), (3, 6, 7)]


def test_candidates_are_taken_whole() -> None:
    candidates = Candidates.join(
        [Candidates.one(0, 0, (0, 1, 2, 4)), Candidates.splits(0, 1, 0, 3), Candidates.one(0, 1, (0, 9, 12))]
    )
    kept = candidates.take(np.array([True, False, True]))
    assert [kept[index].borders for index in range(2)] == [(0, 1, 2, 4), (0, 9, 12)]
    assert candidates.take(np.array([2, 1]))[1].borders == (0, 3)


def test_picks_count_the_candidates_of_their_group() -> None:
    asked = Choices.of(
        HALVES,
        [
            Candidates.join([Candidates.one(0, 0, (0, 1, 2)), Candidates.splits(0, 1, 0, 5)]),
            Candidates.splits(1, 1, 7, 9),
        ],
    )
    assert asked.number == 1 + 4 + 1
    first, last = asked.chosen(np.array([0, 0])), asked.chosen(np.array([4, 0]))
    assert [first[0].borders, first[1].borders] == [(0, 1, 2), (7, 8, 9)]
    assert [last[0].borders, last[1].borders] == [(0, 4, 5), (7, 8, 9)]


TREE = Tree.whole((4, 9)).refine([0], [1], [0, 4, 9], [0, 3])
every_candidate = st.one_of(
    st.just(Candidates.one(0, 0, (0, 2, 4))),
    st.integers(0, 2).flatmap(lambda lo: st.integers(lo + 2, 4).map(lambda hi: Candidates.splits(0, 1, lo, hi))),
    st.integers(0, 2).map(lambda lo: Candidates.splits(0, 0, lo, 4)),
)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 2)), max_size=30),
    candidates=st.lists(every_candidate, min_size=1, max_size=4),
    name=st.sampled_from(sorted(SCORES.keys() - {"balanced"})),
)
def test_runs_are_the_scores_of_every_single_candidate(rows: list, candidates: list[Candidates], name: str) -> None:
    table = np.array(rows, np.uint8).reshape(len(rows), 3)
    tally = Tally(TREE, 3, (0, 1))
    counts = MemoryEngine([table[:, 0], table[:, 1]], table[:, 2]).tally(tally)
    asked, score = Choices.of(tally, [Candidates.join(candidates)]), SCORES[name]()
    scored = score_choices(asked, counts, score, np.ones(1, np.int64))
    assert scored.group_ends[-1] == asked.number
    expected = []
    for pick in range(asked.number):
        one = asked.chosen(np.array([pick]))[0]
        inside = table[table[:, 1] < 4]
        ranges = list(pairwise(one.borders))
        children = [
            np.bincount(inside[(inside[:, one.attribute] >= lo) & (inside[:, one.attribute] < hi), 2], minlength=3)
            for lo, hi in ranges
        ]
        widths = np.array([hi - lo for lo, hi in ranges])
        expected.append(
            score.of(
                Children(
                    np.array(children),
                    np.array([0, len(ranges)]),
                    widths,
                    TREE.shape[one.attribute],
                    np.zeros(1, np.int64),
                )
            )[0]
        )
    assert np.repeat(scored.scores, scored.copies).tolist() == expected


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
    Choices.of(HALVES, groups)


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
        Choices.of(HALVES, groups)


@pytest.mark.parametrize(
    "group",
    [
        Candidates.one(0, 0, (0, 2, 5)),
        Candidates.one(0, 0, (-1, 2, 4)),
        Candidates.one(0, 0, (0, 2, 2)),
        Candidates.one(1, 0, (0, 2, 4)),
    ],
)
def test_candidates_that_the_tally_does_not_count_are_refused(group: Candidates) -> None:
    with pytest.raises(PrivacyError, match="a range that the tally counts"):
        Choices.of(WHOLE, [group])


def test_an_attribute_that_was_not_counted_is_refused() -> None:
    only_first = Tally(Grid.whole((4, 47)), 2, (0,))
    with pytest.raises(PrivacyError, match="a range that the tally counts"):
        Choices.of(only_first, [Candidates.splits(0, 1, 0, 5)])
    with pytest.raises(PrivacyError, match="an attribute that the tally counts"):
        Cells(only_first, 1)
    for absent in (-1, 2):
        with pytest.raises(PrivacyError, match="own attributes"):
            Tally(Grid.whole((4, 47)), 2, (absent,))


@pytest.mark.parametrize("by", [np.int64(0), 0.0, "leaf", None])
def test_what_names_no_cells_is_not_read_as_places(by) -> None:
    with pytest.raises(PrivacyError, match="by class, by place or of an attribute"):
        Cells(WHOLE, by)


@pytest.mark.parametrize("groups", [(), (Candidates.join([]),), (Candidates.splits(0, 0, 1, 2),)])
def test_empty_groups_are_refused(groups: tuple[Candidates, ...]) -> None:
    with pytest.raises(PrivacyError, match="must have a candidate"):
        Choices.of(WHOLE, groups)


@pytest.mark.parametrize(
    ("borders", "starts", "groups"),
    [
        ([0, 2, 4, 3, 0, 1], [0, 3, 4, 6], [0, 2, 3]),
        ([0, 2, 4, 0, 1], [0, 3, 3, 5], [0, 2, 3]),
        ([0, 2, 4, 0, 2, 0, 2], [0, 3, 5], [0, 2, 3]),
        ([0, 2, 4, 0, 2, 0, 2], [0, 3, 5, 7], [0, 2]),
        ([0, 2, 4, 0, 2, 0, 2], [0, 3, 5, 7], [1, 2, 3]),
        ([0, 2, 4, 0, 2, 0, 2, 9], [0, 3, 5, 7], [0, 2, 3]),
    ],
)
def test_candidates_without_borders_and_groups_without_candidates_are_refused(
    borders: list, starts: list, groups: list
) -> None:
    """A candidate of one border has no children: its score would be that of its neighbour, in another place."""
    candidates = Candidates(np.array([0, 0, 1]), np.zeros(3, np.int64), np.array(borders), np.array(starts))
    with pytest.raises(PrivacyError, match="two borders or more"):
        Choices(HALVES, candidates, np.array(groups))


def test_small_integers_do_not_wrap() -> None:
    """Place 4 of 64 leaves begins at 256, which is 0 in one byte: the records of place 0 would be scored twice."""
    tally = Tally(Grid.whole((5, 64)).refine(0, range(1, 5)), np.int8(2), (np.int8(1),))
    candidates = Candidates(
        np.array([0, 4], np.uint8), np.ones(2, np.int8), np.array([0, 64, 0, 64], np.uint8), np.arange(3) * 2
    )
    asked = Choices.by_place(tally, candidates)
    engine = MemoryEngine([np.zeros(1, np.uint8), np.full(1, 10, np.uint8)], np.zeros(1, np.uint8))
    scored = score_choices(asked, engine.tally(tally), Max(), np.ones(2, np.int64))
    assert scored.scores.tolist() == [1, 1, 0]
    assert (type(tally.classes), type(tally.attributes[0])) == (int, int)


@pytest.mark.parametrize("name", ["places", "attributes", "borders", "starts", "groups"])
def test_choices_stay_as_they_were_checked(name: str) -> None:
    given = {
        "places": np.array([0, 0]),
        "attributes": np.array([1, 1]),
        "borders": np.array([0, 4, 4, 8]),
        "starts": np.array([0, 2, 4]),
        "groups": np.array([0, 1, 2]),
    }
    *arrays, groups = (array[:] for array in given.values())
    asked = Choices(HALVES, Candidates(*arrays), groups)
    kept = asked.group_starts if name == "groups" else getattr(asked.candidates, name)
    before = kept.tolist()
    given[name][:] = 9
    assert kept.tolist() == before
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_what_is_worked_out_about_choices_cannot_be_changed() -> None:
    asked = Choices.of(HALVES, [Candidates.splits(0, 1, 0, 4), Candidates.splits(1, 1, 4, 8)])
    candidates = asked.candidates
    for kept in (candidates.lows, candidates.highs, candidates.is_split, candidates.each, asked.candidate_starts):
        assert not kept.flags.writeable


@pytest.mark.parametrize("flat", ["places", "groups"])
def test_tables_of_numbers_are_no_lists_of_candidates(flat: str) -> None:
    places, groups = np.array([0, 1]), np.array([0, 1, 2])
    places, groups = (places[:, None], groups) if flat == "places" else (places, groups[:, None])
    candidates = Candidates(places, np.ones(2, np.int64), np.array([0, 4, 4, 8]), np.array([0, 2, 4]))
    with pytest.raises(PrivacyError, match="two borders or more"):
        Choices(HALVES, candidates, groups)
