"""Adult: whole, in order, and described by a schema in which every value has its leaf."""

from __future__ import annotations

import hashlib
from importlib import resources

import numpy as np
import pytest

from sfumato.datasets import adult
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]
HEIGHTS = {
    "workclass": 3,
    "education": 4,
    "marital_status": 3,
    "occupation": 2,
    "relationship": 3,
    "race": 2,
    "sex": 1,
    "native_country": 3,
}
ORIGINAL = "21e0ea2f925a00338929a8c86c27354c72ac1c79819bcca81c7d91c3d64218c2"
"""The SHA-256 of the original lines without their header, `?` for missing, joined by newlines."""


@pytest.mark.parametrize(("complete", "rows"), [(True, 45_222), (False, 48_842)])
def test_every_value_fits_the_schema(complete: bool, rows: int) -> None:
    data = adult(complete=complete)
    coded = encode(open_table(data.table), data.schema)
    assert (coded.rows, data.table.num_rows, coded.misfits, coded.outside, coded.undeclared) == (rows, rows, (), {}, ())
    assert list(coded.columns) == data.table.column_names == COLUMNS
    income = coded.columns["income"]
    assert int(np.count_nonzero(income)) == (11_208 if complete else 11_687)


def test_taxonomies_have_the_agreed_heights() -> None:
    schema = adult().schema
    heights = {name: facts.tree.height for name, facts in schema.predictors.items() if isinstance(facts, Categorical)}
    assert heights == HEIGHTS
    assert sum(heights.values()) == 21
    assert {facts.root for facts in schema.attributes.values() if isinstance(facts, Categorical)} == {"Any"}


def test_schema_is_the_code_book() -> None:
    schema = adult().schema
    leaves = {name: facts.leaves for name, facts in schema.predictors.items() if isinstance(facts, Categorical)}
    assert list(leaves.values()) == [8, 16, 7, 14, 6, 5, 2, 41]
    assert (schema.target, schema.classes, schema.confirmed, schema.budget) == ("income", ("<=50K", ">50K"), True, None)
    grids = {name: facts.cells for name, facts in schema.predictors.items() if isinstance(facts, Numeric)}
    assert list(grids.values()) == [74, 150, 16, 201, 91, 99]
    for name in ("capital_gain", "capital_loss"):
        facts = schema.attributes[name]
        assert isinstance(facts, Numeric)
        assert (facts.label(0, 1), facts.edges[:2].tolist()) == ("0", [0, 1])
    education = schema.attributes["education"]
    assert isinstance(education, Categorical)
    assert education.tree.leaves[0] == "Preschool"
    assert education.tree.leaves[-1] == "Doctorate"


def test_missing_leaf_is_added_under_the_root_only_where_needed() -> None:
    whole, gappy = adult().schema, adult(complete=False).schema
    for name, facts in gappy.attributes.items():
        before = whole.attributes[name]
        if isinstance(facts, Categorical) and isinstance(before, Categorical) and facts.missing:
            assert name in ("workclass", "occupation", "native_country")
            assert facts.tree.nested == [*before.tree.nested, "Missing"]
            assert facts.tree.height == before.tree.height
        else:
            assert facts == before


def test_data_is_small_and_thanked() -> None:
    data = adult()
    assert "10.24432/C5XW20" in data.citation
    assert "CC BY 4.0" in data.citation
    assert len(resources.files("sfumato.datasets").joinpath("adult.parquet").read_bytes()) < 400_000
    assert len(repr(data)) < 300


def test_parquet_holds_the_original_in_its_order() -> None:
    table = adult(complete=False).table
    written = [["?" if cell is None else str(cell) for cell in column.to_pylist()] for column in table.columns]
    lines = "\n".join(",".join(row) for row in zip(*written, strict=True))
    assert hashlib.sha256(lines.encode()).hexdigest() == ORIGINAL
