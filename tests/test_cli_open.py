"""Methods without epsilon on the command line: what they promise is said, and what is given up must be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import SCHEMA, done, done_json, publish, refused

pytestmark = pytest.mark.usefixtures("here")

LAPLACE = ("--method", "laplace", "--epsilon", "1", "--as-published", "--max-cells", "5")
MONDRIAN = ["publish", "people.csv", "--method", "mondrian", "--k", "10", "--out", "out"]


@pytest.fixture
def unlimited(here: Path) -> Path:
    """The people's schema without a lifetime budget."""
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    return here


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("method", [["mondrian", "--diversity", "2"], ["mondrian", "--score", "infogain"], ["tds"]])
def test_the_whole_way_without_epsilon(method: list[str]) -> None:
    command = ["publish", "people.csv", "--k", "10", "--out", "out", "--method", *method]
    assert "10-anonymous over age, sex, job, planet" in done(*command, "--dry-run")
    assert not Path("people.ledger").exists()
    assert "NOT differentially private" in done(*command)
    told = done("inspect", "out")
    assert "Looked at without epsilon" in told
    assert "300 people" in told
    assert "Budget" not in told
    assert "(model " in done("query", "out", "age < 40")
    assert done_json("query", "out")["stddev"] == 0
    assert done_json("sample", "out", "--out", "sample.csv")["rows"] == 300
    done("records", "out", "--out", "records.csv")
    assert "infinite epsilon spent in 1 publication" in done("account", "show", "people.csv")
    assert done_json("account", "show", "people.csv")["spent"] == "infinite"


def test_a_budget_must_be_given_up_aloud() -> None:
    assert "--despite-budget" in refused(*MONDRIAN)
    done(*MONDRIAN, "--despite-budget")
    assert "0 of 4 left" in done("account", "show", "people.csv")
    assert "published without epsilon (mondrian)" in refused(*publish("--out", "other"))


@pytest.mark.usefixtures("unlimited")
def test_later_private_releases_are_told_of_it() -> None:
    done(*MONDRIAN)
    assert "no epsilon bounds all of its releases together" in done(*publish("--out", "other"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([*MONDRIAN, "--epsilon", "1"], "option --epsilon must go with a differentially private method"),
        ([*MONDRIAN, "--unsafe-seed", "1"], "option --unsafe-seed must go with"),
        ([*MONDRIAN, "--as-published"], "as-published must go with"),
        ([*MONDRIAN, "--specializations", "3"], "option --specializations must belong to the method"),
        ([*MONDRIAN, "--quasi", "age,shoe"], "quasi-identifier (shoe) must be an attribute"),
        ([*MONDRIAN, "--quasi", "age,income"], "must not be the class"),
        ([*MONDRIAN, "--sensitive", "planet"], "two values or more"),
        ([*MONDRIAN, "--k", "1"], "k (1) must be a whole number from 2"),
        ([*MONDRIAN, "--k", "301", "--despite-budget"], "at most the number of the table's rows"),
        (["publish", "people.csv", "--method", "tds", "--out", "out"], "tds must have its k"),
        (publish("--despite-budget"), "option --despite-budget must go with a method without epsilon"),
        (["publish", "people.csv", "--out", "out"], "diffgen must have an epsilon"),
        (["publish", "people.csv", *LAPLACE, "--out", "out"], "as published does not have it. It has no options."),
    ],
)
def test_what_does_not_fit_is_refused(command: list[object], told: str) -> None:
    assert told in refused(*command)


@pytest.mark.usefixtures("unlimited")
def test_risk_of_exact_groups() -> None:
    done(*MONDRIAN)
    plain = done_json("risk", "out")
    assert plain["smallest"] >= 10
    assert plain["prosecutor"] == plain["journalist"] == 1 / plain["smallest"]
    assert plain["marketer"] == plain["groups"] / 300
    told = done("risk", "out")
    assert "no population is given, so the records are taken for it" in told
    assert "Worst confidence in a value of income: 100 %" in told
    assert done_json("risk", "out", "--population", 3000)["journalist"] == pytest.approx(plain["journalist"] / 10)
    assert done_json("risk", "out", "--population", "people.csv")["journalist"] == plain["prosecutor"]
    assert "must hold the people" in refused("risk", "out", "--population", "7")


def test_risk_of_an_epsilon_is_told_in_odds(release: Path) -> None:
    plain = done_json("risk", release)
    assert plain["odds_of_presence"] == pytest.approx(2.718281828)
    assert plain["odds_of_value"] == pytest.approx(7.389056099)
    assert plain["believed_after"][2]["presence"] == pytest.approx(0.7310585786)
    assert "50 %" in done("risk", release)
    assert "must go with a release of exact counts" in refused("risk", release, "--population", "9")
