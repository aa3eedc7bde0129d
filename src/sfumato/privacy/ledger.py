"""The ledger: the durable record of what a table has paid, in one SQLite file that every process shares.

It is only ever appended to: nothing is updated or deleted, and triggers refuse to. A publication first reserves its
whole epsilon in one transaction (so two at once cannot overspend), then every round writes its debit **before** the
data is looked at. A crash leaves the debits that were written and the reservation, which a person can settle. A
publication without epsilon holds and pays infinity, written `inf`. A `Witness` beside the file notices when an older
copy was put in its place.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from sfumato.errors import BudgetError, LedgerError, PrivacyError
from sfumato.exact import read_fraction
from sfumato.markup import joined, tag
from sfumato.markup import table as laid_out
from sfumato.privacy.budget import INFINITE, Debit, NonPrivate, Total

FORMAT = 1
"""The version of the file format."""
PATIENCE = 30.0
"""How many seconds to wait for another process's transaction."""
ENDING = ".ledger"
"""How the name of a ledger ends."""
SUFFIX = ".head"
"""What the name of the witness's file has after the ledger's."""

RECORD = "record"
"""What an epsilon is spent on where the schema names no persons."""

Outcome = Literal["published", "failed", "settled by hand"]
"""How a publication ended."""


@dataclass(frozen=True)
class Publication:
    """One release, made or attempted: what it reserved, what it paid, how it ended."""

    id: str
    at: str
    method: str
    reserved: Total
    outcome: str
    debits: tuple[Debit | NonPrivate, ...] = field(default=())
    digest: str | None = None
    """of the manifest, if the release was written by the publication itself"""
    unit: str = RECORD
    """what its epsilon is spent on: each record, or each person as a column tells"""

    @property
    def paid(self) -> Total:
        """What its rounds cost; infinity if one had no epsilon."""
        return sum((debit.epsilon for debit in self.debits), Fraction(0))

    @property
    def held(self) -> Total:
        """What it takes from the lifetime budget: all that it reserved while open, what it paid once settled.

        One that was published without epsilon takes infinity, whatever was noted.
        """
        unbounded = self.reserved == INFINITE and self.outcome == "published"
        return self.reserved if self.outcome == "open" or unbounded else self.paid


@dataclass(frozen=True)
class Statement:
    """Everything that the ledger says about its table, read in one transaction."""

    name: str
    budget: Fraction | None
    """for the table's lifetime; None for no limit"""
    publications: tuple[Publication, ...]

    def _repr_html_(self) -> str:
        rows = [(one.method, one.outcome, str(one.held)) for one in self.publications]
        budget = "no limit" if self.budget is None else f"{self.left} of {self.budget} left"
        shown = laid_out(("method", "outcome", "epsilon"), [*rows, ("in all", "", str(self.spent))], (2,))
        return joined([tag("strong", self.name), f": {budget}", shown])

    @property
    def spent(self) -> Total:
        """What is paid or held; infinity once something was published without epsilon, or for different units.

        What was paid for each record bounds nothing for a person of many, nor the other way round.
        """
        if len(self.units) > 1:
            return INFINITE
        return sum((publication.held for publication in self.publications), Fraction(0))

    @property
    def units(self) -> tuple[str, ...]:
        """What epsilons were spent on, in the order in which they came."""
        paid = (one.unit for one in self.publications if one.held and one.held != INFINITE)
        return tuple(dict.fromkeys(paid))

    @property
    def without_epsilon(self) -> tuple[Publication, ...]:
        """The publications that hold infinity."""
        return tuple(publication for publication in self.publications if publication.held == INFINITE)

    @property
    def left(self) -> Fraction | None:
        """What may still be spent; None without a lifetime budget."""
        if self.budget is None:
            return None
        spent = self.spent
        return Fraction(0) if isinstance(spent, float) else max(self.budget - spent, Fraction(0))

    def refuse_disclosure(self, *, despite_budget: bool) -> None:
        """Refuse to publish a table with a lifetime budget without epsilon, unless the holder insists."""
        if self.budget is not None and not despite_budget:
            raise BudgetError(
                f"table {self.name} must be published with an epsilon: it has a lifetime budget "
                f"({self.budget}), and a method without one spends all of it at once",
                "Use a differentially private method, or say --despite-budget: from then on the table's total is "
                "infinite.",
            )

    def refuse_seed(self) -> None:
        """Refuse a known seed for a table with a lifetime budget: it would tell all, and be booked nowhere."""
        if self.budget is not None:
            raise BudgetError(
                f"table {self.name} must be published without a seed: it has a lifetime budget ({self.budget}), and a "
                "seeded release gives the rows away",
                "Leave the seed out, or try it on a table that is nobody's.",
            )

    def refuse_beyond(self, epsilon: Fraction, unit: str = RECORD) -> None:
        """Refuse an epsilon that the lifetime budget cannot pay, or that is spent on something else than the others."""
        other = [one for one in self.units if one != unit]
        if self.budget is not None and other:
            raise BudgetError(
                f"the unit ({unit[:60]}) must be that of the table's other releases, {other[0][:60]}: epsilons of "
                "different units do not add up, and the lifetime budget bounds their sum",
                "Publish by that unit, or give the bound up with `sfumato account amend --budget none`.",
            )
        if self.left is not None and self.without_epsilon:
            raise BudgetError(
                f"epsilon ({epsilon}) must be at most the 0 left of the lifetime budget {self.budget}: the table was "
                f"published without epsilon ({self.without_epsilon[0].method})",
                "Nothing can bound the total any more; `sfumato account amend --budget none` gives the bound up.",
            )
        if self.left is not None and epsilon > self.left:
            raise BudgetError(
                f"epsilon ({epsilon}) must be at most the {self.left} left of the lifetime budget {self.budget}",
                "Use a smaller epsilon, or see `sfumato account show`.",
            )


