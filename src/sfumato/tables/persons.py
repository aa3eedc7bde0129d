"""Rows of persons: at most so many of each count, drawn by lot for each person apart.

The lot of a row is the hash of a secret key, the person, the row's codes, and which of the person's equal rows it is;
the rows with the smallest lots count. So a person's rows that count are a function of the key and of that person's rows
alone: neither another person, nor the order of rows, nor how a file is read has a say. Equal rows of a person are
counted through, and it does not matter in which order, because they are equal.

Derivation. Let k(D) be the rows of D that count, for some key. If D' has one person more, with any number of rows, then
k(D') has the rows of k(D) and, of that person, as many as may count at most. That is true of each key, so it does not
rest on the key being secret, nor on the hash: both make the draw a fair one, which nobody can foresee.

Persons are told apart by their whole identifiers, never by a hash of them: two that fell together would share a bound.

Memory is bounded: DuckDB sorts rows, beyond what it is allowed in a private folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.tables import streams

KEY_BYTES = 32
"""How long a key is."""
LEAST_SORTED = 128 * 10**6
"""The bytes that sorting is given at least."""
LOT = "unhex(sha256(from_hex('{key}') || (copy::VARCHAR || ':')::BLOB || codes || person))"
"""A row's lot. All but the last part end where they must, so different rows never have the same text."""
COPIES = "SELECT person, codes, count(*) AS copies FROM rows WHERE person IS NOT NULL GROUP BY person, codes"
THOUSANDS = f"SELECT *, unnest(range(1, copies + 1, 1000)) AS first FROM ({COPIES})"
NUMBERED = f"SELECT person, codes, unnest(range(first, least(first + 1000, copies + 1))) AS copy FROM ({THOUSANDS})"
"""All rows that are about a named person, equal ones of a person counted through, a thousand at a time."""
DRAWN = f"SELECT person, codes FROM ({NUMBERED}) ORDER BY person, {LOT}, codes"
"""These rows, one person after the other, in the order of their lots."""
ALONE = "SELECT codes FROM rows WHERE person IS NULL"
"""The codes of the rows that are about persons of their own."""
COUNTED = """
    SELECT number, count(*) FROM (SELECT count(*) AS number FROM rows WHERE person IS NOT NULL GROUP BY person)
    GROUP BY number
"""
"""How many persons have how many rows."""

PackedRows = NDArray[np.uint8]
"""The codes of rows as bytes, a line for each row."""


@dataclass(frozen=True)
class RowsOfPersons:
    """How many persons have how many rows. Exact, so for the holder's eyes."""

    by_rows: Mapping[int, int] = field(repr=False)
    """for each number of rows, how many persons have so many"""

    @property
    def persons(self) -> int:
        """The number of persons."""
        return sum(self.by_rows.values())

    @property
    def rows(self) -> int:
        """The number of rows that are about someone."""
        return self.counting(self.most)

    @property
    def most(self) -> int:
        """The most rows that a person has."""
        return max(self.by_rows, default=0)

    def counting(self, bound: int) -> int:
        """How many rows count if at most so many of each person do.

        >>> RowsOfPersons({1: 10, 5: 2}).counting(3)
        16
        """
        return sum(min(rows, bound) * persons for rows, persons in self.by_rows.items())

    @property
    def shares(self) -> dict[int, float]:
        """The share of rows that each bound keeps, from 1 to the one that keeps all, if it may be declared.

        >>> RowsOfPersons({1: 10, 5: 2}).shares
        {1: 0.6, 2: 0.7, 3: 0.8, 5: 1.0}
        """
        bounds = [bound for bound in BOUNDS if bound < self.most] + [self.most][: self.most <= BOUNDS[-1]]
        return {bound: self.counting(bound) / self.rows for bound in bounds if self.rows}


