"""What a person who waits is told: which round is under way, of how many, since when, and about how long it will take.

All of it is public: rounds and their number stand in the plan, or follow from what was released; time is time. Nothing
that was counted is ever told.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sfumato.privacy.budget import Schedule


class Progress:
    """Turns the names of rounds into lines. Where a plan is open, rounds follow from what was found so far: nobody
    knows how many, so what is told of them is how long one takes.

    >>> from fractions import Fraction
    >>> told, plan = [], Schedule({"choice 1": Fraction(1, 2), "counts": Fraction(1, 2)})
    >>> progress = Progress(told.append, plan, clock=iter([0, 10, 40]).__next__)
    >>> progress("reading the table"); progress("choice 1"); progress("counts")
    >>> told[1:]
    ['round 1 of 2: choice 1 (0:10 so far)', 'round 2 of 2: counts (0:40 so far, about 0:30 left)']
    """

    def __init__(
        self, tell: Callable[[str], None], plan: Schedule, clock: Callable[[], float] = time.monotonic
    ) -> None:
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

    def _number(self, label: str) -> str:
        if label not in self._rounds:
            return str(len(self._asked))
        return f"{len(self._asked)} of {len(self._rounds)}" + (" planned" if self._open else "")

    def _outlook(self, label: str) -> str:
        """Take the rounds that are left, this one too, to last as long as those before did on average."""
        done = self._asked[-LAST:]
        if len(done) < 2:
            return ""
        if self._open:
            return "" if label in self._rounds else f", about {(done[-1] - done[0]) / (len(done) - 1):.1f} s a round"
        each = (self._asked[-1] - self._asked[0]) / (len(self._asked) - 1)
        return f", about {_clock(each * max(len(self._rounds) - len(self._asked) + 1, 1))} left"


LAST = 5
"""How long a round takes is told by so many of the last."""
STEPS = ("reading the table", "writing the release")
"""What is no round."""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