class Ledger:
    """One table's account in a file. Every call is one durable transaction."""

    def __init__(self, path: str | Path, name: str, budget: Fraction | None, key: str | None = None) -> None:
        """Open the ledger of this table; a file that does not exist is made with the first publication.

        If the schema names the ledger by its id, it must be that one.
        """
        if budget is not None:
            _refuse_nothing("the lifetime budget", budget)
        self.path, self._name, self._declared, self._key = Path(path), name, budget, key
        if self.path.exists():
            with self._reading() as db:
                self._check_format(db)
                self._check_owner(db)
        elif key is not None:
            raise self._other_ledger()

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open a ledger that exists, whatever table it belongs to."""
        if not Path(path).is_file():
            problem = f"ledger {path} must exist"
            raise LedgerError(problem, "Nothing was published from this table yet, or name it with --ledger.")
        ledger = cls.__new__(cls)
        ledger.path, ledger._key = Path(path), None
        with ledger._reading() as db:
            ledger._check_format(db)
            ledger._name, ledger._declared = ledger._owner(db), ledger._budget(db)
        return ledger

    @contextmanager
    def _transaction(self, path: Path | None = None) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(path or self.path, timeout=PATIENCE, isolation_level=None)
            try:
                db.execute("pragma synchronous = extra")
                db.execute("pragma foreign_keys = on")
                db.execute("pragma trusted_schema = off")
                db.execute("begin immediate")
                yield db
                lines = self._lines(db) if db.total_changes else 0
                db.execute("commit")
            finally:
                db.close()
        except sqlite3.Error as error:
            raise self._unusable(str(error).lower()) from None
        except (ValueError, TypeError, ArithmeticError):
            raise self._unusable("its lines are not those of a ledger") from None
        if path is None:
            self._witness.note(lines)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Read in one transaction, which takes no right to write, unless a journal that was left must be undone."""
        if self.path.with_name(f"{self.path.name}-journal").exists():
            with self._transaction() as db:
                yield db
            return
        try:
            place = f"{self.path.resolve().as_uri()}?mode=ro"
            db = sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None)
            try:
                db.execute("pragma trusted_schema = off")
                db.execute("begin")
                yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise self._unusable(str(error).lower()) from None
        except (ValueError, TypeError, ArithmeticError):
            raise self._unusable("its lines are not those of a ledger") from None

    @property
    def id(self) -> str | None:
        """What tells this ledger from all others; None if it has not begun, or is older than ids."""
        if not self.path.exists():
            return None
        with self._reading() as db:
            return self._identity(db)

    @staticmethod
    def _identity(db: sqlite3.Connection) -> str | None:
        known = db.execute("select 1 from sqlite_master where type = 'table' and name = 'identity'").fetchone()
        found = db.execute("select id from identity").fetchone() if known else None
        return str(found[0]) if found else None

    @property
    def _witness(self) -> Witness:
        return Witness(self.path)

    @staticmethod
    def _lines(db: sqlite3.Connection) -> int:
        (lines,) = db.execute(LINES).fetchone()
        return int(lines)

    def _unusable(self, reason: str) -> LedgerError:
        return LedgerError(
            f"ledger {self.path} must be a writable Sfumato ledger ({reason})",
            "Free the disk or the file, or name another place with --ledger. Without a debit nothing is looked at.",
        )

    def begin(self) -> None:
        """Make the ledger if there is none: it is written aside and put in place whole, unless another was first."""
        if self.path.exists():
            return
        self._witness.refuse_older(0)
        self.refuse_siblings()
        aside = self.path.with_name(f".{uuid.uuid4().hex[:12]}.ledger")
        try:
            with self._transaction(aside) as db:
                self._lay_out(db)
            with suppress(FileExistsError):
                os.link(aside, self.path)
        except OSError as error:
            raise self._unusable((error.strerror or "cannot be made").lower()) from None
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def refuse_siblings(self) -> None:
        """Refuse to begin a ledger where the table of this name has one in the same folder."""
        if self.path.exists():
            return
        for other in ledgers_in(self.path.parent):
            if other.name != self.path.name and _name_of(other) == self._name:
                raise LedgerError(
                    f"table {self._name} must have one ledger, and has {other}",
                    f"Say --ledger {other}. If this is another table, give its schema a `name:` of its own.",
                )

    def _lay_out(self, db: sqlite3.Connection) -> None:
        for statement in layout():
            db.execute(statement)
        self._identify(db)
        db.execute("insert into account values (?, ?, ?)", (FORMAT, self._name, _now()))
        db.execute("insert into budget values (?, ?)", (_now(), _text(self._declared)))

    def _identify(self, db: sqlite3.Connection) -> None:
        """Give a ledger that has none an id."""
        if self._identity(db) is None:
            for statement in table_layout("identity", "id text primary key"):
                db.execute(statement)
            db.execute("insert into identity values (?)", (str(uuid.uuid4()),))

    def _check_format(self, db: sqlite3.Connection) -> None:
        if db.execute("pragma application_id").fetchone() != (APPLICATION,):
            raise LedgerError(f"{self.path} must be a Sfumato ledger, and is another database", "Name another place.")
        (found,) = db.execute("select format from account").fetchone()
        if found > FORMAT:
            raise LedgerError(f"ledger {self.path} must have format {FORMAT} or older", "Upgrade Sfumato to use it.")
        self._witness.refuse_older(self._lines(db))

    def _check_owner(self, db: sqlite3.Connection) -> None:
        owner, budget = self._owner(db), self._budget(db)
        if owner != self._name:
            raise LedgerError(
                f"ledger {self.path} must belong to table {self._name}, and belongs to {owner}",
                f"If the rows are the same, give the schema that name (`name: {owner}`); else name another ledger.",
            )
        if self._key is not None and self._key != self._identity(db):
            raise self._other_ledger()
        if self._declared not in (None, budget):
            raise LedgerError(
                f"the schema's budget ({self._declared}) must be the account's, {budget or 'unlimited'}",
                "Correct the schema, or change the account with `sfumato account amend`.",
            )

    def _other_ledger(self) -> LedgerError:
        """The error for a ledger that is not the one the schema names, which may lie in the same folder."""
        found = [other for other in ledgers_in(self.path.parent) if _id_of(other) == self._key]
        return LedgerError(
            f"ledger {self.path} must be the one that the schema of {self._name} names (`ledger: {self._key}`)",
            f"Say --ledger {found[0] if found else 'and where it is'}. If this is another table, take `ledger:` out of "
            "its schema, and give it a `name:` of its own.",
        )

    @staticmethod
    def _owner(db: sqlite3.Connection) -> str:
        (name,) = db.execute("select name from account").fetchone()
        return str(name)

    @staticmethod
    def _budget(db: sqlite3.Connection) -> Fraction | None:
        (text,) = db.execute("select epsilon from budget order by rowid desc limit 1").fetchone()
        return None if text is None else fraction_of(text)

    def statement(self) -> Statement:
        """Everything that the ledger says."""
        if not self.path.exists():
            self._witness.refuse_older(0)
            return Statement(self._name, self._declared, ())
        with self._reading() as db:
            return self._statement(db)

    def _statement(self, db: sqlite3.Connection) -> Statement:
        debits: dict[str, list[Debit | NonPrivate]] = {}
        for publication, label, mechanism, epsilon, sensitivity, cells in db.execute(
            "select publication, label, mechanism, epsilon, sensitivity, cells from debit order by rowid"
        ):
            debits.setdefault(publication, []).append(
                NonPrivate(label, mechanism)
                if epsilon == str(INFINITE)
                else Debit(label, mechanism, fraction_of(epsilon), fraction_of(sensitivity), cells)
            )
        units = dict(db.execute("select publication, unit from unit").fetchall()) if _knows_units(db) else {}
        publications = tuple(
            Publication(
                key,
                at,
                method,
                total_of(epsilon),
                outcome or "open",
                tuple(debits.get(key, ())),
                digest,
                str(units.get(key, RECORD)),
            )
            for key, at, method, epsilon, outcome, digest in db.execute(
                "select p.id, p.at, p.method, p.epsilon, s.outcome, s.digest from publication p "
                "left join settlement s on s.publication = p.id order by p.rowid"
            )
        )
        return Statement(self._owner(db), self._budget(db), publications)

    def refuse_beyond(self, epsilon: Fraction, unit: str = RECORD) -> None:
        """Refuse an epsilon that the lifetime budget cannot pay, before anything is read or reserved."""
        self.statement().refuse_beyond(epsilon, unit)

    def reserve(self, method: str, epsilon: Fraction, unit: str = RECORD) -> Reservation:
        """Set a publication's whole epsilon aside, or refuse, in one transaction."""
        _refuse_nothing("epsilon", epsilon)
        self.begin()
        with self._transaction() as db:
            self._check_format(db)
            self._check_owner(db)
            self._statement(db).refuse_beyond(epsilon, unit)
            self._identify(db)
            key = self._open_publication(db, method, epsilon)
            self._note_unit(db, key, unit)
        return Reservation(self, key, epsilon)

    def refuse_disclosure(self, *, despite_budget: bool) -> None:
        """Refuse to publish a table with a lifetime budget without epsilon, unless the holder insists."""
        self.statement().refuse_disclosure(despite_budget=despite_budget)

    def disclose(self, method: str, *, despite_budget: bool) -> Disclosure:
        """Open a publication without epsilon: from here on the table's total is infinite."""
        self.begin()
        with self._transaction() as db:
            self._check_format(db)
            self._check_owner(db)
            self._statement(db).refuse_disclosure(despite_budget=despite_budget)
            self._identify(db)
            return Disclosure(self, self._open_publication(db, method, INFINITE))

    @staticmethod
    def _open_publication(db: sqlite3.Connection, method: str, epsilon: Total) -> str:
        key = str(uuid.uuid4())
        db.execute("insert into publication values (?, ?, ?, ?)", (key, _now(), method, str(epsilon)))
        return key

    @staticmethod
    def _note_unit(db: sqlite3.Connection, publication: str, unit: str) -> None:
        """Note what an epsilon is spent on, if it is not each record, in a table that is made when it is needed."""
        if unit == RECORD:
            return
        if not _knows_units(db):
            for statement in table_layout(*UNIT_TABLE):
                db.execute(statement)
        db.execute("insert into unit values (?, ?)", (publication, unit))

    def debit(self, publication: str, debit: Debit) -> None:
        """Write one debit, durably, for an open publication that can still pay it."""
        if debit.epsilon < 0:
            raise BudgetError(f"{debit.label} ({debit.epsilon}) must not be negative", "Report this: it is a mistake.")
        with self._transaction() as db:
            reserved, paid = self._open_account_of(db, publication)
            if paid + debit.epsilon > reserved:
                raise BudgetError(
                    f"round {debit.label} (epsilon {debit.epsilon}) must cost at most the {reserved - paid} left",
                    "Nothing was looked at. Report this: it is a mistake of the method.",
                )
            how = (debit.mechanism, str(debit.epsilon), str(debit.sensitivity), int(debit.cells))
            self._write_line(db, publication, debit.label, *how)

    def note(self, publication: str, line: NonPrivate) -> None:
        """Write one look without epsilon, durably, for an open publication that never promised one."""
        with self._transaction() as db:
            reserved, _ = self._open_account_of(db, publication)
            if reserved != INFINITE:
                raise PrivacyError(
                    f"look {line.label} must belong to a publication without epsilon",
                    "Nothing was looked at. Report this: it is a mistake of the method.",
                )
            self._write_line(db, publication, line.label, line.reason, str(INFINITE), str(INFINITE), 0)

    @staticmethod
    def _write_line(db: sqlite3.Connection, publication: str, label: str, *how: str | int) -> None:
        db.execute("insert into debit values (?, ?, ?, ?, ?, ?, ?)", (publication, _now(), label, *how))

    def settle(self, publication: str, outcome: Outcome, digest: str | None = None) -> None:
        """End an open publication: from now on it holds what it paid."""
        with self._transaction() as db:
            self._open_account_of(db, publication)
            db.execute("insert into settlement values (?, ?, ?, ?)", (publication, _now(), outcome, digest))

    def amend(self, budget: Fraction | None) -> None:
        """Change the lifetime budget. The old one stays on record."""
        if budget is not None:
            _refuse_nothing("the lifetime budget", budget)
        self.begin()
        self._declared = budget
        with self._transaction() as db:
            db.execute("insert into budget values (?, ?)", (_now(), _text(budget)))

    def _open_account_of(self, db: sqlite3.Connection, publication: str) -> tuple[Total, Total]:
        row = db.execute("select epsilon from publication where id = ?", (publication,)).fetchone()
        settled = db.execute("select 1 from settlement where publication = ?", (publication,)).fetchone()
        if row is None or settled:
            raise LedgerError(
                f"publication {publication} must be open in the ledger",
                "See `sfumato account show` for the open ones.",
            )
        paid = db.execute("select epsilon from debit where publication = ?", (publication,))
        return total_of(row[0]), sum((total_of(text) for (text,) in paid), Fraction(0))


