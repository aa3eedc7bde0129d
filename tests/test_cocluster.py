"""The structure of a holder's own table: in Python, in words, and what is refused. Nothing of it is private."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import grids
from command_line import HEADER, SCHEMA, contents, done, done_json, publish, refused
from sfumato import Schema, cocluster, datasets
from sfumato.errors import MethodError, TableError
from sfumato.holder import NOT_PRIVATE, Coclustering
from sfumato.methods.dpcocgen import NO_STRUCTURE
from sfumato.schema.schema import kinds_of

PAIRS = Schema.loads("""
name: pairs
attributes:
  id: {kind: identifier}
  letter: {kind: categorical, taxonomy: {early: [a, b], late: [y, z], never: [n]}}
  number: {kind: numeric, lower: 0, upper: 9, missing: none}
  class: {kind: class, taxonomy: [odd, even]}
""")


def pairs(rows: int = 900) -> pa.Table:
    """Draw rows in which a and z have low numbers, the others high ones, and one in ten has none at all."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abyz"), rows, p=[0.4, 0.3, 0.2, 0.1])
    numbers = np.where(np.isin(letters, ["a", "z"]), rng.integers(0, 4, rows), rng.integers(4, 10, rows))
    gone = (rng.random(rows) < 0.1) & (numbers >= 4)
    return pa.table(
        {
            "letter": letters,
            "number": pa.array(numbers, mask=gone),
            "class": rng.choice(["odd", "even"], rows),
        }
    )


@pytest.fixture(scope="module")
def found() -> Coclustering:
    return cocluster(pairs(), PAIRS)


# In Python.


def test_parts_have_names_values_and_rows(found: Coclustering) -> None:
    assert (found.grid.shape, found.rows, found.informative) == ((2, 2, 1), 900, (0, 1))
    assert kinds_of(PAIRS) == ["categorical", "numeric", "categorical"]
    assert [(part.name, part.values) for part in found.parts["letter"]] == [
        ("a | z", ("a", "z")),
        ("b | y | n", ("b", "y")),
    ] or [(part.name, part.values) for part in found.parts["letter"]] == [
        ("a | z | n", ("a", "z")),
        ("b | y", ("b", "y")),
    ]
    assert [part.name for part in found.parts["number"]] == ["[0, 4)", "[4, 10) or none"]
    assert [part.name for part in found.parts["class"]] == ["Any"]
    table = pairs().to_pylist()
    assert found.parts["letter"][0].rows == sum(row["letter"] in ("a", "z") for row in table)
    for parts in found.parts.values():
        assert sum(part.rows for part in parts) == 900


def test_cells_hold_their_rows(found: Coclustering) -> None:
    low = [row["number"] is not None and row["number"] < 4 for row in pairs().to_pylist()]
    assert found.counts.sum(axis=(0, 2)).tolist() == [sum(low), 900 - sum(low)]
    assert found.counts[0, 1].sum() == found.counts[1, 0].sum() == 0


def test_no_row_is_in_its_repr(found: Coclustering) -> None:
    assert "array" not in repr(found.parts)
    assert "900" not in repr(found)


def test_it_is_the_grid_that_co_clustering_finds() -> None:
    adult = datasets.adult(complete=False)
    schema = adult.schema.only(grids.ADULT)
    table = adult.table.select(grids.ADULT).drop_null()
    found = cocluster(table, schema)
    assert (found.grid.shape, found.rows) == ((7, 2, 5, 6, 2), 46_043)
    assert found.grid.cost == pytest.approx(660_154.99, abs=0.01)
    coarse = cocluster(table, schema, cells=100)
    assert coarse.counts.shape == coarse.grid.shape == (3, 2, 2, 4, 2)
    assert cocluster(table, schema, information=0.9).grid.information > 0.9


def test_what_cannot_be_co_clustered() -> None:
    with pytest.raises(MethodError, match="two attributes or more"):
        cocluster(pairs(), PAIRS.only(["letter"]))
    with pytest.raises(TableError, match="this one is empty"):
        cocluster(pairs(0), PAIRS)
    for share in (-0.1, 1.5, math.nan):
        with pytest.raises(MethodError, match="information"):
            cocluster(pairs(), PAIRS, information=share)
    with pytest.raises(MethodError, match="one of cells, parts and information"):
        cocluster(pairs(), PAIRS, cells=3, information=0.5)
    with pytest.raises(TableError, match="letter: "):
        cocluster(pairs().set_column(0, "letter", [["q"] * 900]), PAIRS)
    with pytest.raises(MethodError, match=r"cells\) must have at most .* the longest attributes are") as refusal:
        cocluster(datasets.adult().table, datasets.adult().schema)
    assert "coarser grid" in str(refusal.value)


