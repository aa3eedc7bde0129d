"""DPCocGen from a table to a release: what is paid, what is learnt, what is warned of, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from replay import Recorder, run
from sfumato import Account, DPCocGen, Release, Schema
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError
from sfumato.geometry.grid import Grid
from sfumato.methods.dpcocgen import NO_STRUCTURE
from sfumato.privacy.measurements import Draft
from sfumato.release.manifest import Manifest

SCHEMA = Schema.loads("""
name: towns
confirmed: true
attributes:
  town: {kind: categorical, taxonomy: {North: [Oslo, Bergen], South: [Rome, Bari, Nice]}}
  age: {kind: numeric, lower: 0, upper: 11, missing: Unknown}
  sport: {kind: categorical, taxonomy: [ski, swim, chess]}
  class: {kind: class, taxonomy: [poor, rich]}
""")
"""5 x 13 x 3 leaves and 2 classes."""


def people(size: int = 20_000, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Draw rows in which all follows a hidden side: towns 0, 2, 4, ages up to 5, sport 0 and class 0, or the others."""
    rng = np.random.default_rng(seed)
    side = rng.random(size) < 0.4
    town = np.where(side, rng.choice([0, 2, 4], size), rng.choice([1, 3], size))
    age = np.where(side, rng.integers(0, 6, size), rng.integers(6, 13, size))
    sport = np.where(side ^ (rng.random(size) < 0.1), 0, rng.integers(1, 3, size))
    columns = [column.astype(np.uint8) for column in (town, age, sport)]
    return columns, (~side ^ (rng.random(size) < 0.1)).astype(np.uint8)


def published(
    method: DPCocGen, epsilon: object, schema: Schema = SCHEMA, rows: int = 20_000, seed: int = 1
) -> tuple[Draft, list]:
    columns, classes = people(rows)
    kept = [columns[list(SCHEMA.predictors).index(name)] for name in schema.predictors]
    engine = MemoryEngine(kept, classes if schema.target else np.zeros(rows, np.uint8))
    draft, purse = run(method, schema, engine, Fraction(epsilon), Recorder(seed))
    return draft, purse.debits


def sealed(draft: Draft, debits: list) -> Release:
    manifest = Manifest("0.1.0", "publication", "dpcocgen", {}, tuple(debits), False, SCHEMA.digest, draft.steps)
    return Release(SCHEMA, draft, manifest)


def groups(draft: Draft, attribute: int) -> list[list[int]]:
    assert isinstance(draft.structure, Grid)
    parts = draft.structure.part_of(attribute)
    return [np.flatnonzero(parts == part).tolist() for part in range(draft.structure.parts[attribute])]


# What is learnt and paid.


def test_planted_groups_are_found() -> None:
    draft, _ = published(DPCocGen(), 2)
    assert groups(draft, 0) == [[0, 2, 4], [1, 3]]
    assert groups(draft, 1) == [list(range(6)), list(range(6, 13))]
    assert groups(draft, 2) == [[0], [1, 2]]
    assert draft.steps == ("town: 2 groups", "age: 2 intervals", "sport: 2 groups")


VARIANTS = [
    DPCocGen(),
    DPCocGen(margins=0),
    DPCocGen(histogram="0.2", margins="0.3", inside="evenly"),
    DPCocGen(cells=4),
    DPCocGen(information=1),
    DPCocGen.as_published(),
    DPCocGen.as_published(cells=8),
]


@pytest.mark.parametrize("method", VARIANTS, ids=str)
@pytest.mark.parametrize("epsilon", ["1/3", "1", "1000"])
def test_debits_sum_to_epsilon_exactly(method: DPCocGen, epsilon: str) -> None:
    draft, debits = published(method, epsilon, rows=2000)
    assert sum(debit.epsilon for debit in debits) == Fraction(epsilon)
    assert [debit.label for debit in debits if "margin" not in debit.label] == ["histogram", "counts"]
    assert debits[0].cells == 5 * 13 * 3 * 2
    assert draft.final.noisy.rates == (debits[-1].epsilon,)


@pytest.mark.parametrize("method", VARIANTS, ids=str)
def test_the_least_epsilon_is_not_exceeded(method: DPCocGen) -> None:
    spent = sum(debit.epsilon for debit in published(method, "0.000001", rows=2000)[1])
    assert Fraction(1, 10**6) - Fraction(1, 10**9) < spent <= Fraction(1, 10**6)


@pytest.mark.parametrize("histogram", ["0.05", "0.9"])
def test_noise_too_small_for_floating_point_breaks_nothing(histogram: str) -> None:
    draft, debits = published(DPCocGen(margins=0, histogram=histogram), 1000)
    assert not draft.steps[-1].startswith("warning")
    assert sealed(draft, debits).count().value == pytest.approx(20_000)


