"""No record moves a score further than declared, and the same property refutes a wrong declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from sfumato.errors import MethodError, PrivacyError
from sfumato.privacy.scores import (
    SCORES,
    Balance,
    BalancedMax,
    Beyond,
    CertaintyGain,
    Children,
    Deviation,
    Discernibility,
    Gini,
    InfoGain,
    Max,
    PenaltyLeft,
    Score,
    WeightedGain,
)

BALANCED = BalancedMax(np.array([[300, 1024, 0, 77]]))
ROWS = [1, 2, 3, 10, 1000, 10**6, 10**9]
ALL = [
    Max(),
    BALANCED,
    InfoGain(),
    Deviation(),
    Gini(),
    Discernibility(),
    Balance(),
    CertaintyGain(),
    PenaltyLeft(),
    Beyond(rows=7),
    Beyond(rows=100, upper=False),
    *(WeightedGain(rows=rows) for rows in ROWS),
]
NAMES = [f"{score.name}-{getattr(score, 'rows', '')}".rstrip("-") for score in ALL]
every_score = pytest.mark.parametrize("score", ALL, ids=NAMES)
thorough = settings(derandomize=True, deadline=None, max_examples=100, database=None)
searching = settings(thorough, max_examples=3000, phases=(Phase.generate,))


@dataclass(frozen=True)
class Arrival:
    """The class counts of one candidate's children, and the record that joins them."""

    children: tuple[tuple[int, ...], ...]
    child: int
    label: int

    def moved(self, score: Score) -> int:
        """Give by how many units the record moves the score."""
        before = np.array(self.children, np.int64)
        after = before.copy()
        after[self.child, self.label] += 1
        return of_one(score, after) - of_one(score, before)


def of_one(score: Score, children: np.ndarray) -> int:
    """Score a single candidate."""
    return int(fitted(score, children.shape[1]).of(divided(children, np.array([0, len(children)])))[0])


def fitted(score: Score, classes: int) -> Score:
    """Give a score with as many weights as there are classes."""
    return replace(score, weights=score.weights[:, :classes]) if isinstance(score, BalancedMax) else score


def divided(counts: np.ndarray, starts: np.ndarray) -> Children:
    """Give children of all kinds of widths, single leaves among them."""
    widths = np.concatenate([np.resize([1, 60, 2, 9], number) for number in np.diff(starts)])
    return Children(counts, starts, widths, 80, np.zeros(len(starts) - 1, np.int64))


