"""A `Table`: named columns that stream, a few at a time, in batches of Arrow records; from Parquet, and by DuckDB.

Parquet is one file, a folder of them, or all that a pattern names, as one table. The files must have the same columns
of the same types: otherwise what one file holds would decide how the values of another are read.

DuckDB reads files and databases. Its messages about a bad row hold the row, so nothing of them is passed on but the
number of the line.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import Found, TableError, guarded, too_large

BATCH_ROWS = 32 * 2048
"""How many rows a batch has at most."""
BATCH_VALUES = 2**24
"""About how many values a batch has at most."""

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Streams the named columns."""


@dataclass(frozen=True)
class Table:
    """Named columns that can be read, a few at a time and, unless they are a stream, as often as needed."""

    columns: list[str]
    _read: Read = field(repr=False)
    named_by: Literal["the table", "its first row", "its records"] = field(default="the table", repr=False)
    """what names the columns: where it is a row or records, a name may be a person's"""

    def lacks(self, columns: Sequence[str]) -> list[str]:
        """The columns that it does not have. Records have any: what a record does not name is missing there, or else
        one record more would decide whether all others can be read.
        """
        return [] if self.named_by == "its records" else [name for name in columns if name not in self.columns]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream these columns, in this order, and no others."""
        if not columns and self.named_by == "its records":
            raise TableError("a table must hold records with named fields, and has none", "Give it one record.")
        absent = self.lacks(columns)
        if absent or not columns:
            raise TableError(f"columns ({some(absent)}) must be columns of the table", f"It has {some(self.columns)}.")
        return self._read(columns)


def refuse_repeated(columns: Sequence[Any], *, named: bool = True) -> None:
    """Refuse repeated names, telling them and their places.

    Unless it is sure that they are names: in a file without a header they would be values, and places alone are told.
    """
    repeated = [name for name, times in Counter(columns).items() if times > 1]
    places = {name: [str(place) for place, other in enumerate(columns, 1) if other == name] for name in repeated}
    if not repeated:
        return
    if named:
        listed = some([f"{', '.join(places[name])} ({str(name)[:40]})" for name in repeated])
    else:
        listed = some(sorted((one for every in places.values() for one in every), key=int))
    raise TableError(f"columns {listed} must have distinct names, and do not", "Rename all but one.")


def is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the first line of a file surely names columns: no number or day in it, but some in the line below.

    >>> is_header(["age", "sex"], ["17", "F"]), is_header(["17", "F"], ["18", "M"]), is_header(["a", "F"], ["b", "M"])
    (True, False, False)
    """
    return not any(map(FIGURES.match, first)) and any(map(FIGURES.match, second))


FIGURES = re.compile(r"\s*[-+$€£(]*[0-9]")
"""How numbers and days begin."""


def some(names: Sequence[str]) -> str:
    """The first names of a list, as text."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


MAGIC = "*?["
"""The marks of a pattern."""


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern of files, unless a file of that very name exists."""
    return any(mark in text for mark in MAGIC) and not Path(text).exists()


def is_parquet(source: str | Path) -> bool:
    """Whether a source is a Parquet file, or a folder or a pattern of them."""
    return Path(source).is_dir() or is_pattern(str(source)) or Path(source).suffix.lower() == ".parquet"


def fixed_folder(pattern: str) -> Path:
    """The folder in which a pattern begins to vary, to which its ledger belongs.

    >>> str(fixed_folder("data/parts/year=*/*.parquet"))
    'data/parts'
    """
    fixed: list[str] = []
    for piece in Path(pattern).parts[:-1]:
        if any(mark in piece for mark in MAGIC):
            break
        fixed.append(piece)
    return Path(*fixed)


def parquet_files(source: str | Path) -> list[Path]:
    """The files of a pattern or a folder, or the one file; refuse what does not exist or is not Parquet."""
    path = Path(os.path.expanduser(source))
    if is_pattern(str(path)):
        files = sorted(Path(one) for one in glob.glob(str(path), recursive=True) if Path(one).is_file())
        if not files:
            raise TableError(f"pattern ({source}) must match a file", "Put it in quotes, and check the folder.")
    elif path.is_dir():
        files = sorted(one for one in path.rglob("*.parquet") if one.is_file() and not _is_hidden(one, path))
        if not files:
            raise TableError(f"folder {source} must hold a Parquet file, and has none", "Check its name.")
    elif not path.is_file():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")
    else:
        files = [path]
    other = [one for one in files if one.suffix.lower() != ".parquet"]
    if other:
        raise TableError(f"every part must be a Parquet file, and {other[0]} is none", "Narrow the pattern.")
    empty = [one for one in files if one.stat().st_size == 0]
    if empty:
        raise TableError(f"file {empty[0]} must not be empty", "Check that it was written to its end.")
    return _once(files)


def _once(files: Sequence[Path]) -> list[Path]:
    """Each file once, however many links lead to it: a record that is read twice would count twice.

    A file system that gives files no numbers has no hard links; there the path decides.
    """
    once: dict[object, Path] = {}
    for file in files:
        real, known = file.resolve(), file.stat()
        once.setdefault((known.st_dev, known.st_ino) if known.st_ino else real, real)
    return list(once.values())


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(piece.startswith((".", "_")) for piece in file.relative_to(folder).parts)


