"""A condition covers exactly the leaves it names, and a mistake in one is pointed at."""

from __future__ import annotations

import contextlib
import operator
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato import Schema
from sfumato.errors import QueryError
from sfumato.schema.conditions import LONGEST, Covered, read_condition, read_covered

SCHEMA = Schema.loads("""
attributes:
  passport: {kind: identifier}
  age: {kind: numeric, lower: 0, upper: 9}
  wage: {kind: numeric, lower: 0, upper: 39, step: 10, missing: Unknown}
  uneven: {kind: numeric, lower: 0, upper: 10, step: 3}
  gain: {kind: numeric, lower: 0, upper: 24, step: 10, points: [0, 13]}
  height: {kind: numeric, lower: 1.5, upper: 2, step: 0.25, missing: "Nobody's"}
  born: {kind: numeric, lower: 2000-01-01, upper: 2000-01-28, step: 7}
  job:
    kind: categorical
    root: Anyone
    taxonomy: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer], "it's": , in between: }
  "home town": {kind: categorical, taxonomy: [here, there]}
  and: {kind: categorical, taxonomy: [and, or]}
  income: {kind: class, taxonomy: [low, high]}
""")
AGES = np.arange(10)
SIGNS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def covered(condition: str) -> list[float]:
    """Give the weights of the one attribute that a condition names."""
    (weights,) = read_condition(SCHEMA, condition).values()
    return np.round(weights, 12).tolist()


def place(condition: str) -> int:
    """Give the character, from 1, at which a mistake is seen."""
    with pytest.raises(QueryError) as caught:
        read_condition(SCHEMA, condition)
    found = re.search(r"at character (\d+)", caught.value.problem)
    assert found, caught.value
    return int(found[1])


def refused(condition: str) -> str:
    with pytest.raises(QueryError) as caught:
        read_condition(SCHEMA, condition)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(st.sampled_from(sorted(SIGNS)), st.integers(-3, 13))
def test_signs_on_whole_numbers_mean_what_python_means(sign: str, bound: int) -> None:
    assert covered(f"age {sign} {bound}") == SIGNS[sign](AGES, bound).astype(float).tolist()


@given(st.integers(-3, 13), st.integers(-3, 13))
def test_between_includes_both_ends(low: int, high: int) -> None:
    assert covered(f"age between {low} and {high}") == ((low <= AGES) & (high >= AGES)).astype(float).tolist()


@given(st.lists(st.integers(-3, 13), min_size=1))
def test_in_is_any_of_its_values(values: list[int]) -> None:
    assert covered(f"age in ({', '.join(map(str, values))})") == np.isin(AGES, values).astype(float).tolist()


CELLS = {
    "wage": [range(10), range(10, 20), range(20, 30), range(30, 40)],
    "uneven": [range(3), range(3, 6), range(6, 9), range(9, 11)],
    "gain": [range(1), range(1, 10), range(10, 13), range(13, 14), range(14, 20), range(20, 25)],
}


@given(st.sampled_from(sorted(CELLS)), st.sampled_from(sorted(SIGNS)), st.integers(-5, 45))
def test_a_cut_cell_of_whole_numbers_is_covered_by_its_share_of_them(name: str, sign: str, bound: int) -> None:
    shares = [SIGNS[sign](np.array(cell), bound).mean() for cell in CELLS[name]]
    missing = [0.0] if name == "wage" else []
    assert covered(f"{name} {sign} {bound}") == pytest.approx([*shares, *missing])


@given(st.sampled_from(sorted(CELLS)), st.integers(-5, 45), st.integers(-5, 45))
def test_two_bounds_on_a_cut_cell_cover_what_between_covers(name: str, low: int, high: int) -> None:
    """The shares of one cell are not to be multiplied as if its two ends were independent."""
    together = covered(f"{name} between {low} and {high}")
    assert covered(f"{name} >= {low} and {name} <= {high}") == pytest.approx(together)


@pytest.mark.parametrize(
    ("condition", "weights"),
    [
        ("height < 1.75", [1, 0, 0]),
        ("height >= 1.75", [0, 1, 0]),
        ("height < 1.6", [0.4, 0, 0]),
        ("height between 1.6 and 1.8", [0.6, 0.2, 0]),
        ("height = 1.8", [0, 1, 0]),
        ("height != 1.8", [1, 0, 0]),
        ("height = 2", [0, 1, 0]),
        ("height <= 2", [1, 1, 0]),
        ("height in (1.5, 1.6)", [1, 0, 0]),
        ("height < 1", [0, 0, 0]),
        ("height > 2", [0, 0, 0]),
        ("height = 2.01", [0, 0, 0]),
        ("height = 1.49", [0, 0, 0]),
        ("height >= -1e3", [1, 1, 0]),
        ("height = 'Nobody''s'", [0, 0, 1]),
    ],
)
def test_decimal_grids_are_covered_by_length(condition: str, weights: list[float]) -> None:
    assert covered(condition) == pytest.approx(weights)


