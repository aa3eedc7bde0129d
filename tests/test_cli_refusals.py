"""Every bad input on the command line: one sentence, exit code 2, nothing spent, nothing written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from command_line import GOOD, HEADER, SCHEMA, done, publish, refused, run, write
from sfumato import Release
from sfumato.cli.show import REFUSED
from sfumato.release.manifest import FORMAT, PRIVATE


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
    assert "must have 20 rows or more" in refused("draft", "people.csv", "--out", "draft.yaml")
    assert run("check", "people.csv").exit_code == REFUSED
    done(*publish())
    assert Release.load(here / "out").manifest.epsilon == 1


@pytest.mark.usefixtures("here")
def test_one_column_is_refused_because_nothing_is_left_beside_the_class() -> None:
    Path("one.csv").write_text("income\n" + "low\nhigh\n" * 20)
    done("draft", "one.csv", "--target", "income")
    schema = Path("one.schema.yaml")
    schema.write_text(schema.read_text().replace("confirmed: false", "confirmed: true"))
    assert "besides the class" in refused(*publish(data="one.csv"))
    schema.write_text(schema.read_text().replace("kind: class", "kind: categorical"))
    assert "class attribute" in refused(*publish("--method", "diffgen", data="one.csv"))


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
    "risk": [],
}


@pytest.mark.parametrize("command", READERS)
def test_an_edited_manifest_is_refused(release: Path, command: str) -> None:
    path = release / "manifest.json"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "1/10"', 1))
    assert "was edited" in refused(command, "release", *READERS[command])


@pytest.mark.parametrize("command", READERS)
def test_a_newer_release_is_refused(release: Path, command: str) -> None:
    path = release / "manifest.json"
    path.write_text(path.read_text().replace(f'"format": {PRIVATE}', f'"format": {FORMAT + 1}', 1))
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