def open_parquet(source: str | Path) -> Table:
    """Open all files of a source as one table."""
    files = parquet_files(source)
    names = columns_of(files)
    refuse_repeated(names)
    refuse_case_clash(source, names)
    return table(source, scan(files), {name: quoted(name) for name in names})


def scan(files: Sequence[Path]) -> str:
    """SQL that reads exactly these files."""
    return f"read_parquet([{', '.join(map(file_literal, files))}], hive_partitioning=false)"


def columns_of(files: Sequence[Path]) -> list[str]:
    """The names of the columns; refuse files whose columns or types differ."""
    first = _kinds(files[0])
    for file in files[1:]:
        if (kinds := _kinds(file)) != first:
            odd = [name for name, _ in {*kinds} ^ {*first}]
            about = f"column {min(odd)}" if odd else "the order of its columns"
            raise TableError(
                f"every Parquet file must have the same columns of the same types, and {file} has not ({about})",
                "Write the files anew with one schema, or publish those that agree.",
            )
    return [name for name, _ in first]


def _kinds(file: Path) -> list[tuple[str, str]]:
    """Names and types of a file's columns; a dictionary of texts has the type of texts."""
    schema = attempt(file, lambda: pq.read_schema(file))
    return [(str(one.name), _plain(one.type)) for one in schema]


def _plain(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind).removeprefix("large_")


Connection: TypeAlias = Any
"""A connection of DuckDB, which has no type hints."""
Connect = Callable[[], Connection]

ROW_BY_ROW = "statistics_propagation,filter_pushdown"
"""Optimizations that DuckDB must not make, so that how a row is read depends on that row alone.

Writers of Parquet leave NaN out of the least and the largest value that they note for a part of a file. DuckDB would
find that no value there is NaN, or that none is beyond a bound, and one record more would move all that are NaN.
"""
CORRECT = "Correct the line; if fields hold line breaks, a file of more than 30 MB must be Parquet."
"""The remedy for a bad line: DuckDB reads a long file in pieces, and does not always find where a line begins."""
LINE = re.compile(r"^[^\n]*CSV Error on Line: (\d+)")
"""Where DuckDB says which line is bad."""


def connect(database: Path | None = None) -> Connection:
    """Open DuckDB without a database, or with one to read only; it can load nothing from the network.

    It must not draw its progress bar, because standard output is ours.
    """
    path = ":memory:" if database is None else str(database)
    connection = duckdb.connect(path, read_only=database is not None, config={"autoinstall_known_extensions": "false"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET disabled_optimizers = '{ROW_BY_ROW}'")
    return connection


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(text: str) -> str:
    """A name as SQL."""
    return '"' + text.replace('"', '""') + '"'


def file_literal(path: Path) -> str:
    """A path as SQL for exactly this file: quotes are doubled, and nothing is a pattern."""
    return literal(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def table(what: object, source: str, inner: Mapping[str, str]) -> Table:
    """The table of expressions, by name, over a source that any connection can select from."""
    return Table(list(inner), lambda columns: stream(what, source, columns, [inner[name] for name in columns]))


def stream(
    what: object, source: str, columns: Sequence[str], inner: Sequence[str], opened: Connect = connect
) -> Iterator[pa.RecordBatch]:
    """Stream expressions over a source, named as columns."""
    query = f"SELECT {', '.join(inner)} FROM {source}"
    with attempt(what, opened) as connection:
        reader = attempt(what, lambda: iter(reader_of(connection.sql(query))))
        while (batch := attempt(what, lambda: next(reader, None))) is not None:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))


def reader_of(relation: Any) -> pa.RecordBatchReader:
    """The stream of a relation; the method has another name before DuckDB 2."""
    arrow_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader: pa.RecordBatchReader = arrow_reader(batch_rows(len(relation.columns)))
    return reader


def batch_rows(columns: int) -> int:
    """How many rows a batch of so many columns has: fewer where there are very many, so that memory is bounded.

    >>> batch_rows(20), batch_rows(1000)
    (65536, 16384)
    """
    return min(BATCH_ROWS, max(BATCH_VALUES // columns // 2048, 1) * 2048)


def attempt(what: object, action: Callable[[], Found]) -> Found:
    """Do something with a file; if it fails, raise an error of ours that tells nothing of the rows."""

    def failure(error: BaseException) -> TableError:
        if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
            return too_large(error)
        return _failure(what, str(error))

    return guarded(action, failure)


def not_text(what: object, where: str = "") -> TableError:
    """The error for a file that is no text."""
    return TableError(
        f"file {what} must be UTF-8 text{where}", "Save it again as UTF-8, or say what it is with --encoding."
    )


def refuse_case_clash(what: object, names: Sequence[str]) -> None:
    """Refuse names that differ in case only, which DuckDB would confuse."""
    if len({name.lower() for name in names}) < len(set(names)):
        raise TableError(f"column names of {what} must differ in more than case", "Rename some of them.")


def _failure(what: object, told: str) -> TableError:
    line = LINE.search(told)
    where = f" (line {line[1]})" if line else ""
    if "not utf-8" in told.lower() or "invalid unicode" in told.lower():
        return not_text(what, where)
    if "Expected Number of Columns" in told:
        return TableError(f"every line of {what} must have as many fields as its header{where}", CORRECT)
    if "unterminated quote" in told:
        return TableError(
            f"every quoted field of {what} must be closed{where}", f"Double quotes inside quotes. {CORRECT}"
        )
    return TableError(f"file {what} must be well-formed and readable{where}", "Check its format, or write it again.")
