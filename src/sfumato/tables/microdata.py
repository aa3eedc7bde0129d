"""Open what statistics programs and offices write: SPSS, Stata and SAS files with their labels, and Excel sheets.

SPSS, Stata and SAS are read by pyreadstat, Excel by python-calamine; both are optional. A column's type comes from the
file's dictionary, not from its rows, and a cell of a sheet is read by itself, so how a row is read depends on that row
alone. Their messages may hold values, and are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import TableError
from sfumato.schema.codebooks import CodeBook, labelled, meanings
from sfumato.schema.schema import Column
from sfumato.tables import streams
from sfumato.tables.databases import MARK
from sfumato.tables.streams import Table, attempt, some
from sfumato.tables.values import text_of

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""The endings of files of statistics programs, and what reads them."""
SHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
"""The endings of sheets."""


def is_statistics(source: str | Path) -> bool:
    """Whether a source is a file of a statistics program."""
    return Path(source).suffix.lower() in READERS


def is_workbook(source: str | Path) -> bool:
    """Whether a source is a workbook, with or without the name of a sheet."""
    return parted_workbook(source)[0].suffix.lower() in SHEETS


def parted_workbook(source: str | Path) -> tuple[Path, str | None]:
    """The parts of `book.xlsx::sheet`."""
    text = str(source)
    if MARK not in text or Path(text).exists():
        return Path(text), None
    path, _, sheet = text.rpartition(MARK)
    return Path(path), sheet


def open_statistics(path: Path) -> Table:
    """Open a file of SPSS, Stata or SAS; values are the codes, whose labels `labels_of` gives."""
    names = [str(name) for name in _dictionary(path).column_names]

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        start, more = 0, True
        while more:
            part = _part(path, columns, start)
            arrays = [pa.array([text_of(_plain(one)) for one in part[name]], pa.large_string()) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
            more = len(arrays[0]) == streams.BATCH_ROWS
            start += streams.BATCH_ROWS

    return Table(names, read)


def _plain(value: Any) -> Any:
    """One value of a file: an empty text is no value."""
    return None if isinstance(value, str) and not value.strip() else value


def _part(path: Path, columns: Sequence[str], start: int) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        options = {"output_format": "dict", "row_offset": start, "row_limit": streams.BATCH_ROWS}
        found, _ = _reader(path)(str(path), usecols=list(columns), **options)
        return dict(found)

    return attempt(path, read)


def _reader(path: Path) -> Any:
    try:
        library = import_module("pyreadstat")
    except ImportError:
        raise TableError(
            f"file {path} must be read by pyreadstat, which is not installed", "Run: pip install 'sfumato[statistics]'"
        ) from None
    return getattr(library, READERS[path.suffix.lower()])


def _dictionary(path: Path) -> Any:
    """What a file says of its columns, without any row."""
    if not path.is_file():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")
    reader = _reader(path)
    options: dict[str, Any] = {"metadataonly": True, "output_format": "dict"}
    if path.suffix.lower() in (".sav", ".zsav", ".dta"):
        options["user_missing"] = True
    catalog = path.with_suffix(".sas7bcat")
    if path.suffix.lower() == ".sas7bdat" and catalog.is_file():
        options["catalog_file"] = str(catalog)
    return attempt(path, lambda: reader(str(path), **options)[1])


def labels_of(path: Path) -> CodeBook:
    """The code book inside a file: columns whose values have labels and are not said to be measured on a scale.

    Values that the file declares as missing are read as missing, so their labels are left out.
    """
    told = _dictionary(path)
    measures = getattr(told, "variable_measure", {}) or {}
    found: dict[str, Column] = {}
    for name, labels in told.variable_value_labels.items():
        gone = [_span(one) for one in (getattr(told, "missing_ranges", None) or {}).get(name, ())]
        kept = {text_of(code): str(label) for code, label in labels.items() if not _is_gone(code, gone)}
        named = {code: label for code, label in kept.items() if code is not None}
        if len(named) > 1 and measures.get(name) != "scale":
            found[str(name)] = labelled(named)
    titles = meanings(getattr(told, "column_names_to_labels", None) or {})
    return CodeBook(found, title=f"the labels in {path.name}", titles=titles)


def _span(one: Any) -> tuple[Any, Any]:
    return (one["lo"], one["hi"]) if isinstance(one, dict) else (one, one)


def _is_gone(code: Any, spans: Sequence[tuple[Any, Any]]) -> bool:
    """Whether a code lies in a span of missing values; texts and numbers do not compare."""
    return any(low <= code <= high for low, high in spans if isinstance(code, str) == isinstance(low, str))


def open_workbook(source: Path) -> Table:
    """Open a sheet of a workbook, the first unless one is named: its first row names the columns.

    What has no name there is no column: how it could be called depends on cells that people's rows fill.
    """
    path, wanted = parted_workbook(source)
    if not path.is_file():
        raise TableError(f"file {path} must exist", "Check its name and the folder you are in.")
    rows = attempt(path, lambda: _rows(path, wanted))
    if not rows or not any(text_of(_cell(one)) for one in rows[0]):
        raise TableError(f"the first row of {path} must name the columns", "Add a header row.")
    named = {place: name for place, one in enumerate(rows[0]) if (name := text_of(_cell(one)))}
    names = list(named.values())
    streams.refuse_repeated(names, named=streams.is_header(names, [text_of(one) or "" for one in [*rows[1:2], []][0]]))
    places = {name: place for place, name in named.items()}
    records = [row for row in rows[1:] if any(_cell(one) is not None for one in row)]

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for start in range(0, max(len(records), 1), streams.BATCH_ROWS):
            part = records[start : start + streams.BATCH_ROWS]
            arrays = [
                pa.array([text_of(_cell(row[places[name]])) for row in part], pa.large_string()) for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    return Table(names, read, "its first row")


def _cell(value: Any) -> Any:
    return None if value == "" else value


def _rows(path: Path, wanted: str | None) -> list[list[Any]]:
    try:
        library = import_module("python_calamine")
    except ImportError:
        raise TableError(
            f"file {path} must be read by python-calamine, which is not installed", "Run: pip install 'sfumato[excel]'"
        ) from None
    book = library.CalamineWorkbook.from_path(str(path))
    if wanted is not None and wanted not in book.sheet_names:
        raise TableError(f"sheet ({wanted[:40]}) must be in {path}", f"It has {some(book.sheet_names)}.")
    sheet = book.get_sheet_by_name(wanted) if wanted is not None else book.get_sheet_by_index(0)
    return list(sheet.to_python(skip_empty_area=True))
