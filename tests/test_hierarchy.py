"""Hierarchies: what values can be generalized to, how far they have gone, and how many are left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.arrays import NONE
from sfumato.errors import SchemaError
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.hierarchy import Hierarchy
from sfumato.schema.schema import Schema
from sfumato.without_epsilon.confidence import distortion

SEX = Hierarchy.of(Categorical(taxonomy=["Female", "Male"]))


def halves(levels: int) -> Hierarchy:
    """Give a hierarchy that is halved so many times: the paper's figure 1 (a) has four levels below the root."""
    leaves = 1 << levels
    widths = [leaves >> level for level in range(levels + 1)]
    ranges = [(start, start + width) for width in widths for start in range(0, leaves, width)]
    return Hierarchy.of_ranges(np.array(ranges), tuple(range(leaves + 1)))


def path(column: Categorical | Numeric, leaf: int) -> list[str]:
    """Name the values that a leaf climbs through, from the finest that may be published."""
    hierarchy = Hierarchy.of(column)
    node = hierarchy.starts[np.searchsorted(hierarchy.finest, leaf, side="right") - 1]
    found = []
    while node != NONE:
        found.append(column.label(*hierarchy.ranges[node].tolist()))
        node = hierarchy.parents[node]
    return found


def test_the_paper_s_left_domain_sizes() -> None:
    age = halves(4)
    quarter = age.node_of(np.array([4]), np.array([8]))
    assert age.left_domain_sizes[quarter].tolist() == [7]
    assert SEX.left_domain_sizes.tolist() == [1, 3, 3]


def test_the_paper_s_distortion() -> None:
    age = halves(4)
    level_three, any_sex = age.node_of(np.array([4]), np.array([6])), np.array([0])
    assert distortion([age, SEX], [level_three, any_sex]).tolist() == [0.625]
    leaf, male = age.node_of(np.array([5]), np.array([6])), np.array([2])
    assert distortion([age, SEX], [leaf, male]).tolist() == [0]
    assert distortion([age, SEX], [np.array([0]), any_sex]).tolist() == [1]


def test_widths_double_from_those_named() -> None:
    age = Numeric(lower=17, upper=90, intervals=[5])
    assert path(age, 22 - 17) == ["[20, 25)", "[20, 30)", "[20, 40)", "[17, 40)", "[17, 80)", "[17, 91)"]
    assert path(age, 0) == ["[17, 20)", "[17, 40)", "[17, 80)", "[17, 91)"]
    given_widths = Numeric(lower=17, upper=90, intervals=[5, 25])
    assert path(given_widths, 22 - 17) == ["[20, 25)", "[17, 25)", "[17, 50)", "[17, 91)"]


def test_without_widths_they_double_from_the_step() -> None:
    assert path(Numeric(lower=0, upper=7), 5) == ["5", "[4, 6)", "[4, 8)", "[0, 8)"]
    assert path(Numeric(lower=-3, upper=3), 2) == ["-1", "[-2, 0)", "[-3, 0)", "[-3, 4)"]


def test_decimals_points_and_missing_values_have_their_place() -> None:
    height = Numeric(lower="0.5", upper="2.5", step="0.05", intervals=["0.1", "0.5"], missing="Unknown")
    assert path(height, 3) == ["[0.6, 0.7)", "[0.5, 1)", "[0.5, 2)", "[0.5, 2.5] or Unknown"]
    assert path(height, height.cells) == ["Unknown", "[0.5, 2.5] or Unknown"]
    gain = Numeric(lower=0, upper=1499, step=500, points=[0])
    assert path(gain, 0) == ["0", "[0, 500)", "[0, 1000)", "[0, 1500)"]


def test_a_level_is_the_finest_of_a_taxonomy() -> None:
    taxonomy = {"Artist": ["Dancer", "Writer"], "Retired": {}}
    assert path(Categorical(taxonomy=taxonomy, finest=1), 0) == ["Artist", "Any"]
    assert path(Categorical(taxonomy=taxonomy), 0) == ["Dancer", "Artist", "Any"]
    assert path(Categorical(taxonomy=taxonomy, finest=1), 2) == ["Retired", "Any"]


def test_only_children_are_no_step() -> None:
    assert path(Categorical(taxonomy={"Earth": {"Europe": ["Rome"]}, "Mars": {}}), 0) == ["Rome", "Any"]


@given(st.integers(-40, 40), st.integers(1, 60), st.integers(1, 9), st.integers(1, 4))
def test_every_step_tells_less(lower: int, size: int, step: int, first: int) -> None:
    hierarchy = Hierarchy.of(Numeric(lower=lower, upper=lower + size, step=step, intervals=[first]))
    below = np.flatnonzero(hierarchy.parents != NONE)
    inner, outer = hierarchy.ranges[below], hierarchy.ranges[hierarchy.parents[below]]
    assert ((outer[:, 0] <= inner[:, 0]) & (inner[:, 1] <= outer[:, 1])).all()
    assert (np.diff(outer) > np.diff(inner)).all()
    assert (hierarchy.distortions[below] < hierarchy.distortions[hierarchy.parents[below]]).all()
    assert hierarchy.ranges[hierarchy.starts][:, 0].tolist() == list(hierarchy.finest[:-1])


@pytest.mark.parametrize("intervals", [[0], [-5], [5, 12], [10, 5], [5, 5], ["2020-01-01"]])
def test_widths_that_do_not_nest_are_refused(intervals: list) -> None:
    with pytest.raises(SchemaError, match="intervals must be widths greater than 0, each a multiple"):
        Schema.parse({"attributes": {"age": {"kind": "numeric", "lower": 0, "upper": 9, "intervals": intervals}}})


def test_the_minimum_generalization_is_in_the_schema_file() -> None:
    schema = Schema.loads("""
attributes:
  age: {kind: numeric, lower: 0, upper: 9, intervals: [5]}
  job: {kind: categorical, taxonomy: {a: [b]}, finest: 1}
""")
    assert Schema.loads(schema.dump()) == schema


@pytest.mark.parametrize("finest", [0, 3])
def test_a_level_that_is_none_is_refused(finest: int) -> None:
    with pytest.raises(SchemaError, match="finest"):
        Schema.parse({"attributes": {"job": {"kind": "categorical", "taxonomy": {"a": ["b", "c"]}, "finest": finest}}})
