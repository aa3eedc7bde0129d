"""The account of a table: one table, one lifetime budget, many releases; here method, data and ledger meet.

The order is the guarantee's: everything that can be refused is refused first, then epsilon is reserved, then the method
runs behind a meter that writes each debit before it looks, and only then is there a release to seal. Methods without
epsilon take a path of their own, by type, in which the ledger is told that nothing bounds what they tell.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.arrays import Codes, Integers
from sfumato.engines.counting import Counting
from sfumato.engines.local import MemoryEngine, MemoryListing
from sfumato.errors import BudgetError, LedgerError, MethodError, PrivacyError, SchemaError, SfumatoError
from sfumato.methods.method import Method
from sfumato.models import model_type
from sfumato.privacy.budget import Debit, NonPrivate, Schedule, epsilon_of
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.ledger import Disclosure, Ledger, Outcome, Reservation, Statement, ledgers_in
from sfumato.privacy.measurements import Draft, each_is_paid, most_paid
from sfumato.privacy.mechanisms import Exact, Mechanisms
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import SeededStream, Stream, SystemStream, uniform_below
from sfumato.privacy.tally import Domain
from sfumato.progress import rounds_watched
from sfumato.release.about import About
from sfumato.release.folder import space_for
from sfumato.release.manifest import Manifest
from sfumato.release.promises import Promise
from sfumato.release.release import Release, Synthetic
from sfumato.schema.schema import Schema
from sfumato.storage import staged_folder
from sfumato.tables.encode import Coded, encode, refuse_misfits
from sfumato.tables.frames import is_spark
from sfumato.tables.persons import KEY_BYTES
from sfumato.tables.sketch import SUFFIX, Sketch, published_only, sketch_of
from sfumato.tables.sources import open_table
from sfumato.without_epsilon.method import MethodWithoutEpsilon

Watch = Callable[[str], None]
"""What is told of each step of a publication."""
Epsilon = str | float | Fraction
"""An epsilon as it may be given."""

LARGE = 1 << 20
"""For how many cells disk space is set aside where the number of groups follows from the rows."""
MISTAKE = "Nothing was released. Report this: it is a mistake of the method."
"""The way out of what only a mistake of ours can lead to."""


class Account:
    """The account of one table: `publish` is its verb.

    `ledger` is a file beside the data, shared by everyone who publishes from it. `schema` must have been confirmed.
    """

    def __init__(self, ledger: str | Path, schema: Schema) -> None:
        """Open the account; its ledger begins, with the schema's lifetime budget, at the first publication."""
        refuse_unconfirmed(schema)
        self.schema = schema.with_ledger(None)
        self._ledger = Ledger(ledger, schema.name, schema.budget, schema.ledger)
        self._planned: tuple[tuple[Method, Fraction], Schedule] | None = None

    def statement(self) -> Statement:
        """List every debit ever made on this table, and what is left."""
        return self._ledger.statement()

    @property
    def id(self) -> str | None:
        """The id of the ledger, for the schema to carry; None before the first publication."""
        return self._ledger.id

    def plan(self, method: Method, epsilon: Epsilon) -> Schedule:
        """Say what a publication would cost, line by line, touching no data."""
        if not isinstance(method, Method):
            raise MethodError(f"{method.name} must be published without epsilon", "Leave epsilon out.")
        return self._by_row(method, epsilon_of(epsilon)).times(self.schema.rows_per_person)

    def _by_row(self, method: Method, epsilon: Fraction) -> Schedule:
        """What each row costs; of a person, at most so many count that all of them cost epsilon."""
        asked = (method, epsilon)
        if self._planned is None or self._planned[0] != asked:
            model_type(method.model)
            self._planned = (asked, method.plan(self.schema, epsilon / self.schema.rows_per_person))
        return self._planned[1]

    def publish(
        self,
        table: Any,
        method: Method | MethodWithoutEpsilon,
        epsilon: Epsilon | None = None,
        *,
        out: str | Path | None = None,
        despite_budget: bool = False,
        other_people: bool = False,
        unsafe_seed: int | None = None,
        about: About | Mapping[str, Any] | str | Path | None = None,
        synthetic: Synthetic | None = None,
        watch: Watch | None = None,
        engine: str = "auto",
        memory: str | int | None = None,
        master: str | None = None,
        scratch: str | Path | None = None,
    ) -> Release:
        """Publish a table (a path, a frame or a query) by a method at a price; with `out`, write the release, too.

        A method without epsilon takes no price: the ledger is told first, and the table's total is infinite from then
        on; where there is a lifetime budget, `despite_budget` must say that this is meant.

        A table that shares most rows with one that has a ledger in the same folder is refused, unless the holder says
        that these are `other_people`.

        `unsafe_seed` makes the noise, or the sample, reproducible and the release worthless as a protection: its
        manifest says so, and the ledger does not know a seeded release with an epsilon. A table with a lifetime budget
        refuses it. `about` is what users must know: a file, or plain values, with a title, a publisher, a licence and
        more. `synthetic` adds a file of synthetic people to the folder. The table is counted on this
        machine, its codes in `memory` (such as "4GB"; a share of what is free, if not given) as far as they fit, else
        in `scratch` (beside the ledger, if not given); or, if the `engine` is spark, by Spark at `master`. `watch` is
        told what begins; without it, a notebook shows a bar.
        """
        said = _said(about, unsafe_seed)
        counting = Counting.of(engine, memory, master, scratch or self._ledger.path.resolve().parent)
        others = OtherLedgers(self._ledger.path, table, other_people)
        if unsafe_seed is not None:
            self.statement().refuse_seed()
        if isinstance(method, MethodWithoutEpsilon):
            if epsilon is not None:
                raise MethodError(f"{method.name} must be published without epsilon", "Leave epsilon out.")
            counting.refuse_other_than(method.engines, method.name)
            place = _Out(out, said, synthetic)
            with rounds_watched(watch, None) as report:
                return self._publish_openly(table, method, despite_budget, others, place, unsafe_seed, report)
        if not isinstance(method, Method):
            raise MethodError("method must be one of sfumato.METHODS or sfumato.WITHOUT_EPSILON", "Choose one of them.")
        if epsilon is None:
            raise BudgetError(f"{method.name} must have an epsilon", "Give one such as 1 or 1/2.")
        if despite_budget:
            raise MethodError(f"despite_budget must go with a method without epsilon ({method.name})", "Leave it out.")
        price = epsilon_of(epsilon)
        schedule = self._by_row(method, price)
        place = _Out(out, said, synthetic)
        with rounds_watched(watch, schedule) as report:
            return self._publish_privately(table, method, price, schedule, counting, others, place, unsafe_seed, report)

    def _publish_privately(
        self,
        table: Any,
        method: Method,
        epsilon: Fraction,
        schedule: Schedule,
        counting: Counting,
        others: OtherLedgers,
        out: _Out,
        unsafe_seed: int | None,
        report: Watch,
    ) -> Release:
        """Publish noisy counts at a price: reserve epsilon, run the method behind a meter, seal what it drafts."""
        counting.refuse_schema(self.schema)
        stream = SystemStream() if unsafe_seed is None else SeededStream(unsafe_seed)
        mechanisms, records = Exact(stream), self.schema.rows_per_person
        key = None if self.schema.person is None else stream.take(KEY_BYTES)
        if mechanisms.secure:
            self._ledger.refuse_beyond(epsilon, self.schema.unit)
        with contextlib.ExitStack() as stack:
            space = space_for(method.expected_cells(self.schema), self.schema)
            staging = out.place and stack.enter_context(staged_folder(out.place, space))
            report("reading the table")
            counted = stack.enter_context(counting.opened(table, self.schema, key))
            if mechanisms.secure:
                others.refuse_same_people()
            with self._paying(method, epsilon, mechanisms) as payer:
                domain = Domain(self.schema.shape, len(self.schema.classes))
                reader = model_type(method.model).reader()
                meter = Meter(
                    counted, payer, mechanisms, domain, lambda debit: report(debit.label), reader.refuse, records
                )
                draft = method.publish(meter, self.schema, schedule)
                blank = certificate(method, payer.id, self.schema, draft.steps, secure=mechanisms.secure)
                release = sealed(draft, self.schema, replace(blank, about=out.about), meter)
                if staging:
                    report("writing the release")
                    release = release.write_into(staging, out.synthetic)
                stack.close()
            payer.settle("published", release.manifest.digest if staging else None)
        if mechanisms.secure:
            others.note_rows(self.schema)
        return release

    @contextlib.contextmanager
    def _paying(self, method: Method, epsilon: Fraction, mechanisms: Mechanisms) -> Iterator[Reservation | Unbooked]:
        """Reserve epsilon; a publication that fails keeps its debits and gives the rest back.

        If even that cannot be written, the reservation stays open and holds all of it: the safe side.
        """
        payer = self._ledger.reserve(method.name, epsilon, self.schema.unit) if mechanisms.secure else Unbooked(epsilon)
        try:
            yield payer
        except BaseException:
            with contextlib.suppress(LedgerError):
                payer.settle("failed")
            raise

    def _publish_openly(
        self,
        table: Any,
        method: MethodWithoutEpsilon,
        despite_budget: bool,
        others: OtherLedgers,
        out: _Out,
        unsafe_seed: int | None,
        report: Watch,
    ) -> Release:
        """Publish exact counts under another promise than an epsilon.

        Records are drawn when the ledger knows of the publication: whoever could have a draw refused and draw again
        would choose the sample.
        """
        schema = method.narrowed(self.schema)
        possible = method.promise(schema)
        stream = SystemStream() if unsafe_seed is None else SeededStream(unsafe_seed)
        self._ledger.refuse_disclosure(despite_budget=despite_budget)
        with contextlib.ExitStack() as stack:
            staging = out.place and stack.enter_context(staged_folder(out.place, space_for(LARGE, schema)))
            report("reading the table")
            coded = encode(open_table(table), schema)
            refuse_misfits(coded)
            possible.refuse_table(class_counts(coded, schema))
            others.refuse_same_people()
            with self._disclosing(method, despite_budget) as disclosure:
                domain = Domain(schema.shape, len(schema.classes))
                listing = MemoryListing(*columns_of(sampled(coded, method.drawn, stream), schema))
                counts = ExactCounts(listing, disclosure, domain, method.reason, report)
                method = method.informed(counts, schema)
                draft = method.publish(counts, schema)
                secure = stream.secure or method.drawn == 1
                blank = certificate(method, disclosure.id, schema, draft.steps, secure=secure)
                release = sealed_openly(
                    draft, schema, replace(blank, about=out.about), method.promise(schema), counts.lines
                )
                if staging:
                    report("writing the release")
                    release = release.write_into(staging, out.synthetic)
                stack.close()
            disclosure.settle("published", release.manifest.digest if staging else None)
        others.note_rows(schema)
        return release

    @contextlib.contextmanager
    def _disclosing(self, method: MethodWithoutEpsilon, despite_budget: bool) -> Iterator[Disclosure]:
        """Open a publication without epsilon; one that fails keeps its lines, and so its infinity."""
        disclosure = self._ledger.disclose(method.name, despite_budget=despite_budget)
        try:
            yield disclosure
        except BaseException:
            with contextlib.suppress(LedgerError):
                disclosure.settle("failed")
            raise


