"""Publish again and again while everything goes wrong, and look whether the ledger still tells the truth.

    python tests/fire.py 200

Each round forks publishers from one table with one small lifetime budget and does something to them: kill -9 at any
moment, a full disk at any step, a clock that jumps, a folder that may not be written, a ledger that is replaced by an
older copy or removed. After each round: what was spent is within the budget, no publication paid more than it
reserved, and every release that exists verifies against the ledger, so that none is without its debits.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import Account, DiffGen, Schema, verify
from sfumato.errors import LedgerError, SfumatoError
from sfumato.privacy import ledger as ledger_module
from sfumato.privacy.ledger import Ledger

SCHEMA = Schema.loads("""
name: people
confirmed: true
budget: 4
attributes:
  job: {kind: categorical, taxonomy: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}
  age: {kind: numeric, lower: 18, upper: 64}
  class: {kind: class, taxonomy: [Y, N]}
""")
TABLE = pa.table({"job": ["Engineer", "Dancer"] * 30, "age": [20, 40] * 30, "class": ["Y", "N"] * 30})
BUDGET, PRICE = Fraction(4), Fraction(1, 2)
DATES = ("1970-01-01T00:00:00+00:00", "2999-12-31T23:59:59+00:00", "", "2038-01-19T03:14:08+00:00")


class Fire:
    """One ledger after another, each used until its budget is gone."""

    def __init__(self, place: Path, seed: int) -> None:
        """Begin in an empty folder."""
        self._place, self._dice = place, random.Random(seed)
        self.survived: Counter[str] = Counter()
        self._number = 0
        self._fresh()

    def _fresh(self) -> None:
        self._number += 1
        self._home = self._place / f"table {self._number}"
        self._home.mkdir()
        self._ledger = self._home / "people.ledger"
        self._releases = 0

    def _start(self, spoil: Callable[[], None]) -> int:
        """Publish in a process of its own."""
        self._releases += 1
        child = os.fork()
        if child:
            return child
        try:
            spoil()
            account = Account(self._ledger, SCHEMA)
            account.publish(TABLE, DiffGen(specializations=2), PRICE, out=self._home / f"release {self._releases}")
        except SfumatoError:
            os._exit(2)
        except BaseException as error:
            print("not a refusal:", repr(error), file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)

    def kill(self) -> None:
        """Kill one of two publishers at a random moment."""
        children = [self._start(lambda: None) for _ in range(2)]
        time.sleep(self._dice.random() * 0.25)
        os.kill(children[0], signal.SIGKILL)
        self._ended(children, killed=True)

    def fill_the_disk(self) -> None:
        """Let writing fail at a random step."""
        step = self._dice.randrange(14)
        self._ended([self._start(lambda: _full_disk(step))])

    def set_the_clock(self) -> None:
        """Let the clock say anything."""
        date = self._dice.choice(DATES)
        self._ended([self._start(lambda: setattr(ledger_module, "_now", lambda: date))])

    def forbid_writing(self) -> None:
        """Let a user publish who may not write there."""
        self._home.chmod(0o555)
        child = self._start(_nobody)
        self._home.chmod(0o755)
        os.waitpid(child, 0)

    def roll_back(self) -> None:
        """Put an older copy in the ledger's place, or none; it must be noticed."""
        if not self._ledger.exists():
            return
        older, newer = self._home / "older", self._home / "newer"
        shutil.copy(self._ledger, older)
        self._ended([self._start(lambda: None)])
        grown = Ledger.open(self._ledger).statement() != Ledger.open(self._copied(older)).statement()
        self._ledger.rename(newer)
        if self._dice.random() < 0.5:
            shutil.copy(older, self._ledger)
        if grown or not self._ledger.exists():
            with contextlib.suppress(LedgerError):
                Account(self._ledger, SCHEMA).statement()
                raise AssertionError("an older ledger was believed")
        newer.replace(self._ledger)
        older.unlink()

    def _copied(self, older: Path) -> Path:
        """Copy to where no witness has seen more."""
        return Path(shutil.copy(older, Path(tempfile.mkdtemp(dir=self._place)) / "copy"))

    def _ended(self, children: list[int], *, killed: bool = False) -> None:
        for child in children:
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) in (0, 2), "a publication failed without a sentence"
            else:
                assert killed
                self.survived["of these dead in time"] += 1

    def check(self) -> None:
        """See that nothing was overspent and nothing is published that was not paid."""
        if not self._ledger.exists():
            assert not list(self._home.glob("release *"))
            return
        statement = Ledger.open(self._ledger).statement()
        assert statement.spent <= BUDGET
        assert all(one.paid <= one.reserved for one in statement.publications)
        for release in self._home.glob("release *"):
            found = verify(release, self._ledger)
            assert found.verified, found.failures
            self.survived["releases verified"] += 1
            shutil.rmtree(release)
        if statement.left == 0:
            self._fresh()

    def burn(self, rounds: int) -> dict[str, int]:
        """Do all of it, again and again."""
        faults = (self.kill, self.kill, self.kill, self.fill_the_disk, self.set_the_clock, self.forbid_writing)
        for number in range(rounds):
            fault = self.roll_back if number % 7 == 6 else faults[number % len(faults)]
            fault()
            self.check()
            self.survived[fault.__name__.replace("_", " ")] += 1
        return dict(self.survived) | {"ledgers": self._number}


def _nobody() -> None:
    """Give up the right to write everywhere, if we have it."""
    if os.getuid() == 0:
        os.setuid(65534)


def _full_disk(step: int) -> None:
    """Let the n-th attempt to write fail, whether it is a file's, a folder's or the ledger's, and all after it."""
    left = [step]

    def failing(really: Callable, error: Exception) -> Callable:
        def write(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                raise error
            return really(*arguments, **options)

        return write

    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for place, name in (
        (os, "posix_fallocate"),
        (os, "fsync"),
        (pq, "write_table"),
        (Path, "rename"),
        (Path, "write_text"),
    ):
        setattr(place, name, failing(getattr(place, name), full))
    sqlite = sqlite3.OperationalError("database or disk is full")
    ledger_module.Ledger._lines = staticmethod(failing(ledger_module.Ledger._lines, sqlite))  # type: ignore[method-assign]


def main() -> None:
    """Burn, and say how much was survived."""
    rounds, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    place = Path(tempfile.mkdtemp(prefix="fire"))
    place.chmod(0o755)
    began = time.monotonic()
    try:
        survived = Fire(place, seed).burn(rounds)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps({"faults injected and survived": rounds, "seconds": round(time.monotonic() - began)} | survived))


if __name__ == "__main__":
    main()
