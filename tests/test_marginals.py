"""The method of marginals: what it asks, on tables of every kind; and mistakes in its choice, planted and caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replay import Recorder, compare, run
from sfumato import Marginals, Release, Schema, seeded_release
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError
from sfumato.methods.marginals import DUST, Division
from sfumato.privacy.misfits import Misfits

PAIRS = Schema.loads("""
attributes:
  a: {kind: categorical, taxonomy: [p, q, r]}
  b: {kind: categorical, taxonomy: [s, t, u]}
  c: {kind: numeric, lower: 0, upper: 3}
  class: {kind: class, taxonomy: [Y, N]}
""")
SIZES = (*PAIRS.shape, len(PAIRS.classes))
METHOD = Marginals(heavy=0)


def engine(rows: list[tuple[int, ...]]) -> MemoryEngine:
    table = np.array(rows, np.uint8).reshape(len(rows), len(SIZES))
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


def rows_of(number: int, seed: int = 1) -> list[tuple[int, ...]]:
    """People of whom a and b are the same, and nothing else hangs together."""
    rng = np.random.default_rng(seed)
    same = rng.integers(0, 3, number)
    columns = [same, same, rng.integers(0, 4, number), rng.integers(0, 2, number)]
    return list(map(tuple, np.stack(columns, axis=1).tolist()))


def test_the_pair_that_margins_tell_worst_is_measured_first() -> None:
    draft, _ = run(METHOD, PAIRS, engine(rows_of(4000)), Fraction(4), Recorder(3))
    first = next(one for one in draft.measurements if one.label == "pair 1")
    assert first.question.attributes == (0, 1)
    assert draft.steps[0].startswith("pair 1: a and b")


def test_all_is_spent_and_two_passes_are_made() -> None:
    class Counting(MemoryEngine):
        passes = 0

        def tally(self, tally):
            Counting.passes += 1
            return super().tally(tally)

    table = np.array(rows_of(2000), np.uint8)
    counted = Counting(list(table.T[:-1]), table.T[-1])
    _, purse = run(METHOD, PAIRS, counted, Fraction(1), Recorder(5))
    assert Fraction(1) - sum(debit.epsilon for debit in purse.debits) <= 2 * DUST
    assert Counting.passes <= 3  # margins, pairs, and margins again if something is left


def by_true_margins(patch: pytest.MonkeyPatch) -> None:
    """Expect what independence of the true margins would give: one record then moves what is expected elsewhere."""
    real = Misfits._misfits

    def misfits(self, counts, marginal):
        grid = self.tally.marginals[marginal]
        table = counts.marginals[marginal]
        cells = table.reshape(*(grid.parts[at] for at in grid.split_attributes), -1)
        total = max(int(table.sum()), 1)
        rows, columns = cells.sum(axis=(1, 2)), cells.sum(axis=0)
        expected = (rows[:, None, None] * columns[None] * 64) // total
        object.__setattr__(self, "expected", (expected.reshape(table.shape),) * len(self.tally.marginals))
        return real(self, counts, marginal)

    patch.setattr(Misfits, "_misfits", misfits)


def only_those_that_hold_someone(patch: pytest.MonkeyPatch) -> None:
    """Offer no pair of which a cell is empty."""
    real = Misfits.scores

    def scores(self, counts):
        found = real(self, counts)
        return found[: max(1, len(found) - int((counts.marginals[0] == 0).sum()))]

    patch.setattr(Misfits, "scores", scores)


def half_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    """Count a misfit in both directions."""
    real = Misfits.scores
    patch.setattr(Misfits, "scores", lambda self, counts: 2 * real(self, counts))


@pytest.mark.parametrize("plant", [by_true_margins, only_those_that_hold_someone, half_the_sensitivity])
def test_a_mistake_in_the_choice_is_caught(plant, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows_of(3)
    compare(METHOD, PAIRS, engine(table), engine([*table, (0, 2, 1, 0)]), epsilon=Fraction(1), seed=1)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        compare_often(table)


def compare_often(table: list[tuple[int, ...]]) -> None:
    for seed in range(6):
        compare(METHOD, PAIRS, engine(table), engine([*table, (0, 2, 1, 0)]), epsilon=Fraction(1), seed=seed)


def published(schema: str, rows: dict[str, list], epsilon: str = "1", **parameters: object) -> Release:
    import pyarrow as pa

    declared = Schema.loads(f"name: table\nconfirmed: true\nattributes:\n{schema}")
    return seeded_release(pa.table(rows), declared, Marginals(**parameters), epsilon, 1)


RNG = np.random.default_rng(4)
TABLES = {
    "one attribute": ("  x: {kind: numeric, lower: 0, upper: 9}", {"x": RNG.integers(0, 10, 300).tolist()}),
    "no row": ("  x: {kind: numeric, lower: 0, upper: 9}", {"x": [1][:0]}),
    "one leaf": (
        "  x: {kind: categorical, taxonomy: [a]}\n  y: {kind: numeric, lower: 0, upper: 3}",
        {"x": ["a"] * 50, "y": RNG.integers(0, 4, 50).tolist()},
    ),
    "many leaves": (
        "  x: {kind: numeric, lower: 0, upper: 99999}\n  y: {kind: categorical, taxonomy: [a, b]}",
        {"x": RNG.integers(0, 99999, 2000).tolist(), "y": RNG.choice(["a", "b"], 2000).tolist()},
    ),
    "twenty classes": (
        "  x: {kind: numeric, lower: 0, upper: 20}\n  y: {kind: numeric, lower: 0, upper: 5}\n"
        f"  z: {{kind: class, taxonomy: [{', '.join(f'c{at}' for at in range(20))}]}}",
        {
            "x": RNG.integers(0, 21, 3000).tolist(),
            "y": RNG.integers(0, 6, 3000).tolist(),
            "z": [f"c{at}" for at in RNG.integers(0, 20, 3000)],
        },
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind_are_published_and_answer(kind: str) -> None:
    schema, rows = TABLES[kind]
    release = published(schema, rows)
    size = len(next(iter(rows.values())))
    assert release.total == pytest.approx(size, abs=150)
    low, high = release.count("x <= 3" if kind != "one leaf" else "y <= 1").interval
    assert low <= high
    drawn = release.sample(40, "pandas", seed=1)
    assert len(drawn) == 40
    assert list(drawn.columns) == list(rows)


def test_a_table_of_a_class_alone_is_refused_in_the_plan() -> None:
    schema = Schema.loads("attributes: {z: {kind: class, taxonomy: [a, b]}}")
    with pytest.raises(MethodError, match="two values or more besides the class"):
        METHOD.plan(schema, Fraction(1))


def test_the_budget_is_divided_by_the_size() -> None:
    small, large = (Division.of(PAIRS, size, Fraction(1), 80) for size in (300, 300_000))
    assert small.rounds <= large.rounds
    for one in (small, large):
        assert sum(one.margins.values()) + sum(one.leaves.values()) <= 1
        assert set(one.margins) == {0, 1, 2}