@dataclass(frozen=True)
class OtherLedgers:
    """The ledgers beside a table's own, whose tables may be about the same people.

    Each has a sketch of its rows beside it, for the holder's eyes; so is a refusal here. Tables that can be read only
    once, and those that lie with Spark, are not looked at.
    """

    ledger: Path
    table: Any = field(repr=False)
    other_people: bool

    def refuse_same_people(self) -> None:
        """Refuse a table that shares most rows with that of another ledger, unless its own ledger knows it."""
        sketches = [] if self.other_people or not self._readable_again else self._sketches()
        if not sketches or self._known():
            return
        for other, theirs in sketches:
            if self._is_about(theirs):
                raise LedgerError(
                    f"a table must pay from one ledger, and most rows of this one are those of {other}",
                    f"Say --ledger {other}. If they are other people, say --other-people. (For your eyes only.)",
                )

    def note_rows(self, schema: Schema) -> None:
        """Keep a sketch beside the ledger, if it has none. One that cannot be written is left out."""
        if self._readable_again and Sketch.read(self._rows) is None:
            with contextlib.suppress(OSError, SfumatoError):
                sketch_of(self.table, published_only(schema), os.urandom(32)).write(self._rows)

    @property
    def _rows(self) -> Path:
        return rows_file(self.ledger)

    @property
    def _readable_again(self) -> bool:
        return not is_spark(self.table) and not isinstance(self.table, pa.RecordBatchReader)

    def _sketches(self) -> list[tuple[Path, Sketch]]:
        folders = {self.ledger.resolve().parent}
        if isinstance(self.table, str | Path) and Path(self.table).exists():
            folders.add(Path(self.table).resolve().parent)
        others = [one for folder in sorted(folders) for one in ledgers_in(folder) if one != self.ledger.resolve()]
        found = [(other, Sketch.read(rows_file(other))) for other in others]
        return [(other, sketch) for other, sketch in found if sketch is not None]

    def _known(self) -> bool:
        own = Sketch.read(self._rows)
        return own is not None and self._is_about(own)

    def _is_about(self, sketch: Sketch) -> bool:
        """Whether most rows are those of a sketch; a table that lacks its columns cannot be compared."""
        try:
            return sketch.same_people(sketch_of(self.table, sketch.schema, sketch.key))
        except SfumatoError:
            return False


