"""Tables of every common kind as named columns that stream in batches of Arrow records.

It stands apart because it alone knows files, frames and DuckDB; and because what those libraries say about a bad row
holds the row, it alone may hear it, and repeats nothing of it but the number of the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb
import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import TableError
from sfumato.guard import Found, guarded, unreadable
from sfumato.io.wording import NESTED_TEXT, text_of

BATCH_ROWS = 64 * 2048
LONGEST_HEADER = 2**20
DELIMITERS = ",;\t|"
KINDS = ".csv, .tsv, .json, .jsonl or .ndjson (each also .gz), or .parquet"
LOOSE_TYPES = (nw.Object, nw.Unknown, nw.Int128, nw.UInt128)
LINE = re.compile(r"^[^\n]*CSV Error on Line: (\d+)")

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Table:
    """Named columns that can be read, a few at a time and as often as needed."""

    columns: list[str]
    _read: Read = field(repr=False)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the given columns, and only them, in their given order."""
        absent = [name for name in columns if name not in self.columns]
        if absent or not columns:
            raise TableError(
                f"columns ({_some(absent)}) must be columns of the table", f"It has {_some(self.columns)}."
            )
        return self._read(columns)


def open_table(source: Any) -> Table:
    """Open a CSV, TSV, Parquet or JSON file, or a pandas, Polars, Arrow or other frame that Narwhals knows."""
    table = _open_file(Path(source).expanduser()) if isinstance(source, str | Path) else _open_frame(source)
    _refuse_repeated(table.columns)
    return table


def _refuse_repeated(columns: Sequence[str]) -> None:
    """Refuse names that stand twice, by place: in a file without a header they would be values."""
    times = Counter(columns)
    repeated = [str(place) for place, name in enumerate(columns, 1) if times[name] > 1]
    if repeated:
        raise TableError(f"columns {_some(repeated)} must have distinct names, and do not", "Rename all but one.")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _open_file(path: Path) -> Table:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    opener = _OPENERS.get(kind)
    if opener is None or (packed and kind == ".parquet"):
        raise TableError(f"file {path} must end in {KINDS}", "Rename or convert it.")
    if not path.exists():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")
    if not path.is_file():
        raise TableError(f"file {path} must be a file, and is none", "Name one file, not a folder.")
    if path.stat().st_size == 0:
        raise TableError(f"file {path} must not be empty", "Check that it was written to its end.")
    return opener(path.resolve(), kind, packed)


def _open_delimited(path: Path, kind: str, packed: bool) -> Table:
    names, delimiter = _attempt(path, lambda: _header(path, packed, "\t" if kind == ".tsv" else DELIMITERS))
    _refuse_repeated(names)
    inner = {name: f"c{place}" for place, name in enumerate(names)}
    types = ", ".join(f"{alias}: 'VARCHAR'" for alias in inner.values())
    compression = "gzip" if packed else "none"
    source = (
        f"read_csv({_file(path)}, auto_detect=false, header=true, delim='{delimiter}', quote='\"', escape='\"', "
        f"compression='{compression}', hive_partitioning=false, columns={{{types}}})"
    )
    return Table(names, lambda columns: _stream(path, source, columns, [inner[name] for name in columns]))


def _header(path: Path, packed: bool, delimiters: str) -> tuple[list[str], str]:
    """Read the names of the columns and the delimiter from the first line."""
    with cast(BinaryIO, gzip.open(path) if packed else path.open("rb")) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8-sig", errors="surrogateescape", newline="")
        first = text.readline(LONGEST_HEADER)
        outside_quotes = re.sub(r'"[^"]*"?', "", first)
        delimiter = max(delimiters, key=outside_quotes.count)
        text.seek(0)
        lines = iter(lambda: text.readline(LONGEST_HEADER), "")
        names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    if re.search("[\0\udc80-\udcff]", first):
        raise _not_text(path)
    if not names or len(first) >= LONGEST_HEADER:
        raise TableError(f"the first line of {path} must name the columns", "Add a header line.")
    return [name.strip() or f"column_{place}" for place, name in enumerate(names, start=1)], delimiter


def _not_text(path: Path, where: str = "") -> TableError:
    return TableError(f"file {path} must be UTF-8 text{where}", "Save it again as UTF-8.")


def _open_parquet(path: Path, _kind: str, _packed: bool) -> Table:
    names = [str(name) for name in _attempt(path, lambda: pq.read_schema(path).names)]
    _refuse_repeated(names)
    _refuse_case_clash(path, names)
    source = f"read_parquet({_file(path)}, hive_partitioning=false)"
    return Table(names, lambda columns: _stream(path, source, columns, [_name(name) for name in columns]))


