"""A file of conditions on the command line: all of it is answered, or nothing is written and the line is named."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from command_line import done, done_json, refused
from sfumato import Release
from sfumato.release.questions import MOST_IN_BLOCK

CONDITIONS = ["age < 30", "sex = 'Female' and job in (Dancer, Writer)", "income = high"]


def asked(*lines: str, name: str = "asked.txt") -> Path:
    path = Path(name)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


FILES = {
    "a text": CONDITIONS,
    "a text with blank lines": ["", CONDITIONS[0], "  ", *CONDITIONS[1:], ""],
    "one column": ["condition", CONDITIONS[0], f'"{CONDITIONS[1]}"', CONDITIONS[2]],
    "several columns": ["id,condition,why", *(f'{number},"{one}",' for number, one in enumerate(CONDITIONS))],
    "a header in capitals": ["Id, Condition ", *(f'{number},"{one}"' for number, one in enumerate(CONDITIONS))],
    "over two lines": ["condition", CONDITIONS[0], "\"sex = 'Female'\n and job in (Dancer, Writer)\"", CONDITIONS[2]],
}


@pytest.mark.parametrize("lines", FILES.values(), ids=FILES)
def test_every_condition_of_a_file_is_answered(release: Path, lines: list[str]) -> None:
    expected = [Release.load(release).count(condition) for condition in CONDITIONS]
    answers = done_json("query", release, "--file", asked(*lines))["answers"]
    assert [one["value"] for one in answers] == pytest.approx([one.value for one in expected])
    assert [one["stddev"] for one in answers] == pytest.approx([one.stddev for one in expected])
    assert [" ".join(one["condition"].split()) for one in answers] == CONDITIONS
    shown = done("query", release, "--file", asked(*lines)).splitlines()
    assert shown[0].split() == ["condition", "count", "low", "high"]
    assert len(shown) == 5


@pytest.mark.parametrize("out", ["answers.csv", "answers.parquet"])
def test_answers_are_written_to_a_file(release: Path, out: str) -> None:
    assert "wrote 3 rows" in done("query", release, "--file", asked(*CONDITIONS), "--out", out)
    table = pq.read_table(out) if out.endswith("parquet") else pyarrow.csv.read_csv(out)
    assert table.column_names == ["condition", "value", "low", "high", "stddev", "noise", "model"]
    assert table["condition"].to_pylist() == CONDITIONS
    assert table["value"].to_pylist() == pytest.approx(Release.load(release).count_many(CONDITIONS).values.tolist())


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("salary > 3", "attribute salary is not in this release"),
        ("sex = Unknown", "a value of its taxonomy"),
        ("age < 30 or", "at character 12"),
        ("age between 3", "at character 14 (at 'its end')"),
        ("name = x", "dropped as an identifier"),
    ],
)
@pytest.mark.parametrize("out", [[], ["--out", "answers.csv"]], ids=["shown", "written"])
def test_a_mistake_names_its_line_and_place_and_writes_nothing(
    release: Path, condition: str, told: str, out: list[str]
) -> None:
    assert release.exists()
    lines = [*["age < 30"] * 16, condition, *CONDITIONS]
    said = refused("query", "release", "--file", asked(*lines), *out)
    assert "line 17 of asked.txt: " in said
    assert told in said
    said = refused("query", "release", "--file", asked("id,condition", *(f'1,"{one}"' for one in lines)), *out)
    assert "line 18 of asked.txt: " in said


def test_a_range_outside_the_domain_has_nobody(release: Path) -> None:
    answers = done_json("query", release, "--file", asked("age > 500", "age between 1 and 3"))["answers"]
    assert [(one["value"], one["stddev"], one["model"]) for one in answers] == [(0, 0, 0)] * 2


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("content", [b"", b"\n \n", b"condition\n", b"id,condition\n\n"])
def test_an_empty_file_is_refused(content: bytes) -> None:
    Path("asked.csv").write_bytes(content)
    assert "asked.csv must hold a condition, and is empty" in refused("query", "release", "--file", "asked.csv")


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'condition\n"age < 30', b"id,condition\n1\n", b"a,b\n1,2\n"])
def test_a_file_that_cannot_be_read_is_refused(content: bytes) -> None:
    Path("asked.csv").write_bytes(content)
    refused("query", "release", "--file", "asked.csv", "--out", "answers.csv")


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    ("row", "fields"), [("7,sex = Female and job in (Dancer, Writer),", 4), ("7,age < 30", 2), ("7", 1)]
)
def test_a_row_of_another_length_than_the_header_is_refused(row: str, fields: int) -> None:
    """A condition that is cut at its comma would be another one."""
    said = refused("query", "release", "--file", asked("id,condition,why", "1,age < 30,", row, name="asked.csv"))
    assert f"line 3 of asked.csv ({fields} fields) must have 3, like the header" in said
    assert "Quote fields that have commas" in said


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--file", "absent.csv"],
        ["--file", "."],
        ["age < 30", "--file", "asked.txt"],
        ["--explain", "--file", "asked.txt"],
        ["age < 30", "--out", "answers.csv"],
        ["--file", "asked.txt", "--out", "answers.json"],
        ["--file", "asked.txt", "--out", "people.csv"],
        ["--file", "asked.txt", "--out", "nowhere/answers.csv"],
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_refused(arguments: list[str]) -> None:
    asked(*CONDITIONS)
    refused("query", "release", *arguments)


@pytest.mark.usefixtures("release")
def test_a_full_disk_leaves_no_half_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    asked(*CONDITIONS)
    monkeypatch.setattr(os, "fsync", full)
    assert "no space left" in refused("query", "release", "--file", "asked.txt", "--out", "half.csv")


def test_a_file_of_more_conditions_than_are_answered_at_once(release: Path) -> None:
    ages = np.random.default_rng(0).integers(17, 91, 20_000).tolist()
    path = asked(*(f"age >= {age} and sex = Male" for age in ages))
    told = json.loads(done("query", release, "--file", path, "--out", "answers.parquet", "--json"))
    assert told == {"out": "answers.parquet", "rows": 20_000}
    assert len(ages) > MOST_IN_BLOCK
    counts = pq.read_table("answers.parquet")["value"].to_pylist()
    assert counts[-1] == pytest.approx(Release.load(release).count(f"age >= {ages[-1]} and sex = Male").value)