@dataclass(frozen=True)
class OpenPublication:
    """A publication that is under way in the ledger."""

    ledger: Ledger
    id: str

    def settle(self, outcome: Outcome, digest: str | None = None) -> None:
        """End the publication."""
        self.ledger.settle(self.id, outcome, digest)


@dataclass(frozen=True)
class Reservation(OpenPublication):
    """A publication that has reserved an epsilon: the meter's payer."""

    epsilon: Fraction

    def pay(self, debit: Debit) -> None:
        """Write a debit; when this returns, it is on disk."""
        self.ledger.debit(self.id, debit)


@dataclass(frozen=True)
class Disclosure(OpenPublication):
    """A publication without epsilon: where its looks are noted."""

    def note(self, line: NonPrivate) -> None:
        """Write a line; when this returns, it is on disk."""
        self.ledger.note(self.id, line)


@dataclass(frozen=True)
class Witness:
    """A small file beside a ledger that notes the most lines it ever had, to notice an older copy in its place.

    The ledger alone cannot tell: a restored backup is a perfect ledger of an earlier day. The note is written after
    each commit, so it never runs ahead; it may lag by a commit, which errs on the safe side, since a publication whose
    last line is forgotten holds all it reserved. Replacing both files, or removing the note, is not noticed.
    """

    ledger: Path

    @property
    def path(self) -> Path:
        """The file of the note."""
        return self.ledger.with_name(self.ledger.name + SUFFIX)

    @property
    def seen(self) -> int:
        """The number of lines noted; 0 if there is no readable note."""
        with suppress(OSError, UnicodeDecodeError):
            with self.path.open("rb") as file:
                text = file.read(20).decode("ascii").strip()
            if text.isdigit():
                return int(text)
        return 0

    def note(self, lines: int) -> None:
        """Note this many lines, if they are more. A note that cannot be written is left: no guarantee rests on it."""
        if lines <= self.seen:
            return
        aside = self.path.with_name(f".{uuid.uuid4().hex[:12]}{SUFFIX}")
        with suppress(OSError):
            try:
                aside.write_text(f"{lines}\n", encoding="ascii")
                aside.replace(self.path)
            finally:
                aside.unlink(missing_ok=True)

    def refuse_older(self, lines: int) -> None:
        """Refuse a ledger that has fewer lines than were noted: something that was paid is not in it."""
        seen = self.seen
        if lines < seen:
            raise LedgerError(
                f"ledger {self.ledger} must have the {seen:,} lines that {self.path.name} has seen, and has {lines:,}: "
                "it was deleted, or an older copy was put in its place",
                "Put the newer one back. If it is lost, lower the budget by what was paid, and remove that file.",
            )