@pytest.mark.parametrize(
    ("condition", "weights"),
    [
        ("born < 2000-01-08", [1, 0, 0, 0]),
        ("born <= 2000-01-08", [1, 1 / 7, 0, 0]),
        ("born > 2000-01-21", [0, 0, 0, 1]),
        ("born between 2000-01-05 and 2000-01-10", [3 / 7, 3 / 7, 0, 0]),
        ("born = '2000-01-01'", [1 / 7, 0, 0, 0]),
        ("born >= 1999-01-01", [1, 1, 1, 1]),
        ("born > 2000-01-28", [0, 0, 0, 0]),
        ("born < 2000-01-01", [0, 0, 0, 0]),
    ],
)
def test_dates_are_covered_day_by_day(condition: str, weights: list[float]) -> None:
    assert covered(condition) == pytest.approx(weights)


def test_the_upper_bound_covers_all_of_the_last_cell() -> None:
    assert covered("uneven <= 10") == covered("uneven <= 1000") == [1, 1, 1, 1]
    assert covered("uneven between 9 and 10") == [0, 0, 0, 1]


def test_a_bound_above_upper_covers_no_more_than_everything() -> None:
    assert covered("age <= 1e30") == covered("age >= -1e30") == [1.0] * 10
    assert covered("age > 9") == covered("age = 10") == covered("age between 20 and 30") == [0.0] * 10


def test_bounds_upside_down_cover_nothing() -> None:
    assert covered("age between 7 and 3") == [0.0] * 10
    assert covered("wage between 25 and 23") == [0.0] * 5


def test_comparisons_of_numbers_leave_the_missing_out() -> None:
    assert covered("wage >= 0") == [1, 1, 1, 1, 0]
    assert covered("wage = Unknown") == [0, 0, 0, 0, 1]
    assert covered("wage != Unknown") == [1, 1, 1, 1, 0]
    assert covered("wage in (Unknown, 0)") == [0.1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("condition", "leaves"),
    [
        ("job = Lawyer", [1]),
        ("job = 'Professional'", [0, 1]),
        ("job = Anyone", [0, 1, 2, 3, 4, 5]),
        ("job != Artist", [0, 1, 4, 5]),
        ("job <> Artist", [0, 1, 4, 5]),
        ("job in (Artist, Writer, Engineer)", [0, 2, 3]),
        ("job = 'it''s'", [4]),
        ('job = "it\'s"', [4]),
        ("job = 'in between'", [5]),
    ],
)
def test_a_category_covers_its_leaves(condition: str, leaves: list[int]) -> None:
    assert np.flatnonzero(covered(condition)).tolist() == leaves
    assert set(covered(condition)) <= {0.0, 1.0}


def test_names_can_be_quoted() -> None:
    assert covered("\"home town\" = 'there'") == covered("'home town' = there") == [0, 1]
    assert covered("and = and and 'and' in ('and', \"or\")") == [1, 0]


def test_a_conjunction_keeps_one_weight_vector_per_attribute() -> None:
    weights = read_condition(SCHEMA, "age between 3 and 5 AND job = Artist And income = high")
    assert list(weights) == ["age", "job", "income"]
    assert weights["income"].tolist() == [0, 1]


def test_an_attribute_named_twice_must_satisfy_both() -> None:
    assert covered("age >= 3 and age < 5") == covered("age in (3, 4)")
    assert covered("job = Artist and job = Engineer") == [0.0] * 6


@pytest.mark.parametrize("condition", ["", " ", "\t\n"])
def test_an_empty_condition_covers_everyone(condition: str) -> None:
    assert read_condition(SCHEMA, condition) == {}