def rows_file(ledger: Path) -> Path:
    """Where the sketch of a ledger's table lies."""
    return ledger.with_name(ledger.name + SUFFIX)


@dataclass(frozen=True)
class _Out:
    """Where a release is written, if anywhere, and what is added to it."""

    place: str | Path | None
    about: Mapping[str, Any]
    synthetic: Synthetic | None


def _said(about: About | Mapping[str, Any] | str | Path | None, unsafe_seed: int | None) -> dict[str, Any]:
    """Read what the holder says, and add today's date; a seeded release is the same on every day."""
    said = About.of(about)
    return (said if unsafe_seed is not None else said.dated(datetime.datetime.now(datetime.UTC).date())).plain()


def certificate(
    method: Method | MethodWithoutEpsilon, publication: str, schema: Schema, steps: tuple[str, ...], *, secure: bool
) -> Manifest:
    """Begin a manifest: what is published and how. What it costs, or what is promised instead, is filled in later."""
    return Manifest(
        version=version("sfumato"),
        publication=publication,
        method=method.name,
        parameters=method.parameters,
        debits=(),
        secure=secure,
        schema_digest=schema.digest,
        steps=steps,
        rows_per_person=schema.most_rows,
    )


def sealed(draft: Draft, schema: Schema, blank: Manifest, meter: Meter) -> Release:
    """Seal a draft as a release with an epsilon.

    Refuse counts that the meter has not given, or not for this question, whatever they look like; counts that say that
    they cost more than was paid; and notes, which are exact. Only a mistake of the method, or of the meter, does that.
    """
    given = {id(one.noisy): one for one in meter.measured}
    pairs = [(one, given.get(id(one.noisy))) for one in draft.measurements]
    if not pairs or not all(was and was.label == one.label and one.answers(was.question) for one, was in pairs):
        raise PrivacyError("what is published with an epsilon must be what the meter has measured", MISTAKE)
    if draft.notes or any(type(step) is not str for step in draft.steps):
        raise PrivacyError("what is published with an epsilon must have steps in words, and no notes", MISTAKE)
    manifest = replace(blank, debits=meter.debits)
    records = schema.rows_per_person
    if most_paid(draft, records) > manifest.epsilon or not each_is_paid(draft, meter.debits, records):
        raise PrivacyError("the noise of what is published must be worth no more than was paid", MISTAKE)
    release = Release(schema, draft, manifest)
    _ = release.model  # which refuses what it cannot read
    return release