APPLICATION = 0x5F0A70
"""The mark of a ledger in the file's header."""
REFUSE = "begin select raise(abort, 'the ledger is append-only'); end"
"""What triggers do instead of a change."""
TABLES = {
    "account": "format integer not null, name text not null, opened text not null",
    "budget": "at text not null, epsilon text",
    "publication": "id text primary key, at text not null, method text not null, epsilon text not null",
    "debit": """publication text not null references publication(id), at text not null, label text not null,
        mechanism text not null, epsilon text not null, sensitivity text not null, cells integer not null""",
    "settlement": """publication text primary key references publication(id), at text not null,
        outcome text not null check (outcome in ('published', 'failed', 'settled by hand')), digest text""",
}
"""The tables that every ledger has, with their columns."""
UNIT_TABLE = (
    "unit",
    "publication text primary key references publication(id), unit text not null",
    *("rowid", "publication"),
)
"""The table of ledgers of persons: what publications spent epsilon on, if not on each record; with its keys."""
ONCE = [*((table, "rowid") for table in TABLES), ("publication", "id"), ("settlement", "publication")]
"""Keys that no second row may have: an `insert or replace` would remove the first."""
LAST = " union all ".join(f"select max(rowid) as last from {table}" for table in TABLES)
"""The number of the last row of each table, which is how many it has: nothing is ever deleted."""
LINES = f"select coalesce(sum(last), 0) from ({LAST})"
"""How many rows all tables have."""


