"""The confidence cap on the command line: statistics from files, what a person is told, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import SCHEMA, done, done_json, publish, refused, run

STATISTICS = """attribute,value,probability
age,"[17, 91)",1
sex,Female,0.5
sex,Male,0.5
job,White-collar,0.5
job,Artist,0.5
income,low,0.45
income,high,0.55
"""
COMMAND = ["publish", "people.csv", "--method", "confidence", "--sensitive", "income", "--quasi", "age,sex,job"]
GIVEN = [*COMMAND, "--statistics", "public.csv", "--out", "out"]


@pytest.fixture(autouse=True)
def _unlimited(here: Path) -> Path:
    """The people's schema without a lifetime budget, and public statistics."""
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    Path("public.csv").write_text(STATISTICS)
    Path("rules.csv").write_text("condition,value,probability\nage > 50,high,0.9\n")
    return here


def test_the_whole_way() -> None:
    command = [*GIVEN, "--rules", "rules.csv", "--distortion", "0.9"]
    assert "caps confidence in income" in done(*command, "--dry-run")
    assert not Path("people.ledger").exists()
    told = done(*command)
    assert "NOT differentially private" in told
    assert "For your eyes, exact and not in the release" in told
    assert "suppressed: " in told
    told = done("inspect", "out")
    assert "How it was made" in told
    assert "suppressed: " not in told
    assert "(sampling " in done("query", "out", "age < 40")
    assert done_json("query", "out")["stddev"] > 0
    assert done_json("sample", "out", "--out", "sample.csv")["rows"] > 200
    done("records", "out", "--out", "records.csv")
    assert len(done_json("sql", "out", "select sex, count(*) from release group by sex")["rows"]) == 2
    assert "infinite epsilon spent in 1 publication" in done("account", "show", "people.csv")


def test_programs_are_told_who_was_left_out_once() -> None:
    reasons = [one for one in done_json(*GIVEN)["notes"] if one.startswith("suppressed: ")]
    assert len(reasons) == 2
    assert "suppressed" not in str(done_json("inspect", "out")["steps"])


def test_a_person_is_told_what_could_be_claimed() -> None:
    done(*GIVEN, "--rules", "rules.csv")
    told = done("explain", "out", "--record", "age=70,sex=Male,job=Dancer")
    assert "The person could be in" in told
    plain = done_json("explain", "out", "--record", "age=70,sex=Male,job=Dancer")
    claims = {one["value"]: one for one in plain["claims"]}
    assert claims["high"]["public"] == pytest.approx(0.9)
    assert all(one["observed"] <= one["expected"] + 1e-9 for one in claims.values())
    assert "must not tell income" in refused("explain", "out", "--record", "income=low")


def test_nobody_like_that_can_be_claimed_nothing_about() -> None:
    Path("people.csv").write_text(
        "name,age,sex,job,planet,income\n" + "x,20,Male,Dancer,Earth,low\ny,20,Male,Dancer,Earth,high\n" * 99
    )
    done(*GIVEN)
    assert "could be in no group" in done("explain", "out", "--record", "sex=Female,age=20,job=Lawyer")


def test_the_risk_of_such_releases() -> None:
    done(*GIVEN)
    plain = done_json("risk", "out")
    assert plain["worst_class_confidence"] <= 0.9
    assert plain["prosecutor"] == pytest.approx(0.9 / plain["smallest"])
    assert plain["nearest_to_cap"]["observed"] <= plain["nearest_to_cap"]["expected"]
    assert "Nearest to its cap: income" in done("risk", "out")
    assert "overlap" in refused("risk", "out", "--population", "people.csv")


def test_a_seed_is_for_tests() -> None:
    assert "NO guarantee" in done(*GIVEN, "--unsafe-seed", 5)


def test_own_statistics_are_a_leak_that_is_told() -> None:
    command = [*COMMAND, "--statistics-from-data", "yes", "--out", "out"]
    assert "a leak" in done(*command, "--dry-run")
    assert "a leak" in done(*command)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([*COMMAND, "--out", "out"], "confidence must have public statistics"),
        (["publish", "people.csv", "--method", "confidence", "--out", "out"], "confidence must have its sensitive"),
        ([*GIVEN, "--statistics", "nowhere.csv"], "file (nowhere.csv) must be text"),
        ([*GIVEN, "--statistics", "people.csv"], "row 2 of the statistics must have the columns"),
        ([*GIVEN, "--statistics-from-data", "yes"], "and not both"),
        ([*GIVEN, "--rules", "public.csv"], "row 2 of the rules must have the columns"),
        ([*GIVEN, "--sampling", "0"], "sampling (0) must be"),
        ([*GIVEN, "--sampling", "1.5"], "sampling (1.5) must be"),
        ([*GIVEN, "--quasi", "age,income"], "must not be a quasi-identifier"),
        ([*GIVEN, "--sensitive", "planet"], "two values or more"),
        ([*GIVEN, "--epsilon", "1"], "option --epsilon must go with a differentially private method"),
        ([*GIVEN, "--k", "5"], "option --k must belong to the method"),
        (publish("--statistics", "public.csv"), "option --statistics must belong to the method"),
    ],
)
def test_what_does_not_fit_is_refused(command: list[object], told: str) -> None:
    assert told in refused(*command)


def test_an_empty_release_is_refused() -> None:
    Path("people.schema.yaml").write_text(
        SCHEMA.replace("budget: 4\n", "").replace("upper: 90", "upper: 90, intervals: [5]")
    )
    result = run(*GIVEN, "--distortion", "0")
    assert result.exit_code == 2
    assert "every one would be suppressed" in result.stderr
    assert not Path("out").exists()