# On the command line.


@pytest.mark.usefixtures("here")
def test_the_command_tells_the_grid_and_that_it_is_not_private() -> None:
    before = contents()
    text = done("cocluster", "people.csv")
    assert text.startswith(NOT_PRIVATE)
    for expected in ("300 rows in 2 x 1 x 1 x 1 x 2 = 4 cells", "[17, 51)", "level 0.", "information 100.0 %"):
        assert expected in text
    assert "Coarser grids\n" in text
    assert "[17, 51) with [51, 91)" in text
    assert contents() == before


@pytest.mark.usefixtures("here")
def test_the_command_tells_programs_the_same() -> None:
    plain = done_json("cocluster", "people.csv", "--attributes", "age, income", "--information", 0.5)
    assert (plain["private"], plain["warning"]) == (False, NOT_PRIVATE)
    assert (plain["rows"], plain["parts"], plain["cells"], plain["picture"]) == (300, [2, 2], 4, None)
    young, old = plain["attributes"]["age"]
    assert (young["name"], old["values"]) == ("[17, 51)", ["[51, 91)"])
    assert young["rows"] + old["rows"] == 300
    assert young["share"] == young["rows"] / 300
    assert plain["cost"] < plain["null_cost"]
    assert [step["information"] for step in plain["merges"]][-1] == pytest.approx(0, abs=1e-9)
    assert "NaN" not in json.dumps(plain)


@pytest.mark.usefixtures("here")
def test_a_schema_need_not_be_confirmed_to_look() -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("confirmed: true", "confirmed: false"))
    assert NOT_PRIVATE in done("cocluster", "people.csv")


@pytest.mark.usefixtures("here")
def test_independent_attributes_are_said_to_be() -> None:
    text = done("cocluster", "people.csv", "--attributes", "sex,planet")
    assert "the attributes tell nothing of each other" in text
    assert "Coarser grids" not in text


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--attributes", "age"], "two attributes or more"),
        (["--attributes", "age,shoes"], "attribute (shoes)"),
        (["--attributes", "age,name"], "attribute (name)"),
        (["--cells", "0"], "--cells"),
        (["--cells", "many"], "--cells"),
        (["--information", "1.1"], "--information"),
        (["--information", "nan"], "information"),
        (["--cells", "3", "--information", "0.5"], "cells, parts and information"),
        (["--schema", "none.yaml"], "none.yaml"),
        (["--out", "picture.jpg"], ".png or .svg"),
        (["--out", "picture"], ".png or .svg"),
    ],
)
def test_bad_options_are_refused(options: list[str], problem: str) -> None:
    assert problem in refused("cocluster", "people.csv", *options)


@pytest.mark.usefixtures("here")
def test_bad_tables_are_refused() -> None:
    assert "none.csv" in refused("cocluster", "none.csv", "--schema", "people.schema.yaml")
    Path("people.csv").write_text(HEADER)
    assert "this one is empty" in refused("cocluster", "people.csv")
    assert "the longest attributes are" in refused("cocluster", "adult")


# The warning of a release without structure.


@pytest.mark.usefixtures("here")
def test_a_release_without_structure_says_so_at_once_and_for_good() -> None:
    faint = ("--method", "dpcocgen", "--epsilon", "0.0001")
    command = [one for one in publish(*faint) if one not in ("--specializations", "3")]
    assert NO_STRUCTURE in done(*command)
    assert done_json(*command, "--out", "again")["warnings"] == [NO_STRUCTURE]
    assert done("inspect", "out").count(NO_STRUCTURE) == 2
    assert NO_STRUCTURE in json.loads(Path("out/manifest.json").read_text())["steps"]


@pytest.mark.usefixtures("here")
def test_a_release_with_structure_has_no_warning() -> None:
    clear = ("publish", "people.csv", "--method", "dpcocgen", "--epsilon", "4", "--attributes", "age,income")
    assert done_json(*clear, "--out", "out")["warnings"] == []
    assert "warning" not in done("inspect", "out")
    assert "age: 2 intervals" in done("inspect", "out")