def _open_json(path: Path, kind: str, packed: bool) -> Table:
    """Read every value as the text of that very value: a type guessed from all rows would let one change the others."""
    options = (
        f"{_file(path)}, format='{'auto' if kind == '.json' else 'newline_delimited'}', "
        f"compression='{'gzip' if packed else 'none'}', hive_partitioning=false"
    )
    names = _attempt(path, lambda: _json_names(options))
    if not names:
        raise TableError(f"file {path} must hold records with named fields, and has none", "Give it one record.")
    _refuse_case_clash(path, names)
    listed = ", ".join(f"{_name(name)}: 'JSON'" for name in names)
    source = f"read_json({options}, records=true, columns={{{listed}}})"
    return Table(names, lambda columns: _stream(path, source, columns, [_json_text(_name(name)) for name in columns]))


def _json_names(options: str) -> list[str]:
    """List the names of all fields in the order in which they first occur."""
    numbered = f"SELECT json_keys(json) AS names, row_number() OVER () AS row FROM read_json_objects({options})"
    with _connect() as connection:
        found = connection.sql(f"SELECT names FROM ({numbered}) GROUP BY names ORDER BY min(row)").fetchall()
    return list(dict.fromkeys(name for (names,) in found for name in names))


def _json_text(column: str) -> str:
    """Take texts out of their quotes; leave numbers and booleans as they are written; mark what is nested."""
    kind, nested = f"json_type({column})", _literal(NESTED_TEXT)
    return (
        f"CASE WHEN {kind} = 'VARCHAR' THEN {column}->>'$' WHEN {kind} IN ('OBJECT', 'ARRAY') THEN {nested} "
        f"ELSE {column}::VARCHAR END"
    )


def _refuse_case_clash(path: Path, names: Sequence[str]) -> None:
    """Refuse names that DuckDB, which does not see case, would confuse."""
    if len({name.lower() for name in names}) < len(set(names)):
        raise TableError(f"column names of {path} must differ in more than case", "Rename some of them.")


_OPENERS: dict[str, Callable[[Path, str, bool], Table]] = {
    ".csv": _open_delimited,
    ".tsv": _open_delimited,
    ".parquet": _open_parquet,
    ".json": _open_json,
    ".jsonl": _open_json,
    ".ndjson": _open_json,
}


def _file(path: Path) -> str:
    """Write a path so that DuckDB reads this very file: quotes doubled, no glob."""
    return _literal(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _connect() -> duckdb.DuckDBPyConnection:
    """Open DuckDB; standard output is ours, so it must not draw its bar there when a file is large."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET enable_progress_bar = false")
    return connection


def _stream(path: Path, source: str, columns: Sequence[str], inner: Sequence[str]) -> Iterator[pa.RecordBatch]:
    query = f"SELECT {', '.join(inner)} FROM {source}"
    with _connect() as connection:
        reader = _attempt(path, lambda: _reader(connection.sql(query)))
        while (batch := _attempt(path, lambda: next(reader, None))) is not None:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))


def _reader(relation: Any) -> Iterator[pa.RecordBatch]:
    """Stream a relation; the method has another name before DuckDB 2."""
    arrow_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return iter(arrow_reader(BATCH_ROWS))


def _attempt(path: Path, action: Callable[[], Found]) -> Found:
    """Do something with a file, or say in our words what went wrong."""
    return guarded(action, lambda error: _failure(path, str(error)))


def _failure(path: Path, told: str) -> TableError:
    line = LINE.search(told)
    where = f" (line {line[1]})" if line else ""
    if "not utf-8" in told.lower() or "invalid unicode" in told.lower():
        return _not_text(path, where)
    if "Expected Number of Columns" in told:
        return TableError(f"every line of {path} must have as many fields as its header{where}", "Correct the line.")
    if "unterminated quote" in told:
        return TableError(
            f"every quoted field of {path} must be closed{where}", "Correct the quotes; double them inside."
        )
    return TableError(f"file {path} must be well-formed and readable{where}", "Check its format, or write it again.")


def _open_frame(source: Any) -> Table:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    frame = _frame(source)
    columns = list(frame.columns)
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TableError("a frame must have columns, and their names must be text", "Rename them.")
    return Table(columns, lambda names: _slices(frame, names))


def _frame(source: Any) -> nw.DataFrame[Any]:
    """Wrap a frame, computing a lazy one."""

    def wrap() -> nw.DataFrame[Any]:
        frame = nw.from_native(source)
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame

    def failure(error: BaseException) -> TableError:
        if isinstance(error, TypeError):
            return TableError(
                f"source ({type(source).__name__}) must be a path or a frame",
                f"Give a file that ends in {KINDS}, or a pandas, Polars or Arrow table.",
            )
        if "Duplicate" in type(error).__name__:
            return TableError("columns of a frame must have distinct names, and do not", "Rename all but one.")
        return TableError("a lazy frame must be computable, and failed", "Collect it yourself to see why.")

    return guarded(wrap, failure)


def _slices(frame: nw.DataFrame[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(len(frame), 1), BATCH_ROWS):
        yield pa.RecordBatch.from_arrays(
            [_arrow(frame[name][start : start + BATCH_ROWS], name) for name in names], names=list(names)
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
