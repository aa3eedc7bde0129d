"""From the word a user types for a table to the table, its schema and its ledger, which lie beside it.

Words for the same rows must lead to the same ledger, or a lifetime budget could be spent twice: a pattern has that of
the folder in which it begins, a query or a view that of the table that it reads, a hard link that of its file. Parquet
files can also be some of the files of another table: where that one has a ledger, a person must say which of the two
pays.
"""

from __future__ import annotations

import contextlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato import datasets
from sfumato.errors import LedgerError, ReleaseError, SchemaError, TableError
from sfumato.schema.attributes import Categorical
from sfumato.schema.schema import Column, Schema
from sfumato.storage import replaced_file
from sfumato.tables.databases import MARK, Query, base_tables, is_database, own_name, parted, tables_of
from sfumato.tables.microdata import is_workbook, parted_workbook
from sfumato.tables.sources import Encoded
from sfumato.tables.streams import fixed_folder, is_parquet, is_pattern, parquet_files

BUNDLED = "adult"
"""The word for the table that comes with the package."""
SUFFIXES = re.compile(
    r"\.(csv|tsv|parquet|json|jsonl|ndjson|sav|zsav|por|dta|sas7bdat|xpt|xlsx|xls|xlsm|xlsb|ods)(\.gz)?$", re.IGNORECASE
)
"""The endings of a file that do not belong to its table's name."""
DEEPEST, MOST_LISTED = 3, 500
"""Tables are listed so many folders deep, and no more than so many of them."""


@dataclass(frozen=True)
class DataSource:
    """A table and the files that belong to it."""

    name: str
    table: Any
    schema_path: Path
    ledger_path: Path
    bundled: Schema | None = None
    """the schema that comes with the package, if it does"""
    parts: tuple[Path, ...] = ()
    """the ledgers of the tables that a view of several is made of"""

    def schema(self) -> Schema:
        """The bundled schema, or the one that is read from the file."""
        return self.bundled or Schema.load(self.schema_path)

    def ledger(self, named: str | None) -> Path:
        """The ledger that pays: the rows' own or, where some of them have another, one of these that was named."""
        own = self.ledger_path.resolve()
        known = [own] if own.exists() else []
        others = [place for place in self._others() if place.exists() and place.resolve() != own]
        if named is None and others:
            raise LedgerError(
                f"rows of {self.name} must have one ledger, and some have {others[0]}, too",
                "Say with --ledger which of them pays.",
            )
        every = known + [one.resolve() for one in others]
        if named is not None and every and Path(named).resolve() not in every:
            raise LedgerError(
                f"table {self.name} must have one ledger, and has {every[0]}",
                "Leave --ledger out, or name that one.",
            )
        return Path(named) if named is not None else self.ledger_path

    def _others(self) -> list[Path]:
        """Where other ledgers of the rows may be: of folders that hold the files, of tables that a view reads."""
        over = self.table.over if isinstance(self.table, Query) else self.table
        if isinstance(over, str | Path) and not is_database(over) and is_parquet(over):
            return sorted({place for file in parquet_files(over) for place in _ledgers_above(file)})
        return list(self.parts)

    def note_ledger(self, key: str | None) -> None:
        """Write the id of the ledger into the schema file, whose comments stay, if it can be written."""
        if self.bundled is not None or key is None or (known := self.schema()).ledger == key:
            return
        before, noted = self.schema_path.read_text(encoding="utf-8"), known.with_ledger(key)
        text = re.sub(r"(?m)^name:.*$", lambda line: f"{line[0]}\nledger: {key}", before, count=1)
        try:
            kept = Schema.loads(text) == noted
        except SchemaError:
            kept = False
        with suppress(ReleaseError, OSError), replaced_file(self.schema_path) as staging:
            staging.write_text(text if kept else noted.dump(like=before), encoding="utf-8")


def _ledgers_above(file: Path) -> list[Path]:
    """Where the ledger of a file would be, alone or as one of any folder that holds it."""
    folders = [folder.with_name(f"{folder.name}.ledger") for folder in file.parents if folder.name]
    return [file.with_suffix(".ledger"), *folders]


def find_data(
    data: str,
    schema_path: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    encoding: str | None = None,
) -> DataSource:
    """Find the table that a word means: `adult` is the bundled one unless such a file exists, all else is a path."""
    data = os.path.expanduser(data)
    if encoding is not None:
        return _encoded(find_data(data, schema_path, table, sql), encoding)
    if table is not None and sql is not None:
        raise TableError("a table and a query must not both be given", "Name the table in the query.")
    if table is not None and not is_database(data) and not is_workbook(data):
        raise TableError("option --table must go with a DuckDB database or a workbook", "Leave it out.")
    query = None if sql is None else Query(sql, data)
    if is_database(data):
        path, named = parted(data)
        path, named = path.resolve(), table or named
        found = _beside(path, _stem(path, named, query), schema_path, query or _in_database(path, named))
        return _of_base_tables(found, path, query.table if query is not None else named)
    if is_workbook(data):
        return _in_workbook(data, table, schema_path)
    if is_pattern(data) or Path(data).is_dir():
        folder = (fixed_folder(data) if is_pattern(data) else Path(data)).resolve()
        return _beside(folder, folder.name, schema_path, query or data)
    path = Path(data)
    if data == BUNDLED and not path.exists():
        adult = datasets.adult()
        bundled = None if schema_path else adult.schema
        return DataSource(BUNDLED, adult.table, Path(schema_path or "adult.schema.yaml"), Path("adult.ledger"), bundled)
    if not path.name:
        raise TableError(f"data ({data}) must be a file", "Name a CSV, Parquet or JSON-lines file, or adult.")
    real = path.resolve()
    return _linked(_beside(real, SUFFIXES.sub("", real.name) or real.name, schema_path, query or path), real)


