"""The replay rung: a neighbour behaves alike, and planted mistakes are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import EVERY_METHOD, ONE_OF_EACH
from replay import Purse, Recorder, Replayer, compare, domain_of, loss_of, run
from sfumato import CDiffGen, DiffGen, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError
from sfumato.geometry.candidates import Candidates
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.budget import GRAIN
from sfumato.privacy.choices import Choices
from sfumato.privacy.measurements import Draft, Measurement, Noisy
from sfumato.privacy.meter import Meter
from sfumato.privacy.scores import Max
from sfumato.privacy.tally import Cells, Tally

SCHEMA = Schema.loads("""
attributes:
  job: {kind: categorical, taxonomy: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer, Other]}}
  age: {kind: numeric, lower: 18, upper: 30, missing: Unknown}
  town: {kind: categorical, taxonomy: [Here, There]}
  class: {kind: class, taxonomy: [Y, N, Maybe]}
""")
SIZES = (*SCHEMA.shape, len(SCHEMA.classes))

rows = st.tuples(*(st.integers(0, size - 1) for size in SIZES))


def engine(records: list[tuple[int, ...]]) -> MemoryEngine:
    table = np.array(records, np.uint8).reshape(len(records), len(SIZES))
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


neighbours = given(table=st.lists(rows, max_size=12), extra=rows, more=st.booleans(), seed=st.integers(0, 2**20))
"""Two tables that differ by one record, which is added or taken away."""


def compare_neighbours(method: Method, table: list, extra: tuple, more: bool, seed: int) -> None:
    first, second = (engine(table), engine([*table, extra]))[:: 1 if more else -1]
    compare(method, SCHEMA, first, second, epsilon=Fraction(3, 2), seed=seed)


@EVERY_METHOD
@settings(max_examples=15)
@neighbours
def test_a_neighbour_behaves_alike(method: Method, table: list, extra: tuple, more: bool, seed: int) -> None:
    compare_neighbours(method, table, extra, more, seed)


@settings(max_examples=15)
@neighbours
def test_a_neighbour_behaves_alike_where_the_holder_names_conditions(
    table: list, extra: tuple, more: bool, seed: int
) -> None:
    method = CDiffGen(specializations=3, workload="age < 22 and town = 'Here'")
    compare_neighbours(method, table, extra, more, seed)


@EVERY_METHOD
def test_no_more_than_epsilon_is_spent_and_with_leftover_all(method: Method) -> None:
    _, purse = run(method, SCHEMA, engine([(0, 0, 0, 0)] * 50), Fraction(2, 3), Recorder(3))
    spent = sum((debit.epsilon for debit in purse.debits), Fraction(0))
    all_of_it = getattr(method, "leftover", True)
    assert spent <= Fraction(2, 3)
    assert Fraction(2, 3) - spent < 4 * GRAIN or not all_of_it, "equal parts of four levels lose less than a grain each"


ONLY_A_CLASS = Schema.loads("attributes: {class: {kind: class, taxonomy: [Y, N, Maybe]}}")


@ONE_OF_EACH
def test_a_table_of_classes_alone_behaves_alike_or_is_refused_in_the_plan(method: Method) -> None:
    try:
        method.plan(ONLY_A_CLASS, Fraction(1))
    except MethodError:
        return
    tables = [MemoryEngine([], np.zeros(rows, np.uint8)) for rows in range(5)]
    for rows in range(4):
        compare(method, ONLY_A_CLASS, tables[rows], tables[rows + 1], epsilon=Fraction(1), seed=rows)
        draft, _ = run(method, ONLY_A_CLASS, tables[rows], Fraction(1000), Recorder(rows))
        assert draft.final.counts.tolist() == [[rows, 0, 0]]


class Peeking:
    """A method that reads the engine past the meter, as a careless one might."""

    name: ClassVar[str] = "peeking"
    model: ClassVar[str] = "grid"

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def plan(self, schema, epsilon):
        return DiffGen(specializations=2).plan(schema, epsilon)

    def publish(self, meter: Meter, schema: Schema, schedule) -> Draft:  # noqa: ARG002
        whole = Tally(Grid.whole(schema.shape), len(schema.classes), (0, 1, 2))
        true = meter._look(whole).by_place
        ages = meter._look(whole).by_leaf[1].keys
        if self.mistake == "branches on an empty table" and true.sum() == 0:
            return Draft(whole.partition, (meter.measure(Cells(whole), meter.left, "counts"),), self.model)
        top = int(ages.max(initial=1)) + 1 if self.mistake == "stops splits at the largest value" else 14
        split = Choices.of(whole, [Candidates.splits(0, 1, 0, max(top, 2))])
        chosen = int(meter.select(split, Max(), Fraction(1, 4), "choice 1", "permute-and-flip").borders[1])
        at = 7 if self.mistake == "takes the midpoint when few are left" and true.sum() <= 1 else chosen
        grid = whole.partition.refine(1, (at,))
        counts = meter.measure(Cells(Tally(grid, 3)), meter.left, "counts")
        kept = Noisy.even(true if self.mistake == "keeps a count without noise" else 0 * true, Fraction(1))
        notes = (f"{true.sum()} rows",) if self.mistake == "tells the holder how many rows there are" else ()
        return Draft(grid, (Measurement("size", Cells(whole).question, kept), counts), self.model, (), notes)


@pytest.mark.parametrize(
    "mistake",
    [
        "branches on an empty table",
        "stops splits at the largest value",
        "takes the midpoint when few are left",
        "keeps a count without noise",
        "tells the holder how many rows there are",
    ],
)
def test_a_look_past_the_meter_is_caught(mistake: str) -> None:
    with pytest.raises(AssertionError):
        compare_small_tables(mistake)


def test_an_honest_method_of_that_shape_passes() -> None:
    compare_small_tables("none")


def compare_small_tables(mistake: str) -> None:
    pairs = [([], [(1, 9, 0, 2)]), ([(1, 3, 0, 2)], [(1, 3, 0, 2), (1, 9, 0, 0)])]
    for seed in range(20):
        for one, two in pairs:
            compare(Peeking(mistake), SCHEMA, engine(one), engine(two), epsilon=Fraction(1), seed=seed)


class Cheap(Meter):
    """A meter that debits less than it uses."""

    def _price(self, tally, places, spend, label):
        price = super()._price(tally, places, spend, label)
        return replace(price, unit=price.unit * 2)


class Doubled(MemoryEngine):
    """An engine that counts every record twice."""

    def tally(self, tally):
        counts = super().tally(tally)
        doubled = {key: replace(one, counts=one.counts * 2) for key, one in counts.by_leaf.items()}
        return type(counts)(counts.by_place * 2, doubled, tuple(one * 2 for one in counts.marginals))


@ONE_OF_EACH
def test_a_debit_smaller_than_the_noise_is_caught(method: Method) -> None:
    left, purse = Recorder(1), Purse(Fraction(1))
    schedule = method.plan(SCHEMA, Fraction(1))
    method.publish(Cheap(engine([]), purse, left, domain_of(SCHEMA)), SCHEMA, schedule)
    right = Replayer(left)
    method.publish(Cheap(engine([(0, 0, 0, 0)]), Purse(Fraction(1)), right, domain_of(SCHEMA)), SCHEMA, schedule)
    debit, one, two = purse.debits[-1], left.calls[-1], right.calls[-1]
    assert loss_of(debit, one, two) > debit.epsilon


@ONE_OF_EACH
def test_a_doubled_count_is_caught(method: Method) -> None:
    columns = [np.zeros(1, np.uint8)] * 3
    twice = Doubled(columns, np.zeros(1, np.uint8))
    with pytest.raises(AssertionError, match=r"costs? more than|scores move too far"):
        compare(method, SCHEMA, engine([]), twice, epsilon=Fraction(1), seed=1)
