"""Margins in levels: a neighbour behaves alike, every level is paid, and planted mistakes are caught."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mutants
from contracts import cases, first_of_each
from replay import Recorder, compare, domain_of, run
from sfumato import METHODS, Release, Schema
from sfumato.account import Unbooked, certificate, sealed
from sfumato.engines.local import MemoryEngine
from sfumato.errors import PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.methods.method import Method
from sfumato.privacy.meter import Meter
from sfumato.privacy.tally import Cells, Tally

LONG = Schema.loads("""
attributes:
  town: {kind: categorical, taxonomy: [Here, There]}
  wage: {kind: numeric, lower: 0, upper: 198, missing: Unknown}
  class: {kind: class, taxonomy: [Y, N]}
""")
SIZES = (*LONG.shape, len(LONG.classes))


def with_margins(methods: Iterable[Method]) -> Iterator[Method]:
    """Keep those that plan to buy margins."""
    return (one for one in methods if any(label.startswith("margin") for label in one.plan(LONG, Fraction(1)).parts))


ONE_OF_EACH_WITH_MARGINS = cases(with_margins(first_of_each(METHODS)))

rows = st.tuples(*(st.integers(0, size - 1) for size in SIZES))


def engine(records: list[tuple[int, ...]]) -> MemoryEngine:
    table = np.array(records, np.uint8).reshape(len(records), len(SIZES))
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


@ONE_OF_EACH_WITH_MARGINS
@settings(max_examples=10)
@given(table=st.lists(rows, max_size=12), extra=rows, more=st.booleans(), seed=st.integers(0, 2**20))
def test_a_neighbour_behaves_alike(method: Method, table: list, extra: tuple, more: bool, seed: int) -> None:
    first, second = (engine(table), engine([*table, extra]))[:: 1 if more else -1]
    compare(method, LONG, first, second, epsilon=Fraction(3, 2), seed=seed)


@ONE_OF_EACH_WITH_MARGINS
def test_every_level_is_a_debit_of_its_noise(method: Method) -> None:
    draft, purse = run(method, LONG, engine([(0, 5, 1)] * 30), Fraction(1), Recorder(2))
    paid = {debit.label: debit for debit in purse.debits if debit.label.startswith("margin")}
    bought = {one.label: one for one in draft.measurements if one.label in paid}
    assert list(bought) == list(paid)
    assert {"margin in 16 parts of wage", "margin of wage"} <= paid.keys()
    for label, one in bought.items():
        assert (one.noisy.rates, one.counts.size) == ((paid[label].epsilon,), paid[label].cells)
        of = {"town": (0,), "wage": (1,)}.get(label.split()[-1], ())
        assert one.question.regions.split_attributes == of
        assert one.question.classes == (1 if of else len(LONG.classes))
    planned = method.plan(LONG, Fraction(1)).parts
    assert {label: debit.epsilon for label, debit in paid.items()}.items() <= planned.items()


@pytest.mark.parametrize(
    ("plant", "complaint"),
    [
        (mutants.groups_of_leaves_overlap, "more than"),
        (mutants.only_the_finest_level_of_a_margin_is_paid, "a round has no debit of its own"),
    ],
)
@ONE_OF_EACH_WITH_MARGINS
def test_a_planted_mistake_is_caught(
    method: Method, plant: mutants.Plant, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=complaint):
        compare(method, LONG, engine([]), engine([(0, 7, 1)]), epsilon=Fraction(1), seed=1)


@ONE_OF_EACH_WITH_MARGINS
def test_a_level_that_is_not_paid_is_not_sealed(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though choices leave no noise behind, so that all the noise together is worth less than was paid."""

    def published() -> Release:
        meter = Meter(engine([(0, 5, 1)] * 30), Unbooked(Fraction(1)), Recorder(2), domain_of(LONG))
        draft = method.publish(meter, LONG, method.plan(LONG, Fraction(1)))
        return sealed(draft, LONG, certificate(method, "unbooked", LONG, draft.steps, secure=False), meter)

    assert published().manifest.epsilon <= 1
    mutants.only_the_finest_level_of_a_margin_is_paid(monkeypatch)
    with pytest.raises(PrivacyError, match="must be worth no more than was paid"):
        published()


WHOLE = Tally(Grid.whole(LONG.shape), 2, (0, 1))


@given(st.sets(st.integers(1, 199)), st.lists(rows, max_size=20))
def test_groups_count_the_records_of_their_leaves(inner: set[int], table: list) -> None:
    borders = np.array([0, *sorted(inner), 200])
    cells = Cells(WHOLE, 1, borders)
    found = cells.read(engine(table).tally(WHOLE))
    assert found.shape == cells.shape == (1, len(borders) - 1)
    wages = np.array([row[1] for row in table], int)
    assert found[0].tolist() == [int(((lo <= wages) & (wages < hi)).sum()) for lo, hi in itertools.pairwise(borders)]


@pytest.mark.parametrize(
    ("by", "borders"),
    [
        (1, [0, 100, 90, 200]),
        (1, [0, 100, 100, 200]),
        (1, [1, 200]),
        (1, [0, 199]),
        (1, [0, 201]),
        (1, [-1, 200]),
        (1, [0]),
        (1, []),
        (1, [[0, 200]]),
        (0, [0, 100, 200]),
        ("class", [0, 2]),
        ("place", [0, 200]),
    ],
)
def test_borders_that_do_not_divide_the_leaves_are_refused(by: object, borders: list) -> None:
    with pytest.raises(PrivacyError, match="borders must divide"):
        Cells(WHOLE, by, np.array(borders, np.int64))


def test_borders_stay_as_they_were_when_they_were_checked() -> None:
    borders = np.array([0, 100, 200])
    cells = Cells(WHOLE, 1, borders)
    borders[1] = 0
    assert cells.borders.tolist() == [0, 100, 200]
