"""An epsilon is read exactly or refused, and a plan of impossible parts is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError
from sfumato.privacy.budget import FINEST, FINEST_PART, LARGEST, Schedule, epsilon_of

REFUSED = {
    "zero": "0",
    "zero with decimals": "0.000",
    "integer zero": 0,
    "float zero": 0.0,
    "fraction zero": Fraction(0),
    "negative": "-1",
    "negative float": -0.5,
    "negative fraction": Fraction(-1, 3),
    "not a number": "nan",
    "float not a number": float("nan"),
    "infinite": "inf",
    "float infinite": float("inf"),
    "float negative infinite": float("-inf"),
    "word": "abc",
    "divided by zero": "1/0",
    "empty": "",
    "blank": "   ",
    "two numbers": "1 2",
    "decimal comma": "0,5",
    "percent": "50%",
    "hexadecimal": "0x1",
    "nothing": None,
    "truth": True,
    "list": [1],
    "too fine a decimal": "0.0000001",
    "too fine a fraction": f"1/{FINEST + 1}",
    "too fine a float": 1 / 3,
    "tiny": "1e-400",
    "too large": LARGEST + 1,
    "just too large": Fraction(LARGEST) + Fraction(1, 1000),
    "very large": "1e400",
    "endless digits": "9" * 5000,
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_epsilon_is_refused(value) -> None:
    with pytest.raises(BudgetError, match="epsilon") as caught:
        epsilon_of(value)
    assert len(caught.value.problem) < 200
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("value", "epsilon"),
    [
        ("1", Fraction(1)),
        (" 0.5 ", Fraction(1, 2)),
        ("1/3", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        (2, Fraction(2)),
        (0.1, Fraction(1, 10)),
        (1.1, Fraction(11, 10)),
        (Decimal("0.7"), Fraction(7, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (LARGEST, Fraction(LARGEST)),
        (f"1/{FINEST}", Fraction(1, FINEST)),
    ],
    ids=str,
)
def test_an_epsilon_is_read_exactly(value, epsilon: Fraction) -> None:
    assert epsilon_of(value) == epsilon


@settings(derandomize=True, deadline=None, database=None)
@given(st.decimals(min_value="0.001", max_value=LARGEST, places=3))
def test_a_float_means_the_decimal_it_prints_as(decimal: Decimal) -> None:
    assert epsilon_of(float(decimal)) == epsilon_of(str(decimal)) == Fraction(decimal)


@settings(derandomize=True, deadline=None, database=None)
@given(st.fractions(min_value=Fraction(1, FINEST), max_value=LARGEST, max_denominator=FINEST))
def test_an_epsilon_survives_being_written_and_read(epsilon: Fraction) -> None:
    assert epsilon_of(str(epsilon)) == epsilon


@pytest.mark.parametrize(
    "part",
    [Fraction(0), Fraction(-1, 2), Fraction(1, FINEST_PART + 1)],
    ids=["zero", "negative", "too fine"],
)
def test_a_schedule_with_an_impossible_part_is_refused(part: Fraction) -> None:
    with pytest.raises(BudgetError, match="split"):
        Schedule({"count": Fraction(1, 2), "split": part})


def test_a_part_that_is_too_fine_is_rounded_down_to_what_can_be_paid() -> None:
    part = Schedule({"count": Fraction(1, 3) - Fraction(1, 10**15)})["count"]
    assert part.denominator <= FINEST_PART
    assert Fraction(1, 3) - Fraction(1, 10**8) < part < Fraction(1, 3)


def test_a_schedule_cannot_be_changed_afterwards() -> None:
    with pytest.raises(TypeError):
        Schedule({"count": Fraction(1, 2)}).parts["count"] = Fraction(5)  # type: ignore[index]


def test_the_finest_part_is_planned() -> None:
    assert Schedule({"count": Fraction(1, FINEST_PART)})["count"] == Fraction(1, FINEST_PART)


def test_the_parts_sum_to_the_whole_exactly() -> None:
    assert Schedule({f"round {number}": Fraction(1, 7) for number in range(7)}).total == 1


def test_a_schedule_keeps_the_order_of_its_rounds() -> None:
    assert list(Schedule({"b": Fraction(1), "a": Fraction(1)}).parts) == ["b", "a"]


def test_an_unplanned_round_has_no_part() -> None:
    with pytest.raises(KeyError):
        Schedule({"count": Fraction(1)})["split"]
