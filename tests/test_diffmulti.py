"""DiffMulti: the paper's examples and its equation 14, its limits, one pass per level, and budgets by path."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay import Purse, Recorder, domain_of, run
from sfumato import DiffMulti, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import BudgetError, MethodError
from sfumato.geometry.candidates import Candidates, Divisions, longest_path, most_specializations_of_boxes
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.methods.diffmulti import Known, share_out
from sfumato.privacy.budget import GRAIN, grains_of
from sfumato.privacy.choices import Choices, score_choices
from sfumato.privacy.measurements import Noisy, most_paid, variance_of
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Max
from sfumato.privacy.tally import Cells, Tally
from sfumato.schema.attributes import Numeric

TABLE_1 = Schema.loads("""
attributes:
  continent:
    kind: categorical
    taxonomy: {New_World: [North_America, South_America, Australia], Old_World: [Europe, Asia, Africa]}
    root: Any_Continent
  born: {kind: numeric, lower: 1930, upper: 1998}
  class: {kind: class, taxonomy: [Y, N]}
""")
RECORDS = [("North_America", 1947, "Y"), ("Australia", 1953, "Y"), ("North_America", 1955, "N"),
           ("Europe", 1957, "N"), ("Asia", 1959, "N"), ("North_America", 1968, "Y")]  # fmt: skip


@pytest.fixture
def table_1() -> MemoryEngine:
    continents = ["North_America", "South_America", "Australia", "Europe", "Asia", "Africa"]
    return MemoryEngine(
        [
            np.array([continents.index(one) for one, _, _ in RECORDS], np.uint8),
            np.array([born - 1930 for _, born, _ in RECORDS], np.uint8),
        ],
        np.array([label == "N" for _, _, label in RECORDS], np.uint8),
    )


def shared(total: int, sizes: list[int], lots: list[int] | None = None) -> list[int]:
    one = np.zeros(len(sizes), np.int64)
    return share_out(np.array([total]), one, np.array(sizes), np.array(lots or range(len(sizes)))).tolist()


def test_very_many_attributes_allow_fewer_regions() -> None:
    wide = Schema.parse({"attributes": {f"a{n}": {"kind": "categorical", "taxonomy": ["x", "y"]} for n in range(1000)}})
    assert DiffMulti().steps_for(wide) == 1000
    assert DiffMulti(specializations=7).steps_for(wide) == 7
    assert DiffMulti().expected_cells(wide) == 4000


def test_example_4_2_even_distribution() -> None:
    """H = 21: one specialization is used, each of the two children gets 10."""
    assert shared(21 - 1, [1, 1]) == [10, 10]


def test_examples_4_3_and_4_4_fair_distribution() -> None:
    """Of 10 records 8 and 2: (8/10) 20 = 16 and (2/10) 20 = 4."""
    assert shared(21 - 1, [8, 2]) == [16, 4]


def test_remainders_go_by_lot_and_none_are_lost() -> None:
    assert shared(10, [1, 1, 1], [5, 9, 7]) == [4, 3, 3]
    assert shared(10, [1, 1, 1], [9, 5, 7]) == [3, 4, 3]
    assert shared(11, [1, 1, 1, 0], [9, 5, 7, 1]) == [3, 4, 4, 0]


def test_negative_sizes_count_as_nothing_and_all_of_them_as_even() -> None:
    assert shared(9, [-4, 3]) == [0, 9]
    assert shared(9, [-4, 0, -1]) == [3, 3, 3]


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.lists(st.integers(-5, 10**6), min_size=2, max_size=5)),
        min_size=1,
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_families_share_all_they_have_in_proportion(families: list, random) -> None:
    shares = np.array([share for share, _ in families])
    of = np.repeat(np.arange(len(families)), [len(sizes) for _, sizes in families])
    sizes = np.concatenate([sizes for _, sizes in families])
    lots = np.array([random.randrange(2**62) for _ in of])
    parts = share_out(shares, of, sizes, lots)
    assert np.array_equal(np.bincount(of, parts, len(families)), shares)
    for family, share in enumerate(shares):
        own = np.maximum(sizes[of == family], 0)
        exact = share * own / own.sum() if own.sum() else np.full(len(own), share / len(own))
        assert (np.abs(parts[of == family] - exact) < 1 + 1e-6).all()


def test_example_4_5_splits_are_scored_by_the_intervals_between_records(table_1: MemoryEngine) -> None:
    """[1930, 1947), [1947, 1953), ..., [1968, 1999): our split points are those at which a record changes sides."""
    tally = Tally(Tree.whole(TABLE_1.shape), 2, (0, 1))
    every = Choices.of(tally, [Candidates.splits(0, 1, 0, 69)])
    scored = score_choices(every, table_1.tally(tally), Max(), np.ones(1, np.int64))
    years = [1930, 1947, 1953, 1955, 1957, 1959, 1968, 1998]
    assert scored.copies.tolist() == [later - earlier for earlier, later in pairwise(years)]
    assert scored.scores.tolist() == [3, 4, 5, 4, 3, 4, 3]


def test_equation_14_is_what_taking_one_attribute_after_the_other_needs() -> None:
    """Continents have 2 intermediate nodes and 6 leaves, years 67 and 69: h = 1 + 2 + 6 (1 + 67)."""
    attributes = list(TABLE_1.predictors.values())
    assert most_specializations_of_boxes(attributes) == 1 + 2 + 6 * (1 + 67)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_equation_14_is_used_up_by_growth_without_end(leaves: list[int]) -> None:
    """A tree that specializes until nothing is left has made exactly so many specializations."""
    attributes = [Numeric(lower=0, upper=size) if size > 1 else Numeric(lower=0, upper=1, step=2) for size in leaves]
    tree, divisions, steps = Tree.whole([one.leaves for one in attributes]), Divisions(attributes), 0
    while len(candidates := divisions.candidates(tree.boxes_of(tree.ends), np.arange(tree.regions))):
        first = candidates.take(np.unique(candidates.places, return_index=True)[1])
        chosen = first.pick(np.arange(len(first)), np.zeros(len(first), np.int64))
        tree = tree.refine(tree.ends[chosen.places], chosen.attributes, chosen.borders, chosen.starts)
        steps += len(chosen)
    assert steps == most_specializations_of_boxes(attributes)


def test_the_longest_path_sums_the_heights(adult) -> None:
    """The paper counts 21 for its eight taxonomies and 7 for each of six numeric attributes; ours are our own."""
    attributes = list(adult.schema.predictors.values())
    heights = [one.tree.height for one in attributes if not isinstance(one, Numeric)]
    assert longest_path(attributes, 7) == sum(heights) + 6 * 7


def test_the_papers_schedule(adult) -> None:
    """Eps' = eps / (2 (|A_num| + 3 g)): first split points, then split, choice and size on each level."""
    schedule = DiffMulti(schedule="paper", choice="separate", score="max", depth=63, margins=Fraction(0)).plan(
        adult.schema, Fraction(1)
    )
    each = {part for label, part in schedule.parts.items() if label != "counts"}
    assert each == {grains_of(Fraction(1, 2 * (6 + 3 * 63))) * GRAIN}
    assert 0 <= schedule["counts"] - Fraction(1, 2) < 195 * GRAIN
    assert (schedule.total, len(schedule.parts)) == (1, 6 + 3 * 63 + 1)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "0.123457", "999.99999"])
