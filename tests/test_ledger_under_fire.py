"""What is paid stays paid through crashes, full disks, locks and several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from debits import ROUND, debit
from sfumato.errors import BudgetError, LedgerError
from sfumato.privacy import ledger as ledger_module
from sfumato.privacy.ledger import Ledger, Reservation


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_commits_are_synced_with_their_folder(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def traced(*arguments, **settings):
        connection = connect(*arguments, **settings)
        connection.set_trace_callback(statements.append)
        return connection

    connect = sqlite3.connect
    monkeypatch.setattr(ledger_module.sqlite3, "connect", traced)
    ledger.reserve("diffgen", Fraction(1)).pay(ROUND)
    assert {"pragma synchronous = extra", "pragma journal_mode = wal"} & set(statements)


def test_a_ledger_locked_too_long_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "PATIENCE", 0.05)
    reservation = ledger.reserve("diffgen", Fraction(1))
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute("begin immediate")
        with pytest.raises(LedgerError, match="locked"):
            reservation.pay(ROUND)
    reservation.pay(ROUND)


FILL_THE_DISK = """
import resource, signal, sys
from fractions import Fraction
from sfumato.errors import LedgerError
from sfumato.privacy.budget import Debit
from sfumato.privacy.ledger import Ledger

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
reservation = Ledger.open(sys.argv[1]).reserve("diffgen", Fraction(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
written = 0
try:
    while written < 100:
        reservation.pay(Debit("x" * 4000, "discrete Laplace", Fraction(1, 1000), Fraction(1), 1))
        written += 1
except LedgerError as error:
    print(written, error)
"""


def test_a_full_disk_refuses_the_debit_and_keeps_the_others(ledger: Ledger) -> None:
    said = run(FILL_THE_DISK, ledger.path)
    written = int(said.stdout.split()[0])
    assert "must be a writable Sfumato ledger" in said.stdout
    assert 0 < written < 100
    assert len(ledger.statement().publications[0].debits) == written


PAY_AND_DIE = """
import os, signal, sys
from fractions import Fraction
from sfumato.privacy.budget import Debit
from sfumato.privacy.ledger import Ledger

reservation = Ledger(sys.argv[1], "people", Fraction(2)).reserve("diffgen", Fraction(1))
reservation.pay(Debit("count", "discrete Laplace", Fraction(1, 3), Fraction(1), 12))
os.kill(os.getpid(), signal.SIGKILL)
"""
DIE_BEFORE_COMMIT = """
import os, signal, sys
from fractions import Fraction
from sfumato.privacy.ledger import Ledger

ledger = Ledger(sys.argv[1], "people", Fraction(2))
ledger.reserve("diffgen", Fraction(1))
with ledger._transaction() as db:
    db.execute("pragma cache_size = 1")
    for _ in range(200):
        db.execute("insert into budget values (?, '99')", ("x" * 4000,))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_its_debit_and_its_reservation(path: Path) -> None:
    assert run(PAY_AND_DIE, path).returncode == -signal.SIGKILL
    statement = Ledger.open(path).statement()
    assert statement.publications[0].debits == (ROUND,)
    assert statement.left == 1


def test_a_person_can_settle_what_a_killed_process_left(path: Path) -> None:
    run(PAY_AND_DIE, path)
    ledger = Ledger.open(path)
    ledger.settle(ledger.statement().publications[0].id, "settled by hand")
    assert ledger.statement().left == Fraction(2) - Fraction(1, 3)


def test_a_process_killed_within_a_transaction_leaves_nothing_of_it(path: Path) -> None:
    assert run(DIE_BEFORE_COMMIT, path).returncode == -signal.SIGKILL
    statement = Ledger.open(path).statement()
    assert (statement.budget, statement.left) == (2, 1)


def test_an_error_passes_from_one_process_to_another() -> None:
    error = pickle.loads(pickle.dumps(LedgerError("the ledger must be open", "Open it.")))
    assert (error.problem, error.remedy) == ("the ledger must be open", "Open it.")


MEETING: list = []
"""The barrier at which the processes of a test wait for each other."""


def meet_at(barrier) -> None:
    """Let this process know where to wait."""
    MEETING.append(barrier)


def reserve_each(paths: list[str]) -> int:
    """Reserve the whole budget of one ledger after the other, all processes at once; give how many were granted."""
    granted = 0
    for path in paths:
        MEETING[0].wait(60)
        try:
            Ledger(path, "people", Fraction(2)).reserve("diffgen", Fraction(2))
            granted += 1
        except BudgetError:
            pass
    return granted


def pay_many(path: str, publication: str, tries: int) -> int:
    """Pay a twentieth from one publication until the tries are used up; give how many succeeded."""
    reservation, paid = Reservation(Ledger.open(path), publication, Fraction(1)), 0
    MEETING[0].wait(60)
    for _ in range(tries):
        try:
            reservation.pay(debit(Fraction(1, 20)))
            paid += 1
        except BudgetError:
            pass
    return paid


def at_once(function, arguments: list[tuple]) -> list[int]:
    """Call in as many processes."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(arguments))
    with context.Pool(len(arguments), meet_at, (barrier,)) as pool:
        return pool.starmap_async(function, arguments, chunksize=1).get(timeout=45)


@pytest.mark.slow
def test_processes_at_once_begin_one_ledger_and_never_overspend(tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number) / "people.ledger") for number in range(12)]
    for path in paths:
        Path(path).parent.mkdir()
    assert sum(at_once(reserve_each, [(paths,)] * 5)) == 12
    assert [Ledger.open(path).statement().spent for path in paths] == [2] * 12


@pytest.mark.slow
def test_processes_at_once_never_pay_beyond_one_reservation(ledger: Ledger) -> None:
    publication = ledger.reserve("diffgen", Fraction(1)).id
    paid = at_once(pay_many, [(str(ledger.path), publication, 8)] * 4)
    assert sum(paid) == 20
    assert ledger.statement().publications[0].paid == 1


@pytest.mark.slow
def test_the_ledger_survives_fire() -> None:
    """A short `make fire`: kills, full disks, clocks, forbidden folders, older copies."""
    program = Path(__file__).parent / "fire.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), "14"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["faults injected and survived"] == 14
    assert told["releases verified"] > 0
    assert "not a refusal" not in done.stderr