def sealed_openly(
    draft: Draft, schema: Schema, blank: Manifest, promise: Promise, looks: tuple[NonPrivate, ...]
) -> Release:
    """Seal a draft as a release without epsilon; refuse groups that break its promise, and unnoted looks."""
    if not draft.final.noisy.is_exact or not promise.kept(draft.structure, draft.final.counts):
        raise PrivacyError(f"every group must have the promised {promise.model}, and one has not", MISTAKE)
    if not looks:
        raise PrivacyError("a method without epsilon must have looked at the table through its exact counts", MISTAKE)
    return Release(schema, draft, replace(blank, promise=promise, looks=looks))


def refuse_unconfirmed(schema: Schema) -> None:
    """Refuse a schema that no person has vouched for: bounds and categories taken from rows can betray them."""
    if not schema.confirmed:
        raise SchemaError(
            f"the schema of {schema.name} must be confirmed by a person",
            "Read it, correct what betrays a person (rare categories, exact extremes), then set `confirmed: true`.",
        )


def sampled(coded: Coded, rate: Fraction, stream: Stream) -> Coded:
    """Draw each row with the same probability, exactly, and independently of all others."""
    if rate == 1:
        return coded
    drawn = uniform_below(stream, rate.denominator, coded.rows) < rate.numerator
    columns = {name: column[drawn] for name, column in coded.columns.items()}
    return replace(coded, columns=columns, rows=int(drawn.sum()))


