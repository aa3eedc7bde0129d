"""What a stranger wrote into a release, a schema or a table is shown escaped, and is run by no spreadsheet."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from command_line import run
from kinds import EVERYONE
from sfumato import Release, Schema, defused
from sfumato.cli.show import Show, table, visible, visible_json
from sfumato.errors import ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.regions import Boxes
from sfumato.privacy.budget import Debit
from sfumato.privacy.measurements import Draft, Measurement, Noisy, Question
from sfumato.release.manifest import Manifest
from sfumato.release.promises import ConfidenceCap, Knowledge
from sfumato.release.verify import _summed
from sfumato.storage import replaced_file, staged_file, staged_folder

CLEAR = "\x1b[2J\x1b]0;owned\x07"
FLIPPED = "\u202egnp.exe"
MARKS = (CLEAR, FLIPPED, "\u2066", "\x9b31m", "\u200b", "\x7f", "\u2028", "two\nlines", "\r", "\ud800")


@pytest.mark.parametrize("mark", MARKS, ids=ascii)
def test_marks_are_shown_as_they_are_written_in_code(mark: str) -> None:
    assert visible(mark).isprintable()
    assert visible(f"before{mark}after").startswith("before\\") or mark in (CLEAR, FLIPPED, "two\nlines")
    assert table([(mark, "x")], ("a", "b")).count("\n") == 2
    told = visible_json({"step": mark})
    assert told.isprintable()
    assert json.loads(told) == {"step": mark}
    for text in ("naïve Größe", "日本語", "ε ≤ 1"):
        assert visible(text) == text


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release whose steps, labels, categories and method carry such marks: all of it sealed by its maker."""
    monkeypatch.chdir(tmp_path)
    facts = {
        "kind": "categorical",
        "taxonomy": [f"a{CLEAR}", f"b{FLIPPED}", "=1+1", "two\nlines"],
        "root": f"any{CLEAR}",
    }
    schema = Schema.parse({"name": f"people{CLEAR}", "confirmed": True, "attributes": {"job": facts}})
    grid = Grid.finest(schema.shape)
    counts = Measurement(f"counts{CLEAR}", Question(grid), Noisy.even(np.array([[5], [3], [2], [9]]), Fraction(1)))
    draft = Draft(grid, (counts,), "grid")
    debit = Debit(f"counts{CLEAR}", f"noise{FLIPPED}", Fraction(1), Fraction(1), 4)
    manifest = Manifest(
        "0",
        f"id{CLEAR}",
        f"laplace{FLIPPED}",
        {f"p{CLEAR}": FLIPPED},
        (debit,),
        True,
        schema.digest,
        steps=(f"warning: {CLEAR}", f"step {FLIPPED}\nok  author: signed by the office"),
    )
    Release(schema, draft, manifest).save(tmp_path / "release")
    return Path("release")


