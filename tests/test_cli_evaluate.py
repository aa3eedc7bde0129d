"""What a release is worth, on the command line: for the holder's eyes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from command_line import SCHEMA, done, done_json, people, publish, refused, write
from test_cli_confidence import GIVEN, STATISTICS


def test_the_text_tells_every_measure_and_that_it_is_not_private(release: Path) -> None:
    text = done("evaluate", release, "people.csv")
    assert text.startswith("Worked out from the raw data: for the holder's eyes, not private, not to be published.\n")
    for expected in (
        *("Classification of income; LA", "BA (raw)", "linear SVM", "AUC", "benefit", "discernibility", "NCP"),
        *("precision", "Kullback-Leibler", "3-way", "small (< 1 %)", "Match Point", "also the published one"),
        *("Intervals that hold the truth", "95 % hold", "50 % hold", "score", "3 attributes", "answers < 1 %"),
        *("What using the release costs", "reading it", "answering 1,000 range counts", "peak MB"),
    ):
        assert expected in text
    assert "CANARY" not in text


def test_a_test_set_is_tested_on(release: Path, here: Path) -> None:
    write(people(50), here / "new.csv")
    card = done_json("evaluate", release, "people.csv", "--test", "new.csv")
    assert any("50 rows of the test set" in line for line in card["notes"])
    assert card["warning"].endswith("not private, not to be published.")
    assert len(card["lessons"]) == 8
    held = {(one["questions_of"], one["level"]): one for one in card["intervals"]}
    assert {level for _, level in held} == {0.95, 0.5}
    assert held["2 attributes", 0.95]["coverage"] >= held["2 attributes", 0.5]["coverage"]
    assert 0 < held["2 attributes", 0.5]["width"] < held["2 attributes", 0.95]["width"]
    assert "protocol must come without a test set" in refused(
        *("evaluate", release, "people.csv", "--test", "new.csv", "--protocol", "4/5")
    )


def test_a_protocol_splits_the_table(release: Path) -> None:
    card = done_json("evaluate", release, "people.csv", "--protocol", "80/20")
    assert any("protocol 80/20" in line for line in card["notes"])


def test_unseen_values_in_a_test_set_are_refused(release: Path, here: Path) -> None:
    table = people(50).to_pandas()
    write_to = here / "new.csv"
    table.assign(job="CANARY").to_csv(write_to, index=False)
    told = refused("evaluate", release, "people.csv", "--test", "new.csv")
    assert "the test set must be of the release's schema" in told
    assert "50" not in told
    table.drop(columns="sex").to_csv(write_to, index=False)
    assert "lacks sex" in refused("evaluate", release, "people.csv", "--test", "new.csv")
    assert "nowhere.csv" in refused("evaluate", release, "people.csv", "--test", "nowhere.csv")


def test_a_release_of_another_schema_is_refused(release: Path) -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("upper: 90", "upper: 91"))
    assert "which declares age otherwise or not at all" in refused("evaluate", release, "people.csv")
    assert "which declares name otherwise or not at all" in refused("evaluate", release, "adult")
    Path("people.schema.yaml").unlink()
    assert "Classification of income" in done("evaluate", release, "people.csv")


@pytest.mark.usefixtures("here")
def test_some_attributes_and_another_class_are_still_of_the_schema() -> None:
    done(*publish("--attributes", "age,sex,job", "--target", "job"))
    assert "Classification of job" in done("evaluate", "out", "people.csv")


@pytest.mark.usefixtures("here")
def test_no_class_is_told() -> None:
    done(*publish()[:2], "--method", "laplace", "--epsilon", 1, "--attributes", "sex,job", "--out", "out")
    text = done("evaluate", "out", "people.csv")
    assert "Left out\n  Classification: the release has no class attribute." in text
    assert "BA" not in text


@pytest.mark.usefixtures("here")
def test_groups_that_overlap_are_told() -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    Path("public.csv").write_text(STATISTICS)
    done(*GIVEN, "--unsafe-seed", 1)
    assert "groups overlap, so a row has no group of its own" in done("evaluate", "out", "people.csv")


def test_without_scikit_learn_the_way_out_is_told(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sfumato.evaluate", None)
    assert "pip install 'sfumato[evaluate]'" in refused("evaluate", release, "people.csv")
