"""The public description: what it accepts, what it refuses and how it says so."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sfumato.errors import SchemaError
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.schema import Schema

SMALL = """
name: people
budget: 1/3
attributes:
  who: {kind: identifier}
  smoker: {kind: categorical, taxonomy: [No, Yes, Off, null, 1.0, 007]}
  born: {kind: numeric, lower: 1900-01-01, upper: 2020-12-31, step: 365}
  height: {kind: numeric, lower: 0.5, upper: 2.5, step: 0.1, missing: unknown}
  ill: {kind: class, taxonomy: [y, n]}
"""


def one(facts: dict[str, Any]) -> Schema:
    """Make a schema of one attribute."""
    return Schema.parse({"attributes": {"x": facts}})


def test_yaml_words_stay_text() -> None:
    smoker = Schema.loads(SMALL).attributes["smoker"]
    assert isinstance(smoker, Categorical)
    assert smoker.tree.leaves == ("No", "Yes", "Off", "null", "1.0", "007")


def test_schema_knows_its_parts() -> None:
    schema = Schema.loads(SMALL)
    assert schema.target == "ill"
    assert schema.classes == ("y", "n")
    assert list(schema.predictors) == ["smoker", "born", "height"]
    assert schema.shape == (6, 122, 21)
    assert schema.budget == Fraction(1, 3)
    assert not schema.confirmed
    assert schema.origin == "declared"


def test_dumped_schema_is_the_same_schema() -> None:
    schema = Schema.loads(SMALL)
    again = Schema.loads(schema.dump())
    assert again == schema
    assert again.digest == schema.digest
    assert again.dump() == schema.dump()


@settings(max_examples=50)
@given(
    st.lists(
        st.text(min_size=1, max_size=8).filter(lambda t: t == t.strip() != "Any"), min_size=1, max_size=6, unique=True
    ),
    st.decimals(min_value=-(10**6), max_value=10**6, places=3),
    st.integers(1, 10**5),
)
def test_any_names_and_bounds_survive_yaml(names: list[str], lower: Decimal, steps: int) -> None:
    if any(not name.isprintable() for name in names):
        names = ["plain"]
    schema = Schema(
        attributes={
            "c": Categorical(taxonomy=names),
            "n": Numeric(lower=lower, upper=lower + steps * Decimal("0.001"), step=Decimal("0.001")),
        }
    )
    again = Schema.loads(schema.dump())
    assert again.digest == schema.digest
    assert again.shape == (len(names), steps)


def test_digest_tells_schemas_apart() -> None:
    assert (
        one({"kind": "numeric", "lower": 0, "upper": 1}).digest
        != one({"kind": "numeric", "lower": 0, "upper": 2}).digest
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "schema"),
        ("- a", "schema"),
        ("{a: [", "well-formed YAML"),
        ("[" * 1500, "well-formed YAML"),
        ("name: a\nname: b\nattributes: {}", "well-formed YAML"),
        ("attributes: {a: &x {kind: identifier}, b: *x}", "well-formed YAML"),
        ("bogus: 1\nattributes: {}", "bogus"),
        ("confirmed: maybe\nattributes: {}", "confirmed"),
        ("budget: 0\nattributes: {}", "budget"),
        ("budget: -1\nattributes: {}", "budget"),
        ("budget: 1/0\nattributes: {}", "budget"),
        ("budget: much\nattributes: {}", "budget"),
        ("sfumato: 99\nattributes: {}", "Upgrade"),
        ("origin: elsewhere\nattributes: {}", "origin"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said) as caught:
        Schema.loads(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"kind": "zebra"}, "zebra"),
        ({"lower": 1, "upper": 2}, "kind"),
        ({"kind": "identifier", "taxonomy": ["a"]}, "taxonomy"),
        ({"kind": "categorical", "taxonomy": []}, "at least one leaf"),
        ({"kind": "categorical", "taxonomy": 5}, "list or a mapping"),
        ({"kind": "categorical", "taxonomy": ["a", "a"]}, "'a'"),
        ({"kind": "categorical", "taxonomy": ["a", " a "]}, "'a'"),
        ({"kind": "categorical", "taxonomy": ["a"], "missing": "b"}, "missing"),
        ({"kind": "categorical", "taxonomy": [{"g": ["a"]}], "unseen": "g"}, "unseen"),
        ({"kind": "categorical", "taxonomy": ["a"], "colour": "red"}, "colour"),
        ({"kind": "numeric", "lower": 5, "upper": 1}, "less than upper"),
        ({"kind": "numeric", "lower": 5, "upper": 5}, "less than upper"),
        ({"kind": "numeric", "lower": 0}, "upper"),
        ({"kind": "numeric", "lower": "low", "upper": 5}, "bound"),
        ({"kind": "numeric", "lower": 0, "upper": "inf"}, "bound"),
        ({"kind": "numeric", "lower": "nan", "upper": 1}, "bound"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "step": 0}, "step"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "step": -1}, "step"),
        ({"kind": "numeric", "lower": 0, "upper": 10**9}, "leaves"),
        ({"kind": "numeric", "lower": 0, "upper": "2020-01-01"}, "all be dates"),
        ({"kind": "numeric", "lower": "2020-01-01", "upper": "2021-01-01", "step": "0.5"}, "whole number of days"),
        ({"kind": "numeric", "lower": "2020-01-01", "upper": "2019-01-01"}, "less than upper"),
    ],
)
def test_bad_attributes_are_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        one(facts)


def test_two_classes_are_refused() -> None:
    facts = {"kind": "class", "taxonomy": ["a", "b"]}
    with pytest.raises(SchemaError, match="x, y"):
        Schema.parse({"attributes": {"x": facts, "y": facts}})


def test_schema_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Schema.loads(SMALL).name = "other"  # type: ignore[misc]


def test_taxonomies_may_be_mappings_lists_or_both() -> None:
    written = ({"A": ["a", "b"], "C": None}, [{"A": {"a": None, "b": []}}, "C"], [{"A": ["a", "b"], "C": ""}])
    trees = [Categorical(taxonomy=taxonomy).tree for taxonomy in written]
    assert trees[0] == trees[1] == trees[2]


def test_some_attributes_can_be_kept(adult) -> None:
    few = adult.schema.only(["sex", "age"])
    assert list(few.attributes) == ["age", "sex"]
    assert (few.target, few.name, few.budget) == (None, adult.schema.name, adult.schema.budget)
    assert few.digest != adult.schema.digest
    for name in ("shoes", ""):
        with pytest.raises(SchemaError, match=f"attribute \\({name}\\) must be one of the schema"):
            adult.schema.only(["sex", name])


def test_target_can_be_moved() -> None:
    moved = Schema.loads(SMALL).with_target("smoker")
    assert moved.target == "smoker"
    assert list(moved.predictors) == ["born", "height", "ill"]


def test_target_can_be_moved_after_the_schema_was_used() -> None:
    schema = Schema.loads(SMALL)
    assert (schema.target, list(schema.predictors), len(schema.digest)) == ("ill", ["smoker", "born", "height"], 64)
    moved = schema.with_target("smoker")
    assert moved.target == "smoker"
    assert list(moved.predictors) == ["born", "height", "ill"]
    assert moved.digest != schema.digest


@pytest.mark.parametrize("name", ["nobody", "who", "born"])
def test_target_must_be_categorical(name: str) -> None:
    with pytest.raises(SchemaError, match=rf"target \({name}\).*smoker"):
        Schema.loads(SMALL).with_target(name)


def test_numeric_grid_covers_both_bounds() -> None:
    height = Numeric(lower="0.5", upper="2.5", step="0.1", missing="unknown")
    assert (height.cells, height.leaves) == (20, 21)
    assert height.label(0, 1) == "[0.5, 0.6)"
    assert height.label(19, 21) == "[2.4, 2.5] or unknown"
    assert height.label(20, 21) == "unknown"


def test_dates_are_days() -> None:
    born = Numeric(lower="2020-01-01", upper="2020-12-31")
    assert born.lower == datetime.date(2020, 1, 1)
    assert (born.cells, born.label(59, 60), born.is_whole) == (366, "2020-02-29", True)


def test_missing_file_and_bad_encoding_are_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9".encode("latin-1"))
    for name in (path, tmp_path / "nowhere.yaml"):
        with pytest.raises(SchemaError, match="readable text file"):
            Schema.load(name)


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "people.schema.yaml"
    path.write_text(SMALL, encoding="utf-8")
    schema = Schema.load(path)
    assert schema == Schema.loads(SMALL)
    assert isinstance(schema.attributes["who"], Identifier)
