"""The whole way on the command line, and every bad input: one sentence, exit code 2, nothing spent, nothing written."""

from __future__ import annotations

import csv
import errno
import inspect
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
from click.testing import CliRunner, Result

from sfumato import Release, Schema
from sfumato.cli import main
from sfumato.cli.show import REFUSED
from sfumato.release.manifest import FORMAT

CANARIES = ("CANARY", "87654.321", "1899-09-09")
SCHEMA = """
name: people
confirmed: true
budget: 4
attributes:
  name: {kind: identifier}
  age: {kind: numeric, lower: 17, upper: 90}
  sex: {kind: categorical, taxonomy: [Female, Male]}
  job: {kind: categorical, root: Anyone, taxonomy: {White-collar: [Engineer, Lawyer], Artist: [Dancer, Writer]}}
  planet: {kind: categorical, taxonomy: [Earth]}
  income: {kind: class, taxonomy: [low, high]}
"""
HEADER = "name,age,sex,job,planet,income\n"
GOOD = "CANARY 1,30,Female,Dancer,Earth,low\n"
SPLIT = inspect.signature(CliRunner).parameters.get("mix_stderr")
RUNNER = CliRunner(**({"mix_stderr": False} if SPLIT else {}))


def people(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.integers(17, 91, rows)
    return pa.table(
        {
            "name": [f"CANARY {row}" for row in range(rows)],
            "age": age,
            "sex": np.where(rng.random(rows) < 0.5, "Female", "Male"),
            "job": np.array(["Engineer", "Lawyer", "Dancer", "Writer"])[rng.integers(0, 4, rows)],
            "planet": ["Earth"] * rows,
            "income": np.where(age > 50, "high", "low"),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its confirmed schema, in which commands run."""
    monkeypatch.chdir(tmp_path)
    write(people(), tmp_path / "people.csv")
    Path("people.schema.yaml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def release(here: Path) -> Path:
    done("publish", "people.csv", "--epsilon", "1", "--specializations", "3", "--out", "release")
    return here / "release"


def run(*arguments: object) -> Result:
    return RUNNER.invoke(main, list(map(str, arguments)))


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr or result.exception
    assert result.stderr == ""
    return result.stdout


def done_json(*arguments: object) -> dict:
    return json.loads(done(*arguments, "--json"))


def contents() -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def refused(*arguments: object) -> str:
    """Give the one sentence of a refusal, after making sure that it is one and that nothing else happened."""
    before = contents()
    result, as_json = run(*arguments), run(*arguments, "--json")
    for one in (result, as_json):
        assert isinstance(one.exception, SystemExit), repr(one.exception)
        assert one.exit_code == REFUSED
        assert one.stdout == ""
        assert not any(canary in one.stderr for canary in CANARIES)
        assert "must not fail like this" not in one.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    told = json.loads(as_json.stderr)["error"]
    assert result.stderr == f"error: {told['problem'].rstrip('.')}. {told['remedy']}\n"
    assert told["remedy"]
    assert contents() == before
    return result.stderr


def publish(*more: object, data: str = "people.csv") -> list[object]:
    """Write a good publish command; what comes later wins."""
    return ["publish", data, "--epsilon", "1", "--specializations", "3", "--out", "out", *more]


# The whole way.


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_the_whole_way_from_a_file_to_a_release(here: Path, kind: str) -> None:
    Path("people.csv").unlink()
    Path("people.schema.yaml").unlink()
    data = write(people(), here / f"people.{kind}")
    assert "NOT confirmed" not in done("draft", data.name)
    schema = Path("people.schema.yaml")
    assert schema.read_text().startswith("# Derived from private data, NOT confirmed.")
    assert "must be confirmed" in refused(*publish("--target", "income", data=data.name))
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    assert "Everything fits" in done("check", data.name)
    data.rename("hidden")
    plan = done_json(*publish("--dry-run", data=data.name))
    assert "counts" in plan["schedule"]
    assert not Path("people.ledger").exists()
    Path("hidden").rename(data)
    assert "differentially private with epsilon = 1" in done(*publish(data=data.name))
    assert "choice 1" in done("inspect", "out")
    assert "±" in done("query", "out", "age between 30 and 40 and sex = 'Female'")
    assert done_json("sample", "out", "--rows", 50, "--out", "synthetic.csv")["rows"] == 50
    done("records", "out", "--out", "records.parquet")
    assert "1 spent in 1 publications" in done("account", "show", data.name)
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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adult.ledger", "release"]


def test_inspect_tells_promise_budget_steps_and_files(release: Path) -> None:
    text = done("inspect", release)
    for expected in (
        "differentially private with epsilon = 1",
        "choice 3",
        "counts",
        "total",
        "  1. ",
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
    assert done_json("query", release)["value"] == Release.load(release).total


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
    assert rows[0].keys() == {"age", "sex", "job", "planet", "income", "count"}


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
        "import os; from sfumato.counts.memory import MemoryEngine as Engine; "
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
    "publish": publish()[1:],
    "inspect": ["release"],
    "query": ["release", "age < 30"],
    "sample": ["release", "--rows", "5", "--out", "sample.csv"],
    "records": ["release", "--out", "records.csv"],
    "schema": [],
    "account show": ["people.csv"],
    "account amend": ["people.csv", "--budget", "none"],
    "taxonomy export": ["people.schema.yaml", "job", "--out", "job.csv"],
    "taxonomy import": ["people.schema.yaml", "job", "hierarchy.csv", "--out", "new.yaml"],
}


def names(command: click.Command, path: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from names(below, f"{path} {name}".strip())
    else:
        yield path


def test_every_command_is_tried_below() -> None:
    assert set(names(main)) == {*COMMANDS, "account settle"}


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
    assert "NO guarantee" in done(*publish("--unsafe-seed", 1))
    assert "NO guarantee" in done("inspect", here / "out")


# Bad input.


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("epsilon", ["0", "-1", "0.0", "nan", "inf", "", "one", "1e-9", "1e999", "1/0", "0x1", "5"])
def test_a_bad_epsilon_is_refused(epsilon: str) -> None:
    assert "epsilon" in refused(*publish("--epsilon", epsilon))


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("epsilon", ["3.000001", "4"])
def test_more_than_is_left_is_refused(epsilon: str) -> None:
    assert "at most the 3 left" in refused(*publish("--epsilon", epsilon))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("steps", ["0", "-1", "78", "1000000", "2.5", "many", "", "²", "--5", "9" * 5000])
def test_a_bad_number_of_specializations_is_refused(steps: str) -> None:
    assert "specializations" in refused(*publish("--specializations", steps))
    assert len(refused(*publish("--specializations", steps))) < 300


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("score", "entropy"),
        ("choice", "both"),
        ("selection", "best"),
        ("margins", "1"),
        ("margins", "-0.1"),
        ("margins", "nan"),
        ("margins", "1e9999999"),
        ("margins", "1/0"),
        ("growth", "0"),
        ("growth", "some"),
        ("max-cells", "1"),
        ("unsafe-seed", "-1"),
    ],
)
def test_a_bad_parameter_is_refused(option: str, value: str) -> None:
    assert option.replace("-", "_") in refused(*publish(f"--{option}", value)).replace("-", "_")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("target", "why"),
    [("nowhere", "must be an attribute"), ("age", "is numeric"), ("planet", "two values"), ("name", "an attribute")],
)
def test_a_bad_target_is_refused(target: str, why: str) -> None:
    assert why in refused(*publish("--target", target))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "command", [["check", "people.csv"], publish(), publish("--dry-run")], ids=["check", "publish", "dry"]
)
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("taxonomy: [Female, Female]", "taxonomy: [Female, Male]"),
        ("Artist: [Dancer, Lawyer]", "Artist: [Dancer, Writer]"),
        ("Artist: [Dancer, Artist]", "Artist: [Dancer, Writer]"),
        ("lower: 90, upper: 17", "lower: 17, upper: 90"),
        ("lower: 17, upper: 17", "lower: 17, upper: 90"),
        ("lower: nan, upper: 90", "lower: 17, upper: 90"),
        ("lower: 17, upper: .inf", "lower: 17, upper: 90"),
        ("lower: seventeen, upper: 90", "lower: 17, upper: 90"),
        ("lower: 17, upper: 90, step: 0", "lower: 17, upper: 90"),
        ("taxonomy: []", "taxonomy: [Female, Male]"),
        ("taxonomy: [low]", "taxonomy: [low, high]"),
        ("kind: numerical", "kind: numeric"),
        ("budget: -4", "budget: 4"),
        ("sfumato: 99\nbudget: 4", "budget: 4"),
        ("attributes: [", "attributes:"),
    ],
    ids=lambda text: text.splitlines()[0],
)
def test_a_bad_schema_is_refused(wrong: str, right: str, command: list) -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace(right, wrong, 1))
    if wrong == "taxonomy: [low]" and command[0] == "check":
        return
    refused(*command)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"- 1", b"attributes:", b"attributes: {}", b"!!python/object:os.system x"]
)
def test_what_is_no_schema_is_refused(content: bytes) -> None:
    Path("people.schema.yaml").write_bytes(content)
    refused(*publish())


ROWS = {
    "a value that the taxonomy misses": "x,30,CANARY,Dancer,Earth,low\n",
    "NaN": "x,NaN,Female,Dancer,Earth,low\n",
    "infinity": "x,inf,Female,Dancer,Earth,low\n",
    "minus infinity": "x,-Infinity,Female,Dancer,Earth,low\n",
    "an empty number": "x,,Female,Dancer,Earth,low\n",
    "an empty name": "x,30,,Dancer,Earth,low\n",
    "an empty class": "x,30,Male,Dancer,Earth,\n",
    "a word for a number": "x,CANARY,Female,Dancer,Earth,low\n",
    "a date for a number": "x,1899-09-09,Female,Dancer,Earth,low\n",
    "too few fields": "CANARY,30\n",
    "too many fields": "CANARY,30,Female,Dancer,Earth,low,87654.321,CANARY\n",
    "an open quote": 'x,30,"CANARY,Dancer,Earth,low\n',
    "bytes that are no text": "x,30,\udcffCANARY,Dancer,Earth,low\n",
}


@pytest.mark.parametrize("row", ROWS)
def test_a_bad_row_is_refused_without_being_shown(here: Path, row: str) -> None:
    (here / "people.csv").write_text(HEADER + GOOD + ROWS[row] + GOOD, errors="surrogateescape")
    assert len(refused(*publish())) < 400


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize("value", ["CANARY", None, float("nan"), float("inf"), [1], {"CANARY": 1}, True], ids=repr)
def test_a_bad_cell_of_any_format_is_refused_without_being_shown(here: Path, kind: str, value: object) -> None:
    row = dict(zip(HEADER.strip().split(","), ("x", value, "Female", "Dancer", "Earth", "low"), strict=True))
    write(pa.Table.from_pylist([row]), here / f"people.{kind}")
    if value is True and kind == "parquet":
        run(*publish(data=f"people.{kind}"))
        return
    refused(*publish(data=f"people.{kind}"))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff\xfeCANARY", b"CANARY", b'{"CANARY": '], ids=repr)
def test_a_file_that_is_no_table_is_refused(here: Path, name: str, content: bytes) -> None:
    (here / name).write_bytes(content)
    refused(*publish(data=name))
    if content != b"CANARY" or name != "people.csv":
        refused("draft", name, "--out", "draft.yaml")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["absent.csv", "folder.csv", "people.xls", "people", "", "."])
def test_a_file_that_cannot_be_read_is_refused(name: str) -> None:
    Path("folder.csv").mkdir()
    Path("people.xls").write_text("x")
    refused(*publish("--schema", "people.schema.yaml", data=name))
    refused("draft", name, "--out", "draft.yaml")


def test_a_header_only_has_no_schema_but_can_be_published(here: Path) -> None:
    Path("people.csv").write_text(HEADER)
    assert "must have rows" in refused("draft", "people.csv", "--out", "draft.yaml")
    assert run("check", "people.csv").exit_code == REFUSED
    done(*publish())
    assert Release.load(here / "out").manifest.epsilon == 1


def test_one_row_can_be_drafted_and_published(here: Path) -> None:
    Path("people.csv").write_text(HEADER + GOOD)
    done("draft", "people.csv", "--out", "draft.yaml")
    done("check", "people.csv")
    done(*publish())
    assert Release.load(here / "out").manifest.epsilon == 1


@pytest.mark.usefixtures("here")
def test_one_column_is_refused_because_nothing_is_left_beside_the_class() -> None:
    Path("one.csv").write_text("income\n" + "low\nhigh\n" * 5)
    done("draft", "one.csv", "--target", "income")
    schema = Path("one.schema.yaml")
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    assert "besides the class" in refused(*publish(data="one.csv"))
    schema.write_text(schema.read_text().replace("kind: class", "kind: categorical"))
    assert "class attribute" in refused(*publish(data="one.csv"))


@pytest.mark.slow
def test_three_hundred_columns_are_published(here: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{number}": rng.integers(0, 3, 50).astype(str) for number in range(300)}
    write(pa.table(columns), here / "wide.csv")
    done("draft", "wide.csv", "--target", "c7")
    schema = Path("wide.schema.yaml")
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    done(*publish(data="wide.csv"))
    assert done_json("sample", "out", "--rows", "3", "--out", "sample.csv")["rows"] == 3


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "columns", [HEADER.replace("age", "years"), HEADER.replace("sex", "age"), HEADER.replace(",", ";")]
)
def test_columns_that_are_absent_or_repeated_are_refused(columns: str) -> None:
    Path("people.csv").write_text(columns + GOOD)
    refused(*publish())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("place", ["folder", "file", "link", "people.csv"])
def test_a_destination_that_exists_is_refused_and_untouched(place: str) -> None:
    Path("folder").mkdir()
    Path("file").write_text("mine")
    Path("link").symlink_to("nowhere")
    assert "must not exist yet" in refused(*publish("--out", place))


@pytest.mark.usefixtures("here")
def test_without_a_destination_nothing_is_published() -> None:
    assert "out" in refused("publish", "people.csv", "--epsilon", "1")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("out", ["people.csv/out", "x" * 300, "/proc/out"])
def test_a_destination_that_cannot_be_is_refused(out: str) -> None:
    refused(*publish("--out", out))


@pytest.mark.usefixtures("here")
def test_a_full_disk_is_refused(monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "no space left" in refused(*publish())


@pytest.mark.parametrize("command", ["sample", "records"])
def test_a_full_disk_leaves_no_half_file(release: Path, monkeypatch, command: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "no space left" in refused(command, release, "--out", "half.csv")


READERS = {
    "inspect": [],
    "query": ["age < 30"],
    "sample": ["--out", "sample.csv"],
    "records": ["--out", "records.csv"],
}


@pytest.mark.parametrize("command", READERS)
def test_an_edited_manifest_is_refused(release: Path, command: str) -> None:
    path = release / "manifest.json"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "1/10"', 1))
    assert "was edited" in refused(command, "release", *READERS[command])


@pytest.mark.parametrize("command", READERS)
def test_a_newer_release_is_refused(release: Path, command: str) -> None:
    path = release / "manifest.json"
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', f'"format": {FORMAT + 1}', 1))
    assert "Upgrade Sfumato" in refused(command, "release", *READERS[command])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("place", ["absent", "people.csv", ".", ""])
def test_what_is_no_release_is_refused(command: str, place: str) -> None:
    refused(command, place, *READERS[command])


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "release", "age ="],
        ["query", "release", "salary > 3"],
        ["query", "release", "name = x"],
        ["query", "release", "sex = Unknown"],
        ["sample", "release", "--rows", "-1", "--out", "x.csv"],
        ["sample", "release", "--seed", "-1", "--out", "x.csv"],
        ["sample", "release", "--out", "x.txt"],
        ["records", "release", "--out", "people.csv"],
        ["records", "release", "--out", "nowhere/x.csv"],
        ["draft", "people.csv"],
        ["draft", "people.csv", "--target", "nothing", "--out", "draft.yaml"],
        ["account", "show", "others.csv"],
        ["account", "amend", "people.csv", "--budget", "0"],
        ["account", "amend", "people.csv", "--budget", "x"],
        ["account", "settle", "people.csv", "nothing"],
        ["account", "show", "people.csv", "--ledger", "people.csv"],
        ["taxonomy", "export", "people.schema.yaml", "age", "--out", "x.csv"],
        ["taxonomy", "export", "absent.yaml", "job", "--out", "x.csv"],
        ["taxonomy", "import", "people.schema.yaml", "job", "absent.csv", "--out", "x.yaml"],
        ["taxonomy", "import", "people.schema.yaml", "job", "people.csv", "--out", "x.yaml"],
        ["check", "people.csv", "--schema", "absent.yaml"],
    ],
    ids=" ".join,
)
def test_other_mistakes_are_refused_alike(release: Path, arguments: list[str]) -> None:
    assert release.exists()
    refused(*arguments)


@pytest.mark.usefixtures("here")
def test_a_ledger_that_is_no_ledger_is_refused() -> None:
    Path("people.ledger").write_text("mine")
    refused(*publish())
    Path("people.ledger").unlink()
    Path("people.ledger").mkdir()
    refused(*publish())


@pytest.mark.usefixtures("release")
def test_an_emptied_ledger_is_refused_and_not_begun_anew() -> None:
    Path("people.ledger").write_bytes(b"")
    assert "must be a Sfumato ledger" in refused(*publish())


def test_another_budget_than_the_accounts_is_refused(release: Path) -> None:
    Path("people.schema.yaml").write_text(SCHEMA.replace("budget: 4", "budget: 400"))
    assert "account amend" in refused(*publish())
    assert release.exists()


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
