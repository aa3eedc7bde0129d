"""Frames that are already in a program: pandas, Polars, Arrow, DuckDB relations, Spark.

What is in memory is read slice by slice where it lies; what is lazy is computed in batches, of the columns that are
needed alone. So of a frame no more than its codes is ever held twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from sfumato.errors import TableError
from sfumato.guard import guarded, unreadable
from sfumato.io import duck, streams
from sfumato.io.streams import Read, Table
from sfumato.io.wording import text_of

KNOWN = "a pandas, Polars, Arrow, DuckDB or Spark table"
LOOSE_TYPES = (nw.Object, nw.Unknown, nw.Int128, nw.UInt128)


def open_frame(source: Any, kinds: str) -> Table:
    """Open a frame; `kinds` says which files could have been given instead."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source)
    frame = _wrapped(source, kinds)
    columns = guarded(lambda: list(frame.collect_schema().names()), _uncomputable)
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TableError("a frame must have columns, and their names must be text", "Rename them.")
    return Table(columns, _reading(frame))


def is_spark(source: Any) -> bool:
    """Tell a Spark frame, classic or connected, without loading Spark."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "toLocalIterator")


def _wrapped(source: Any, kinds: str) -> Any:
    def failure(error: BaseException) -> TableError:
        if isinstance(error, TypeError):
            return TableError(
                f"source ({type(source).__name__}) must be a path or a frame",
                f"Give a file that ends in {kinds}, or {KNOWN}.",
            )
        if "Duplicate" in type(error).__name__:
            return TableError("columns of a frame must have distinct names, and do not", "Rename all but one.")
        return _uncomputable(error)

    return guarded(lambda: nw.from_native(source), failure)


def _uncomputable(_: BaseException) -> TableError:
    return TableError("a lazy frame must be computable, and failed", "Collect it yourself to see why.")


def _reading(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Read:
    """Choose how a frame is read, a few columns at a time."""
    if not isinstance(frame, nw.LazyFrame):
        return lambda names: _slices(frame, names)
    native, kind = nw.to_native(frame), frame.implementation
    if kind.is_duckdb():
        return lambda names: _computed(lambda: duck.reader_of(_chosen(native, names)), names)
    if is_spark(native):
        return lambda names: _computed(lambda: _spark_batches(native.select(*map(_backticked, names))), names)
    if hasattr(native, "collect_batches"):
        return lambda names: _parts(_polars_batches(native.select(list(names))), names)
    return lambda names: _parts((frame.select(list(names)).collect() for _ in range(1)), names)


def _chosen(relation: Any, names: Sequence[str]) -> Any:
    return relation.project(", ".join(duck.quoted(name) for name in names))


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    """Fetch a Spark frame partition by partition."""
    rows = frame.toLocalIterator(prefetchPartitions=True)
    while part := list(itertools.islice(rows, streams.BATCH_ROWS)):
        columns = [[text_of(value) for value in column] for column in zip(*part, strict=True)]
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.large_string()) for column in columns], frame.columns)


def _polars_batches(frame: Any) -> Iterator[Any]:
    """Compute a Polars frame batch by batch, by its streaming engine."""
    for batch in frame.collect_batches(chunk_size=streams.BATCH_ROWS, maintain_order=False):
        yield nw.from_native(batch, eager_only=True)


def _computed(begin: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream what something lazy gives, or say that it failed."""
    batches = guarded(begin, _uncomputable)
    while (batch := guarded(lambda: next(batches, None), _uncomputable)) is not None:
        yield pa.RecordBatch.from_arrays(batch.columns, names=list(names))


def _parts(steps: Iterator[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Compute frames one after the other and stream each."""
    while (part := guarded(lambda: next(steps, None), _uncomputable)) is not None:
        yield from _slices(part, names)


def _stream(reader: Any) -> Table:
    """Read a stream of Arrow batches, which passes by once."""
    used = iter([reader])

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if next(used, None) is None:
            raise TableError(
                "a stream of batches must be read once, and would have to be read again",
                "Give a table or a file or, if it is too large for memory, say that DuckDB is the engine.",
            )
        return _computed(lambda: (batch.select(list(names)) for batch in reader), names)

    columns = list(reader.schema.names)
    streams.refuse_repeated(columns)
    return Table(columns, read)


def _slices(frame: nw.DataFrame[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(len(frame), 1), streams.BATCH_ROWS):
        yield pa.RecordBatch.from_arrays(
            [_arrow(frame[name][start : start + streams.BATCH_ROWS], name) for name in names], names=list(names)
        )


def _arrow(series: nw.Series[Any], name: str) -> Any:
    """Convert one column: if its type is fixed by Arrow's, else value by value, each to the text that it would have."""
    return guarded(lambda: _by_value(series) if _is_loose(series) else _by_type(series), unreadable(name))


def _by_type(series: nw.Series[Any]) -> Any:
    try:
        array: Any = series.to_arrow()
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except Exception:  # a value or chunks that Arrow does not take; each is then read by itself, to the same effect
        return _by_value(series)


def _by_value(series: nw.Series[Any]) -> Any:
    return pa.array([text_of(value) for value in series.to_list()], pa.large_string())


def _is_loose(series: nw.Series[Any]) -> bool:
    """Tell whether values may be of any type, so that Arrow would choose one by looking at all of them.

    The frame's own type decides: what Narwhals says of a pandas object column is a guess from its first values.
    """
    native = series.to_native()
    categories = getattr(getattr(native, "cat", None), "categories", None)
    own_types = {str(getattr(native, "dtype", "")), str(getattr(categories, "dtype", ""))}
    return series.dtype in LOOSE_TYPES or "object" in own_types
