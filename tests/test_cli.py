"""The whole way on the command line: every command does its work and tells it to people and to programs."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from command_line import GOOD, HEADER, SCHEMA, contents, done, done_json, people, publish, refused, run, write
from sfumato import METHODS, Release, Schema
from sfumato.cli import main
from sfumato.cli.show import REFUSED


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_the_whole_way_from_a_file_to_a_release(here: Path, kind: str) -> None:
    Path("people.csv").unlink()
    Path("people.schema.yaml").unlink()
    data = write(people(), here / f"people.{kind}")
    assert "NOT confirmed" not in done("draft", data.name)
    schema = Path("people.schema.yaml")
    assert schema.read_text().startswith("# A draft from private data, NOT confirmed.")
    assert "must be confirmed" in refused(*publish("--target", "income", data=data.name))
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    assert "Everything fits" in done("check", data.name)
    data.rename("hidden")
    plan = done_json(*publish("--dry-run", "--target", "income", data=data.name))
    assert "counts" in plan["schedule"]
    assert not Path("people.ledger").exists()
    Path("hidden").rename(data)
    assert "differentially private with epsilon = 1" in done(*publish("--target", "income", data=data.name))
    assert "choice 1" in done("inspect", "out")
    assert "±" in done("query", "out", "age between 30 and 40 and sex = 'Female'")
    assert done_json("sample", "out", "--rows", 50, "--out", "synthetic.csv")["rows"] == 50
    done("records", "out", "--out", "records.parquet")
    assert "1 spent for each record in 1 publication," in done("account", "show", data.name)
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("here")
def test_a_dry_run_touches_no_data() -> None:
    Path("people.csv").unlink()
    before = contents()
    assert "total" in done(*publish("--dry-run"))
    os.mkfifo("people.csv")
    done(*publish("--dry-run"))
    Path("people.csv").unlink()
    assert contents() == before


@pytest.mark.usefixtures("here")
def test_a_workload_is_read_from_a_file() -> None:
    options = ("--method", "cdiffgen", "--workload", "@asked.txt")
    assert "file (asked.txt) must be text that can be read" in refused(*publish(*options))
    Path("asked.txt").write_text("age < 30\nshoes > 2\n")
    assert "shoes" in refused(*publish(*options))
    assert not Path("people.ledger").exists()
    Path("asked.txt").write_text("age < 30\nsex = 'Female'\n")
    done(*publish(*options))
    assert done_json("inspect", "out")["method"]["parameters"]["workload"] == ["age < 30", "sex = 'Female'"]


@pytest.mark.slow
def test_the_bundled_table_is_published_by_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Everything fits" in done("check", "adult")
    done("publish", "adult", "--epsilon", "1", "--target", "income", "--score", "max", "--out", "release/")
    answer = done_json("query", "release/", "age between 30 and 40 and sex = 'Female'")
    assert answer["value"] == pytest.approx(4200, rel=0.5)
    low, high = answer["interval95"]
    assert low < answer["value"] < high
    assert "adult: 1 spent" in done("account", "show", "adult")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("adult.ledger", "adult.ledger.head", "adult.ledger.rows", "release")
    ]


def test_inspect_tells_promise_budget_steps_and_files(release: Path) -> None:
    text = done("inspect", release)
    for expected in (
        "differentially private with epsilon = 1",
        "choice 3",
        "counts",
        "total",
        "How it was made\n  ",
        "manifest.json",
    ):
        assert expected in text


def test_query_tells_value_deviation_and_interval(release: Path) -> None:
    loaded = Release.load(release).count("age < 30")
    answer = done_json("query", release, "age < 30")
    assert (answer["value"], answer["stddev"]) == (loaded.value, loaded.stddev)
    assert answer["interval95"] == list(loaded.interval)
    text = done("query", release, "age < 30")
    assert "standard deviation" in text
    assert "95 %" in text
    assert "noise" in text
    assert round(done_json("query", release)["value"]) == Release.load(release).total


def test_samples_with_a_seed_are_drawn_again(release: Path) -> None:
    for name in ("one.csv", "other.csv"):
        done("sample", release, "--rows", 20, "--seed", 3, "--out", name)
    assert Path("one.csv").read_bytes() == Path("other.csv").read_bytes()
    with Path("one.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 20


@pytest.mark.parametrize("how", ["projection", "clamp"])
def test_records_are_the_same_in_csv_and_parquet(release: Path, how: str) -> None:
    done("records", release, "--nonnegative", how, "--out", "records.csv")
    done("records", release, "--nonnegative", how, "--out", "records.parquet")
    with Path("records.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["count"]) for row in rows] == pq.read_table("records.parquet")["count"].to_pylist()
    assert rows[0].keys() == {"age", "age_lower", "age_upper", "sex", "job", "planet", "income", "count"}


def test_an_amended_budget_can_be_spent(release: Path) -> None:
    assert done_json("account", "show", "people.csv")["left"] == "3"
    amended = done_json("account", "amend", "people.csv", "--budget", "9/2")
    assert (amended["budget"], amended["left"]) == ("9/2", "7/2")
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4", "budget: 9/2"))
    done(*publish("--epsilon", "7/2"))
    assert release.exists()
    assert done_json("account", "show", "people.csv")["left"] == "0"


@pytest.mark.slow
@pytest.mark.usefixtures("release")
def test_an_open_publication_is_settled_by_hand() -> None:
    text = SCHEMA.replace("budget: 4\n", "")
    program = (
        "import os; from sfumato.engines.local import LocalEngine as Engine; "
        "Engine.tally = lambda *_: os.kill(os.getpid(), 9); from sfumato.cli import main; main()"
    )
    Path("people.schema.yaml").write_text(text)
    command = [sys.executable, "-c", program, *map(str, publish())]
    assert subprocess.run(command, check=False, timeout=60).returncode == -9
    (_, dead) = done_json("account", "show", "people.csv")["publications"]
    assert (dead["outcome"], len(dead["debits"])) == ("open", 1)
    assert "open, holds 1" in done("account", "show", "people.csv")
    assert done("account", "settle", "people.csv", dead["id"]) == f"settled {dead['id']}\n"
    assert "must be open" in refused("account", "settle", "people.csv", dead["id"])
    assert done_json("account", "show", "people.csv")["publications"][1]["outcome"] == "settled by hand"


def test_a_taxonomy_goes_out_and_comes_back(here: Path) -> None:
    done("taxonomy", "export", "people.schema.yaml", "job", "--out", "job.csv")
    assert "Engineer;White-collar;Anyone" in Path("job.csv").read_text()
    done("taxonomy", "import", "people.schema.yaml", "job", "job.csv", "--out", "again.yaml")
    again = Schema.load(here / "again.yaml")
    assert not again.confirmed
    assert again.attributes == Schema.loads(SCHEMA).attributes


COMMANDS = {
    "draft": ["people.csv", "--out", "draft.yaml"],
    "check": ["people.csv"],
    "advise": ["people.csv", "--rows", "1000", "--epsilon", "1"],
    "cocluster": ["people.csv"],
    "publish": publish()[1:],
    "inspect": ["release"],
    "query": ["release", "age < 30"],
    "sql": ["release", "select count(*) from release"],
    "sample": ["release", "--rows", "5", "--out", "sample.csv"],
    "records": ["release", "--out", "records.csv"],
    "risk": ["release"],
    "verify": ["release"],
    "evaluate": ["release", "people.csv"],
    "compare": ["people.csv", "--methods", "mondrian:k=5", "--runs", "1", "--measures", "information"],
    "report": ["release"],
    "audit": ["--method", "laplace", "--epsilon", "1", "--runs", "200", "--unsafe-seed", "1"],
    "schema": [],
    "account show": ["people.csv"],
    "account amend": ["people.csv", "--budget", "none"],
    "taxonomy export": ["people.schema.yaml", "job", "--out", "job.csv"],
    "taxonomy import": ["people.schema.yaml", "job", "hierarchy.csv", "--out", "new.yaml"],
}


def names(command: click.Command, path: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from names(command.get_command(context, name), f"{path} {name}".strip())
    else:
        yield path


def test_every_command_is_tried_below() -> None:
    assert set(names(main)) == {*COMMANDS, "account settle", "explain", "reproduce", "sign", "studio"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json(release: Path, name: str) -> None:
    Path("hierarchy.csv").write_text("Engineer;Anyone\nLawyer;Anyone\nDancer;Anyone\nWriter;Anyone\n")
    told = done_json(*name.split(), *COMMANDS[name])
    assert isinstance(told, dict)
    assert told
    assert release.exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_to_people(release: Path, name: str) -> None:
    Path("hierarchy.csv").write_text("Engineer;Anyone\nLawyer;Anyone\nDancer;Anyone\nWriter;Anyone\n")
    assert done(*name.split(), *COMMANDS[name]).strip()
    assert release.exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_attacked_as_it_is(name: str) -> None:
    assert "runs (9) must be at least" in refused("audit", "--method", name, "--runs", 9)
    told = "runs (9) must be at least" if hasattr(METHODS[name], "as_published") else "must go with a method that we"
    assert told in refused("audit", "--method", name, "--as-published", "--runs", 9)


@pytest.mark.usefixtures("here")
def test_check_tells_what_does_not_fit_and_shows_no_value() -> None:
    Path("people.csv").write_text(
        HEADER + GOOD * 3 + "CANARY 2,CANARY,CANARY,,Earth,low\nx,87654,Male,Dancer,Earth,low\n"
    )
    result = run("check", "people.csv")
    assert result.exit_code == REFUSED
    assert "CANARY" not in result.output
    told = json.loads(run("check", "people.csv", "--json").stdout)
    assert not told["fits"]
    assert {(one["column"], one["rows"]) for one in told["misfits"]} == {("age", 1), ("sex", 1), ("job", 1)}
    assert told["outside"] == {"age": 1}
    assert set(contents()) == {"people.csv", "people.schema.yaml"}


def test_a_seeded_release_says_so(here: Path) -> None:
    (here / "people.schema.yaml").write_text(SCHEMA.replace("budget: 4\n", ""))
    assert "NO guarantee" in done(*publish("--unsafe-seed", 1))
    assert "NO guarantee" in done("inspect", here / "out")


def test_one_row_can_be_published_but_not_drafted(here: Path) -> None:
    Path("people.csv").write_text(HEADER + GOOD)
    assert "must have 20 rows or more" in refused("draft", "people.csv", "--out", "draft.yaml")
    done("check", "people.csv")
    done(*publish())
    assert Release.load(here / "out").manifest.epsilon == 1


@pytest.mark.slow
def test_three_hundred_columns_are_published(here: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{number}": rng.integers(0, 3, 200).astype(str) for number in range(300)}
    write(pa.table(columns), here / "wide.csv")
    done("draft", "wide.csv", "--target", "c7")
    schema = Path("wide.schema.yaml")
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    done(*publish(data="wide.csv"))
    assert done_json("sample", "out", "--rows", "3", "--out", "sample.csv")["rows"] == 3


def test_tables_of_other_names_do_not_share_an_account(here: Path) -> None:
    """`people.2024.csv` and `people.2025.csv` are two tables."""
    for year in ("2024", "2025"):
        write(people(20), here / f"people.{year}.csv")
        Path(f"people.{year}.schema.yaml").write_text(SCHEMA.replace("name: people", f"name: people {year}"))
        done("publish", f"people.{year}.csv", "--epsilon", "1", "--specializations", "3", "--out", f"out{year}")


# Real processes.


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from sfumato.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_real_process_publishes_quietly_and_refuses_in_one_line() -> None:
    good = process(*publish())
    assert (good.returncode, good.stderr) == (0, "")
    again = process(*publish())
    assert (again.returncode, again.stdout) == (REFUSED, "")
    assert (
        again.stderr == "error: out must not exist yet. Choose another name or move it away; nothing is overwritten.\n"
    )


@pytest.mark.usefixtures("here")
def test_a_poor_locale_makes_no_traceback() -> None:
    command = [sys.executable, "-c", "from sfumato.cli import main; main()", "query", "absent", "größe > 3"]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False, env={"LC_ALL": "C", "PATH": ""})
    assert result.returncode == REFUSED
    assert result.stderr.startswith(b"error: ")
