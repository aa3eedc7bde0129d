"""The errors that Sfumato raises: each says in one sentence what is wrong, then the way out.

A message names parameters, columns and numbers of rows; it never holds a row, a private value or a count that was not
paid for. Libraries put values and shapes into their messages, so whatever one of them raises while it handles rows is
replaced by a sentence of ours (`guarded`), and is not kept as its context either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

BLAME = "Report this: it is a mistake of the method."
"""The remedy of an error that is the method's fault, not its user's."""


class SfumatoError(Exception):
    """A problem that the user can solve: `problem` is one clause, `remedy` one sentence.

    >>> print(SfumatoError("epsilon (0) must be greater than 0", "Give a budget such as 1 or 1/2."))
    epsilon (0) must be greater than 0. Give a budget such as 1 or 1/2.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        """Keep both parts, so that they can be shown apart."""
        super().__init__(f"{problem.rstrip('.')}. {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[SfumatoError], tuple[str, str]]:
        """Pickle both parts: errors pass between processes."""
        return type(self), (self.problem, self.remedy)


class SchemaError(SfumatoError, ValueError):
    """The public description of a table contradicts itself or is not confirmed.

    It is a ValueError so that pydantic, in whose validators most of these are raised, can say which field is wrong.
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
    """A method asked for what it may not have. Never the user's fault; no data was looked at."""


class CountError(SfumatoError):
    """A round that was paid for failed. The reason is not told: it could hold what was seen."""


Found = TypeVar("Found")


def guarded(action: Callable[[], Found], failure: Callable[[BaseException], SfumatoError]) -> Found:
    """Run an action; if it fails, raise what `failure` makes of the error, without the error as its context."""
    try:
        return action()
    except (SfumatoError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # some libraries' errors, such as a panic in compiled code, are no Exception
        told = KeyboardInterrupt() if _is_interrupt(error) else failure(error)
    raise told


def _is_interrupt(error: BaseException) -> bool:
    """Whether DuckDB was interrupted while it worked. Its messages never begin with a value, so this reads no data."""
    return str(error).startswith(("Query interrupted", "INTERRUPT Error"))


def too_large(_: BaseException) -> TableError:
    """The error for a lack of memory. It does not say how much was wanted, which would tell the number of rows."""
    return TableError(
        "the coded table must fit in memory, and does not",
        "Free some, or allow less with --memory: the rest goes to disk.",
    )


def unreadable(column: str) -> Callable[[BaseException], TableError]:
    """What makes the error for a column that cannot be read, or `too_large` where memory was the reason."""
    told = TableError(
        f"column {column} must be of a type that can be read, and is not", "Convert it to text, numbers or dates."
    )
    return lambda error: too_large(error) if isinstance(error, MemoryError) else told