COMMANDS = [
    ("inspect", "release"),
    ("verify", "release"),
    ("risk", "release"),
    ("query", "release", "--explain"),
    ("query", "release", f"job = '{CLEAR}'"),
    ("sql", "release", "select job, count(*) from release group by job"),
    ("sql", "release", f"select '{CLEAR}' as x from release"),
    ("sample", "release", "--out", f"{CLEAR}.txt"),
    ("inspect", f"nowhere{FLIPPED}"),
    ("report", "release"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=ascii)
@pytest.mark.usefixtures("hostile")
def test_no_command_shows_them_raw(command: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        result = run(*command, *more)
        shown = result.stdout + result.stderr
        assert shown
        assert not [one for one in shown if not one.isprintable() and one != "\n"]
        assert not any(line.startswith("ok  author: signed by the office") for line in shown.splitlines())
        Path("release.html").unlink(missing_ok=True)


def test_a_step_cannot_pass_for_a_line_of_ours(hostile: Path) -> None:
    told = run("inspect", hostile).stdout
    assert "\\nok  author: signed by the office" in told


def test_progress_and_asides_are_escaped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Show(False).progress(f"round {CLEAR}")
    Show(False).aside(FLIPPED)
    told = capsys.readouterr().err
    assert "\x1b[2J" not in told
    assert "\u202e" not in told


ROWS = pa.table(
    {
        "=name": ["=1+1", "+1", "-1 to 0", "@SUM(A1)", "\tx", "\rx", "plain", "a=b", None],
        "number": [-1, -2, 3, 4, 5, 6, 7, 8, 9],
        "coded": pa.array(["=x", "y", "=x", "y", "y", "y", "y", "y", "y"]).dictionary_encode(),
    }
)


def test_formulas_are_defused_and_numbers_stay() -> None:
    told = defused(ROWS)
    assert told.column_names == ["'=name", "number", "coded"]
    assert told["'=name"].to_pylist() == ["'=1+1", "'+1", "'-1 to 0", "'@SUM(A1)", "'\tx", "'\rx", "plain", "a=b", None]
    assert told["number"].to_pylist() == ROWS["number"].to_pylist()
    assert told["coded"].to_pylist()[:2] == ["'=x", "y"]


@pytest.mark.usefixtures("hostile")
def test_csv_files_are_defused_unless_formulas_are_to_be_kept() -> None:
    for more, expected in (((), "'=1+1"), (("--keep-formulas",), "=1+1")):
        run("records", "release", "--out", "records.csv", *more)
        assert expected in pa.csv.read_csv("records.csv")["job"].to_pylist()
        Path("records.csv").unlink()
    run("records", "release", "--out", "records.parquet")
    assert "=1+1" in pa.parquet.read_table("records.parquet")["job"].to_pylist()


class Disk:
    """Notes what is synced and what is renamed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, int] = {}
        self.unsynced: list[str] = []
        real_sync, real_rename, real_replace = os.fsync, os.rename, os.replace

        def fsync(handle: int) -> None:
            known = os.fstat(handle)
            self.synced[known.st_ino] = known.st_size
            real_sync(handle)

        def check(source: object) -> None:
            place = Path(str(source))
            for one in [place, *(place.rglob("*") if place.is_dir() else ())]:
                known = one.stat()
                if self.synced.get(known.st_ino) is None or (
                    one.is_file() and self.synced[known.st_ino] != known.st_size
                ):
                    self.unsynced.append(one.name)

        def rename(source: object, target: object, **how: object) -> None:
            check(source)
            real_rename(source, target, **how)
            self.synced.pop(Path(str(target)).parent.stat().st_ino, None)

        def replace(source: object, target: object, **how: object) -> None:
            check(source)
            real_replace(source, target, **how)
            self.synced.pop(Path(str(target)).parent.stat().st_ino, None)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "rename", rename)
        monkeypatch.setattr(os, "replace", replace)


def test_what_is_renamed_is_on_the_disk_before_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    with staged_folder(tmp_path / "folder", 10) as staging:
        (staging / "one").write_text("a")
        (staging / "two").write_text("b")
    assert tmp_path.stat().st_ino in disk.synced
    with staged_file(tmp_path / "file") as staging:
        staging.write_text("c")
    assert tmp_path.stat().st_ino in disk.synced
    with replaced_file(tmp_path / "file") as staging:
        staging.write_text("d")
    assert tmp_path.stat().st_ino in disk.synced
    assert disk.unsynced == []


def cap(expected_below_by: float) -> bool:
    """Whether a cap is kept by one group of four people, one of whom has a value, at a sampling rate of 1/2.

    Observed is 1/2 * 1/4; statistics are such that expected, 1 - (1 - p)^4, is lower by a little.
    """
    chance = 1 - (1 - 0.125 + expected_below_by) ** 0.25
    knowledge = Knowledge(EVERYONE.marginals, np.array([chance, 1 - chance]))
    shape = knowledge.shape
    promise = ConfidenceCap(("a", "b", "c"), "class", Fraction(1, 2), knowledge)
    boxes = Boxes(shape, np.array([[[0, leaves] for leaves in shape]]), Fraction(1, 2))
    return promise.kept(boxes, np.array([[1, 3]]))


@pytest.mark.parametrize("excess", [1e-2, 1e-4, 1e-9, 1e-11])
def test_the_account_finds_a_cap_that_is_missed_by_little(excess: float) -> None:
    assert cap(0.0)
    assert cap(-1e-6)
    assert not cap(excess)


def test_sums_of_any_length_are_added_up() -> None:
    """Three rounds whose prices have nothing in common: each can be paid, and their sum has 29 digits below."""
    parts = [Fraction(1, one) for one in (2147483647, 2147483629, 2147483587)]
    debits = tuple(Debit(str(at), "noise", part, Fraction(1), 1) for at, part in enumerate(parts))
    plain = Manifest("0", "id", "laplace", {}, debits, True, "digest").plain()
    assert len(plain["epsilon"]) > 40
    assert "3 lines sum to the epsilon" in _summed(plain)
    with pytest.raises(ReleaseError, match="must sum"):
        _summed(plain | {"epsilon": "1"})
