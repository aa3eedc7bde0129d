"""Tables about persons, the rows of them that count, and mistakes to plant where rows are drawn."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from replay import compare_chain
from sfumato import Schema
from sfumato.engines.counting import Counting
from sfumato.engines.local import LocalEngine, MemoryEngine
from sfumato.methods.method import Method
from sfumato.privacy.meter import Meter
from sfumato.tables import persons

MOST = 2
KEY = b"a key that everybody here may see"[: persons.KEY_BYTES]
SCHEMA = Schema.loads(f"""
name: visits
confirmed: true
person: patient
rows_per_person: {MOST}
missing_person: own
attributes:
  ward: {{kind: categorical, taxonomy: {{Surgery: [Heart, Bones], Other: [Eyes]}}}}
  age: {{kind: numeric, lower: 0, upper: 5, missing: Unknown}}
  class: {{kind: class, taxonomy: [Y, N]}}
""")
COLUMNS = ["patient", "ward", "age", "class"]
Row = tuple[object, ...]
CodedRow = tuple[int, ...]


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=COLUMNS).astype(object)


def counted(table: Any, schema: Schema = SCHEMA, key: bytes = KEY) -> Counter[CodedRow]:
    """The codes of the rows of a table that count, by the way that a publication takes."""
    with tempfile.TemporaryDirectory() as folder, Counting.of(scratch=folder).opened(table, schema, key) as engine:
        assert isinstance(engine, LocalEngine)
        found: Counter[CodedRow] = Counter()
        for at in range(len(engine._rows)):
            block = engine._rows.block(at)
            weights = np.ones(len(block), np.int64) if block.weights is None else block.weights
            for *row, times in zip(*(one.tolist() for one in (*block.columns, block.classes, weights)), strict=True):
                found[tuple(row)] += times
        return found


def lot(person: str, codes: bytes, copy: int, key: bytes = KEY) -> str:
    """The lot of a row, by hand."""
    return hashlib.sha256(key + f"{copy}:".encode() + codes + person.encode()).hexdigest()


def engine_of(rows: Counter[CodedRow]) -> MemoryEngine:
    table = np.array(list(rows.elements()), np.uint8).reshape(-1, len(SCHEMA.shape) + 1)
    return MemoryEngine(list(table.T[:-1]), table.T[-1])


def added(table: Sequence[Row], person: Sequence[Row], first: bool) -> list[Row]:
    """The rows that a person adds to those that count; fail if others change, or if they are too many."""
    rows = [*person, *table] if first else [*table, *person]
    before, after = counted(frame_of(table)), counted(frame_of(rows))
    assert not before - after, "a person has a say about the rows of others"
    assert (after - before).total() <= MOST, "more rows of a person count than may"
    return list((after - before).elements())


def chain_of(table: Sequence[Row], person: Sequence[Row], first: bool = True) -> list[Counter[CodedRow]]:
    """The rows that count without a person, and with one after the other of the person's."""
    chain = [counted(frame_of(table))]
    for row in added(table, person, first):
        chain.append(chain[-1] + Counter([row]))
    return chain


def compare_person(method: Method, chain: Sequence[Counter[CodedRow]], *, seed: int) -> None:
    """Replay a table with and without a person, in both directions."""
    engines = [engine_of(one) for one in chain]
    for tables in (engines, engines[::-1]):
        compare_chain(method, SCHEMA, tables, epsilon=Fraction(3, 2), seed=seed)


def rows_are_kept_by_their_order(patch: pytest.MonkeyPatch) -> None:
    """Draw by the place of a row in the file."""
    by_place = "SELECT person, codes, rowid AS copy FROM rows WHERE person IS NOT NULL"
    patch.setattr(persons, "DRAWN", persons.DRAWN.replace(persons.NUMBERED, by_place))


def the_first_rows_are_kept(patch: pytest.MonkeyPatch) -> None:
    """Keep the rows of a person that come first in the file."""
    patch.setattr(persons, "DRAWN", "SELECT person, codes FROM rows WHERE person IS NOT NULL ORDER BY person, rowid")


def the_bound_is_on_the_table(patch: pytest.MonkeyPatch) -> None:
    """Keep so many rows in all."""
    patch.setattr(persons, "DRAWN", f"SELECT 'all'::BLOB, codes FROM ({persons.NUMBERED}) ORDER BY {persons.LOT}")


def persons_are_told_apart_by_a_short_hash(patch: pytest.MonkeyPatch) -> None:
    """Take persons for one whose hashes agree."""
    short = "(hash(person) % 2)::VARCHAR::BLOB"
    patch.setattr(persons, "DRAWN", f"SELECT {short}, codes FROM ({persons.NUMBERED}) ORDER BY {short}, {persons.LOT}")


def nothing_is_bounded(patch: pytest.MonkeyPatch) -> None:
    """Let all rows count."""
    real = persons.PersonRows.drawn
    patch.setattr(persons.PersonRows, "drawn", lambda rows, most, key: real(rows, 100 * most, key))


def epsilon_is_not_divided(patch: pytest.MonkeyPatch) -> None:
    """Let each row have the whole epsilon, and tell it as that of a person."""
    real = Meter.__init__
    patch.setattr(Meter, "__init__", lambda meter, *given: real(meter, *given[:6]))


MISTAKES = [
    rows_are_kept_by_their_order,
    the_bound_is_on_the_table,
    persons_are_told_apart_by_a_short_hash,
    nothing_is_bounded,
    epsilon_is_not_divided,
]
