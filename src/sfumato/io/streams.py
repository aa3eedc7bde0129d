"""What a table is to the rest: named columns that stream, a few at a time, in batches of Arrow records.

It stands apart because every kind of source makes one, and none needs to know the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sfumato.errors import TableError

BATCH_ROWS = 64 * 2048

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Table:
    """Named columns that can be read, a few at a time and, unless they are a stream, as often as needed."""

    columns: list[str]
    _read: Read = field(repr=False)
    sql: str | None = field(default=None, repr=False)
    """what DuckDB may select from instead, to the same effect, if it can"""
    failure: Callable[[BaseException], TableError] | None = field(default=None, repr=False)
    """what is said if DuckDB fails to"""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the given columns, and only them, in their given order."""
        absent = [name for name in columns if name not in self.columns]
        if absent or not columns:
            raise TableError(f"columns ({some(absent)}) must be columns of the table", f"It has {some(self.columns)}.")
        return self._read(columns)

    def while_at_most(self, rows: int) -> Table:
        """Give the same table, whose reading ends with `LongerTable` where it has more rows."""

        def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            left = rows
            for batch in self._read(columns):
                left -= batch.num_rows
                if left < 0:
                    raise LongerTable
                yield batch

        return replace(self, _read=read)


class LongerTable(Exception):  # noqa: N818 (no error: a table may be long)
    """A table has more rows than were wanted."""


def refuse_repeated(columns: Sequence[Any]) -> None:
    """Refuse names that stand twice, by place: in a file without a header they would be values."""
    times = Counter(columns)
    repeated = [str(place) for place, name in enumerate(columns, 1) if times[name] > 1]
    if repeated:
        raise TableError(f"columns {some(repeated)} must have distinct names, and do not", "Rename all but one.")


def some(names: Sequence[str]) -> str:
    """List names, not too many."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