def layout() -> Iterator[str]:
    """The statements that make the tables of a ledger, which refuse to change what they hold."""
    yield f"pragma application_id = {APPLICATION}"
    for table, columns in TABLES.items():
        yield from table_layout(table, columns, *(key for one, key in ONCE if one == table))


def table_layout(table: str, columns: str, *keys: str) -> Iterator[str]:
    """The statements that make one table, in which no second row may have the keys of a first."""
    yield f"create table {table} ({columns})"
    for change in ("update", "delete"):
        yield f"create trigger {table}_{change} before {change} on {table} {REFUSE}"
    for key in keys:
        same = f"when exists (select 1 from {table} where {key} = new.{key})"
        yield f"create trigger {table}_{key}_once before insert on {table} {same} {REFUSE}"


def ledgers_in(folder: Path) -> list[Path]:
    """The ledgers of a folder, by name; hidden ones are being made."""
    try:
        return sorted(one for one in folder.glob(f"*{ENDING}") if one.is_file() and not one.name.startswith("."))
    except OSError:
        return []


def _id_of(path: Path) -> str | None:
    with suppress(LedgerError):
        return Ledger.open(path).id
    return None


def _name_of(path: Path) -> str | None:
    with suppress(LedgerError):
        return Ledger.open(path)._name
    return None


def _knows_units(db: sqlite3.Connection) -> bool:
    return db.execute("select 1 from sqlite_master where type = 'table' and name = 'unit'").fetchone() is not None


def total_of(text: str) -> Total:
    """Read an epsilon or infinity: what a publication reserved or paid."""
    return INFINITE if text == str(INFINITE) else fraction_of(text)


def fraction_of(text: str) -> Fraction:
    """Read an epsilon; in a damaged file it could be anything."""
    fraction = read_fraction(text)
    if fraction is None or fraction < 0:
        raise ValueError("an epsilon must be a fraction")
    return fraction


def _refuse_nothing(what: str, epsilon: Fraction) -> None:
    if epsilon <= 0:
        raise BudgetError(f"{what} ({epsilon}) must be greater than 0", "Give a number such as 1 or 1/2.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _text(budget: Fraction | None) -> str | None:
    return None if budget is None else str(budget)