@pytest.mark.parametrize("method", [DiffMulti(), DiffMulti(schedule="paper"), DiffMulti.as_published()], ids=str)
def test_plans_add_up_whatever_the_epsilon(adult, epsilon: str, method: DiffMulti) -> None:
    assert method.plan(adult.schema, Fraction(epsilon)).total == Fraction(epsilon)


@pytest.mark.parametrize("score", ["deviation", "balanced", "auto", "gain"])
def test_what_the_paper_does_not_have_is_not_as_published(score: str) -> None:
    with pytest.raises(MethodError, match="must be one of max, discernibility, ncp"):
        DiffMulti.as_published(score=score)


def test_a_class_of_one_value_is_no_class() -> None:
    only = schema_of("a: {kind: numeric, lower: 0, upper: 9}", "c: {kind: class, taxonomy: [Y]}")
    assert DiffMulti().score_for(only) == "ncp"


def test_numbers_of_numpy_are_numbers() -> None:
    assert DiffMulti(specializations=np.int64(50)) == DiffMulti(specializations="50")


class Passes(MemoryEngine):
    """An engine that counts its passes."""

    passes = 0

    def tally(self, tally):
        self.passes += 1
        return super().tally(tally)


@pytest.mark.parametrize(
    "method", [DiffMulti(), DiffMulti.as_published(specializations=500), DiffMulti(score="ncp")], ids=str
)
def test_one_pass_and_at_most_three_debits_per_level(adult, adult_codes, method: DiffMulti) -> None:
    engine = Passes(*adult_codes)
    draft, purse = run(method, adult.schema, engine, Fraction(1), Recorder(1))
    levels = int(draft.structure.depths.max())
    assert levels > 5
    margins = [debit for debit in purse.debits if debit.label.startswith("margin")]
    assert engine.passes <= levels + 2 + bool(margins)
    firsts = [debit for debit in purse.debits if debit.label.startswith(("first", "size of"))]
    assert len(purse.debits) <= 3 * levels + 1 + len(margins) + len(firsts)
    assert len(draft.steps) == levels


