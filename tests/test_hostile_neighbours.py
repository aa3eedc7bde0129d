"""From the file to the folder: with the same noise, a table and its neighbour give the same release, byte for byte.

So nothing but the mechanisms' answers flows into a release, into what is told while it is made, or into the ledger.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import sfumato.account
from replay import Recorder, Replayer
from sfumato import Account, CDiffGen, DiffGen, DiffMulti, DPCocGen, Laplace, Schema
from sfumato.methods.method import Method

SCHEMA = Schema.loads("""
name: people
confirmed: true
attributes:
  job: {kind: categorical, taxonomy: {Office: [Clerk, Judge], Art: [Dancer, Writer]}, unseen: Writer, missing: Writer}
  age: {kind: numeric, lower: 18, upper: 30, missing: Unknown}
  class: {kind: class, taxonomy: [Y, N]}
""")
FEW = [("Clerk", 20, "Y"), ("Clerk", 21, "Y"), ("Judge", 21, "N"), ("Clerk", 25, "N"), ("Judge", 22, "Y")]
RECORDS = {
    "a rare value": ("Judge", 29, "N"),
    "a leaf that nobody has": ("Dancer", 20, "Y"),
    "a name that was never seen": ("Astronaut", 20, "Y"),
    "a number far above the range": ("Clerk", 10**9, "Y"),
    "a number far below the range": ("Clerk", -1, "N"),
    "a number with decimals": ("Clerk", 20.75, "N"),
    "a missing number": ("Judge", None, "Y"),
    "a missing name": (None, 21, "N"),
    "one like another": ("Clerk", 20, "Y"),
}
METHODS = [
    Laplace(),
    DiffGen(specializations=3),
    DiffGen.as_published(specializations=2),
    CDiffGen(specializations=2),
    DiffMulti(),
    DiffMulti.as_published(specializations=4),
    DPCocGen(),
    DPCocGen.as_published(),
]
IDS = [f"{method.name} {number}" for number, method in enumerate(METHODS)]


def published(rows: list, method: Method, mechanisms, place: Path) -> dict[str, object]:
    """Publish a CSV file with these mechanisms; give everything that can be seen of it from outside."""
    place.mkdir()
    frame = pd.DataFrame(rows, columns=["job", "age", "class"]).astype(object)
    frame.to_csv(place / "people.csv", index=False)
    told: list[str] = []
    account = Account(place / "people.ledger", SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sfumato.account, "Exact", lambda _: mechanisms)
        release = account.publish(place / "people.csv", method, Fraction(3), out=place / "out", watch=told.append)
    files = {path.name: path.read_bytes() for path in sorted((place / "out").iterdir())}
    return {"files": files, "told": told, "notes": release.notes, "shown": repr(release), "left": listing(place)}


def listing(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def assert_alike(one: list, other: list, method: Method, tmp_path: Path, seed: int = 1) -> None:
    recorder = Recorder(seed)
    left = published(one, method, recorder, tmp_path / "one")
    replayer = Replayer(recorder)
    right = published(other, method, replayer, tmp_path / "other")
    replayer.finish()
    assert left == right


@pytest.mark.parametrize("method", METHODS, ids=IDS)
@pytest.mark.parametrize("record", RECORDS)
def test_one_record_more_changes_no_byte(record: str, method: Method, tmp_path: Path) -> None:
    assert_alike(FEW, [*FEW, RECORDS[record]], method, tmp_path)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_one_record_less_changes_no_byte(method: Method, tmp_path: Path) -> None:
    assert_alike(FEW, FEW[1:], method, tmp_path)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
@pytest.mark.parametrize("record", ["a leaf that nobody has", "a number far above the range", "a missing number"])
def test_an_empty_table_and_one_of_one_row_are_alike(record: str, method: Method, tmp_path: Path) -> None:
    assert_alike([], [RECORDS[record]], method, tmp_path)


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    left = published(FEW, Laplace(), Recorder(1), tmp_path / "one")
    right = published([*FEW, FEW[0]], Laplace(), Recorder(1), tmp_path / "other")
    assert left["files"] != right["files"]
    assert left["told"] == right["told"]


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_the_ledger_and_a_booked_release_tell_no_more(method: Method, tmp_path: Path) -> None:
    """With a ledger a publication has a name of its own; nothing else differs."""
    recorder = Recorder(2)
    recorder.secure = True
    left = published(FEW, method, recorder, tmp_path / "one")
    replayer = Replayer(recorder)
    replayer.secure = True
    right = published([*FEW, RECORDS["a leaf that nobody has"]], method, replayer, tmp_path / "other")
    ids = [json.loads(seen["files"].pop("manifest.json")) for seen in (left, right)]
    for one in ids:
        del one["publication"], one["digest"]
    assert ids[0] == ids[1]
    assert left == right
    paid = [Account(tmp_path / name / "people.ledger", SCHEMA).statement() for name in ("one", "other")]
    debits = [[(line.label, line.epsilon) for one in told.publications for line in one.debits] for told in paid]
    assert debits[0] == debits[1] != []
