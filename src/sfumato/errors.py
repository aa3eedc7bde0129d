"""What can go wrong, said in one sentence and the way out.

They stand apart because every layer raises them and every face (library, command line) shows them alike. A message
names parameters, columns and numbers of rows; it never holds a row, a private value or a count that was not paid for.

Failing without telling what was seen.

Libraries put values and shapes into their messages. Whatever one of them raises while it handles rows is replaced by a
sentence of ours, and is not kept as its context either. It stands apart because rows are handled both where they are
read and where they are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

BLAME = "Report this: it is a mistake of the method."
"""The way out where a method, and not its user, has gone wrong."""


class SfumatoError(Exception):
    """A problem that the user can solve: `problem` is one clause, `remedy` one sentence.

    >>> print(SfumatoError("epsilon (0) must be greater than 0", "Give a budget such as 1 or 1/2."))
    epsilon (0) must be greater than 0. Give a budget such as 1 or 1/2.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        """Keep both parts, so that a face may show them apart."""
        super().__init__(f"{problem.rstrip('.')}. {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[SfumatoError], tuple[str, str]]:
        """Travel between processes as both parts."""
        return type(self), (self.problem, self.remedy)


class SchemaError(SfumatoError, ValueError):
    """The public description of a table contradicts itself or is not confirmed.

    It is a ValueError so that pydantic, in whose validators most of these arise, can tell at which field it happened.
    """


class TableError(SfumatoError):
    """The table cannot be read, or does not fit its schema."""


class BudgetError(SfumatoError):
    """An epsilon that is no epsilon, or more than is left."""


class LedgerError(SfumatoError):
    """The ledger cannot be opened, written or trusted."""


class MethodError(SfumatoError):
    """A method's parameter is out of bounds, or the method cannot work on this schema."""


class QueryError(SfumatoError):
    """A condition that cannot be read, or asks for what the release does not hold."""


class ReleaseError(SfumatoError):
    """A release that cannot be written, read or trusted."""


class PrivacyError(SfumatoError):
    """A method tried to step past the door. Never the user's fault; nothing was looked at."""


class CountError(SfumatoError):
    """A round that was paid for has no answer. Why is not told: the reason could hold what was seen."""


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
