"""A release that was made with a known seed protects nobody, and everything that touches it says so."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato
from command_line import SCHEMA, done, people, refused, run, write
from sfumato import Account, DiffGen, Mondrian, Schema, seeded_release
from sfumato.cli.show import NO_GUARANTEE
from sfumato.errors import BudgetError, ReleaseError

FREE = Schema.loads(SCHEMA.replace("budget: 4", ""))


@pytest.fixture
def seeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    seeded_release(people(), FREE, DiffGen(specializations=2), "1", 3, out=tmp_path / "seeded")
    return Path("seeded")


def test_verify_fails_unless_it_is_allowed(seeded: Path) -> None:
    found = sfumato.verify(seeded)
    assert [one.about for one in found.failures] == ["randomness"]
    assert "NO GUARANTEE" in found.failures[0].says
    assert sfumato.verify(seeded, allow_seeded=True).verified
    assert run("verify", seeded).exit_code == 2
    assert "NO GUARANTEE" in done("verify", seeded, "--allow-seeded")


def test_a_seeded_sample_fails_as_well(tmp_path: Path) -> None:
    schema = Schema.loads("{name: t, confirmed: true, attributes: {age: {kind: numeric, lower: 17, upper: 90}}}")
    release = seeded_release(people(), schema, Mondrian(k=5), None, 3, out=tmp_path / "whole")
    assert release.manifest.secure, "nothing was drawn"
    assert sfumato.verify(tmp_path / "whole").verified


def test_risk_states_no_odds(seeded: Path) -> None:
    assert "NO GUARANTEE" in refused("risk", seeded)
    with pytest.raises(ReleaseError, match="secure randomness"):
        sfumato.odds_of(sfumato.Release.load(seeded))


@pytest.mark.parametrize(
    "command",
    [
        ("query", "seeded", "age > 40"),
        ("sql", "seeded", "select count(*) as people from release"),
        ("sample", "seeded", "--out", "drawn.csv"),
        ("records", "seeded", "--out", "records.csv"),
        ("report", "seeded", "--out", "page.html"),
        ("inspect", "seeded"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.usefixtures("seeded")
def test_every_command_says_so_each_time(command: tuple[str, ...]) -> None:
    assert done(*command).startswith(NO_GUARANTEE)
    for name in ("drawn.csv", "records.csv", "page.html"):
        Path(name).unlink(missing_ok=True)
    assert json.loads(done(*command, "--json"))["no_guarantee"] == NO_GUARANTEE


@pytest.mark.usefixtures("seeded")
def test_the_page_states_no_odds() -> None:
    done("report", "seeded", "--out", "page.html")
    page = Path("page.html").read_text()
    assert "NO GUARANTEE" in page
    assert "differentially private with" not in page
    assert "believed before" not in page


def test_a_release_with_secure_randomness_says_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Account("people.ledger", FREE).publish(people(), DiffGen(specializations=2), 1, out="out")
    for command in (("query", "out", "age > 40"), ("inspect", "out"), ("risk", "out"), ("verify", "out")):
        assert "NO GUARANTEE" not in done(*command)


def test_a_table_with_a_lifetime_budget_refuses_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(people(), Path("people.csv"))
    Path("people.schema.yaml").write_text(SCHEMA)
    spending = ("publish", "people.csv", "--method", "diffgen", "--specializations", "2", "--epsilon", "1")
    told = refused(*spending, "--out", "out", "--unsafe-seed", "1")
    assert "lifetime budget" in told
    account = Account("amended.ledger", FREE)
    account.publish(people(), DiffGen(specializations=1), 1, unsafe_seed=1)
    account._ledger.amend(Fraction(2))
    with pytest.raises(BudgetError, match="without a seed"):
        account.publish(people(), DiffGen(specializations=1), 1, unsafe_seed=1)


def test_those_who_measure_methods_may_use_seeds_on_such_a_table() -> None:
    release = seeded_release(people(), Schema.loads(SCHEMA), DiffGen(specializations=1), "1", 1)
    assert not release.manifest.secure


def test_an_honest_release_with_long_fractions_verifies(tmp_path: Path) -> None:
    """Five numeric attributes, and an epsilon that has nothing in common with the shares of it."""
    names = "abcde"
    schema = Schema.parse(
        {
            "name": "long",
            "confirmed": True,
            "attributes": {name: {"kind": "numeric", "lower": "0", "upper": "9"} for name in names}
            | {"class": {"kind": "class", "taxonomy": ["Y", "N"]}},
        }
    )
    table = {name: [str((at * 7 + place) % 10) for at in range(40)] for place, name in enumerate(names)}
    rows = pa.table(table | {"class": ["Y", "N"] * 20})
    Account(tmp_path / "long.ledger", schema).publish(rows, DiffGen(), "1996355/999983", out=tmp_path / "out")
    found = sfumato.verify(tmp_path / "out", tmp_path / "long.ledger")
    assert found.verified, found.failures
