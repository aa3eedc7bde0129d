"""The scorecard measures what applies, says what does not, and refuses what is not the release's table."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import test_confidence_releases as confidence
import test_open_releases as open_releases
from handmade import manifest_of
from sfumato import Mondrian, Release, Schema
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate import fidelity as queries
from sfumato.evaluate import scorecard
from sfumato.evaluate.card import NOT_PRIVATE
from sfumato.evaluate.fidelity import (
    RangeQuery,
    certainty_penalty,
    certainty_penalty_of,
    discernibility,
    errors_by_size,
    heights_of,
    precision_of,
    random_queries,
    relative_errors,
    sizes_of,
)
from sfumato.geometry.grid import Grid
from sfumato.models.regions import regions_of, sides_of
from sfumato.privacy.measurements import Noisy

SCHEMA = Schema.loads("""
name: people
confirmed: true
attributes:
  a: {kind: numeric, lower: 0, upper: 9}
  b: {kind: categorical, taxonomy: {p: [x, y], q: {r: [z, w], s: [v]}, u: }}
  class: {kind: class, taxonomy: [no, yes]}
""")
LEAVES = np.array(["x", "y", "z", "w", "v", "u"])
GRID = Grid(((0, 4, 10), (0, 2, 5, 6)))


def table_of(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 10, rows)
    classes = np.where((a >= 4) ^ (rng.random(rows) < 0.1), "yes", "no")
    return pd.DataFrame({"a": a, "b": LEAVES[rng.integers(0, 6, rows)], "class": classes})


TABLE = table_of(400)
COLUMNS = [TABLE["a"].to_numpy(np.uint8), TABLE["b"].map(list(LEAVES).index).to_numpy(np.uint8)]


def release_of(schema: Schema = SCHEMA, *, nobody: bool = False) -> Release:
    """Count the table without noise, or publish no people at all."""
    classes = (TABLE["class"] == "yes").to_numpy(np.int64) if schema.target else np.zeros(400, np.int64)
    width = len(schema.classes)
    counts = np.bincount(regions_of(GRID, COLUMNS) * width + classes, minlength=6 * width).reshape(6, width)
    shown = np.full_like(counts, -1) if nobody else counts
    return Release(schema, GRID, Noisy.even(shown, Fraction(1)), {}, manifest_of(schema, counts.size))


def test_all_measures_are_there_and_say_that_they_are_not_private() -> None:
    card = scorecard(release_of(), TABLE)
    precision = precision_of(list(SCHEMA.predictors.values()), GRID, sizes_of(release_of(), COLUMNS, 400))
    assert (card.rows, card.people, card.left_out) == (400, 400, ())
    assert len(card.lessons) == 8
    assert len(card.marginals) == 12
    assert card.queries[0].size == "all"
    assert len(card.clusters) == 4
    assert card.information == {
        "discernibility": discernibility(GRID, COLUMNS),
        "NCP": certainty_penalty(GRID, COLUMNS),
        "precision": pytest.approx(precision),
    }
    plain = json.loads(json.dumps(card.plain()))
    assert plain["warning"] == NOT_PRIVATE
    assert plain["lessons"][0]["cost"] == card.lessons[0].cost
    assert card == scorecard(release_of(), TABLE)
    assert card != scorecard(release_of(), TABLE, seed=1)


def test_without_a_test_set_the_table_was_also_published() -> None:
    assert any("also the published one" in line for line in scorecard(release_of(), TABLE).notes)
    tested = scorecard(release_of(), TABLE, table_of(100, seed=1))
    assert any("100 rows of the test set" in line for line in tested.notes)
    assert not any("also the published one" in line for line in tested.notes)
    truth = (table_of(100, seed=1)["class"] == "yes").mean()
    assert tested.lessons[0].la == pytest.approx(truth)


def test_every_protocol_gives_a_scorecard() -> None:
    folds = scorecard(release_of(), TABLE, protocol="10-fold")
    assert folds.lessons[1].ca == pytest.approx(((TABLE["a"] >= 4) == (TABLE["class"] == "yes")).mean())
    with pytest.raises(TableError, match="protocol"):
        scorecard(release_of(), TABLE, protocol="1/2")


def test_no_class_leaves_classification_out() -> None:
    schema = SCHEMA.only(["a", "b"])
    card = scorecard(release_of(schema), TABLE)
    assert card.left_out == ("Classification: the release has no class attribute.",)
    assert card.lessons == ()
    assert {one.ways for one in card.marginals} == {1, 2}
    assert card.clusters
    assert not any("Classification" in line for line in card.notes)


def test_nothing_but_a_class_has_nothing_to_learn_from() -> None:
    schema = SCHEMA.only(["class"])
    counts = Noisy.even(np.array([[100, 300]]), Fraction(1))
    card = scorecard(Release(schema, Grid(()), counts, {}, manifest_of(schema, 2)), TABLE)
    assert len(card.left_out) == 2
    assert card.information == {"discernibility": 400**2, "NCP": 0, "precision": 1}
    assert card.marginals


def test_a_release_without_people_has_no_records_to_judge() -> None:
    card = scorecard(release_of(nobody=True), TABLE)
    assert [line.split(":")[0] for line in card.left_out] == ["Classification", "Clusters", "Marginals"]
    assert all("no people" in line for line in card.left_out)
    assert (card.lessons, card.clusters, card.marginals) == ((), (), ())
    assert card.queries
    assert card.information["discernibility"] == discernibility(GRID, COLUMNS)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (TABLE.drop(columns="b"), "lacks b"),
        (TABLE.assign(b="CANARY"), "b: value not in the taxonomy"),
        (TABLE.assign(a="CANARY"), "a: not a number"),
    ],
)
def test_a_table_of_another_schema_is_refused(table: pd.DataFrame, reason: str) -> None:
    for given, what in (((table,), "the data"), ((TABLE, table), "the test set")):
        with pytest.raises(ReleaseError, match=f"{what} must be of the release's schema: .*{reason}") as error:
            scorecard(release_of(), *given)
        assert "CANARY" not in str(error.value)


def test_a_table_without_rows_is_refused() -> None:
    for given in ((TABLE[:0],), (TABLE, TABLE[:0])):
        with pytest.raises(TableError, match="must have a row"):
            scorecard(release_of(), *given)


def test_rows_outside_the_declared_range_are_told() -> None:
    assert any("a: 400 rows of the data outside" in line for line in scorecard(release_of(), TABLE.assign(a=99)).notes)


def test_groups_that_overlap_are_measured_as_far_as_it_goes(tmp_path: Path) -> None:
    release = confidence.publish(tmp_path)
    card = scorecard(release, confidence.TABLE)
    (left,) = card.left_out
    assert left.startswith("Accuracy on groups and by regions, Match Point of generalized rows: groups overlap")
    assert {one.taught_by for one in card.lessons} == {one.after for one in card.clusters} == {"drawn records"}
    sizes = release.model.counts.counts.sum(axis=1)
    widths = release.regions.ranges[:, :, 1] - release.regions.ranges[:, :, 0]
    shares = np.where(widths == 1, 0, widths / np.array(release.schema.shape))
    assert card.information["discernibility"] == (sizes**2).sum()
    assert card.information["NCP"] == pytest.approx(np.average(shares.mean(axis=1), weights=sizes))
    assert any("published records" in line for line in card.notes)
    assert card.queries
    assert card.marginals


def test_exact_groups_are_measured_like_noisy_ones(tmp_path: Path) -> None:
    release = open_releases.published(Mondrian(k=5), tmp_path)
    card = scorecard(release, open_releases.TABLE)
    assert card.left_out == ()
    assert card.people == card.rows


# Measures.


def test_heights_are_shares_of_the_way_to_the_root() -> None:
    """B is a tree of x, y under p; z, w under r under q; v under s under q; and u."""
    column = SCHEMA.predictors["b"]
    nodes = Grid(((0, 4, 10), (0, 2, 4, 5, 6)))
    assert heights_of(column, sides_of(nodes, 1)).tolist() == pytest.approx([1 - 1 / 2, 1 - 2 / 3, 0, 0])
    assert heights_of(column, sides_of(GRID, 1)).tolist() == pytest.approx([1 - 1 / 2, 1 - 1 / 3, 0])
    assert heights_of(column, sides_of(Grid.whole((10, 6)), 1)).tolist() == [1]
    mixed = Grid.of_groups([[list(range(10))], [[2, 4], [0, 5], [1, 3]]])
    assert heights_of(column, sides_of(mixed, 1)).tolist() == pytest.approx([1 - 1 / 3, 1, 1])


def test_intervals_are_as_high_as_if_the_grid_were_halved() -> None:
    column = Schema.loads("attributes: {a: {kind: numeric, lower: 0, upper: 15}}").predictors["a"]
    assert heights_of(column, sides_of(Grid(((0, 1, 2, 4, 8, 16),)), 0)) == pytest.approx([0, 0, 1 / 4, 2 / 4, 3 / 4])
    assert heights_of(column, sides_of(Grid(((0, 16),)), 0)).tolist() == [1]


def test_precision_averages_over_rows_and_attributes() -> None:
    columns, sizes = list(SCHEMA.predictors.values()), np.array([1, 0, 0, 2, 0, 1])
    heights = [np.log10([4, 6, 6, 6]), [1 / 2, 1 / 2, 1 / 2, 0]]
    assert precision_of(columns, GRID, sizes) == pytest.approx(1 - np.mean(heights))
    assert precision_of(columns, Grid.whole((10, 6)), np.array([5])) == 0
    assert precision_of(columns, GRID, np.zeros(6, int)) == 1
    assert certainty_penalty_of(GRID, np.zeros(6, int)) == 0


def test_queries_are_asked_in_parts_that_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, asked = {"a": COLUMNS[0], "b": COLUMNS[1]}, random_queries(SCHEMA, 25, seed=1)
    at_once = relative_errors(release_of(), asked, rows, 400)
    monkeypatch.setattr(queries, "MOST_AT_ONCE", 100)
    assert np.array_equal(relative_errors(release_of(), asked, rows, 400), at_once)


def test_errors_of_small_and_large_queries_stand_apart() -> None:
    release = release_of()
    rows = {"a": COLUMNS[0], "b": COLUMNS[1]}
    asked = [RangeQuery({"a": (5, 6), "b": (0, 1)}), RangeQuery({"a": (4, 10)}), RangeQuery({"a": (9, 9)})]
    errors = relative_errors(release, asked, rows, 400)
    shares = [query.truth(rows) / 400 for query in asked]
    assert shares[2] == 0
    assert 0.01 <= shares[0] <= 0.1 < shares[1]
    everything, small, large = errors_by_size(release, asked, rows, 400)
    assert (everything.queries, everything.mean, everything.median) == (3, errors.mean(), np.median(errors))
    assert (small.queries, small.mean) == (1, errors[2])
    assert (large.queries, large.mean) == (1, errors[1])
    assert [one.size for one in errors_by_size(release, asked[:1], rows, 400)] == ["all"]
