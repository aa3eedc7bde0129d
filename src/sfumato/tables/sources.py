"""Open a table of any common kind: files, folders and patterns, databases, queries, frames.

Files of text (CSV, TSV, JSON) are opened here; other modules open the rest.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as arrow_csv

from sfumato.errors import TableError
from sfumato.tables import streams
from sfumato.tables.databases import Query, is_database, open_database, open_query
from sfumato.tables.frames import open_frame
from sfumato.tables.microdata import READERS, is_statistics, is_workbook, open_statistics, open_workbook
from sfumato.tables.streams import Table, is_pattern, open_parquet, refuse_repeated
from sfumato.tables.values import NESTED_TEXT

LONGEST_HEADER = 2**20
"""The first line of a file has fewer characters."""
DELIMITERS = ",;\t|"
KINDS = f".csv, .tsv, .json, .jsonl or .ndjson (each also .gz), .parquet, {', '.join(READERS)} or .xlsx"
"""The endings of files that can be read, as errors list them."""


def open_table(source: Any) -> Table:
    """Open a table.

    It may be a CSV, TSV, Parquet or JSON file, one of SPSS, Stata, SAS or Excel, a folder or a pattern of Parquet
    files, `file.duckdb::table`, a query, or a frame: pandas, Polars, Arrow, DuckDB, Spark or another that Narwhals
    knows.
    """
    table = _opened(source)
    refuse_repeated(table.columns)
    return table


def _opened(source: Any) -> Table:
    if isinstance(source, Query):
        return open_query(source)
    if isinstance(source, Encoded):
        return open_encoded(source)
    if not isinstance(source, str | Path):
        return open_frame(source, KINDS)
    path = Path(os.path.expanduser(source))
    if is_database(path):
        return open_database(path)
    if is_workbook(path):
        return open_workbook(path)
    if is_statistics(path):
        return open_statistics(path)
    return open_parquet(path) if is_pattern(str(path)) or path.is_dir() else _open_file(path)


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
        raise TableError(f"file {path} must be a file, and is none", "Name one file, or a folder of Parquet files.")
    if path.stat().st_size == 0:
        raise TableError(f"file {path} must not be empty", "Check that it was written to its end.")
    return opener(path.resolve(), kind, packed)


@dataclass(frozen=True)
class Encoded:
    """A file of text that is not UTF-8."""

    path: Path
    encoding: str


def _open_delimited(path: Path, kind: str, packed: bool) -> Table:
    if not packed and _begins_with(path, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return open_encoded(Encoded(path, "utf-16"))
    names, delimiter = streams.attempt(path, lambda: _header(path, packed, _delimiters(kind)))
    inner = {name: f"c{place}" for place, name in enumerate(names)}
    types = ", ".join(f"{alias}: 'VARCHAR'" for alias in inner.values())
    compression = "gzip" if packed else "none"
    source = (
        f"read_csv({streams.file_literal(path)}, auto_detect=false, header=true, delim='{delimiter}', quote='\"', "
        f"escape='\"', compression='{compression}', hive_partitioning=false, columns={{{types}}})"
    )
    return replace(streams.table(path, source, inner), named_by="its first row")


def _delimiters(kind: str) -> str:
    return "\t" if kind == ".tsv" else DELIMITERS


def _begins_with(path: Path, *marks: bytes) -> bool:
    with path.open("rb") as handle:
        return handle.read(2).startswith(marks)


def open_encoded(source: Encoded) -> Table:
    """Open a CSV or TSV file of another encoding, by Arrow, which reads all of them."""
    path = source.path
    try:
        codecs.lookup(source.encoding)
    except LookupError:
        raise TableError(
            f"encoding ({source.encoding[:40]}) must be one that Python knows", "Use cp1252, latin-1 or utf-16."
        ) from None
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        raise TableError(f"file {path} must be an unpacked CSV or TSV file to be read in an encoding", "Leave it out.")
    kind = path.suffix.lower()
    names, delimiter = streams.attempt(path, lambda: _header(path, False, _delimiters(kind), source.encoding))

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches = streams.attempt(path, lambda: _encoded_batches(source, names, delimiter, columns))
        while (batch := streams.attempt(path, lambda: next(batches, None))) is not None:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))

    return Table(names, read, "its first row")


def _encoded_batches(source: Encoded, names: list[str], delimiter: str, columns: Sequence[str]) -> Any:
    return arrow_csv.open_csv(
        source.path,
        arrow_csv.ReadOptions(encoding=source.encoding, column_names=names, skip_rows=1),
        arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=list(columns),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _header(path: Path, packed: bool, delimiters: str, encoding: str = "utf-8-sig") -> tuple[list[str], str]:
    """The names of the columns and the delimiter, from the first line; repeated names are refused."""
    with cast(BinaryIO, gzip.open(path) if packed else path.open("rb")) as handle:
        text = io.TextIOWrapper(handle, encoding=encoding, errors="surrogateescape", newline="")
        first = text.readline(LONGEST_HEADER)
        outside_quotes = re.sub(r'"[^"]*"?', "", first)
        delimiter = max(delimiters, key=outside_quotes.count)
        text.seek(0)
        lines = csv.reader(iter(lambda: text.readline(LONGEST_HEADER), ""), delimiter=delimiter, strict=True)
        names = next(lines, [])
        try:
            second = next(lines, [])
        except (csv.Error, UnicodeError):
            second = []
    if re.search("[\0\udc80-\udcff]", first):
        raise streams.not_text(path)
    if not names or len(first) >= LONGEST_HEADER:
        raise TableError(f"the first line of {path} must name the columns", "Add a header line.")
    names = [name.strip() or f"column_{place}" for place, name in enumerate(names, start=1)]
    refuse_repeated(names, named=streams.is_header(names, second))
    return names, delimiter


def _open_json(path: Path, kind: str, packed: bool) -> Table:
    """Read every value as its own text: a type guessed from all rows would let one row change how others are read.

    The columns are those that are asked for, that is, the schema's; the names of all fields are for drafts.
    """
    options = (
        f"{streams.file_literal(path)}, format='{'auto' if kind == '.json' else 'newline_delimited'}', "
        f"compression='{'gzip' if packed else 'none'}', hive_partitioning=false"
    )
    if not packed and _begins_with(path, b"\0"):
        raise streams.not_text(path)
    names = streams.attempt(path, lambda: _json_names(options))

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        streams.refuse_case_clash(path, columns)
        listed = ", ".join(f"{streams.quoted(name)}: 'JSON'" for name in columns)
        source = f"read_json({options}, records=true, columns={{{listed}}})"
        return streams.stream(path, source, columns, [_json_text(streams.quoted(name)) for name in columns])

    return Table(names, read, "its records")


def _json_names(options: str) -> list[str]:
    """The names of all fields, in the order in which they first occur."""
    numbered = f"SELECT json_keys(json) AS names, row_number() OVER () AS row FROM read_json_objects({options})"
    with streams.connect() as connection:
        found = connection.sql(f"SELECT names FROM ({numbered}) GROUP BY names ORDER BY min(row)").fetchall()
    return list(dict.fromkeys(name for (names,) in found for name in names))


def _json_text(column: str) -> str:
    """SQL for a value's text: strings without quotes, numbers and booleans as written, a mark for what is nested."""
    kind, nested = f"json_type({column})", streams.literal(NESTED_TEXT)
    return (
        f"CASE WHEN {kind} = 'VARCHAR' THEN {column}->>'$' WHEN {kind} IN ('OBJECT', 'ARRAY') THEN {nested} "
        f"ELSE {column}::VARCHAR END"
    )


_OPENERS: dict[str, Callable[[Path, str, bool], Table]] = {
    ".csv": _open_delimited,
    ".tsv": _open_delimited,
    ".parquet": lambda path, _kind, _packed: open_parquet(path),
    ".json": _open_json,
    ".jsonl": _open_json,
    ".ndjson": _open_json,
}
