"""Everything that can be refused is refused before anything is paid, and what is paid is on record."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from handmade import assert_same_draft
from sfumato import Account, DiffGen, DiffMulti, Release, Schema
from sfumato.engines.local import LocalEngine
from sfumato.errors import (
    BudgetError,
    CountError,
    MethodError,
    PrivacyError,
    ReleaseError,
    SchemaError,
    SfumatoError,
    TableError,
)
from sfumato.geometry.grid import Grid
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.measurements import Draft, Measurement

SCHEMA = """
name: people
confirmed: true
budget: 2
attributes:
  job: {kind: categorical, taxonomy: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}
  age: {kind: numeric, lower: 18, upper: 64}
  class: {kind: class, taxonomy: [Y, N]}
"""
TABLE = pd.DataFrame(
    {"job": ["Engineer", "Dancer", "Writer"] * 20, "age": [20, 40, 60] * 20, "class": ["Y", "N", "N"] * 20}
)
METHOD = DiffGen(specializations=3)
UNSEEN, GAPPY = TABLE.replace("Dancer", "Baker"), TABLE.replace("Dancer", None)

PROGRAM = """
import os, signal, sys
import pyarrow as pa
from sfumato import Account, DiffGen, Schema
from sfumato.engines.local import LocalEngine

schema, ledger, out, epsilon, dies_at = sys.argv[1:]
passes = 0
really = LocalEngine.tally

def tally(self, question):
    global passes
    passes += 1
    if passes == int(dies_at):
        os.kill(os.getpid(), signal.SIGKILL)
    return really(self, question)