def test_margins_of_all_attributes_are_bought_also_of_what_the_grid_tells() -> None:
    draft, debits = published(DPCocGen(cells=12), 2)
    every = {f"margin of {name}" for name in SCHEMA.attributes}
    assert {debit.label for debit in debits} == every | {"histogram", "counts"}
    assert [debit.label for debit in debits] == [one.label for one in draft.measurements]


def test_all_that_was_paid_for_is_kept() -> None:
    draft, debits = published(DPCocGen(), 1)
    assert [one.label for one in draft.measurements] == [debit.label for debit in debits]
    for one, debit in zip(draft.measurements, debits, strict=True):
        assert (one.noisy.rates, one.counts.size) == ((debit.epsilon,), debit.cells)
    assert draft.measurements[0].counts.shape == (5 * 13 * 3, 2)


def test_as_published_has_neither_margins_nor_histogram_and_spreads_evenly() -> None:
    draft, debits = published(DPCocGen.as_published(cells=8), 2)
    assert ([one.label for one in draft.measurements], draft.model) == (["counts"], "grid")
    assert [(debit.label, debit.epsilon) for debit in debits] == [("histogram", 1), ("counts", 1)]
    release = sealed(draft, debits)
    town, inside = (sorted(groups(draft, 0), key=len)[-1], release.sample_codes(12_000, seed=1)["town"])
    drawn = np.bincount(inside, minlength=5)[town]
    assert drawn.min() > 0.85 * drawn.max()


@pytest.mark.parametrize(("cells", "regions"), [(1, 1), (2, 2), (4, 4), (8, 8)])
def test_a_number_of_groups_is_kept_to_and_made_use_of(cells: int, regions: int) -> None:
    """The class is counted value by value in any case, so its own parts do not count."""
    draft, _ = published(DPCocGen(cells=cells), 2)
    assert draft.structure.regions == regions


def test_parts_of_the_class_do_not_use_up_groups() -> None:
    """Two groups of towns and two parts of the class are two groups, so that nothing need be merged."""
    kept = SCHEMA.only(["town", "class"])
    finest, allowed = (published(DPCocGen(**one), 2, kept)[0] for one in ({"information": 1}, {"cells": 2}))
    assert groups(finest, 0) == groups(allowed, 0) == [[0, 2, 4], [1, 3]]


def test_more_groups_than_the_best_grid_has_are_not_made() -> None:
    finest, allowed = (published(DPCocGen(**options), 2)[0] for options in ({"information": 1}, {"cells": 10**9}))
    assert allowed.structure == finest.structure


def test_less_information_is_coarser() -> None:
    sizes = [published(DPCocGen(information=share), 50)[0].structure.regions for share in ("1", "0.6", "0.001")]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_a_class_is_not_needed() -> None:
    draft, _ = published(DPCocGen(), 2, SCHEMA.only(["town", "age"]))
    assert groups(draft, 0) == [[0, 2, 4], [1, 3]]
    assert draft.final.counts.shape == (draft.structure.regions, 1)


def test_one_attribute_and_the_class_are_two() -> None:
    draft, _ = published(DPCocGen(), 2, SCHEMA.only(["town", "class"]))
    assert groups(draft, 0) == [[0, 2, 4], [1, 3]]


def test_what_is_missing_lies_at_the_end_and_is_drawn_as_missing(tmp_path) -> None:
    schema = Schema.loads("""
name: gaps
confirmed: true
attributes:
  age: {kind: numeric, lower: 0, upper: 9, missing: Unknown}
  sex: {kind: categorical, taxonomy: [f, m]}
""")
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 3000)
    ages = [None if one else int(age) for one, age in zip(sex, rng.integers(0, 10, 3000), strict=True)]
    table = pa.table({"age": ages, "sex": ["fm"[one] for one in sex]})
    release = Account(tmp_path / "ledger", schema).publish(table, DPCocGen(), 5, unsafe_seed=1)
    assert groups(release.draft, 0) == [list(range(10)), [10]]
    drawn = release.sample(seed=1).to_pylist()
    assert {row["sex"] for row in drawn if row["age"] is None} == {"m"}
    assert release.count("sex = m and age >= 0").value == pytest.approx(0, abs=60)


# Warnings.


@pytest.mark.parametrize("epsilon", ["0.000001", "0.0001"])
@pytest.mark.parametrize("seed", range(2))
def test_an_epsilon_that_drowns_everything_gives_a_release_with_a_warning(epsilon: str, seed: int) -> None:
    draft, debits = published(DPCocGen(), epsilon, seed=seed)
    assert NO_STRUCTURE in draft.steps
    release = sealed(draft, debits)
    assert release.manifest.warnings == (NO_STRUCTURE,)
    assert len(release.sample_codes(100, seed=1)["age"]) == 100
    assert np.isfinite(release.count("age < 5").value)


