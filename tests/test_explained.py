"""A folder explains itself: to people, to machines, and to whoever checks it."""

from __future__ import annotations

import csv
import json
import shutil
import warnings
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sfumato
from command_line import done, publish, run
from forging import forge_text
from kinds import SMALL
from sfumato import About, Account, Laplace, Release, Schema, datasets
from sfumato.errors import ReleaseError
from sfumato.release.folder import EXPLAINING
from sfumato.release.readme import WORTH
from sfumato.release.records import end_names

ABOUT = """
title: A census, in part
publisher: Office of Examples
licence: CC-BY-4.0
date: 2026-01-31
version: 1.2.0
doi: 10.1234/abcd
contact: data@office.example
keywords: census, income
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("explained")
    (place / "about.yaml").write_text(ABOUT)
    adult = datasets.adult()
    schema = adult.schema.only(["age", "sex", "education", "income"])
    account = Account(place / "adult.ledger", schema)
    method = sfumato.DiffGen(specializations=3)
    account.publish(
        adult.table.slice(0, 5000), method, 1, out=place / "release", about=place / "about.yaml", synthetic="parquet"
    )
    return place / "release"


@pytest.fixture
def copied(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "release"))


def wrong(folder: Path) -> list[str]:
    return [check.says for check in sfumato.verify(folder).failures]


def test_a_stranger_reads_what_it_is_and_by_whom(published: Path) -> None:
    text = (published / "README.md").read_text()
    for said in ("# A census, in part", "## The promise", "epsilon = 1", WORTH, "Office of Examples", "2026-01-31"):
        assert said in text
    assert text.index(WORTH) < text.index("## How to read it") < text.index("## About it")
    one, two = (
        text[text.index(f"counts by {number}") :].split("within ")[1].split(" %")[0] for number in ("one", "two")
    )
    assert 0 < float(one) <= float(two) < 100


def test_the_snippets_of_the_readme_run(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(published)
    blocks = (published / "README.md").read_text().split("```")
    for block in blocks[1::2]:
        language, _, lines = block.partition("\n")
        if language == "python":
            exec(lines, {})
        elif language == "sql":
            assert sum(people for _, people in duckdb.sql(lines).fetchall()) == Release.load(".").total


def test_intervals_have_their_ends_as_numbers(published: Path) -> None:
    records = pd.read_parquet(published / "records.parquet")
    assert (
        records["age"] == "[" + records["age_lower"].astype(str) + ", " + records["age_upper"].astype(str) + ")"
    ).all()


def test_ends_of_missing_values_and_days_are_told_apart(tmp_path: Path) -> None:
    made = SMALL["grid"]()
    made.save(tmp_path / "release")
    table = pq.read_table(tmp_path / "release" / "records.parquet")
    for name, (low, high) in end_names(made.schema).items():
        for value, begin, end in zip(*(table[one].to_pylist() for one in (name, low, high)), strict=True):
            column = made.schema.predictors[name]
            if value == column.missing:
                assert (begin, end) == (None, None)
            elif value.startswith("["):
                assert value.startswith(f"[{begin}, {end}") or float(value[1:].split(",")[0]) == begin
    failed = {check.about for check in sfumato.verify(tmp_path / "release").failures}
    assert not failed & {"records", "explanations"}


def test_the_dictionary_names_every_column_of_every_table(published: Path) -> None:
    with (published / "dictionary.csv").open(newline="") as file:
        rows = {row["column"]: row for row in csv.DictReader(file)}
    for name in ("records", "synthetic"):
        assert set(pq.read_schema(published / f"{name}.parquet").names) <= rows.keys()
    assert (rows["age"]["lower"], rows["age"]["upper"], rows["sex"]["categories"]) == ("17", "90", "Female | Male")


def test_titles_of_columns_are_told_and_no_text_is_a_formula() -> None:
    schema = Schema.loads("attributes: {=a: {kind: categorical, taxonomy: [x, -y], title: What it means}}")
    made = sfumato.seeded_release(pd.DataFrame({"=a": ["x"]}), _confirmed(schema), Laplace(), "1", 0)
    from sfumato.release.readme import dictionary

    text = dictionary(made)
    assert "What it means" in text
    assert "\n'=a," in text


def _confirmed(schema: Schema) -> Schema:
    return schema.model_copy(update={"confirmed": True})


def test_croissant_is_valid_and_its_records_are_read(published: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        croissant = pytest.importorskip("mlcroissant")
        dataset = croissant.Dataset(str(published / "croissant.json"))
        first = next(iter(dataset.records("synthetic")))
    assert not dataset.metadata.ctx.issues.errors
    assert {"synthetic/age", "synthetic/income"} <= first.keys()
    plain = json.loads((published / "croissant.json").read_text())
    assert plain["conformsTo"].endswith("/1.1")
    assert plain["license"] == "CC-BY-4.0"


def test_the_data_package_is_valid(published: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frictionless = pytest.importorskip("frictionless")
        found = frictionless.validate(str(published / "datapackage.json"))
    assert found.valid, found.flatten(["type", "note"])


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_of_release_explains_itself(kind: str) -> None:
    made = SMALL[kind]()
    texts = made.explained(dict.fromkeys(("records.parquet", "schema.json"), "0" * 64))
    assert texts.keys() == {*EXPLAINING}
    assert WORTH in texts["README.md"]
    assert made.manifest.guarantee[:60] in texts["README.md"] or made.manifest.promise is None


@pytest.mark.parametrize("name", EXPLAINING)
def test_an_explanation_that_does_not_follow_is_named(copied: Path, name: str) -> None:
    text = (copied / name).read_text()
    forge_text(copied, name, text.replace("epsilon", "EPSILON").replace("age", "wage"))
    assert wrong(copied) == [f"{name} must follow from the release, and does not"]


def test_expected_errors_may_differ_in_the_last_digit_and_no_more(copied: Path) -> None:
    text = (copied / "README.md").read_text()
    typical = text[text.index("counts by two") :].split("within ")[1].split(" %")[0]
    for factor, fine in ((1.01, True), (1.5, False)):
        forge_text(copied, "README.md", text.replace(f"within {typical} %", f"within {float(typical) * factor:.4f} %"))
        assert (wrong(copied) == []) is fine


def test_a_release_without_explanations_is_still_one(copied: Path) -> None:
    from forging import reseal

    for name in EXPLAINING:
        (copied / name).unlink()
    reseal(copied)
    assert sfumato.verify(copied).verified
    assert Release.load(copied).total > 0


def test_synthetic_people_that_nobody_draws_are_told(copied: Path) -> None:
    assert "anyone draws" in str(sfumato.verify(copied).checks)
    pq.write_table(pq.read_table(copied / "synthetic.parquet").slice(1), copied / "synthetic.parquet")
    from forging import reseal

    reseal(copied)
    assert any("croissant.json" in one for one in wrong(copied))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"titel": "x"}, "titel"),
        ({"date": "yesterday"}, "date"),
        ({"title": ["x"]}, "title"),
        ("nowhere.yaml", "readable"),
    ],
)
def test_what_a_holder_says_wrongly_is_refused(said: object, sentence: str) -> None:
    with pytest.raises(ReleaseError, match=sentence):
        About.of(said)


@pytest.mark.usefixtures("here")
def test_nothing_is_spent_where_about_is_wrong() -> None:
    Path("about.yaml").write_text("titel: x\n")
    result = run(*publish(), "--about", "about.yaml")
    assert result.exit_code != 0
    assert not Path("out").exists()
    Path("about.yaml").write_text(ABOUT)
    done(*publish(), "--about", "about.yaml", "--synthetic", "csv")
    assert Path("out/synthetic.csv").exists()
    assert "A census, in part" in Path("out/README.md").read_text()


def test_people_in_a_folder_hold_no_formula(tmp_path: Path) -> None:
    """A spreadsheet must not run what a label says; the file is still the one that anyone draws."""
    labels = ["=cmd()", "-5", "plain"]
    schema = Schema.loads(f"attributes: {{'@who': {{kind: categorical, taxonomy: {json.dumps(labels)}}}}}")
    account = Account(tmp_path / "people.ledger", _confirmed(schema))
    table = pd.DataFrame({"@who": labels * 40})
    account.publish(table, Laplace(), 1, out=tmp_path / "out", synthetic="csv")
    with (tmp_path / "out" / "synthetic.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'@who"]
    assert {row[0] for row in rows} == {"'=cmd()", "'-5", "plain"}
    assert "apostrophe" in (tmp_path / "out" / "README.md").read_text()
    (fields,) = (
        one["schema"]["fields"]
        for one in json.loads((tmp_path / "out" / "datapackage.json").read_text())["resources"]
        if one["name"] == "synthetic"
    )
    assert [one["name"] for one in fields] == header
    checks = {check.about: check.says for check in sfumato.verify(tmp_path / "out").checks}
    assert "those that anyone draws" in checks["explanations"]


@pytest.mark.parametrize("method", [sfumato.Marginals(), sfumato.PrivBayes()], ids=lambda one: one.name)
def test_a_network_is_told_as_one(method: sfumato.Method, tmp_path: Path) -> None:
    """Whoever opens the release of a network is not told of groups that nobody counted."""
    adult = datasets.adult()
    schema = adult.schema.only(["sex", "education", "race", "income"])
    few = adult.table.slice(0, 300)
    release = sfumato.seeded_release(few, schema, method, "1", 3)
    release.save(tmp_path / "out", synthetic="csv")
    text = (tmp_path / "out" / "README.md").read_text()
    assert release.extent == "a network of 4 attributes"
    assert "groups with counts" not in text
    assert "network" in text
    card = sfumato.evaluate.scorecard(release, few)
    assert not card.information
    assert any("a network, not groups" in one for one in card.left_out)
    assert all(one.taught_by == "drawn records" for one in card.lessons)