def _linked(source: DataSource, real: Path) -> DataSource:
    """The ledger of a file that has other names in its folder: that of the first name that has one."""
    if source.ledger_path.exists() or not real.exists() or real.stat().st_nlink == 1:
        return source
    own = (real.stat().st_dev, real.stat().st_ino)
    with suppress(OSError):
        for other in sorted(real.parent.iterdir()):
            place = other.with_name(f"{SUFFIXES.sub('', other.name)}.ledger")
            if other.is_file() and (other.stat().st_dev, other.stat().st_ino) == own and place.exists():
                return replace(source, ledger_path=place)
    return source


def _of_base_tables(source: DataSource, path: Path, table: str | None) -> DataSource:
    """The ledger of a view: that of the table that it reads; if it reads several, a person must say which pays."""
    bases = base_tables(path, table) if table and path.is_file() else []
    places = [path.with_name(f"{path.stem}.{base}.ledger") for base in bases]
    if len(places) == 1:
        return replace(source, ledger_path=places[0])
    return replace(source, parts=tuple(places))


def _encoded(source: DataSource, encoding: str) -> DataSource:
    """The same file in another encoding: the same ledger."""
    if not isinstance(source.table, Path):
        raise TableError("option --encoding must go with a CSV or TSV file", "Leave it out.")
    return replace(source, table=Encoded(source.table, encoding))


def _beside(place: Path, stem: str, schema_path: str | None, table: Any) -> DataSource:
    """Name the schema and the ledger that lie beside the data."""
    real = place.resolve()
    if not real.name:
        raise TableError("data must have a name for its ledger to lie beside it", "Name a file or a folder.")
    schema = Path(schema_path) if schema_path else real.with_name(f"{stem}.schema.yaml")
    return DataSource(stem, table, schema, real.with_name(f"{stem}.ledger"))


def _stem(path: Path, table: str | None, query: Query | None) -> str:
    """Name a database's table: what its schema and ledger are called."""
    name = query.table if query is not None else table
    if not name:
        return path.stem
    return f"{path.stem}.{own_name(path, name) if path.is_file() else name}"


def _in_workbook(data: str, table: str | None, schema_path: str | None) -> DataSource:
    """A sheet of a workbook: each has a schema of its own, but all share a ledger, since the first has two names."""
    path, named = parted_workbook(data)
    sheet = table or named
    stem = SUFFIXES.sub("", path.name)
    book = _beside(path, stem, schema_path, path)
    if sheet is None:
        return book
    return replace(_beside(path, f"{stem}.{sheet}", schema_path, f"{path}{MARK}{sheet}"), ledger_path=book.ledger_path)


def _in_database(path: Path, table: str | None) -> str:
    return f"{path}{MARK}{table}" if table else str(path)


def tables_below(folder: Path) -> list[str]:
    """List the words for tables that lie in a folder or below it, as paths from there, tables of databases by name.

    What is hidden is not listed, nor what cannot be read, nor what lies in a release.
    """
    found: list[str] = []
    for place, inner, files in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        inner[:] = sorted(one for one in inner if not one.startswith(".")) if depth < DEEPEST else []
        if "manifest.json" in files:
            inner[:] = []
            continue
        for name in sorted(one for one in files if not one.startswith(".")):
            word = str((here / name).relative_to(folder))
            if is_database(name):
                with contextlib.suppress(TableError):
                    found += [f"{word}{MARK}{table}" for table in tables_of(here / name)]
            elif SUFFIXES.search(name):
                found.append(word)
        if len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]


def named_only(schema: Schema, names: str | None) -> Schema:
    """Keep the attributes that were named, separated by commas; all if none were."""
    return schema if names is None else schema.only([name.strip() for name in names.split(",")])


def refuse_other_schema(schema: Schema, source: DataSource) -> None:
    """Refuse a table whose own schema, where there is one, describes an attribute otherwise than a release's does."""
    if source.bundled is None and not source.schema_path.exists():
        return
    declared = {name: _as_attribute(column) for name, column in source.schema().attributes.items()}
    for name, column in schema.attributes.items():
        if declared.get(name) != _as_attribute(column):
            raise ReleaseError(
                f"the release must be of the schema of the data, which declares {name} otherwise or not at all",
                "Evaluate with the table that was published.",
            )


def _as_attribute(column: Column) -> Column:
    """See the class as an attribute like others: any can be made the class of a release."""
    return column.model_copy(update={"kind": "categorical"}) if isinstance(column, Categorical) else column