def test_adaptive_growth_spends_all_of_epsilon_on_every_path(adult, adult_codes) -> None:
    draft, purse = run(DiffMulti(), adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(2))
    assert sum(debit.epsilon for debit in purse.debits) == 1
    assert Fraction(1, 2) < most_paid(draft) < 1, "some of it went into choices, which leave no noise behind"
    assert len(set(draft.final.noisy.rates)) > 10


def test_no_more_specializations_than_allowed(adult, adult_codes) -> None:
    for method in (DiffMulti(specializations=5), DiffMulti.as_published(specializations=40)):
        draft, _ = run(method, adult.schema, MemoryEngine(*adult_codes), Fraction(5), Recorder(3))
        assert len(np.unique(draft.structure.parents[1:])) <= method.specializations


def test_even_shares_need_no_sizes(adult, adult_codes) -> None:
    method = DiffMulti(schedule="paper", score="max", distribution="even", specializations=100, margins=Fraction(0))
    draft, purse = run(method, adult.schema, MemoryEngine(*adult_codes), Fraction(1), Recorder(4))
    assert not any(debit.label.startswith("size") for debit in purse.debits)
    assert len(np.unique(draft.structure.parents[1:])) <= 100
    assert draft.final.noisy.rates[0] > Fraction(1, 2)


def test_with_a_huge_budget_the_first_split_is_the_best(adult, adult_codes) -> None:
    """Max of the whole table: capital gain separates most."""
    draft, _ = run(
        DiffMulti(score="max", depth=1), adult.schema, MemoryEngine(*adult_codes), Fraction(900), Recorder(5)
    )
    names = list(adult.schema.predictors)
    assert names[draft.structure.attributes[1]] == "capital_gain"


def test_children_take_their_parents_counts_into_account() -> None:
    """Two children measured as 10 and 20 with variance v under a parent of 40 with the same: each moves by 10/3."""
    rate = Fraction(1, 2)
    parent = Known(np.array([[40.0]]), np.array([variance_of(rate)]))
    children = parent.of_children(np.array([0, 0]), Noisy.even(np.array([[10], [20]]), rate))
    assert np.allclose(children.counts, [[10 + 10 / 3], [20 + 10 / 3]])
    assert np.allclose(children.variances, variance_of(rate) * 2 / 3)


def schema_of(*lines: str) -> Schema:
    return Schema.loads("attributes:\n" + "\n".join(f"  {line}" for line in lines))


NUMBERS = schema_of("a: {kind: numeric, lower: 0, upper: 9}", "b: {kind: numeric, lower: 0, upper: 1, step: 2}")
NAMES = schema_of("a: {kind: categorical, taxonomy: {x: [p, q], y: [r]}}", "b: {kind: categorical, taxonomy: [only]}")