@pytest.mark.parametrize("seed", range(3))
def test_an_empty_table_is_warned_of(seed: int) -> None:
    assert NO_STRUCTURE in published(DPCocGen(), 1, rows=0, seed=seed)[0].steps


def test_two_attributes_of_one_value_each_have_no_structure() -> None:
    schema = Schema.loads("""
attributes:
  planet: {kind: categorical, taxonomy: [Earth]}
  star: {kind: categorical, taxonomy: [Sun]}
""")
    engine = MemoryEngine([np.zeros(50, np.uint8)] * 2, np.zeros(50, np.uint8))
    for method in (DPCocGen(), DPCocGen.as_published()):
        draft, purse = run(method, schema, engine, Fraction(1), Recorder(1))
        assert (draft.structure.regions, draft.steps[-1]) == (1, NO_STRUCTURE)
        assert sum(debit.epsilon for debit in purse.debits) == 1


# Refusals.


def test_one_attribute_is_refused() -> None:
    with pytest.raises(MethodError, match="two attributes or more"):
        DPCocGen().plan(SCHEMA.only(["age"]), Fraction(1))


def test_a_domain_too_large_is_refused_with_its_longest_attributes() -> None:
    schema = Schema.loads("""
attributes:
  short: {kind: categorical, taxonomy: [a, b, c, d, e, f, g, h, i, j]}
  long: {kind: numeric, lower: 0, upper: 999990}
  mid: {kind: numeric, lower: 0, upper: 99}
""")
    with pytest.raises(MethodError, match="999,991,000 cells") as refused:
        DPCocGen().plan(schema, Fraction(1))
    assert "the longest attributes are long (999,991), mid (100), short (10)" in str(refused.value)
    with pytest.raises(MethodError, match="must have at most 389 cells"):
        DPCocGen(max_cells=389).plan(SCHEMA, Fraction(1))
    assert DPCocGen(max_cells=390).plan(SCHEMA, Fraction(1)).total == 1


def test_a_domain_that_cannot_be_co_clustered_is_refused_before_anything_is_paid() -> None:
    schema = Schema.loads("""
attributes:
  long: {kind: numeric, lower: 1, upper: 33}
  longer: {kind: numeric, lower: 1, upper: 999990}
  short: {kind: categorical, taxonomy: [a, b]}
""")
    with pytest.raises(MethodError, match=r"65,999,340 cells\) must have at most 33,554,432 cells") as refused:
        DPCocGen(max_cells=10**9).plan(schema, Fraction(1))
    assert "whatever max_cells says" in refused.value.remedy
    with pytest.raises(MethodError, match="at most 10,000,000 cells") as refused:
        DPCocGen().plan(schema, Fraction(1))
    assert "raise max_cells" in refused.value.remedy


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cells": 4, "information": "0.5"}, "cells or by information, not both"),
        ({"cells": 0}, r"cells \(0\)"),
        ({"cells": -1}, r"cells \(-1\)"),
        ({"cells": "many"}, r"cells \(many\)"),
        ({"information": "1.1"}, "information"),
        ({"information": -1}, "information"),
        ({"histogram": 0}, "histogram"),
        ({"histogram": 1}, "histogram"),
        ({"margins": 1}, "margins"),
        ({"correction": "none"}, "correction"),
        ({"inside": "outside"}, "inside"),
        ({"restarts": -1}, "restarts"),
        ({"restarts": 1001}, "restarts"),
        ({"max_cells": 1}, "max_cells"),
    ],
)
def test_parameters_out_of_bounds(options: dict, problem: str) -> None:
    with pytest.raises(MethodError, match=problem):
        DPCocGen(**options)


def test_parameters_come_as_text_too() -> None:
    assert DPCocGen(cells="12", margins="0.1") == DPCocGen(cells=12, margins=Fraction(1, 10))
    assert DPCocGen.as_published(cells="12").cells == 12
    with pytest.raises(MethodError, match="cells"):
        DPCocGen.as_published(cells="0")


@pytest.mark.slow
def test_five_attributes_of_adult(adult, tmp_path) -> None:
    schema = adult.schema.only(["age", "workclass", "education", "relationship", "sex"])
    account = Account(tmp_path / "ledger", schema)
    release = account.publish(adult.table, DPCocGen(), 1, unsafe_seed=1, out=tmp_path / "out")
    assert not release.manifest.warnings
    assert release.total == pytest.approx(45_222, rel=0.01)
    loaded = Release.load(tmp_path / "out")
    assert loaded.count("relationship = Husband and sex = Female").value < 300
    assert loaded.sample(100).num_rows == 100
