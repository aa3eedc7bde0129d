"""Top-down specialization: k holds, cuts are the same for everyone, and its incremental books agree with a recount."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from open_tables import SMALL, Rows, drafted, exact, groups_by_hand, rows
from sfumato import TDS
from sfumato.errors import MethodError
from sfumato.without_epsilon.tds import TopDown


@settings(max_examples=40)
@given(rows(), st.integers(2, 12))
def test_every_group_has_k_records(table: Rows, k: int) -> None:
    if len(table) < k:
        return
    draft = drafted(TDS(k=k), table)
    groups = groups_by_hand(draft, table)
    assert all(group.total() >= k for group in groups)
    assert sum(group.total() for group in groups) == len(table) == draft.final.counts.sum()


def group_sizes(cuts: tuple[tuple[int, ...], ...], table: Rows) -> Counter[tuple[int, ...]]:
    parts = [np.searchsorted(cut, [row[at] for row in table], side="right") for at, cut in enumerate(cuts)]
    return Counter(zip(*(part.tolist() for part in parts), strict=True))


def entropy(table: Rows) -> float:
    shares = [many / len(table) for many in Counter(row[-1] for row in table).values()]
    return -sum(share * math.log2(share) for share in shares)


def best_by_hand(cuts: list[tuple[int, ...]], table: Rows, k: int) -> float | None:
    """Give the best score of all valid and beneficial specializations, everything counted again."""
    now, scores = min(group_sizes(tuple(cuts), table).values()), []
    for at, column in enumerate(SMALL.predictors.values()):
        for low, high in pairwise(cuts[at]):
            inside = [row for row in table if low <= row[at] < high]
            if len({row[-1] for row in inside}) < 2:
                continue
            divided = [(low, cut, high) for cut in range(low + 1, high)] if column.kind == "numeric" else []
            if column.kind != "numeric" and column.children(low, high) is not None:
                divided = [column.children(low, high)]
            gains = {}
            for borders in divided:
                parts = [[row for row in inside if lo <= row[at] < hi] for lo, hi in pairwise(borders)]
                gains[borders] = entropy(inside) - sum(
                    len(part) / len(inside) * entropy(part) for part in parts if part
                )
            if not gains:
                continue
            best = max(gains, key=lambda one: (round(gains[one], 9), -one[1]))
            finer = tuple(sorted({*cuts[at], *best}))
            then = min(group_sizes((*cuts[:at], finer, *cuts[at + 1 :]), table).values())
            if then >= k:
                scores.append(gains[best] / (now - then + 1))
    return max(scores, default=None)


@settings(max_examples=40)
@given(rows(40), st.integers(2, 5))
def test_every_step_takes_the_best_information_gain_per_anonymity_loss(table: Rows, k: int) -> None:
    if len(table) < k:
        return
    growth = TopDown(counts=exact(table), schema=SMALL, k=k)
    growth.run()
    cuts = [(0, leaves) for leaves in SMALL.shape]
    for step in growth.steps:
        best = best_by_hand(cuts, table, k)
        before = min(group_sizes(tuple(cuts), table).values())
        inside = [row for row in table if step.borders[0] <= row[step.attribute] < step.borders[-1]]
        parts = [[row for row in inside if lo <= row[step.attribute] < hi] for lo, hi in pairwise(step.borders)]
        gain = entropy(inside) - sum(len(part) / len(inside) * entropy(part) for part in parts if part)
        cuts[step.attribute] = tuple(sorted({*cuts[step.attribute], *step.borders}))
        after = min(group_sizes(tuple(cuts), table).values())
        assert gain / (before - after + 1) == pytest.approx(best, abs=1e-9)
    assert best_by_hand(cuts, table, k) is None
    assert tuple(cuts) == growth.grid.cuts
    assert growth.anonymity == min(group_sizes(tuple(cuts), table).values())


def test_groups_without_people_stay_undivided() -> None:
    table = [(0, 0, 0, 0)] * 4 + [(8, 4, 2, 1)] * 4
    draft = drafted(TDS(k=4), table)
    assert [group.total() for group in groups_by_hand(draft, table)] == [4, 4]
    assert draft.structure.regions < 10


@pytest.mark.parametrize("schema", [SMALL.only({"a", "b"}), SMALL.only({"class"})], ids=["no class", "class alone"])
def test_a_class_and_something_else_are_needed(schema) -> None:
    with pytest.raises(MethodError, match="must have a"):
        TDS(k=5).narrowed(schema)
