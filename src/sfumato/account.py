"""From a draft to a release: the certificate is written from the ledger's lines, and drafts that belie it are refused.

Apart from the account because here the order no longer matters: everything was looked at, and nothing can be spent.

One table, one lifetime budget, many releases: where a method, the data and the ledger meet.

The order is the guarantee's: everything that can be refused is refused first, then epsilon is reserved, then the
method runs behind a meter that writes each debit before it looks, and only then is there a release to seal. Methods
without epsilon have a way of their own, in which the ledger is told that nothing bounds what they tell.

Releases with known seeds, for those who measure methods: they carry no guarantee and are booked nowhere that lasts.

Apart from the account, which serves holders: a ledger is needed only because methods without epsilon write to one.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counting import Counting, columns_of
from sfumato.engines.memory import MemoryListing
from sfumato.errors import LedgerError, MethodError, PrivacyError, SchemaError
from sfumato.methods.method import Draft, Method
from sfumato.privacy.budget import Debit, NonPrivate, Schedule, epsilon_of
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.ledger import Disclosure, Ledger, Outcome, Reservation, Statement
from sfumato.privacy.mechanisms import Exact, Mechanisms
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream, Stream, SystemStream, uniform_below
from sfumato.privacy.tally import Domain
from sfumato.release.folder import space_for
from sfumato.release.manifest import Manifest
from sfumato.release.promises import Promise
from sfumato.release.release import Release
from sfumato.schema.schema import Schema
from sfumato.storage import staged_folder
from sfumato.tables.encode import Coded, encode, refuse_misfits
from sfumato.tables.sources import open_table
from sfumato.without_epsilon.method import OpenDraft, SyntacticMethod

MISTAKE = "Nothing was released. Report this: it is a mistake of the method."


def certificate(
    method: Method | SyntacticMethod, publication: str, schema: Schema, steps: tuple[str, ...], *, secure: bool
) -> Manifest:
    """Say what was published and how; what it cost, or what is promised instead, is still to be filled in."""
    return Manifest(
        version=version("sfumato"),
        publication=publication,
        method=method.name,
        parameters=method.parameters,
        debits=(),
        secure=secure,
        schema_digest=schema.digest,
        steps=steps,
    )


def sealed(draft: Draft, schema: Schema, blank: Manifest, debits: tuple[Debit, ...]) -> Release:
    """Make a release with an epsilon; refuse counts that have no noise, whatever was paid for them."""
    bought = [draft.counts, *(one.noisy for one in draft.earlier if len(one.nodes))]
    bought += [] if draft.histogram is None else [draft.histogram]
    if any(noisy.is_exact for noisy in bought):
        raise PrivacyError("counts published with an epsilon must have noise, and some have none", MISTAKE)
    return Release(
        schema,
        draft.partition,
        draft.counts,
        draft.margins,
        replace(blank, debits=debits),
        draft.earlier,
        draft.consistency,
        draft.histogram,
    )


def sealed_openly(
    draft: OpenDraft, schema: Schema, blank: Manifest, promise: Promise, looks: tuple[NonPrivate, ...]
) -> Release:
    """Make a release without epsilon; refuse groups that break its promise, and counts that nobody noted."""
    if not draft.counts.is_exact or not promise.kept(draft.partition, draft.counts.counts):
        raise PrivacyError(f"every group must have the promised {promise.model}, and one has not", MISTAKE)
    if not looks:
        raise PrivacyError("a method without epsilon must have looked at the table through its exact counts", MISTAKE)
    manifest = replace(blank, promise=promise, looks=looks)
    return Release(schema, draft.partition, draft.counts, {}, manifest, notes=draft.notes)


Watch = Callable[[str], None]

LARGE = 1 << 20
"""Where the number of groups follows from the rows, disk space is set aside for so many cells."""


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
        refuse_syntactic(method)
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
        engine: str = "auto",
        memory: str | int | None = None,
        master: str | None = None,
        scratch: str | Path | None = None,
    ) -> Release:
        """Publish a table (a path, a frame or a query) by a method at a price; with `out`, write the release, too.

        `unsafe_seed` makes the noise reproducible and the release worthless as a protection: its manifest says so,
        and the ledger does not know it. The table is counted in memory if its codes fit in `memory` (such as "4GB"; a
        share of what is free, if not given), else by DuckDB in `scratch` (beside the ledger, if not given), or by the
        `engine` that is named; with Spark at `master`.
        """
        report = watch or _silent
        counting = Counting.of(engine, memory, master, scratch or self._ledger.path.resolve().parent)
        counting.refuse_schema(self.schema)
        schedule = self.plan(method, epsilon)
        budget = epsilon_of(epsilon)
        mechanisms = Exact(None if unsafe_seed is None else SeededStream(unsafe_seed))
        if mechanisms.secure:
            self._ledger.refuse_beyond(budget)
        with contextlib.ExitStack() as stack:
            space = space_for(method.expected_cells(self.schema), self.schema)
            staging = out and stack.enter_context(staged_folder(out, space))
            report("reading the table")
            counted = stack.enter_context(counting.opened(table, self.schema))
            with self._paying(method, budget, mechanisms) as payer:
                domain = Domain(self.schema.shape, len(self.schema.classes))
                meter = Meter(counted, payer, mechanisms, domain, lambda debit: report(debit.label))
                draft = method.publish(meter, self.schema, schedule)
                blank = certificate(method, payer.id, self.schema, draft.steps, secure=mechanisms.secure)
                release = sealed(draft, self.schema, blank, meter.debits)
                if staging:
                    report("writing the release")
                    release = release.write_into(staging)
                stack.close()
            payer.settle("published", release.manifest.digest if staging else None)
        return release

    def publish_without_epsilon(
        self,
        table: Any,
        method: SyntacticMethod,
        *,
        despite_budget: bool = False,
        out: str | Path | None = None,
        unsafe_seed: int | None = None,
        watch: Watch | None = None,
    ) -> Release:
        """Publish exact counts under another promise than an epsilon; with `out`, write the release there, too.

        The ledger is told first, and the table's total is infinite from then on: if there is a lifetime budget,
        `despite_budget` must say that this is meant. Where records are sampled, `unsafe_seed` makes the sample
        reproducible, and known: the manifest says so. They are drawn when the ledger knows of the publication: whoever
        could have a draw refused and draw again would choose the sample.
        """
        if not isinstance(method, SyntacticMethod):
            raise PrivacyError(
                f"{method.name} must not see exact counts: it is differentially private", "Publish with an epsilon."
            )
        report = watch or _silent
        schema = method.narrowed(self.schema)
        possible = method.promise(schema)
        stream = SystemStream() if unsafe_seed is None else SeededStream(unsafe_seed)
        self._ledger.refuse_disclosure(despite_budget=despite_budget)
        with contextlib.ExitStack() as stack:
            staging = out and stack.enter_context(staged_folder(out, space_for(LARGE, schema)))
            report("reading the table")
            coded = encode(open_table(table), schema)
            refuse_misfits(coded)
            possible.refuse_table(class_counts(coded, schema))
            with self._disclosing(method, despite_budget) as disclosure:
                domain = Domain(schema.shape, len(schema.classes))
                listing = MemoryListing(*columns_of(sampled(coded, method.sampling, stream), schema))
                counts = ExactCounts(listing, disclosure, domain, method.reason, report)
                method = method.informed(counts, schema)
                draft = method.publish(counts, schema)
                secure = stream.secure or method.sampling == 1
                blank = certificate(method, disclosure.id, schema, draft.steps, secure=secure)
                release = sealed_openly(draft, schema, blank, method.promise(schema), counts.lines)
                if staging:
                    report("writing the release")
                    release = release.write_into(staging)
                stack.close()
            disclosure.settle("published", release.manifest.digest if staging else None)
        return release

    @contextlib.contextmanager
    def _disclosing(self, method: SyntacticMethod, despite_budget: bool) -> Iterator[Disclosure]:
        """Open a publication without epsilon; one that fails keeps its lines, and so its infinity."""
        disclosure = self._ledger.disclose(method.name, despite_budget=despite_budget)
        try:
            yield disclosure
        except BaseException:
            with contextlib.suppress(LedgerError):
                disclosure.settle("failed")
            raise

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


def refuse_unconfirmed(schema: Schema) -> None:
    """Refuse a schema that no person has vouched for: bounds and categories taken from rows can betray them."""
    if not schema.confirmed:
        raise SchemaError(
            f"the schema of {schema.name} must be confirmed by a person",
            "Read it, correct what betrays a person (rare categories, exact extremes), then set `confirmed: true`.",
        )


def refuse_syntactic(method: object) -> None:
    """Refuse to put a price on a method that has none."""
    if isinstance(method, SyntacticMethod):
        raise MethodError(f"{method.name} must be published without epsilon", "Use publish_without_epsilon.")


def sampled(coded: Coded, rate: Fraction, stream: Stream) -> Coded:
    """Draw each row with the same probability, exactly and apart from all others."""
    if rate == 1:
        return coded
    drawn = uniform_below(stream, rate.denominator, coded.rows) < rate.numerator
    columns = {name: column[drawn] for name, column in coded.columns.items()}
    return replace(coded, columns=columns, rows=int(drawn.sum()))


def class_counts(coded: Coded, schema: Schema) -> NDArray[np.int64]:
    """Count coded rows by class."""
    if schema.target is None:
        return np.array([coded.rows])
    return np.bincount(coded.columns[schema.target], minlength=len(schema.classes))


def seeded_release(
    table: Any,
    schema: Schema,
    method: Method | SyntacticMethod,
    epsilon: str | None,
    seed: int,
    out: str | Path | None = None,
) -> Release:
    """Publish a table with a known seed; the epsilon is for methods that have one."""
    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "passing.ledger", schema)
        if isinstance(method, SyntacticMethod):
            return account.publish_without_epsilon(table, method, out=out, despite_budget=True, unsafe_seed=seed)
        return account.publish(table, method, str(epsilon), out=out, unsafe_seed=seed)
