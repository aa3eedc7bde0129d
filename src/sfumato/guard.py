"""Failing without telling what was seen.

Libraries put values and shapes into their messages. Whatever one of them raises while it handles rows is replaced by a
sentence of ours, and is not kept as its context either. It stands apart because rows are handled both where they are
read and where they are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import SfumatoError, TableError

Found = TypeVar("Found")


def guarded(action: Callable[[], Found], failure: Callable[[BaseException], SfumatoError]) -> Found:
    """Do it, or raise what `failure` makes of the error, when that is no longer being handled."""
    try:
        return action()
    except (SfumatoError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # some libraries' errors, such as a panic in compiled code, are no Exception
        told = KeyboardInterrupt() if _is_interrupt(error) else failure(error)
    raise told


def _is_interrupt(error: BaseException) -> bool:
    """Tell what DuckDB makes of an interrupt that comes while it works; values in messages never come first."""
    return str(error).startswith(("Query interrupted", "INTERRUPT Error"))


def too_large(_: BaseException) -> TableError:
    """Say that memory has come to its end; how much was wanted tells the number of rows."""
    return TableError("the coded table must fit in memory, and does not", "Free some, or use --engine duckdb.")


def unreadable(column: str) -> Callable[[BaseException], TableError]:
    """Say of a column that it cannot be read, unless it was memory that failed."""
    told = TableError(
        f"column {column} must be of a type that can be read, and is not", "Convert it to text, numbers or dates."
    )
    return lambda error: too_large(error) if isinstance(error, MemoryError) else told