def columns_of(coded: Coded, schema: Schema) -> tuple[list[Codes], Codes]:
    """The coded columns of the predictors, and the classes."""
    target = schema.target
    classes = coded.columns[target] if target is not None else np.zeros(coded.rows, np.uint8)
    return [coded.columns[name] for name in schema.predictors], classes


def class_counts(coded: Coded, schema: Schema) -> Integers:
    """Count coded rows by class."""
    if schema.target is None:
        return np.array([coded.rows])
    return np.bincount(coded.columns[schema.target], minlength=len(schema.classes))


@dataclass(frozen=True)
class Unbooked:
    """What a seeded publication pays from: nothing is booked, because nothing is promised."""

    epsilon: Fraction
    id: str = "unbooked: made with a known seed"

    def pay(self, debit: Debit) -> None:
        """Book nothing."""

    def settle(self, outcome: Outcome, digest: str | None = None) -> None:
        """Settle nothing."""


def seeded_release(
    table: Any,
    schema: Schema,
    method: Method | MethodWithoutEpsilon,
    epsilon: str | None,
    seed: int,
    out: str | Path | None = None,
) -> Release:
    """Publish a table with a known seed, for those who measure methods; methods without epsilon ignore the epsilon.

    Such releases carry no guarantee and are booked nowhere that lasts, so a lifetime budget is left out: a ledger is
    needed only because methods without epsilon write to one.
    """
    with tempfile.TemporaryDirectory() as folder:
        account = Account(Path(folder) / "passing.ledger", schema.without_budget())
        if isinstance(method, MethodWithoutEpsilon):
            return account.publish(table, method, out=out, unsafe_seed=seed)
        return account.publish(table, method, epsilon, out=out, unsafe_seed=seed)


class Rehearsal:
    """A method at work on coded rows that are nobody's, again and again, without a ledger: for audits.

    Where the schema names persons, the rows are those that count.
    """

    def __init__(self, method: Method, schema: Schema, epsilon: Fraction, unsafe_seed: int | None = None) -> None:
        """Plan once; draw from the operating system, or from a seed."""
        self._method, self._schema, self._epsilon = method, schema, epsilon
        self._mechanisms = Exact(None if unsafe_seed is None else SeededStream(unsafe_seed))
        self._schedule = method.plan(schema, epsilon / schema.rows_per_person)

    def run(
        self, columns: Sequence[Codes], classes: Codes, mechanisms: Mechanisms | None = None
    ) -> tuple[Draft, tuple[Debit, ...]]:
        """Publish rows, by mechanisms that record or replay if they are given; return the draft and its debits."""
        domain = Domain(self._schema.shape, len(self._schema.classes))
        engine, reader = MemoryEngine(columns, classes), model_type(self._method.model).reader()
        payer, records = Unbooked(self._epsilon), self._schema.rows_per_person
        chosen = mechanisms or self._mechanisms
        meter = Meter(engine, payer, chosen, domain, None, reader.refuse, records)
        return self._method.publish(meter, self._schema, self._schedule), meter.debits