def test_blanks_around_marks_do_not_matter() -> None:
    assert covered("age>=3") == covered("  age  >=\n3 ") == covered("age >=3")
    assert covered("age in(3,4)") == covered("age in ( 3 , 4 )")


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        ("age", 4),
        ("age =", 6),
        ("age = =", 7),
        ("age = 3 or", 11),
        ("age = 3 nor age = 4", 9),
        ("not", 4),
        ("(age = 3", 9),
        ("age not = 3", 9),
        ("age is 3", 8),
        ("age = 3 and", 12),
        ("age ~ 3", 5),
        ("age between 3", 14),
        ("age between 3, 4", 14),
        ("age in 3", 8),
        ("age in (3", 10),
        ("age in (3 4)", 11),
        ("age in ()", 9),
        ("age in (3,)", 11),
        ("age = 3)", 8),
        ("age = 'x", 7),
        ('age = "x', 7),
        ("age ! 3", 5),
        ("age = 3   !", 11),
        ("= 3", 1),
        ("age 'between' 3 and 4", 6),
        ("job < Artist ! ", 14),
    ],
)
def test_a_mistake_is_pointed_at(condition: str, at: int) -> None:
    assert place(condition) in (at, at - 1) if "'" in condition else place(condition) == at


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("salary = 3", "attribute salary is not in this release"),
        ("Age = 3", "attribute Age is not in this release"),
        ("passport = 3", "attribute passport was dropped as an identifier"),
        ("job = Baker", "'Baker' is none"),
        ("job = lawyer", "'lawyer' is none"),
        ("job in (Lawyer, Baker)", "'Baker' is none"),
        ("job < Lawyer", "job must be compared with = or in"),
        ("job between Dancer and Writer", "job must be compared with = or in"),
        ("age = old", "age must be compared with a number"),
        ("age = nan", "age must be compared with a number"),
        ("age < infinity", "age must be compared with a number"),
        ("age < 1e99999999", "age must be compared with a number"),
        ("age = ''", "age must be compared with a number"),
        ("age = 2000-01-01", "age must be compared with a number"),
        ("wage > Unknown", "wage must be compared with a number"),
        ("born > 3", "born must be compared with a date"),
        ("born > 2000-02-30", "born must be compared with a date"),
    ],
)
def test_what_the_release_does_not_hold_is_refused_by_name(condition: str, said: str) -> None:
    assert said in refused(condition)


def test_an_identifier_is_never_offered_as_a_way_out() -> None:
    assert "passport" not in refused("salary = 3")


def test_a_condition_of_any_length_is_read_or_refused_quickly() -> None:
    assert covered(f"age in ({', '.join(['3'] * 20_000)})") == covered("age = 3")
    assert "characters" in refused("age = 3 and " * LONGEST)


MARKS = [*"=<>(),'\"!", "<=", ">=", "!=", "<>", "and", "or", "not", "is", "missing", "between", "in", "''"]
VALUES = ["3", "1.75", "1e5", "-2", "2000-01-05", "Artist", "Unknown"]
WORDS = st.sampled_from([*MARKS, *VALUES, *SCHEMA.attributes, "'home town'"])


def read_or_refuse(condition: str) -> None:
    boxes = ()
    with contextlib.suppress(QueryError):
        boxes = read_covered(SCHEMA, condition).inside
    assert all(len(one) == SCHEMA.attributes[name].leaves for weights in boxes for name, one in weights.items())
    assert all(((one >= 0) & (one <= 1)).all() for weights in boxes for one in weights.values())


@given(st.text(max_size=60))
@example("age = ٣")
@example("\x1f'")
@example("age = '\ud800'")
def test_any_text_is_read_or_refused(condition: str) -> None:
    read_or_refuse(condition)


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_any_words_are_read_or_refused(condition: str) -> None:
    read_or_refuse(condition)


@given(st.sampled_from(["age", "wage", "height", "born"]), st.sampled_from(sorted(SIGNS)), st.text(max_size=12))
@example("age", "<", "1e39")
@example("age", "=", "1_0")
@example("born", "=", "0001-01-01")
@example("born", "<=", "9999-12-31")
def test_any_value_is_read_or_refused(name: str, sign: str, value: str) -> None:
    read_or_refuse(f"{name} {sign} '{value}'")


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, "1e-7", "1e-8"), ("-9e14", "9e14", "1e12"), (0, 1, 0.3)])
@pytest.mark.parametrize("condition", ["x < 1", "x >= 1e39", "x = 1", "x between -1e30 and 1e30", "x > 1e-39"])
def test_grids_of_any_size_can_be_asked(lower: object, upper: object, step: object, condition: str) -> None:
    schema = Schema.loads(f"attributes: {{x: {{kind: numeric, lower: {lower}, upper: {upper}, step: {step}}}}}")
    weights = read_condition(schema, condition)["x"]
    assert len(weights) == schema.shape[0]
    assert ((weights >= 0) & (weights <= 1)).all()


