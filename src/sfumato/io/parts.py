"""Parquet: one file, a folder of them, or all that a pattern names, as one table.

Parts must have the same columns of the same types: if they had not, what one file holds would decide how the values of
another are read.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import TableError
from sfumato.io import duck
from sfumato.io.streams import Table, refuse_repeated

MAGIC = "*?["


def is_pattern(text: str) -> bool:
    """Tell whether a text names files by a pattern; a file of that very name goes before."""
    return any(mark in text for mark in MAGIC) and not Path(text).exists()


def is_parquet(source: str | Path) -> bool:
    """Tell Parquet files, a folder or a pattern of them, from other files."""
    return Path(source).is_dir() or is_pattern(str(source)) or Path(source).suffix.lower() == ".parquet"


def fixed_folder(pattern: str) -> Path:
    """Give the folder in which a pattern begins to vary: to whom its ledger belongs.

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
    """List the files of a pattern or a folder, or the one file; refuse what is not there or not to be read."""
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
    """Name each file once, however many links lead to it: a record that is read twice counts twice.

    A file system that gives files no numbers has no hard links; there the path tells.
    """
    once: dict[object, Path] = {}
    for file in files:
        real, known = file.resolve(), file.stat()
        once.setdefault((known.st_dev, known.st_ino) if known.st_ino else real, real)
    return list(once.values())


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(piece.startswith((".", "_")) for piece in file.relative_to(folder).parts)


def open_parquet(source: str | Path) -> Table:
    """Open the table that all these files make."""
    files = parquet_files(source)
    names = columns_of(files)
    refuse_repeated(names)
    duck.refuse_case_clash(source, names)
    return duck.table(source, scan(files), {name: duck.quoted(name) for name in names})


def scan(files: Sequence[Path]) -> str:
    """Write for DuckDB that these very files are read."""
    return f"read_parquet([{', '.join(map(duck.file_literal, files))}], hive_partitioning=false)"


def columns_of(files: Sequence[Path]) -> list[str]:
    """Read what every file says about its columns, which must be the same."""
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
    """Give names and types; whether a file lists its texts in a dictionary says nothing about them."""
    schema = duck.attempt(file, lambda: pq.read_schema(file))
    return [(str(one.name), _plain(one.type)) for one in schema]


def _plain(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind).removeprefix("large_")
