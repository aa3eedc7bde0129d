"""An older ledger in the place of a newer one is noticed where it can be, and no honest ledger is ever accused."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from debits import ROUND, debit
from sfumato.errors import LedgerError
from sfumato.privacy import ledger as ledger_module
from sfumato.privacy.ledger import Ledger, Witness

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
