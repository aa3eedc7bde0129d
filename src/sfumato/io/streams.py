"""What a table is to the rest: named columns that stream, a few at a time, in batches of Arrow records.

It stands apart because every kind of source makes one, and none needs to know the others.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sfumato.errors import TableError
from sfumato.guard import unreadable

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

    def arrow(self, columns: Sequence[str]) -> Any:
        """Give the columns as a stream that other libraries take."""
        batches = self.batches(columns)
        first = next(batches, None)
        if first is None:
            return pa.table({name: pa.array([], pa.string()) for name in columns}).to_reader()
        later = (_of_types(first.schema, batch) for batch in batches)
        return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], later))


def _of_types(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Let the texts of a batch be of the kind that the batches before had; columns of another type are refused."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for column, wanted in zip(batch.columns, schema, strict=True):
        if column.type != wanted.type and not (is_plain_text(column.type) and is_plain_text(wanted.type)):
            raise unreadable(wanted.name)(TypeError())
        columns.append(column.cast(wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_plain_text(kind: pa.DataType) -> bool:
    """Tell texts, of any size, from all else."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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
