"""What is paid stays paid: no account overspends, and no attempt to rewrite or replace it succeeds."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from debits import ROUND, debit
from sfumato.errors import BudgetError, LedgerError
from sfumato.privacy import ledger as ledger_module
from sfumato.privacy.ledger import FORMAT, TABLES, Ledger, Reservation, Witness


def test_a_new_ledger_has_its_whole_budget(ledger: Ledger) -> None:
    statement = ledger.statement()
    assert (statement.name, statement.budget, statement.left) == ("people", Fraction(2), Fraction(2))
    assert statement.publications == ()


def test_a_reservation_holds_all_of_its_epsilon(ledger: Ledger) -> None:
    ledger.reserve("diffgen", Fraction(2, 3))
    assert ledger.statement().left == Fraction(4, 3)


def test_debits_come_out_of_the_reservation(ledger: Ledger) -> None:
    ledger.reserve("diffgen", Fraction(2, 3)).pay(ROUND)
    (publication,) = ledger.statement().publications
    assert publication.debits == (ROUND,)
    assert (publication.outcome, publication.paid, publication.held) == ("open", Fraction(1, 3), Fraction(2, 3))


def test_settling_gives_back_what_was_not_spent(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    reservation.pay(ROUND)
    reservation.settle("failed")
    assert ledger.statement().left == Fraction(2) - Fraction(1, 3)


def test_settling_never_gives_back_what_was_spent(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1, 3))
    reservation.pay(ROUND)
    reservation.settle("failed")
    assert ledger.statement().spent == Fraction(1, 3)


def test_an_epsilon_beyond_what_is_left_is_refused(ledger: Ledger) -> None:
    ledger.reserve("diffgen", Fraction(3, 2))
    with pytest.raises(BudgetError, match="1/2 left"):
        ledger.reserve("diffgen", Fraction(1, 2) + Fraction(1, 10**9))
    assert len(ledger.statement().publications) == 1


def test_exactly_what_is_left_is_granted(ledger: Ledger) -> None:
    for _ in range(6):
        ledger.reserve("diffgen", Fraction(1, 3))
    assert ledger.statement().left == 0


def test_an_epsilon_can_be_refused_beforehand(ledger: Ledger) -> None:
    ledger.refuse_beyond(Fraction(2))
    with pytest.raises(BudgetError):
        ledger.refuse_beyond(Fraction(201, 100))
    assert ledger.statement().publications == ()


def test_a_debit_beyond_the_reservation_is_refused(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1, 2))
    reservation.pay(ROUND)
    with pytest.raises(BudgetError, match="1/6 left"):
        reservation.pay(ROUND)
    assert ledger.statement().spent == Fraction(1, 2)
    assert len(ledger.statement().publications[0].debits) == 1


def test_debits_may_use_the_reservation_up(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    for _ in range(3):
        reservation.pay(ROUND)
    assert ledger.statement().publications[0].paid == 1


def test_a_settled_publication_cannot_pay(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    reservation.settle("settled by hand")
    with pytest.raises(LedgerError, match="must be open"):
        reservation.pay(ROUND)


def test_a_publication_is_settled_once(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    reservation.settle("published")
    with pytest.raises(LedgerError, match="must be open"):
        reservation.settle("failed")


def test_an_unknown_publication_cannot_pay(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="must be open"):
        Reservation(ledger, "nobody", Fraction(1)).pay(ROUND)


def test_publications_pay_apart(ledger: Ledger) -> None:
    first, second = ledger.reserve("diffgen", Fraction(1, 3)), ledger.reserve("diffgen", Fraction(1))
    first.pay(ROUND)
    second.pay(ROUND)
    assert [publication.paid for publication in ledger.statement().publications] == [Fraction(1, 3)] * 2


def test_without_a_budget_nothing_is_refused(path: Path) -> None:
    ledger = Ledger(path, "people", None)
    ledger.reserve("diffgen", Fraction(900))
    assert ledger.statement().left is None
    assert ledger.statement().spent == 900


def test_an_amended_budget_counts_from_now_on(ledger: Ledger) -> None:
    ledger.amend(Fraction(3))
    ledger.reserve("diffgen", Fraction(3))
    ledger.amend(Fraction(1))
    assert ledger.statement().left == 0
    with pytest.raises(BudgetError):
        ledger.reserve("diffgen", Fraction(1, 100))


def test_an_amended_budget_leaves_the_old_one_on_record(ledger: Ledger, path: Path) -> None:
    ledger.amend(Fraction(3))
    ledger.amend(None)
    with closing(sqlite3.connect(path)) as db:
        assert [text for (text,) in db.execute("select epsilon from budget")] == ["2", "3", None]


def test_a_schema_with_another_budget_is_refused(ledger: Ledger, path: Path) -> None:
    ledger.reserve("diffgen", Fraction(1))
    with pytest.raises(LedgerError, match=r"budget \(3\)"):
        Ledger(path, "people", Fraction(3))


def test_a_schema_with_a_budget_is_refused_by_an_unlimited_account(path: Path) -> None:
    Ledger(path, "people", None).begin()
    with pytest.raises(LedgerError, match="unlimited"):
        Ledger(path, "people", Fraction(3))


def test_a_schema_without_a_budget_keeps_the_accounts(ledger: Ledger, path: Path) -> None:
    assert ledger.statement().budget == Ledger(path, "people", None).statement().budget == 2


def test_a_schema_follows_an_amendment(ledger: Ledger, path: Path) -> None:
    ledger.amend(Fraction(3))
    assert Ledger(path, "people", Fraction(3)).statement().left == 3
    with pytest.raises(LedgerError):
        Ledger(path, "people", Fraction(2))


def test_opening_again_changes_nothing(busy: Ledger, path: Path) -> None:
    before = path.read_bytes()
    assert Ledger(path, "people", Fraction(2)).statement() == Ledger.open(path).statement() == busy.statement()
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_updated(busy: Ledger, table: str) -> None:
    column = TABLES[table].split()[0]
    with (
        closing(sqlite3.connect(busy.path)) as db,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        db.execute(f"update {table} set {column} = {column}")


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_deleted(busy: Ledger, table: str) -> None:
    with (
        closing(sqlite3.connect(busy.path)) as db,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        db.execute(f"delete from {table}")


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_replaced(busy: Ledger, table: str) -> None:
    with closing(sqlite3.connect(busy.path)) as db:
        columns = ", ".join(name for _, name, *_ in db.execute(f"pragma table_info({table})"))
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(f"insert or replace into {table} (rowid, {columns}) select rowid, {columns} from {table}")


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)], ids=str)
def test_a_reservation_of_nothing_or_less_is_refused(ledger: Ledger, epsilon: Fraction) -> None:
    with pytest.raises(BudgetError):
        ledger.reserve("diffgen", epsilon)
    assert ledger.statement().left == 2


def test_a_negative_debit_is_refused(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    with pytest.raises(BudgetError):
        reservation.pay(debit(Fraction(-1)))


def test_a_settlement_cannot_leave_a_publication_open(ledger: Ledger) -> None:
    reservation = ledger.reserve("diffgen", Fraction(1))
    with pytest.raises(LedgerError):
        reservation.settle("open")


def test_a_newer_format_is_refused(ledger: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("drop trigger account_update")
        db.execute("update account set format = ?", (FORMAT + 1,))
        db.commit()
    for opening in (lambda: Ledger.open(path), lambda: Ledger(path, "people", Fraction(2))):
        with pytest.raises(LedgerError, match="format"):
            opening()
    assert ledger.path == path


def test_a_ledger_that_does_not_exist_cannot_be_opened(path: Path) -> None:
    with pytest.raises(LedgerError, match="must exist"):
        Ledger.open(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"id,age\n1,34\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000], ids=["text", "torn"]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for opening in (lambda: Ledger.open(path), lambda: Ledger(path, "people", Fraction(2))):
        with pytest.raises(LedgerError, match="must be a writable Sfumato ledger"):
            opening()
    assert path.read_bytes() == content


def test_a_database_of_others_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table orders (number integer)")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError):
        Ledger.open(path)
    with pytest.raises(LedgerError):
        Ledger(path, "people", Fraction(2))
    assert path.read_bytes() == before


def test_a_database_of_others_with_accounts_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table account (number integer)")
        db.commit()
    with pytest.raises(LedgerError):
        Ledger(path, "people", Fraction(2))


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "people.ledger", tmp_path / "nowhere" / "people.ledger", tmp_path):
        with pytest.raises(LedgerError, match="must be a writable Sfumato ledger"):
            Ledger(place, "people", Fraction(2)).reserve("diffgen", Fraction(1))


def test_an_empty_file_is_not_taken_for_a_new_ledger(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="another database"):
        Ledger(path, "people", Fraction(2))


def test_opening_begins_nothing_and_another_budget_may_still_be_declared(path: Path) -> None:
    assert Ledger(path, "people", Fraction(1)).statement().left == 1
    assert not path.exists()
    assert Ledger(path, "people", Fraction(4)).statement().left == 4


def test_a_ledger_belongs_to_one_table(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="belongs to people"):
        Ledger(ledger.path, "others", Fraction(2))


# An older ledger in the place of a newer one is noticed where it can be, and no honest ledger is ever accused.

ROUND_SMALL = debit(Fraction(1, 20))


@pytest.fixture
def older(ledger: Ledger, tmp_path: Path) -> Path:
    """A copy from before a publication."""
    ledger.reserve("diffgen", Fraction(1, 2)).settle("failed")
    copy = Path(shutil.copy(ledger.path, tmp_path / "older"))
    ledger.reserve("diffgen", Fraction(1)).pay(ROUND)
    return copy


def test_an_older_copy_in_the_ledgers_place_is_refused(ledger: Ledger, older: Path) -> None:
    older.replace(ledger.path)
    for attempt in (
        lambda: Ledger(ledger.path, "people", Fraction(2)),
        lambda: Ledger.open(ledger.path),
        lambda: ledger.reserve("diffgen", Fraction(1)),
        lambda: ledger.disclose("mondrian", despite_budget=True),
    ):
        with pytest.raises(LedgerError, match="an older copy was put in its place"):
            attempt()


def test_a_ledger_that_was_removed_is_not_begun_anew(ledger: Ledger, older: Path) -> None:
    ledger.path.unlink()
    older.unlink()
    again = Ledger(ledger.path, "people", Fraction(2))
    for attempt in (again.statement, again.begin, lambda: again.reserve("diffgen", Fraction(1))):
        with pytest.raises(LedgerError, match="it was deleted"):
            attempt()
    assert not ledger.path.exists()


@pytest.mark.usefixtures("older")
def test_a_note_that_lags_accuses_nobody_and_catches_up(ledger: Ledger) -> None:
    note = Witness(ledger.path).path
    seen = int(note.read_text())
    note.write_text("1\n")
    ledger.reserve("diffgen", Fraction(1, 10))
    assert int(note.read_text()) == seen + 1


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"many", b"-5", b"9" * 5000])
def test_a_note_that_is_none_accuses_nobody(ledger: Ledger, content: bytes) -> None:
    Witness(ledger.path).path.write_bytes(content)
    if content.isdigit():
        with pytest.raises(LedgerError, match="must have the"):
            Ledger.open(ledger.path)
    else:
        assert Ledger.open(ledger.path).statement().left == Fraction(1)


@pytest.mark.usefixtures("older")
def test_a_note_that_cannot_be_written_stops_nothing(ledger: Ledger) -> None:
    note = Witness(ledger.path).path
    note.unlink()
    note.mkdir()
    ledger.reserve("diffgen", Fraction(1, 10)).pay(ROUND_SMALL)
    assert Ledger.open(ledger.path).statement().publications[-1].paid == ROUND_SMALL.epsilon


def test_a_copy_elsewhere_is_a_ledger_of_its_own(older: Path) -> None:
    """It cannot be told from a ledger that was moved: only a release that it does not know betrays it."""
    assert Ledger.open(older).reserve("diffgen", Fraction(2))


@pytest.mark.parametrize("date", ["1970-01-01T00:00:00+00:00", "2999-12-31T23:59:59+00:00", ""])
def test_a_clock_that_jumps_changes_no_sum(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, date: str) -> None:
    ledger.reserve("diffgen", Fraction(1))
    monkeypatch.setattr(ledger_module, "_now", lambda: date)
    reservation = ledger.reserve("diffgen", Fraction(1))
    reservation.pay(ROUND)
    reservation.settle("failed")
    assert ledger.statement().left == 1 - ROUND.epsilon
    assert [one.reserved for one in ledger.statement().publications] == [1, 1]
