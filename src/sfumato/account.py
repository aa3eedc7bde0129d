"""One table, one lifetime budget, many releases: where a method, the data and the ledger meet.

The order is the guarantee's: everything that can be refused is refused first, then epsilon is reserved, then the
method runs behind a meter that writes each debit before it looks, and only then is there a release to seal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.counts.memory import MemoryEngine
from sfumato.counts.meter import Meter
from sfumato.counts.tally import Domain
from sfumato.errors import LedgerError, SchemaError
from sfumato.io.encode import Coded, encode, refuse_misfits
from sfumato.io.tables import open_table
from sfumato.methods.base import Draft, Method
from sfumato.privacy.budget import Debit, Schedule, epsilon_of
from sfumato.privacy.ledger import Ledger, Outcome, Reservation, Statement
from sfumato.privacy.mechanisms import Exact, Mechanisms
from sfumato.privacy.stream import SeededStream
from sfumato.release.folder import space_for
from sfumato.release.manifest import Manifest
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.storage import staged_folder

Watch = Callable[[str], None]


def _silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Unbooked:
    """What a seeded publication pays from: nothing is booked, because nothing is promised."""

    epsilon: Fraction
    id: str = "unbooked: made with a known seed"

    def pay(self, debit: Debit) -> None:
        """Book nothing."""

    def settle(self, outcome: Outcome, digest: str | None = None) -> None:
        """Settle nothing."""


class Account:
    """The account of one table.

    `ledger` is a file beside the data, shared by everyone who publishes from it. `schema` must have been confirmed.
    """

    def __init__(self, ledger: str | Path, schema: Schema) -> None:
        """Open the account; its ledger begins, with the schema's lifetime budget, at the first publication."""
        refuse_unconfirmed(schema)
        self.schema = schema
        self._ledger = Ledger(ledger, schema.name, schema.budget)

    def statement(self) -> Statement:
        """Tell every debit ever made on this table, and what is left."""
        return self._ledger.statement()

    def plan(self, method: Method, epsilon: str | float | Fraction) -> Schedule:
        """Say what a publication would cost, line by line, touching no data."""
        return method.plan(self.schema, epsilon_of(epsilon))

    def publish(
        self,
        table: Any,
        method: Method,
        epsilon: str | float | Fraction,
        *,
        out: str | Path | None = None,
        unsafe_seed: int | None = None,
        watch: Watch | None = None,
    ) -> Release:
        """Publish a table (a path or a frame) by a method at a price; with `out`, write the release there, too.

        `unsafe_seed` makes the noise reproducible and the release worthless as a protection: its manifest says so,
        and the ledger does not know it.
        """
        report = watch or _silent
        budget = epsilon_of(epsilon)
        schedule = method.plan(self.schema, budget)
        mechanisms = Exact(None if unsafe_seed is None else SeededStream(unsafe_seed))
        if mechanisms.secure:
            self._ledger.refuse_beyond(budget)
        with contextlib.ExitStack() as stack:
            space = space_for(method.expected_cells(self.schema), self.schema)
            staging = out and stack.enter_context(staged_folder(out, space))
            report("reading the table")
            coded = encode(open_table(table), self.schema)
            refuse_misfits(coded)
            with self._paying(method, budget, mechanisms) as payer:
                domain = Domain(self.schema.shape, len(self.schema.classes))
                engine = engine_of(coded, self.schema)
                meter = Meter(engine, payer, mechanisms, domain, lambda debit: report(debit.label))
                draft = method.publish(meter, self.schema, schedule)
                release = self._seal(draft, method, meter.debits, payer.id, mechanisms)
                if staging:
                    report("writing the release")
                    release = release.write_into(staging)
                stack.close()
            payer.settle("published", release.manifest.digest if staging else None)
        return release

    @contextlib.contextmanager
    def _paying(self, method: Method, epsilon: Fraction, mechanisms: Mechanisms) -> Iterator[Reservation | Unbooked]:
        """Reserve epsilon; a publication that fails keeps its debits and gives the rest back.

        If even that cannot be written, the reservation stays open and holds all of it: the safe side.
        """
        payer = self._ledger.reserve(method.name, epsilon) if mechanisms.secure else Unbooked(epsilon)
        try:
            yield payer
        except BaseException:
            with contextlib.suppress(LedgerError):
                payer.settle("failed")
            raise

    def _seal(
        self,
        draft: Draft,
        method: Method,
        debits: tuple[Debit, ...],
        publication: str,
        mechanisms: Mechanisms,
    ) -> Release:
        manifest = Manifest(
            version=version("sfumato"),
            publication=publication,
            method=method.name,
            parameters=method.parameters,
            debits=debits,
            secure=mechanisms.secure,
            schema_digest=self.schema.digest,
            steps=draft.steps,
        )
        return Release(
            self.schema, draft.partition, draft.counts, draft.margins, manifest, draft.earlier, draft.consistency
        )


def refuse_unconfirmed(schema: Schema) -> None:
    """Refuse a schema that no person has vouched for: bounds and categories taken from rows can betray them."""
    if not schema.confirmed:
        raise SchemaError(
            f"the schema of {schema.name} must be confirmed by a person",
            "Read it, correct what betrays a person (rare categories, exact extremes), then set `confirmed: true`.",
        )


def engine_of(coded: Coded, schema: Schema) -> MemoryEngine:
    """Put coded columns behind an engine."""
    target = schema.target
    classes = coded.columns[target] if target is not None else np.zeros(coded.rows, np.uint8)
    return MemoryEngine([coded.columns[name] for name in schema.predictors], classes)