SMALL = Schema.loads("""
attributes:
  a: {kind: numeric, lower: 0, upper: 2, missing: none}
  b: {kind: categorical, taxonomy: {u: [x, y], v: [z]}, missing: z}
  c: {kind: numeric, lower: 0, upper: 3, step: 2}
""")
SHAPE = (4, 3, 2)
LITERALS = {
    "a = 1": ("a", [0, 1, 0, None]),
    "a != 1": ("a", [1, 0, 1, None]),
    "a >= 1": ("a", [0, 1, 1, None]),
    "a is missing": ("a", [0, 0, 0, 1]),
    "a is not missing": ("a", [1, 1, 1, 0]),
    "a not in (0, 2)": ("a", [0, 1, 0, None]),
    "a not between 1 and 2": ("a", [1, 0, 0, None]),
    "b = u": ("b", [1, 1, 0]),
    "b != x": ("b", [0, 1, 1]),
    "b is missing": ("b", [0, 0, 1]),
    "b not in (x, z)": ("b", [0, 1, 0]),
    "c < 2": ("c", [1, 0]),
}
"""What comparisons say of each leaf: true, false, or neither."""


def literal(words: str) -> tuple[str, np.ndarray]:
    name, says = LITERALS[words]
    axis = "abc".index(name)
    numbers = np.array([np.nan if one is None else one for one in says], float)
    return words, np.broadcast_to(numbers.reshape([-1 if at == axis else 1 for at in range(3)]), SHAPE)


def negated(one: tuple[str, np.ndarray]) -> tuple[str, np.ndarray]:
    return f"not ({one[0]})", 1 - one[1]


def joined(parts: tuple[tuple[str, np.ndarray], tuple[str, np.ndarray], str]) -> tuple[str, np.ndarray]:
    """Join two conditions by SQL's logic: neither true nor false is halfway between them."""
    (left, mine), (right, other), word = parts
    mine, other = (np.nan_to_num(one, nan=0.5) for one in (mine, other))
    found = np.minimum(mine, other) if word == "and" else np.maximum(mine, other)
    return f"({left}) {word} ({right})", np.where(found == 0.5, np.nan, found)


CONDITIONS = st.recursive(
    st.sampled_from(sorted(LITERALS)).map(literal),
    lambda inner: inner.map(negated) | st.tuples(inner, inner, st.sampled_from(["and", "or"])).map(joined),
    max_leaves=6,
)


def cells_of(covered: Covered, side: str = "inside") -> np.ndarray:
    cells = np.zeros(SHAPE)
    for box in getattr(covered, side):
        axes = [box.get(name, np.ones(size)) for name, size in zip("abc", SHAPE, strict=True)]
        cells += np.einsum("i,j,k->ijk", *axes)
    return cells


@given(CONDITIONS)
def test_any_condition_covers_what_sql_would_select(condition: tuple[str, np.ndarray]) -> None:
    words, says = condition
    covered = read_covered(SMALL, words)
    assert np.array_equal(cells_of(covered), np.nan_to_num(says))
    if len(covered.inside) > 1:
        assert np.array_equal(cells_of(covered) + cells_of(covered, "outside"), np.ones(SHAPE))


@given(CONDITIONS)
def test_boxes_do_not_depend_on_how_a_condition_is_said(condition: tuple[str, np.ndarray]) -> None:
    words, _ = condition
    one, other = read_covered(SMALL, words), read_covered(SMALL, f"not (not ({words}) and not ({words}))")
    if len(one.inside) > 1:
        assert [sorted(box) for box in one.inside] == [sorted(box) for box in other.inside]
    assert np.array_equal(cells_of(one), cells_of(other))


def test_or_of_one_attribute_is_one_box_and_cut_cells_are_cut_once() -> None:
    assert covered("age < 2 or age >= 8") == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]
    assert covered("wage < 5 or wage is missing") == [0.5, 0, 0, 0, 1]
    assert covered("not wage < 5") == [0.5, 1, 1, 1, 0]
    boxes = read_covered(SCHEMA, "(wage < 5 or age = 3) and (wage < 15 or age = 4)").inside
    everyone = np.ones(10)
    total = sum(np.outer(box.get("wage", np.ones(5)), box.get("age", everyone)).sum() for box in boxes)
    assert total == pytest.approx(0.5 * 10 + 1.0)


def test_conditions_that_are_no_box_are_refused_where_one_is_wanted() -> None:
    assert "joined by and" in refused("age = 3 or job = Artist")


def test_a_condition_nested_deeply_is_refused() -> None:
    assert "nested" in refused("(" * 500 + "age = 3" + ")" * 500)
    assert "nested" in refused("not " * 500 + "age = 3")
