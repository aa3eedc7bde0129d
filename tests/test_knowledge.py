"""Public knowledge: the paper's numbers, rules that agree with margins, and files that are read or refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.release.promises import Knowledge, Rule, expected_confidence
from sfumato.schema.schema import Schema
from sfumato.without_epsilon.confidence import read_knowledge

SCHEMA = Schema.loads("""
attributes:
  age: {kind: numeric, lower: 20, upper: 59, intervals: [10]}
  sex: {kind: categorical, taxonomy: [female, male]}
  disease: {kind: class, taxonomy: {chronic: [diabetes, asthma], other: [flu]}}
""")
STATISTICS = """attribute,value,probability
age,"[20, 30)",0.15
age,"[30, 60)",0.85
sex,female,0.5
sex,male,1/2
disease,diabetes,0.05
disease,asthma,0.05
disease,flu,0.9
"""


def known(statistics: str = STATISTICS, rules: str | None = None) -> Knowledge:
    return read_knowledge(statistics, rules, SCHEMA, "public")


def chance(knowledge: Knowledge, age: tuple[int, int], sex: tuple[int, int], disease: int) -> float:
    return float(knowledge.probability(np.array([[age, sex]]), np.array([disease]))[0])


def test_the_paper_s_numbers() -> None:
    probability = chance(known(), (0, 10), (0, 1), 0)
    assert probability == pytest.approx(0.00375)
    confidences = [float(expected_confidence(np.array([probability]), n)[0]) for n in (100, 1000)]
    assert [round(one, 3) for one in confidences] == [0.313, 0.977]


def test_a_rule_refines_where_it_holds_and_is_made_good_elsewhere() -> None:
    rules = "condition,value,probability\nage between 40 and 59 and sex = 'female',diabetes,0.1\n"
    knowledge, plain = known(rules=rules), known()
    assert chance(knowledge, (20, 40), (0, 1), 0) == pytest.approx(0.85 * 2 / 3 * 0.5 * 0.1)
    assert chance(knowledge, (0, 10), (0, 1), 0) < chance(plain, (0, 10), (0, 1), 0)
    assert chance(knowledge, (0, 40), (0, 2), 0) == pytest.approx(0.05)
    about = knowledge.about({0: np.arange(40) == 25, 1: np.array([True, False])})
    assert about.tolist() == pytest.approx([0.1, 0.9 * 0.05 / 0.95, 0.9 * 0.9 / 0.95])


def shares(size: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.integers(1, 9), min_size=size, max_size=size).map(lambda one: np.array(one) / sum(one))


@given(shares(3), shares(2), shares(3), st.floats(0, 0.4), st.integers(0, 2))
def test_everything_is_one_distribution(a: np.ndarray, b: np.ndarray, s: np.ndarray, share: float, value: int) -> None:
    rules = (Rule({0: ((0, 1),), 1: ((1, 2),)}, {value: share}), Rule({0: ((1, 3),)}, {0: float(s[0])}))
    try:
        knowledge = Knowledge((a, b), s, rules)
    except MethodError:
        assume(False)
    cells = list(itertools.product(range(3), range(2), range(3)))
    boxes = np.array([[[i, i + 1], [j, j + 1]] for i, j, _ in cells])
    joint = knowledge.probability(boxes, np.array([k for *_, k in cells])).reshape(3, 2, 3)
    assert joint.sum(axis=2) == pytest.approx(np.outer(a, b))
    assert joint.sum(axis=(0, 1)) == pytest.approx(s)
    assert joint[0, 1, value] == pytest.approx(a[0] * b[1] * share)
    wide = knowledge.probability(np.array([[[0, 2], [0, 2]]] * 3), np.arange(3))
    assert wide == pytest.approx(joint[:2].sum(axis=(0, 1)))
    assert knowledge.about({0: np.array([True, True, False])}) == pytest.approx(wide / wide.sum())


def test_knowledge_travels_as_plain_values() -> None:
    rules = "condition,value,probability\nage >= 40,diabetes,0.06\nage >= 40,flu,0.9\n"
    knowledge = known(rules=rules)
    assert Knowledge.of_plain(knowledge.plain()).plain() == knowledge.plain()
    assert len(knowledge.rules) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("age,", "shoe,", "every leaf of age must have a probability in the statistics"),
        ("sex,male,1/2\n", "", r"every leaf of sex must have a probability in the statistics \(male\)"),
        ("disease,flu,0.9", "disease,other,0.9\ndisease,flu,0", "flu.*one probability only|one probability only.*flu"),
        ("1/2", "0.4", r"the probabilities of sex \(0.9\) must sum to one"),
        ("1/2", "-1/2", r"row 5 .* probability \(-1/2\) must be a number from 0 to 1"),
        ("1/2", "half", r"probability \(half\) must be"),
        ("sex,male", "sex,mail", "row 5 of the statistics: sex must be compared with a value"),
        ('"[20, 30)"', "young", "row 2 of the statistics: age must be compared with a number"),
        ('"[20, 30)"', '"[20, 30.5)"', "must have one probability only|must be made of leaves"),
        ('"[20, 30)"', "99", "must be made of leaves of the schema"),
        ("attribute,value,probability", "attribute,value", "row 2 of the statistics must have the columns"),
    ],
)
def test_statistics_that_are_none_are_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        known(STATISTICS.replace(old, new))


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("age >= 40,plague,0.1", r"value \(plague\) must be a value of disease"),
        ("age >= 40,chronic,0.1", r"value \(chronic\) must be a value of disease"),
        ("disease = 'flu',flu,0.1", "must not be about disease"),
        ("sex = 'male' and age > 99,flu,0.1", "must be made of leaves"),
        ("shoe = 3,flu,0.1", r"condition \(shoe = 3\) of the rules: attribute shoe is not in this release"),
        ("age >= 40,flu,2", "must be a number from 0 to 1"),
        ("age >= 40,flu,0.8\nage >= 40,flu,0.8", "row 3 of the rules must not repeat another"),
        ("age >= 40,flu,0.8\nage >= 40,asthma,0.3", "must sum to one at most"),
        ("age >= 40,flu,0.8\nage >= 40,asthma,0.1\nage >= 40,diabetes,0.01", "to one if it names every value"),
        ("age >= 40,flu,0.8\nage >= 50,flu,0.9", "conditions of rules must not overlap"),
        ("age >= 30,diabetes,0.9", "rules must agree with the statistics"),
    ],
)
def test_rules_that_are_none_are_refused(rules: str, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        known(rules=f"condition,value,probability\n{rules}\n")


@pytest.mark.parametrize("rule", [Rule({2: ((0, 1),)}, {}), Rule({0: ((0, 41),)}, {}), Rule({}, {3: 0.1})])
def test_rules_about_nothing_are_refused(rule: Rule) -> None:
    with pytest.raises(ValueError, match="rules must be about the attributes"):
        Knowledge(known().marginals, known().sensitive, (rule,))


def test_what_is_no_csv_is_refused() -> None:
    with pytest.raises(MethodError, match="statistics must be a CSV file"):
        known(STATISTICS + "x" * 200_000)


def test_a_category_shares_its_probability_out_evenly() -> None:
    merged = STATISTICS.replace("disease,diabetes,0.05\ndisease,asthma,0.05", "disease,chronic,0.1")
    assert known(merged).sensitive.tolist() == pytest.approx([0.05, 0.05, 0.9])