@pytest.mark.parametrize("schema", [NUMBERS, NAMES], ids=["numbers", "names"])
@pytest.mark.parametrize("score", ["auto", "ncp", "discernibility", "ncp-left"])
@pytest.mark.parametrize("schedule", ["adaptive", "paper"])
def test_tables_of_one_kind_without_a_class_and_with_single_leaves(schema: Schema, score: str, schedule) -> None:
    method = DiffMulti(score=score, schedule=schedule)
    engine = MemoryEngine([np.array([0, 1, 2, 2] * 50, np.uint8), np.zeros(200, np.uint8)], np.zeros(200, np.uint8))
    draft, purse = run(method, schema, engine, Fraction(8), Recorder(6))
    assert draft.structure.regions > 1
    assert draft.final.counts.shape == (draft.structure.regions, 1)
    assert sum(debit.epsilon for debit in purse.debits) <= 8


def test_growth_ends_when_nothing_is_left_to_specialize() -> None:
    engine = MemoryEngine(
        [np.array([0, 1, 2, 2] * 5000, np.uint8), np.zeros(20_000, np.uint8)], np.zeros(20_000, np.uint8)
    )
    draft, _ = run(DiffMulti(specializations=10**9), NAMES, engine, Fraction(8), Recorder(7))
    assert draft.structure.regions == 3


@pytest.mark.parametrize("score", ["max", "balanced", "deviation", "gain"])
def test_scores_of_classes_need_a_class(score: str) -> None:
    with pytest.raises(MethodError, match=rf"score \({score}\) must have a class attribute"):
        DiffMulti(score=score).plan(NAMES, Fraction(1))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"specializations": 0}, "specializations (0) must be a whole number from 1 to 1,000,000,000"),
        ({"specializations": "many"}, "specializations (many) must be a whole number"),
        ({"depth": 0}, "depth (0) must be"),
        ({"depth": 10**6}, "from 1 to 1,000"),
        ({"specializations": 10**30}, "from 1 to 1,000,000,000"),
        ({"score": "best"}, "score (best) must be one of"),
        ({"score": "weighted-gain"}, "must be one of"),
        ({"schedule": "ours"}, "schedule (ours) must be one of adaptive, paper"),
        ({"distribution": "odd"}, "distribution (odd) must be one of"),
        ({"choice": "separate"}, "choice (separate) must go with the paper's schedule"),
        ({"schedule": "paper", "score": "balanced"}, "score (balanced) must go with the adaptive schedule"),
        ({"margins": "2"}, "margins (2) must be a share"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(given: dict, said: str) -> None:
    with pytest.raises(MethodError) as refused:
        DiffMulti(**given)
    assert said in str(refused.value)


def test_a_depth_that_the_budget_cannot_pay_for_is_refused(adult) -> None:
    with pytest.raises(BudgetError, match="choice 1 must be at least 1e-09, and is less"):
        DiffMulti(schedule="paper", depth=1000, margins=Fraction(0)).plan(adult.schema, Fraction(1, 10**6))
    with pytest.raises(BudgetError, match="margin in 8 parts of age must be at least"):
        DiffMulti().plan(adult.schema, Fraction(1, 10**6) / 1000)


def test_a_table_that_cannot_be_specialized_is_refused() -> None:
    only = schema_of("b: {kind: categorical, taxonomy: [only]}", "c: {kind: class, taxonomy: [Y, N]}")
    with pytest.raises(MethodError, match="an attribute besides the class"):
        DiffMulti().plan(only, Fraction(1))


def test_an_empty_table_is_published_like_any_other() -> None:
    empty = np.empty(0, np.uint8)
    for method in (DiffMulti(), DiffMulti.as_published(specializations=5)):
        draft, purse = run(method, TABLE_1, MemoryEngine([empty, empty], empty), Fraction(1), Recorder(8))
        assert sum(debit.epsilon for debit in purse.debits) == 1
        assert draft.structure.regions >= 1


def test_a_round_on_the_grid_and_rounds_on_the_tree_share_one_budget(table_1: MemoryEngine) -> None:
    meter = Meter(table_1, Purse(Fraction(1)), Recorder(9), domain_of(TABLE_1))
    whole = Tally(Grid.whole(TABLE_1.shape), 2, (0, 1))
    meter.measure(Cells(whole, 0), Fraction(1, 2), "margin")
    tally = Tally(Tree.whole(TABLE_1.shape), 2)
    assert meter.rest(tally).tolist() == [500_000_000]