BOUNDS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""The bounds of which it is told what they keep."""


@dataclass(frozen=True)
class Draw:
    """How rows are drawn: how many of each person, by which key, and where and in how many bytes they are sorted."""

    most: int
    key: bytes = field(repr=False)
    home: Path
    memory: int

    def rows(self, parts: Iterable[tuple[pa.Array, PackedRows]]) -> Iterator[PackedRows]:
        """The rows that count, of rows that come in parts, each with whom it is about."""
        with opened(self.home, self.memory) as persons:
            for identifiers, codes in parts:
                persons.add(identifiers, codes)
            yield from persons.drawn(self.most, self.key)


@contextmanager
def opened(home: Path, memory: int) -> Iterator[PersonRows]:
    """Open a place for rows of persons, sorted in so many bytes, or beyond them in a folder."""
    with streams.connect() as connection:
        connection.execute(f"SET temp_directory = {streams.literal(str(home))}")
        connection.execute(f"SET memory_limit = '{max(memory, LEAST_SORTED)}B'")
        connection.execute("SET preserve_insertion_order = false")
        yield PersonRows(connection)


class PersonRows:
    """Rows and whom they are about."""

    def __init__(self, connection: streams.Connection) -> None:
        """Begin with none."""
        self._connection = connection
        connection.execute("CREATE TABLE rows (person BLOB, codes BLOB)")

    def __repr__(self) -> str:
        """Say nothing that was seen."""
        return "PersonRows(...)"

    def add(self, persons: pa.Array[Any], codes: PackedRows | None = None) -> None:
        """Add rows; without codes where they are only to be counted."""
        packed = pa.nulls(len(persons), pa.binary()) if codes is None else _binary(codes)
        part = pa.table({"person": persons, "codes": packed})
        self._connection.register("part", part)
        self._connection.execute("INSERT INTO rows SELECT person, codes FROM part")
        self._connection.unregister("part")

    def drawn(self, most: int, key: bytes) -> Iterator[PackedRows]:
        """The codes of the rows that count."""
        last, seen = None, 0
        for batch in self._read(DRAWN.format(key=key.hex())):
            places = places_of(batch.column(0), last, seen)
            last, seen = batch.column(0)[-1].as_py(), int(places[-1])
            yield from _packed(batch.column(1).filter(pa.array(places <= most)))
        for batch in self._read(ALONE):
            yield from _packed(batch.column(0))

    def _read(self, query: str) -> Iterator[pa.RecordBatch]:
        return (batch for batch in streams.reader_of(self._connection.sql(query)) if batch.num_rows)

    def counted(self) -> RowsOfPersons:
        """How many rows persons have."""
        return RowsOfPersons(dict(sorted(self._connection.sql(COUNTED).fetchall())))


def places_of(persons: pa.Array[Any], last: bytes | None, seen: int) -> Integers:
    """The place of each row among those of its person, where rows of a person follow each other.

    Before them came `seen` rows of the person who was `last`.

    >>> places_of(pa.array([b"a", b"a", b"b", b"b", b"c"]), b"a", 3).tolist()
    [4, 5, 1, 2, 1]
    """
    changes = pc.not_equal(persons.slice(1), persons.slice(0, len(persons) - 1)).to_numpy(zero_copy_only=False)
    begins = np.concatenate(([persons[0].as_py() != last], changes))
    rows = np.arange(len(persons))
    return rows + 1 - np.maximum.accumulate(np.where(begins, rows, -seen))


def _binary(codes: PackedRows) -> pa.Array[Any]:
    width = codes.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(codes), [None, pa.py_buffer(codes.tobytes())])


def _packed(codes: pa.Array[Any]) -> Iterator[PackedRows]:
    if not len(codes):
        return
    plain = codes.cast(pa.large_binary())
    width = len(plain[0].as_py())
    offsets = np.frombuffer(plain.buffers()[1], np.int64, len(plain) + 1, plain.offset * 8)
    yield np.frombuffer(plain.buffers()[2], np.uint8, len(plain) * width, int(offsets[0])).reshape(len(plain), width)
