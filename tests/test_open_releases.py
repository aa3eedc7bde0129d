"""Releases without epsilon: the same faces as others, no noise, and manifests that promise what holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato
from forging import reseal
from handmade import assert_equal
from sfumato import TDS, Account, Mondrian, Release, Schema
from sfumato.errors import ReleaseError
from sfumato.release.manifest import Manifest
from sfumato.release.promises import KAnonymity
from sfumato.release.risk import believed_after, group_risk
from test_account import SCHEMA, TABLE

METHODS = pytest.mark.parametrize(
    "method", [Mondrian(k=5), Mondrian(k=5, diversity=2), TDS(k=7)], ids=lambda one: str(one)
)


def published(method: Mondrian | TDS, folder: Path) -> Release:
    account = Account(folder / "open.ledger", Schema.loads(SCHEMA.replace("budget: 2\n", "")))
    return account.publish(TABLE, method, out=folder / "release")


@METHODS
def test_files_hold_everything(method: Mondrian | TDS, tmp_path: Path) -> None:
    release = published(method, tmp_path)
    loaded = Release.load(tmp_path / "release")
    assert_equal(loaded, release)
    loaded.save(tmp_path / "again")
    assert_equal(Release.load(tmp_path / "again"), release)


@METHODS
def test_counts_are_exact_and_say_so(method: Mondrian | TDS, tmp_path: Path) -> None:
    release = published(method, tmp_path)
    everyone = release.count()
    assert (everyone.value, everyone.stddev, str(everyone)) == (60, 0, "60 (exact)")
    assert release.total == 60
    assert release.records("pandas")["count"].sum() == 60
    assert len(release.sample(seed=1)) == 60
    assert release.explain("")["estimate"].to_pylist() == [60]
    assert (sfumato.classify(release, TABLE) == TABLE["class"]).mean() >= 0.6


def test_a_part_of_a_group_rests_on_spreading(tmp_path: Path) -> None:
    release = published(Mondrian(k=30), tmp_path)
    answer = release.count("age < 25")
    assert answer.noise == answer.sampling == 0 < answer.model
    assert "(95 %)" in str(answer)


def test_only_groups_with_people_are_published(tmp_path: Path) -> None:
    release = published(Mondrian(k=5), tmp_path)
    assert release.groups < release.regions.regions
    assert (release.records("pandas").groupby(["job", "age"], observed=True)["count"].sum() >= 5).all()
    written = pq.read_table(tmp_path / "release" / "records.parquet")
    assert "noisy_count" not in written.column_names
    assert min(written["count"].to_pylist()) > 0


def test_the_manifest_promises_what_holds_and_no_epsilon(tmp_path: Path) -> None:
    release = published(Mondrian(k=5, diversity=2, sensitive="job", quasi="age"), tmp_path)
    plain = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert plain["promise"] == {"model": "k-anonymity", "k": 5, "quasi": ["age"], "sensitive": "job", "diversity": 2}
    assert "5-anonymous over age" in plain["guarantee"]
    assert "at least 2 different values of job" in plain["guarantee"]
    assert "NOT differentially private" in plain["guarantee"]
    assert "knows a person's age and nothing else" in plain["adversary"]
    assert not {"epsilon", "neighbours", "randomness"} & plain.keys()
    assert repr(release) == f"Release(mondrian, k-anonymity, groups={release.groups}, NO EPSILON)"
    assert list(release.schema.attributes) == ["job", "age"]


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        (KAnonymity(50, ("job", "age"), "class"), "groups must be as its manifest promises"),
        (KAnonymity(5, ("job", "age"), "class", 3), "groups must be as its manifest promises"),
    ],
)
def test_a_promise_that_the_counts_break_is_not_believed(tmp_path: Path, promise: KAnonymity, told: str) -> None:
    published(Mondrian(k=5), tmp_path)
    words = {"guarantee": promise.guarantee, "adversary": promise.adversary}
    reseal(tmp_path / "release", promise=promise.plain(), **words)
    with pytest.raises(ReleaseError, match=told):
        Release.load(tmp_path / "release")


@pytest.mark.parametrize("promise", [{"model": "trust me"}, {"model": "k-anonymity", "k": "5", "quasi": ["age"]}, 7])
def test_an_unknown_promise_is_no_manifest(tmp_path: Path, promise: object) -> None:
    published(Mondrian(k=5), tmp_path)
    reseal(tmp_path / "release", promise=promise)
    with pytest.raises(ReleaseError, match="must be a Sfumato manifest"):
        Release.load(tmp_path / "release")


def test_words_that_say_more_than_the_promise_are_refused(tmp_path: Path) -> None:
    published(Mondrian(k=5), tmp_path)
    reseal(tmp_path / "release", guarantee="Nobody can be found.")
    with pytest.raises(ReleaseError, match="must say what its ledger says"):
        Release.load(tmp_path / "release")


def test_exact_counts_do_not_pass_for_private_ones(tmp_path: Path) -> None:
    release = published(Mondrian(k=5), tmp_path)
    manifest = Manifest("0.1.0", "x", "diffmulti", {}, (), True, release.schema.digest)
    Release(release.schema, release.draft, manifest).save(tmp_path / "forged")
    with pytest.raises(ReleaseError, match="must have the noise that its manifest tells of"):
        Release.load(tmp_path / "forged")


def test_risks_follow_from_the_groups(tmp_path: Path) -> None:
    release = published(Mondrian(k=5), tmp_path)
    found = group_risk(release)
    sizes = release.records("pandas").groupby(["job", "age"], observed=True)["count"].sum()
    assert found.prosecutor == found.journalist == 1 / sizes.min()
    assert found.marketer == pytest.approx(len(sizes) / 60)
    assert found.worst_confidence == 1.0
    assert sum(groups for _, groups, _ in found.distribution) == len(sizes)
    assert sum(records for _, _, records in found.distribution) == 60
    assert group_risk(release, 600).journalist == pytest.approx(found.prosecutor / 10)
    twice = {"job": np.tile([0, 2, 3], 40), "age": np.tile([2, 22, 42], 40)}
    assert group_risk(release, twice).journalist == pytest.approx(found.prosecutor / 2)


def test_a_population_holds_the_records(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="must hold the people"):
        group_risk(published(Mondrian(k=5), tmp_path), 59)


def test_an_epsilon_has_no_groups_to_hide_in(people: Release) -> None:
    with pytest.raises(ReleaseError, match="must have exact counts"):
        group_risk(people)


def test_odds_grow_by_at_most_the_factor() -> None:
    assert believed_after(0.5, 3) == 0.75
    assert believed_after(0, 100) == 0
    assert believed_after(1, 100) == 1