def counts(rows: int) -> st.SearchStrategy[int]:
    """Give counts that are none, few, around `rows`, or far beyond it."""
    return st.one_of(
        st.just(0),
        st.integers(0, 4),
        st.integers(0, 10_000),
        st.integers(max(rows - 3, 0), rows + 3),
        st.integers(rows // 2, 3 * rows),
        st.integers(0, 10**12),
    )


@st.composite
def arrivals(draw: st.DrawFn, rows: int = 1000) -> Arrival:
    """Give a candidate and a record that falls into one of its children."""
    classes, number = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    row = st.tuples(*[counts(rows)] * classes)
    children = draw(st.tuples(*[row] * number))
    return Arrival(children, draw(st.integers(0, number - 1)), draw(st.integers(0, classes - 1)))


def units(score: Score, classes: int) -> Fraction:
    """Give the declared sensitivity in units of the score."""
    return score.sensitivity(classes) / score.unit


def within(score: Score, arrival: Arrival, share: Fraction = Fraction(1)) -> bool:
    """Whether the record moves the score by at most this share of the declared sensitivity."""
    return abs(arrival.moved(score)) <= share * units(score, len(arrival.children[0]))


def holds_for_all(score: Score, law) -> bool:
    """Whether neither a search nor the smallest telling tables break the law."""
    two = Arrival(((1, 0), (0, 0)), 1, 1)
    if not law(two):
        return False
    try:
        find(arrivals(getattr(score, "rows", 1000)), lambda arrival: not law(arrival), settings=searching)
    except NoSuchExample:
        return True
    return False


@every_score
def test_no_record_moves_a_score_beyond_its_sensitivity(score: Score) -> None:
    @thorough
    @given(arrivals(getattr(score, "rows", 1000)))
    def law(arrival: Arrival) -> None:
        assert within(score, arrival)

    law()


@pytest.mark.slow
@every_score
def test_half_the_sensitivity_is_refuted(score: Score) -> None:
    assert not holds_for_all(score, lambda arrival: within(score, arrival, Fraction(1, 2)))


@pytest.mark.parametrize("score", [score for score in ALL if score.monotone], ids=lambda score: score.name)
def test_a_record_moves_a_monotone_score_in_one_direction(score: Score) -> None:
    @thorough
    @given(arrivals())
    def law(arrival: Arrival) -> None:
        assert arrival.moved(score) * DIRECTION.get(score.name, 1) >= 0

    law()


DIRECTION = {"gini": -1, "ncp-left": -1}
"""What a record does to scores that are penalties."""


@pytest.mark.parametrize("score", [score for score in ALL if not score.monotone], ids=lambda score: repr(score))
def test_a_claim_to_be_monotone_is_refuted(score: Score) -> None:
    assert not holds_for_all(score, lambda arrival: arrival.moved(score) >= 0)
    assert not holds_for_all(score, lambda arrival: arrival.moved(score) <= 0)


@every_score
def test_a_record_of_another_candidate_changes_nothing(score: Score) -> None:
    @thorough
    @given(arrivals(getattr(score, "rows", 1000)), st.integers(0, 10**6))
    def law(arrival: Arrival, other: int) -> None:
        here = np.array(arrival.children, np.int64)
        there = np.full((2, here.shape[1]), other)
        starts = np.array([0, len(here), len(here) + 2])
        before = fitted(score, here.shape[1]).of(divided(np.concatenate((here, there)), starts))
        there[1, 0] += 1
        after = fitted(score, here.shape[1]).of(divided(np.concatenate((here, there)), starts))
        assert before[0] == after[0] == of_one(score, here)
        assert after[1] == of_one(score, there)

    law()


@every_score
def test_scores_are_integers_of_the_grid(score: Score) -> None:
    children = np.array([[3, 0], [1, 5], [0, 0], [7, 7]])
    scores = fitted(score, 2).of(divided(children, np.array([0, 2, 3, 4])))
    assert scores.dtype == np.int64
    assert scores.shape == (3,)


@every_score
@pytest.mark.parametrize("classes", [1, 2, 3, 7, 16, 1000])
def test_the_sensitivity_is_a_whole_number_of_units(score: Score, classes: int) -> None:
    assert units(score, classes).denominator == 1
    assert score.sensitivity(classes) > 0


@pytest.mark.parametrize("score", [InfoGain(), WeightedGain()], ids=lambda score: score.name)
def test_an_empty_candidate_gains_nothing(score: Score) -> None:
    assert of_one(score, np.zeros((3, 2), np.int64)) == 0


def test_an_empty_candidate_has_no_majority() -> None:
    assert of_one(Max(), np.zeros((3, 2), np.int64)) == 0


def test_scores_are_known_by_their_names() -> None:
    assert {name: score.name for name, score in SCORES.items()} == {name: name for name in SCORES}


PROFESSIONAL_ARTIST = np.array([[2, 2], [2, 2]])
"""Table 1.a of the DiffGen paper: classes Y and N of the two kinds of jobs."""
BELOW_FORTY = np.array([[4, 3], [0, 1]])
"""Table 1.a: classes Y and N of ages below 40 and from 40 on."""


def test_the_majorities_of_the_papers_table() -> None:
    assert of_one(Max(), PROFESSIONAL_ARTIST) == 2 + 2
    assert of_one(Max(), BELOW_FORTY) == 4 + 1


def test_the_gains_of_the_papers_table() -> None:
    left = -(4 / 7) * math.log2(4 / 7) - (3 / 7) * math.log2(3 / 7)
    assert of_one(InfoGain(), PROFESSIONAL_ARTIST) == 0
    assert of_one(InfoGain(), BELOW_FORTY) == round((1 - 7 / 8 * left) * 2**12) == 565


def test_the_weighted_gains_of_the_papers_table() -> None:
    assert of_one(WeightedGain(), PROFESSIONAL_ARTIST) == 0
    assert abs(of_one(WeightedGain(), BELOW_FORTY) - 8 * 144625 / 2**12) <= 4


def test_the_impurities_of_the_papers_table() -> None:
    assert of_one(Gini(), PROFESSIONAL_ARTIST) == -4 * 2**10
    assert of_one(Gini(), BELOW_FORTY) == math.floor((25 / 7 - 7) * 2**10)
    assert of_one(Gini(), np.zeros((3, 2), np.int64)) == 0


def test_the_sensitivity_of_the_impurity_is_approached() -> None:
    """A record of the other class in a large pure child costs almost 2."""
    arrival = Arrival(((10**6, 0),), 0, 1)
    assert units(Gini(), 2) - 3 <= -arrival.moved(Gini()) <= units(Gini(), 2)


def test_a_split_at_the_median_is_balanced() -> None:
    assert of_one(Balance(), np.array([[3, 1], [2, 2]])) == 0
    assert of_one(Balance(), np.array([[3, 1], [0, 0]])) == -4
    assert of_one(Balance(), np.array([[3, 1], [5, 0], [1, 0]])) == -4


def test_candidates_are_scored_side_by_side() -> None:
    both = np.concatenate((PROFESSIONAL_ARTIST, BELOW_FORTY))
    assert Max().of(divided(both, np.array([0, 2, 4]))).tolist() == [4, 5]


def test_the_sensitivity_of_the_gain_is_attained() -> None:
    moved = of_one(InfoGain(), np.array([[1, 0], [0, 1]])) - of_one(InfoGain(), np.array([[1, 0], [0, 0]]))
    assert moved == 2**12
    assert units(InfoGain(), 2) - moved <= 1


def test_the_gain_stays_in_its_interval_whatever_the_rounding() -> None:
    generator = np.random.default_rng(1)
    children = generator.integers(0, 10**12, (40_000, 3))
    children[generator.random(children.shape) < 0.5] = 0
    gains = InfoGain().of(divided(children, np.arange(0, 40_001, 4)))
    assert gains.min() >= 0
    assert gains.max() <= units(InfoGain(), 3)


@pytest.mark.parametrize("rows", [0, -1, 10**9 + 1])
def test_rows_out_of_bounds_are_refused(rows: int) -> None:
    with pytest.raises(MethodError, match="rows"):
        WeightedGain(rows=rows)


def test_rows_are_checked_when_replaced() -> None:
    with pytest.raises(MethodError):
        replace(WeightedGain(), rows=0)


def test_the_weighted_gain_is_the_gain_times_the_records() -> None:
    children = np.array([[40_000, 3000], [500, 90_000], [12, 7]])
    weighted = of_one(WeightedGain(), children) * WeightedGain.unit
    gain = of_one(InfoGain(), children) * InfoGain.unit
    records = int(children.sum())
    assert abs(weighted - gain * records) <= 6 * WeightedGain.unit + records * InfoGain.unit


SLACK = 5


def exact_moved(arrival: Arrival, rows: int) -> Decimal:
    """Give the move of the unrounded weighted gain, in units, from fifty-digit logarithms."""
    with localcontext() as context:
        context.prec = 50
        two = Decimal(2).ln()

        def curve(x: int) -> Decimal:
            return Decimal(x) * Decimal(x).ln() / two if x else Decimal(0)

        def step(x: int) -> Decimal:
            bent = min(x, rows)
            return curve(bent + 1) - curve(bent)

        child = arrival.children[arrival.child]
        everyone = sum(map(sum, arrival.children))
        of_label = sum(row[arrival.label] for row in arrival.children)
        bits = step(everyone) - step(of_label) - step(sum(child)) + step(child[arrival.label])
        return bits / Decimal(WeightedGain.unit.numerator) * WeightedGain.unit.denominator


@pytest.mark.parametrize("rows", ROWS)
def test_rounding_moves_the_weighted_gain_by_at_most_the_stated_units(rows: int) -> None:
    score = WeightedGain(rows=rows)

    @thorough
    @given(arrivals(rows))
    def law(arrival: Arrival) -> None:
        assert abs(arrival.moved(score) - exact_moved(arrival, rows)) <= SLACK

    law()


@pytest.mark.parametrize("rows", [10**9, 10**9 - 1, 999_999_937, 2**29 + 1])
def test_the_steps_of_the_curve_are_right_near_the_float_limit(rows: int) -> None:
    score = WeightedGain(rows=rows)
    for total in [*range(rows - 40, rows + 3), *range(rows // 2, rows // 2 + 40), 3 * rows]:
        arrival = Arrival(((total, 0), (0, 0)), 1, 1)
        assert abs(arrival.moved(score) - exact_moved(arrival, rows)) <= Decimal("1.02")
        assert within(score, arrival)


@pytest.mark.parametrize("rows", [1, 1000, 10**6, 10**9])
def test_the_unrounded_weighted_gain_moves_by_no_more_than_its_bound(rows: int) -> None:
    bound = Decimal(str((math.log2(rows + 1) + 1 / math.log(2)) * 256)) + Decimal("1e-6")

    @thorough
    @given(arrivals(rows))
    def law(arrival: Arrival) -> None:
        assert abs(exact_moved(arrival, rows)) <= bound

    law()


def test_the_declared_sensitivity_leaves_room_for_the_slack() -> None:
    for rows in ROWS:
        exact = (math.log2(rows + 1) + 1 / math.log(2)) * 256
        assert units(WeightedGain(rows=rows), 2) >= exact + SLACK


def test_the_curve_is_convex_around_the_bend() -> None:
    for rows in ROWS:
        score = WeightedGain(rows=rows)
        steps = [Arrival(((total, 0), (0, 0)), 1, 1).moved(score) for total in range(max(rows - 20, 0), rows + 20)]
        assert all(later >= earlier - 2 for earlier, later in pairwise(steps))


def test_the_deviation_of_the_papers_table_is_exact() -> None:
    """Below forty: |4 - 7/2| + |3 - 7/2| + |0 - 1/2| + |1 - 1/2| = 2, a quarter of which is 1/2."""
    assert of_one(Deviation(), PROFESSIONAL_ARTIST) == 0
    assert of_one(Deviation(), BELOW_FORTY) == 512


def test_the_deviation_counts_information_per_doubling() -> None:
    two, four = np.array([[8, 0], [0, 8]]), np.array([[4, 0], [4, 0], [0, 4], [0, 4]])
    assert of_one(Deviation(), two) == 4 * 1024
    assert of_one(Deviation(), four) == 2 * 1024


@pytest.mark.parametrize("each", [10**6, 619_925_131, 10**12])
def test_the_deviation_does_not_overflow(each: int) -> None:
    children = np.eye(4, dtype=np.int64) * each
    exact = 4 * (each * 3 // 4 + 3 * each // 4) * 1024 // 4 // 2
    more = children.copy()
    more[0, 0] += 1
    assert abs(of_one(Deviation(), children) - exact) <= 1024
    assert abs(of_one(Deviation(), more) - of_one(Deviation(), children)) <= 1026


def test_discernibility_is_the_sum_of_squares_over_the_records() -> None:
    """Below forty: (7^2 + 1^2) / 8 = 6.25; jobs: (4^2 + 4^2) / 8 = 4, which is better."""
    assert of_one(Discernibility(), BELOW_FORTY) == -6.25 * 1024
    assert of_one(Discernibility(), PROFESSIONAL_ARTIST) == -4 * 1024


@pytest.mark.parametrize("each", [2**30, 10**12])
def test_discernibility_does_not_overflow(each: int) -> None:
    children = np.full((2, 2), each)
    assert of_one(Discernibility(), children) == -2 * each * 1024


def test_certainty_counts_shares_of_the_domain_and_single_leaves_as_certain() -> None:
    """Ages 18 to 64 split at 40: 7 records on 22 of 47 leaves and 1 on 25 of 47; jobs in two halves of 4."""
    ages = Children(BELOW_FORTY, np.array([0, 2]), np.array([22, 25]), 47, np.zeros(1, np.int64))
    left = 7 * (22 * 2**16 // 47) + 25 * 2**16 // 47
    assert PenaltyLeft().of(ages).tolist() == [-left]
    assert CertaintyGain().of(ages).tolist() == [8 * 2**16 - left]
    sexes = Children(PROFESSIONAL_ARTIST, np.array([0, 2]), np.array([1, 1]), 2, np.zeros(1, np.int64))
    assert PenaltyLeft().of(sexes).tolist() == [0]
    assert CertaintyGain().of(sexes).tolist() == [8 * 2**16]


def test_weights_discount_what_is_larger_than_the_second_class() -> None:
    weights = BalancedMax.halfway(np.array([[900.0, 100.0, 25.0], [0.0, -5.0, 16.0]])).weights
    assert weights.tolist() == [[1024 // 3, 1024, 1024], [1024, 1024, 256]]


@pytest.mark.parametrize("weight", [-1, 1025])
def test_weights_that_the_sensitivity_cannot_bear_are_refused(weight: int) -> None:
    with pytest.raises(PrivacyError, match="weights"):
        BalancedMax(np.array([[weight, 3]]))


def test_balanced_candidates_are_ordered_by_their_deviation() -> None:
    """With weights that balance 30 against 10, a split that no majority follows is seen, and one that tells nothing
    is 0 above the least.
    """
    telling, silent = np.array([[20, 1], [10, 9]]), np.array([[15, 5], [15, 5]])
    assert of_one(Max(), telling) == of_one(Max(), silent)
    weights = BalancedMax(np.array([[1024 // 3, 1024]]))
    assert of_one(weights, telling) > of_one(weights, silent)
    assert abs(of_one(weights, silent) / 1024 - 10) < 0.1
