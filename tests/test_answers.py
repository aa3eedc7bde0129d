"""What may be asked for, and what answers are like."""

from __future__ import annotations

import numpy as np
import pytest

from handmade import handmade_tree, release_over
from sfumato.errors import QueryError

HANDMADE = release_over(handmade_tree(), [[4, 1], [5, 2], [9, 3]], {2: [1, 9]})


@pytest.mark.parametrize("lone", ["a < 3", {"a": np.ones(6)}, {}])
def test_a_single_condition_is_no_list(lone: object) -> None:
    with pytest.raises(QueryError, match="conditions must be a list of them"):
        HANDMADE.count_many(lone)


def test_weights_may_be_lists_of_any_real_numbers() -> None:
    one = HANDMADE.count({"a": np.array([1.0, 1, 1, 0, 0, 0])})
    assert HANDMADE.count({"a": [1, 1, 1, 0, 0, 0]}) == one
    assert HANDMADE.count({"a": np.arange(6) < 3}) == one


def test_answers_are_sliced_into_answers() -> None:
    answers = HANDMADE.count_many(["a < 3", "b = x", "", "c = 1"])
    some = answers[1:3]
    assert some.conditions == ("b = x", "")
    assert list(some) == [answers[1], answers[2]]
    assert some.table.equals(answers.table.slice(1, 2))
    assert answers[np.int64(-1)] == answers[3]
    assert len(answers[9:]) == 0
    for wrong in ("a < 3", [1, 2], 1.0):
        with pytest.raises(TypeError):
            answers[wrong]