LocalEngine.tally = tally
table = pa.table({"job": ["Engineer"] * 9, "age": [30] * 9, "class": ["Y"] * 9})
Account(ledger, Schema.loads(schema)).publish(table, DiffGen(specializations=3), epsilon, out=out or None)
"""


@pytest.fixture
def schema() -> Schema:
    return Schema.loads(SCHEMA)


@pytest.fixture
def account(schema: Schema, tmp_path: Path) -> Account:
    return Account(tmp_path / "people.ledger", schema)


def start(tmp_path: Path, out: Path | str, epsilon: str, dies_at: int = 0) -> subprocess.Popen[str]:
    """Publish in a process of its own, which may die in its n-th look at the data."""
    command = [sys.executable, "-c", PROGRAM, SCHEMA, tmp_path / "people.ledger", out, epsilon, dies_at]
    return subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)


def rubbish(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("people.ledger"))


def test_an_unconfirmed_schema_is_refused_and_opens_no_account(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="must be confirmed"):
        Account(tmp_path / "people.ledger", Schema.loads(SCHEMA.replace("confirmed: true", "confirmed: false")))
    assert list(tmp_path.iterdir()) == []


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def with_taken_place(account: Account, place: Path) -> Release:
    place.mkdir()
    return account.publish(TABLE, METHOD, 1, out=place)


REFUSALS: dict[str, tuple[type[SfumatoError], Callable[[Account, Path], object]]] = {
    "unseen value": (TableError, lambda account, out: account.publish(UNSEEN, METHOD, 1, out=out)),
    "missing value": (TableError, lambda account, out: account.publish(GAPPY, METHOD, 1, out=out)),
    "column absent": (TableError, lambda account, out: account.publish(TABLE[["job", "age"]], METHOD, 1, out=out)),
    "no table": (TableError, lambda account, out: account.publish(out / "absent.csv", METHOD, 1, out=out)),
    "too much": (BudgetError, lambda account, out: account.publish(TABLE, METHOD, "2.000001", out=out)),
    "nothing": (BudgetError, lambda account, out: account.publish(TABLE, METHOD, 0, out=out)),
    "not a number": (BudgetError, lambda account, out: account.publish(TABLE, METHOD, "nan", out=out)),
    "taken": (ReleaseError, with_taken_place),
    "h": (MethodError, lambda account, out: account.publish(TABLE, DiffGen(specializations=99), 1, out=out)),
    "seed": (SfumatoError, lambda account, out: account.publish(TABLE, METHOD, 1, out=out, unsafe_seed=-1)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_spends_and_leaves_nothing(account: Account, tmp_path: Path, case: str) -> None:
    kind, publish = REFUSALS[case]
    with pytest.raises(kind):
        publish(account, tmp_path / "release")
    assert account.statement().publications == ()
    assert rubbish(tmp_path) in ([], ["release"])
    assert not (tmp_path / "release" / "manifest.json").exists()


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_leaves_no_parent_folders(account: Account, tmp_path: Path, case: str) -> None:
    if case == "taken":
        return
    with pytest.raises(SfumatoError):
        REFUSALS[case][1](account, tmp_path / "far" / "away" / "release")
    assert rubbish(tmp_path) == []


def test_a_full_disk_is_found_out_before_anything_is_spent(account: Account, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", full_disk)
    with pytest.raises(ReleaseError, match="no space left"):
        account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    assert account.statement().publications == ()
    assert rubbish(tmp_path) == []


def test_no_error_tells_a_value_of_the_table(account: Account) -> None:
    with pytest.raises(TableError) as caught:
        account.publish(TABLE.replace({"Dancer": "CANARY", "N": "KANARI"}), METHOD, 1)
    assert "CANARY" not in str(caught.value)
    assert "KANARI" not in str(caught.value)
    assert "job: value not in the taxonomy" in str(caught.value)


def test_the_ledger_and_the_manifest_say_the_same(account: Account, tmp_path: Path) -> None:
    release = account.publish(TABLE, METHOD, "1/3", out=tmp_path / "release")
    (publication,) = account.statement().publications
    assert publication.debits == release.manifest.debits == Release.load(tmp_path / "release").manifest.debits
    assert (publication.id, publication.outcome) == (release.manifest.publication, "published")
    assert publication.paid == release.manifest.epsilon == Fraction(1, 3)


def test_the_plan_is_what_is_paid_at_most(account: Account) -> None:
    schedule = account.plan(METHOD, 1)
    release = account.publish(TABLE, METHOD, 1)
    assert {debit.label for debit in release.manifest.debits} <= set(schedule.parts)
    assert release.manifest.epsilon <= schedule.total == 1


def test_a_lifetime_budget_is_spent_once(account: Account) -> None:
    account.publish(TABLE, METHOD, "3/2")
    with pytest.raises(BudgetError, match="at most the 1/2 left"):
        account.publish(TABLE, METHOD, 1)
    account.publish(TABLE, METHOD, "1/2")
    assert account.statement().left == 0


@pytest.mark.parametrize(
    ("error", "told"), [(RuntimeError, CountError), (MemoryError, CountError), (KeyboardInterrupt, KeyboardInterrupt)]
)
def test_a_method_that_fails_midway_keeps_its_debits_and_gives_the_rest_back(
    account: Account, tmp_path: Path, monkeypatch, error: type[BaseException], told: type[BaseException]
) -> None:
    really = LocalEngine.tally
    looks = []

    def second_look_fails(self, tally):
        looks.append(tally)
        if len(looks) == 2:
            raise error
        return really(self, tally)

    monkeypatch.setattr(LocalEngine, "tally", second_look_fails)
    with pytest.raises(told):
        account.publish(TABLE, DiffGen(specializations=3), 1, out=tmp_path / "release")
    (publication,) = account.statement().publications
    assert publication.outcome == "failed"
    assert publication.debits[-1].label == "counts"
    assert account.statement().spent == publication.paid == sum(debit.epsilon for debit in publication.debits)
    assert rubbish(tmp_path) == []


def a_copy(draft: Draft, **changes: object) -> tuple[Measurement, ...]:
    """Give all that was measured, the last one made again by hand."""
    made = replace(draft.final, noisy=replace(draft.final.noisy, counts=draft.final.counts.copy(), **changes))
    return (*draft.measurements[:-1], made)


TAMPERED: dict[str, Callable[[Draft], tuple[Measurement, ...]]] = {
    "nothing": lambda _: (),
    "a copy": a_copy,
    "more noise than there is": lambda draft: a_copy(draft, rates=(Fraction(1, 100),)),
    "less noise than there is": lambda draft: a_copy(draft, rates=(Fraction(100),)),
    "no noise": lambda draft: a_copy(draft, rates=()),
    "one more": lambda draft: (*draft.measurements, replace(a_copy(draft)[-1], label="more")),
    "another round's name": lambda draft: (replace(draft.measurements[0], label="counts"),),
    "another question": lambda draft: (another_question(draft.measurements[0]), *draft.measurements[1:]),
}


def another_question(one: Measurement) -> Measurement:
    """Turn the question about a margin into one about other ranges of it, as many."""
    (at,), leaves = one.question.attributes, one.question.regions.shape
    cuts = range(one.question.places)
    shifted = Grid.marginal((*leaves[:at], leaves[at] + 1, *leaves[at + 1 :]), {at: (*cuts, leaves[at] + 1)})
    return replace(one, question=replace(one.question, regions=shifted))


@pytest.mark.parametrize("case", TAMPERED)
def test_counts_that_the_meter_has_not_given_are_not_sealed(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    really = DiffGen.publish

    def tampering(*given: object) -> Draft:
        draft = really(*given)
        return replace(draft, measurements=TAMPERED[case](draft))

    monkeypatch.setattr(DiffGen, "publish", tampering)
    with pytest.raises(PrivacyError, match="must be what the meter has measured"):
        account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    (publication,) = account.statement().publications
    assert (publication.outcome, publication.paid) == ("failed", 1)
    assert rubbish(tmp_path) == []


@pytest.mark.parametrize("change", [{"notes": ("exactly 5",)}, {"steps": (3.5,)}], ids=str)
def test_steps_are_words_and_notes_are_not_sealed(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    really = DiffGen.publish
    monkeypatch.setattr(DiffGen, "publish", lambda *given: replace(really(*given), **change))
    with pytest.raises(PrivacyError, match="steps in words, and no notes"):
        account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    assert rubbish(tmp_path) == []


class Unreadable(DiffMulti):
    """A method that names a model which cannot read the nodes of a tree."""

    model = "grid"


def test_what_the_named_model_cannot_read_is_neither_counted_nor_paid(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalEngine, "tally", lambda *_: pytest.fail("it looked"))
    with pytest.raises(ReleaseError, match="what the release's model can read"):
        account.publish(TABLE, Unreadable(margins=0), 1)
    (publication,) = account.statement().publications
    assert (publication.outcome, publication.debits, account.statement().left) == ("failed", (), 2)


class Unheard(DiffGen):
    """A method that names a model which nobody knows."""

    model = "crystal ball"


def test_a_model_that_nobody_knows_is_refused_before_anything_is_opened(account: Account) -> None:
    with pytest.raises(ReleaseError, match=r"model \(crystal ball\) must be one of grid"):
        account.publish("absent.csv", Unheard(specializations=2), 1)
    assert account.statement().publications == ()


def test_a_release_that_cannot_be_written_is_paid_for_all_the_same(
    account: Account, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ReleaseError, match="no space left"):
        account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    (publication,) = account.statement().publications
    assert (publication.outcome, publication.paid) == ("failed", 1)
    assert rubbish(tmp_path) == []


@pytest.mark.parametrize(("dies_at", "labels"), [(1, ["choice 1"]), (2, [])])
def test_a_kill_between_debit_and_count_leaves_the_debit_and_no_release(
    tmp_path: Path, schema: Schema, dies_at: int, labels: list[str]
) -> None:
    process = start(tmp_path, tmp_path / "release", "1", dies_at)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    statement = Ledger.open(tmp_path / "people.ledger").statement()
    (publication,) = statement.publications
    assert (publication.outcome, statement.left) == ("open", 1)
    assert not labels or [debit.label for debit in publication.debits] == labels
    assert labels or publication.debits[-1].label == "counts"
    assert not (tmp_path / "release").exists()
    assert all(name.startswith(".") for name in rubbish(tmp_path))
    Ledger.open(tmp_path / "people.ledger").settle(publication.id, "settled by hand")
    account = Account(tmp_path / "people.ledger", schema)
    assert account.statement().left == 2 - publication.paid
    account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    assert Release.load(tmp_path / "release").manifest.epsilon == 1, "the same place can be published to"


@pytest.mark.slow
def test_processes_publishing_at_once_cannot_overspend(tmp_path: Path, account: Account) -> None:
    processes = [start(tmp_path, tmp_path / f"release{number}", "3/4") for number in range(3)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 0, 1]
    assert sum("left of the lifetime budget" in error for error in errors) == 1
    statement = account.statement()
    assert statement.spent == Fraction(3, 2)
    assert sum((tmp_path / f"release{number}").exists() for number in range(3)) == 2


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_table_of_hardly_any_rows_is_published_like_any_other(account: Account, tmp_path: Path, rows: int) -> None:
    account.publish(TABLE.head(rows), METHOD, 1, out=tmp_path / "release")
    release = Release.load(tmp_path / "release")
    assert release.manifest.epsilon == 1
    assert release.count("age < 30").stddev > 0
    release.sample(5)


def test_a_header_only_file_is_published_like_any_other(account: Account, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("job,age,class\n")
    assert account.publish(tmp_path / "people.csv", METHOD, 1).manifest.epsilon == 1


def test_the_same_seed_gives_the_same_release_and_no_guarantee(account: Account) -> None:
    free = Account(account._ledger.path.with_name("free.ledger"), account.schema.without_budget())
    one, other = (free.publish(TABLE, METHOD, "1/2", unsafe_seed=3) for _ in range(2))
    assert_same_draft(one.draft, other.draft)
    assert (one.manifest.secure, one.manifest.debits) == (False, other.manifest.debits)
    assert account.publish(TABLE, METHOD, "1/2").manifest.secure


def test_progress_tells_each_round_in_order(account: Account) -> None:
    told: list[str] = []
    release = account.publish(TABLE, METHOD, 1, watch=told.append)
    assert [line for line in told if not line.endswith(("table", "release"))] == [
        debit.label for debit in release.manifest.debits
    ]


def test_a_saved_release_is_json_and_parquet_that_say_who_paid(account: Account, tmp_path: Path) -> None:
    account.publish(TABLE, METHOD, 1, out=tmp_path / "release")
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert sum(Fraction(line["epsilon"]) for line in manifest["ledger"]) == Fraction(manifest["epsilon"]) == 1
