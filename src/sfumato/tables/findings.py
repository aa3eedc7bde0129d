"""What a schema would betray of a table's people, and which columns say the same: for the holder's eyes.

A schema is published. A value in it that few rows have tells that such a person is in the table; a bound that is one
person's value tells that value. Columns that are nearly unique name people whatever they are called. A column that
follows from another, or repeats it, is paid for twice. All of it is told in exact counts, so nothing of it may be
published.

Memory is bounded: leaves are counted, and the codes of the first rows are kept to look for dependence.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes, Integers
from sfumato.errors import guarded, too_large, unreadable
from sfumato.schema.attributes import Categorical, Identifier, Numeric, exact
from sfumato.schema.schema import Predictor, Schema
from sfumato.storage import private_folder
from sfumato.tables import values as reading
from sfumato.tables.coders import Part, PersonReader
from sfumato.tables.encode import Coded, Misfit, absent_of, columns_to_read, encoder_of
from sfumato.tables.persons import LEAST_SORTED, PersonRows, RowsOfPersons, opened
from sfumato.tables.seen import FEWEST
from sfumato.tables.streams import Table

LOOKED_AT = 100_000
"""Dependence is looked for in so many rows, the first."""
FIRST_LOOK = 1_000
"""In so many rows first: most pairs of columns show there that neither follows from the other."""
WIDEST = 300
"""Dependence is not looked for in tables with more columns."""
NEARLY_UNIQUE = 0.95
"""A column is nearly unique if it has this share of as many different values as rows."""
ONCE_EACH = 1.05
"""An identifier repeats if its values have more rows than this, on average."""
NEARLY_ALWAYS = 0.98
"""A column that has one value in this share of rows follows from any other, almost."""


@dataclass(frozen=True)
class Finding:
    """Something about columns that a holder should look at before a schema is published."""

    columns: tuple[str, ...]
    problem: str
    """in words, with values of the schema and exact counts"""
    remedy: str
    betrays: bool = True
    """whether the schema would betray someone; otherwise it costs precision, or leaves more to tell of someone"""
    repeats: bool = False
    """whether it is an identifier that several rows share"""


def survey(table: Table, schema: Schema) -> tuple[Coded, tuple[Finding, ...], RowsOfPersons | None]:
    """How a table fits its schema, what is found, and how many rows persons have, in one pass; no row stays."""
    surveyor = Surveyor(schema, columns_to_read(table, schema, schema.person))
    encoders = {name: encoder_of(facts, schema.missing_values) for name, facts in surveyor.columns.items()}
    rows = 0
    with counted_identifiers(schema, table.columns) as identifiers:
        for batch in table.batches([*surveyor.columns, *identifiers.readers]):
            rows += batch.num_rows
            for name, array in zip(surveyor.columns, batch.columns[: len(encoders)], strict=True):
                part = guarded(partial(encoders[name], array), unreadable(name))
                surveyor.look(name, array, part)
            identifiers.look(batch.columns[len(encoders) :])
        repeated = identifiers.counted()
    surveyor.misfits.update(identifiers.misfits)
    told = Coded(
        columns={},
        rows=rows,
        misfits=tuple(
            Misfit(name, reading.REASONS[reason], number) for (name, reason), number in sorted(surveyor.misfits.items())
        ),
        outside={name: number for name, number in surveyor.outside.items() if number},
        undeclared=schema.undeclared(table.columns),
    )
    persons = None if schema.person is None else repeated.pop(schema.person)
    return told, (*surveyor.findings(), *_repeating(repeated)), persons


@dataclass
class Identifiers:
    """Counts how many rows share an identifier: of persons, or of all columns that could tell them."""

    readers: dict[str, PersonReader]
    places: list[PersonRows]
    misfits: Counter[tuple[str, int]] = field(default_factory=Counter)
    """how many rows do not say whom they are about, where the schema says that they must"""

    def look(self, arrays: Sequence[reading.Array]) -> None:
        """Look at one batch."""
        for (name, reader), place, array in zip(self.readers.items(), self.places, arrays, strict=True):
            found, reasons = guarded(partial(reader.read, array), unreadable(name))
            guarded(partial(place.add, found), too_large)
            if not reader.own:
                self.misfits.update({(name, reason): rows for reason, rows in reasons.items()})

    def counted(self) -> dict[str, RowsOfPersons]:
        """How many rows share the identifiers of each column."""
        return {name: guarded(place.counted, too_large) for name, place in zip(self.readers, self.places, strict=True)}


@contextmanager
def counted_identifiers(schema: Schema, present: Collection[str]) -> Iterator[Identifiers]:
    """Count the persons of a table or, where its schema names none, what its identifiers would make of persons."""
    absent = reading.Absent.of(schema.missing_values)
    declared = [name for name, facts in schema.attributes.items() if isinstance(facts, Identifier) and name in present]
    names = declared if schema.person is None else [schema.person]
    own = schema.person is None or schema.missing_person == "own"
    with ExitStack() as stack:
        home = stack.enter_context(private_folder(Path(tempfile.gettempdir())))
        places = [stack.enter_context(opened(home, LEAST_SORTED)) for _ in names]
        yield Identifiers({name: PersonReader(name, absent, own) for name in names}, places)


def _repeating(repeated: Mapping[str, RowsOfPersons]) -> Iterator[Finding]:
    for name, found in repeated.items():
        if found.persons >= FEWEST and found.rows > ONCE_EACH * found.persons:
            yield Finding(
                (name,),
                f"{found.persons:,} different values in {found.rows:,} rows, up to {found.most:,} rows of one. If it "
                f"tells whom a row is about, a person with {found.most:,} rows has {found.most:,} times epsilon",
                f"Then declare `person: {name}` and `rows_per_person`, and check again.",
                betrays=False,
                repeats=True,
            )


@dataclass
class Surveyor:
    """Looks at the codes of a table, batch by batch, and finds what to tell."""

    schema: Schema
    columns: dict[str, Predictor]
    counts: dict[str, Integers] = field(init=False)
    ends: dict[str, list[int]] = field(init=False)
    """for each numeric column, how many rows have exactly its lower and its upper bound"""
    first: dict[str, list[Codes]] = field(init=False)
    misfits: Counter[tuple[str, int]] = field(default_factory=Counter)
    """how many rows have no leaf, by column and reason"""
    outside: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with nothing seen."""
        self.counts = {name: np.zeros(facts.leaves, np.int64) for name, facts in self.columns.items()}
        self.ends = {name: [0, 0] for name, facts in self.columns.items() if isinstance(facts, Numeric)}
        self.first = {name: [] for name in self.columns}

    def look(self, name: str, array: reading.Array, part: Part) -> None:
        """Look at one batch of one column: its values and their codes."""
        self.misfits.update({(name, reason): rows for reason, rows in part.misfits.items()})
        self.outside[name] += part.outside
        facts = self.columns[name]
        fine = np.ones(len(part.codes), bool) if part.status is None else part.status == reading.FINE
        self.counts[name] += np.bincount(part.codes[fine], minlength=facts.leaves)
        seen = sum(len(one) for one in self.first[name])
        if seen < LOOKED_AT and len(self.columns) <= WIDEST:
            self.first[name].append(part.codes[: LOOKED_AT - seen])
        if isinstance(facts, Numeric) and not reading.is_nested(array.type):
            self._look_at_ends(facts, array, part.codes, self.ends[name])

    def _look_at_ends(self, facts: Numeric, array: reading.Array, codes: Codes, ends: list[int]) -> None:
        read = reading.days if facts.is_date else reading.numbers
        for side, (cell, bound) in enumerate(((0, facts.lower), (facts.cells - 1, facts.upper))):
            places = np.flatnonzero(codes == cell)
            if not len(places):
                continue
            values, at = reading.distinct(array.take(places))
            found = read(reading.rewritten(values, facts.written), absent_of(facts, self.schema.missing_values))
            equal = (found.status == reading.FINE) & (found.values.astype(np.float64) == float(exact(bound)))
            ends[side] += int(np.count_nonzero(equal[at]))

    def findings(self) -> list[Finding]:
        """All that was found, what betrays someone first."""
        found = [*self._rare(), *self._bounds(), *self._unique(), *self._dependent()]
        return sorted(found, key=lambda one: not one.betrays)

    def _rare(self) -> Iterator[Finding]:
        for name, facts in self.columns.items():
            if isinstance(facts, Categorical):
                few = _rare_names(facts, self.counts[name])
            else:
                few = [(text, rows) for text, rows in _rare_points(facts, self.counts[name])]
            if few:
                told = ", ".join(f"{text} ({rows})" for text, rows in few[:8]) + (", ..." if len(few) > 8 else "")
                yield Finding(
                    (name,),
                    f"values that fewer than {FEWEST} rows have: {told}",
                    "Remove them and declare `unseen`, or join them, unless everybody knows that they exist.",
                )

    def _bounds(self) -> Iterator[Finding]:
        for name, ends in self.ends.items():
            facts = self.columns[name]
            assert isinstance(facts, Numeric)
            for rows, side, bound in zip(ends, ("lower", "upper"), (facts.lower, facts.upper), strict=True):
                if 0 < rows < FEWEST and exact(bound) != 0:
                    yield Finding(
                        (name,),
                        f"the {side} bound is the value of {rows} rows",
                        "Round it outward, or use a public one.",
                    )

    def _unique(self) -> Iterator[Finding]:
        for name, counts in self.counts.items():
            rows, used = int(counts.sum()), int(np.count_nonzero(counts))
            if rows >= FEWEST and used >= NEARLY_UNIQUE * rows:
                yield Finding(
                    (name,), f"nearly unique: {used:,} different values in {rows:,} rows", "Make it an identifier."
                )

    def _dependent(self) -> Iterator[Finding]:
        codes = {name: np.concatenate(parts) for name, parts in self.first.items() if parts}
        told = [name for name in codes if self._varies(name)]
        for one, other in combinations(told, 2):
            pair = (codes[one], codes[other])
            if not any(_follows(*order, FIRST_LOOK) for order in (pair, pair[::-1])):
                continue
            forward, backward = _follows(*pair, LOOKED_AT), _follows(*pair[::-1], LOOKED_AT)
            if forward and backward:
                yield Finding((one, other), f"{other} repeats {one}", "Leave one of them out.", betrays=False)
            elif forward or backward:
                known, follows = (one, other) if forward else (other, one)
                yield Finding(
                    (known, follows),
                    f"{follows} follows from {known}",
                    f"Leave {follows} out, or make it a level of a taxonomy of {known}.",
                    betrays=False,
                )

    def _varies(self, name: str) -> bool:
        """Whether a column is neither nearly constant nor nearly unique: anything follows from such, or to such."""
        counts = self.counts[name]
        rows = int(counts.sum())
        few = np.count_nonzero(counts) < NEARLY_UNIQUE * rows / 2
        return rows >= FEWEST and bool(counts.max() < NEARLY_ALWAYS * rows and few)


def _rare_names(facts: Categorical, counts: Integers) -> list[tuple[str, int]]:
    """The leaves that a person has listed and few rows have, but for those of missing and unseen values."""
    listed = facts.tree.leaves
    first = facts.leaves if facts.codes is not None else 0
    places = [at for at in range(first, facts.leaves) if listed[at] not in (facts.missing, facts.unseen)]
    return [(listed[at], int(counts[at])) for at in places if 0 < counts[at] < FEWEST]


def _rare_points(facts: Numeric, counts: Integers) -> list[tuple[str, int]]:
    places = np.searchsorted(facts.edges, [float(exact(point)) for point in facts.points], side="right") - 1
    return [(facts.label(at, at + 1), int(counts[at])) for at in places.tolist() if 0 < counts[at] < FEWEST]


def _follows(known: NDArray[np.integer], other: NDArray[np.integer], rows: int) -> bool:
    """Whether every value of one column goes with one value of the other, in the first rows."""
    known, other = known[:rows].astype(np.int64), other[:rows].astype(np.int64)
    pairs = np.unique(known * (int(other.max()) + 1) + other)
    return len(pairs) == len(np.unique(known))
