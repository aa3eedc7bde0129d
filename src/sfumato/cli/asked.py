"""Files of conditions, one in each row, with the line on which each begins.

It stands apart because a mistake in a condition is told by its line, and only who has read the file knows lines.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sfumato.errors import QueryError
from sfumato.storage import reason_of

COLUMN = "condition"


@dataclass(frozen=True)
class Asked:
    """The conditions of a file, and the lines on which they begin."""

    name: str
    conditions: Sequence[str]
    lines: Sequence[int]

    def place(self, number: int) -> str:
        """Say where a condition stands."""
        return f"line {self.lines[number]} of {self.name}: "


def read_questions(path: str | Path) -> Asked:
    """Read a CSV file with a column `condition`, or, without such a header, each line of a text as one condition.

    The header may be in capitals. Blank lines are passed over; an empty field of a CSV file is the condition that
    everyone satisfies.
    """
    name = Path(path).name[:80]
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            found = list(_rows(file, name))
    except OSError as error:
        raise QueryError(f"{name} must be a readable file ({reason_of(error)})", "Name another file.") from None
    except (UnicodeDecodeError, csv.Error):
        raise QueryError(f"{name} must be text in UTF-8 with one condition in each row", "Save it as such.") from None
    if not found:
        raise QueryError(f"{name} must hold a condition, and is empty", "Write one in each line.")
    return Asked(name, [condition for _, condition in found], [line for line, _ in found])


def _rows(file: TextIO, name: str) -> Iterator[tuple[int, str]]:
    """Give each condition and the line on which it begins."""
    header = [field.strip().lower() for field in next(csv.reader([file.readline()]), [])]
    if COLUMN in header:
        return _fields(file, name, header)
    file.seek(0)
    return ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())


def _fields(file: TextIO, name: str, header: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Read one column of a CSV file whose header has been read; a field may go over several lines.

    A row that is longer than the header was most likely cut at a comma inside a condition, and half a condition is
    another one.
    """
    rows, begin = csv.reader(file, strict=True), 2
    for row in rows:
        if row and len(row) != len(header):
            raise QueryError(
                f"line {begin} of {name} ({len(row)} fields) must have {len(header)}, like the header",
                "Quote fields that have commas or newlines.",
            )
        if row:
            yield begin, row[header.index(COLUMN)]
        begin = rows.line_num + 2
