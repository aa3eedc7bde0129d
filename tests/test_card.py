"""The scorecard measures what applies, says what does not, and refuses what is not the release's table."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import handmade
import test_confidence_releases as confidence
import test_open_releases as open_releases
from handmade import released
from sfumato import Mondrian, Release, Schema
from sfumato.errors import ReleaseError, TableError
from sfumato.evaluate import card as cost
from sfumato.evaluate import scorecard
from sfumato.evaluate.card import NOT_PRIVATE, cost_of, costs_of_use
from sfumato.evaluate.fidelity import certainty_penalty, discernibility, precision_of, sizes_of
from sfumato.geometry.grid import Grid

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
    counts = np.bincount(GRID.regions_of(COLUMNS) * width + classes, minlength=6 * width).reshape(6, width)
    shown = np.full_like(counts, -1) if nobody else counts
    return released(schema, GRID, shown)


def test_all_measures_are_there_and_say_that_they_are_not_private() -> None:
    card = scorecard(release_of(), TABLE)
    precision = precision_of(list(SCHEMA.predictors.values()), GRID, sizes_of(release_of(), COLUMNS, 400))
    assert (card.rows, card.people, card.left_out) == (400, 400, ())
    assert len(card.lessons) == 8
    assert len(card.marginals) == 12
    assert card.queries[0].size == "all"
    assert {one.questions_of for one in card.intervals} >= {"1 attribute", "2 attributes", "3 attributes"}
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
    assert not any(one.questions_of == "3 attributes" for one in card.intervals)
    assert card.clusters
    assert not any("Classification" in line for line in card.notes)


def test_nothing_but_a_class_has_nothing_to_learn_from() -> None:
    schema = SCHEMA.only(["class"])
    card = scorecard(released(schema, Grid(()), np.array([[100, 300]])), TABLE)
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


# What work costs.

MEGABYTES = 64


@pytest.mark.skipif(not cost.FORGET.exists(), reason="only Linux tells")
def test_the_peak_is_what_was_held_for_a_while() -> None:
    _, spent = cost_of(lambda: np.ones(MEGABYTES * 2**17).sum())
    _, nothing = cost_of(lambda: None)
    assert MEGABYTES * 0.9 <= spent.peak_megabytes <= MEGABYTES * 2
    assert nothing.peak_megabytes < MEGABYTES / 2


def test_sleep_takes_time_but_no_processor() -> None:
    result, spent = cost_of(lambda: time.sleep(0.2) or "done")
    assert result == "done"
    assert spent.processor_seconds < 0.2 <= spent.seconds


def test_memory_is_unknown_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "FORGET", Path("/nowhere/clear_refs"))
    assert cost_of(lambda: 1)[1].peak_megabytes is None


def test_a_release_is_read_asked_and_drawn_from() -> None:
    release = handmade.release_of()
    names = ["reading it", "answering 2 range counts", f"drawing {release.total:,} records"]
    assert [one.what for one in costs_of_use(release, ["", ""], 0)] == names
