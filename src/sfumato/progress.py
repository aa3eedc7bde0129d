"""What a person who waits is told: which round is under way, of how many, since when, and about how long it will take.

A bar stands for work of many steps. On a terminal, the command line shows it; in a notebook, it shows itself, without
being asked. All of it is public: rounds and their number stand in the plan, or follow from what was released; time is
time. Nothing that was counted is ever told.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sfumato.markup import Html, joined, tag

LAST = 5
"""The number of rounds by which it is told how long a round takes, the last ones."""
STEPS = ("reading the table", "writing the release")
"""The parts of publishing that are no rounds."""
WIDTH = 30
"""The width of a bar."""


class Plan(Protocol):
    """A schedule, as far as progress is told by it."""

    @property
    def rounds(self) -> Collection[str]:
        """The names of rounds."""

    @property
    def open_part(self) -> str | None:
        """The part that pays for as many rounds as it takes, if there is one."""


class Progress:
    """Turns the names of rounds into lines that tell how far a publication is.

    Where a plan is open, rounds follow from what was found so far: nobody knows how many, so what is told of them is
    how long one takes.

    >>> from fractions import Fraction
    >>> from sfumato.privacy.budget import Schedule
    >>> told, plan = [], Schedule({"choice 1": Fraction(1, 2), "counts": Fraction(1, 2)})
    >>> progress = Progress(told.append, plan, clock=iter([0, 10, 40]).__next__)
    >>> progress("reading the table"); progress("choice 1"); progress("counts")
    >>> told[1:]
    ['round 1 of 2: choice 1 (0:10 so far)', 'round 2 of 2: counts (0:40 so far, about 0:30 left)']
    """

    def __init__(self, tell: Callable[[str], None], plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with the plan."""
        self._tell = tell
        self._rounds, self._open = plan.rounds, plan.open_part is not None
        self._clock = clock
        self._begun: float | None = None
        self._asked: list[float] = []

    def __call__(self, label: str) -> None:
        """Tell that something begins."""
        now = self._clock()
        self._begun = now if self._begun is None else self._begun
        if label in STEPS:
            self._tell(label)
            return
        self._asked.append(now)
        self._tell(f"round {self._number(label)}: {label} ({_clock(now - self._begun)} so far{self._outlook(label)})")

    @property
    def share(self) -> float | None:
        """The share of all rounds that are done, if it is known how many there are."""
        return None if self._open or not self._rounds else min(max(len(self._asked) - 1, 0) / len(self._rounds), 1.0)

    def _number(self, label: str) -> str:
        if label not in self._rounds:
            return str(len(self._asked))
        return f"{len(self._asked)} of {len(self._rounds)}" + (" planned" if self._open else "")

    def _outlook(self, label: str) -> str:
        """How long it will take, if the rounds that are left, this one too, last as long as those before did on
        average.
        """
        done = self._asked[-LAST:]
        if len(done) < 2:
            return ""
        if self._open:
            return "" if label in self._rounds else f", about {(done[-1] - done[0]) / (len(done) - 1):.1f} s a round"
        each = (self._asked[-1] - self._asked[0]) / (len(self._asked) - 1)
        return f", about {_clock(each * max(len(self._rounds) - len(self._asked) + 1, 1))} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Steps:
    """Counts finished steps, of how many; those that were finished before took no time."""

    def __init__(self, what: str, tell: Callable[[str], None]) -> None:
        """Begin to count."""
        self._what, self._tell, self._start = what, tell, time.monotonic()
        self._before: int | None = None
        self.done, self.all = 0, 0

    @property
    def before(self) -> int:
        """How many steps were finished before it began."""
        return self._before or 0

    @property
    def share(self) -> float | None:
        """The share of all steps that are done."""
        return self.done / self.all if self.all else None

    def __call__(self, done: int, of: int) -> None:
        """Show how far it is."""
        if self._before is None:
            self._before = done
        self.done, self.all = done, of
        self._tell(bar(self._what, *self._state))

    @property
    def far(self) -> str:
        """How many steps are done, and how long the others may take."""
        return _far(*self._state)

    @property
    def _state(self) -> tuple[int, int, int, float]:
        return self.done, self.all, self.done - self.before, time.monotonic() - self._start


def bar(what: str, done: int, of: int, fresh: int, seconds: float) -> str:
    """A bar for work of many steps; what is left is estimated by the steps that were done now.

    >>> bar("runs", 5, 10, 5, 60.0)
    'runs [###############               ] 5 of 10, about 60 s left'
    """
    return f"{what} [{'#' * (WIDTH * done // max(of, 1)):{WIDTH}}] {_far(done, of, fresh, seconds)}"


def _far(done: int, of: int, fresh: int, seconds: float) -> str:
    left = ", about " + _duration(seconds * (of - done) / fresh) + " left" if fresh and done < of else ""
    return f"{done:,} of {of:,}{left}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@contextmanager
def rounds_watched(watch: Callable[[str], None] | None, plan: Plan | None) -> Iterator[Callable[[str], None]]:
    """Yield whom to tell what begins: whoever watches, else a bar in a notebook, else nobody."""
    with _notebook_bar(watch is None) as shown:
        if watch is not None or shown is None:
            yield watch or (lambda _: None)
        elif plan is None:
            yield shown.tell
        else:
            progress = Progress(lambda text: shown.tell(text, progress.share), plan)
            yield progress


@contextmanager
def steps_watched(watch: Callable[[int, int], None] | None, what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield whom to tell how many steps are done: whoever watches, else a bar in a notebook, else nobody."""
    with _notebook_bar(watch is None) as shown:
        if watch is not None or shown is None:
            yield watch or (lambda _done, _all: None)
        else:
            steps = Steps(what, lambda _: shown.tell(f"{what}: {steps.far}", steps.share))
            yield steps


@contextmanager
def _notebook_bar(wanted: bool) -> Iterator[NotebookBar | None]:
    """A bar where a notebook runs, which goes away when the work is done."""
    display = _notebooks_display() if wanted else None
    if display is None:
        yield None
        return
    shown = NotebookBar(display)
    try:
        yield shown
    finally:
        shown.clear()


def _notebooks_display() -> Any:
    """IPython's `display`, if this runs in a notebook; a terminal cannot change what it has shown."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else ipython.display.display


class NotebookBar:
    """A bar and a line of text in a notebook, which change in place."""

    def __init__(self, display: Any) -> None:
        """Show nothing yet."""
        self._display: Any = display
        self._handle: Any = None

    def tell(self, text: str, share: float | None = None) -> None:
        """Show how far it is; a bar of unknown length moves."""
        value = None if share is None else f"{share:.4f}"
        self._show(joined([tag("progress", value=value, max="1"), " ", tag("span", text)]), text)

    def clear(self) -> None:
        """Show nothing any more."""
        if self._handle is not None:
            self._show(Html(""), "")

    def _show(self, markup: Html, text: str) -> None:
        bundle = {"text/html": markup, "text/plain": text}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
