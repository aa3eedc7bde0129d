"""A bar for work of many steps, with an estimate of what is left; for people who watch, and nobody else."""

from __future__ import annotations

import time
from collections.abc import Callable

WIDTH = 30


class Steps:
    """How many steps are finished, of how many; those that were finished before took no time."""

    def __init__(self, what: str, tell: Callable[[str], None]) -> None:
        """Begin to count."""
        self._what, self._tell, self._start = what, tell, time.monotonic()
        self._before: int | None = None
        self.done, self.all = 0, 0

    @property
    def before(self) -> int:
        """How many steps were finished before it began."""
        return self._before or 0

    def __call__(self, done: int, of: int) -> None:
        """Show how far it is."""
        if self._before is None:
            self._before = done
        self.done, self.all = done, of
        self._tell(bar(self._what, done, of, done - self._before, time.monotonic() - self._start))


def bar(what: str, done: int, of: int, fresh: int, seconds: float) -> str:
    """Draw the bar; what is left is estimated by the steps that were done now.

    >>> bar("runs", 5, 10, 5, 60.0)
    'runs [###############               ] 5 of 10, about 60 s left'
    """
    filled = "#" * (WIDTH * done // max(of, 1))
    left = ", about " + _duration(seconds * (of - done) / fresh) + " left" if fresh and done < of else ""
    return f"{what} [{filled:{WIDTH}}] {done:,} of {of:,}{left}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
