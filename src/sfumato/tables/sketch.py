"""A keyed sketch of a table's rows, by which the holder notices that two tables are about the same people.

A sketch keeps keyed hashes of coded rows, the lowest of them, and of these only rows that *one* person has. A row that
many share says nothing about who they are; of those that one person has, two tables of the same people share nearly
all. Two tables of different people from one population share at most 37 % of them: if x others are expected to have
such a row in the second table, exactly one has with probability x exp(-x) <= 1/e. So one half is where "most" begins.

Hashes below a threshold are a random part of all rows, the same part in every table, so shares of them estimate shares
of rows. The coding is the schema's, which is kept with the sketch: another table is coded by it, too, whatever its own
schema says.

A sketch is **not private**: whoever has it with its key can ask whether a certain row is in the table. It lies beside
the ledger, for its owner's eyes only (mode 600), in a file whose size follows from the schema alone, and is in no
release. What it cannot notice: tables of few cells, in which hardly a row is one person's; fewer or otherwise written
columns; ledgers in other folders.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Codes
from sfumato.errors import SfumatoError
from sfumato.exact import read_json
from sfumato.schema.schema import Schema, variables_of
from sfumato.storage import replaced_file
from sfumato.tables.encode import Reading
from sfumato.tables.sources import open_table

SUFFIX = ".rows"
"""What the name of a sketch's file has after its ledger's."""
KEPT = 4096
"""How many different rows a sketch looks at, those with the lowest hashes."""
FEWEST = 24
"""Of so many rows that one person has, at least, a share is told."""
MOST = 0.5
"""From this share on, tables are taken to be about the same people."""
LONGEST = 20
"""So many letters a hash has in a file at most, marks included, and a threshold."""
LARGEST_FILE = 1 << 26
"""No sketch has more bytes."""
Hashes = NDArray[np.uint64]
EVERY = 2**64 - 1


@dataclass(frozen=True, eq=False)
class Sketch:
    """The lowest hashes of rows that one person has."""

    schema: Schema
    key: bytes
    threshold: int
    """the hashes up to here are those of all rows that have one so low"""
    once: Hashes

    def __repr__(self) -> str:
        """Show nothing of the rows."""
        return "Sketch(...)"

    def share(self, other: Sketch) -> float | None:
        """Estimate which share of the rows, of the table that has fewer, the other has, too; None if too few tell."""
        reach = min(self.threshold, other.threshold)
        mine, theirs = self.once[self.once <= reach], other.once[other.once <= reach]
        fewer = min(len(mine), len(theirs))
        return len(np.intersect1d(mine, theirs)) / fewer if fewer >= FEWEST else None

    def same_people(self, other: Sketch) -> bool:
        """Whether most rows are the same."""
        share = self.share(other)
        return share is not None and share >= MOST

    def write(self, path: Path) -> None:
        """Write it, for its owner only, and as long as the longest: those who list the folder learn nothing."""
        plain = {
            "format": 1,
            "warning": "PRIVATE: it tells whether a row is in the table. Keep it beside the data; never publish it.",
            "schema": self.schema.plain(),
            "key": self.key.hex(),
            "threshold": str(self.threshold),
            "once": [format(one, "x") for one in self.once.tolist()],
        }
        with replaced_file(path) as staging:
            os.close(os.open(staging, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            room = len(json.dumps(plain | {"threshold": "", "once": []})) + LONGEST * (KEPT + 1)
            staging.write_text(json.dumps(plain).ljust(room), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Sketch | None:
        """Read it; None for what cannot be read or is none."""
        try:
            if path.stat().st_size > LARGEST_FILE:
                return None
            plain = read_json(path.read_text(encoding="utf-8"))
            once = np.array([int(one, 16) for one in plain["once"]], np.uint64)
            return cls(Schema.parse(plain["schema"]), bytes.fromhex(plain["key"]), int(plain["threshold"]), once)
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            SfumatoError,
        ):
            return None


def sketch_of(table: Any, schema: Schema, key: bytes) -> Sketch:
    """Sketch a table, in one pass over its rows; what does not fit the schema has code 0."""
    read = Reading(open_table(table), schema)
    return sketch_of_codes((batch.columns for batch in read.batches()), schema, key)


def sketch_of_codes(batches: Iterable[Mapping[str, Codes]], schema: Schema, key: bytes) -> Sketch:
    """Sketch coded rows.

    The lowest hashes are kept with how often they occur. A hash that was once left out is never low enough again, so
    the counts of those that are left are exact.
    """
    kept, times, threshold = np.zeros(0, np.uint64), np.zeros(0, np.int64), EVERY
    for columns in batches:
        low = _hashed(columns, key)
        low, often = np.unique(low[low <= np.uint64(threshold)], return_counts=True)
        every, where = np.unique(np.concatenate((kept, low)), return_inverse=True)
        times = np.bincount(where, weights=np.concatenate((times, often)), minlength=len(every)).astype(np.int64)
        kept = every
        if len(kept) > KEPT:
            kept, times = kept[:KEPT], times[:KEPT]
            threshold = int(kept[-1])
    return Sketch(schema, key, threshold, kept[times == 1])


def _hashed(columns: Mapping[str, Codes], key: bytes) -> Hashes:
    """Hash rows: a sum of codes times odd numbers that follow from the key, the bits mixed as in SplitMix64."""
    names = sorted(columns)
    rows = len(columns[names[0]]) if names else 0
    total = np.full(rows, _number(key, ""), np.uint64)
    for name in names:
        total += _mixed(columns[name].astype(np.uint64) + np.uint64(_number(key, name))) * np.uint64(
            _number(key, name, "odd") | 1
        )
    return _mixed(total)


def _number(key: bytes, *words: str) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(words).encode(), key=key[:64], digest_size=8).digest())


def _mixed(words: Hashes) -> Hashes:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def published_only(schema: Schema) -> Schema:
    """The columns that are coded: identifiers are not."""
    return schema.only(list(variables_of(schema)))
