"""One run of a comparison: the rows to learn from are published with a known seed, and the release is measured.

Nothing is debited from the table's own account: no release leaves the run, only measures for the holder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.compare.contest import Contest, digest_of
from sfumato.compare.measuring import levels_of, values_of
from sfumato.errors import SfumatoError, TableError
from sfumato.evaluate.classification import Codes
from sfumato.evaluate.cost import Cost, cost_of
from sfumato.evaluate.lessons import Trial
from sfumato.evaluate.runs import Key, Outcome
from sfumato.evaluate.splits import splits
from sfumato.io.encode import encode
from sfumato.io.tables import open_table
from sfumato.methods import Method
from sfumato.methods.parameters import plain_parameters
from sfumato.schema import Schema
from sfumato.seeded import seeded_release
from sfumato.syntactic import SyntacticMethod


@dataclass(frozen=True, eq=False)
class Bench:
    """What every run is given beside its key."""

    table: Any
    schema: Schema
    methods: tuple[Method | SyntacticMethod, ...]

    @classmethod
    def of(cls, contest: Contest) -> Bench:
        """Take what the runs of a contest need."""
        return cls(contest.table, contest.schema, tuple(one.method for one in contest.contestants))

    def method(self, key: Key) -> Method | SyntacticMethod:
        """Find the method that a key means."""
        return next(
            one for one in self.methods if one.name == key["what"] and plain_parameters(one) == key["parameters"]
        )


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that was read: its rows as they are, and coded."""

    known_by: tuple[str, str]
    """the digests of its coded rows and of the schema"""
    rows: pa.Table
    codes: Codes


_LAST: list[Opened] = []
"""The table that this process read last: the next run is of the same."""


def measured(bench: Bench, key: Key) -> Outcome:
    """Do a run: give values by name, or by level and name for the raw rows; or why the method refuses."""
    opened = _opened(bench, (key["table"], key["schema"]))
    parts = splits(key["protocol"], opened.rows.num_rows, 0)
    seed, part = divmod(key["run"], len(parts))
    learnt, tested = splits(key["protocol"], opened.rows.num_rows, seed)[part]
    trial = Trial(*({name: codes[chosen] for name, codes in opened.codes.items()} for chosen in (learnt, tested)))
    if key["what"] == "raw data":
        return {"levels": levels_of(bench.schema, trial, key["measures"], key["run"])}
    rows, method = opened.rows.take(learnt), bench.method(key)
    try:
        release, cost = cost_of(lambda: seeded_release(rows, bench.schema, method, key["epsilon"], key["run"]))
    except SfumatoError as error:
        return {"refused": error.problem}
    values = values_of(release, trial, key["measures"], key["run"])
    return {"values": values | (_cost(cost) if "cost" in key["measures"] else {})}


def _cost(cost: Cost) -> dict[str, float]:
    known = {"processor seconds": cost.processor_seconds, "seconds": cost.seconds, "peak MB": cost.peak_megabytes}
    return {name: value for name, value in known.items() if value is not None}


def _opened(bench: Bench, known_by: tuple[str, str]) -> Opened:
    """Read the table, unless it was read for the run before; refuse one that is no longer what was compared."""
    if not (_LAST and _LAST[0].known_by == known_by):
        table = open_table(bench.table)
        coded = encode(table, bench.schema)
        if digest_of(coded) != known_by[0]:
            raise TableError("a table must not change while methods are compared on it", "Start again.")
        _LAST[:] = [Opened(known_by, pa.Table.from_batches(list(table.batches(list(coded.columns)))), coded.columns)]
    return _LAST[0]
