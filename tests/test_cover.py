"""The minimum cover: exact, minimal, and the paper's examples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sfumato.models.estimates import minimum_cover

from sfumato.geometry.tree import Tree
from trees import random_trees

ABCD = Tree.whole((4,)).refine([0], [0], [0, 2, 4], [0, 3]).refine([1, 2], [0, 0], [0, 1, 2, 2, 3, 4], [0, 3, 6])
NAMES = {0: "ABCD", 1: "AB", 2: "CD", 3: "A", 4: "B", 5: "C", 6: "D"}


@pytest.mark.parametrize(
    ("asked", "cover"),
    [("ABCD", {"ABCD"}), ("BCD", {"B", "CD"}), ("AD", {"A", "D"}), ("BC", {"B", "C"}), ("AB", {"AB"}), ("", set())],
)
def test_example_3_and_figure_3(asked: str, cover: set[str]) -> None:
    flags = np.array([letter in asked for letter in "ABCD"])
    assert {NAMES[node] for node in minimum_cover(ABCD, flags)} == cover


def regions_below(tree: Tree, node: int) -> set[int]:
    found = set()
    for leaf in tree.ends.tolist():
        at = leaf
        while at not in (node, -1):
            at = int(tree.parents[at])
        if at == node:
            found.add(leaf)
    return found


@settings(deadline=None, max_examples=40)
@given(random_trees((3, 3), most_levels=3), st.data())
def test_a_cover_is_exact_and_no_smaller_one_exists(tree: Tree, data: st.DataObject) -> None:
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=tree.regions, max_size=tree.regions)))
    wanted = set(tree.ends[flags].tolist())
    cover = minimum_cover(tree, flags).tolist()
    below = {node: regions_below(tree, node) for node in range(len(tree))}
    assert set().union(*(below[node] for node in cover)) == wanted
    assert sum(len(below[node]) for node in cover) == len(wanted)
    usable = [node for node in below if below[node] <= wanted]
    for size in range(min(len(cover), 4)):
        for other in combinations(usable, size):
            assert set().union(*(below[node] for node in other)) != wanted


def test_the_groups_of_an_explanation_make_up_what_is_covered_wholly(adult) -> None:
    from sfumato import Account, CDiffGen, DiffGen

    account = Account("unused.ledger", adult.schema)
    for method in (CDiffGen(specializations=6), DiffGen(specializations=6)):
        release = account.publish(adult.table, method, "1", unsafe_seed=1)
        condition = "marital_status = 'Married' and income = '>50K'"
        answer, groups = release.count(condition), release.explain(condition)
        assert sum(groups["estimate"].to_pylist()) == pytest.approx(answer.value - answer.assumed, abs=1e-6)
        assert len(release.explain("")) == (1 if isinstance(method, CDiffGen) else release.groups)
