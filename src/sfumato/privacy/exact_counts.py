"""Exact counts, for methods that are not differentially private and say so.

This is a type of its own, not a meter with the noise turned off, so that a differentially private method cannot be
given it by mistake. It notes in the ledger that no epsilon bounds what follows, and why, **before** it looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sfumato.errors import BLAME, PrivacyError
from sfumato.geometry.grid import Grid
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.tally import Combinations, Counts, Domain, ListingEngine, Tally


class Notebook(Protocol):
    """Where looks are noted: when `note` returns, the line is durable."""

    def note(self, line: NonPrivate) -> None:
        """Write a line, or refuse."""


class ExactCounts:
    """Answers tallies exactly, and lists the combinations that occur.

    Questions are in public terms here, too: one can ask how often a combination of values occurs, and nothing else.
    """

    def __init__(
        self,
        engine: ListingEngine,
        notebook: Notebook,
        domain: Domain,
        reason: str,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        """Stand between a method and an engine on a table of this domain; `watch` is told of each look."""
        self._engine = engine
        self._notebook = notebook
        self._domain = domain
        self._reason = reason
        self._watch = watch
        self._lines: list[NonPrivate] = []

    @property
    def lines(self) -> tuple[NonPrivate, ...]:
        """The lines that were noted so far."""
        return tuple(self._lines)

    def tally(self, tally: Tally, label: str) -> Counts:
        """Count everything that the tally asks for."""
        self._note(tally.domain, label)
        return self._engine.tally(tally)

    def combinations(self, grid: Grid, classes: int, label: str) -> Combinations:
        """List the regions of a grid that hold someone, by class."""
        self._note(Domain(grid.shape, classes), label)
        return self._engine.combinations(grid, classes)

    def _note(self, domain: Domain, label: str) -> None:
        """Write a look down before it is made.

        Looks with one label are one line: infinity twice is no more than once, so lines only say what was looked for.
        """
        if domain != self._domain:
            raise PrivacyError("a question must be about the table's own attributes and classes", BLAME)
        line = NonPrivate(label, self._reason)
        if line not in self._lines:
            self._notebook.note(line)
            self._lines.append(line)
        if self._watch:
            self._watch(label)
