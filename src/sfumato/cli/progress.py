"""What a person who waits is told: which round is under way, of how many, since when, and about how long it will take.

All of it is public: rounds and their number stand in the plan, or follow from what was released; time is time. Nothing
that was counted is ever told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


class Progress:
    """Turns the names of rounds into lines. Rounds that are not in the plan follow from what was found so far.

    >>> told = []
    >>> progress = Progress(told.append, ["choice 1", "counts"], clock=iter([0, 10, 40]).__next__)
    >>> progress("reading the table"); progress("choice 1"); progress("counts")
    >>> told[1:]
    ['round 1 of 2 planned: choice 1 (0:10 so far)', 'round 2 of 2 planned: counts (0:40 so far, about 0:30 left)']
    """

    def __init__(
        self, tell: Callable[[str], None], rounds: Sequence[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with the plan."""
        self._tell = tell
        self._rounds = frozenset(rounds)
        self._clock = clock
        self._times: list[float] = []
        self._asked: list[float] = []

    def __call__(self, label: str) -> None:
        """Tell that something begins."""
        self._times.append(self._clock())
        if label in STEPS:
            self._tell(label)
            return
        self._asked.append(self._times[-1])
        planned = label in self._rounds
        of = f" of {len(self._rounds)} planned" if planned else ""
        left = f", about {_clock(self._left())} left" if planned and len(self._asked) > 1 else ""
        so_far = _clock(self._times[-1] - self._times[0])
        self._tell(f"round {len(self._asked)}{of}: {label} ({so_far} so far{left})")

    def _left(self) -> float:
        """Take the rounds that are left, this one too, to last as long as those before did on average."""
        done = len(self._asked) - 1
        return (self._asked[-1] - self._asked[0]) / done * max(len(self._rounds) - done, 1)


STEPS = ("reading the table", "writing the release")
"""What is no round."""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
