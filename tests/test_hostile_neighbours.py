"""From the file to the folder: with the same noise, a table and its neighbour give the same release, byte for byte.

So nothing but the mechanisms' answers flows into a release, into what is told while it is made, or into the ledger.
"""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sfumato.account
from contracts import SOME_OF_EACH
from replay import Recorder, Replayer
from sfumato import Account, Laplace, Schema
from sfumato.methods.method import Method

SCHEMA = Schema.loads("""
name: people
confirmed: true
attributes:
  job: {kind: categorical, taxonomy: {Office: [Clerk, Judge], Art: [Dancer, Writer]}, unseen: Writer, missing: Writer}
  age: {kind: numeric, lower: 18, upper: 30, missing: Unknown}
  class: {kind: class, taxonomy: [Y, N]}
""")
FEW = (("Clerk", 20, "Y"), ("Clerk", 21, "Y"), ("Judge", 21, "N"), ("Clerk", 25, "N"), ("Judge", 22, "Y"))
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


Rows = tuple[tuple[object, ...], ...]


def published(rows: Rows, method: Method, mechanisms) -> dict[str, Any]:
    """Publish a CSV file with these mechanisms; give everything that can be seen of it from outside."""
    told: list[str] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(folder)
        frame = pd.DataFrame(list(rows), columns=["job", "age", "class"]).astype(object)
        frame.to_csv(place / "people.csv", index=False)
        account = Account(place / "people.ledger", SCHEMA)
        patch.setattr(sfumato.account, "Exact", lambda _: mechanisms)
        release = account.publish(place / "people.csv", method, Fraction(3), out=place / "out", watch=told.append)
        return {
            "files": {path.name: path.read_bytes() for path in sorted((place / "out").iterdir())},
            "told": told,
            "notes": release.notes,
            "shown": repr(release),
            "left": sorted(path.name for path in place.iterdir()),
            "paid": [(line.label, line.epsilon) for one in account.statement().publications for line in one.debits],
        }


@cache
def recorded(rows: Rows, method: Method, secure: bool = False) -> tuple[Recorder, dict[str, Any]]:
    """Publish once what is compared with many neighbours."""
    recorder = Recorder(1)
    recorder.secure = secure
    return recorder, published(rows, method, recorder)


def both(one: Rows, other: Rows, method: Method, secure: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Publish a table and, with the same answers, its neighbour."""
    recorder, left = recorded(one, method, secure)
    replayer = Replayer(recorder)
    replayer.secure = secure
    right = published(other, method, replayer)
    replayer.finish()
    return left, right


@SOME_OF_EACH
@pytest.mark.parametrize("record", RECORDS)
def test_one_record_more_changes_no_byte(record: str, method: Method) -> None:
    left, right = both(FEW, (*FEW, RECORDS[record]), method)
    assert left == right


@SOME_OF_EACH
def test_one_record_less_changes_no_byte(method: Method) -> None:
    left, right = both(FEW, FEW[1:], method)
    assert left == right


@SOME_OF_EACH
@pytest.mark.parametrize("record", ["a leaf that nobody has", "a number far above the range", "a missing number"])
def test_an_empty_table_and_one_of_one_row_are_alike(record: str, method: Method) -> None:
    left, right = both((), (RECORDS[record],), method)
    assert left == right


def test_the_comparison_can_fail() -> None:
    left, right = (published(rows, Laplace(), Recorder(1)) for rows in (FEW, (*FEW, FEW[0])))
    assert left["files"] != right["files"]
    assert left["told"] == right["told"]


@SOME_OF_EACH
def test_the_ledger_and_a_booked_release_tell_no_more(method: Method) -> None:
    """With a ledger a publication has a name of its own; nothing else differs."""
    left, right = map(nameless, both(FEW, (*FEW, RECORDS["a leaf that nobody has"]), method, secure=True))
    assert left == right
    assert left["paid"] != []


def nameless(seen: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a publication is called, and the digest that is over that, too."""
    manifest = json.loads(seen["files"]["manifest.json"])
    del manifest["publication"], manifest["digest"]
    return seen | {"files": seen["files"] | {"manifest.json": manifest}}
